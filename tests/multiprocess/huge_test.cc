// Messages of more bytes than 32 bits count, on the chosen transport. Their
// memory is a few megabytes, mapped again and again, so that it fits a guest.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <memory>
#include <stdexcept>

#include "gloo/transport/buffer.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/unbound_buffer.h"
#include "tests/support/bytes.h"
#include "tests/support/spawn.h"
#include "tests/support/transports.h"

GLOO_NAMESPACE_BEGIN
namespace test {
namespace {

constexpr size_t kBytes = (size_t{1} << 32) + 1;

// kBytes of memory that repeat after `period`, a multiple of a page's bytes.
class Repeated {
 public:
  explicit Repeated(size_t period) : bytes_(kBytes / period * period + period) {
    const int file = ::memfd_create("repeated", MFD_CLOEXEC);
    void* const place =
        ::mmap(nullptr, bytes_, PROT_NONE,
               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (file < 0 || place == MAP_FAILED ||
        ::ftruncate(file, static_cast<off_t>(period)) != 0) {
      throw std::runtime_error("no memory for a message of 4 GiB");
    }
    data_ = static_cast<char*>(place);
    for (size_t at = 0; at < bytes_; at += period) {
      if (::mmap(data_ + at, period, PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_FIXED, file, 0) == MAP_FAILED) {
        throw std::runtime_error("memory cannot be mapped again");
      }
    }
    ::close(file);
  }
  ~Repeated() { ::munmap(data_, bytes_); }
  Repeated(const Repeated&) = delete;
  Repeated& operator=(const Repeated&) = delete;
  char* data() const { return data_; }

 private:
  const size_t bytes_;
  char* data_ = nullptr;
};

// The periods differ: what arrives last in each place tells where it came from.
constexpr size_t kSent = 48 << 20;
constexpr size_t kReceived = 32 << 20;

// `exchange` sends kBytes of rank 0's memory to rank 1's.
void run(const std::function<void(transport::Context&, char*)>& exchange) {
  const TestTransport& transport = chosenTransport(false);
  SKIP_UNLESS_AVAILABLE(transport);
  spawn(Mode::kThreads, transport.make, 2,
        [&](const std::shared_ptr<transport::Context>& context) {
          context->setTimeout(std::chrono::minutes(20));
          const bool sends = context->rank == 0;
          const Repeated memory(sends ? kSent : kReceived);
          for (size_t i = 0; sends && i < kSent; i++) {
            memory.data()[i] = patternByte(1, i);
          }
          exchange(*context, memory.data());
          size_t wrong = 0;
          for (size_t i = kBytes - kReceived; !sends && i < kBytes; i++) {
            wrong += memory.data()[i] != patternByte(1, i % kSent) ? 1 : 0;
          }
          EXPECT_EQ(wrong, 0u);
        });
}

TEST(HugeTest, AMessageOfFourGiBAndOneByte) {
  run([](transport::Context& context, char* memory) {
    auto buffer = context.createUnboundBuffer(memory, kBytes);
    if (context.rank == 0) {
      buffer->send(1, 7);
      EXPECT_TRUE(buffer->waitSend());
    } else {
      buffer->recv(0, 7);
      EXPECT_TRUE(buffer->waitRecv());
    }
  });
}

TEST(HugeTest, ABoundBufferOfFourGiBAndOneByte) {
  run([](transport::Context& context, char* memory) {
    auto& pair = *context.getPair(1 - context.rank);
    if (context.rank == 0) {
      auto buffer = pair.createSendBuffer(7, memory, kBytes);
      buffer->send();
      buffer->waitSend();
    } else {
      auto buffer = pair.createRecvBuffer(7, memory, kBytes);
      buffer->waitRecv();
    }
  });
}

}  // namespace
}  // namespace test
GLOO_NAMESPACE_END
