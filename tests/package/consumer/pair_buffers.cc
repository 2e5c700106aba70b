// Programs that use pairs and bound buffers by hand: the ranks are threads
// over a HashStore, or connect their pairs themselves, without a store.
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "gloo/common/logging.h"
#include "gloo/rendezvous/context.h"
#include "gloo/rendezvous/hash_store.h"
#include "gloo/transport/buffer.h"
#include "gloo/transport/context.h"
#include "gloo/transport/device.h"
#include "gloo/transport/pair.h"
#include "gloo/transport/tcp/device.h"
#include "support/check.h"
#include "support/ranks.h"

namespace {

using DevicePtr = std::shared_ptr<gloo::transport::Device>;

DevicePtr makeDevice() {
  gloo::transport::tcp::attr attr;
  attr.hostname = "localhost";
  return gloo::transport::tcp::CreateDevice(attr);
}

std::shared_ptr<gloo::rendezvous::Context> connect(
    gloo::rendezvous::HashStore& store, int rank, int size) {
  auto device = makeDevice();
  auto context = std::make_shared<gloo::rendezvous::Context>(rank, size);
  context->connectFullMesh(store, device);
  return context;
}

// Values go round the ring: each step through one bound buffer per side, with
// a notification back, so that a value is not overwritten before it was read.
void passAround(const std::shared_ptr<gloo::Context>& context) {
  const int rank = context->rank;
  const int size = context->size;
  const int slot = context->nextSlot(2);
  auto& left = context->getPair((rank + size - 1) % size);
  auto& right = context->getPair((rank + 1) % size);
  std::vector<int> out(1000);
  std::vector<int> in(1000);
  char note = 0;
  auto send = right->createSendBuffer(slot, out.data(), out.size() * 4);
  auto recv = left->createRecvBuffer(slot, in.data(), in.size() * 4);
  auto noteOut = left->createSendBuffer(slot + 1, &note, 1);
  auto noteIn = right->createRecvBuffer(slot + 1, &note, 1);
  out.assign(out.size(), rank);
  for (int step = 1; step <= 2 * size; step++) {
    send->send();
    recv->waitRecv();
    CHECK(in == std::vector<int>(in.size(), (rank + 2 * size - step) % size));
    send->waitSend();
    out = in;
    noteOut->send();
    noteIn->waitRecv();
    noteOut->waitSend();
  }
}

// Several parts in flight at once, each to its own place.
void writeParts(const std::shared_ptr<gloo::Context>& context) {
  constexpr size_t kParts = 16;
  constexpr size_t kPartBytes = 3000;
  const int slot = context->nextSlot();
  const int peer = 1 - context->rank;
  std::vector<char> mine(kParts * kPartBytes);
  std::vector<char> theirs(kParts * kPartBytes, -1);
  for (size_t i = 0; i < mine.size(); i++) {
    mine[i] = static_cast<char>(i / kPartBytes + 20 * context->rank);
  }
  auto& pair = context->getPair(peer);
  auto recv = pair->createRecvBuffer(slot, theirs.data(), theirs.size());
  auto send = pair->createSendBuffer(slot, mine.data(), mine.size());
  for (size_t i = 0; i < kParts; i++) {
    // The last part first, mirrored.
    send->send(i * kPartBytes, kPartBytes, (kParts - 1 - i) * kPartBytes);
  }
  for (size_t i = 0; i < kParts; i++) {
    recv->waitRecv();
    send->waitSend();
  }
  for (size_t i = 0; i < theirs.size(); i++) {
    const size_t part = kParts - 1 - i / kPartBytes;
    CHECK(theirs[i] == static_cast<char>(part + 20 * peer));
  }
}

// Ping-pong in the synchronous mode that benchmarks switch on.
void pingPong(const std::shared_ptr<gloo::Context>& context, bool busyPoll) {
  const int slot = context->nextSlot();
  auto& pair = context->getPair(1 - context->rank);
  pair->setSync(true, busyPoll);
  int out = 0;
  int in = -1;
  auto send = pair->createSendBuffer(slot, &out, sizeof(out));
  auto recv = pair->createRecvBuffer(slot, &in, sizeof(in));
  for (int i = 0; i < 200; i++) {
    out = i;
    if (context->rank == 0) {
      send->send();
      send->waitSend();
      recv->waitRecv();
      CHECK(in == i);
    } else {
      recv->waitRecv();
      CHECK(in == i);  // rank 0 writes the next value once it has the answer
      send->send();
      send->waitSend();
    }
  }
}

void refuseBadRange(const std::shared_ptr<gloo::Context>& context) {
  int value = 0;
  auto send =
      context->getPair(1 - context->rank)
          ->createSendBuffer(context->nextSlot(), &value, sizeof(value));
  bool refused = false;
  try {
    send->send(0, sizeof(value) + 1);
  } catch (const gloo::EnforceNotMet&) {
    refused = true;
  }
  CHECK(refused);
}

// Two contexts of one process whose pairs are connected by their addresses.
void connectByHand() {
  auto device = makeDevice();
  auto first = device->createContext(0, 2);
  auto second = device->createContext(1, 2);
  first->setTimeout(std::chrono::seconds(10));
  second->setTimeout(std::chrono::seconds(10));
  auto& there = first->createPair(1);
  auto& back = second->createPair(0);
  const std::vector<char> thereAddress = there->address().bytes();
  const std::vector<char> backAddress = back->address().bytes();
  std::thread other([&] { back->connect(thereAddress); });
  there->connect(backAddress);
  other.join();
  double out = 1.25;
  double in = 0;
  auto send = there->createSendBuffer(5, &out, sizeof(out));
  auto recv = back->createRecvBuffer(5, &in, sizeof(in));
  send->send();
  recv->waitRecv();
  send->waitSend();
  CHECK(in == 1.25);
}

}  // namespace

int main() {
  bool good = true;
  for (const int size : {2, 5}) {
    gloo::rendezvous::HashStore store;
    good = runThreads(size,
                      [&](int rank, int ranks, const std::string&) {
                        const auto context = connect(store, rank, ranks);
                        passAround(context);
                        passAround(context);
                        leaveTogether(store, rank, ranks);
                      }) &&
           good;
  }
  gloo::rendezvous::HashStore stores[2];
  for (const bool busyPoll : {false, true}) {
    good = runThreads(2,
                      [&](int rank, int size, const std::string&) {
                        const auto context =
                            connect(stores[busyPoll], rank, size);
                        writeParts(context);
                        refuseBadRange(context);
                        pingPong(context, busyPoll);
                        leaveTogether(stores[busyPoll], rank, size);
                      }) &&
           good;
  }
  good = runThreads(1, [](int, int, const std::string&) { connectByHand(); }) &&
         good;
  return good ? 0 : 1;
}
