"""Runs one program of the comparison once, as a job of local processes."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile

NOT_AVAILABLE = 3  # exit status of a program that lacks what was asked for


class JobError(Exception):
    """The job failed; the text says which rank was ended by a signal, or is its
    last line of stderr."""

    def __init__(self, text, rows=()):
        super().__init__(text)
        self.rows = list(rows)  # what it had printed before


class NotAvailable(JobError):
    """The program was built without what was asked for."""


def _endings():
    """The signals that tell to end; not what is ignored, as below nohup."""
    return [number for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) != signal.SIG_IGN]


def status_of(main):
    """main()'s exit status. Told to end, it ends its jobs first."""
    for number in _endings():
        signal.signal(number, signal.default_int_handler)
    try:
        return main()
    except KeyboardInterrupt:
        return 130


@contextlib.contextmanager
def _whole():
    """What is done inside is not told to end in the middle, but after it."""
    noted = []
    before = {number: signal.signal(number, lambda *_: noted.append(1))
              for number in _endings()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if noted:
        raise KeyboardInterrupt


def _scratch():
    """A place for the files that the ranks share; in memory if possible."""
    base = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    return tempfile.mkdtemp(prefix="compare.", dir=base)


def _kill(processes):
    for process in processes:
        try:  # each leads its own group, so this ends its children too
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()


def _killed(processes):
    """Who was ended by a signal, and by which one; or None. The errors of the
    others are its consequence."""
    for rank, process in enumerate(processes):
        number = -(process.poll() or 0)
        if number > 0:
            who = (f"rank {rank}" if len(processes) > 1
                   else os.path.basename(process.args[0]))
            return (f"{who} was ended by signal {number} "
                    f"({signal.strsignal(number)})")
    return None


def _last_line(path):
    with open(path, errors="replace") as file:
        lines = [line.strip() for line in file if line.strip()]
    rank_lines = [line for line in lines if line.startswith("rank ")]
    causes = [line for line in rank_lines
              if not line.endswith("another rank has failed")]
    return (causes or rank_lines or lines or ["no message"])[-1]


def _rows(path):
    """The complete lines of a program's output."""
    with open(path) as file:
        return [json.loads(line) for line in file
                if line.startswith("{") and line.endswith("}\n")]


def _wait(processes, timeout_s):
    """The exit statuses; TimeoutExpired when they take too long."""
    return [process.wait(timeout=timeout_s) for process in processes]


def _start(command, out, err, environment):
    # All ranks stay in this session, as a launcher's do: Linux schedules each
    # session as a group (sched_autogroup), and a rank that yields in a group of
    # its own gives its core to nobody.
    try:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=out, stderr=err,
            env={**os.environ, **environment}, process_group=0)
    except FileNotFoundError:
        raise NotAvailable(f"{command[0]} was not built: is its package "
                           "installed?") from None


def run(commands, environment, timeout_s):
    """Starts all commands, which are ranks of one job or one launcher.

    "{directory}" in an argument is replaced by a new directory. Returns the
    JSON objects that they print.
    """
    directory = _scratch()
    errors = os.path.join(directory, "stderr")
    output = os.path.join(directory, "stdout")
    processes = []
    try:
        with open(errors, "w") as err, open(output, "w") as out:
            with _whole():  # else a rank might be forgotten
                for command in commands:
                    processes.append(_start(
                        [a.replace("{directory}", directory) for a in command],
                        out, err, environment))
            try:
                statuses = _wait(processes, timeout_s)
            except subprocess.TimeoutExpired:
                raise JobError(
                    _killed(processes) or f"not done after {timeout_s:.0f} s",
                    _rows(output)) from None
        if NOT_AVAILABLE in statuses:
            raise NotAvailable(_last_line(errors))
        if any(statuses):
            raise JobError(_killed(processes) or _last_line(errors),
                           _rows(output))
        return _rows(output)
    finally:
        _kill(processes)
        shutil.rmtree(directory, ignore_errors=True)
