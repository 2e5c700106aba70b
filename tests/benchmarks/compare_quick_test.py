"""compare.py --quick keeps to its minute and writes what it promises.
Usage: compare_quick_test.py COMPARE BUILD_DIRECTORY"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

COMPARE, BUILD = sys.argv.pop(1), sys.argv.pop(1)
sys.path.insert(0, os.path.dirname(COMPARE))

import compare  # noqa: E402
import job  # noqa: E402

LIBGLOO = os.path.join(BUILD, "benchmarks", "peers", "libgloo", "peer_libgloo")
KEYS = {"program": str, "transport": str, "links": list, "mode": str,
        "collective": str, "ranks": int, "bytes": int, "p50_us": float,
        "min_us": float, "repetitions": int}


def ranks_of(pid):
    """The children of a process that have a directory: (pid, directory)."""
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        children = file.read().split()
    found = []
    for child in children:
        try:
            with open(f"/proc/{child}/cmdline") as file:
                words = file.read().split("\0")
        except FileNotFoundError:  # it has just ended
            continue
        if "--directory" in words:
            found.append((child, words[words.index("--directory") + 1]))
    return found


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
            # (An algorithm of libgloo's that is slow in a round sits out there.)
            self.assertGreaterEqual(row["repetitions"],
                                    1 if row["program"] == "libgloo" else 5)
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
        for microseconds in ours.values():
            self.assertGreater(microseconds, 0)

    @unittest.skipUnless(os.access(LIBGLOO, os.X_OK), "no peer_libgloo is built")
    def test_libgloo_runs_with_each_of_its_algorithms(self):
        rings = {"ring", "ring_chunked", "halving_doubling"}
        for mode, collective, ranks, algorithms in (
                ("default", "allreduce", 2, rings | {"bcube", "new"}),
                ("busy", "allreduce", 4, rings | {"bcube"}),
                ("busy", "allreduce", 3, rings),
                ("default", "reduce_scatter", 3, {"halving_doubling"})):
            with self.subTest(mode=mode, ranks=ranks):
                rows = job.run([
                    [LIBGLOO, "--directory", "{directory}", "--budget", "1",
                     "--collectives", collective, "--sizes", "4,1048576",
                     "--mode", mode, "--rank", str(rank), "--size", str(ranks)]
                    for rank in range(ranks)], {}, 60)
                self.assertEqual({row["mode"] for row in rows},
                                 {f"{mode} {name}" for name in algorithms})
                self.assertLessEqual(len(algorithms), compare.MOST_MODES)

    def test_told_to_end_it_leaves_nothing(self):
        for number in (signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                self.end_it_with(number)

    def end_it_with(self, number):
        with tempfile.TemporaryDirectory() as directory:
            process = subprocess.Popen(
                [sys.executable, COMPARE, "--quick", "--build-dir", BUILD,
                 "--plot", os.path.join(directory, "plot.svg")],
                stdout=subprocess.DEVNULL,
                # (Under nohup it would inherit that SIGHUP is ignored.)
                preexec_fn=lambda: signal.signal(number, signal.SIG_DFL))
            ranks = []
            try:
                deadline = time.monotonic() + 20
                while not ranks and time.monotonic() < deadline:
                    time.sleep(0.01)
                    ranks = ranks_of(process.pid)
                process.send_signal(number)
                self.assertEqual(process.wait(timeout=20), 130)
            finally:
                process.kill()
                process.wait()
            self.assertTrue(ranks)
            for pid, scratch in ranks:
                self.assertFalse(os.path.exists(f"/proc/{pid}"))
                self.assertFalse(os.path.exists(scratch))


if __name__ == "__main__":
    unittest.main()
