#include "tests/rendezvous/store_kinds.h"

#include "gloo/rendezvous/file_store.h"
#include "gloo/rendezvous/hash_store.h"
#include "gloo/rendezvous/prefix_store.h"
#include "gloo/rendezvous/tcp_store.h"
#include "tests/rendezvous/temporary_directory.h"
#if GLOO_USE_REDIS
#include "tests/rendezvous/redis_server.h"
#endif

namespace gloo_test {

namespace {

using namespace gloo::rendezvous;

class HashFixture : public StoreFixture {
 public:
  std::shared_ptr<Store> open() override { return store_; }
  bool sharedByProcesses() const override { return false; }

 private:
  std::shared_ptr<Store> store_ = std::make_shared<HashStore>();
};

class FileFixture : public StoreFixture {
 public:
  std::shared_ptr<Store> open() override {
    return std::make_shared<FileStore>(directory_.path());
  }

 private:
  TemporaryDirectory directory_;
};

class PrefixFixture : public FileFixture {
 public:
  std::shared_ptr<Store> open() override {
    return std::make_shared<PrefixStore>("some/prefix", FileFixture::open());
  }
};

class TcpFixture : public StoreFixture {
 public:
  std::shared_ptr<Store> open() override {
    return std::make_shared<TcpStore>("127.0.0.1", server_.port());
  }

 private:
  TcpStoreServer server_{"127.0.0.1", 0};
};

#if GLOO_USE_REDIS
template <bool kUnix>
class RedisFixture : public StoreFixture {
 public:
  std::shared_ptr<Store> open() override {
    return std::make_shared<RedisStore>(kUnix ? server_.unixSocket()
                                              : server_.tcp());
  }

 private:
  RedisServer server_{kUnix ? "" : "secret"};
};
#endif

template <typename Fixture>
StoreKind kind(const char* name) {
  return {name, [] { return std::make_unique<Fixture>(); }};
}

}  // namespace

std::vector<StoreKind> allStoreKinds() {
  return {
    kind<HashFixture>("hash"), kind<FileFixture>("file"),
        kind<PrefixFixture>("prefix"), kind<TcpFixture>("tcp"),
#if GLOO_USE_REDIS
        kind<RedisFixture<false>>("redis"),
        kind<RedisFixture<true>>("redisUnix"),
#endif
  };
}

}  // namespace gloo_test
