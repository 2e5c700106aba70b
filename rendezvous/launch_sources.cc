#include "rendezvous/launch_sources.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <limits>
#include <sstream>
#include <vector>

#include "gloo/common/error.h"
#include "rendezvous/decimal.h"
#include "rendezvous/file_names.h"
#include "rendezvous/socket.h"
#include "rendezvous/store_url.h"

GLOO_NAMESPACE_BEGIN
namespace launch {

namespace {

struct Launcher {
  const char* name;
  const char* rank;
  const char* size;
  const char* localRank;
  const char* localSize;
};

constexpr Launcher kLaunchers[] = {
    {"GLOO_* variables", "GLOO_RANK", "GLOO_SIZE", "GLOO_LOCAL_RANK",
     "GLOO_LOCAL_SIZE"},
    {"torchrun", "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE"},
    {"Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"PMI", "PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS"},
    {"Slurm", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
     "SLURM_NTASKS_PER_NODE"},
};
constexpr const Launcher& kByHand = kLaunchers[0];
constexpr const Launcher& kSlurm = kLaunchers[4];

// What one launcher says.
struct Claim {
  const Launcher* launcher = nullptr;
  int rank = 0;
  int size = 0;
};

[[noreturn]] void invalid(const std::string& text) {
  throw InvalidOperationException("launch: " + text);
}

int parse(const Lookup& lookup, const char* name, int64_t low) {
  const std::string text = lookup(name).value_or("");
  int64_t value = 0;
  if (!rendezvous::parseInteger(text, low, std::numeric_limits<int>::max(),
                                &value)) {
    invalid(
        MakeString(name, " is '", text, "', not a number of at least ", low));
  }
  return static_cast<int>(value);
}

// -1 where it is not set, or, as Slurm's may be, no plain number.
int parseOptional(const Lookup& lookup, const char* name) {
  int64_t value = -1;
  const auto text = lookup(name);
  if (!text || !rendezvous::parseInteger(
                   *text, 0, std::numeric_limits<int>::max(), &value)) {
    return -1;
  }
  return static_cast<int>(value);
}

std::optional<Claim> claimOf(const Launcher& launcher, const Lookup& lookup) {
  const bool hasRank = lookup(launcher.rank).has_value();
  const bool hasSize = lookup(launcher.size).has_value();
  if (!hasRank && (!hasSize || &launcher == &kSlurm)) {
    return std::nullopt;  // Slurm's size is set in batch scripts, too
  }
  if (hasRank != hasSize) {
    invalid(MakeString(hasRank ? launcher.rank : launcher.size, " is set, but ",
                       hasRank ? launcher.size : launcher.rank,
                       " is not; set both, or neither"));
  }
  Claim claim;
  claim.launcher = &launcher;
  claim.rank = parse(lookup, launcher.rank, 0);
  claim.size = parse(lookup, launcher.size, 1);
  if (claim.rank >= claim.size) {
    invalid(MakeString(launcher.rank, " is ", claim.rank, ", but ",
                       launcher.size, " is ", claim.size,
                       ": ranks go from 0 to size - 1"));
  }
  return claim;
}

void compare(const char* nameA, int a, const char* nameB, int b) {
  if (a != b) {
    invalid(MakeString(nameA, " is ", a, ", but ", nameB, " is ", b,
                       "; unset those that are not this job's"));
  }
}

Claim chooseClaim(const Lookup& lookup) {
  std::vector<Claim> claims;
  for (const Launcher& launcher : kLaunchers) {
    if (const auto claim = claimOf(launcher, lookup)) {
      claims.push_back(*claim);
    }
  }
  if (claims.empty()) {
    invalid(
        "no launcher found; start with torchrun, mpirun or srun, or set "
        "GLOO_RANK, GLOO_SIZE and GLOO_STORE");
  }
  const Claim& chosen = claims[0];
  for (const Claim& other : claims) {
    // mpirun and torchrun run inside Slurm's steps and batch scripts, whose
    // SLURM_PROCID is that of the step and not of their processes.
    if (other.launcher == &kSlurm && chosen.launcher != &kByHand) {
      continue;
    }
    compare(chosen.launcher->rank, chosen.rank, other.launcher->rank,
            other.rank);
    compare(chosen.launcher->size, chosen.size, other.launcher->size,
            other.size);
  }
  return chosen;
}

// When the process began, in clock ticks since boot: field 22 of proc(5).
std::string startOf(int pid) {
  std::ifstream file(MakeString("/proc/", pid, "/stat"));
  std::string text;
  std::getline(file, text);
  const size_t end = text.rfind(')');
  std::istringstream fields(end == std::string::npos ? "" : text.substr(end));
  std::string field;
  for (int i = 2; i <= 22; i++) {
    fields >> field;
  }
  return field;
}

// MPICH's launcher names no job, but holds the other end of this socket.
std::string pmiJob(const Lookup& lookup) {
  const int fd = parseOptional(lookup, "PMI_FD");
  ucred peer{};
  socklen_t length = sizeof peer;
  if (fd < 0 ||
      ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 ||
      peer.pid <= 0) {
    return "";
  }
  return MakeString("pmi-", peer.pid, "-", startOf(peer.pid));
}

// Equal for the processes of a job on this host, and only for them.
std::string jobName(const Claim& claim, const Lookup& lookup) {
  const std::string launcher = claim.launcher->name;
  if (launcher == "Open MPI") {
    for (const char* name : {"PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"}) {
      if (const auto job = lookup(name)) {
        return "ompi-" + *job;
      }
    }
  } else if (launcher == "PMI") {
    return pmiJob(lookup);
  } else if (launcher == "Slurm") {
    const auto job = lookup("SLURM_JOB_ID");
    return job ? MakeString("slurm-", *job, "-",
                            lookup("SLURM_STEP_ID").value_or("batch"))
               : "";
  }
  return "";
}

bool onOneHost(const Environment& environment, const Lookup& lookup) {
  return environment.localSize == environment.size ||
         parseOptional(lookup, "SLURM_STEP_NUM_NODES") == 1;
}

// "tcp://" for the port after torchrun's own store.
std::string masterStore(const std::string& host, const Lookup& lookup) {
  constexpr int kLastPort = 65534;
  if (!lookup("MASTER_PORT")) {
    invalid("MASTER_ADDR is set, but MASTER_PORT is not; set GLOO_STORE");
  }
  const int port = parse(lookup, "MASTER_PORT", 1);
  if (port > kLastPort) {
    invalid(MakeString("MASTER_PORT is ", port,
                       ": the store takes the next "
                       "port, so at most ",
                       kLastPort, "; set GLOO_STORE"));
  }
  const bool v6 = host.find(':') != std::string::npos;
  return MakeString("tcp://", v6 ? "[" : "", host, v6 ? "]" : "", ":",
                    port + 1);
}

void chooseStore(Environment& environment, const Claim& claim,
                 const Lookup& lookup) {
  if (const auto url = lookup("GLOO_STORE")) {
    const rendezvous::StoreUrl parsed = rendezvous::parseStoreUrl(*url);
    if (parsed.kind == rendezvous::StoreUrl::Kind::kTcp && parsed.port == 0 &&
        environment.size > 1) {
      invalid(
          "GLOO_STORE has port 0: only rank 0 would know where it serves; name "
          "a port");
    }
    environment.store = *url;
    environment.source += ", store: GLOO_STORE";
    return;
  }
  if (environment.size == 1) {
    return;
  }
  if (const auto host = lookup("MASTER_ADDR")) {
    environment.store = masterStore(*host, lookup);
    environment.source += ", store: MASTER_ADDR and MASTER_PORT + 1";
    return;
  }
  const std::string job = jobName(claim, lookup);
  if (job.empty() || !onOneHost(environment, lookup)) {
    invalid(MakeString(environment.source,
                       " does not say where the ranks can meet; set GLOO_STORE "
                       "on all ranks, for example tcp://host-of-rank-0:29400"));
  }
  const std::string below = lookup("TMPDIR").value_or("/tmp");
  environment.store = MakeString("file://", below, "/gloo-", ::geteuid(), "-",
                                 rendezvous::fileNameOfKey(job).substr(4));
  environment.source += ", store: a directory of this job";
}

}  // namespace

Environment resolve(const Lookup& lookup) {
  const Claim claim = chooseClaim(lookup);
  const Launcher& launcher = *claim.launcher;
  Environment environment;
  environment.rank = claim.rank;
  environment.size = claim.size;
  environment.localRank = parseOptional(lookup, launcher.localRank);
  environment.localSize = parseOptional(lookup, launcher.localSize);
  if (&launcher == &kSlurm) {
    environment.localSize = -1;  // of the request, not of this node
  }
  environment.source =
      MakeString(launcher.name, " (", launcher.rank, ", ", launcher.size, ")");
  chooseStore(environment, claim, lookup);
  return environment;
}

void makeJobDirectory(const std::string& path) {
  struct stat info {};
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) {
    const int error = errno;
    throw IoException(MakeString("launch: cannot make ", path, ": ",
                                 rendezvous::errnoText(error),
                                 "; set TMPDIR or GLOO_STORE"));
  }
  // Somebody else could have put it into a directory that all can write to.
  if (::lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) ||
      info.st_uid != ::geteuid()) {
    throw IoException(MakeString("launch: ", path,
                                 " is not a directory of this user; remove it, "
                                 "or set TMPDIR or GLOO_STORE"));
  }
}

}  // namespace launch
GLOO_NAMESPACE_END
