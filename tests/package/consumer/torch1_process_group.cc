// A process group in the form of PyTorch 1.13: its store, which knows neither
// shared ownership nor the later calls, wrapped by reference; a context for
// each device.
#include <memory>
#include <string>
#include <vector>

#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/rendezvous/store.h"
#include "gloo/transport/tcp/device.h"
#include "support/check.h"
#include "support/ranks.h"
#include "support/shared_table.h"
#include "support/torch_job.h"

namespace {

class TableStore : public ::gloo::rendezvous::Store {
 public:
  explicit TableStore(std::shared_ptr<SharedTable> table)
      : table_(std::move(table)) {}

  void set(const std::string& key, const std::vector<char>& value) override {
    table_->put(key, value);
  }

  std::vector<char> get(const std::string& key) override {
    return table_->at(key);
  }

  void wait(const std::vector<std::string>& keys) override {
    wait(keys, Store::kDefaultTimeout);
  }

  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const auto& key : keys) {
      table_->waitFor(key, timeout);
    }
  }

 private:
  std::shared_ptr<SharedTable> table_;
};

class ProcessGroup {
 public:
  struct Options {
    std::vector<std::shared_ptr<::gloo::transport::Device>> devices;
    std::chrono::milliseconds timeout = std::chrono::seconds(30);
  };

  ProcessGroup(std::shared_ptr<SharedTable> table, int rank, int size,
               Options options)
      : store_(new TableStore(std::move(table))) {
    for (size_t i = 0; i < options.devices.size(); i++) {
      auto context = std::make_shared<::gloo::rendezvous::Context>(rank, size);
      auto store = ::gloo::rendezvous::PrefixStore(std::to_string(i), *store_);
      context->setTimeout(options.timeout);
      context->connectFullMesh(store, options.devices[i]);
      contexts.push_back(std::move(context));
    }
  }

  torch_like::Contexts contexts;

 private:
  std::unique_ptr<::gloo::rendezvous::Store> store_;
};

std::shared_ptr<::gloo::transport::Device> deviceForHost(
    const std::string& hostname) {
  ::gloo::transport::tcp::attr attr;
  attr.hostname = hostname;
  return ::gloo::transport::tcp::CreateDevice(attr);
}

std::shared_ptr<::gloo::transport::Device> deviceForInterface(
    const std::string& interface) {
  ::gloo::transport::tcp::attr attr;
  attr.iface = interface;
  return ::gloo::transport::tcp::CreateDevice(attr);
}

void job(int rank, int size, const std::string& directory) {
  auto table = std::make_shared<SharedTable>(directory);
  ProcessGroup::Options options;
  options.devices.push_back(deviceForHost("localhost"));
  options.devices.push_back(deviceForInterface("lo"));
  ProcessGroup group(table, rank, size, options);
  torch_like::runCollectives(group.contexts, 0);
  torch_like::runMessages(group.contexts[0], 1000);
  torch_like::barrier(group.contexts[0], 1001);
  torch_like::runAbort(group.contexts[1], 1002);
  torch_like::barrier(group.contexts[0], 1003);
  torch_like::runTimeout(group.contexts[1], 1004);
  torch_like::barrier(group.contexts[0], 1005);
}

}  // namespace

int main() {
  bool good = true;
  for (const int size : {2, 3, 4}) {
    good = runProcesses(size, job) && good;
  }
  return good ? 0 : 1;
}
