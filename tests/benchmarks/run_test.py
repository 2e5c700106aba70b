"""The benchmark program, run as its users run it. Usage: run_test.py PROGRAM"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

PROGRAM = sys.argv.pop(1)
SHORT = ["--warmup-iters", "1", "--iteration-count", "5"]


def run(*arguments, timeout=60):
    return subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, timeout=timeout, check=False)


def running(pid):
    """Whether it is there, and not just waiting to be collected."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def children(pid):
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        return [int(word) for word in file.read().split()]


class LocalRanks(unittest.TestCase):
    # What they do cannot be seen from outside.
    UNCHECKED = ("barrier", "barrier_all_to_all", "barrier_all_to_one",
                 "pairwise_exchange")

    def check_json(self, path, name, ranks):
        with open(path) as file:
            rows = json.load(file)
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(row["benchmark"], name)
            self.assertEqual(row["algorithm"], "auto")
            self.assertEqual(row["ranks"], ranks)
            self.assertEqual(row["verified"], name not in self.UNCHECKED)
            self.assertLessEqual(row["min_us"], row["p50_us"])
            self.assertLessEqual(row["p50_us"], row["p99_us"])
            self.assertLessEqual(row["p99_us"], row["max_us"])
        return rows

    def one(self, name, ranks, *more):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "out.json")
            done = run("--ranks", str(ranks), "--json", path, *SHORT, *more,
                       name)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertEqual(done.stderr, "")
            return self.check_json(path, name, ranks)

    def test_vectors_of_the_shared_allocator(self):
        for name in ("allreduce", "alltoall"):
            self.one(name, 2, "--shared-memory", "--elements", "100000")

    def test_allreduce_of_a_sweep_is_verified(self):
        rows = self.one("allreduce", 2)
        self.assertEqual([row["bytes"] for row in rows],
                         [4 * 4 ** i for i in range(13)])
        self.assertEqual({row["iterations"] for row in rows}, {5})

    def test_all_that_is_moved_counts(self):
        for name, more, times in (
                ("sendrecv_stress", ["--messages", "7"], 7),
                ("isendirecv_stress", ["--messages", "7"], 7),
                ("sendrecv_roundtrip", [], 2),
                ("allgather", [], 3),
                ("allgather_ring", ["--inputs", "2"], 6),
                ("allreduce", ["--inputs", "2"], 1)):
            with self.subTest(name=name):
                row, = self.one(name, 3, "--elements", "300", *more)
                self.assertEqual(row["bytes"], 1200)
                self.assertEqual(row["total_bytes"], times * 1200)
                self.assertAlmostEqual(row["algorithm_bandwidth_gbs"],
                                       times * 1.2 / row["p50_us"])

    def test_parts_of_ranks_are_equal_and_not_empty(self):
        row, = self.one("new_reduce_scatter", 3, "--elements", "500")
        self.assertEqual((row["elements"], row["bytes"]), (498, 1992))
        rows = self.one("new_reduce_scatter", 3)
        self.assertEqual([row["elements"] for row in rows[:3]], [3, 15, 63])

    def test_odd_rank_counts(self):
        for ranks in (1, 3, 5):
            with self.subTest(ranks=ranks):
                self.one("allreduce", ranks, "--elements", "1001")

    def test_half_precision_and_several_inputs(self):
        self.one("allreduce", 2, "--elements", "3000", "--halfprecision",
                 "--inputs", "3")

    def test_several_threads(self):
        rows = self.one("allreduce", 2, "--elements", "100", "--threads", "3")
        self.assertEqual(rows[0]["iterations"], 15)

    def test_synchronous_modes(self):
        for more in (["--sync", "true"], ["--busy-poll", "true"]):
            with self.subTest(more=more):
                self.one("allreduce", 2, "--elements", "100", *more)

    def every_benchmark(self, *more):
        """The rows of each, with odd ranks where that makes sense."""
        listed = run("--help").stdout.split("Benchmarks:\n")[1].splitlines()
        names = [line.split()[0] for line in listed if line.strip()]
        self.assertIn("broadcast", names)
        for name in names:
            with self.subTest(name=name):
                ranks = 4 if name == "pairwise_exchange" else 3
                own = (["--messages", "5"] if name.endswith("_stress") else [])
                yield from self.one(name, ranks, "--elements", "501", *own,
                                    *more)

    def test_every_other_benchmark(self):
        for row in self.every_benchmark():
            self.assertEqual(row["type"], "float32")

    def test_every_benchmark_in_half_precision(self):
        for row in self.every_benchmark("--halfprecision"):
            self.assertEqual(row["type"], "float16")
            self.assertIn(row["bytes"], (0, 1002))

    def test_what_was_asked_for_is_in_the_report(self):
        for wish, name, collective, algorithm in (
                ("reduce_scatter=ring", "new_reduce_scatter",
                 "reduce_scatter", "ring"),
                (" allreduce = ring,allreduce=bcube", "allreduce",
                 "allreduce", "bcube")):
            with tempfile.TemporaryDirectory() as directory:
                path = os.path.join(directory, "out.json")
                done = subprocess.run(
                    [PROGRAM, "--ranks", "3", "--elements", "1000", *SHORT,
                     "--json", path, name], capture_output=True, text=True,
                    timeout=60, check=False,
                    env=dict(os.environ, GLOO_ALGORITHM=wish))
                self.assertEqual(done.returncode, 0, done.stderr)
                with open(path) as file:
                    row = json.load(file)[0]
            self.assertEqual((row["collective"], row["algorithm"]),
                             (collective, algorithm))

    def test_it_ends_where_children_are_nobodys_concern(self):
        done = subprocess.run(
            [PROGRAM, "--ranks", "2", "--elements", "10", *SHORT, "allreduce"],
            capture_output=True, text=True, timeout=60, check=False,
            preexec_fn=lambda: signal.signal(signal.SIGCHLD, signal.SIG_IGN))
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_what_is_not_checked_is_not_said_to_be(self):
        for name, says in (("allreduce", "verify=yes"),
                           ("pairwise_exchange", "verify=no")):
            done = run("--ranks", "2", "--elements", "10", *SHORT, name)
            self.assertIn(says, done.stdout)

    def test_bad_command_line(self):
        done = run("--ranks", "2", "--elements", "many", "allreduce")
        self.assertEqual(done.returncode, 2)
        self.assertEqual(done.stderr.count("\n"), 1)
        self.assertIn("many", done.stderr)


class SeparateProcesses(unittest.TestCase):
    def test_ranks_meet_in_a_shared_directory(self):
        with tempfile.TemporaryDirectory() as directory:
            ranks = [subprocess.Popen(
                [PROGRAM, "-s", "3", "-r", str(rank), "--shared-path",
                 directory, "--tcp-device", "lo", "--elements", "100", *SHORT,
                 "allreduce"], stdout=subprocess.PIPE, text=True)
                for rank in range(3)]
            output = [rank.communicate(timeout=60)[0] for rank in ranks]
            self.assertEqual([rank.returncode for rank in ranks], [0, 0, 0])
            self.assertIn("400", output[0])
            self.assertEqual(output[1:], ["", ""])


class Trouble(unittest.TestCase):
    def test_a_table_or_help_that_is_lost_is_an_error(self):
        for arguments in (["--ranks", "2", "--elements", "10",
                           "--iteration-count", "1", "allreduce_ring"],
                          ["--help"]):
            with open("/dev/full", "w", encoding="ascii") as full:
                done = subprocess.run(
                    [PROGRAM, *arguments], stdout=full, stderr=subprocess.PIPE,
                    text=True, timeout=60, check=False)
            self.assertEqual(done.returncode, 1)
            self.assertIn("not all output could be written to stdout",
                          done.stderr)

    def test_output_without_a_descriptor_is_lost_which_is_an_error(self):
        done = subprocess.run(
            ["bash", "-c", 'exec "$@" <&- >&- 2>&-', "bash", PROGRAM,
             "--ranks", "2", "--elements", "10", "--iteration-count", "1",
             "allreduce_ring"], timeout=60, check=False)
        self.assertEqual(done.returncode, 1)

    def test_no_place_for_the_ranks_to_meet_is_named(self):
        done = subprocess.run(
            [PROGRAM, "--ranks", "2", "allreduce"], capture_output=True,
            text=True, timeout=60, check=False,
            env={**os.environ, "TMPDIR": "/nonexistent"})
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, "/nonexistent .*TMPDIR.*No such file")

    def test_a_rank_whose_environment_disagrees_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            ranks = []
            for rank, wish in enumerate(("ring", "ring", "bcube")):
                ranks.append(subprocess.Popen(
                    [PROGRAM, "-s", "3", "-r", str(rank), "--shared-path",
                     directory, "--tcp-device", "lo", "--elements", "100",
                     *SHORT, "allreduce"],
                    env=dict(os.environ, GLOO_ALGORITHM="allreduce=" + wish),
                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                    text=True))
            errors = [rank.communicate(timeout=60)[1] for rank in ranks]
        self.assertEqual([rank.returncode for rank in ranks], [1, 1, 1])
        for error in errors:
            self.assertIn("rank 2", error)
            self.assertIn("allreduce=bcube", error)


class Failure(unittest.TestCase):
    def start_endless(self):
        process = subprocess.Popen(
            [PROGRAM, "--ranks", "3", "--elements", "10", "--iteration-time",
             "10m", "allreduce"], stdout=subprocess.PIPE,
            stderr=subprocess.PIPE, text=True)
        line = ""
        while "iterations" not in line:  # the header: all are connected
            line = process.stdout.readline()
            self.assertTrue(line, "ended early")
        return process, children(process.pid)

    def assert_gone(self, pids):
        for pid in pids:
            self.assertFalse(os.path.exists(f"/proc/{pid}"), pid)

    def test_a_killed_rank_ends_all_and_is_named(self):
        process, ranks = self.start_endless()
        os.kill(ranks[1], signal.SIGKILL)
        _, errors = process.communicate(timeout=20)
        self.assertEqual(process.returncode, 1)
        self.assertIn("rank 1", errors)
        self.assert_gone(ranks)

    def test_ctrl_c_leaves_nothing_behind(self):
        before = set(os.listdir(tempfile.gettempdir()))
        process, ranks = self.start_endless()
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=20)
        self.assertEqual(process.returncode, 128 + signal.SIGINT)
        self.assert_gone(ranks)
        left = set(os.listdir(tempfile.gettempdir())) - before
        self.assertFalse([name for name in left
                          if name.startswith("benchmark.")])

    def test_ranks_end_with_their_parent(self):
        process, ranks = self.start_endless()
        process.kill()
        process.communicate(timeout=20)
        deadline = time.monotonic() + 20
        while any(running(pid) for pid in ranks):
            self.assertLess(time.monotonic(), deadline)
            os.sched_yield()


if __name__ == "__main__":
    unittest.main()
