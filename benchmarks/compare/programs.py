"""The programs that are compared, and how each of them is started."""

import os
import shutil


class Entrant:
    """One program in one configuration: a line of each chart."""

    def __init__(self, name, transport, executable, mode="", launcher=None,
                 environment=None):
        self.name = name
        self.transport = transport
        self.mode = mode
        self.executable = executable
        self.launcher = launcher  # function of the rank count, or None
        self.environment = environment or {}

    def label(self):
        return f"{self.name} {self.mode}".strip()

    def missing(self):
        """What is not there, or None."""
        if not os.access(self.executable, os.X_OK):
            return f"{os.path.basename(self.executable)} is not built"
        if self.launcher and shutil.which(self.launcher(1)[0]) is None:
            return f"{self.launcher(1)[0]} is not installed"
        return None

    def commands(self, ranks, options):
        base = [self.executable, "--directory", "{directory}",
                "--transport", self.transport, *options]
        if self.mode:
            base += ["--mode", self.mode]
        if self.launcher:
            return [self.launcher(ranks) + base]
        return [base + ["--rank", str(rank), "--size", str(ranks)]
                for rank in range(ranks)]


def _open_mpi(*options):
    root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
    return lambda ranks: ["mpirun.openmpi", *root, "--oversubscribe",
                          "-np", str(ranks), *options]


def _mpich(ranks):
    return ["mpiexec.mpich", "-n", str(ranks)]


def _tcp(peer):
    return [
        Entrant("libgloo", "tcp", peer("libgloo"), mode="default"),
        Entrant("libgloo", "tcp", peer("libgloo"), mode="busy"),
        Entrant("openmpi", "tcp", peer("openmpi"),
                launcher=_open_mpi("--mca", "pml", "ob1",
                                   "--mca", "btl", "tcp,self",
                                   "--mca", "btl_tcp_if_include", "lo")),
        # Debian's MPICH is built on UCX.
        Entrant("mpich", "tcp", peer("mpich"), launcher=_mpich,
                environment={"MPIR_CVAR_NOLOCAL": "1", "UCX_TLS": "tcp,self",
                             "UCX_NET_DEVICES": "lo"}),
    ]


def _same_host(peer):
    return [
        Entrant("openmpi", "shm", peer("openmpi"), launcher=_open_mpi()),
        Entrant("mpich", "shm", peer("mpich"), launcher=_mpich),
    ]


# This library, in the one memory and the other.
OURS = ("ours", "ours-shared")


def entrants(build_dir, transports):
    """All of them, built or not."""
    benchmarks = os.path.join(build_dir, "benchmarks")

    def peer(name):
        return os.path.join(benchmarks, "peers", name, "peer_" + name)

    ours = os.path.join(benchmarks, "compare", "compare_ours")
    found = [Entrant("ours", transport, ours) for transport in transports]
    # On memory of the shared allocator.
    found += [Entrant("ours-shared", transport, ours, mode="shared")
              for transport in transports if transport in ("shm", "auto")]
    if "tcp" in transports:
        found += _tcp(peer)
    if "shm" in transports or "auto" in transports:
        found += _same_host(peer)
    found.append(Entrant("limit", "shm", os.path.join(
        benchmarks, "limit", "compare_limit")))
    return found
