// The actions of an expanded schedule one after the other, in memory that does
// not grow with the schedule: what expand() collects, and what the simulator
// runs for thousands of ranks at once.
#pragma once

#include <algorithm>
#include <array>
#include <vector>

#include "algorithms/program.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {

// The steps of one rank: those of a schedule, or a list that is borrowed.
class Steps {
 public:
  explicit Steps(const Schedule& schedule) : schedule_(schedule) {}
  explicit Steps(const std::vector<Step>& list)
      : schedule_({}, static_cast<int>(list.size()), nullptr), list_(&list) {}

  int size() const { return schedule_.steps(); }
  Step at(int index) const {
    return list_ != nullptr ? (*list_)[static_cast<size_t>(index)]
                            : schedule_.step(index);
  }

 private:
  Schedule schedule_;
  const std::vector<Step>* list_ = nullptr;
};

// A contiguous part of an area, in elements.
struct Piece {
  size_t offset = 0;
  size_t elements = 0;
};

const Layout& layoutOf(const Layouts& layouts, Area area);

// A block range as contiguous pieces: two where it wraps around.
std::array<Piece, 2> piecesOf(const Layout& layout, const Blocks& blocks);

// The segments of one step: first those of its first piece. Empty pieces have
// none. A piece is cut into equal parts, so that sender and receiver agree from
// its length alone.
class Segments {
 public:
  // Throws InvalidOperationException if source and target differ in size.
  Segments(const Step& step, const Layouts& layouts, size_t maxElements);

  bool atEnd() const { return piece_ == 2; }
  size_t sourceOffset() const { return source_[piece_].offset + done_; }
  size_t targetOffset() const { return target_[piece_].offset + done_; }
  size_t elements() const;
  const Step& step() const { return step_; }
  void advance();

 private:
  void skipEmpty();

  Step step_;
  size_t maxElements_;
  std::array<Piece, 2> source_;
  std::array<Piece, 2> target_;
  uint8_t piece_ = 0;
  size_t done_ = 0;
};

// One thread. Borrows the layouts' offsets and the steps' list.
class ActionStream {
 public:
  ActionStream(const Steps& steps, const Layouts& layouts,
               const ExpandOptions& options);

  // The next action, without waits and `after`; false at the end.
  bool next(Action& action);

  int window() const { return std::max(4, options_.window); }
  size_t stageBytes() const { return slots_ * slotBytes_; }
  size_t scratchBytes() const;

 private:
  size_t maxElements() const {
    return options_.segmentBytes / options_.elementSize;
  }
  void cutStrips();
  Layouts layoutsOf(int strip) const;
  void enterStrip();
  void sizeStage();
  bool startRound();
  // False if the segment needs no action.
  bool makeAction(const Segments& segment, Action& action);
  Place place(Area area, size_t offsetElements) const;

  const Steps steps_;
  const Layouts layouts_;
  const ExpandOptions options_;
  Layout strips_;  // each a block
  int strip_ = 0;
  Layouts current_;  // of this strip
  bool usesScratch_ = false;
  size_t slots_ = 0;
  size_t slotBytes_ = 0;
  size_t staged_ = 0;
  int nextStep_ = 0;
  std::vector<Segments> round_;  // its steps take turns, segment by segment
  size_t turn_ = 0;
  bool owesReduce_ = false;  // of the segment whose receive came last
};

}  // namespace algorithms
GLOO_NAMESPACE_END
