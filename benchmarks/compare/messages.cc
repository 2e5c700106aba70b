// Messages between two ranks, through bound and unbound buffers: how many bytes
// a stream of them moves, and how long one of 8 bytes takes. To be held against
// perftest's programs, which do the same with bare verbs.
//
// Prints an object per line as measure.h does. "stream": time per message, from
// the first send until the receiver's word that it has the last one. "latency":
// half the time of there and back, the receive of each round posted before its
// send.
//
// --sizes: kLatencyBytes is the latency's, the others are streams'. As with
// perftest's programs, a latency is measured in a process that has not streamed
// yet (in an emulated guest one that has may take a sixth longer for a while,
// with the same instructions), and streams have memory that begins with a page
// (Soft-RoCE copies page by page) and holds few of them.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <stdexcept>
#include <vector>

#include "benchmarks/support/device.h"
#include "benchmarks/support/links.h"
#include "gloo/common/aligned_allocator.h"
#include "gloo/rendezvous/file_store.h"
#include "gloo/transport/buffer.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/unbound_buffer.h"
#include "measure.h"
#include "ticks.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr size_t kLatencyBytes = 8;
constexpr size_t kBatchBytes = size_t{4} << 20;  // between two readings
constexpr size_t kMaxWindow = 16;
constexpr size_t kPage = 4096;
constexpr size_t kMinBatches = 3;

double microseconds(Clock::duration duration) {
  return std::chrono::duration<double, std::micro>(duration).count();
}

// One direction of messages of one size, the last `window` of which lie beside
// each other. start() is called for what may be under way at once, finish() for
// each of them in order.
class Channel {
 public:
  virtual ~Channel() = default;
  virtual void startSend(size_t index) = 0;
  virtual void finishSend() = 0;
  virtual void startRecv(size_t index) = 0;
  virtual void finishRecv() = 0;
};

class Bound : public Channel {
 public:
  Bound(gloo::transport::Pair& pair, int slot, char* data, size_t bytes,
        size_t window, bool sends)
      : bytes_(bytes),
        window_(window),
        buffer_(sends ? pair.createSendBuffer(slot, data, bytes * window)
                      : pair.createRecvBuffer(slot, data, bytes * window)) {}
  void startSend(size_t index) override {
    const size_t at = index % window_ * bytes_;
    buffer_->send(at, bytes_, at);
  }
  void finishSend() override { buffer_->waitSend(); }
  void startRecv(size_t) override {}
  void finishRecv() override { buffer_->waitRecv(); }

 private:
  const size_t bytes_;
  const size_t window_;
  const std::unique_ptr<gloo::transport::Buffer> buffer_;
};

class Unbound : public Channel {
 public:
  Unbound(gloo::Context& context, int peer, int slot, char* data, size_t bytes,
          size_t window)
      : peer_(peer),
        slot_(static_cast<uint64_t>(slot)),
        bytes_(bytes),
        window_(window),
        buffer_(context.createUnboundBuffer(data, bytes * window)) {}
  void startSend(size_t index) override {
    buffer_->send(peer_, slot_, index % window_ * bytes_, bytes_);
  }
  void finishSend() override { buffer_->waitSend(); }
  void startRecv(size_t index) override {
    buffer_->recv(peer_, slot_, index % window_ * bytes_, bytes_);
  }
  void finishRecv() override { buffer_->waitRecv(); }

 private:
  const int peer_;
  const uint64_t slot_;
  const size_t bytes_;
  const size_t window_;
  const std::unique_ptr<gloo::transport::UnboundBuffer> buffer_;
};

class Messages {
 public:
  explicit Messages(const measure::Arguments& arguments)
      : arguments_(arguments),
        sends_(arguments.rank == 0),
        peer_(1 - arguments.rank),
        device_(support::makeDevice(arguments.transport, arguments.device)),
        context_(std::make_shared<support::MeasuredContext>(arguments.rank,
                                                            arguments.size)) {
    if (arguments.size != 2) {
      throw std::runtime_error("messages are measured between 2 ranks");
    }
    auto store =
        std::make_shared<gloo::rendezvous::FileStore>(arguments.directory);
    context_->connectFullMesh(store, device_);
    if (arguments.mode == "busy") {
      context_->getPair(peer_)->setSync(true, true);
    }
  }

  void all() {
    auto streams = arguments_.sizes;
    if (std::erase(streams, kLatencyBytes) > 0) {
      for (const bool bound : {true, false}) {
        latency(bound);
      }
    }
    for (const bool bound : {true, false}) {
      for (const size_t bytes : streams) {
        stream(bound, bytes);
      }
    }
  }

 private:
  std::unique_ptr<Channel> channel(bool bound, bool sends, char* data,
                                   size_t bytes, size_t window) {
    const int slot = nextSlot_++;
    if (!bound) {
      return std::make_unique<Unbound>(*context_, peer_, slot, data, bytes,
                                       window);
    }
    return std::make_unique<Bound>(*context_->getPair(peer_), slot, data, bytes,
                                   window, sends);
  }

  // Two of 8 bytes: rank 0 sends on the first, rank 1 on the second.
  struct Both {
    std::unique_ptr<Channel> out;
    std::unique_ptr<Channel> in;
  };
  Both both(bool bound, char* out, char* in) {
    Both result;
    for (const bool forward : {true, false}) {
      const bool mine = forward == sends_;
      (mine ? result.out : result.in) =
          channel(bound, mine, mine ? out : in, kLatencyBytes, 1);
    }
    return result;
  }

  void stream(bool bound, size_t bytes) {
    const size_t window =
        std::clamp(kBatchBytes / bytes, size_t{2}, kMaxWindow);
    const size_t count = std::max(kBatchBytes / bytes, size_t{2});
    std::vector<char, gloo::aligned_allocator<char, kPage>> data(bytes *
                                                                 window);
    for (size_t i = 0; sends_ && i < data.size(); i++) {
      data[i] = byteAt(i);
    }
    // Says whether there is another batch, and that the last one is there.
    char word[2][kLatencyBytes] = {};
    const Both words = both(false, word[0], word[1]);
    const auto channel =
        this->channel(bound, sends_, data.data(), bytes, window);
    std::vector<double> times;
    const auto start = Clock::now();
    for (bool more = true; more;) {
      more = sends_ ? goOn(words, word[0], times, start) : hear(words, word[1]);
      if (!more) {
        break;
      }
      const auto before = Clock::now();
      batch(*channel, count, window);
      if (sends_) {
        hear(words, word[1]);
        times.push_back(microseconds(Clock::now() - before) /
                        static_cast<double>(count));
      } else {
        say(words, word[0], true);
      }
    }
    for (size_t i = 0; i < data.size(); i++) {
      if (data[i] != byteAt(i)) {
        throw std::runtime_error("wrong byte " + std::to_string(i) +
                                 " in a message of " + std::to_string(bytes));
      }
    }
    report("stream", bound, bytes, times);
  }

  static char byteAt(size_t i) { return static_cast<char>(i * 7 + i / 4093); }

  bool goOn(const Both& words, char* word, const std::vector<double>& times,
            Clock::time_point start) {
    // The first batch warms up.
    const bool more =
        times.size() <= kMinBatches ||
        microseconds(Clock::now() - start) < arguments_.budget * 1e6;
    say(words, word, more);
    return more;
  }

  static void say(const Both& words, char* word, bool yes) {
    word[0] = yes ? 1 : 0;
    words.out->startSend(0);
    words.out->finishSend();
  }

  static bool hear(const Both& words, const char* word) {
    words.in->startRecv(0);
    words.in->finishRecv();
    return word[0] != 0;
  }

  void batch(Channel& channel, size_t count, size_t window) const {
    for (size_t i = 0; i < count + window; i++) {
      if (i >= window && sends_) {
        channel.finishSend();
      } else if (i >= window) {
        channel.finishRecv();
      }
      if (i < count && sends_) {
        channel.startSend(i);
      } else if (i < count) {
        channel.startRecv(i);
      }
    }
  }

  void latency(bool bound) {
    constexpr size_t kRounds = 2000;
    char memory[2][kLatencyBytes] = {};
    const Both words = both(bound, memory[0], memory[1]);
    std::vector<double> times;
    times.reserve(kRounds);
    const measure::TickRate rate;
    uint64_t before = measure::ticks();
    words.in->startRecv(0);
    for (uint64_t i = 1; i <= kRounds; i++) {
      if (sends_) {
        std::memcpy(memory[0], &i, sizeof(i));
        words.out->startSend(0);
        words.out->finishSend();
        words.in->finishRecv();
        if (std::memcmp(memory[0], memory[1], sizeof(i)) != 0) {
          throw std::runtime_error("another message came back");
        }
      } else {
        words.in->finishRecv();
        std::memcpy(memory[0], memory[1], sizeof(i));
      }
      if (i < kRounds) {
        words.in->startRecv(0);
      }
      if (!sends_) {
        words.out->startSend(0);
        words.out->finishSend();
      }
      const uint64_t now = measure::ticks();
      times.push_back(static_cast<double>(now - before) / 2);
      before = now;
    }
    const double perTick = rate.microseconds();
    for (double& time : times) {
      time *= perTick;
    }
    report("latency", bound, kLatencyBytes, times);
  }

  // Without the first one.
  void report(const char* what, bool bound, size_t bytes,
              std::vector<double> times) {
    if (!sends_) {
      return;
    }
    times.erase(times.begin());
    std::sort(times.begin(), times.end());
    std::printf(
        "{\"mode\": \"%s %s\", \"collective\": \"%s\", \"ranks\": 2, "
        "\"bytes\": %zu, \"p50_us\": %.3f, \"min_us\": %.3f, "
        "\"iterations\": %zu, \"links\": \"%s\"}\n",
        bound ? "bound" : "unbound",
        arguments_.mode.empty() ? "default" : arguments_.mode.c_str(), what,
        bytes, times[times.size() / 2], times[0], times.size(),
        support::join(context_->links(), '+').c_str());
    std::fflush(stdout);
  }

  const measure::Arguments& arguments_;
  const bool sends_;
  const int peer_;
  int nextSlot_ = 0;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<support::MeasuredContext> context_;
};

}  // namespace

int main(int argc, char** argv) {
  const auto arguments = measure::parse(argc, argv, {"default", "busy"});
  try {
    Messages(arguments).all();
    measure::flushOutput();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "rank %d: %s\n", arguments.rank, e.what());
    return 1;
  }
  return 0;
}
