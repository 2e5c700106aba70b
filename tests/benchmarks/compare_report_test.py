"""The table, the bars and the chart of compare.py, on made-up rows.
Usage: compare_report_test.py DIRECTORY_OF_COMPARE"""

import argparse
import contextlib
import io
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
import xml.dom.minidom

DIRECTORY = sys.argv.pop(1)
sys.path.insert(0, DIRECTORY)

import bars  # noqa: E402
import chart  # noqa: E402
import compare  # noqa: E402
import job  # noqa: E402
import perftest  # noqa: E402
import programs  # noqa: E402
import pytorch  # noqa: E402
import results  # noqa: E402


def row(program, mode, size, p50, ranks=2, transport="tcp"):
    return {"program": program, "transport": transport, "links": ["tcp"],
            "mode": mode, "collective": "allreduce", "ranks": ranks,
            "bytes": size, "p50_us": results.Timing({0: p50}),
            "min_us": p50 / 2, "repetitions": 1}


def table_of(ours):
    rows = [row("ours", "default", 4, ours),
            row("libgloo", "default ring_chunked", 4, 100),
            row("libgloo", "default halving_doubling", 4, 40),
            row("libgloo", "busy ring_chunked", 4, 19),
            row("openmpi", "default", 4, 18)]
    verdicts = results.Verdicts()
    return results.table(rows, "allreduce", 2, "tcp", verdicts), verdicts


class Report(unittest.TestCase):
    def test_ours_is_held_against_the_fastest_algorithm_of_each_mode(self):
        text, verdicts = table_of(18)
        self.assertIn("0.45 <= 0.5 pass", text)  # 18 / 40
        self.assertIn("0.95 <= 1 pass", text)  # 18 / 19
        self.assertIn("1.00 <= 1 pass", text)
        self.assertEqual((verdicts.passed, verdicts.failed), (3, 0))

    def test_a_missed_bar_says_fail(self):
        text, verdicts = table_of(20.5)
        self.assertIn("0.51 <= 0.5 FAIL", text)
        self.assertEqual((verdicts.passed, verdicts.failed), (0, 3))

    def test_a_missing_program_is_neither(self):
        verdicts = results.Verdicts()
        results.table([row("ours", "default", 4, 1)], "allreduce", 2, "tcp",
                      verdicts)
        self.assertEqual(verdicts.passed + verdicts.failed, 0)
        self.assertEqual(verdicts.unknown, 3)

    def test_the_status_of_check_is_0_where_all_that_was_looked_at_holds(self):
        for counts, status in (((2, 0, 0), 0), ((2, 1, 0), 1), ((2, 0, 1), 1),
                               ((0, 0, 0), 1)):
            with self.subTest(counts=counts):
                verdicts = results.Verdicts()
                verdicts.passed, verdicts.failed, verdicts.unknown = counts
                told = io.StringIO()
                with contextlib.redirect_stderr(told):
                    self.assertEqual(verdicts.status(), status)
                self.assertEqual("no bar" in told.getvalue(), not any(counts))

    def test_memory_of_the_shared_allocator_has_a_bar_of_its_own(self):
        rows = [row(program, "default", 1 << 20, p50, transport="shm")
                for program, p50 in (("ours", 150), ("ours-shared", 125),
                                     ("limit", 100))]
        verdicts = results.Verdicts()
        text = results.table(rows, "allreduce", 2, "shm", verdicts)
        self.assertIn("ours, shared memory / limit", text)
        self.assertIn("1.50 <= 1.75 pass", text)
        self.assertIn("1.25 <= 1.2 FAIL", text)
        self.assertEqual((verdicts.passed, verdicts.failed), (1, 1))

    def test_each_transport_has_the_sizes_of_its_bars(self):
        for transports in (["tcp"], ["shm"], ["tcp", "shm"], ["auto", "tcp"]):
            arguments = argparse.Namespace(
                sizes=None, quick=False, transport=transports)
            for transport in transports:
                measured = set(compare.sizes_of(arguments, transport))
                for bar in bars.BARS[transport]:
                    if bar.collectives == ("allreduce",):
                        with self.subTest(transports=transports, bar=bar):
                            self.assertLessEqual(set(bar.highest), measured)
        arguments.sizes = [8]
        self.assertEqual(compare.sizes_of(arguments, "auto"), [8])

    def test_a_table_has_no_lines_of_the_limit_alone(self):
        rows = [row("ours", "default", 4, 2), row("limit", "", 4, 1),
                row("limit", "", 64, 1)]
        panels = compare._panels(rows, argparse.Namespace(
            collectives=["allreduce"], transport=["tcp"], ranks=[2]))
        self.assertEqual(panels, {("allreduce", "tcp"): {2: rows[:2]}})

    def test_the_automatic_device_has_the_shared_allocator_in_its_table(self):
        rows = [row("ours", "default", 4, 2, transport="auto"),
                row("ours-shared", "shared", 4, 2, transport="auto"),
                row("openmpi", "default", 4, 3, transport="shm")]
        panels = compare._panels(rows, argparse.Namespace(
            collectives=["allreduce"], transport=["auto"], ranks=[2]))
        self.assertEqual(panels, {("allreduce", "auto"): {2: rows}})

    def test_medians_over_repetitions(self):
        collected = results.Results()
        entrant = programs.Entrant("ours", "tcp", "x")
        for number, (p50, best) in enumerate(((5, 4), (1, 1), (9, 3))):
            collected.add(entrant, {
                "mode": "default", "collective": "allreduce", "ranks": 2,
                "bytes": 4, "p50_us": p50, "min_us": best,
                "links": "shm+tcp"}, number)
        [only] = collected.rows()
        self.assertEqual(only["p50_us"], 5)
        self.assertEqual(only["min_us"], 1)
        self.assertEqual(only["repetitions"], 3)
        self.assertEqual(only["links"], ["shm", "tcp"])

    def test_rounds_over_other_links_are_not_left_out(self):
        collected = results.Results()
        entrant = programs.Entrant("ours", "auto", "x")
        for number, (p50, links) in enumerate((
                (1, "shm"), (9, "shm+tcp"), (7, "shm+tcp"))):
            collected.add(entrant, {
                "mode": "default", "collective": "allreduce", "ranks": 2,
                "bytes": 4, "p50_us": p50, "min_us": p50, "links": links},
                number)
        rows = collected.rows()
        self.assertEqual(results.lines_of(rows)["ours"][4], 7)
        self.assertEqual([row["links"] for row in rows], [["shm", "tcp"]])

    def test_a_ratio_compares_times_of_the_same_round(self):
        # The machine is twice as slow from the third round on.
        ours = results.Timing({0: 6, 1: 6, 2: 12, 3: 12, 4: 12})
        peer = results.Timing({1: 10, 2: 20, 3: 20, 0: 10})
        self.assertEqual(ours / peer, 12 / 15)
        self.assertEqual(ours.ratio(peer), 0.6)
        self.assertEqual(ours.scaled(2).ratio(peer), 1.2)
        alone = results.Timing({9: 3})
        self.assertEqual(ours.ratio(alone), 4)

    def test_the_chart_is_xml_with_a_line_per_program_and_panel(self):
        rows = [row("ours", "default", size, size / 10, ranks)
                for size in (4, 1024, 65536) for ranks in (2, 4)]
        rows += [row("openmpi", "default", size, size / 5, ranks)
                 for size in (4, 1024, 65536) for ranks in (2, 4)]
        panels = {("allreduce", "tcp"): {
            ranks: [r for r in rows if r["ranks"] == ranks]
            for ranks in (2, 4)}}
        document = xml.dom.minidom.parseString(chart.draw(panels, "a < b"))
        self.assertEqual(len(document.getElementsByTagName("polyline")), 4)


class Programs(unittest.TestCase):
    def test_one_that_was_not_built_is_not_available(self):
        with self.assertRaisesRegex(job.NotAvailable, "was not built"):
            job.run([["/nowhere/program"]], {}, 5)

    def test_a_rank_that_a_signal_ended_is_named(self):
        waits = ["sh", "-c", "sleep 0.1; echo rank 0: lost a peer >&2; exit 1"]
        dies = ["sh", "-c", "kill -SEGV $$"]
        with self.assertRaisesRegex(
                job.JobError, "^rank 1 was ended by signal 11 .Segm"):
            job.run([waits, dies], {}, 5)
        with self.assertRaisesRegex(
                job.JobError, "^sh was ended by signal 11 "):
            job.run([dies], {}, 5)
        with self.assertRaisesRegex(job.JobError, "^rank 1 was ended by"):
            job.run([["sleep", "9"], dies], {}, 3)

    def test_the_cause_is_told_and_not_its_consequence(self):
        says = ["sh", "-c", "sleep $0; echo rank $1 >&2; exit 1"]
        with self.assertRaisesRegex(job.JobError, "^rank 1: no memory$"):
            job.run([[*says, "0.2", "0: another rank has failed"],
                     [*says, "0", "1: no memory"]], {}, 5)

    def test_a_signal_that_is_ignored_stays_so(self):
        before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        try:
            job.run([["sh", "-c", f"kill -HUP {os.getpid()}"]], {}, 5)
            self.assertEqual(job.status_of(
                lambda: os.kill(os.getpid(), signal.SIGHUP) or 0), 0)
        finally:
            signal.signal(signal.SIGHUP, before)

    def test_a_measurement_outlives_a_chart_that_cannot_be_drawn(self):
        rows = [row("ours", "default", 4, 1)]
        with tempfile.TemporaryDirectory() as directory:
            written = os.path.join(directory, "rows.json")
            line = ["compare", "--json", written, "--plot",
                    os.path.join(directory, "plot.svg")]
            with unittest.mock.patch.object(sys, "argv", line), \
                    unittest.mock.patch.object(compare.Comparison, "run",
                                               return_value=rows), \
                    unittest.mock.patch.object(chart, "draw",
                                               side_effect=OSError), \
                    contextlib.redirect_stdout(io.StringIO()), \
                    self.assertRaises(OSError):
                compare.main()
            with open(written) as file:
                self.assertEqual(json.load(file), rows)

    def test_a_failure_of_ours_is_not_tried_again(self):
        arguments = argparse.Namespace(
            collectives=["allreduce"], sizes=[4], transport=["shm"], offset=0,
            budget=1)
        for name, tries in (("ours", 1), ("ours-shared", 1), ("openmpi", 2)):
            with self.subTest(name=name):
                comparison = compare.Comparison(arguments)
                with unittest.mock.patch.object(
                        job, "run",
                        side_effect=[job.JobError("wrong result"), []]) as run:
                    comparison._one(programs.Entrant(name, "shm", "x"), 2, 0,
                                    unittest.mock.Mock())
                self.assertEqual(run.call_count, tries)
                self.assertEqual(comparison.ours_failed, tries == 1)

    def test_pytorchs_programs_take_turns_at_being_first(self):
        with unittest.mock.patch.object(job, "run", return_value=[]) as run, \
                unittest.mock.patch.object(pytorch, "_say"):
            pytorch._measure({"ours": "A", "libgloo": "B"}, 2, 3)
        self.assertEqual("".join(call.args[0][0][0]
                                 for call in run.call_args_list), "ABBAAB")

    def test_a_figure_of_perftest_that_is_no_number_is_a_failure(self):
        output = "header\n 8 1000 %s %s\n"
        self.assertEqual(perftest._line_of(output % (1.5, 2), 8)[2], 1.5)
        with self.assertRaises(job.JobError):
            perftest._line_of(output % ("inf", 2), 8)


class CommandLine(unittest.TestCase):
    def test_bad_ones_get_one_line_and_status_2(self):
        for line, says in (
                (["--ranks", "two"], "two"), (["--ranks", "1"], "--ranks"),
                (["--sizes", "3"], "--sizes"), (["--sizes", "-4"], "-4"),
                (["--collectives", "sing"], "sing"),
                (["--transport", "pigeon"], "pigeon"),
                (["--programs", "nccl"], "nccl"),
                (["--repetitions", "0"], "--repetitions"),
                (["--budget", "0"], "--budget"), (["--what"], "--what"),
                (["--json", "/nonexistent/x"], "/nonexistent/x"),
                (["--json", ""], "--json"), (["--plot", ""], "--plot"),
                (["--plot", "/"], "--plot")):
            with self.subTest(line=line):
                done = subprocess.run(
                    [sys.executable, os.path.join(DIRECTORY, "compare.py"),
                     *line], capture_output=True, text=True, timeout=60,
                    check=False)
                self.assertEqual(done.returncode, 2)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(says, done.stderr)


if __name__ == "__main__":
    unittest.main()
