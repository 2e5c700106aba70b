#include "algorithms/tuning.h"

#include <algorithm>

GLOO_NAMESPACE_BEGIN
namespace algorithms {
namespace {

// Within a host: fitted to the times of all algorithms at 3, 4, 7 and 8 ranks
// on a machine with two cores, whose caches hold what one rank sends and
// another receives; other machines should measure.
constexpr LinkParameters kTcpInside{1e-6, 2e-6, 2.4e-6, 1e-10, true, 1.3};
constexpr LinkParameters kShmInside{1.1e-6, 0.15e-6, 0.3e-6, 1.5e-10, true};
// Typical: Ethernet of 25 Gb/s, and an RDMA network of 100 Gb/s.
constexpr LinkParameters kTcpBetween{16e-6, 2e-6, 3e-6, 4e-10, true};
constexpr LinkParameters kVerbs{1.5e-6, 0.3e-6, 0.3e-6, 9e-11};
// Ranks that share a host and yet use verbs have Soft-RoCE, most likely: the
// processor that posts moves the bytes, and each message is system calls.
constexpr LinkParameters kSoftVerbs{1e-6, 4e-6, 5e-6, 2.5e-10, true};

constexpr double kReducePerByte = 1e-10;
constexpr double kCopyPerByte = 1e-10;
// What the processor has just received, and is in its cache. What is copied at
// the end has left it.
constexpr double kReduceCachedPerByte = 6e-11;

// A call of sched_yield, and a look at the links.
constexpr double kSwitching = 1.2e-6;
constexpr double kLocalStep = 0.25e-6;

// Three segments of TCP over loopback, less the head of a frame; where all
// ranks share a host one of what is reduced in a short vector, as it is in a
// cache then. (Measured with 2, 4 and 8 ranks on 2 cores: reduces up to a third
// faster, but what is only passed on or kept a tenth to a fifth slower: each is
// system calls.)
constexpr size_t kTcpSegment = 196352;
constexpr size_t kTcpReducedSegment = 65408;
constexpr size_t kLongSegment = size_t{1} << 20;

// Up to here a vector, or those of all ranks together (OfAll, and OfCrowd where
// it is divided by the ranks), is not cut into slices. Measured on 16 cores, of
// an allreduce: slices win from 6 KiB on with 3 ranks, and with 4 to 16 from 1
// KiB on; of a reduce, from where the root's own cache (2 MiB) does not hold
// what it reads. On 2 cores, where slices are three rounds instead of one and
// reduced no faster: allreduce from 8 and from 24 KiB on (4 ranks, two
// machines), from 5 and from 12 (8 ranks); reduce from 2 MiB on.
constexpr size_t kFlatOfAll = size_t{16} << 10;
constexpr size_t kMostFlat = size_t{1} << 10;
constexpr size_t kMostFlatOfThree = size_t{4} << 10;
constexpr size_t kFlatOfCrowd = size_t{48} << 10;
constexpr size_t kRootedOfAll = size_t{2} << 20;
constexpr size_t kRootedOfCrowd = size_t{2} << 20;
// Measured with 2, 3, 4 and 8 ranks on 2 cores, the time by one copy of the
// kernel's to that of two: 512 KiB .97 to 1.07, 1 MiB .90 to .93, 4 MiB .80 to
// .86.
constexpr size_t kRead = size_t{1} << 20;

}  // namespace

DirectParameters shippedDirectParameters(int ranks) {
  const auto n = static_cast<size_t>(ranks);
  DirectParameters direct;
  direct.flatBytes = {
      std::min(kFlatOfAll / n, ranks <= 3 ? kMostFlatOfThree : kMostFlat),
      kFlatOfCrowd / n};
  direct.rootedBytes = {kRootedOfAll / n, kRootedOfCrowd};
  direct.halvedBytes = DirectParameters::kShippedHalved;
  direct.inPlaceBytes = DirectParameters::kShippedInPlace;
  direct.readBytes = kRead;
  return direct;
}

Tuning shippedTuning(const std::string& transport, int size, bool oneHost) {
  const bool verbs = transport == "ibverbs";
  const bool shm = transport == "shm" || transport == "auto";
  Tuning tuning;
  tuning.network.between = verbs ? kVerbs : kTcpBetween;
  tuning.network.inside = verbs && oneHost ? kSoftVerbs
                          : verbs          ? kVerbs
                          : shm            ? kShmInside
                                           : kTcpInside;
  tuning.network.ranksPerHost = oneHost ? size : 1;
  const bool cached = oneHost && !verbs && !shm;
  tuning.network.reducePerByte = cached ? kReduceCachedPerByte : kReducePerByte;
  tuning.network.copyPerByte = kCopyPerByte;
  tuning.network.switching = kSwitching;
  tuning.network.localStep = kLocalStep;
  tuning.segmentBytes = verbs || oneHost ? kLongSegment : kTcpSegment;
  tuning.shortSegmentBytes = cached ? kTcpSegment : 0;
  tuning.reducedSegmentBytes = cached ? kTcpReducedSegment : 0;
  tuning.direct = shippedDirectParameters(size);
  return tuning;
}

}  // namespace algorithms
GLOO_NAMESPACE_END
