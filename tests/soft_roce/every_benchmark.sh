#!/usr/bin/env bash
# Runs each benchmark that the program has, with messages that are not copied, and
# fails unless rank 0 says of each that has results that they were verified.
#
#   every_benchmark.sh [--half 0|1] BENCHMARK OPTION...
#
# --half: one in two of them, the even or the odd ones of the list.
# In an option @ is the number of the run, two digits: for ports and prefixes.
set -euo pipefail
half=
if [[ $1 == --half ]]; then
  half=$2
  shift 2
fi
benchmark=$1
shift

report=$(mktemp)
names=$("$benchmark" --help | sed '1,/^Benchmarks:/d' | awk '{ print $1 }')
number=10
run=0
for name in $names; do
  number=$((number + 1))
  [[ -z $half ]] || ((number % 2 == half)) || continue
  run=$((run + 1))
  rm -f "$report"
  own=()
  [[ $name != *_stress ]] || own=(--messages 5)
  "$benchmark" "${@//@/$number}" --elements 5000 "${own[@]}" \
    --warmup-iters 0 --iteration-count 2 --json "$report" "$name" >/dev/null
  # Only rank 0 reports.
  if [[ " $* " != *' -r 1 '* ]]; then
    case $name in
      barrier* | pairwise_exchange) verified=false ;; # nothing to check
      *) verified=true ;;
    esac
    if ! grep -q "\"verified\": $verified" "$report" || ! grep -q "\"$name\"" "$report"; then
      echo "$name: its report has no 'verified: $verified'" >&2
      exit 1
    fi
  fi
done
echo "$run benchmarks of $((number - 10)), each verified that has results"
((run > 0)) || { echo "--help lists none" >&2; exit 1; }
