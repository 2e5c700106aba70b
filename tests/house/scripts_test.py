"""./dev and .ci/run, what they refuse and what they tell before anything is
installed or built: in a copy, where building and testing leave a trace.
Usage: scripts_test.py"""

import os
import shutil
import subprocess
import tempfile
import unittest

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
# No package is there; what installs or builds is told and fails.
STUBS = {"dpkg-query": "",
         **dict.fromkeys(("apt-get", "sudo", "cmake", "ninja"),
                         "echo BUILT; exit 1")}


class Script(unittest.TestCase):
    def setUp(self):
        self._root = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self._root)
        for path in ("dev", ".ci", "benchmarks/compare"):
            source, copy = (os.path.join(folder, path)
                            for folder in (ROOT, self._root))
            if os.path.isdir(source):
                shutil.copytree(source, copy)
            else:
                shutil.copy(source, copy)
        self._stubs = os.path.join(self._root, "stubs")
        for name, text in STUBS.items():
            self.write(os.path.join(self._stubs, name), text)

    def write(self, path, text):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as file:
            file.write(f"#!/bin/sh\n{text}\n")
        os.chmod(path, 0o755)

    def run_it(self, *command, **environment):
        """(exit status, stdout and stderr)"""
        done = subprocess.run(
            command, cwd=self._root, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, timeout=60, check=False,
            env={**os.environ, "GLOO_RANKS": "", "PATH": self._stubs + ":"
                 + os.environ["PATH"], **environment})
        return done.returncode, done.stdout

    def assert_refused(self, says, *command, **environment):
        status, output = self.run_it(*command, **environment)
        self.assertNotEqual(status, 0, output)
        self.assertIn(says, output)
        self.assertNotIn("BUILT", output)


class Dev(Script):
    def test_help_builds_nothing(self):
        for command, says in (("bench", "./dev build release"),
                              ("compare-auto", "./dev build release"),
                              ("compare", "--plot"), ("pytorch", "--help"),
                              ("rdma-compare", "--rounds")):
            with self.subTest(command=command):
                status, output = self.run_it("./dev", command, "--help")
                self.assertEqual(status, 0, output)
                self.assertIn(says, output)
                self.assertNotIn("BUILT", output)

    def test_benchmarks_h_is_a_host(self):
        _, output = self.run_it("./dev", "bench", "-h", "host")
        self.assertIn("BUILT", output)

    def test_bad_options_of_the_comparisons_are_told_before_a_build(self):
        for command, says in (
                (["compare", "--ranks", "1"], "--ranks 1"),
                (["compare", "--json", ""], "--json: cannot write ''"),
                (["rdma-compare", "--rounds", "0"], "--rounds"),
                (["rdma-compare", "--json"], "needs a file"),
                (["rdma-compare", "--json="], "needs a file"),
                (["rdma-compare", "--json", "/nowhere/x"], "/nowhere/x"),
                (["rdma-compare", "--json=/nowhere/x"], "/nowhere/x")):
            with self.subTest(command=command):
                self.assert_refused(says, "./dev", *command)

    def test_one_file_holds_one_number_of_ranks(self):
        for options in (["--json", "x"], ["--json=x"]):
            self.assert_refused("GLOO_RANKS", "./dev", "compare-auto", *options)
            self.assert_refused("GLOO_RANKS", "./dev", "compare-auto", *options,
                                GLOO_RANKS="2 4")
            _, output = self.run_it("./dev", "compare-auto", *options,
                                    GLOO_RANKS="4")
            self.assertIn("BUILT", output)


class Ci(Script):
    def test_a_step_that_is_not_there_lets_none_run(self):
        self.write(os.path.join(self._root, "dev"), "echo BUILT")
        self.assert_refused("no step 'bogus'", ".ci/run", "test", "bogus")


if __name__ == "__main__":
    unittest.main()
