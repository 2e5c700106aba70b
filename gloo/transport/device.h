// A way to reach other processes: a network interface, an RDMA device, ...
#pragma once

#include <memory>
#include <string>

#include "gloo/config.h"
#include "gloo/transport/context.h"
#include "gloo/transport/pair.h"

GLOO_NAMESPACE_BEGIN
namespace transport {

class Context;
class Pair;

// Made by a transport's CreateDevice; may serve any number of contexts.
// Thread-safe.
class GLOO_API Device : public std::enable_shared_from_this<Device> {
 public:
  virtual ~Device() = 0;

  // For people: transport, interface, address; once there are connections, how
  // many over which kind of link, of all contexts: "..., peers: 3 over shm, 0
  // over tcp".
  virtual std::string str() const = 0;

  // "0000:17:00.0", or empty where there is no PCI device.
  virtual const std::string& getPCIBusID() const = 0;

  // In Mb/s; 0 where the system does not say.
  virtual int getInterfaceSpeed() const { return 0; }

  // Whether memory of a GPU can be sent without a copy through the host.
  virtual bool hasGPUDirect() const { return false; }

  virtual std::shared_ptr<Context> createContext(int rank, int size) = 0;
};

}  // namespace transport
GLOO_NAMESPACE_END
