#!/usr/bin/env python3
"""Compares this library with Debian's libgloo, Open MPI and MPICH.

All programs do the same work (see harness/measure.h), one after the other,
round after round; the medians of the rounds are printed and drawn, and the
medians of the ratios of ours to each peer in the same round.
"""

import argparse
import itertools
import os
import sys

import chart
import job
import programs
import results

COLLECTIVES = ("allreduce", "reduce", "broadcast", "allgather",
               "reduce_scatter", "alltoall", "barrier", "pingpong")
FULL_SIZES = (4, 1 << 10, 64 << 10, 1 << 20, 16 << 20, 64 << 20)
SAME_HOST_SIZES = (4, 64, 1 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20,
                   4 << 20, 16 << 20, 64 << 20)
QUICK_SIZES = (4, 64 << 10, 1 << 20)
FULL_BUDGET_MS, QUICK_BUDGET_MS = 200, 5
MOST_MODES = 5  # of a program and a collective: libgloo's allreduce has them
NAMES = ("ours", "ours-shared", "libgloo", "openmpi", "mpich", "limit")


def _list_of(convert, choices=None):
    def parse(text):
        items = []
        for part in text.split(","):
            try:
                item = convert(part)
            except ValueError:
                raise argparse.ArgumentTypeError(
                    f"'{part}' is not a number") from None
            if choices and item not in choices:
                raise argparse.ArgumentTypeError(
                    f"unknown '{part}'; choose from {', '.join(choices)}")
            if convert is int and item < 1:
                raise argparse.ArgumentTypeError(f"'{part}' is less than 1")
            items.append(item)
        return items
    return parse


class _Parser(argparse.ArgumentParser):
    def error(self, message):
        self.exit(2, f"compare: {message}\n")


def _arguments():
    here = os.path.dirname(os.path.abspath(__file__))
    parser = _Parser(prog="compare", description=__doc__)
    parser.add_argument("--quick", action="store_true",
                        help="few sizes, short: under a minute")
    parser.add_argument("--ranks", type=_list_of(int), default=[2, 4])
    parser.add_argument("--sizes", type=_list_of(int), help="bytes, ...")
    parser.add_argument("--offset", type=int, default=0, metavar="BYTES",
                        help="where in a page vectors begin (0); 16 is where "
                        "malloc() puts long ones")
    parser.add_argument("--collectives", default=["allreduce"],
                        type=_list_of(str, COLLECTIVES),
                        help="pingpong: messages of 8 bytes or more between "
                        "2 ranks, one way")
    parser.add_argument("--transport", default=["tcp"],
                        type=_list_of(str, ("tcp", "shm", "auto")))
    parser.add_argument("--programs", default=list(NAMES),
                        type=_list_of(str, NAMES))
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--budget", type=int, metavar="MS",
                        help="milliseconds for each size in each repetition")
    parser.add_argument("--json", metavar="FILE", help="write the medians")
    parser.add_argument("--plot", metavar="FILE", default="compare.svg",
                        help="where the chart goes (SVG)")
    parser.add_argument("--check", action="store_true",
                        help="exit with 1 unless every bar was met")
    parser.add_argument("--build-dir", metavar="DIR",
                        default=os.path.join(here, "..", "..", "build",
                                             "release"),
                        help="where the project was built (build/release)")
    parser.add_argument("--options-only", action="store_true",
                        help="only say whether the options are good")
    arguments = parser.parse_args()
    if arguments.repetitions < 1:
        parser.error("--repetitions must be at least 1")
    if arguments.budget is not None and arguments.budget < 1:
        parser.error("--budget must be at least 1")
    for ranks in arguments.ranks:
        if not 2 <= ranks <= 32:
            parser.error(f"--ranks {ranks}: from 2 to 32")
    for size in arguments.sizes or []:
        if size % 4:
            parser.error(f"--sizes {size}: not a multiple of 4")
    if not 0 <= arguments.offset < 4096 or arguments.offset % 4:
        parser.error(f"--offset {arguments.offset}: a multiple of 4 below "
                     "4096")
    for option, path in (("--json", arguments.json),
                         ("--plot", arguments.plot)):
        if path is not None and not results.can_write(path):
            parser.error(f"{option}: cannot write '{path}'")
    return arguments


class Progress:
    """One line that rewrites itself, when stderr is a terminal."""

    def __init__(self, total):
        self._total, self._done = total, 0
        self._shown = sys.stderr.isatty()

    def step(self, text):
        self._done += 1
        if self._shown:
            print(f"\r\x1b[K[{self._done}/{self._total}] {text}", end="",
                  file=sys.stderr, flush=True)

    def note(self, text):
        start = "\r\x1b[K" if self._shown else ""
        print(f"{start}compare: {text}", file=sys.stderr)

    def clear(self):
        if self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def sizes_of(arguments, transport):
    """The bytes that are measured over a transport: those of its bars."""
    if arguments.sizes:
        return arguments.sizes
    if arguments.quick:
        return QUICK_SIZES
    # (The limit, over shared memory, is measured beside TCP, too.)
    if transport == "tcp" or set(arguments.transport) == {"tcp"}:
        return FULL_SIZES
    return SAME_HOST_SIZES


class Comparison:
    def __init__(self, arguments):
        self._arguments = arguments
        self._results = results.Results()
        self._failed = set()
        self.ours_failed = False
        self._budget = arguments.budget or (
            QUICK_BUDGET_MS if arguments.quick else FULL_BUDGET_MS)

    def _entrants(self):
        found = []
        for entrant in programs.entrants(self._arguments.build_dir,
                                         self._arguments.transport):
            if entrant.name not in self._arguments.programs:
                continue
            missing = entrant.missing()
            if missing:
                print(f"compare: without {entrant.label()}: {missing}",
                      file=sys.stderr)
                self.ours_failed |= entrant.name in programs.OURS
            else:
                found.append(entrant)
        return found

    def _launch(self, entrant, ranks, progress):
        """One run; a peer that fails once (a busy machine) gets another."""
        collectives = self._arguments.collectives
        sizes = sizes_of(self._arguments, entrant.transport)
        # A size may take 8 times its budget, in each mode.
        points = len(sizes) * len(collectives) * MOST_MODES
        timeout_s = 30 + points * 8 * self._budget / 1000
        options = ["--collectives", ",".join(collectives),
                   "--sizes", ",".join(map(str, sizes)),
                   "--offset", str(self._arguments.offset),
                   "--budget", str(self._budget)]

        def run():
            return job.run(entrant.commands(ranks, options),
                           entrant.environment, timeout_s)
        if entrant.name in programs.OURS:
            return run()
        try:
            return run()
        except job.NotAvailable:
            raise
        except job.JobError as error:
            progress.note(f"{entrant.label()}, {ranks} ranks, is run again: "
                          f"{error}")
            return run()

    def _one(self, entrant, ranks, number, progress):
        try:
            rows = self._launch(entrant, ranks, progress)
        except job.JobError as error:
            rows = error.rows
            self._failed.add((entrant, ranks))
            self.ours_failed |= entrant.name in programs.OURS
            progress.note(f"{entrant.label()} ({entrant.transport}), {ranks} "
                          f"ranks, is left out from now on: {error}")
        for row in rows:
            self._results.add(entrant, row, number)

    def run(self):
        """The rows of all medians."""
        entrants = self._entrants()
        repetitions = range(self._arguments.repetitions)
        progress = Progress(len(repetitions) * len(self._arguments.ranks)
                            * len(entrants))
        for repetition, ranks in itertools.product(repetitions,
                                                   self._arguments.ranks):
            # Nobody always runs in the wake of the same neighbour.
            turn = repetition % max(len(entrants), 1)
            for entrant in entrants[turn:] + entrants[:turn]:
                progress.step(f"round {repetition + 1}: {ranks} ranks, "
                              f"{entrant.label()} ({entrant.transport})")
                if (entrant, ranks) not in self._failed:
                    self._one(entrant, ranks, repetition, progress)
        progress.clear()
        return self._results.rows()


def _panels(rows, arguments):
    """{(collective, transport): {ranks: rows}}, without empty ones."""
    panels = {}
    for collective, transport, ranks in itertools.product(
            arguments.collectives, arguments.transport, arguments.ranks):
        peers = "tcp" if transport == "tcp" else "shm"
        chosen = [row for row in rows
                  if row["collective"] == collective and row["ranks"] == ranks
                  and (row["program"] == "limit" or row["transport"] ==
                       (transport if row["program"] in programs.OURS
                        else peers))]
        sizes = {row["bytes"] for row in chosen if row["program"] != "limit"}
        if sizes:  # what is measured for the limit alone belongs elsewhere
            chosen = [row for row in chosen if row["bytes"] in sizes]
        if chosen:
            panels.setdefault((collective, transport), {})[ranks] = chosen
    return panels


def _print_tables(panels, repetitions, offset):
    offset = f", vectors {offset} bytes into a page" if offset else ""
    verdicts = results.Verdicts()
    for (collective, transport), by_ranks in panels.items():
        for ranks, rows in by_ranks.items():
            links = sorted({link for row in rows if row["program"] == "ours"
                            for link in row["links"]})
            used = f"; ours used {', '.join(links)}" if links else ""
            print(f"{collective}, float32, {ranks} ranks, {transport}: p50 in "
                  f"us, medians of {repetitions} repetitions{offset}{used}")
            print(results.table(rows, collective, ranks, transport, verdicts))
            print()
    print(verdicts)
    return verdicts


def main():
    arguments = _arguments()
    if arguments.options_only:
        return 0
    comparison = Comparison(arguments)
    rows = comparison.run()
    panels = _panels(rows, arguments)
    if not panels:
        print("compare: nothing could be measured", file=sys.stderr)
        return 1
    verdicts = _print_tables(panels, arguments.repetitions, arguments.offset)
    if arguments.json is not None:
        results.write(rows, arguments.json)
    with open(arguments.plot, "w", encoding="utf-8") as file:
        file.write(chart.draw(panels, "Time of a collective operation among "
                                      "processes of one host"))
    print(f"chart: {arguments.plot}")
    if comparison.ours_failed:
        return 1
    return verdicts.status() if arguments.check else 0


if __name__ == "__main__":
    try:
        sys.exit(job.status_of(main))
    except OSError as error:
        print(f"compare: {error}", file=sys.stderr)
        sys.exit(1)
