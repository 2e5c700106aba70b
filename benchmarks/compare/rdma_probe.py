"""Which of libgloo's algorithms complete an allreduce over ibverbs, and which of
those is the fastest: each is tried a few times, briefly."""

from dataclasses import dataclass, field
from statistics import median

import job
from results import format_table, size_name, time_text

# "new" is the allreduce of unbound buffers, which pipelines.
ALGORITHMS = ("ring", "ring_chunked", "halving_doubling", "bcube", "new")
MODES = ("busy", "default")
ROUNDS = 3


@dataclass
class Probe:
    mode: str  # "busy ring"
    times: dict = field(default_factory=dict)  # {bytes: us}
    trouble: str = ""  # why it did not complete at every size


def probe(run, mode):
    """run(mode) returns a program's rows or throws a JobError: libgloo over RDMA
    hangs and crashes now and then, which is no error of ours."""
    found = Probe(mode)
    try:
        rows = run(mode)
    except job.NotAvailable:
        raise
    except job.JobError as error:
        rows, found.trouble = error.rows, str(error)
    found.times = {row["bytes"]: row["p50_us"] for row in rows}
    return found


def _median(probes):
    """Of the tries of one mode, by size."""
    sizes = {size for found in probes for size in found.times}
    trouble = next((found.trouble for found in probes if found.trouble), "")
    return Probe(probes[0].mode, {
        size: median(found.times[size] for found in probes
                     if size in found.times) for size in sizes}, trouble)


def probe_all(run):
    """Medians of the rounds: in one try who happens to be lucky is the
    fastest. Who did not complete, which may take long, gets no other try."""
    tries = {f"{mode} {algorithm}": [] for mode in MODES
             for algorithm in ALGORITHMS}
    for _ in range(ROUNDS):
        for mode, before in tries.items():
            if not any(found.trouble for found in before):
                before.append(probe(run, mode))
    return [_median(before) for before in tries.values()]


def fastest(probes, sizes):
    """{mode: [bytes]}: at each size the fastest that completed there, of those
    that poll and of those that wait."""
    chosen = {}
    for mode in MODES:
        for size in sizes:
            there = [found for found in probes
                     if found.mode.startswith(mode) and size in found.times]
            if there:
                best = min(there, key=lambda found: found.times[size])
                chosen.setdefault(best.mode, []).append(size)
    return chosen


def table(probes, sizes):
    """Text: what each took, with a star what is compared."""
    chosen = fastest(probes, sizes)

    def cell(found, size):
        star = "*" if size in chosen.get(found.mode, ()) else ""
        return star + time_text(found.times.get(size))

    return format_table(
        ["libgloo", *map(size_name, sizes), "did not complete"],
        [[found.mode, *(cell(found, size) for size in sizes),
          found.trouble[:100]] for found in probes])
