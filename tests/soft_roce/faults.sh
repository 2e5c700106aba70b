#!/usr/bin/env bash
# Faults, for tests that run in a guest of run_in_guest.sh.
#
#   faults.sh loss PERCENT    the cable loses so much of what enters either end
#   faults.sh cut             it loses everything; the ports stay up
#   faults.sh heal            it loses nothing
#   faults.sh unplug SECONDS  cut, and healed so long after the cut began
#   faults.sh up INTERFACE    the port that was set down comes up again
#   faults.sh deprive INTERFACE  its address is removed
#   faults.sh address INTERFACE  and given back
#   faults.sh memlock KIB COMMAND [ARGUMENT...]
#                             with so much lockable memory, and no right to more
set -euo pipefail

# The ends of the cable that this guest has.
ends() {
  if ((${GLOO_GUESTS:-1} == 2)); then echo eth0; else echo eth1 eth2; fi
}

loss() {
  local end
  for end in $(ends); do
    tc qdisc replace dev "$end" root netem limit 10000 loss "$1%"
  done
}

heal() {
  local end
  for end in $(ends); do
    tc qdisc del dev "$end" root 2>/dev/null || true  # none: nothing to heal
  done
}

# Nothing is waited for with a process, nor with /dev/fd, which a guest has not: on
# a busy guest a process takes as long to start.
unplug() {
  local folder begin rest seconds
  folder=$(mktemp -d)
  mkfifo "$folder/silence"
  exec 3<>"$folder/silence"
  rm -r "$folder"
  begin=${EPOCHREALTIME/./}
  loss 100
  rest=$(($1 * 1000000 - (${EPOCHREALTIME/./} - begin)))
  if ((rest > 0)); then
    printf -v seconds '%d.%06d' $((rest / 1000000)) $((rest % 1000000))
    read -rt "$seconds" -u 3 || true
  fi
  heal
}

up() {
  ip link set "$1" up
  # A port that went down forgot its neighbour.
  case $1 in
    eth1) ip neigh replace 10.78.0.2 dev eth1 \
      lladdr "$(cat /sys/class/net/eth2/address)" ;;
    eth2) ip neigh replace 10.78.0.1 dev eth2 \
      lladdr "$(cat /sys/class/net/eth1/address)" ;;
  esac
}

case ${1:-} in
  loss) loss "$2" ;;
  cut) loss 100 ;;
  heal) heal ;;
  unplug) unplug "$2" ;;
  up) up "$2" ;;
  deprive) ip address del "10.78.0.${2#eth}/24" dev "$2" ;;
  address) ip address replace "10.78.0.${2#eth}/24" dev "$2" && up "$2" ;;
  memlock)
    kib=$2
    shift 2
    drop=(setpriv --inh-caps=-ipc_lock --bounding-set=-ipc_lock)
    if (($(id -u) != 0)); then drop=(); fi  # nothing to drop
    exec prlimit --memlock=$((kib * 1024)) "${drop[@]}" "$@"
    ;;
  *)
    sed -n '2,/^set/s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
