// Whether the ranks of a context run the same collectives. Every check word
// that arrives - with data, an advert, an announcement, or from who has waited
// for long - is compared at once with what this rank runs, or has run lately,
// with the same tag: a message that nobody here will ever receive contradicts
// as well as one that is waited for. Not thread-safe: lives under the domain's
// lock.
//
// The operations with one tag are counted on every rank, and the number travels
// in the word. Words of operations that this rank has not begun yet are kept,
// one for each number, until it does; other ranks' words for that number are
// compared with the one that is kept. The word of a part (see isByPart()) is
// compared without that, and the part with what this rank has for its peer; it
// is kept as well, one for each message that comes too early.
//
// Memory: the words of the kTags tags that were used last, of each the last
// kRemembered operations and those that are ahead; of all other tags only how
// often they were used (TagCounts). Of which tags that is forgotten may differ
// from rank to rank: words of such a tag have no number on a rank that has
// forgotten it, and what has none agrees with all. Steady state allocates
// nothing, with a few tags that are used again and again as with ever new ones.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/check.h"
#include "transport/base/pool.h"
#include "transport/base/tag_counts.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

class Agreement {
 public:
  using Statement = internal::Statement;
  struct Conflict {
    Statement one;
    Statement other;
  };

  explicit Agreement(int rank) : rank_(rank) {}

  // This rank begins an operation: returns its word, with its number. *conflict
  // is set if another rank has contradicted it already. `details` of the word,
  // or null.
  uint64_t begin(uint64_t tag, uint64_t word, std::optional<Conflict>* conflict,
                 const internal::CheckDetailsPtr& details = nullptr);
  // So many that follow it, none with details. Where there is no memory for
  // them, nothing has changed.
  void beginAgain(uint64_t tag, uint64_t word, uint64_t times,
                  std::optional<Conflict>* conflict);
  // Whether another rank has said something of one that this rank is yet to
  // begin.
  bool isAhead(uint64_t tag) const;
  // How many operations this rank has begun; nothing if that was forgotten.
  std::optional<uint64_t> begun(uint64_t tag) const;
  // Of this rank's operation with that word, or of its part that is with
  // `peer`; null: not known (any more).
  internal::CheckDetailsPtr detailsOf(uint64_t tag, uint64_t word,
                                      int peer) const;
  // They are these, if it is remembered.
  void know(uint64_t tag, uint64_t word,
            const internal::CheckDetailsPtr& details);

  // A word has come from `peer`; `isMessage`: with a message, not from who
  // waits for one.
  std::optional<Conflict> heard(int peer, uint64_t tag, uint64_t word,
                                bool isMessage) {
    // Most often that of the operation that was begun last.
    if (internal::sharedPart(word) == lastWord_ && tag == lastTag_ &&
        (word == lastWord_ || partAgrees(lastDetails_, peer, word))) {
      return std::nullopt;
    }
    return compare(peer, tag, word, isMessage);
  }

  size_t tags() const { return tags_.size(); }

  static constexpr size_t kTags = 512;
  static constexpr uint64_t kRemembered = 8;
  // Words that would take more are not kept. The credits of honest peers end
  // before that.
  static constexpr size_t kMostTags = 1 << 17;
  static constexpr size_t kMostWide = 1 << 20;   // entries, 24 MiB
  static constexpr size_t kMostEarly = 1 << 20;  // words of parts, likewise

 private:
  // What was said of the operation `number` with its tag, by whoever was first;
  // or of a part of it.
  struct Entry {
    uint64_t number = 0;  // from 1; 0: none
    Statement said;
  };
  struct Tag {
    uint64_t tag = 0;
    Tag* next = nullptr;
    Tag* prev = nullptr;
    bool counted = true;         // else it was forgotten how often it was used
    uint64_t begun = 0;          // operations, by this rank
    uint16_t sequence = 0;       // of the last one of those
    uint64_t latest = 0;         // number that anybody has mentioned
    std::vector<Entry> entries;  // by number, modulo their count: a power of 2
    // Of this rank's own, by number, modulo kRemembered.
    std::array<internal::CheckDetailsPtr, kRemembered> details;
    // Words of parts of operations that this rank has not begun.
    std::vector<Entry> early;
    // By peers that have begun half a cycle more than this rank: their last.
    std::unordered_map<int, uint64_t> farAhead;

    Entry& at(uint64_t number) {
      return entries[number & (entries.size() - 1)];
    }
    const Entry& at(uint64_t number) const {
      return entries[number & (entries.size() - 1)];
    }
  };

  std::optional<Conflict> compare(int peer, uint64_t tag, uint64_t word,
                                  bool isMessage);
  // Whether the word's part is what this rank has for that peer.
  bool partAgrees(const internal::CheckDetailsPtr& details, int peer,
                  uint64_t word) const;
  std::optional<Conflict> comparePart(const internal::CheckDetailsPtr& details,
                                      uint64_t mine,
                                      const Statement& theirs) const;
  void keepEarly(Tag& tag, uint64_t number, const Statement& theirs);
  std::optional<Conflict> takeEarly(Tag& tag, uint64_t number, uint64_t word,
                                    const internal::CheckDetailsPtr& details);
  static uint64_t numberOf(Tag& tag, int peer, uint16_t sequence);
  // Of this rank's operation with that word; 0: forgotten, or never begun.
  static uint64_t numberOf(const Tag& tag, uint64_t word);
  static size_t countsOf(uint64_t tag) { return tag >> 32 != 0 ? 1 : 0; }
  Tag& at(uint64_t tag);
  Tag& renew(uint64_t tag);
  static size_t sizeFor(const Tag& tag, uint64_t number);
  // Whether this number has a place, or may get one.
  bool fits(const Tag& tag, uint64_t number) const;
  static bool fitsIn(size_t entries, const Tag& tag, uint64_t number) {
    return number < tag.begun + entries - kRemembered;
  }
  // The place of this number, which is kept from now on.
  Entry& entry(Tag& tag, uint64_t number) {
    if (!fitsIn(tag.entries.size(), tag, number)) {
      widen(tag, number);
    }
    return tag.at(number);
  }
  void widen(Tag& tag, uint64_t number);

  const int rank_;
  uint64_t lastTag_ = 0;
  uint64_t lastWord_ = 0;
  internal::CheckDetailsPtr lastDetails_;
  std::unordered_map<uint64_t, Tag> tags_;
  size_t wide_ = 0;   // entries of all tags, beyond those that each begins with
  size_t early_ = 0;  // of all tags
  Fifo<Tag> byUse_;   // the one that was not used for longest first
  // Of callers' tags, and of objects': neither displace the others.
  std::array<TagCounts, 2> counts_;
};

}  // namespace transport::base
GLOO_NAMESPACE_END
