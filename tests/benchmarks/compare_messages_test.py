"""Two ranks of compare_messages at the sizes of the comparison over RDMA.
Usage: compare_messages_test.py DIRECTORY_OF_COMPARE PROGRAM"""

import sys

DIRECTORY, PROGRAM = sys.argv[1:]
sys.path.insert(0, DIRECTORY)

import job  # noqa: E402
import rdma_report  # noqa: E402

rows = job.run(
    [[PROGRAM, "--directory", "{directory}", "--transport", "tcp", "--sizes",
      ",".join(map(str, [*rdma_report.STREAM_SIZES,
                         rdma_report.LATENCY_BYTES])), "--budget", "1", "--mode",
      "default", "--rank", str(rank), "--size", "2"] for rank in range(2)],
    {}, 100)
measured = {(row["mode"], row["collective"], row["bytes"]) for row in rows}
expected = {(f"{kind} default", *what)
            for kind in rdma_report.LATENCY_BARS
            for what in [("latency", rdma_report.LATENCY_BYTES),
                         *(("stream", size)
                           for size in rdma_report.STREAM_SIZES)]}
if measured != expected:
    sys.exit(f"measured {sorted(measured)} instead of {sorted(expected)}")
