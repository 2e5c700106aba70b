"""What ours must reach: ratios of its p50 to a peer's, by collective, bytes
and ranks."""

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * KIB


@dataclass(frozen=True)
class Bar:
    program: str
    mode: str  # the beginning of it: the fastest of those is compared
    collectives: tuple
    ranks: tuple  # empty: any
    highest: dict  # bytes -> ratio
    ours: str = "ours"  # the program of ours that it is for

    def applies(self, collective, ranks):
        return (collective in self.collectives
                and (not self.ranks or ranks in self.ranks))

    def label(self):
        return f"{self.program} {self.mode}".strip()


_OTHERS = ("reduce", "broadcast", "allgather", "reduce_scatter", "alltoall",
           "barrier")
# The barrier has no bytes. Vectors that are divided have one element for each
# rank at least.
_OTHER_SIZES = (0, 4, 8, 16, 32, KIB, 64 * KIB, MIB, 16 * MIB)
_SIZES = (4, KIB, 64 * KIB, MIB, 16 * MIB, 64 * MIB)
_SAME_HOST_OTHERS = _OTHERS[1:]  # all but reduce


def _same_host():
    """Against the faster of two peers, that is against each."""
    small = (4, 64, KIB, 16 * KIB, 64 * KIB)
    two = {**dict.fromkeys(small, 0.67),
           **dict.fromkeys((256 * KIB, MIB, 4 * MIB, 16 * MIB), 0.8),
           64 * MIB: 0.67}
    more = {**dict.fromkeys((*small, 256 * KIB), 0.67), MIB: 0.75,
            4 * MIB: 0.85, 16 * MIB: 0.67, 64 * MIB: 0.67}
    limit = {4: 1.8, **dict.fromkeys((64 * KIB, 256 * KIB, MIB, 4 * MIB,
                                      16 * MIB, 64 * MIB), 1.75)}
    shared = {size: 1.2 for size in limit if size > 4}
    bars = [Bar("limit", "", ("allreduce",), (2,), limit),
            Bar("limit", "", ("allreduce",), (2,), shared, "ours-shared"),
            Bar("openmpi", "", ("pingpong",), (2,), {8: 0.8, MIB: 1.0})]
    for peer in ("openmpi", "mpich"):
        bars += [Bar(peer, "", ("allreduce",), (2,), two),
                 Bar(peer, "", ("allreduce",), (4, 8), more),
                 Bar(peer, "", _SAME_HOST_OTHERS, (2, 4, 8),
                     dict.fromkeys({*_OTHER_SIZES, *two}, 0.9))]
    return tuple(bars)


BARS = {
    "tcp": (
        Bar("libgloo", "default", ("allreduce",), (2, 4),
            {4: 0.5, KIB: 0.5, 64 * KIB: 0.5, MIB: 0.5,
             16 * MIB: 0.7, 64 * MIB: 0.7}),
        Bar("libgloo", "busy", ("allreduce",), (2, 4),
            dict.fromkeys(_SIZES, 1.0)),
        Bar("openmpi", "", ("allreduce",), (2,), dict.fromkeys(_SIZES, 1.0)),
        Bar("libgloo", "default", _OTHERS, (2, 4, 8),
            dict.fromkeys(_OTHER_SIZES, 0.6)),
        Bar("openmpi", "", _OTHERS, (2,),
            dict.fromkeys(_OTHER_SIZES, 1.0)),
    ),
    "shm": _same_host(),
    "auto": _same_host(),
}
