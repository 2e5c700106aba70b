#include "transport/base/agreement.h"

#include <algorithm>
#include <new>

GLOO_NAMESPACE_BEGIN
namespace transport::base {

using internal::checksAgree;
using internal::isOfPart;
using internal::partOf;
using internal::sequenceOf;
using internal::sharedPart;
using internal::withPart;
using internal::withSequence;

namespace {

constexpr uint64_t kCycle = internal::CheckFields::kMaxSequence;
constexpr size_t kEntries = 2 * Agreement::kRemembered;
constexpr size_t kEarly = 16;  // for the words of a few peers that are ahead

// Of the operation with that number; 0: none.
uint16_t sequenceFor(uint64_t number) {
  return number == 0 ? uint16_t{0}
                     : static_cast<uint16_t>((number - 1) % kCycle + 1);
}

// The first number from `from` on that a sequence stands for.
uint64_t numberFrom(uint64_t from, uint16_t sequence) {
  return from + (sequence + kCycle - from % kCycle) % kCycle;
}

// The number that a sequence stands for on a rank that has begun `begun`
// operations: one of the kRemembered latest, or one that is ahead. 0: none.
uint64_t numberFor(uint16_t sequence, uint64_t begun) {
  const uint64_t number = numberFrom(begun, sequence);
  const uint64_t behind = begun + kCycle - number;
  return behind < Agreement::kRemembered && behind < begun ? begun - behind
                                                           : number;
}

}  // namespace

Agreement::Tag& Agreement::at(uint64_t tag) {
  if (const auto found = tags_.find(tag); found != tags_.end()) {
    return found->second;
  }
  Tag& fresh = renew(tag);
  std::optional<uint64_t> begun;
  try {
    begun = counts_[countsOf(tag)].take(tag);
  } catch (const std::bad_alloc&) {
    early_ -= fresh.early.size();
    wide_ -= fresh.entries.size() - kEntries;
    tags_.erase(tag);
    throw;
  }
  fresh.tag = tag;
  fresh.counted = begun.has_value();
  fresh.begun = fresh.latest = begun.value_or(0);
  fresh.sequence = sequenceFor(fresh.begun);
  std::fill(fresh.entries.begin(), fresh.entries.end(), Entry{});
  fresh.farAhead.clear();
  early_ -= fresh.early.size();
  fresh.early.clear();
  fresh.details.fill(nullptr);
  byUse_.pushBack(&fresh);
  return fresh;
}

// A tag that nobody has mentioned for long, and that no word waits for, gives
// way. Its place in the table is used again. It is to be added to byUse_; where
// there is no memory, nothing has changed.
Agreement::Tag& Agreement::renew(uint64_t tag) {
  Tag* const oldest = byUse_.front();
  if (tags_.size() < kTags || oldest->latest > oldest->begun) {
    std::vector<Entry> entries(kEntries);
    Tag& added = tags_[tag];
    added.entries = std::move(entries);
    if (oldest != nullptr && tags_.size() > kTags) {
      byUse_.remove(oldest);
      byUse_.pushBack(oldest);
    }
    return added;
  }
  if (oldest->counted) {
    counts_[countsOf(oldest->tag)].put(oldest->tag, oldest->begun);
  }
  byUse_.remove(oldest);
  auto node = tags_.extract(oldest->tag);
  node.key() = tag;
  return tags_.insert(std::move(node)).position->second;
}

// How many entries there must be for this number to have a place.
size_t Agreement::sizeFor(const Tag& tag, uint64_t number) {
  size_t size = tag.entries.size();
  while (!fitsIn(size, tag, number)) {
    size *= 2;
  }
  return size;
}

bool Agreement::fits(const Tag& tag, uint64_t number) const {
  return wide_ + sizeFor(tag, number) - tag.entries.size() <= kMostWide;
}

// So that the number has a place.
[[gnu::noinline]] void Agreement::widen(Tag& tag, uint64_t number) {
  const size_t size = sizeFor(tag, number);
  std::vector<Entry> wider(size);
  for (const Entry& old : tag.entries) {
    if (old.number != 0) {
      wider[old.number % size] = old;
    }
  }
  wide_ += size - tag.entries.size();
  tag.entries = std::move(wider);
}

uint64_t Agreement::begin(uint64_t tag, uint64_t word,
                          std::optional<Conflict>* conflict,
                          const internal::CheckDetailsPtr& details) {
  Tag* const last = byUse_.back();
  Tag& t = last != nullptr && last->tag == tag ? *last : at(tag);
  if (&t != last) {
    byUse_.remove(&t);
    byUse_.pushBack(&t);
  }
  if (t.counted && t.early.capacity() == 0 && internal::isByPart(word)) {
    t.early.reserve(kEarly);
  }
  const uint64_t number = ++t.begun;
  t.sequence = internal::sequenceAfter(t.sequence);
  t.latest = std::max(t.latest, number);
  if (!t.counted) {
    return word;
  }
  const Statement mine{rank_, withSequence(word, t.sequence)};
  Entry& place = entry(t, number);
  if (place.number == number && !checksAgree(mine.word, place.said.word)) {
    *conflict = {mine, place.said};
  }
  place = {number, mine};
  if (!t.early.empty() && !*conflict) {
    *conflict = takeEarly(t, number, mine.word, details);
  }
  internal::CheckDetailsPtr& known = t.details[number % kRemembered];
  if (known != details) {
    known = details;
  }
  lastTag_ = tag;
  lastWord_ = mine.word;
  if (lastDetails_ != details) {
    lastDetails_ = details;
  }
  return mine.word;
}

// Those that nobody has said anything of, and that are forgotten after it, are
// only counted.
void Agreement::beginAgain(uint64_t tag, uint64_t word, uint64_t times,
                           std::optional<Conflict>* conflict) {
  while (times > 0 && !*conflict) {
    Tag& t = at(tag);
    if (times > kRemembered && t.latest <= t.begun) {
      t.begun += times - kRemembered;
      t.latest = t.begun;
      t.sequence = sequenceFor(t.begun);
      times = kRemembered;
    }
    begin(tag, word, conflict);
    times--;
  }
}

bool Agreement::isAhead(uint64_t tag) const {
  const auto found = tags_.find(tag);
  return found != tags_.end() && found->second.latest > found->second.begun;
}

// Leaves all as it is: it is another rank that asks.
std::optional<uint64_t> Agreement::begun(uint64_t tag) const {
  const auto found = tags_.find(tag);
  if (found == tags_.end()) {
    return counts_[countsOf(tag)].find(tag);
  }
  return found->second.counted ? std::optional(found->second.begun)
                               : std::nullopt;
}

internal::CheckDetailsPtr Agreement::detailsOf(uint64_t tag, uint64_t word,
                                               int peer) const {
  const auto found = tags_.find(tag);
  if (found == tags_.end()) {
    return nullptr;
  }
  const uint64_t number = numberOf(found->second, sharedPart(word));
  const internal::CheckDetailsPtr details =
      number == 0 ? nullptr : found->second.details[number % kRemembered];
  return details != nullptr && isOfPart(word)
             ? detailsOfPart(partOf(word, rank_, peer), *details)
             : details;
}

void Agreement::know(uint64_t tag, uint64_t word,
                     const internal::CheckDetailsPtr& details) {
  const auto found = tags_.find(tag);
  if (found == tags_.end()) {
    return;
  }
  if (const uint64_t number = numberOf(found->second, word); number != 0) {
    found->second.details[number % kRemembered] = details;
  }
}

uint64_t Agreement::numberOf(const Tag& tag, uint64_t word) {
  for (uint64_t i = 0; i < std::min(kRemembered, tag.begun); i++) {
    const uint64_t number = tag.begun - i;
    const Entry& entry = tag.at(number);
    if (entry.number == number && entry.said.word == word) {
      return number;
    }
  }
  return 0;
}

// The words of a peer come in the order of its operations, so those of one that
// is so far ahead that its sequence has come round go on from its last one.
uint64_t Agreement::numberOf(Tag& tag, int peer, uint16_t sequence) {
  uint64_t number = 0;
  const auto far = tag.farAhead.find(peer);
  if (far != tag.farAhead.end() && far->second > tag.begun) {
    number = numberFrom(far->second, sequence);
  } else {
    number = numberFor(sequence, tag.begun);
  }
  if (number > tag.begun + kCycle / 2) {
    tag.farAhead[peer] = number;
  } else if (far != tag.farAhead.end()) {
    tag.farAhead.erase(far);
  }
  return number;
}

bool Agreement::partAgrees(const internal::CheckDetailsPtr& details, int peer,
                           uint64_t word) const {
  return details == nullptr || !isOfPart(word) ||
         withPart(word, partOf(word, rank_, peer), details.get()) == word;
}

// `mine`: the word of this rank's operation.
std::optional<Agreement::Conflict> Agreement::comparePart(
    const internal::CheckDetailsPtr& details, uint64_t mine,
    const Statement& theirs) const {
  if (partAgrees(details, theirs.rank, theirs.word)) {
    return std::nullopt;
  }
  const auto part = partOf(theirs.word, rank_, theirs.rank);
  return Conflict{{rank_, withPart(mine, part, details.get())}, theirs};
}

// Those of one message's segments come one after the other.
void Agreement::keepEarly(Tag& tag, uint64_t number, const Statement& theirs) {
  if (!isOfPart(theirs.word) || early_ >= kMostEarly) {
    return;
  }
  if (!tag.early.empty()) {
    const Entry& last = tag.early.back();
    if (last.number == number && last.said.rank == theirs.rank &&
        last.said.word == theirs.word) {
      return;
    }
  }
  tag.early.push_back({number, theirs});
  early_++;
}

std::optional<Agreement::Conflict> Agreement::takeEarly(
    Tag& tag, uint64_t number, uint64_t word,
    const internal::CheckDetailsPtr& details) {
  std::optional<Conflict> conflict;
  early_ -= std::erase_if(tag.early, [&](const Entry& entry) {
    if (entry.number == number && !conflict &&
        checksAgree(word, sharedPart(entry.said.word))) {
      conflict = comparePart(details, word, entry.said);
    }
    return entry.number <= number;
  });
  return conflict;
}

std::optional<Agreement::Conflict> Agreement::compare(int peer, uint64_t tag,
                                                      uint64_t word,
                                                      bool isMessage) {
  if (tags_.size() >= kMostTags && !tags_.contains(tag)) {
    return std::nullopt;
  }
  Tag& t = at(tag);
  const Statement theirs{peer, sharedPart(word)};
  const uint16_t sequence = sequenceOf(word);
  if (!t.counted || sequence == 0) {
    return std::nullopt;
  }
  const uint64_t number = numberOf(t, peer, sequence);
  if (!fits(t, number)) {
    return std::nullopt;
  }
  Entry& place = entry(t, number);
  if (number > t.begun) {
    keepEarly(t, number, {peer, word});
  }
  if (number > t.begun && place.number != number) {
    place = {number, theirs};
    t.latest = std::max(t.latest, number);
    return std::nullopt;
  }
  if (number == 0 || place.number != number) {
    return std::nullopt;  // forgotten with its tag
  }
  if (!checksAgree(place.said.word, theirs.word)) {
    return Conflict{place.said, theirs};
  }
  if (number <= t.begun && isOfPart(word)) {
    if (auto conflict = comparePart(t.details[number % kRemembered],
                                    place.said.word, {peer, word})) {
      return conflict;
    }
  }
  // An operation ends when all its messages have come: this rank does not
  // know of this one.
  if (number < t.begun && isMessage) {
    return Conflict{t.at(t.begun).said, theirs};
  }
  return std::nullopt;
}

}  // namespace transport::base
GLOO_NAMESPACE_END
