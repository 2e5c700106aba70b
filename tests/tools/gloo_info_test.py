"""gloo_info, run as its users run it. Usage: gloo_info_test.py PROGRAM"""

import subprocess
import sys
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
        self.assertRegex(result.stdout, r"(?m)^transports: tcp")
        self.assertRegex(result.stdout, r"(?m)^  lo: 127\.0\.0\.1.*loopback")
        self.assertRegex(result.stdout, r"(?m)^  a TCP device uses: \w+")
        self.assertRegex(result.stdout, r"(?m)^RDMA devices:")

    def test_an_rdma_device_that_is_not_there_is_status_1(self):
        result = run("--ib-device", "no_such_device")
        self.assertEqual(result.returncode, 1)
        self.assertRegex(result.stdout,
                         "No RDMA device|this build is without them")

    def test_help_lists_the_options(self):
        result = run("--help")
        self.assertEqual(result.returncode, 0)
        for option in ("--ib-device", "--ib-port", "--ib-index"):
            self.assertIn(option, result.stdout)

    def test_an_unknown_option_is_status_2(self):
        result = run("--no-such-option")
        self.assertEqual(result.returncode, 2)
        self.assertIn("--no-such-option", result.stderr)


if __name__ == "__main__":
    unittest.main()
