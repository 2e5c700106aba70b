#include "transport/shm/sharer.h"

#include <cstring>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "transport/base/topology.h"
#include "transport/shm/allocation.h"
#include "transport/shm/local.h"
#include "transport/shm/sealed_memory.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

uint64_t halfOf(const Secret& token) {
  uint64_t half = 0;
  std::memcpy(&half, token.data(), sizeof(half));
  return half;
}

// Which allocation, and whose loan.
Secret loanOf(uint64_t id, const Secret& token) {
  const uint64_t half = halfOf(token);
  Secret loan{};
  static_assert(sizeof(loan) == sizeof(id) + sizeof(half));
  std::memcpy(loan.data(), &id, sizeof(id));
  std::memcpy(loan.data() + sizeof(id), &half, sizeof(half));
  return loan;
}

std::shared_ptr<SealedMemory> makeFirst(
    const std::vector<base::MemorySharer::Plan>& plans, size_t* chosen) {
  for (*chosen = 0;; ++*chosen) {
    try {
      return std::make_shared<SealedMemory>(plans[*chosen].bytes);
    } catch (const IoException& e) {
      if (*chosen + 1 == plans.size()) {
        throw;
      }
      GLOO_INFO("trying less memory for all ranks: ", e.what());
    }
  }
}

}  // namespace

std::shared_ptr<base::SharedMemory> ShmSharer::give(
    const std::vector<Plan>& plans, const std::vector<Taker>& takers,
    size_t* chosen) {
  const auto memory = makeFirst(plans, chosen);
  // Pages that others have mapped are not moved.
  for (const Part& part : plans[*chosen].parts) {
    base::Topology::instance().place(memory->data() + part.begin, part.bytes,
                                     part.node);
  }
  for (const Taker& taker : takers) {
    handOver(dial(taker.name), taker.token, memory->descriptor());
    Local<SealedMemory>::instance().add(taker.token, memory);
  }
  memory->close();
  return memory;
}

Handover ShmSharer::taken(const Secret& token) {
  const auto lock = domain_.lock();
  return endpoint_.take(token);
}

void ShmSharer::refuse(const Name& token) noexcept {
  const auto lock = domain_.lock();
  endpoint_.drop(token);
}

// What was handed over is taken in any case, so that nothing is left there.
std::shared_ptr<base::SharedMemory> ShmSharer::take(size_t bytes,
                                                    const Name& token) {
  Handover handover = taken(token);
  auto local = Local<SealedMemory>::instance().find(token);
  if (local != nullptr && local->size() == bytes) {
    return local;
  }
  return std::make_shared<SealedMemory>(std::move(handover.memory), bytes);
}

void ShmSharer::lend(const base::SharedAllocation& allocation,
                     const std::vector<Taker>& takers) {
  const int descriptor = allocation.descriptor();
  if (descriptor < 0) {
    GLOO_THROW_IO_EXCEPTION("it belongs to the parent of this process");
  }
  for (const Taker& taker : takers) {
    handOver(dial(taker.name), loanOf(allocation.id(), taker.token),
             descriptor);
  }
}

std::shared_ptr<const base::SharedAllocation> ShmSharer::borrow(
    uint64_t id, const Name& token) {
  return Allocation::borrow(taken(loanOf(id, token)).memory, id);
}

void ShmSharer::refuseLoan(uint64_t id, const Name& token) noexcept {
  refuse(loanOf(id, token));
}

void ShmSharer::refuseLoans(const Name& token) noexcept {
  const auto lock = domain_.lock();
  endpoint_.dropAllOf(halfOf(token));
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
