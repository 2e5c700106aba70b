#include "tests/transport/shm/harness.h"

#include <sys/socket.h>

GLOO_NAMESPACE_BEGIN
namespace test {

using namespace transport::shm;  // NOLINT
using transport::base::FrameHeader;
using transport::base::FrameType;
using transport::base::UniqueFd;

RingStorage::RingStorage(uint32_t cells, uint32_t bytes)
    : storage_(RingMemory::size(cells, bytes) / sizeof(Block) + 1) {
  char* at = storage_.front().bytes;
  ring_.control = new (at) RingControl{};
  ring_.cells = reinterpret_cast<Cell*>(at + sizeof(RingControl));
  for (uint32_t i = 0; i < cells; i++) {
    new (&ring_.cells[i]) Cell{};
  }
  ring_.bytes = reinterpret_cast<char*>(ring_.cells + cells);
  ring_.cellCount = cells;
  ring_.byteCount = bytes;
}

char* Notes::onPayload(const FrameHeader& header) {
  place.resize(header.payloadBytes);
  return place.data();
}

void Notes::onFrame(const FrameHeader& header, const char* payload) {
  payloads.emplace_back(payload != nullptr ? payload : "", header.payloadBytes);
}

void Notes::onBound(uint32_t index, uint64_t offset, const char* payload,
                    size_t bytes) {
  bound.push_back(std::to_string(index) + "@" + std::to_string(offset) + ":" +
                  std::string(payload, bytes));
}

void Notes::onLost(internal::Cause cause, bool inOrder) {
  lost = cause.text;
  ended = inOrder;
  whenLost();
}

HalfLink::HalfLink(ProcessMemory memory, pid_t pid)
    : segment(Segment::create(ringSizeFor(1), makeSecret())) {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0,
                   fds) != 0) {
    throw std::runtime_error("socketpair");
  }
  Connection connection;
  connection.segment = segment;
  connection.socket = UniqueFd(fds[0]);
  connection.pid = pid;
  connection.memory = std::move(memory);
  otherSocket = UniqueFd(fds[1]);
  transport::base::LinkCaps caps;
  caps.maxFrameBytes = 512 << 10;
  link = std::make_unique<ShmLink>(poller, std::move(connection), caps, notes);
}

FrameHeader eager(uint64_t number, size_t bytes) {
  FrameHeader header;
  header.type = FrameType::kData;
  header.flags =
      transport::base::FrameFlag::kFirst | transport::base::FrameFlag::kLast;
  header.slot = 7;
  header.number = number;
  header.bytes = bytes;
  header.payloadBytes = static_cast<uint32_t>(bytes);
  return header;
}

}  // namespace test
GLOO_NAMESPACE_END
