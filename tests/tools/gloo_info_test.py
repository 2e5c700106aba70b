"""gloo_info, run as its users run it. Usage: gloo_info_test.py PROGRAM"""

import ctypes
import json
import subprocess
import sys
import tempfile
import unittest

PROGRAM = sys.argv.pop(1)


def run(*arguments):
    return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True,
                          timeout=60, check=False)


class GlooInfo(unittest.TestCase):
    def test_names_version_transports_and_the_interface_for_tcp(self):
        result = run()
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertRegex(result.stdout, r"(?m)^gloo \d+\.\d+\.\d+ \(")
        self.assertRegex(result.stdout, r"(?m)^transports: auto, tcp, shm")
        linked = subprocess.run(["ldd", PROGRAM], capture_output=True,
                                text=True, timeout=60, check=True).stdout
        self.assertRegex(result.stdout, r"(?m)^host: " + (
            r"\d+ cores, \d+ NUMA" if "libhwloc" in linked else "unknown"))
        self.assertRegex(result.stdout, r"(?m)^this process: may run on \d+ "
                         r"cores.*; more than \d+ ranks on this host share ")
        self.assertRegex(result.stdout, r"(?m)^  lo: 127\.0\.0\.1.*loopback")
        self.assertRegex(result.stdout, r"(?m)^  a TCP device uses: \w+")
        self.assertRegex(result.stdout, r"(?m)^RDMA devices:")
        self.assertRegex(
            result.stdout,
            r"(?m)^the automatic device: auto, shm or .*tcp, \w+, listening on")

    def test_a_cuda_driver_that_is_missing_is_named(self):
        try:
            ctypes.CDLL("libcuda.so.1")
            says = "by the CUDA driver, "
        except OSError:
            says = (r"none, without the CUDA driver \(libcuda\.so\.1: .+\): "
                    r"install NVIDIA's$")
        self.assertRegex(run().stdout,
                         "(?m)^memory of CUDA devices: " + says)

    def test_an_rdma_device_that_is_not_there_is_status_1(self):
        result = run("--ib-device", "no_such_device")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout,
                         "No RDMA device|this build is without them")

    def test_output_that_is_lost_is_an_error(self):
        with open("/dev/full", "w", encoding="ascii") as full:
            result = subprocess.run([PROGRAM], stdout=full, timeout=60,
                                    stderr=subprocess.PIPE, text=True,
                                    check=False)
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stderr, "^gloo_info: not all output could be "
                         "written to stdout\n$")

    def decisions(self, *arguments):
        result = run("--algorithms", "--json", *arguments)
        self.assertEqual(result.returncode, 0, result.stderr)
        return json.loads(result.stdout)["decisions"]

    def test_the_decision_table_covers_all_sizes_without_gaps(self):
        for transport in ("tcp", "shm", "ibverbs", "auto"):
            rows = self.decisions("--ranks", "7", "--transport", transport)
            by_name = {}
            for row in rows:
                by_name.setdefault(row["collective"], []).append(row)
            self.assertIn("reduce_scatterv", by_name)
            for ranges in by_name.values():
                self.assertEqual(ranges[0]["first_bytes"], 0)
                self.assertIn(ranges[-1]["last_bytes"], (0, 1 << 30))
                for left, right in zip(ranges, ranges[1:]):
                    self.assertEqual(left["last_bytes"] + 1,
                                     right["first_bytes"])
                    self.assertLessEqual(left["first_seconds"],
                                         left["last_seconds"])

    def test_what_not_all_ranks_know_is_cut_into_segments(self):
        segments = {row["collective"]: row["segment_bytes"] for row in
                    self.decisions("--ranks", "4", "--transport", "tcp")}
        for collective in "gatherv", "alltoallv":
            self.assertEqual(segments[collective], 196352)
        self.assertEqual(segments["barrier"], 0)

    def test_says_what_runs_direct_and_which_cores_count(self):
        def told(*arguments):
            result = run("--algorithms", "--json", *arguments)
            self.assertEqual(result.returncode, 0, result.stderr)
            return json.loads(result.stdout)
        for transport in ("shm", "auto"):
            direct = told("--transport", transport)["direct"]
            self.assertIn("allreduce", direct)
            self.assertIn("barrier", direct)
            self.assertNotIn("gather", direct)
            self.assertNotIn("alltoallv", direct)
        for arguments in (("--transport", "tcp"), ("--transport", "auto",
                          "--ranks-per-host", "4"), ("--transport", "shm",
                                                     "--ranks", "129")):
            self.assertEqual(told(*arguments)["direct"], [], arguments)
        self.assertRegex(run("--algorithms", "--transport", "shm").stdout,
                         "(?m)^where all ranks share memory, .* direct.*: "
                         "allreduce ")
        cores = told()["cores"]
        self.assertRegex(run("--algorithms").stdout,
                         f"^8 ranks, tcp, {cores or 'a'} core")

    def test_ranks_that_share_hosts_have_hierarchical_algorithms(self):
        def names(*arguments):
            return {row["algorithm"] for row in self.decisions(
                "--ranks", "16", *arguments) if row["collective"] in
                ("allreduce", "broadcast", "reduce", "allgather", "barrier")}
        self.assertFalse({name for name in names() if "hierarch" in name})
        shared = names("--ranks-per-host", "4", "--transport", "auto")
        self.assertIn("hierarchical", shared)
        self.assertTrue(shared & {"hierarchical_ring",
                                  "hierarchical_doubling"}, shared)

    def test_the_decision_table_is_that_of_a_tuning_file(self):
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump({"version": 1, "networks": [
                {"transport": "tcp", "ranks": 4, "latency": 1e-5,
                 "overhead": 1e-6, "gap": 1e-6, "gap_per_byte": 1e-9,
                 "reduce_per_byte": 1e-10, "copy_per_byte": 1e-10,
                 "segment_bytes": 65536, "best": {"reduce": [
                     {"bytes": 0, "algorithm": "rabenseifner"},
                     {"bytes": 777, "algorithm": "binomial"}]}}]}, file)
            file.flush()
            rows = [row for row in self.decisions("--ranks", "4", "--tuning",
                                                  file.name)
                    if row["collective"] == "reduce"]
            self.assertEqual((rows[0]["algorithm"], rows[0]["last_bytes"]),
                             ("rabenseifner", 776))
            self.assertEqual(rows[1]["algorithm"], "binomial")
            text = run("--algorithms", "--ranks", "4", "--tuning", file.name)
            self.assertRegex(text.stdout, r"(?m)^reduce +0 +776  rabenseifner")

    def test_says_from_which_sizes_on_direct_collectives_do_what(self):
        def told(path=None, ranks="4", *more):
            result = run("--algorithms", "--transport", "shm", "--ranks", ranks,
                         *(["--tuning", path] if path else []), *more)
            self.assertEqual(result.returncode, 0, result.stderr)
            return result.stdout
        self.assertEqual(json.loads(told(None, "4", "--json"))
                         ["direct_parameters"],
                         {"flat_bytes": 1024, "crowded_flat_bytes": 12288,
                          "rooted_bytes": 524288,
                          "crowded_rooted_bytes": 2097152,
                          "halved_bytes": 32768, "in_place_bytes": 32768,
                          "read_bytes": 1048576,
                          "most_bytes": {}})
        self.assertRegex(
            told(), r"(?m)^  allreduce flat up to 1024 B \(12288 B where ranks "
            r"share a core\), reduce by the root alone up to 524288 B "
            r"\(2097152 B where ranks share a core\), in slices above; "
            r".* from 32768 B; alltoall by one copy of the kernel's, where that "
            r"is permitted, from 1048576 B; chunks of a slot$")
        self.assertRegex(told(None, "2"), "in halves, .* from 32768 B;")
        with tempfile.NamedTemporaryFile("w") as file:
            json.dump({"version": 1, "networks": [
                {"transport": "shm", "ranks": 4, "latency": 1e-5,
                 "overhead": 1e-6, "gap": 1e-6, "gap_per_byte": 1e-9,
                 "reduce_per_byte": 1e-10, "copy_per_byte": 1e-10,
                 "segment_bytes": 65536, "direct": {
                     "flat_bytes": 1234, "in_place_bytes": 5678,
                     "read_bytes": 9999,
                     "chunk_bytes": 65536,
                     "most_bytes": {"alltoall": 999999}}}]}, file)
            file.flush()
            self.assertRegex(
                told(file.name), r"flat up to 1234 B, reduce .* from 5678 B; "
                r"alltoall .* from 9999 B; chunks of at most 65536 B; "
                r"alltoall by the links above 999999 B\n")
            self.assertEqual(
                json.loads(told(file.name, "4", "--json"))["direct_parameters"]
                ["most_bytes"], {"alltoall": 999999})

    def test_a_bad_tuning_file_is_status_1(self):
        with tempfile.NamedTemporaryFile("w") as file:
            file.write("nonsense")
            file.flush()
            result = run("--algorithms", "--tuning", file.name)
            self.assertEqual(result.returncode, 1)
            self.assertIn("GLOO_TUNING_FILE", result.stderr)

    def test_help_lists_the_options(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for option in ("--ib-device", "--ib-port", "--ib-index",
                       "--algorithms", "--tuning"):
            self.assertIn(option, result.stdout)

    def test_a_bad_command_line_is_one_line_and_status_2(self):
        for arguments, says in (
                (["--no-such-option"], "--no-such-option"),
                (["rest"], "rest"),
                (["--ranks", "4"], "--algorithms"),
                (["--algorithms", "--ranks", "1"], "--ranks"),
                (["--algorithms", "--ranks", "x"], "--ranks"),
                (["--algorithms", "--transport", "smoke"], "smoke"),
                (["--algorithms", "--ib-port", "1"], "--ib-port"),
                (["--ib-port", "x"], "--ib-port")):
            with self.subTest(arguments):
                result = run(*arguments)
                self.assertEqual(result.returncode, 2, result.stderr)
                self.assertIn(says, result.stderr)
                self.assertEqual(result.stderr.count("\n"), 1)


if __name__ == "__main__":
    unittest.main()
