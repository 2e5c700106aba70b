#!/usr/bin/env bash
# Runs a command on a real Linux RDMA stack where the host has none: boots
# Debian's stock kernel under QEMU, with rdma_rxe (Soft-RoCE) and ib_uverbs, over
# this host's file system (read through 9p; what is written stays in the guest).
#
#   run_in_guest.sh [--guests 1|2] [--cpus N] [--memory MIB] [--timeout S]
#                   [--visible DIR]... [--results DIR] COMMAND [ARGUMENT...]
#
# One guest (the default) has three devices. rxe0 is on lo (127.0.0.1): what it
# sends to itself the driver loops back. rxe1 on eth1 (10.78.0.1) and rxe2 on
# eth2 (10.78.0.2) are joined by a cable, on which faults are real: faults.sh.
# Two guests are two hosts joined by a cable: GUEST=0 and GUEST=1, 10.77.0.1 and
# 10.77.0.2, each with rxe0 on eth0. Both run the same command; what guest 1
# printed follows after what guest 0 did. GID index 1 of each device is its
# RoCE v2 address.
#
# A guest starts in the caller's folder, with the caller's GLOO_* and GTEST_*
# variables. Its /tmp, /run and /dev/shm are empty, except for the caller's
# folder, this checkout and each --visible DIR. $RESULTS is a folder that both
# guests and the caller (--results, default build/guest_results) share.
# About 40 times slower than the host: compare only what ran in one guest.
# GLOO_GUEST_ACCEL=kvm uses KVM, where that works.
#
# Exit status: the command's own (the worse of two), 124 past the time limit,
# 125 when a guest did not come up.
set -euo pipefail
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
checkout=$(realpath "$here/../..")

die() { echo "run_in_guest: $*" >&2; exit 2; }

guests=1 cpus=2 memory=3072 limit=600
results=$checkout/build/guest_results
visible=("$checkout" "$(realpath "$PWD")")
while [[ ${1:-} == --* ]]; do
  [[ $1 == -- ]] && { shift; break; }
  if [[ $1 == --help ]]; then  # the comment above
    awk 'NR > 1 && !/^#/ { exit } NR > 1 { sub(/^# ?/, ""); print }' "$0"
    exit
  fi
  (($# >= 2)) || die "$1 needs a value"
  case $1 in
    --guests) guests=$2 ;;
    --cpus) cpus=$2 ;;
    --memory) memory=$2 ;;
    --timeout) limit=$2 ;;
    --visible) visible+=("$(realpath "$2")") ;;
    --results) results=$(realpath -m "$2") ;;
    *) die "unknown option $1" ;;
  esac
  shift 2
done
(($#)) || die "no command"
[[ $guests == [12] ]] || die "--guests $guests: 1 or 2"
for number in "$cpus" "$memory" "$limit"; do
  [[ $number =~ ^[1-9][0-9]*$ ]] || die "'$number' is not a number above 0"
done
accel=${GLOO_GUEST_ACCEL:-tcg,thread=multi}
for tool in qemu-system-x86_64 busybox cpio depmod ip rdma apt-get; do
  PATH=$PATH:/usr/sbin:/sbin command -v $tool >/dev/null ||
    die "$tool is missing: ./dev rdma installs what is needed"
done
PATH=$PATH:/usr/sbin:/sbin

image=$("$here/image.sh")
mkdir -p "$results"
# Runs that share a folder for results come one after the other.
exec 8>"$results/.lock"
flock -n 8 || {
  echo "run_in_guest: waiting for another run that uses $results" >&2
  flock 8
}
control=$(mktemp -d "${TMPDIR:-/tmp}/gloo_guest.XXXXXX")
booted=()
clean_up() {
  for pid in "${booted[@]}"; do kill "$pid" 2>/dev/null || true; done
  rm -rf "$control"
}
trap clean_up EXIT
trap 'exit 130' INT TERM HUP

# ---- What a guest does. ----

for folder in "${visible[@]}"; do
  case $folder/ in
    /tmp/?* | /run/?* | /dev/shm/?*) echo "$folder" ;;
  esac
done | sort -u > "$control/folders"
{
  echo 'export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin'
  echo 'export HOME=/tmp RESULTS=/run/results GLOO_GUESTS='"$guests"
  compgen -e | grep -E '^(GLOO|GTEST)_' | while read -r name; do
    printf 'export %s=%q\n' "$name" "${!name}"
  done || true
  printf '. %q %q\n' "$here/guest/devices.sh" "$guests"
  printf 'cd %q || exit 125\n' "$PWD"
  # Through a pipe: the output is no terminal's.
  printf '%q ' "$@"
  printf "2>&1 | cat; exit \"\${PIPESTATUS[0]}\"\n"
} > "$control/command"

# An emulated guest's clock is the processor's (tsc), which QEMU keeps in step on
# all processors but does not say so: Linux would take a device (hpet), and a look
# at the clock take 730 ns instead of 70, under a lock that all processors share.
clock=
[[ $accel != tcg* ]] || clock="tsc=reliable clocksource=tsc"

# boot GUEST [QEMU options]
boot() {
  local guest=$1
  shift
  exec timeout -k 10 "$limit" qemu-system-x86_64 -machine q35 -accel "$accel" \
    -cpu max -smp "$cpus" -m "$memory" -nodefaults -display none -no-reboot \
    -kernel "$image/vmlinuz" -initrd "$image/initrd.gz" -append \
    "console=ttyS0 quiet panic=-1 mitigations=off net.ifnames=0 $clock guest=$guest limit=$limit" \
    -serial "file:$control/console$guest" \
    -device virtio-serial -chardev stdio,id=out,signal=off \
    -device virtconsole,chardev=out \
    -virtfs local,path=/,mount_tag=host,security_model=none,readonly=on,multidevs=remap \
    -virtfs "local,path=$control,mount_tag=control,security_model=none" \
    -virtfs "local,path=$results,mount_tag=results,security_model=none" \
    "$@" < /dev/null 8>&-
}

# ---- The run. ----

cable=()
if ((guests == 2)); then
  socket=addr.type=unix,addr.path=$control/cable
  cable=(-device "virtio-net-pci,netdev=cable,host_mtu=4200,mac=52:54:00:00:00:0")
  boot 0 "${cable[0]}" "${cable[1]}1" \
    -netdev "stream,id=cable,server=on,$socket" &
  booted+=($!)
  for _ in $(seq 200); do
    [[ -S $control/cable ]] && break
    sleep 0.05
  done
  boot 1 "${cable[0]}" "${cable[1]}2" \
    -netdev "stream,id=cable,server=off,$socket" > "$control/output1" &
  booted+=($!)
else
  boot 0 &
  booted+=($!)
fi

code=0
for pid in "${booted[@]}"; do wait "$pid" || code=$?; done
booted=()
if ((guests == 2)) && [[ -s $control/output1 ]]; then
  echo "---- guest 1:"
  cat "$control/output1"
fi
if ((code == 124)); then
  {
    echo "run_in_guest: past the limit of $limit s (--timeout)"
    for ((guest = 0; guest < guests; guest++)); do
      [[ ! -s $control/status$guest ]] || continue
      echo "what ran in guest $guest shortly before:"
      tail -150 "$control/console$guest"
    done
  } >&2
  exit 124
fi
worst=0
for ((guest = 0; guest < guests; guest++)); do
  if [[ ! -s $control/status$guest ]]; then
    {
      echo "run_in_guest: guest $guest did not come up, or crashed:"
      tail -20 "$control/console$guest"
    } >&2
    exit 125
  fi
  status=$(cat "$control/status$guest")
  ((status > worst)) && worst=$status
done
exit "$worst"
