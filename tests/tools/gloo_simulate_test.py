"""gloo_simulate, run as its users run it.
Usage: gloo_simulate_test.py PROGRAM DOCS"""

import collections
import json
import pathlib
import re
import resource
import subprocess
import sys
import tempfile
import unittest
import xml.etree.ElementTree as xml

DOCS = pathlib.Path(sys.argv.pop(2))
PROGRAM = sys.argv.pop(1)


def run(*arguments, **more):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          text=True, timeout=600, check=False, **more)


class GlooSimulate(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def rows(self, *arguments):
        file = self.folder / "rows.json"
        result = run("--json", file, *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual(result.stderr, "")
        return json.loads(file.read_text())

    def test_all_algorithms_with_the_chosen_one_and_the_ratio_to_the_bound(self):
        rows = self.rows("-c", "allreduce", "-n", "4,8", "-s", "8,1M")
        self.assertEqual(len(rows), 2 * 2 * 6)
        self.assertEqual(sum(row["chosen"] for row in rows), 4)
        for row in rows:
            self.assertAlmostEqual(row["ratio"],
                                   row["time_us"] / row["bound_us"], 6)
            self.assertEqual(row["bound_term"],
                             "latency" if row["bytes"] == 8 else "bandwidth")
        ring = next(row for row in rows if row["algorithm"] == "ring" and
                    row["ranks"] == 8 and row["bytes"] == 1 << 20)
        self.assertEqual(ring["rounds"], 14)
        self.assertEqual(ring["busiest_bytes"], 2 * 7 * (1 << 20) // 8)

    def test_what_not_all_ranks_know_does_not_choose_segments(self):
        def segment(collective, size):
            [row] = self.rows("-c", collective, "-n", "4", "-s", size,
                              "--network", "loopback")
            return row["segment_bytes"]
        for collective in "gatherv", "alltoallv":
            self.assertEqual(segment(collective, "8"), 196352)
            self.assertEqual(segment(collective, "1M"), 196352)

    # What the library promises on a network of many ranks.
    def within_a_quarter_of_the_lower_bound(self, collective, ranks, *sizes):
        rows = self.rows("-c", collective, "-a", "auto", "-n", ranks, "-s",
                         ",".join(sizes), "--network", "datacentre")
        self.assertEqual(len(rows), len(sizes))
        for row in rows:
            self.assertLessEqual(row["ratio"], 1.25, row)
            self.assertGreaterEqual(row["ratio"], 1, row)

    def test_auto_is_within_a_quarter_of_the_lower_bound_at_1024_ranks(self):
        for collective in "allreduce", "allgather", "reduce_scatter":
            self.within_a_quarter_of_the_lower_bound(collective, 1024, "8",
                                                     "1G")
        self.within_a_quarter_of_the_lower_bound("broadcast", 1024, "8")
        self.within_a_quarter_of_the_lower_bound("broadcast", 256, "1G")

    # 17 million messages: only when it is asked for.
    @unittest.skipUnless("-k" in sys.argv, "long")
    def test_a_long_broadcast_at_1024_ranks_too(self):
        self.within_a_quarter_of_the_lower_bound("broadcast", 1024, "1G")

    def test_a_slow_rank_and_hosts_change_the_times(self):
        arguments = ("-c", "allgather", "-a", "ring", "-n", 8, "-s", "64M")
        plain = self.rows(*arguments)[0]["time_us"]
        self.assertGreater(
            self.rows(*arguments, "--slow-rank", 3)[0]["time_us"],
            1.5 * plain)
        self.assertLess(
            self.rows(*arguments, "--ranks-per-host", 8)[0]["time_us"],
            10 * plain)

    def test_ranks_of_a_host_share_its_processors(self):
        arguments = ("-c", "alltoall", "-a", "pairwise", "-n", 8, "-s", "16M",
                     "--network", "loopback")
        times = [self.rows(*arguments, "--cores", cores)[0]["time_us"]
                 for cores in (1, 2, 4, 8, 0)]
        for more, fewer in zip(times, times[1:4]):
            self.assertGreater(more, 1.5 * fewer)
        self.assertEqual(times[3], times[4])
        self.assertIn("all on one host, whose ranks share 2 processors",
                      run(*arguments, "--cores", 2).stdout)

    def test_ranks_that_share_hosts_have_hierarchical_algorithms(self):
        arguments = ("-c", "allreduce", "-n", 16, "-s", "8,64K",
                     "--network", "ethernet")
        flat = self.rows(*arguments)
        self.assertFalse([row for row in flat if "hier" in row["algorithm"]])
        rows = self.rows(*arguments, "--ranks-per-host", 4)
        self.assertEqual(len(rows), len(flat) + 2 * 2)
        for bytes in (8, 64 << 10):
            best = min((row for row in rows if row["bytes"] == bytes),
                       key=lambda row: row["time_us"])
            self.assertIn("hierarchical", best["algorithm"])
            chosen, = (row for row in rows
                       if row["bytes"] == bytes and row["chosen"])
            self.assertIn("hierarchical", chosen["algorithm"])
        drawn = ("-c", "broadcast", "-a", "hierarchical", "-n", 4, "--text")
        text = run(*drawn, "--ranks-per-host", 2)
        self.assertEqual(text.returncode, 0, text.stderr)
        self.assertIn("broadcast by hierarchical, 4 ranks, 2 per host",
                      text.stdout)
        without = run(*drawn)
        self.assertEqual(without.returncode, 2)
        self.assertIn("--ranks-per-host", without.stderr)

    def test_windows_are_nearly_the_best_ones_unless_they_are_given(self):
        for network in ((), ("--alpha", 12), ("--alpha", 50)):
            arguments = ("-c", "alltoall", "-a", "pairwise", "-n", 64, "-s",
                         "64K", *network)
            chosen = self.rows(*arguments)[0]["time_us"]
            times = [self.rows(*arguments, "--window", window)[0]["time_us"]
                     for window in (4, 16, 32, 64)]
            self.assertLess(chosen, 1.1 * min(times))
            self.assertGreater(times[0], 2 * chosen)

    def test_what_is_too_much_is_left_out_and_said(self):
        result = run("-c", "allreduce", "-n", "64", "-s", "8",
                     "--most-actions", "0.002")
        self.assertEqual(result.returncode, 0)
        self.assertRegex(result.stderr, "flat is left out.*most-actions")
        self.assertRegex(result.stdout, "(?m)^ *64 .* recursive_doubling")

    # Without --most-actions some of these would take hours and 30 GiB.
    def test_16384_ranks_take_bounded_memory(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30))
        for collective, most, rows in (("alltoall", 100, 0), ("gather", 100, 2),
                                       ("allreduce", 2, 3)):
            result = run("-c", collective, "-n", 16384, "-s", "8",
                         "--most-actions", most, preexec_fn=limit)
            self.assertEqual(result.returncode, 0, result.stderr)
            self.assertEqual(len(re.findall("(?m)^ *16384 ", result.stdout)),
                             rows, result.stdout + result.stderr)

    def test_sizes_are_those_that_were_asked_for(self):
        for collective in ("gatherv", "alltoallv", "allgatherv", "broadcast"):
            for row in self.rows("-c", collective, "-n", 4, "-s", "64K"):
                self.assertEqual(row["bytes"], 65536, collective)

    def test_a_barrier_carries_nothing(self):
        short, = self.rows("-c", "barrier", "-a", "dissemination", "-n", 4,
                           "--alpha", 10, "--overhead", 1)
        self.assertEqual(short["bytes"], 0)
        self.assertIn(" 0 B ", run("-c", "barrier", "-n", 4).stdout)
        self.assertEqual(short["rounds"], 2)
        self.assertLess(short["time_us"], 25)

    def test_the_choice_is_for_what_is_simulated(self):
        asked, all_of_it = (
            self.rows("-c", "alltoall", "-n", 256, "-a", "auto", "-s", size,
                      "--element-size", 4096, "--network", "memory")
            for size in ("8", "1M"))  # an element for each of them
        self.assertEqual(asked, all_of_it)
        self.assertEqual(asked[0]["algorithm"], "pairwise")

    def test_what_outlasts_the_clock_is_refused(self):
        result = run("-c", "broadcast", "-a", "chain", "-n", 2, "-s", "1024G",
                     "--bandwidth", "0.0001")
        self.assertEqual(result.returncode, 1, result.stdout)
        self.assertIn("1e6 s", result.stderr)

    # In the panel of each number of ranks, and of each size, a line for each
    # algorithm and the dashed one of the bound, each over two points.
    def assert_lines(self, plot, rows):
        names = sorted({row["algorithm"] for row in rows})
        self.assertGreater(len(names), 2)
        svg = "{http://www.w3.org/2000/svg}"
        root = xml.parse(plot).getroot()
        legend = [text.text for text in root.iter(svg + "text")
                  if text.text in names + ["lower bound"]]
        self.assertEqual(sorted(legend), sorted(names + ["lower bound"]))
        lines = list(root.iter(svg + "polyline"))
        panels = 4
        colours = collections.Counter(line.get("stroke") for line in lines)
        self.assertEqual(list(colours.values()), [panels] * (len(names) + 1))
        dashed = [line for line in lines if line.get("stroke-dasharray")]
        self.assertEqual(len({line.get("stroke") for line in dashed}), 1)
        self.assertEqual(len(dashed), panels)
        for line in lines:
            points = [tuple(map(int, point.split(",")))
                      for point in line.get("points").split()]
            self.assertEqual(len(points), 2)
            self.assertLess(points[0][0], points[1][0])
            self.assertGreaterEqual(points[0][1], points[1][1])

    def test_plots_and_draws_well_formed_svg(self):
        plot, drawing = self.folder / "plot.svg", self.folder / "drawing.svg"
        rows = self.rows("-c", "broadcast", "-n", "4,8", "-s", "8,1M",
                         "--plot", plot)
        self.assert_lines(plot, rows)
        result = run("-c", "broadcast", "-a", "binomial", "-n", 8, "--draw",
                     drawing)
        self.assertEqual(result.returncode, 0, result.stderr)
        for file in (plot, drawing):
            self.assertTrue(xml.parse(file).getroot().tag.endswith("svg"))

    def test_prints_a_schedule(self):
        result = run("-c", "broadcast", "-a", "binomial", "-n", 4, "--text")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertIn("broadcast by binomial, 4 ranks, 2 rounds",
                      result.stdout)
        lines = [line.split() for line in result.stdout.split("\n")]
        self.assertIn(["1", ">2:0", "<0:0"], lines)
        self.assertIn(["2", ">1:0", "<0:0", ">3:0", "<2:0"], lines)

    def test_the_documents_are_what_it_makes(self):
        result = run("--docs", self.folder)
        self.assertEqual(result.returncode, 0, result.stderr)
        made = {str(path.relative_to(self.folder)): path.read_text()
                for path in self.folder.rglob("*") if path.is_file()}
        there = {name: (DOCS / name).read_text() for name in made
                 if (DOCS / name).exists()}
        there.update({str(path.relative_to(DOCS)): path.read_text()
                      for path in (DOCS / "algorithms").glob("*")})
        self.assertEqual(sorted(made), sorted(there), "run ./dev docs")
        for name, text in made.items():
            self.assertTrue(text == there[name],
                            f"docs/{name} is old: run ./dev docs")
        for line in made["algorithms.md"].split("\n"):
            if line.startswith("### "):
                self.assertIn(f"{line}\n\n", made["algorithms.md"])
                self.assertNotIn(f"{line}\n\n![", made["algorithms.md"],
                                 "describe it in descriptions.cc")

    def test_bad_command_lines_are_one_line_and_status_2(self):
        for arguments, says in (
                (["--no-such-option"], "--no-such-option"),
                (["-c", "allruduce"], "allruduce.*broadcast"),
                (["-a", "rong"], "rong.*ring"),
                (["-n", "1"], "--ranks"),
                (["-n", "20000"], "--ranks"),
                (["-n", "x"], "ranks"),
                (["-s", "12Q"], "12Q"),
                (["-s", "-1"], "-1"),
                (["--network", "wet_string"], "wet_string.*datacentre"),
                (["--overhead", "9"], "overhead"),
                (["--bandwidth", "0"], "--bandwidth"),
                (["--slow-rank", "8"], "--slow-rank"),
                (["--slow-factor", "3"], "--slow-factor needs --slow-rank"),
                (["--text"], "--algorithm"),
                (["-a", "ring", "--text", "--json", "/dev/null"], "--json"),
                (["-a", "ring", "--draw", "/dev/null", "--json", "/dev/null"],
                 "--json"),
                (["-a", "ring", "--text", "--plot", "/dev/null"], "--plot"),
                (["-c", "barrier", "-s", "8"], "--sizes"),
                (["-a", "ring", "--text", "-s", "8"], "--sizes"),
                (["-a", "ring", "--draw", "/dev/null", "-s", "8"], "--sizes"),
                (["--check", "x", "--json", "/dev/null"], "--json"),
                (["--check", "x", "--plot", "/dev/null"], "--plot"),
                (["--check", "x", "--text"], "--text"),
                (["--check", "x", "-c", "allreduce"], "--collective"),
                (["--check", "x", "-n", "4"], "--ranks"),
                (["--check", "x", "-s", "4"], "--sizes"),
                (["--check", "x", "-a", "ring"], "--algorithm"),
                (["--docs", "x", "-n", "4"], "--docs.*--ranks"),
                (["--docs", "x", "--text"], "--docs.*--text"),
                (["-c", "allgather", "--root", "1"],
                 "allgather has no root: .*--root"),
                (["-c", "reduce", "--radix", "3"], "--radix"),
                (["-a", "ring", "--radix", "3"], "--radix"),
                (["-a", "bcub", "--radix", "4"], "no algorithm 'bcub'"),
                (["--inside", "memory"], "--ranks-per-host"),
                (["--inside", "memory", "--ranks-per-host", "0"],
                 "--ranks-per-host: at least 1"),
                (["--network", "loopback", "--inside", "memory"],
                 "--ranks-per-host"),
                *((["-a", "ring", "--text", option, value], f"not with {option}")
                  for option, value in (
                      ("--network", "memory"), ("--alpha", "20"),
                      ("--bandwidth", "3"), ("--segment", "1K"),
                      ("--window", "8"), ("--cores", "2"), ("--slow-rank", "1"),
                      ("--most-actions", "5"), ("--element-size", "2"))),
                (["-a", "ring", "--draw", "/dev/null", "--out-of-place"],
                 "not with --out-of-place"),
                (["--cores", "-1"], "--cores"),
                (["--draw-segments", "2"], "--draw or --text"),
                (["--most-actions", "1e9"], "below 1e9"),
                (["--slow-rank", "1", "--slow-factor", "1e7"], "up to 1e6"),
                (["--window", "65"], "--window")):
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertRegex(result.stderr, says)
                self.assertEqual(result.stderr.count("\n"), 1)

    def test_files_that_cannot_be_had_are_status_1(self):
        for arguments in (["--check", "/nonexistent/x"],
                          ["--plot", "/nonexistent/x", "-n", "16384"],
                          ["--json", "/nonexistent/x", "-s", "8"],
                          ["-a", "ring", "--draw", "/nonexistent/x"]):
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 1)
                self.assertIn("/nonexistent/x: No such file or directory",
                              result.stderr)

    def test_help_lists_options_and_networks(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for word in ("--collective", "--check", "datacentre", "loopback"):
            self.assertIn(word, result.stdout)


if __name__ == "__main__":
    unittest.main()
