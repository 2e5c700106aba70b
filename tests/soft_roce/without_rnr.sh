#!/usr/bin/env bash
# Fails when an RDMA device of this host meets a receiver that is not ready while a
# command runs: the transport's credits are there so that none ever does, and
# a message that meets one is merely late.
#
#   without_rnr.sh COMMAND [ARGUMENT...]
set -uo pipefail

counters() { compgen -G '/sys/class/infiniband/*/ports/*/hw_counters/*rnr*'; }
sum() { counters | xargs -r cat | awk '{ n += $1 } END { print n + 0 }'; }

if [[ -n ${GUEST:-} && -z $(counters) ]]; then
  echo "without_rnr: this guest's devices count no such thing" >&2
  exit 125
fi
before=$(sum)
"$@"
status=$?
met=$(($(sum) - before))
if ((met)); then
  echo "without_rnr: $met sends met a receiver that was not ready:" >&2
  counters | while read -r name; do echo "  $name $(cat "$name")" >&2; done
  ((status)) || status=1
fi
exit "$status"
