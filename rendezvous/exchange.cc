#include "rendezvous/exchange.h"

#include <algorithm>

#include "gloo/common/error.h"
#include "rendezvous/bytes.h"

GLOO_NAMESPACE_BEGIN
namespace rendezvous {

namespace {

constexpr size_t kLengthBytes = sizeof(uint32_t);
constexpr size_t kMaxBytes = size_t{1} << 20;

void waitFor(bool complete, int peer) {
  if (!complete) {
    throw IoException(MakeString("exchanging addresses with rank ", peer,
                                 " over the mesh: aborted"));
  }
}

// Blocks of equal size. blocks[0] is this rank's; on return block i is that of
// rank (rank + i) % size. In round k a rank has the first 2^k blocks and
// passes them (or what is still missing) to rank - 2^k.
void bruck(::gloo::Context& context, std::vector<char>& blocks,
           size_t blockBytes, uint64_t firstSlot, Deadline deadline) {
  const int size = context.size;
  auto buffer = context.createUnboundBuffer(blocks.data(), blocks.size());
  uint64_t slot = firstSlot;
  for (int have = 1; have < size; have *= 2, slot++) {
    const auto count = static_cast<size_t>(std::min(have, size - have));
    const int to = (context.rank - have + size) % size;
    const int from = (context.rank + have) % size;
    buffer->recv(from, slot, static_cast<size_t>(have) * blockBytes,
                 count * blockBytes);
    buffer->send(to, slot, 0, count * blockBytes);
    waitFor(buffer->waitSend(deadline.at()), to);
    waitFor(buffer->waitRecv(deadline.at()), from);
  }
}

int roundsOf(int size) {
  int rounds = 0;
  for (int have = 1; have < size; have *= 2) {
    rounds++;
  }
  return rounds;
}

}  // namespace

std::vector<std::vector<char>> exchangeAll(::gloo::Context& context,
                                           const std::vector<char>& mine,
                                           Deadline deadline) {
  const auto size = static_cast<size_t>(context.size);
  const auto rank = static_cast<size_t>(context.rank);
  const int rounds = roundsOf(context.size);
  const auto slot =
      static_cast<uint64_t>(context.nextSlot(std::max(2 * rounds, 1)));

  std::vector<char> blocks;
  blocks.reserve(size * kLengthBytes);
  ByteWriter(blocks).u32(static_cast<uint32_t>(mine.size()));
  blocks.resize(size * kLengthBytes);
  bruck(context, blocks, kLengthBytes, slot, deadline);
  std::vector<size_t> lengths(size);
  ByteReader in(blocks);
  for (size_t i = 0; i < size; i++) {
    lengths[(rank + i) % size] = in.u32();
  }
  const size_t longest = *std::max_element(lengths.begin(), lengths.end());
  if (longest > kMaxBytes) {
    throw IoException(
        MakeString("exchanging addresses over the mesh: a rank "
                   "announced ",
                   longest, " bytes"));
  }

  blocks.assign(mine.begin(), mine.end());
  blocks.resize(size * longest);
  bruck(context, blocks, longest, slot + static_cast<uint64_t>(rounds),
        deadline);
  std::vector<std::vector<char>> all(size);
  for (size_t i = 0; i < size; i++) {
    const size_t of = (rank + i) % size;
    const char* const block = blocks.data() + i * longest;
    all[of].assign(block, block + lengths[of]);
  }
  return all;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
