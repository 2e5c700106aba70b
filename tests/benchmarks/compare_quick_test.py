"""compare.py --quick keeps to its minute and writes what it promises.
Usage: compare_quick_test.py COMPARE BUILD_DIRECTORY"""

import json
import os
import subprocess
import sys
import tempfile
import time
import unittest

COMPARE, BUILD = sys.argv.pop(1), sys.argv.pop(1)
KEYS = {"program": str, "transport": str, "links": list, "mode": str,
        "collective": str, "ranks": int, "bytes": int, "p50_us": float,
        "min_us": float, "repetitions": int}


class Quick(unittest.TestCase):
    def test_quick(self):
        with tempfile.TemporaryDirectory() as directory:
            rows_file = os.path.join(directory, "rows.json")
            plot = os.path.join(directory, "plot.svg")
            start = time.monotonic()
            done = subprocess.run(
                [sys.executable, COMPARE, "--quick", "--build-dir", BUILD,
                 "--json", rows_file, "--plot", plot],
                capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertLess(time.monotonic() - start, 60)
            with open(rows_file) as file:
                rows = json.load(file)
            self.assertGreater(os.path.getsize(plot), 1000)
        self.assertIn("ours", done.stdout)
        for row in rows:
            self.assertEqual(set(row), set(KEYS))
            for key, kind in KEYS.items():
                self.assertIsInstance(row[key], kind, key)
            self.assertGreaterEqual(row["repetitions"], 5)
            self.assertTrue(row["links"])
        ours = [row for row in rows if row["program"] == "ours"]
        self.assertEqual({row["ranks"] for row in ours}, {2, 4})
        self.assertEqual({link for row in ours for link in row["links"]},
                         {"tcp"})

    def test_messages_of_two_ranks_there_and_back(self):
        with tempfile.TemporaryDirectory() as directory:
            rows_file = os.path.join(directory, "rows.json")
            done = subprocess.run(
                [sys.executable, COMPARE, "--quick", "--build-dir", BUILD,
                 "--ranks", "2", "--collectives", "pingpong",
                 "--sizes", "8,65536", "--repetitions", "1", "--json",
                 rows_file, "--plot", os.path.join(directory, "plot.svg")],
                capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(rows_file) as file:
                rows = json.load(file)
        ours = {(row["mode"], row["bytes"]): row["p50_us"] for row in rows
                if row["program"] == "ours"}
        self.assertEqual(set(ours), {
            (mode, size) for mode in ("default bound", "default unbound")
            for size in (8, 65536)})
        for time in ours.values():
            self.assertGreater(time, 0)


if __name__ == "__main__":
    unittest.main()
