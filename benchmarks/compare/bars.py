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
}
