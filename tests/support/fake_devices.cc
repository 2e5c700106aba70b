// Devices whose links are fake.
#include <arpa/inet.h>

#include <algorithm>
#include <cstring>
#include <new>

#include "gloo/common/error.h"
#include "tests/support/fake_link_parts.h"

GLOO_NAMESPACE_BEGIN
namespace test {

namespace {

class FakeRegion final : public Region {
 public:
  FakeRegion(char* ptr, size_t bytes, Rights rights)
      : key_(FakeHub::instance().add(ptr, bytes, rights)) {}
  ~FakeRegion() override { FakeHub::instance().remove(key_); }
  uint64_t remoteAddress() const override { return FakeHub::addressOf(key_); }
  uint32_t remoteKey() const override { return key_; }

 private:
  const uint32_t key_;
};

class FakePending final : public PendingLink {
 public:
  explicit FakePending(FakeFactory& factory)
      : factory_(factory), id_(FakeHub::instance().newId()) {}
  std::vector<char> blob() const override {
    std::vector<char> bytes(sizeof(id_));
    std::memcpy(bytes.data(), &id_, sizeof(id_));
    return bytes;
  }
  std::unique_ptr<Link> complete(UniqueFd, const Hello& theirs,
                                 LinkHandler& handler) override {
    uint64_t other = 0;
    if (theirs.blob.size() != sizeof(other)) {
      throw IoException("fake link: the hello has no id");
    }
    std::memcpy(&other, theirs.blob.data(), sizeof(other));
    return std::make_unique<FakeLink>(factory_,
                                      FakeHub::instance().wire(id_, other),
                                      id_ < other ? 0 : 1, handler);
  }

 private:
  FakeFactory& factory_;
  const uint64_t id_;
};

}  // namespace

std::unique_ptr<PendingLink> FakeFactory::prepare(int) {
  if (options.watch->unprepared.fetch_sub(1) > 0) {
    throw IoException("no link today");
  }
  if (options.watch->noMemoryToPrepare.fetch_sub(1) > 0) {
    throw std::bad_alloc();
  }
  return std::make_unique<FakePending>(*this);
}

std::unique_ptr<PendingLink> FakeFactory::answer(int peers, const Hello&) {
  if (options.watch->putOff.fetch_sub(1) > 0) {
    throw transport::base::NotNowException("not now");
  }
  return prepare(peers);
}

std::unique_ptr<Region> FakeFactory::registerMemory(void* ptr, size_t bytes,
                                                    MemoryKind, Rights rights) {
  if (!needsRegions(options.shape)) {
    return nullptr;
  }
  return std::make_unique<FakeRegion>(static_cast<char*>(ptr), bytes, rights);
}

bool FakeFactory::poll() {
  bell->silence();
  bool moved = false;
  const std::vector<FakeLink*> now(links.begin(), links.end());
  for (FakeLink* link : now) {
    if (links.count(link) != 0) {
      moved |= link->poll();
    }
  }
  if (arm()) {
    bell->ring();  // what was put off is still news to who will sleep now
  }
  return moved;
}

bool FakeFactory::arm() {
  return std::any_of(links.begin(), links.end(),
                     [](FakeLink* link) { return link->hasWork(); });
}

bool needsRegions(FakeShape shape) {
  return shape == FakeShape::kPush || shape == FakeShape::kPull;
}

std::string name(FakeShape shape) {
  switch (shape) {
    case FakeShape::kStream:
      return "fake_stream";
    case FakeShape::kPush:
      return "fake_push";
    case FakeShape::kMixed:
      return "fake_mixed";
    default:
      return "fake_pull";
  }
}

DeviceMaker fakeDevices(const FakeOptions& options) {
  auto count = std::make_shared<std::atomic<uint64_t>>(0);
  return [options, count] {
    FakeOptions own = options;
    own.seed += 1000 * ++*count;
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    DeviceInfo info;
    info.name = name(options.shape);
    info.lazy = options.lazy;
    return std::make_shared<Device>(
        std::move(info),
        SocketAddress(reinterpret_cast<sockaddr*>(&address), sizeof(address)),
        [own](ProgressDomain& domain, DeviceInfo&) {
          return std::make_unique<FakeFactory>(domain, own);
        });
  };
}

}  // namespace test
GLOO_NAMESPACE_END
