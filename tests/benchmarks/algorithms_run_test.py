"""The benchmark program's --all-algorithms and --tune, run as its users run them.
Usage: algorithms_run_test.py PROGRAM"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True,
                          text=True, timeout=60, check=False)


class Algorithms(unittest.TestCase):
    QUICK = ["--iteration-time", "1ms", "--largest", "4096"]

    def tune(self, path, ranks, *names):
        done = run("--ranks", str(ranks), "--tune", path, *self.QUICK, *names)
        self.assertEqual(done.returncode, 0, done.stderr)
        with open(path) as file:
            return done.stdout, json.load(file)

    def test_every_algorithm_beside_the_librarys_choice(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "out.json")
            done = run("--ranks", "3", "--all-algorithms", "--json", path,
                       *self.QUICK)
            self.assertEqual(done.returncode, 0, done.stderr)
            with open(path) as file:
                rows = json.load(file)
        collectives = {row["collective"] for row in rows}
        self.assertLessEqual({"allreduce", "broadcast", "reduce_scatter"},
                             collectives)
        for collective in collectives:
            names = {row["algorithm"] for row in rows
                     if row["collective"] == collective}
            self.assertIn("auto", names)
            self.assertGreater(len(names), 2)
        # What is moved: 16, 64, ... bytes less what has no equal parts.
        for collective in ("allgather", "alltoall", "reduce_scatter"):
            self.assertEqual(
                sorted({row["bytes"] for row in rows
                        if row["collective"] == collective}),
                [12, 60, 252, 1020, 4092], collective)
        self.assertIn("auto / best", done.stdout)

    def test_ranks_that_share_hosts_have_hierarchical_algorithms(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "out.json")
            ranks = [subprocess.Popen(
                [PROGRAM, "-s", "4", "-r", str(rank), "--shared-path",
                 directory, "--tcp-device", "lo", "--all-algorithms", "--json",
                 path, *self.QUICK, "allreduce"],
                env={**os.environ, "GLOO_HOST_ID": str(rank // 2)},
                stdout=subprocess.DEVNULL) for rank in range(4)]
            self.assertEqual([rank.wait(timeout=60) for rank in ranks],
                             [0, 0, 0, 0])
            with open(path) as file:
                names = {row["algorithm"] for row in json.load(file)}
        self.assertLessEqual({"hierarchical_ring", "hierarchical_doubling"},
                             names)

    def test_what_is_tuned_is_kept_and_can_be_used(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "tuning.json")
            said, _ = self.tune(path, 2, "reduce")
            self.assertIn("1 of 1, reduce: ", said)
            self.tune(path, 2, "broadcast")
            _, content = self.tune(path, 3, "reduce")
            self.assertEqual([(n["transport"], n["ranks"], sorted(n["best"]))
                              for n in content["networks"]],
                             [("auto", 2, ["broadcast", "reduce"]),
                              ("auto", 3, ["reduce"])])
            # What collectives in memory that all have mapped do from which
            # size on was found out for each number of ranks.
            self.assertIn("in memory that all ranks have mapped:", said)
            self.assertEqual([name for name in os.listdir(directory)
                              if name != "tuning.json"], [])
            for network in content["networks"]:
                self.assertLessEqual(
                    set(network["direct"]), {"flat_bytes", "halved_bytes",
                                             "in_place_bytes", "most_bytes"})
                self.assertNotIn("flat_bytes" if network["ranks"] == 2 else
                                 "halved_bytes", network["direct"])
            # Only rank 0 needs the file.
            ranks = []
            for rank in range(2):
                environment = dict(os.environ)
                if rank == 0:
                    environment["GLOO_TUNING_FILE"] = path
                ranks.append(subprocess.Popen(
                    [PROGRAM, "-s", "2", "-r", str(rank), "--shared-path",
                     directory, "--tcp-device", "lo", "--elements", "100",
                     "--iteration-count", "5", "reduce"], env=environment,
                    stdout=subprocess.DEVNULL))
            self.assertEqual([rank.wait(timeout=60) for rank in ranks], [0, 0])

    def test_what_was_not_measured_stays_in_the_file(self):
        kept = {"read_bytes": 4096, "rooted_bytes": 5000,
                "crowded_rooted_bytes": 5001, "chunk_bytes": 8192,
                "most_bytes": {"reduce": 77}}
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "tuning.json")
            _, content = self.tune(path, 2, "broadcast")
            network, = content["networks"]
            network["direct"] = {**kept, "in_place_bytes": 999}
            with open(path, "w") as file:
                json.dump(content, file)
            _, content = self.tune(path, 2, "broadcast")
        direct = content["networks"][0]["direct"]
        direct["most_bytes"].pop("broadcast", None)
        self.assertEqual({key: direct.get(key) for key in kept}, kept)
        # Whichever way was quicker.
        self.assertIn("in_place_bytes", direct)
        self.assertNotEqual(direct["in_place_bytes"], 999)

    def test_a_tuning_file_that_cannot_be_read_is_named(self):
        with tempfile.TemporaryDirectory() as directory:
            done = run("--ranks", "2", "--tune", directory, *self.QUICK,
                       "reduce")
        self.assertEqual(done.returncode, 1)
        self.assertIn(f"--tune: cannot read {directory}: ", done.stderr)

    def test_what_is_no_tuning_file_is_left_alone(self):
        with tempfile.NamedTemporaryFile("w+") as file:
            file.write("my novel")
            file.flush()
            done = run("--ranks", "2", "--tune", file.name, *self.QUICK)
            self.assertEqual(done.returncode, 1)
            self.assertIn("no tuning file", done.stderr)
            file.seek(0)
            self.assertEqual(file.read(), "my novel")

    def test_a_file_that_cannot_be_written_is_told_before_the_work(self):
        done = run("--ranks", "2", "--tune", "/nonexistent/x", *self.QUICK)
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot write /nonexistent/x", done.stderr)
        self.assertEqual(done.stdout, "")


if __name__ == "__main__":
    unittest.main()
