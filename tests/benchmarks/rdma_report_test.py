"""The bars of the comparison over RDMA, on made-up rows, and its options.
Usage: rdma_report_test.py DIRECTORY_OF_COMPARE"""

import os
import subprocess
import sys
import unittest

DIRECTORY = sys.argv.pop(1)
sys.path.insert(0, DIRECTORY)

import job  # noqa: E402
import rdma_probe  # noqa: E402
import rdma_report  # noqa: E402
import results  # noqa: E402

KIB = 1024
MIB = 1024 * KIB


def row(program, collective, mode, size, p50):
    return {"program": program, "collective": collective, "mode": mode,
            "bytes": size, "p50_us": results.Timing({0: p50})}


def judged(rows):
    """What the tables say, and (passed, failed)."""
    verdicts = results.Verdicts()
    text = rdma_report.tables(rows, verdicts)
    return text, (verdicts.passed, verdicts.failed)


class Report(unittest.TestCase):
    def expect(self, rows, *texts, verdicts):
        text, counted = judged(rows)
        for expected in texts:
            self.assertIn(expected, text)
        self.assertEqual(counted, verdicts)

    def test_nothing_measured_is_no_verdict(self):
        self.expect([], verdicts=(0, 0))

    def test_a_stream_moves_95_percent_of_perftests_bytes(self):
        for mine, verdicts in ((105, (1, 0)), (106, (0, 1))):
            self.expect([row("perftest", "stream", "ib_write_bw", MIB, 100),
                         row("ours", "stream", "bound", MIB, mine)],
                        verdicts=verdicts)

    def test_a_stream_of_16_mib_is_held_to_the_rate_at_one(self):
        for mine, verdicts in ((1680, (1, 0)), (1690, (0, 1))):
            self.expect([row("perftest", "stream", "ib_write_bw", MIB, 100),
                         row("ours", "stream", "unbound", 16 * MIB, mine)],
                        verdicts=verdicts)

    def test_the_latency_of_each_buffer_has_a_bar_to_ib_write_lat(self):
        rows = [row("perftest", "latency", "ib_write_lat", 8, 100),
                row("perftest", "latency", "ib_send_lat", 8, 1),
                row("ours", "latency", "bound busy", 8, 126),
                row("ours", "latency", "unbound busy", 8, 160),
                row("ours", "latency", "bound default", 8, 1)]
        self.expect(rows, "1.26 <= 1.25 FAIL", "1.60 <= 1.6 pass",
                    verdicts=(1, 1))

    def test_allreduce_is_held_to_libgloos_fastest_mode(self):
        rows = [row("libgloo", "allreduce", "busy ring", 4, 100),
                row("libgloo", "allreduce", "default ring", 4, 1000),
                row("ours", "allreduce", "busy", 4, 30),
                row("ours", "allreduce", "default", 4, 201)]
        self.expect(rows, "0.30 <= 0.3 pass", "0.20 <= 0.2 FAIL",
                    "busy ring", "default ring", verdicts=(1, 1))

    def test_the_bare_exchange_is_shown_beside_a_short_allreduce(self):
        rows = [row("perftest", "exchange", "ib_send_bw -b -t 1", 4, 21.75),
                row("ours", "allreduce", "busy", 4, 30)]
        self.expect(rows, "21.75", verdicts=(0, 0))

    def test_a_long_allreduce_is_held_to_libgloo_and_the_line(self):
        rows = [row("libgloo", "allreduce", "busy ring", MIB, 250),
                row("perftest", "both_ways", "ib_write_bw -b", MIB, 100),
                row("ours", "allreduce", "busy", MIB, 240)]
        self.expect(rows, "0.96 <= 1 pass", "1.20 <= 1.15 FAIL",
                    verdicts=(1, 1))


class Probing(unittest.TestCase):
    TIMES = {"busy ring": (20, 30), "busy halving_doubling": (10, 40),
             "default ring_chunked": (100, 90), "default bcube": (110, 80)}

    def run_mode(self, mode):
        """At two sizes; one hangs at the second, the others at once."""
        rows = [row("libgloo", "allreduce", mode, size, time) for size, time
                in zip((4, MIB), self.TIMES.get(mode, ()))]
        if mode == "busy bcube":
            rows = [row("libgloo", "allreduce", mode, 4, 1)]
        if mode not in self.TIMES:
            raise job.JobError("not done after 15 s", rows)
        return rows

    def test_the_fastest_that_completed_is_compared_at_each_size(self):
        probes = rdma_probe.probe_all(self.run_mode)
        self.assertEqual(
            rdma_probe.fastest(probes, (4, KIB, MIB)),
            {"busy bcube": [4], "busy ring": [MIB],
             "default ring_chunked": [4], "default bcube": [MIB]})
        lines = rdma_probe.table(probes, (4, MIB)).splitlines()
        for line in ("busy bcube *1.00 - not done after 15 s",
                     "busy ring 20.00 *30.00", "default ring - - not done "
                     "after 15 s", "default bcube 110 *80.00"):
            self.assertIn(line, [" ".join(text.split()) for text in lines])

    def test_one_lucky_try_does_not_make_the_fastest(self):
        order = []

        def run(mode):
            order.append(mode)
            if mode == "busy bcube":
                raise job.JobError("not done after 15 s")
            lucky = order.count(mode) == 1 and mode == "busy ring"
            return [row("libgloo", "allreduce", mode, 4,
                        10 if lucky else 30 if mode == "busy ring" else 20)]

        probes = rdma_probe.probe_all(run)
        self.assertEqual(order[:3], ["busy ring", "busy ring_chunked",
                                     "busy halving_doubling"])
        self.assertEqual(order.count("busy ring"), 3)
        self.assertEqual(order.count("busy bcube"), 1)
        self.assertEqual(probes[0].times, {4: 30})
        self.assertNotIn("busy ring", rdma_probe.fastest(probes, (4,)))

    def test_nothing_may_complete(self):
        self.TIMES = {}
        probes = rdma_probe.probe_all(self.run_mode)
        self.assertEqual(rdma_probe.fastest(probes, (MIB,)), {})


class CommandLine(unittest.TestCase):
    def test_bad_ones_are_told_before_anything_is_measured(self):
        for line, says in ((["--rounds", "0"], "--rounds"),
                           (["--rounds", "-1"], "--rounds"),
                           (["--json", "/nonexistent/x"], "/nonexistent/x"),
                           (["--json", ""], "--json"),
                           (["--js", "x"], "--js")):
            with self.subTest(line=line):
                done = subprocess.run(
                    [sys.executable, os.path.join(DIRECTORY, "rdma.py"),
                     "--build-dir", "/nonexistent", *line],
                    capture_output=True, text=True, timeout=60, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
