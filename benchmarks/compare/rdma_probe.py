"""Which of libgloo's algorithms complete an allreduce over ibverbs, and which of
those is the fastest: each is tried once, briefly."""

from dataclasses import dataclass, field

import job
from results import format_table, size_name, time_text

# "new" is the allreduce of unbound buffers, which pipelines.
ALGORITHMS = ("ring", "ring_chunked", "halving_doubling", "bcube", "new")
MODES = ("busy", "default")


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


def probe_all(run):
    return [probe(run, f"{mode} {algorithm}")
            for mode in MODES for algorithm in ALGORITHMS]


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
