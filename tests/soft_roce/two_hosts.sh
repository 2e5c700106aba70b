#!/usr/bin/env bash
# Runs in each of two guests: all benchmarks across hosts over ibverbs, where ranks
# meet at a Redis server and at rank 0's TCP store: half of them at each, with "all"
# as $2 every one at both. $1: the benchmark program, which checks every element.
set -euo pipefail
benchmark=$1
[[ ${2:-} == all ]] && all=1 || all=0
server=10.77.0.1

if ((GUEST == 0)); then
  redis-server --bind "$server" --port 6379 --save '' --protected-mode no \
    --daemonize yes >/dev/null
fi
# Both guests boot at their own pace.
for ((i = 0; ; i++)); do
  redis-cli -h "$server" ping 2>/dev/null | grep -q PONG && break
  ((i < 300)) || { echo "no Redis server at $server" >&2; exit 1; }
  sleep 0.2
done

here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
# every HALF OPTION...
every() {
  local half=(--half "$1")
  ((all)) && half=()
  "$here/every_benchmark.sh" "${half[@]}" "$benchmark" -s 2 -r "$GUEST" \
    -t ibverbs "${@:2}"
}
echo "over Redis"
every 0 -h "$server" -p 6379 -x every@
echo "over the TCP store"
every 1 --store "tcp://$server:71@"

# Of many segments.
names=(allreduce_halving_doubling broadcast)
sizes=(300000)
if ((all)); then
  names+=(allreduce_ring_chunked new_allreduce_ring barrier_all_to_all)
  sizes=(1 10000 300000)
fi
for name in "${names[@]}"; do
  for elements in "${sizes[@]}"; do
    echo "$name, $elements elements"
    "$benchmark" -s 2 -r "$GUEST" -h "$server" -p 6379 -x "$name$elements" \
      -t ibverbs --elements "$elements" --iteration-count 5 --warmup-iters 1 \
      "$name"
  done
done

# Two ranks on each: the automatic device takes shared memory within a host, and
# RDMA between them.
echo "mixed mesh of 4 ranks"
output=$(mktemp)
"$benchmark" -s 4 -r $((2 * GUEST + 1)) -h "$server" -p 6379 -x mixed \
  --tcp-device eth0 --elements 30000 --iteration-count 3 --warmup-iters 1 \
  allreduce >/dev/null &
"$benchmark" -s 4 -r $((2 * GUEST)) -h "$server" -p 6379 -x mixed \
  --tcp-device eth0 --elements 30000 --iteration-count 3 --warmup-iters 1 \
  allreduce | tee "$output"
wait $!
((GUEST > 0)) || grep -q 'links=shm,ibverbs ' "$output" ||
  { echo "the links are not shm,ibverbs" >&2; exit 1; }

# The server outlives the other guest's last word to it.
redis-cli -h "$server" incr finished >/dev/null
if ((GUEST == 0)); then
  for ((i = 0; i < 300; i++)); do
    (($(redis-cli -h "$server" get finished) >= 2)) && exit 0
    sleep 0.2
  done
  echo "the other guest did not finish" >&2
  exit 1
fi
