// A process is killed while it connects, or as soon as it is connected: every
// other rank says who it was, and ends well.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <thread>

#include "gloo/common/string.h"
#include "gloo/rendezvous/file_store.h"
#include "tests/multiprocess/job.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr int kVictim = 2;

// When something happened to each rank of a job: of memory that forked
// processes share.
class Moments {
 public:
  explicit Moments(size_t count)
      : bytes_(count * sizeof(Moment)),
        moments_(
            static_cast<Moment*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE,
                                        MAP_SHARED | MAP_ANONYMOUS, -1, 0))) {}
  ~Moments() { ::munmap(moments_, bytes_); }
  Moments(const Moments&) = delete;
  Moments& operator=(const Moments&) = delete;

  void note(int rank) const { moments_[rank] = now().count(); }
  bool noted(int rank) const { return moments_[rank] != 0; }
  std::chrono::nanoseconds at(int rank) const {
    return std::chrono::nanoseconds(moments_[rank]);
  }

 private:
  using Moment = std::atomic<int64_t>;

  const size_t bytes_;
  Moment* const moments_;
};

// Kills its process as soon as its address is public, and notes when.
class HaltingStore : public rendezvous::Store {
 public:
  HaltingStore(std::shared_ptr<rendezvous::Store> store, const Moments& moments)
      : store_(std::move(store)), moments_(moments) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    store_->set(key, data);
    published_ = true;
  }
  void multi_set(const std::vector<std::string>& keys,
                 const std::vector<std::vector<char>>& values) override {
    store_->multi_set(keys, values);
    published_ = true;
  }
  void append(const std::string& key, const std::vector<char>& value) override {
    store_->append(key, value);
    published_ = true;
  }
  int64_t add(const std::string& key, int64_t value) override {
    return store_->add(key, value);
  }
  std::vector<char> get(const std::string& key) override {
    halt();
    return store_->get(key);
  }
  std::vector<std::vector<char>> multi_get(
      const std::vector<std::string>& keys) override {
    halt();
    return store_->multi_get(keys);
  }
  void wait(const std::vector<std::string>& keys) override {
    halt();
    store_->wait(keys);
  }
  void wait(const std::vector<std::string>& keys,
            const std::chrono::milliseconds& timeout) override {
    halt();
    store_->wait(keys, timeout);
  }
  bool has_v2_support() override { return store_->has_v2_support(); }

 private:
  void halt() const {
    if (published_) {
      moments_.note(kVictim);
      ::kill(::getpid(), SIGKILL);
    }
  }

  std::shared_ptr<rendezvous::Store> store_;
  const Moments& moments_;
  bool published_ = false;
};

TEST(KilledTest, WhileConnecting) {
  Job::Options options;
  const Moments moments(static_cast<size_t>(options.size));
  options.wrap = [&](int rank, std::shared_ptr<rendezvous::Store> store)
      -> std::shared_ptr<rendezvous::Store> {
    if (rank == kVictim) {
      return std::make_shared<HaltingStore>(store, moments);
    }
    moments.note(rank);
    return store;
  };
  Job job(options, [](Child&, const std::shared_ptr<Context>&) {});
  ASSERT_TRUE(
      job.group().join(kVictim, std::chrono::seconds(20)).killedBy(SIGKILL));
  for (int rank = 0; rank < 2; rank++) {
    const Failure failure = job.failure(rank, std::chrono::seconds(40));
    EXPECT_NE(failure.type, "none");
    EXPECT_NE(failure.type, "other") << failure.text;
    EXPECT_TRUE(failure.names("rank 2")) << failure.text;
    // Since the death, or since it began itself, if that was later.
    EXPECT_LT(failure.at - std::max(moments.at(kVictim), moments.at(rank)),
              std::chrono::seconds(1) * slowness())
        << failure.text;
  }
  job.group().joinAll();
}

// Dies a moment after its address is public.
class DyingStore : public rendezvous::FileStore {
 public:
  DyingStore(const std::string& path, std::chrono::microseconds left,
             const Moments& moments)
      : FileStore(path), left_(left), moments_(moments) {}
  void set(const std::string& key, const std::vector<char>& data) override {
    FileStore::set(key, data);
    std::thread([left = left_, &moments = moments_] {
      std::this_thread::sleep_for(left);
      moments.note(kVictim);
      ::kill(::getpid(), SIGKILL);
    }).detach();
  }

 private:
  const std::chrono::microseconds left_;
  const Moments& moments_;
};

constexpr int kSize = 6;

// Who begins after others have given up may have to wait for a while
// (docs/failures.md): so nobody dies before all have begun.
void awaitOthers(int rank, const Moments& begun) {
  begun.note(rank);
  for (int other = 0; other < kSize && rank == kVictim; other++) {
    while (!begun.noted(other)) {
      ::usleep(100);
    }
  }
}

// The victim dies by itself. Whoever is connected, is connecting, or has given
// up because of another one's news: all name it, though they wait for others.
void expectDeathOnConnecting(Job::Options options, const Moments& deaths) {
  options.size = kSize;
  Job job(options, [](Child&, const std::shared_ptr<Context>& context) {
    recvFrom(*context,
             (context->rank + 3) % kSize == kVictim
                 ? (context->rank + 1) % kSize
                 : (context->rank + 3) % kSize,
             1, 1);
  });
  job.group().tellAll("go");  // at once, whoever fails later than others
  for (int rank = 0; rank < kSize; rank++) {
    if (rank != kVictim) {
      const Failure failure = job.failureWherever(rank);
      EXPECT_TRUE(failure.type == "PeerLost" || failure.type == "Io")
          << failure.type << failure.text;
      EXPECT_TRUE(failure.names(MakeString("rank ", kVictim))) << failure.text;
      EXPECT_LT(failure.at - std::max(deaths.at(kVictim), failure.began),
                std::chrono::seconds(1) * slowness())
          << failure.text;
    }
  }
  const Outcome outcome = job.group().join(kVictim, std::chrono::seconds(5));
  EXPECT_TRUE(outcome.killedBy(SIGKILL)) << outcome.str();
  job.group().joinAll(std::chrono::seconds(20));
}

class KilledOnConnectingTest : public ::testing::TestWithParam<bool> {};

TEST_P(KilledOnConnectingTest, AtAnyMoment) {
  for (int round = 0; round < 10 && !HasFailure(); round++) {
    SCOPED_TRACE(round);
    ScratchDirectory directory;
    const Moments begun(kSize);
    const Moments deaths(kSize);
    const auto left = std::chrono::microseconds(round * 300);
    Job::Options options;
    options.lazy = GetParam();
    options.wrap = [&](int rank, std::shared_ptr<rendezvous::Store>)
        -> std::shared_ptr<rendezvous::Store> {
      awaitOthers(rank, begun);
      if (rank == kVictim) {
        return std::make_shared<DyingStore>(directory.path(), left, deaths);
      }
      return std::make_shared<rendezvous::FileStore>(directory.path());
    };
    expectDeathOnConnecting(options, deaths);
  }
}

TEST_P(KilledOnConnectingTest, AsSoonAsItIsConnected) {
  for (int round = 0; round < 10 && !HasFailure(); round++) {
    const Moments begun(kSize);
    const Moments deaths(kSize);
    Job::Options options;
    options.lazy = GetParam();
    options.wrap = [&](int rank, std::shared_ptr<rendezvous::Store> store) {
      awaitOthers(rank, begun);
      return store;
    };
    options.onConnected = [&](int rank) {
      if (rank == kVictim) {
        deaths.note(kVictim);
        ::kill(::getpid(), SIGKILL);
      }
    };
    expectDeathOnConnecting(options, deaths);
  }
}

INSTANTIATE_TEST_SUITE_P(, KilledOnConnectingTest, ::testing::Bool(),
                         [](const auto& info) {
                           return info.param ? "lazy" : "eager";
                         });

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
