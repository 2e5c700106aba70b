// Devices and stores, as the options name them.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "benchmarks/benchmark/options.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/device.h"

namespace benchmark {

// Why this build cannot use the transport; empty if it can.
std::string transportTrouble(const std::string& transport);
bool redisAvailable();

// One for each --tcp-device or --ib-device, at least one.
std::vector<std::shared_ptr<gloo::transport::Device>> makeDevices(
    const Options& options);

// Keys begin with --prefix.
std::shared_ptr<gloo::rendezvous::Store> makeStore(const Options& options);

}  // namespace benchmark
