// A process group in the form of PyTorch 2.x: stores are shared, and the
// application's store has the later calls; devices may connect lazily; a
// second context is made over the first.
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

#ifndef GLOO_STORE_HAS_STORE_V2
#error "stores should have multi_get and its kin"
#endif

namespace {

class TableStore : public ::gloo::rendezvous::Store {
 public:
  explicit TableStore(std::shared_ptr<SharedTable> table, bool extended)
      : table_(std::move(table)), extended_(extended) {}

  void set(const std::string& key, const std::vector<char>& value) override {
    table_->put(key, value);
  }

  std::vector<char> get(const std::string& key) override {
    return table_->at(key);
  }

  void wait(const std::vector<std::string>& keys) override {
    wait(keys, ::gloo::rendezvous::Store::kDefaultTimeout);
  }

  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    for (const auto& key : keys) {
      table_->waitFor(key, timeout);
    }
  }

  bool has_v2_support() override { return extended_; }

  std::vector<std::vector<char>> multi_get(
      const std::vector<std::string>& keys) override {
    std::vector<std::vector<char>> values;
    for (const auto& key : keys) {
      values.push_back(table_->at(key));
    }
    return values;
  }

  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::vector<char>>& values) override {
    for (size_t i = 0; i < keys.size(); i++) {
      table_->put(keys[i], values[i]);
    }
  }

  void append(const std::string& key, const std::vector<char>& value) override {
    table_->extend(key, value);
  }

  int64_t add(const std::string& key, int64_t value) override {
    return table_->increase(key, value);
  }

 private:
  std::shared_ptr<SharedTable> table_;
  const bool extended_;
};

std::shared_ptr<::gloo::transport::Device> makeDevice(bool lazy) {
  ::gloo::transport::tcp::attr attr;
  attr.hostname = "127.0.0.1";
  return lazy ? ::gloo::transport::tcp::CreateLazyDevice(attr)
              : ::gloo::transport::tcp::CreateDevice(attr);
}

std::shared_ptr<::gloo::rendezvous::Context> connect(
    int rank, int size, const std::string& name, bool extended, bool lazy,
    const std::string& directory) {
  auto context = std::make_shared<::gloo::rendezvous::Context>(rank, size);
  std::shared_ptr<::gloo::rendezvous::Store> underlying =
      std::make_shared<TableStore>(std::make_shared<SharedTable>(directory),
                                   extended);
  auto store =
      std::make_shared<::gloo::rendezvous::PrefixStore>(name, underlying);
  context->setTimeout(std::chrono::seconds(30));
  auto device = makeDevice(lazy);
  context->connectFullMesh(store, device);
  CHECK(context->getDevice() == device);
  return context;
}

void job(int rank, int size, const std::string& directory) {
  torch_like::Contexts contexts = {
      connect(rank, size, "plain", false, false, directory),
      connect(rank, size, "extended", true, false, directory),
      connect(rank, size, "lazy", true, true, directory),
  };
  torch_like::runCollectives(contexts, 0);
  torch_like::runMessages(contexts[2], 1000);
  torch_like::barrier(contexts[0], 1001);
  torch_like::runAbort(contexts[1], 1002);
  torch_like::barrier(contexts[1], 1003);

  ::gloo::rendezvous::ContextFactory factory(contexts[0]);
  auto device = contexts[0]->getDevice();
  const auto second = factory.makeContext(device);
  torch_like::runCollectives({second}, 0);

  torch_like::runTimeout(contexts[1], 1004);
  torch_like::barrier(contexts[0], 1005);
}

}  // namespace

int main() {
  bool good = true;
  for (const int size : {2, 3, 4}) {
    good = runProcesses(size, job) && good;
  }
  return good ? 0 : 1;
}
