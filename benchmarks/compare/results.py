"""Medians over the rounds, and the table of ratios."""

import json
import os
import sys
from collections import defaultdict
from statistics import median

from bars import BARS

TITLES = {"ours": "ours", "ours-shared": "ours, shared memory",
          "libgloo default": "libgloo", "libgloo busy": "libgloo busy",
          "openmpi": "Open MPI", "mpich": "MPICH", "limit": "limit"}


class Timing(float):
    """The median of a time over the rounds, in microseconds, with what it was
    in each: {round: time}."""

    def __new__(cls, rounds):
        timing = super().__new__(cls, median(rounds.values()))
        timing.rounds = rounds
        return timing

    def scaled(self, factor):
        return Timing({number: time * factor
                       for number, time in self.rounds.items()})

    def ratio(self, other):
        """The median, over the rounds that both took part in, of this time to
        the other one of the same round. The ratio of the medians would compare
        times of different rounds, between which a virtual machine's processors
        may have moved away from each other: all programs are slower then."""
        both = self.rounds.keys() & other.rounds.keys()
        if not both:
            return self / other
        return median(self.rounds[number] / other.rounds[number]
                      for number in both)


def can_write(path):
    """Told before anything is measured, not afterwards."""
    folder = os.path.dirname(path) or "."
    if os.path.exists(path):
        return not os.path.isdir(path) and os.access(path, os.W_OK)
    return path != "" and os.path.isdir(folder) and os.access(folder, os.W_OK)


def write(rows, path):
    with open(path, "w", encoding="utf-8") as file:
        json.dump(rows, file, indent=1)
        file.write("\n")


class Results:
    def __init__(self):
        self._samples = defaultdict(dict)
        self._links = defaultdict(set)

    def add(self, entrant, row, number):
        """What a program printed in the round of that number."""
        # Not by links: the rounds in which they were the quicker ones would
        # count as a program of their own.
        key = (entrant.name, entrant.transport, row["mode"],
               row["collective"], row["ranks"], row["bytes"])
        self._samples[key][number] = (row["p50_us"], row["min_us"])
        self._links[key].update(row["links"].split("+"))

    def rows(self):
        """One object per program, mode, collective, ranks and bytes, with the
        links that were used in any round."""
        rows = []
        for key, samples in self._samples.items():
            program, transport, mode, collective, ranks, size = key
            rows.append({
                "program": program, "transport": transport,
                "links": sorted(self._links[key]), "mode": mode,
                "collective": collective, "ranks": ranks, "bytes": size,
                "p50_us": Timing({number: p50 for number, (p50, _)
                                  in samples.items()}),
                "min_us": min(best for _, best in samples.values()),
                "repetitions": len(samples)})
        return rows


def lines_of(rows):
    """{label: {bytes: p50}} with the fastest mode of each label."""
    lines = {}
    for row in rows:
        label = row["program"]
        if label == "libgloo":
            label += " " + row["mode"].split()[0]
        line = lines.setdefault(label, {})
        size = row["bytes"]
        line[size] = min(row["p50_us"], line.get(size, row["p50_us"]))
    order = list(TITLES)
    return dict(sorted(lines.items(), key=lambda item: order.index(item[0])))


def size_name(count):
    for unit, scale in (("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale and count % scale == 0:
            return f"{count // scale} {unit}"
    return f"{count} B"


def time_text(value):
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}"


def ratio_text(mine, theirs):
    return f"{mine.ratio(theirs):.2f}" if mine and theirs else "-"


class Verdicts:
    """Counts what passed, failed, and could not be said."""

    def __init__(self):
        self.passed = self.failed = self.unknown = 0

    def status(self):
        """The exit status of --check. (Where there was nothing to look at,
        nothing holds.)"""
        if self.passed + self.failed + self.unknown == 0:
            print("--check: there is no bar for what was measured",
                  file=sys.stderr)
            return 1
        return int(self.failed + self.unknown > 0)

    def __str__(self):
        return (f"bars: {self.passed} passed, {self.failed} failed, "
                f"{self.unknown} not measured")

    def judge(self, mine, theirs, highest):
        if mine is None or theirs is None:
            self.unknown += 1
            return "-"
        ratio = mine.ratio(theirs)
        if ratio <= highest:
            self.passed += 1
            return f"{ratio:.2f} <= {highest:g} pass"
        self.failed += 1
        return f"{ratio:.2f} <= {highest:g} FAIL"


def _ratio_cells(bars, lines, size, verdicts):
    cells = []
    for bar in bars:
        mine = lines.get(bar.ours, {}).get(size)
        theirs = lines.get(bar.label(), {}).get(size)
        if size in bar.highest:
            cells.append(verdicts.judge(mine, theirs, bar.highest[size]))
        else:
            cells.append(ratio_text(mine, theirs))
    return cells


def _unbarred(lines, bars):
    named = {bar.label() for bar in bars}
    return [label for label in lines if label not in named | {"ours"}]


def format_table(header, body):
    widths = [max(len(line[i]) for line in [header, *body])
              for i in range(len(header))]
    return "\n".join("  ".join(cell.rjust(width)
                               for cell, width in zip(line, widths))
                     for line in [header, *body])


def table(rows, collective, ranks, transport, verdicts):
    """Text: times of every program, and ours as a ratio to each peer."""
    lines = lines_of(rows)
    bars = [bar for bar in BARS.get(transport, ())
            if bar.applies(collective, ranks)]
    others = _unbarred(lines, bars)
    header = ["bytes", *(TITLES[label] for label in lines),
              *(f"{TITLES[bar.ours]} / {TITLES[bar.label()]}" for bar in bars),
              *(f"ours / {TITLES[label]}" for label in others)]
    body = []
    for size in sorted({row["bytes"] for row in rows}):
        mine = lines.get("ours", {}).get(size)
        body.append([size_name(size)]
                    + [time_text(line.get(size)) for line in lines.values()]
                    + _ratio_cells(bars, lines, size, verdicts)
                    + [ratio_text(mine, lines[label].get(size))
                       for label in others])
    return format_table(header, body)
