"""What the programs of the comparison, one rank after the other or a whole job,
answer to what is wrong.
Usage: compare_programs_test.py DIRECTORY_OF_PROGRAMS

The directory is that of the build's benchmarks."""

import os
import subprocess
import sys
import tempfile
import unittest

DIRECTORY = sys.argv.pop(1)
OURS = os.path.join(DIRECTORY, "compare", "compare_ours")
MESSAGES = os.path.join(DIRECTORY, "compare", "compare_messages")
LIMIT = os.path.join(DIRECTORY, "limit", "compare_limit")


def run_job(program, directory, *options, output=subprocess.PIPE):
    """(exit status, stdout, stderr) of each of two ranks."""
    ranks = [subprocess.Popen(
        [program, "--directory", directory, "--rank", str(rank), "--size", "2",
         "--budget", "1", *options], stdout=output, stderr=subprocess.PIPE,
        text=True) for rank in range(2)]
    ended = [rank.communicate(timeout=60) for rank in ranks]
    return [(rank.returncode, *texts) for rank, texts in zip(ranks, ended)]


class Arguments(unittest.TestCase):
    def test_bad_ones_get_one_line_and_status_2(self):
        for program, line, says in (
                (OURS, ["--mode", "bsuy"], "'bsuy'"),
                (OURS, ["--mode", "busy ring"], "'busy ring'"),
                (MESSAGES, ["--mode", "shared"], "'shared'"),
                (LIMIT, ["--mode", "busy"], "'busy'"),
                (OURS, ["--size", "4294967297"], "--size 4294967297"),
                (OURS, ["--rank", "4294967296"], "--rank 4294967296"),
                (OURS, ["--size", "33"], "--size 33"),
                (MESSAGES, ["--sizes", "8,0"], "--sizes: there is nothing")):
            with self.subTest(line=line):
                done = subprocess.run(
                    [program, "--directory", "/nonexistent", "--rank", "0",
                     "--size", "1", *line], capture_output=True, text=True,
                    timeout=60, check=False)
                self.assertEqual(done.returncode, 2, done.stderr)
                self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
                self.assertIn(says, done.stderr)


class Output(unittest.TestCase):
    def test_that_is_lost_is_no_success(self):
        for program in (OURS, MESSAGES, LIMIT):
            with self.subTest(program=program), open("/dev/full", "w") as full, \
                    tempfile.TemporaryDirectory() as directory:
                [(status, _, errors), _] = run_job(
                    program, directory, "--sizes", "8", output=full)
                self.assertEqual(status, 1)
                self.assertIn("could be written", errors)


class Limit(unittest.TestCase):
    def test_memory_of_its_vectors_is_not_kept(self):
        with tempfile.TemporaryDirectory() as directory:
            for status, _, errors in run_job(
                    LIMIT, directory, "--sizes", "4,1024,1024,65536"):
                self.assertEqual(status, 0, errors)
            self.assertEqual(sorted(os.listdir(directory)), ["limit", "page"])


if __name__ == "__main__":
    unittest.main()
