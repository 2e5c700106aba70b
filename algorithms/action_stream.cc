#include "algorithms/action_stream.h"

#include <algorithm>
#include <utility>

#include "gloo/common/error.h"
#include "gloo/common/logging.h"

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Whether an area of this layout is made of vectors of `elements`.
bool holdsVectors(const Layout& layout, size_t elements) {
  return layout.offsets == nullptr && layout.elements % elements == 0;
}

// The part of an area of such vectors that belongs to one strip of them.
Layout stripOf(Layout area, const Layout& strips, int strip) {
  const size_t vectors = area.elements / strips.elements;
  area.first = vectors * strips.offset(strip);
  area.elements = vectors * (strips.offset(strip + 1) - strips.offset(strip));
  return area;
}

}  // namespace

std::array<Piece, 2> piecesOf(const Layout& layout, const Blocks& blocks) {
  const int untilEnd = std::min(blocks.count, layout.blocks - blocks.first);
  const size_t begin = layout.offset(blocks.first);
  const size_t end = layout.offset(blocks.first + untilEnd);
  return {Piece{begin, end - begin},
          Piece{layout.offset(0),
                layout.offset(blocks.count - untilEnd) - layout.offset(0)}};
}

const Layout& layoutOf(const Layouts& layouts, Area area) {
  switch (area) {
    case Area::kInput:
      return layouts.input;
    case Area::kOutput:
      return layouts.output;
    default:
      return layouts.scratch;
  }
}

Segments::Segments(const Step& step, const Layouts& layouts, size_t maxElements)
    : step_(step), maxElements_(std::max<size_t>(1, maxElements)) {
  if (step.kind != StepKind::kRecv) {
    source_ = piecesOf(layoutOf(layouts, step.source.area), step.source);
  }
  target_ = source_;
  if (step.kind != StepKind::kSend) {
    target_ = piecesOf(layoutOf(layouts, step.target.area), step.target);
  }
  if (step.kind == StepKind::kRecv) {
    source_ = target_;
  }
  for (size_t i = 0; i < 2; i++) {
    if (source_[i].elements != target_[i].elements) {
      throw InvalidOperationException(
          "schedule: source and target of a step differ in size");
    }
  }
  skipEmpty();
}

size_t Segments::elements() const {
  const size_t all = source_[piece_].elements;
  const size_t part = ceilDivide(all, ceilDivide(all, maxElements_));
  return std::min(part, all - done_);
}

void Segments::advance() {
  done_ += elements();
  if (done_ == source_[piece_].elements) {
    piece_++;
    done_ = 0;
    skipEmpty();
  }
}

void Segments::skipEmpty() {
  while (piece_ < 2 && source_[piece_].elements == 0) {
    piece_++;
  }
}

ActionStream::ActionStream(const Steps& steps, const Layouts& layouts,
                           const ExpandOptions& options)
    : steps_(steps), layouts_(layouts), options_(options) {
  cutStrips();
  enterStrip();
  sizeStage();
}

void ActionStream::cutStrips() {
  const size_t elements = layouts_.output.elements;
  const size_t most = options_.stripBytes / options_.elementSize;
  strips_ = {elements, 1, nullptr};
  if (most > 0 && elements > most && layouts_.input.elements == elements &&
      holdsVectors(layouts_.input, elements) &&
      holdsVectors(layouts_.output, elements) &&
      holdsVectors(layouts_.scratch, elements)) {
    strips_.blocks = static_cast<int>(ceilDivide(elements, most));
  }
}

Layouts ActionStream::layoutsOf(int strip) const {
  if (strips_.blocks == 1) {
    return layouts_;
  }
  return {stripOf(layouts_.input, strips_, strip),
          stripOf(layouts_.output, strips_, strip),
          stripOf(layouts_.scratch, strips_, strip)};
}

void ActionStream::enterStrip() {
  current_ = layoutsOf(strip_);
  nextStep_ = 0;
}

size_t ActionStream::scratchBytes() const {
  return usesScratch_ ? layouts_.scratch.elements * options_.elementSize : 0;
}

// One stage slot per staged segment, as long as there is room: then every
// receive can be posted at once. The first strip is a longest one, so that it
// has the most segments; the last one, which may be shorter by an element of
// each vector, may have longer ones: of a piece of n elements, where those of
// n + 1 were one too many for as few segments.
void ActionStream::sizeStage() {
  const Layouts last = layoutsOf(strips_.blocks - 1);
  const auto makeRoom = [this](const Step& step, const Layouts& strip) {
    size_t segments = 0;
    for (Segments s(step, strip, maxElements()); !s.atEnd(); s.advance()) {
      segments++;
      slotBytes_ = std::max(slotBytes_, s.elements() * options_.elementSize);
    }
    return segments;
  };
  size_t segments = 0;
  for (int i = 0; i < steps_.size(); i++) {
    const Step step = steps_.at(i);
    usesScratch_ |=
        step.kind != StepKind::kIdle && (step.source.area == Area::kScratch ||
                                         step.target.area == Area::kScratch);
    if (step.kind != StepKind::kRecvReduce) {
      continue;
    }
    segments += makeRoom(step, current_);
    if (strips_.blocks > 1) {
      makeRoom(step, last);
    }
  }
  if (segments > 0) {
    // Slots start on cache lines of their own.
    slotBytes_ = ceilDivide(slotBytes_, 64) * 64;
    const size_t fit = std::max<size_t>(2, options_.stageBytes / slotBytes_);
    segments *= static_cast<size_t>(strips_.blocks);
    slots_ = std::min({segments, fit, static_cast<size_t>(window())});
  }
}

// Steps of equal round are neighbours.
bool ActionStream::startRound() {
  round_.clear();
  turn_ = 0;
  int round = -1;
  for (; nextStep_ < steps_.size(); nextStep_++) {
    const Step step = steps_.at(nextStep_);
    if (!round_.empty() && step.round != round) {
      break;
    }
    if (step.kind == StepKind::kIdle) {
      continue;
    }
    round = step.round;
    if (Segments s(step, current_, maxElements()); !s.atEnd()) {
      round_.push_back(s);
    }
  }
  return !round_.empty();
}

bool ActionStream::next(Action& action) {
  while (true) {
    if (turn_ == round_.size()) {
      // All had their turn: those that have segments left get another.
      std::erase_if(round_, [](const Segments& s) { return s.atEnd(); });
      turn_ = 0;
      while (round_.empty() && !startRound()) {
        if (++strip_ >= strips_.blocks) {
          return false;
        }
        enterStrip();
      }
    }
    Segments& segment = round_[turn_];
    const bool needed = makeAction(segment, action);
    if (!owesReduce_) {
      segment.advance();
      turn_++;
    }
    if (needed) {
      return true;
    }
  }
}

bool ActionStream::makeAction(const Segments& segment, Action& action) {
  const Step& step = segment.step();
  action = Action{};
  action.bytes = segment.elements() * options_.elementSize;
  action.source = place(step.source.area, segment.sourceOffset());
  action.target = place(step.target.area, segment.targetOffset());
  switch (step.kind) {
    case StepKind::kSend:
      action.kind = ActionKind::kSend;
      action.peer = step.peer;
      return true;
    case StepKind::kRecv:
      action.kind = ActionKind::kRecv;
      action.peer = step.peer;
      return true;
    case StepKind::kRecvReduce: {
      GLOO_ENFORCE(action.bytes <= slotBytes_, "schedule: a segment of ",
                   action.bytes, " bytes for a stage slot of ", slotBytes_);
      const Place slot{Memory::kStage, staged_ % slots_ * slotBytes_};
      owesReduce_ = !owesReduce_;
      if (owesReduce_) {
        action.kind = ActionKind::kRecv;
        action.peer = step.peer;
        action.source = {};
        action.target = slot;
        return true;
      }
      action.kind = ActionKind::kReduce;
      action.ownFirst = step.ownFirst;
      action.staged = slot;
      staged_++;
      return true;
    }
    case StepKind::kReduce:
      action.kind = ActionKind::kReduce;
      action.staged = std::exchange(action.source, action.target);
      action.ownFirst = true;
      return true;
    default:
      action.kind = ActionKind::kCopy;
      return action.source.memory != action.target.memory ||
             action.source.offset != action.target.offset;
  }
}

Place ActionStream::place(Area area, size_t offsetElements) const {
  const size_t offset = offsetElements * options_.elementSize;
  if (area == Area::kInput && options_.inPlace) {
    return {Memory::kOutput, offset + options_.inPlaceOffset};
  }
  if (area == Area::kOutput && options_.inPlace) {
    return {Memory::kOutput, offset + options_.outputOffset};
  }
  return {static_cast<Memory>(area), offset};
}

}  // namespace algorithms
GLOO_NAMESPACE_END
