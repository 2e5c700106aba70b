// What travels between two processes, byte by byte. Every integer is
// little-endian; no struct of this program or of a library is ever sent as it
// lies in memory. docs/wire.md has the same in prose.
//
// Decoders take bytes from outside: they check every length and every
// enumerator and throw WireError; they never read past the span.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "gloo/config.h"
#include "gloo/internal/cause.h"
#include "gloo/internal/check.h"

GLOO_NAMESPACE_BEGIN
namespace transport::base {

constexpr uint32_t kWireMagic = 0x314f4c47;  // "GLO1"
constexpr uint16_t kWireVersion = 11;

// Bytes that are not what this header says. Never leaves transport/.
struct WireError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// ---- Frames: what a link carries once it is connected -----------------------

enum class FrameType : uint8_t {
  kAnnounce = 1,  // a message (number, slot, bytes) waits for memory
  kAdvert = 2,    // memory for one message
  kData = 3,      // bytes of a message, a bound write, a put or a get's answer
  kDone = 4,      // a pulled message or a put is finished, or a request refused
  kCancel = 5,    // take back an advert, an announce or a bound buffer
  kCredit = 6,    // the credits of the header; with a check: what
                  // its sender has long waited for on the slot
  kAbort = 7,     // the context ends; payload: encoded Cause
  kBye = 8,       // orderly departure: no frame follows
  kBufferAdvert = 9,  // memory of a bound receive Buffer
  kGet = 10,          // asks for bytes of an exported region
  kDispute = 11,      // two ranks disagree; payload: encoded Dispute
};

// FrameHeader::flags.
enum FrameFlag : uint8_t {
  kFirst = 1 << 0,   // kData: first part of its message
  kLast = 1 << 1,    // kData: last part
  kDirect = 1 << 2,  // kData: goes to the advert `index`
  kBound = 1 << 3,   // kData: goes to the bound buffer `index`; kCancel: of it
  kPut = 1 << 4,     // kData: goes to the exported region `key`
  kReply = 1 << 5,   // kAdvert: answers announce `number`; kData: the get
                     // `number`; kDone: a put or a get; kCancel: a kCancel
  kSend = 1 << 6,    // kCancel: of an announce (else, not kBound: of an advert)
  kError = 1 << 7,   // kDone: refused; the payload says why
};

// The fixed head of every frame; `payloadBytes` bytes follow it.
//
//  offset  0 type u8    1 flags u8   2 linkCredits u16   4 payloadBytes u32
//          8 index u32 12 seen u32  16 slot u64  24 number u64
//         32 bytes u64 40 offset u64 48 key u32 52 credits u32 56 check u64
struct FrameHeader {
  FrameType type = FrameType::kCredit;
  uint8_t flags = 0;
  uint16_t linkCredits = 0;   // receives returned; only the link looks at it
  uint32_t payloadBytes = 0;  // of this frame
  uint32_t index = 0;         // of an advert, a bound buffer, an operation
  uint32_t seen = 0;          // introductions processed so far, modulo 2^32
  uint64_t slot = 0;
  uint64_t number = 0;   // of the message; kAdvert: position, see pair.h
  uint64_t bytes = 0;    // of the whole message; capacity of an advert
  uint64_t offset = 0;   // of this part; or a remote address
  uint32_t key = 0;      // remote key or exported region
  uint32_t credits = 0;  // eager bytes returned
  uint64_t check = 0;    // of a collective; gloo/internal/check.h

  bool has(FrameFlag flag) const { return (flags & flag) != 0; }

  static constexpr size_t kBytes = 64;
};

// All that an eager message says, where its frame is not needed.
struct ShortMessage {
  uint64_t slot = 0;
  uint64_t check = 0;
  uint32_t number = 0;
  uint32_t bytes = 0;
  uint32_t seen = 0;
  uint32_t credits = 0;

  FrameHeader frame() const {
    FrameHeader h;
    h.type = FrameType::kData;
    h.flags = FrameFlag::kFirst | FrameFlag::kLast;
    h.payloadBytes = bytes;
    h.seen = seen;
    h.slot = slot;
    h.number = number;
    h.bytes = bytes;
    h.credits = credits;
    h.check = check;
    return h;
  }
};

// The head of a frame that is a whole eager message, where the link itself
// knows how long a frame is and a byte is dear: told from the other one by its
// first byte. The payload is the rest of the frame.
//
//  offset  0 type u8, 0x80 | kData   1 zero u8   2 linkCredits u16  4 seen u32
//          8 slot u64  16 check u64  24 number u32  28 credits u32
constexpr size_t kShortHeadBytes = 32;
constexpr uint8_t kShortHead = 0x80 | static_cast<uint8_t>(FrameType::kData);

// What the head of an eager message adds to that of the one before it: between
// ranks that keep step it is so little that a link which has room for it beside
// the payload leaves the head out (as RFC 1144 does with TCP's).
struct HeadDelta {
  uint8_t seen = 0;
  bool nextOperation = false;  // of the same tag; else the check is the same
};

// No control frame, and no data frame, carries more bytes.
constexpr size_t kMaxControlPayload = 2048;
constexpr size_t kMaxDataPayload = size_t{4} << 20;

void encode(const FrameHeader& header, char* out /* FrameHeader::kBytes */);
// Checks type, flags and payload length against the type.
FrameHeader decodeFrame(std::span<const char> bytes);
// Whether the short head has all that this one says.
inline bool fitsShortHead(const FrameHeader& h) {
  return h.type == FrameType::kData && h.flags == (kFirst | kLast) &&
         h.bytes == h.payloadBytes && h.number <= UINT32_MAX &&
         (h.index | h.offset | h.key) == 0;
}
// In the head of a frame, once it is encoded.
void setLinkCredits(char* head, uint16_t credits);
// REQUIRES fitsShortHead(header).
inline ShortMessage shortOf(const FrameHeader& h) {
  return {h.slot,         h.check, static_cast<uint32_t>(h.number),
          h.payloadBytes, h.seen,  h.credits};
}
void encodeShort(const ShortMessage& message, uint16_t linkCredits,
                 char* out /* kShortHeadBytes */);
// Of a whole frame that begins with kShortHead; returns its linkCredits.
uint16_t decodeShort(std::span<const char> frame, ShortMessage* message);

// Nothing: there is more that differs.
std::optional<HeadDelta> deltaOf(const ShortMessage& before,
                                 const ShortMessage& message);
ShortMessage withDelta(const ShortMessage& before, HeadDelta delta,
                       uint32_t bytes);

// ---- Hello: the first bytes of a connection, in both directions -------------

enum class Purpose : uint8_t {
  kPair = 1,      // becomes the link of a pair
  kLifeline = 2,  // stays open, idle, to notice the peer's death
  kProbe = 3,     // asks whether `dstNonce` lives here, and how far it is
  kRefusal = 4,   // the mesh cannot be; text says why
};

// Answer to a hello.
enum class Verdict : uint8_t {
  kNone = 0,  // this is a question
  kAccepted = 1,
  kUnknown = 2,  // nobody here has that nonce: the address is stale
  kRefused = 3,  // text says why
};

struct Hello {
  uint16_t version = kWireVersion;
  Purpose purpose = Purpose::kPair;
  Verdict verdict = Verdict::kNone;
  uint32_t features = 0;
  int32_t srcRank = -1;
  int32_t dstRank = -1;
  int32_t size = 0;
  uint64_t srcNonce = 0;    // of the sender's transport context
  uint64_t dstNonce = 0;    // of the receiver's
  uint64_t worldNonce = 0;  // of rank 0's context; 0: not known yet
  // Of kProbe: how many collectives with this tag the one that answers has
  // begun.
  uint64_t tag = 0;
  uint64_t begun = kNotKnown;
  std::string linkKind;    // "tcp", ...; at most 15 bytes
  std::vector<char> blob;  // the link's own data; at most kMaxBlob bytes
  std::string text;        // at most kMaxText bytes

  static constexpr uint64_t kNotKnown = UINT64_MAX;
  static constexpr size_t kMaxBlob = 1024;
  static constexpr size_t kMaxText = 1024;
  // Length of the fixed head: magic u32, total length u32, CRC-32C of the rest
  // u32; then the fields in the order above, lengths before variable parts.
  static constexpr size_t kHeadBytes = 12;
  static constexpr size_t kMaxBytes = 4096;
};

std::vector<char> encode(const Hello& hello);
// Total length from the first kHeadBytes bytes: magic and limit are checked.
size_t helloLength(std::span<const char, Hello::kHeadBytes> head);
Hello decodeHello(std::span<const char> bytes);

// ---- Address: what a rank publishes ----------------------------------------

struct AddressRecord {
  int32_t rank = -1;
  int32_t size = 0;
  uint64_t nonce = 0;
  uint64_t hostId = 0;
  uint32_t pidNamespace = 0;  // pidNamespace() of the process
  uint32_t pid = 0;
  std::string host;    // for people; at most 32 bytes are sent
  uint8_t family = 0;  // 4 or 6
  std::array<uint8_t, 16> ip{};
  uint32_t scope = 0;  // IPv6 zone
  uint16_t port = 0;
  std::string linkKind;     // at most 15 bytes
  std::vector<char> extra;  // LinkFactory::addressExtra(), at most kMaxExtra

  static constexpr size_t kMaxExtra = 48;
};

std::vector<char> encode(const AddressRecord& record);
AddressRecord decodeAddress(std::span<const char> bytes);
// Without the zeros behind it, of which decodeAddress() would complain.
std::span<const char> withoutPadding(std::span<const char> address);

// ---- Cause ------------------------------------------------------------------

std::vector<char> encode(const internal::Cause& cause);
internal::Cause decodeCause(std::span<const char> bytes);

// ---- Dispute ----------------------------------------------------------------

// To the rank that said `yours` of an operation with this tag: another one, the
// sender or a third, said something else.
struct Dispute {
  uint64_t tag = 0;
  internal::Statement said;
  uint64_t yours = 0;
  internal::CheckDetailsPtr details;  // of `said`; null: the sender has none
};

std::vector<char> encode(const Dispute& dispute);
Dispute decodeDispute(std::span<const char> bytes);

// CRC-32C (RFC 3720, appendix B.4).
uint32_t crc32c(std::span<const char> bytes);

}  // namespace transport::base
GLOO_NAMESPACE_END
