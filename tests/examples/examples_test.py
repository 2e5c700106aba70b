"""The examples, as real processes. Usage: examples_test.py DIRECTORY [CASE]"""

import os
import shutil
import subprocess
import sys
import tempfile
import unittest

DIRECTORY = os.path.abspath(sys.argv.pop(1))


def run_all(commands, environments=None):
    """(exit status, stdout, stderr) of each."""
    environments = environments or [{}] * len(commands)
    processes = [subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**os.environ, **environment})
        for command, environment in zip(commands, environments)]
    ended = [process.communicate(timeout=60) for process in processes]
    return [(process.returncode, *texts)
            for process, texts in zip(processes, ended)]


class Example(unittest.TestCase):
    def assert_sums(self, ended, size):
        """0 + .. + (size - 1), and size more for each element."""
        first = size * (size - 1) // 2
        for rank, (status, output, errors) in enumerate(ended):
            self.assertEqual(status, 0, errors)
            self.assertIn(f"rank {rank} of {size}: the sum begins with "
                          f"{first} {first + size} {first + 2 * size}", output)

    def assert_refused(self, command, says, environment=None):
        [(status, _, errors)] = run_all([command], [environment or {}])
        self.assertNotEqual(status, 0)
        self.assertIn(says, errors)


class File(Example):
    PROGRAM = os.path.join(DIRECTORY, "allreduce_file")

    def test_three_ranks(self):
        with tempfile.TemporaryDirectory() as directory:
            self.assert_sums(run_all([[self.PROGRAM, str(rank), "3", directory]
                                      for rank in range(3)]), 3)

    def test_output_that_is_lost_is_no_success(self):
        with tempfile.TemporaryDirectory() as directory, \
                open("/dev/full", "w") as full:
            done = subprocess.run([self.PROGRAM, "0", "1", directory],
                                  stdout=full, stderr=subprocess.PIPE,
                                  text=True, timeout=60, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertIn("could be written", done.stderr)

    def test_usage(self):
        self.assert_refused([self.PROGRAM], "usage:")
        self.assert_refused([self.PROGRAM, "2", "2", "/tmp"], "rank '2'")
        self.assert_refused([self.PROGRAM, "x", "2", "/tmp"], "rank 'x'")


class Redis(Example):
    PROGRAM = os.path.join(DIRECTORY, "allreduce_redis")

    def setUp(self):
        server = shutil.which("redis-server")
        self.assertIsNotNone(server, "redis-server is not installed")
        self._directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self._directory)
        self._socket = os.path.join(self._directory, "redis")
        self._server = subprocess.Popen(
            [server, "--port", "0", "--unixsocket", self._socket, "--save", "",
             "--dir", self._directory], stdout=subprocess.PIPE, text=True)
        self.addCleanup(self._stop)
        for line in self._server.stdout:
            if "ready to accept connections" in line.lower():
                return
        self.fail("redis-server has ended")

    def _stop(self):
        self._server.terminate()
        self._server.communicate(timeout=20)

    def command(self, rank, size):
        return [self.PROGRAM, str(rank), str(size),
                "redis+unix://" + self._socket, "run1"]

    def test_three_ranks(self):
        self.assert_sums(run_all([self.command(rank, 3) for rank in range(3)]),
                         3)

    def test_no_server(self):
        self.assert_refused(
            [self.PROGRAM, "0", "2", "redis+unix:///no/such/socket", "run1"],
            "/no/such/socket")

    def test_usage(self):
        self.assert_refused([self.PROGRAM], "usage:")
        self.assert_refused([self.PROGRAM, "0", "2", "carrier-pigeon", "x"],
                            "carrier-pigeon")


class Launched(Example):
    PROGRAM = os.path.join(DIRECTORY, "allreduce_launched")

    def test_by_hand(self):
        with tempfile.TemporaryDirectory() as directory:
            environments = [{"GLOO_RANK": str(rank), "GLOO_SIZE": "3",
                             "GLOO_STORE": f"file://{directory}"}
                            for rank in range(3)]
            self.assert_sums(run_all([[self.PROGRAM]] * 3, environments), 3)

    def test_by_every_mpirun_that_is_installed(self):
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        launchers = (["mpirun.openmpi", *root, "--oversubscribe", "-np", "3"],
                     ["mpiexec.mpich", "-n", "3"])
        for launcher in launchers:
            if shutil.which(launcher[0]) is None:
                continue  # test_by_hand has run the example all the same
            with self.subTest(launcher=launcher[0]):
                [(status, output, errors)] = run_all(
                    [[*launcher, self.PROGRAM]])
                self.assertEqual(status, 0, errors)
                for rank in range(3):
                    self.assertIn(f"rank {rank} of 3: the sum begins with "
                                  "3 6 9", output)

    def test_contradictory_environment(self):
        self.assert_refused([self.PROGRAM], "GLOO_SIZE",
                            {"GLOO_RANK": "5", "GLOO_SIZE": "2",
                             "GLOO_STORE": "file:///tmp"})


if __name__ == "__main__":
    unittest.main()
