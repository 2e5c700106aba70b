#include "algorithms/footprint.h"

#include <algorithm>
#include <utility>
#include <vector>

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Bytes of a memory, as pieces in order that do not touch each other.
class Pieces {
 public:
  void add(Span piece) {
    if (piece.begin == piece.end) {
      return;
    }
    const auto first = std::lower_bound(
        pieces_.begin(), pieces_.end(), piece.begin,
        [](const Span& s, size_t begin) { return s.end < begin; });
    auto last = first;
    for (; last != pieces_.end() && last->begin <= piece.end; ++last) {
      piece.begin = std::min(piece.begin, last->begin);
      piece.end = std::max(piece.end, last->end);
    }
    pieces_.insert(pieces_.erase(first, last), piece);
  }

  // Adds to `others` what is in `piece`, but not here.
  void addMissing(Span piece, Pieces& others) const {
    for (const Span& own : pieces_) {
      if (own.begin >= piece.end) {
        break;
      }
      if (own.end > piece.begin) {
        others.add({piece.begin, std::max(piece.begin, own.begin)});
        piece.begin = std::min(piece.end, own.end);
      }
    }
    others.add(piece);
  }

  std::vector<Span> take() { return std::move(pieces_); }

 private:
  std::vector<Span> pieces_;
};

}  // namespace

Footprint footprintOf(const Program& program, Memory memory) {
  Pieces needed;
  Pieces written;
  for (const Action& action : program.actions) {
    const auto reads = [&](const Place& place) {
      if (place.memory == memory) {
        written.addMissing({place.offset, place.offset + action.bytes}, needed);
      }
    };
    if (action.kind != ActionKind::kRecv) {
      reads(action.source);
    }
    if (action.kind == ActionKind::kReduce) {
      reads(action.staged);
    }
    const Place& target = action.target;
    if (action.kind != ActionKind::kSend && target.memory == memory) {
      written.add({target.offset, target.offset + action.bytes});
    }
  }
  Footprint print{needed.take(), written.take()};
  for (const auto* pieces : {&print.needed, &print.written}) {
    print.end = std::max(print.end, pieces->empty() ? 0 : pieces->back().end);
  }
  return print;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
