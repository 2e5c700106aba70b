#!/bin/sh
# check.sh holds|caught MODEL [-D...]: searches all states of a Spin model. Must
# find no error (holds), or must find one (caught: a mutant).
set -eu
if ! command -v spin >/dev/null; then
  echo "spin is not installed (package spin)"
  case ,${GLOO_REQUIRE:-}, in
    *,spin,*) exit 1 ;;
    *) exit 77 ;; # ctest: skipped
  esac
fi
expected=$1
model=$2
shift 2
directory=$(mktemp -d)
trap 'rm -rf "$directory"' EXIT
cd "$directory"
spin -a "$@" "$model" >spin.log || { cat spin.log; exit 1; }
# A mutant is found early: what takes time is to compile its search. (States are
# small enough to be kept as they are; packed, they would take twice as long.)
# With the last choice of each first it is found sooner.
case $expected in
  holds) how=-O1 ;;
  *) how='-O0 -DT_REVERSE' ;;
esac
# shellcheck disable=SC2086
gcc $how -w -DSAFETY -DVECTORSZ=2048 -o pan pan.c
./pan -m100000 >pan.log 2>&1 || true
cat pan.log
if grep -q 'max search depth too small\|out of memory\|pan: reached' pan.log
then
  echo "the search was not exhaustive"
  exit 1
fi
case $expected in
  holds) grep -q 'errors: 0' pan.log ;;
  caught) grep -q 'errors: 1' pan.log ;;
esac
