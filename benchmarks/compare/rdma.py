#!/usr/bin/env python3
"""Compares messages and allreduce over RDMA with perftest's bare verbs and with
Debian's libgloo, round after round on one device of this machine, and says
which of the bars in rdma_report.py hold. See ./dev rdma-compare."""

import argparse
import os
import shutil
import sys
import time

import job
import perftest
import rdma_probe
import rdma_report as report
import results

STREAM_BYTES = 8 << 20  # that perftest moves for one figure
# A guest's processors have two speeds for short messages, a fifth apart, and
# keep one for as long as a process or a second: latencies, which take a moment,
# are measured so many times in each round, one program after the other.
LATENCY_TURNS = 5
# Of libgloo, which takes a second or two, or hangs.
PROBE_BUDGET_MS = 30
PROBE_TIMEOUT_S = 15
LIBGLOO_TIMEOUT_S = 30


class Step:
    """Something that is measured once in each round, or in several turns."""

    def __init__(self, program, label, run, turns=1):
        self.program = program
        self.label = label
        self.turns = turns
        self.may_fail = program == "libgloo"  # hangs and crashes over RDMA
        self._run = run

    def attempt(self):
        """Rows. A peer that fails once (a busy machine) gets another try."""
        try:
            return self._run()
        except job.JobError:
            if self.program == "ours":
                raise
            return self._run()


def _row(mode, collective, size, p50, least):
    return {"mode": mode, "collective": collective, "ranks": 2, "bytes": size,
            "p50_us": p50, "min_us": least, "links": "ibverbs"}


def _perftest_steps(device, timeout_s):
    def write(size, both):
        iterations = max(STREAM_BYTES // size, 16)
        rate = perftest.bandwidth(device, size, iterations, both, timeout_s)
        name = "both_ways" if both else "stream"
        return [_row("ib_write_bw" + (" -b" if both else ""), name, size,
                     size / rate, size / rate)]

    def lat(program):
        p50, least = perftest.latency(program, device, report.LATENCY_BYTES,
                                      2000, timeout_s)
        return [_row(program, "latency", report.LATENCY_BYTES, p50, least)]

    for size in report.PERFTEST_SIZES:
        for both in (False, True):
            yield Step("perftest",
                       f"perftest, {size} bytes{', both ways' if both else ''}",
                       lambda size=size, both=both: write(size, both))
    def exchange(size):
        time_us = perftest.exchange(device, size, 2000, timeout_s)
        return [_row("ib_send_bw -b -t 1", "exchange", size, time_us, time_us)]

    for size in report.EXCHANGE_SIZES:
        yield Step("perftest", f"perftest, exchange of {size} bytes",
                   lambda size=size: exchange(size), LATENCY_TURNS)
    for program in report.LATENCY_PEERS:
        yield Step("perftest", program, lambda program=program: lat(program),
                   LATENCY_TURNS)


def _runner(arguments, path, sizes, budget_ms, timeout_s):
    """A function of the mode that runs the program: its rows."""
    def run(mode):
        return job.run([
            [path, "--directory", "{directory}", "--transport", "ibverbs",
             "--device", arguments.device, "--sizes", ",".join(map(str, sizes)),
             "--budget", str(budget_ms), "--mode", mode, "--rank", str(rank),
             "--size", "2"] for rank in range(2)], {}, timeout_s)
    return run


def _our_steps(arguments, budget_ms, timeout_s):
    compare = os.path.join(arguments.build_dir, "benchmarks", "compare")
    for what, program, sizes, turns in (
            ("latency", "messages", [report.LATENCY_BYTES], LATENCY_TURNS),
            ("streams", "messages", report.STREAM_SIZES, 1),
            ("allreduce", "ours", report.ALLREDUCE_SIZES, 1)):
        run = _runner(
            arguments, os.path.join(compare, f"compare_{program}"), sizes,
            budget_ms, timeout_s)
        for mode in ("busy", "default"):
            yield Step("ours", f"ours, {what}, {mode}",
                       lambda run=run, mode=mode: run(mode), turns)


def _libgloo_steps(arguments, budget_ms):
    """The steps, and the table of what was tried first."""
    sizes = report.ALLREDUCE_SIZES
    path = os.path.join(arguments.build_dir, "benchmarks", "peers", "libgloo",
                        "peer_libgloo")
    probes = rdma_probe.probe_all(_runner(
        arguments, path, sizes, PROBE_BUDGET_MS, PROBE_TIMEOUT_S))
    steps = []
    for mode, those in rdma_probe.fastest(probes, sizes).items():
        run = _runner(arguments, path, those, budget_ms, LIBGLOO_TIMEOUT_S)
        steps.append(Step("libgloo", f"libgloo, allreduce, {mode}",
                          lambda run=run, mode=mode: run(mode)))
    return steps, rdma_probe.table(probes, sizes)


class Entrant:
    """What results.Results wants to know of a row."""

    transport = "ibverbs"

    def __init__(self, name):
        self.name = name


def _measure(steps, rounds):
    """The rows of all medians, and the labels of the steps that failed but must
    not."""
    collected, failed = results.Results(), []
    for number in range(rounds):
        first = number % len(steps)  # nobody always follows the same neighbour
        for turn in range(LATENCY_TURNS):
            for step in steps[first:] + steps[:first]:
                if turn < step.turns and step.label not in failed:
                    rows = _take(step, number + 1, failed)
                    for row in rows:
                        collected.add(Entrant(step.program), row,
                                      number * LATENCY_TURNS + turn)
    return collected.rows(), [step.label for step in steps
                              if step.label in failed and not step.may_fail]


def _take(step, number, failed):
    """Its rows; in the round of that number, from 1 on."""
    before = time.monotonic()
    try:
        rows = step.attempt()
    except job.JobError as error:
        failed.append(step.label)
        rows = error.rows
        print(f"rdma-compare: {step.label} did not complete and is left out "
              f"from now on: {error}", file=sys.stderr)
    print(f"round {number}: {step.label}: {time.monotonic() - before:.0f} s",
          file=sys.stderr, flush=True)
    return rows


def _first_device():
    devices = sorted(os.listdir("/sys/class/infiniband")) if os.path.isdir(
        "/sys/class/infiniband") else []
    if not devices:
        sys.exit("rdma-compare: this machine has no RDMA device")
    return devices[0]


def _arguments():
    # (./dev looks for --json, too.)
    parser = argparse.ArgumentParser(prog="rdma-compare", description=__doc__,
                                     allow_abbrev=False)
    parser.add_argument("--quick", action="store_true",
                        help="3 rounds, short: figures that only orient")
    parser.add_argument("--rounds", type=int, help="default 5")
    parser.add_argument("--device", help="default: the first one")
    parser.add_argument("--json", metavar="FILE", help="write the medians")
    parser.add_argument("--check", action="store_true",
                        help="exit with 1 unless every bar was met")
    parser.add_argument("--build-dir", metavar="DIR", required=True)
    parser.add_argument("--options-only", action="store_true",
                        help="only say whether the options are good")
    arguments = parser.parse_args()
    if arguments.rounds is None:
        arguments.rounds = 3 if arguments.quick else 5
    if arguments.rounds < 1:
        parser.error("--rounds must be at least 1")
    if arguments.json is not None and not results.can_write(arguments.json):
        parser.error(f"--json: cannot write '{arguments.json}'")
    return arguments


def main():
    arguments = _arguments()
    if arguments.options_only:
        return 0
    arguments.device = arguments.device or _first_device()
    for tool in ("ib_write_bw", *report.LATENCY_PEERS):
        if shutil.which(tool) is None:
            sys.exit(f"rdma-compare: {tool} is missing (package perftest)")
    timeout_s = 300  # of one step: a guest on a busy machine is slow
    budget_ms = 50 if arguments.quick else 300
    try:
        libgloo, tried = _libgloo_steps(arguments, budget_ms)
    except job.NotAvailable as error:
        sys.exit(f"rdma-compare: {error}")
    print(f"tried first, medians of {rdma_probe.ROUNDS} in us; * is compared\n"
          f"{tried}\n", flush=True)
    steps = [*_perftest_steps(arguments.device, timeout_s),
             *_our_steps(arguments, budget_ms, timeout_s), *libgloo]
    rows, failed = _measure(steps, arguments.rounds)
    verdicts = results.Verdicts()
    print(f"on {arguments.device}, medians of {arguments.rounds} rounds")
    print(report.tables(rows, verdicts))
    print(verdicts)
    if arguments.json is not None:
        results.write(rows, arguments.json)
    if failed:
        print(f"rdma-compare: failed: {'; '.join(failed)}", file=sys.stderr)
        return 1
    return verdicts.status() if arguments.check else 0


if __name__ == "__main__":
    sys.exit(job.status_of(main))
