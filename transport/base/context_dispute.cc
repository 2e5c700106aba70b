// Two ranks disagree about a collective. Most often their words say in what;
// where it is something that a word has only a hash of, the rank that notices
// tells the other its details before the context fails, and the other, which
// has its own, fails it: so all ranks are told both. Meanwhile the first takes
// no data, and waits for kDisputeLimit at most. In mapped memory both notice by
// themselves, and have no details before: who is told first waits for its own.
#include "gloo/common/string.h"
#include "transport/base/context.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::Cause;
using internal::CheckDetails;
using internal::Statement;

namespace {

constexpr std::chrono::milliseconds kDisputeLimit{300};

std::string describeConflict(uint64_t tag, const Statement& one,
                             const Statement& other, const CheckDetails* ofOne,
                             const CheckDetails* ofOther) {
  return MakeString(
      "ranks ", one.rank, " and ", other.rank,
      " disagree about a collective with tag ", tag & 0xffffffff, ": ",
      internal::describeDisagreement(one, other, ofOne, ofOther), " (rank ",
      one.rank, ": ", internal::describeCheck(one.word, ofOne), "; rank ",
      other.rank, ": ", internal::describeCheck(other.word, ofOther), ")");
}

}  // namespace

// All that both words say travels with the abort.
void Context::failMismatch(uint64_t tag, const Statement& one,
                           const Statement& other) {
  if (cause_ != nullptr || dispute_ != nullptr) {
    return;
  }
  const bool otherIsMine = other.rank == rank();
  const Statement& accused = otherIsMine ? one : other;
  const Statement& plaintiff = otherIsMine ? other : one;
  const std::string text = describeConflict(tag, one, other, nullptr, nullptr);
  if (!internal::nameTheField(one.word, other.word) &&
      dispute(accused.rank,
              {tag, plaintiff, accused.word,
               plaintiff.rank == rank()
                   ? agreement_.detailsOf(tag, plaintiff.word, accused.rank)
                   : nullptr},
              text)) {
    return;
  }
  failNew(Cause::Kind::kMismatch, accused.rank, text);
}

// False: it cannot be told.
bool Context::dispute(int peer, const Dispute& mine, const std::string& text) {
  Pair* const pair = closed_ ? nullptr : pairAt(peer);
  if (pair == nullptr || !pair->tell(mine)) {
    return false;
  }
  failAfterDispute(peer, text);
  return true;
}

// If nobody knows better until then.
void Context::failAfterDispute(int peer, const std::string& text) {
  if (dispute_ == nullptr && !closed_ && cause_ == nullptr) {
    dispute_ =
        std::make_shared<Cause>(causeOf(Cause::Kind::kMismatch, peer, text));
    device_->connector().wake(nonce_, kDisputeTimer, kDisputeLimit);
  }
}

void Context::contradict(const internal::Contradiction& what) {
  auto lock = this->lock();
  if (cause_ != nullptr) {
    return;
  }
  const uint64_t tag = internal::tagOf(what.slot);
  agreement().know(tag, what.mine.word, what.details);
  const std::string text = describeConflict(tag, what.mine, what.theirs,
                                            what.details.get(), nullptr);
  const int peer = what.theirs.rank;
  if (!dispute(peer, {tag, what.mine, what.theirs.word, what.details}, text)) {
    failNew(Cause::Kind::kMismatch, peer, text);
  }
}

void Context::onDispute(const Dispute& theirs) {
  const Statement mine{rank(), theirs.yours};
  const auto ours =
      agreement().detailsOf(theirs.tag, theirs.yours, theirs.said.rank);
  const std::string text = describeConflict(theirs.tag, theirs.said, mine,
                                            theirs.details.get(), ours.get());
  // A third rank has noticed: who said the other word knows its details.
  if (theirs.details == nullptr && ours != nullptr &&
      (dispute_ != nullptr ||
       dispute(theirs.said.rank, {theirs.tag, mine, theirs.said.word, ours},
               text))) {
    return;
  }
  // In mapped memory this rank will notice, and then know its own.
  if (theirs.details != nullptr && ours == nullptr && direct_ != nullptr) {
    failAfterDispute(theirs.said.rank, text);
    return;
  }
  failNew(Cause::Kind::kMismatch, theirs.said.rank, text);
}

// With what is known.
void Context::endDispute() {
  if (dispute_ != nullptr) {
    failLocked(dispute_);
  }
}

}  // namespace transport::base
GLOO_NAMESPACE_END
