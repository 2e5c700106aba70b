// Every environment variable that the library reads, in one place, but for
// those by which launchers tell ranks apart (gloo/launch.h).
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "gloo/common/logging.h"
#include "gloo/config.h"

GLOO_NAMESPACE_BEGIN

// A value; a copy never changes. A variable that is empty counts as not set.
// One with a bad value is ignored, with one warning that names the variable,
// the value and what is allowed; but GLOO_ALGORITHM, GLOO_TUNING_FILE and those
// for gloo::launch are then errors of the call that uses them. Booleans: 1 true
// yes on, 0 false no off. (GLOO_SOCKET_IFNAME belongs to callers: the library
// does not read it.)
struct GLOO_API Environment {
  // Reads the environment anew. Thread-safe, as long as no other thread calls
  // setenv meanwhile (getenv(3)).
  static Environment fromEnvironment();

  // GLOO_LOG_LEVEL: ERROR, WARN, INFO or DEBUG, in any case. Default WARN.
  LogLevel logLevel = LogLevel::WARN;

  // GLOO_DISABLE_CONNECTION_RETRIES: boolean. Default 0: a refused or broken
  // connection attempt is repeated until the deadline.
  bool disableConnectionRetries = false;

  // GLOO_ENABLE_STORE_V2_API: boolean. Default 1: use a store's multi_get,
  // multi_set, append and add where the store has them.
  bool enableStoreV2Api = true;

  // GLOO_ENABLE_RANK_AS_SEQUENCE_NUMBER: boolean. Default 1. Accepted for the
  // sake of existing job scripts; pairs are always identified by rank.
  bool enableRankAsSequenceNumber = true;

  // GLOO_ALGORITHM: "collective=algorithm,...", for example
  // "allreduce=ring,broadcast=binomial". Default empty: chosen by cost. Must be
  // the same on all ranks. The names are checked by the algorithms.
  std::string algorithm;

  // GLOO_SEGMENT_BYTES: bytes of a pipeline segment. Default 0: chosen by cost.
  // Must be the same on all ranks.
  uint64_t segmentBytes = 0;

  // GLOO_TUNING_FILE: path of a tuning table. Default empty: the shipped one.
  std::string tuningFile;

  // GLOO_TCP_SHM: boolean. Default 1: a tcp device uses shared memory with
  // ranks that prove to be on the same host.
  bool tcpShm = true;

  // GLOO_AUTO_LINKS: what the automatic device may use, a list of shm, ibverbs
  // and tcp. Default: all. TCP is always among them.
  bool autoShm = true;
  bool autoIbverbs = true;

  // GLOO_SHM_SINGLE_COPY: boolean. Default 1: ranks of one host read straight
  // from each other's memory where the kernel permits it, and where that is
  // quicker: large messages with more ranks than cores, and long alltoalls.
  bool shmSingleCopy = true;

  // GLOO_SPIN_US: microseconds for which a waiting thread polls before it
  // sleeps in the kernel, 0 to 1000000. Default not set: 500. Where ranks share
  // cores, a few rounds in any case; collectives in shared memory none with 0.
  std::optional<std::chrono::microseconds> spin;

  // GLOO_HOST_ID: any text. Default empty. Ranks of one machine that have
  // another text each behave as if they were on different hosts: they share no
  // memory, and collectives that know the hosts exchange between them. Read
  // when a device is made.
  std::string hostId;

  // GLOO_RANK, GLOO_SIZE: this process's rank (0 or more) and the number of
  // ranks (1 or more), for gloo::launch. Default not set.
  std::optional<int> rank;
  std::optional<int> size;

  // GLOO_STORE: where ranks meet, as a URL, for gloo::launch. Default empty.
  std::string store;
};

namespace log_detail {
// Of GLOO_LOG_LEVEL alone: the others' warnings ask for the level.
LogLevel levelOfEnvironment();
}  // namespace log_detail

GLOO_NAMESPACE_END
