#include "transport/shm/loans.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"
#include "transport/shm/descriptor_message.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {
namespace {

// In each direction: a descriptor's message is not without cost for the peer.
constexpr size_t kMostLoans = 64;
constexpr char kLoan = 1;

}  // namespace

// ---- Ours

void Loans::lend(int socket, const char* data, size_t bytes) {
  auto& all = base::SharedAllocations::instance();
  const auto begin = reinterpret_cast<uintptr_t>(data);
  if (all.version() == 0) {
    return;
  }
  if (looked_.version != all.version() || !looked_.holds(begin, bytes)) {
    looked_ = all.find(begin);
  }
  if (looked_.id == 0 || !looked_.holds(begin, bytes) ||
      std::find(lent_.begin(), lent_.end(), looked_.id) != lent_.end()) {
    return;
  }
  if (lent_.size() >= kMostLoans && fullAt_ != looked_.version) {
    std::erase_if(lent_, [&](uint64_t id) { return all.byId(id) == nullptr; });
    fullAt_ = looked_.version;
  }
  if (lent_.size() >= kMostLoans) {
    return;
  }
  const auto allocation = all.byId(looked_.id);
  if (allocation != nullptr && allocation->descriptor() >= 0 &&
      sendNotice(socket, allocation->descriptor(),
                 {looked_.id, looked_.begin})) {
    lent_.push_back(looked_.id);
  }
}

bool Loans::sendNotice(int socket, int descriptor, const Notice& notice) {
  std::array<char, kNoticeBytes> bytes;
  bytes[0] = kLoan;
  std::memcpy(bytes.data() + 1, &notice, sizeof(notice));
  // All or nothing, for so few bytes on a Unix socket.
  return sendDescriptor(socket, bytes, descriptor) ==
         static_cast<ssize_t>(bytes.size());
}

// ---- The peer's

bool Loans::receive(int socket) {
  std::array<char, 64> bytes;
  base::UniqueFd descriptor;
  // The descriptor comes with the first byte of its notice: while another one
  // is incomplete, no more than the rest of that is read.
  const size_t most =
      noticeBytes_ == 0 ? bytes.size() : kNoticeBytes - noticeBytes_;
  const ssize_t n = receiveDescriptor(socket, {bytes.data(), most}, descriptor);
  if (descriptor) {
    memory_ = std::move(descriptor);
  }
  for (ssize_t i = 0; i < n; i++) {
    onByte(bytes[static_cast<size_t>(i)]);
  }
  return n > 0 || (n < 0 && base::mayTryAgain(errno));
}

void Loans::onByte(char byte) {
  if (noticeBytes_ == 0 && byte != kLoan) {
    return;  // a ring
  }
  notice_[noticeBytes_++] = byte;
  if (noticeBytes_ == kNoticeBytes) {
    noticeBytes_ = 0;
    Notice notice;
    std::memcpy(&notice, notice_.data() + 1, sizeof(notice));
    borrow(notice);
  }
}

void Loans::borrow(const Notice& notice) {
  base::UniqueFd memory = std::move(memory_);
  // A message may still be read out of one that is only withdrawn.
  std::erase_if(borrowed_, [](const Borrowed& borrowed) {
    return borrowed.allocation->freed();
  });
  if (!memory || borrowed_.size() >= kMostLoans) {
    return;
  }
  try {
    borrowed_.push_back(
        {notice.address, Allocation::borrow(std::move(memory), notice.id)});
  } catch (const Exception& e) {
    GLOO_INFO("shared memory of a peer is read by the kernel: ", e.what());
  }
}

const char* Loans::find(uint64_t remote, size_t bytes, State state) const {
  for (const Borrowed& borrowed : borrowed_) {
    const Allocation& allocation = *borrowed.allocation;
    const uint64_t offset = remote - borrowed.address;
    if (remote >= borrowed.address && offset <= allocation.bytes() &&
        bytes <= allocation.bytes() - offset &&
        (state == State::kThere ? !allocation.freed() : allocation.current())) {
      return allocation.data() + offset;
    }
  }
  return nullptr;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
