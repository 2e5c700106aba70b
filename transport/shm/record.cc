#include "transport/shm/record.h"

#include <algorithm>
#include <cstring>

#include "transport/base/copy.h"

GLOO_NAMESPACE_BEGIN
namespace transport::shm {

using base::copyBytes;
using base::FrameHeader;
using base::FrameType;
using base::ShortMessage;

namespace {

constexpr size_t kSlotBytes = 8;
constexpr size_t kCheckBytes = 8;
constexpr size_t kBoundIndexAt = 8;  // in the body of a bound write
constexpr size_t kBoundPayloadAt = 12;
constexpr size_t kShortBytesAt = 16;   // in the body of a short message
constexpr size_t kFramePayloadAt = 8;  // in the body of a frame

template <typename T>
T load(const char* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

template <typename T>
void store(char* to, T value) {
  std::memcpy(to, &value, sizeof(value));
}

// Of memory that the other end may be writing: read once, whatever happens.
uint8_t readOnce(const uint8_t& from) {
  return *static_cast<const volatile uint8_t*>(&from);
}

size_t readOnce32(const char* from) {
  const auto* bytes = reinterpret_cast<const volatile uint8_t*>(from);
  uint32_t value = 0;
  for (int i = 0; i < 4; i++) {
    value |= uint32_t{bytes[i]} << (8 * i);
  }
  return value;
}

void store32(char* to, size_t value) {
  for (int i = 0; i < 4; i++) {
    to[i] = static_cast<char>(value >> (8 * i));
  }
}

size_t chunkOf(const Cell& cell) { return readOnce32(cell.body); }

}  // namespace

void FrameMemory::note(const FrameHeader& header) {
  seen = header.seen;
  if (header.type == FrameType::kData || header.type == FrameType::kAnnounce) {
    number = static_cast<uint32_t>(header.number);
  }
}

// ---- Writing

// Whether the other end can reckon what a small record does not say.
bool FrameWriter::fits(const ShortMessage& m) const {
  return m.bytes <= kShortBytes && m.number == before_.number + uint32_t{1} &&
         m.seen - before_.seen <= UINT8_MAX && m.credits % kCreditUnit == 0 &&
         m.credits / kCreditUnit <= UINT8_MAX;
}

bool FrameWriter::isSmall(const FrameHeader& h, ShortMessage* message) const {
  if (!base::fitsShortHead(h) || h.linkCredits != 0) {
    return false;
  }
  *message = base::shortOf(h);
  return fits(*message);
}

bool FrameWriter::put(const ShortMessage& m, const char* payload, bool* ring) {
  const bool checked = m.check != 0;
  const bool inCell = m.bytes <= kSmallBytes - (checked ? kCheckBytes : 0);
  char* place = nullptr;
  Cell* cell = inCell ? ring_.begin() : ring_.begin(m.bytes, &place);
  if (cell == nullptr) {
    return false;
  }
  store(cell->body, m.slot);
  if (inCell) {
    char* at = cell->body + kSlotBytes;
    if (checked) {
      store(at, m.check);
      at += kCheckBytes;
    }
    copyBytes(at, payload, m.bytes);
    cell->kind = static_cast<uint8_t>(checked ? RecordKind::kSmallChecked
                                              : RecordKind::kSmall);
    cell->length = static_cast<uint8_t>(m.bytes);
  } else {
    store(cell->body + kSlotBytes, m.check);
    store32(cell->body + kShortBytesAt, m.bytes);
    copyOver_(place, payload, m.bytes);
    cell->kind = static_cast<uint8_t>(RecordKind::kShort);
  }
  cell->seen = static_cast<uint8_t>(m.seen - before_.seen);
  cell->credits = static_cast<uint8_t>(m.credits / kCreditUnit);
  before_ = {m.seen, m.number};
  *ring |= ring_.commit();
  return true;
}

bool FrameWriter::bound(uint32_t index, uint64_t offset, const char* payload,
                        size_t bytes, bool* ring) {
  Cell* cell = ring_.begin();
  if (cell == nullptr) {
    return false;
  }
  store(cell->body, offset);
  store(cell->body + kBoundIndexAt, index);
  copyBytes(cell->body + kBoundPayloadAt, payload, bytes);
  cell->kind = static_cast<uint8_t>(RecordKind::kBound);
  cell->length = static_cast<uint8_t>(bytes);
  *ring |= ring_.commit();
  return true;
}

FrameWriter::Step FrameWriter::step(const FrameHeader& h, const char* payload,
                                    FrameProgress& progress, bool* ring) {
  ShortMessage message;
  if (!progress.begun && isSmall(h, &message)) {
    return put(message, payload, ring) ? Step::kDone : Step::kNoRoom;
  }
  const size_t left = h.payloadBytes - progress.sent;
  const bool inBody = !progress.begun && left <= kInlineBytes;
  const size_t chunk = inBody ? 0 : std::min(left, ring_.maxChunk());
  char* place;
  Cell* cell = ring_.begin(chunk, &place);
  if (cell == nullptr) {
    return Step::kNoRoom;
  }
  store32(cell->body, chunk);
  cell->length = 0;
  if (inBody) {
    copyBytes(cell->body + kFramePayloadAt, payload, left);
    cell->length = static_cast<uint8_t>(left);
  } else {
    copyOver_(place, payload + progress.sent, chunk);
  }
  if (progress.begun) {
    cell->kind = static_cast<uint8_t>(RecordKind::kMore);
  } else {
    cell->kind = static_cast<uint8_t>(RecordKind::kFrame);
    base::encode(h, cell->body + Cell::kHeadAt);
    before_.note(h);
  }
  progress.begun = true;
  progress.sent += inBody ? left : chunk;
  *ring |= ring_.commit();
  return progress.sent == h.payloadBytes ? Step::kDone : Step::kMore;
}

bool FrameWriter::end(bool* ring) {
  Cell* cell = ring_.begin();
  if (cell == nullptr) {
    return false;
  }
  cell->kind = static_cast<uint8_t>(RecordKind::kEnd);
  cell->length = 0;
  *ring |= ring_.commit();
  return true;
}

// ---- Reading

FrameReader::Event FrameReader::next() {
  switch (state_) {
    case State::kFirst:
      return firstChunk();
    case State::kRest:
      return moreChunk();
    default:
      break;
  }
  const Cell* cell = ring_.peek();
  return cell != nullptr ? begin(*cell) : Event::kNothing;
}

FrameReader::Event FrameReader::begin(const Cell& cell) {
  const auto kind = static_cast<RecordKind>(readOnce(cell.kind));
  const size_t length = readOnce(cell.length);
  if (kind == RecordKind::kBound) {
    return takeBound(cell, length);
  }
  place_ = nullptr;
  done_ = 0;
  firstChunk_ = 0;
  switch (kind) {
    case RecordKind::kSmall:
    case RecordKind::kSmallChecked:
      return takeSmall(cell, length, kind == RecordKind::kSmallChecked);
    case RecordKind::kShort:
      return takeShort(cell);
    case RecordKind::kFrame:
      return beginFrame(cell, length);
    case RecordKind::kEnd:
      ring_.take();
      return Event::kEnd;
    default:
      return fail("a record of no kind that begins a frame");
  }
}

FrameReader::Event FrameReader::takeBound(const Cell& cell, size_t length) {
  if (length > kBoundBytes) {
    return fail("a bound write that is too long");
  }
  bound_.bytes = length;
  bound_.offset = load<uint64_t>(cell.body);
  bound_.index = load<uint32_t>(cell.body + kBoundIndexAt);
  bound_.payload = cell.body + kBoundPayloadAt;
  ring_.take();
  return Event::kBound;
}

FrameReader::Event FrameReader::takeSmall(const Cell& cell, size_t length,
                                          bool checked) {
  const size_t before = kSlotBytes + (checked ? kCheckBytes : 0);
  if (length > Cell::kBodyBytes - before) {
    return fail("a small message that is too long");
  }
  payload_ = cell.body + before;
  ring_.take();
  return takeMessage(cell, checked ? load<uint64_t>(cell.body + kSlotBytes) : 0,
                     length);
}

FrameReader::Event FrameReader::takeShort(const Cell& cell) {
  const size_t bytes = readOnce32(cell.body + kShortBytesAt);
  if (bytes > kShortBytes || bytes > maxPayload_) {
    return fail("a short message that is too long");
  }
  payload_ = ring_.bytesOf(bytes);
  ring_.take(bytes);
  return takeMessage(cell, load<uint64_t>(cell.body + kSlotBytes), bytes);
}

FrameReader::Event FrameReader::takeMessage(const Cell& cell, uint64_t check,
                                            size_t bytes) {
  ShortMessage& m = message_;
  m.slot = load<uint64_t>(cell.body);
  m.check = check;
  m.number = before_.number + uint32_t{1};
  m.bytes = static_cast<uint32_t>(bytes);
  m.seen = before_.seen + readOnce(cell.seen);
  m.credits = readOnce(cell.credits) * static_cast<uint32_t>(kCreditUnit);
  before_ = {m.seen, m.number};
  return Event::kMessage;
}

FrameReader::Event FrameReader::beginFrame(const Cell& cell, size_t length) {
  char head[FrameHeader::kBytes];
  std::memcpy(head, cell.body + Cell::kHeadAt, sizeof(head));
  const size_t chunk = chunkOf(cell);
  try {
    header_ = base::decodeFrame({head, sizeof(head)});
  } catch (const base::WireError&) {
    return fail("a frame with an impossible header");
  }
  const size_t payload = header_.payloadBytes;
  const bool inBody = chunk == 0;
  if (payload > maxPayload_ || length > kInlineBytes ||
      chunk > ring_.maxChunk() ||
      (inBody ? length != payload : length != 0 || chunk > payload)) {
    return fail("a frame with an impossible length");
  }
  before_.note(header_);
  if (inBody) {
    copyBytes(first_, cell.body + kFramePayloadAt, length);
    firstLength_ = length;
    ring_.take();
  }
  firstChunk_ = chunk;
  state_ = payload > 0 ? State::kFirst : State::kBetween;
  return payload > 0 ? Event::kPayload : Event::kFrame;
}

FrameReader::Event FrameReader::firstChunk() {
  state_ = State::kRest;
  return firstChunk_ > 0 ? copyChunk(ring_.bytesOf(firstChunk_), firstChunk_)
                         : copyChunk(first_, firstLength_);
}

FrameReader::Event FrameReader::moreChunk() {
  const Cell* cell = ring_.peek();
  if (cell == nullptr) {
    return Event::kNothing;
  }
  const size_t chunk = chunkOf(*cell);
  const auto kind = static_cast<RecordKind>(readOnce(cell->kind));
  if (kind != RecordKind::kMore || chunk == 0 || chunk > ring_.maxChunk() ||
      chunk > header_.payloadBytes - done_) {
    return fail("something else in the middle of a frame");
  }
  firstChunk_ = chunk;
  return copyChunk(ring_.bytesOf(chunk), chunk);
}

FrameReader::Event FrameReader::copyChunk(const char* from, size_t bytes) {
  if (place_ != nullptr) {
    copyBytes(place_ + done_, from, bytes);
  }
  done_ += bytes;
  if (firstChunk_ > 0) {
    ring_.take(firstChunk_);
  }
  if (done_ < header_.payloadBytes) {
    return Event::kMoved;
  }
  state_ = State::kBetween;
  return Event::kFrame;
}

FrameReader::Event FrameReader::fail(const char* error) {
  error_ = error;
  return Event::kBroken;
}

}  // namespace transport::shm
GLOO_NAMESPACE_END
