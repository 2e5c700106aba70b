// Debian's libgloo over TCP on the loopback interface or over ibverbs, in its
// default mode or (--mode busy) with every pair in synchronous, busy-polling
// mode; by each of its algorithms, or by one (--mode "busy bcube").
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/file_store.h>
#include <gloo/transport/ibverbs/device.h>
#include <gloo/transport/tcp/device.h>

#include <cstdio>
#include <exception>

#include "operations.h"

namespace {

std::shared_ptr<gloo::transport::Device> makeDevice(
    const measure::Arguments& arguments) {
  if (arguments.transport == "ibverbs") {
    // Its own choice, GID 0, is a link-local one: on RoCE the next is the
    // address of the interface.
    return gloo::transport::ibverbs::CreateDevice({arguments.device, 1, 1});
  }
  gloo::transport::tcp::attr attr;
  attr.iface = "lo";
  return gloo::transport::tcp::CreateDevice(attr);
}

class Libgloo : public measure::Program {
 public:
  explicit Libgloo(const measure::Arguments& arguments)
      : busy_(arguments.mode.rfind("busy", 0) == 0),
        algorithm_(algorithmOf(arguments.mode)),
        transport_(arguments.transport) {
    auto device = makeDevice(arguments);
    auto context = std::make_shared<gloo::rendezvous::Context>(arguments.rank,
                                                               arguments.size);
    gloo::rendezvous::FileStore store(arguments.directory);
    context->connectFullMesh(store, device);
    for (int i = 0; busy_ && i < arguments.size; i++) {
      if (i != arguments.rank) {
        context->getPair(i)->setSync(true, true);
      }
    }
    context_ = context;
  }

  std::vector<std::string> modes(const std::string& collective) override {
    const std::string prefix = busy_ ? "busy " : "default ";
    if (!algorithm_.empty()) {
      return {prefix + algorithm_};
    }
    std::vector<std::string> names;
    for (const auto& algorithm : modesOf(collective, context_->size)) {
      // It refuses to send tagged messages on synchronous pairs.
      if (!busy_ || algorithm != "new") {
        names.push_back(prefix + algorithm);
      }
    }
    return names;
  }

  measure::Operation prepare(const measure::Work& work,
                             const std::string& mode) override {
    return prepareOperation(context_, work, mode.substr(mode.find(' ') + 1));
  }

  // ReduceScatterHalvingDoubling leaves the result at the front of the input: a
  // copy to elsewhere would be ours, not its.
  bool resultInInput(const std::string& collective) override {
    return collective == "reduce_scatter";
  }

  std::string links() override { return transport_; }

 private:
  // Behind the blank; empty: all of them.
  static std::string algorithmOf(const std::string& mode) {
    const size_t blank = mode.find(' ');
    return blank == std::string::npos ? "" : mode.substr(blank + 1);
  }

  bool busy_;
  const std::string algorithm_;
  const std::string transport_;
  std::shared_ptr<gloo::Context> context_;
};

// Without an algorithm: with all of them.
std::vector<std::string> allModes() {
  std::vector<std::string> names;
  for (const std::string mode : {"default", "busy"}) {
    names.push_back(mode);
    for (const char* const algorithm :
         {"ring", "ring_chunked", "halving_doubling", "bcube", "new",
          "one_to_all", "all_to_all"}) {
      names.push_back(mode + " " + algorithm);
    }
  }
  return names;
}

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = measure::parse(argc, argv, allModes());
  try {
    Libgloo program(arguments);
    return measure::run(program, arguments);
  } catch (const std::exception& e) {
    fprintf(stderr, "rank %d: %s\n", arguments.rank, e.what());
    return 1;
  }
}
