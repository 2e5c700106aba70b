"""Runs one program of perftest (ib_write_bw, ib_send_lat, ...) between two
processes of this host."""

import itertools
import math
import os
import signal
import subprocess
import time

from job import JobError

_PORTS = itertools.count(18600)
_LISTENING = "0A"


def _gid_index(device):
    """Of a RoCE v2 address that is IPv4, which every host of a job can reach;
    None where the port has none (InfiniBand)."""
    port = f"/sys/class/infiniband/{device}/ports/1"
    index = 0
    while True:
        try:
            with open(f"{port}/gid_attrs/types/{index}") as file:
                kind = file.read().strip()
            with open(f"{port}/gids/{index}") as file:
                gid = file.read().strip()
        except OSError:
            return None
        if kind == "RoCE v2" and gid.startswith("0000:0000:0000:0000:0000:ffff"):
            return index
        index += 1


def _listens(port):
    for path in ("/proc/net/tcp", "/proc/net/tcp6"):
        with open(path) as file:
            next(file)
            for line in file:
                fields = line.split()
                if (fields[3] == _LISTENING
                        and int(fields[1].rsplit(":", 1)[1], 16) == port):
                    return True
    return False


def _await_server(server, port, until):
    while not _listens(port):
        if server.poll() is not None or time.monotonic() > until:
            raise JobError("the server did not start to listen")
        time.sleep(0.02)


def _line_of(output, size):
    """The numbers of the one line that starts with the size."""
    for line in output.splitlines():
        fields = line.split()
        if fields and fields[0] == str(size):
            numbers = [float(field) for field in fields]
            if all(map(math.isfinite, numbers)):
                return numbers
            break  # it failed to measure how fast the processor counts
    raise JobError(f"no result in: {output.strip()[-300:]}")


def _run(command, device, size, iterations, timeout_s):
    port = next(_PORTS)
    command = [*command, "-F", "-d", device, "-s", str(size),
               "-n", str(iterations), "-p", str(port)]
    gid = _gid_index(device)
    if gid is not None:
        command += ["-x", str(gid)]
    until = time.monotonic() + timeout_s
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE,
             "stderr": subprocess.STDOUT, "text": True,
             "start_new_session": True}
    server = subprocess.Popen(command, **pipes)
    client = None
    try:
        _await_server(server, port, until)
        client = subprocess.Popen([*command, "127.0.0.1"], **pipes)
        output, _ = client.communicate(timeout=until - time.monotonic())
        server.communicate(timeout=max(until - time.monotonic(), 1))
    except subprocess.TimeoutExpired:
        raise JobError(f"not done after {timeout_s:.0f} s") from None
    finally:
        for process in filter(None, (server, client)):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            process.wait()
    if client.returncode != 0:
        raise JobError(output.strip()[-300:])
    return _line_of(output, size)


def bandwidth(device, size, iterations, both_ways, timeout_s):
    """Bytes per microsecond; of both directions together if `both_ways`."""
    fields = _run(["ib_write_bw", *(["-b"] if both_ways else [])],
                  device, size, iterations, timeout_s)
    if fields[3] <= 0:
        raise JobError("it moved less than it can print")
    return fields[3] * (1 << 20) / 1e6  # its MB are MiB


def latency(program, device, size, iterations, timeout_s):
    """Typical (median) and least time of one message, in microseconds."""
    fields = _run([program], device, size, iterations, timeout_s)
    return fields[4], fields[2]


def exchange(device, size, iterations, timeout_s):
    """Mean microseconds in which both sides send one message to each other, the
    next one after the acknowledgement of the last: what an exchange takes at
    least that waits for both."""
    fields = _run(["ib_send_bw", "-b", "-t", "1"], device, size, iterations,
                  timeout_s)
    if fields[4] <= 0:
        raise JobError("it sent less than it can print")
    return 2 / fields[4]  # million messages of both a second
