#!/usr/bin/env bash
# Fails when an RDMA device of this host meets a receiver that is not ready while a
# command runs: the transport's credits are there so that none ever does, and
# a message that meets one is merely late.
#
#   without_rnr.sh COMMAND [ARGUMENT...]
#
# Where no device counts it, nothing is compared: said at the end, and an error
# beforehand in a guest, or where GLOO_REQUIRE names rnr.
set -uo pipefail

counters() { compgen -G '/sys/class/infiniband/*/ports/*/hw_counters/*rnr*'; }
sum() { counters | xargs -r cat | awk '{ n += $1 } END { print n + 0 }'; }

unchecked=
if [[ -z $(counters) ]]; then
  unchecked="no device here counts receivers that are not ready (*rnr*)"
  if [[ -n ${GUEST:-} || ,${GLOO_REQUIRE:-}, == *,rnr,* ]]; then
    echo "without_rnr: $unchecked" >&2
    exit 125
  fi
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
if [[ -n $unchecked ]]; then
  echo "without_rnr has compared nothing: $unchecked" >&2
fi
exit "$status"
