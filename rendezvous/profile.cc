#include "gloo/internal/profile.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <iterator>

#include "gloo/common/env.h"
#include "gloo/common/error.h"
#include "gloo/internal/cores.h"
#include "rendezvous/agreed_profile.h"
#include "rendezvous/bytes.h"
#include "rendezvous/record.h"
#include "rendezvous/socket.h"

GLOO_NAMESPACE_BEGIN
namespace internal {

namespace {

constexpr uint8_t kVersion = 2;

// What rank 0 can publish, with room for the rest of a profile; the path may
// name what never ends.
constexpr size_t kMaxTuningBytes =
    rendezvous::Record::kMaxExtraBytes - (size_t{1} << 10);

std::string readTuning(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text(kMaxTuningBytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad()) {
    throw InvalidOperationException(MakeString("GLOO_TUNING_FILE: cannot read ",
                                               path, ": ",
                                               rendezvous::errnoText(errno)));
  }
  text.resize(static_cast<size_t>(file.gcount()));
  if (text.empty()) {  // which would mean that there is none
    throw InvalidOperationException(
        MakeString("GLOO_TUNING_FILE: ", path,
                   " is empty; write it with 'benchmark --tune FILE'"));
  }
  if (text.size() > kMaxTuningBytes) {
    throw InvalidOperationException(MakeString(
        "GLOO_TUNING_FILE: ", path, " has more than ", kMaxTuningBytes,
        " bytes: it is no tuning table, which "
        "benchmark --tune writes"));
  }
  return text;
}

std::string describeTuning(const std::string& text) {
  return text.empty()
             ? std::string("the shipped table")
             : MakeString("a table of ", text.size(), " bytes, checksum ",
                          std::hex, rendezvous::checksum(text));
}

// Of this host, if this process may use all of them, or as many as its
// container may keep busy. One that may not is maybe one of several that a
// launcher has put on different ones: 0.
uint32_t processors() {
  const long online = sysconf(_SC_NPROCESSORS_ONLN);
  cpu_set_t own;
  const bool all = sched_getaffinity(0, sizeof(own), &own) == 0 &&
                   CPU_COUNT(&own) >= online && online > 0;
  return all ? static_cast<uint32_t>(
                   std::min<long>(online, internal::usableCores()))
             : 0;
}

}  // namespace

Profile Profile::fromEnvironment() {
  const Environment environment = Environment::fromEnvironment();
  Profile profile;
  profile.forced = environment.algorithm;
  profile.segmentBytes = environment.segmentBytes;
  profile.cores = processors();
  if (!environment.tuningFile.empty()) {
    profile.tuning = readTuning(environment.tuningFile);
  }
  return profile;
}

std::vector<char> Profile::serialize() const {
  std::vector<char> bytes;
  rendezvous::ByteWriter out(bytes);
  out.u8(kVersion);
  out.u64(segmentBytes);
  out.u32(cores);
  out.text(forced);
  out.text(tuning);
  return bytes;
}

Profile Profile::deserialize(const std::vector<char>& bytes) {
  rendezvous::ByteReader in(bytes);
  const int version = in.u8();
  Profile profile;
  profile.segmentBytes = in.u64();
  profile.cores = in.u32();
  profile.forced = rendezvous::toString(in.text());
  profile.tuning = rendezvous::toString(in.text());
  if (!in.ok() || in.left() != 0 || version != kVersion) {
    throw RendezvousException(MakeString(
        "rank 0's profile (version ", version, ", ", bytes.size(),
        " bytes) cannot be read; use one release of the library on all ranks"));
  }
  return profile;
}

std::string Profile::difference(const Profile& other) const {
  if (forced != other.forced) {
    return MakeString("GLOO_ALGORITHM is '", forced, "' here and '",
                      other.forced, "' there");
  }
  if (segmentBytes != other.segmentBytes) {
    return MakeString("GLOO_SEGMENT_BYTES is ", segmentBytes, " here and ",
                      other.segmentBytes, " there");
  }
  if (tuning != other.tuning) {
    return MakeString("GLOO_TUNING_FILE is ", describeTuning(tuning),
                      " here and ", describeTuning(other.tuning), " there");
  }
  return "";
}

}  // namespace internal

namespace rendezvous {

std::shared_ptr<internal::Profile> agreeOnProfile(
    const internal::Profile& wanted, const std::vector<char>& serialized,
    std::string* disagreement) {
  auto agreed = std::make_shared<internal::Profile>(
      internal::Profile::deserialize(serialized));
  internal::Profile mine = *agreed;
  if (!wanted.forced.empty()) {
    mine.forced = wanted.forced;
  }
  if (wanted.segmentBytes != 0) {
    mine.segmentBytes = wanted.segmentBytes;
  }
  if (!wanted.tuning.empty()) {
    mine.tuning = wanted.tuning;
  }
  *disagreement = mine.difference(*agreed);
  return agreed;
}

}  // namespace rendezvous
GLOO_NAMESPACE_END
