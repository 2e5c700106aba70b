"""gloo_simulate --check, run as its users run it.
Usage: gloo_simulate_check_test.py PROGRAM"""

import json
import pathlib
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True,
                          text=True, timeout=600, check=False)


class Check(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def measured(self, ring, doubling):
        file = self.folder / "measured.json"
        file.write_text(json.dumps(
            [{"collective": "allreduce", "ranks": 8, "bytes": 1 << 26,
              "algorithm": name, "us": us}
             for name, us in (("ring", ring), ("recursive_doubling", doubling),
                              ("auto", 1))]))
        return file

    def test_holds_measurements_against_the_predicted_order(self):
        right = run("--check", self.measured(ring=100, doubling=130))
        self.assertEqual(right.returncode, 0, right.stderr)
        self.assertRegex(right.stdout, r"(?m)^1 pairs .* 0 of them")
        close = run("--check", self.measured(ring=120, doubling=100))
        self.assertEqual(close.returncode, 1)  # nothing was compared
        self.assertRegex(close.stdout, r"(?m)^0 pairs")
        benchmark = self.folder / "benchmark.json"
        benchmark.write_text(json.dumps(
            [{"benchmark": "allreduce", "ranks": 8, "bytes": 1 << 26,
              "algorithm": "flat", "p50_us": 1000}]))
        both = run("--check", self.measured(ring=100, doubling=130), benchmark)
        self.assertEqual(both.returncode, 0, both.stdout + both.stderr)
        self.assertRegex(both.stdout, r"(?m)^3 pairs")
        wrong = run("--check", self.measured(ring=130, doubling=100))
        self.assertEqual(wrong.returncode, 1)
        self.assertRegex(wrong.stdout, "allreduce, 8 ranks, 64 MiB: recursive")

    def check(self, *rows):
        file = self.folder / "rows_to_check.json"
        file.write_text(json.dumps(rows))
        return run("--check", file)

    def test_repeated_measurements_are_one_by_their_median(self):
        row = {"collective": "allreduce", "ranks": 8, "bytes": 1 << 26}
        def times(algorithm, *us):
            return [{**row, "algorithm": algorithm, "us": each} for each in us]
        alone = self.check(*times("ring", 100, 200))
        self.assertRegex(alone.stdout, r"(?m)^0 pairs")
        two = self.check(*times("ring", 100, 300, 101),
                         *times("recursive_doubling", 130, 10, 131))
        self.assertEqual(two.returncode, 0, two.stdout + two.stderr)
        self.assertRegex(two.stdout, r"(?m)^1 pairs .* 0 of them")

    def test_single_runs_are_of_all_ranks_blocks_together(self):
        row = {"collective": "allgather", "ranks": 8}
        single = {**row, "benchmark": "allgather", "bytes": 1 << 20}
        # Whichever says so: all of them are of what was moved in all.
        result = self.check(
            {**single, "algorithm": "ring", "total_bytes": 1 << 23,
             "p50_us": 100},
            {**single, "algorithm": "recursive_doubling", "p50_us": 200},
            {**row, "bytes": 1 << 23, "algorithm": "bruck", "us": 20})
        self.assertRegex(result.stdout, r"(?m)^3 pairs .* 2 of them")
        self.assertIn("allgather, 8 ranks, 8 MiB: bruck", result.stdout)
        single = {"collective": "reduce_scatter", "ranks": 8,
                  "benchmark": "new_reduce_scatter", "bytes": 1 << 20}
        result = self.check(
            {**single, "algorithm": "in_order", "p50_us": 1},
            {**single, "algorithm": "pairwise", "p50_us": 2})
        self.assertIn("8 ranks, 1 MiB: in_order", result.stdout)

    def test_a_check_that_predicts_nothing_is_no_success(self):
        file = self.measured(ring=130, doubling=100)
        result = run("--check", file, "--most-actions", "0.00001")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"(?m)^0 pairs")
        self.assertRegex(result.stdout, r"(?m)^2 times .* no prediction")
        self.assertRegex(result.stderr, "ring is left out.*most-actions")
        # The other pair is right, but not all that was asked for is answered.
        other = self.folder / "other.json"
        other.write_text(json.dumps(
            [{"collective": "allreduce", "ranks": 6, "bytes": 1 << 26,
              "algorithm": name, "us": us}
             for name, us in (("ring", 100), ("recursive_doubling", 130))]
            + [{"collective": "allgather", "ranks": 6, "bytes": 8, "us": 9,
                "algorithm": "recursive_doubling"}]))
        result = run("--check", other)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout, r"(?m)^1 pairs .* 0 of them")
        self.assertRegex(result.stdout, r"(?m)^1 times .* no prediction")
        self.assertIn("recursive_doubling does not work for 6 ranks",
                      result.stderr)
        for text in "[]", "{}":
            other.write_text(text)
            result = run("--check", other)
            self.assertEqual(result.returncode, 1, text)
            self.assertIn(str(other), result.stderr)
            # Beside a file that has some.
            both = run("--check", self.measured(ring=100, doubling=130), other)
            self.assertEqual(both.returncode, 1, text)
            self.assertIn(str(other), both.stderr)

    def test_rows_to_check_have_ranks_and_bytes_that_can_be(self):
        file = self.folder / "measured.json"
        good = {"collective": "allreduce", "algorithm": "ring", "us": 1,
                "ranks": 4, "bytes": 1024}
        for key, values in (
                ("ranks", (100000, 16385, 1, 0, -3, 2.5, 1e30, "4", None)),
                ("bytes", (-8, 1e30, (1 << 40) + 1, 0.5, "8", True))):
            for value in values:
                with self.subTest(key=key, value=value):
                    file.write_text(json.dumps([good, {**good, key: value}]))
                    result = run("--check", file)
                    self.assertEqual(result.returncode, 1)
                    self.assertRegex(result.stderr,
                                     f"measured.json: row 2: .*{key}")
                    self.assertEqual(result.stderr.count("\n"), 1)
        slow, fast = {**good, "us": 1000}, {**good, "bytes": 1024.0}
        file.write_text(json.dumps([{**slow, "algorithm": "flat"}, fast]))
        self.assertRegex(run("--check", file).stdout, r"(?m)^1 pairs")

    def test_rows_to_check_are_of_one_float32_call(self):
        file = self.folder / "measured.json"
        good = {"collective": "allreduce", "us": 1000, "ranks": 4,
                "bytes": 1024, "inputs": 1, "threads": 1, "type": "float32"}
        rows = [{**good, "algorithm": "flat"},
                {**good, "algorithm": "ring", "us": 1}]
        file.write_text(json.dumps(rows))
        self.assertRegex(run("--check", file).stdout, r"(?m)^1 pairs")
        for key, value in ("inputs", 2), ("threads", 2), ("type", "float16"):
            with self.subTest(key=key):
                file.write_text(json.dumps([rows[0], {**rows[1], key: value}]))
                result = run("--check", file)
                self.assertEqual(result.returncode, 1, result.stdout)
                self.assertRegex(result.stderr, f"json: row 2: {key} is ")

    def test_a_root_that_is_no_rank_of_the_files_is_a_bad_command_line(self):
        result = run("--check", self.measured(100, 130), "--root", 8)
        self.assertEqual(result.returncode, 2, result.stderr)
        self.assertIn("--root", result.stderr)
        self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
