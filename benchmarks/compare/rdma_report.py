"""The bars of the comparison over RDMA, and its tables."""

from results import format_table, ratio_text, size_name, time_text

KIB = 1024
MIB = 1024 * KIB

LATENCY_BYTES = 8
STREAM_SIZES = (64 * KIB, MIB, 16 * MIB)
PERFTEST_SIZES = (64 * KIB, MIB)
ALLREDUCE_SIZES = (4, 4 * KIB, 64 * KIB, MIB)
EXCHANGE_SIZES = (4, 4 * KIB)  # where one message each way is an allreduce

# All are ratios of times. A stream's: 0.95 of perftest's bytes per second.
STREAM_BAR = 1.0526
LATENCY_BARS = {"bound": 1.25, "unbound": 1.6}
# The receiver of the first polls its memory, which nothing else does; that of
# the second polls for a completion, as everybody must who is told of messages.
LATENCY_PEERS = ("ib_write_lat", "ib_send_lat")
# To libgloo's fastest mode, and when both wait without polling.
ALLREDUCE_BARS = {4: 0.3, 4 * KIB: 0.6, 64 * KIB: 1.0, MIB: 1.0}
WAITING_BARS = {4: 0.2}
# To the time in which ib_write_bw -b moves what a rank sends and receives.
LINE_RATE_BARS = {64 * KIB: 1.15, MIB: 1.15}


class Medians:
    def __init__(self, rows):
        self._rows = rows

    def fastest(self, program, collective, size, mode=""):
        """Least p50 among the modes that start so, and which one's that is;
        (None, "-"): not measured."""
        times = [(row["p50_us"], row["mode"]) for row in self._rows
                 if (row["program"], row["collective"], row["bytes"])
                 == (program, collective, size)
                 and row["mode"].startswith(mode)]
        return min(times, default=(None, "-"))

    def best(self, *args):
        return self.fastest(*args)[0]


def _rate(size, time):
    return f"{size / time:.1f}" if time else "-"  # bytes per us, 10^6 per s


def _streams(medians, verdicts):
    body = []
    for size in STREAM_SIZES:
        measured = min(size, PERFTEST_SIZES[-1])
        peer = medians.best("perftest", "stream", measured)
        peer = peer and peer.scaled(size / measured)
        for kind in LATENCY_BARS:
            mine = medians.best("ours", "stream", size, kind)
            body.append([size_name(size), kind, _rate(size, mine),
                         _rate(size, peer),
                         verdicts.judge(mine, peer, STREAM_BAR)])
    return format_table(
        ["bytes", "buffer", "MB/s", "ib_write_bw", "time to its"], body)


def _latencies(medians, verdicts):
    peer, told = (medians.best("perftest", "latency", LATENCY_BYTES, program)
                  for program in LATENCY_PEERS)
    body = []
    for kind, bar in LATENCY_BARS.items():
        mine = medians.best("ours", "latency", LATENCY_BYTES, f"{kind} busy")
        body.append([kind, time_text(mine), *map(time_text, (peer, told)),
                     verdicts.judge(mine, peer, bar)])
    return format_table(["buffer", "us", *LATENCY_PEERS, "to the first"], body)


def _line_time(medians, size):
    """Each rank sends and receives the vector once."""
    both_ways = medians.best("perftest", "both_ways", size)
    return both_ways and both_ways.scaled(2)


def _judged(bars, size, mine, peer, verdicts):
    if size not in bars:
        return ratio_text(mine, peer)
    return verdicts.judge(mine, peer, bars[size])


def _allreduces(medians, verdicts):
    body = []
    for size in ALLREDUCE_SIZES:
        mine = medians.best("ours", "allreduce", size)
        peer, name = medians.fastest("libgloo", "allreduce", size)
        waiting, names = zip(*(
            medians.fastest(program, "allreduce", size, "default")
            for program in ("ours", "libgloo")))
        line = _line_time(medians, size)
        exchange = medians.best("perftest", "exchange", size)
        body.append([
            size_name(size), *map(time_text, (mine, peer)), name,
            *map(time_text, waiting), names[1], time_text(exchange),
            time_text(line),
            _judged(ALLREDUCE_BARS, size, mine, peer, verdicts),
            _judged(WAITING_BARS, size, *waiting, verdicts),
            _judged(LINE_RATE_BARS, size, mine, line, verdicts)])
    return format_table(
        ["bytes", "us", "libgloo", "by", "waiting", "libgloo waiting", "by",
         "ib_send_bw -b -t 1", "ib_write_bw -b", "to libgloo", "waiting: to libgloo", "to line rate"],
        body)


def tables(rows, verdicts):
    """Text. Adds what holds to the verdicts."""
    medians = Medians(rows)
    return "\n".join([
        "streams of one-way messages, MB/s",
        _streams(medians, verdicts), "",
        f"one-way latency of {LATENCY_BYTES} bytes, busy-polling, us",
        _latencies(medians, verdicts), "",
        "allreduce, float32, 2 ranks, us: the fastest mode, and waiting",
        _allreduces(medians, verdicts), ""])
