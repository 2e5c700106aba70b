#!/usr/bin/env python3
"""Runs PyTorch's ProcessGroupGloo over this library and over Debian's libgloo,
one after the other, and prints what its collectives take. See ./dev pytorch.

The source of that class, of the release that Debian has, is compiled against
this library's headers as it is; its names are changed on the command line, so
that it lives beside the one in Debian's libtorch. libtorch does the rest."""

import argparse
import hashlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tarfile
import urllib.request

import job

HERE = os.path.dirname(os.path.abspath(__file__))
FOLDER = "torch/csrc/distributed/c10d"
SOURCES = ("ProcessGroupGloo.cpp", "GlooDeviceFactory.cpp")
NAMES = ("ProcessGroupGloo", "GlooDeviceFactory", "GlooDeviceRegistry")
TIMEOUT_S = 300


def _say(text):
    print(f"pytorch: {text}", file=sys.stderr, flush=True)


def _run(command, **more):
    result = subprocess.run(command, stdout=subprocess.PIPE,
                            stderr=subprocess.STDOUT, text=True, **more)
    if result.returncode != 0:
        sys.exit(f"pytorch: {' '.join(command[:3])} ... failed:\n"
                 + result.stdout[-2000:])
    return result.stdout


def _source_uri(scratch):
    """Of the release that libtorch-dev is of, at the mirror that has that, and
    its SHA-256."""
    if shutil.which("apt-cache") is None:
        sys.exit(f"pytorch: no apt here: put {' and '.join(SOURCES)} of libtorch's "
                 f"release into {scratch}")
    policy = _run(["apt-cache", "policy", "libtorch-dev"])
    origin = re.search(r"^ +\d+ (http\S+) (\S+)/(\S+) \S+ Packages$", policy,
                       re.MULTILINE)
    if origin is None:
        sys.exit("pytorch: apt knows no mirror that has libtorch-dev")
    lists = os.path.join(scratch, "sources.list")
    with open(lists, "w") as file:
        file.write("deb-src {} {} {}\n".format(*origin.groups()))
    os.makedirs(os.path.join(scratch, "lists", "partial"), exist_ok=True)
    options = ["-o", f"Dir::Etc::sourcelist={lists}",
               "-o", "Dir::Etc::sourceparts=-",
               "-o", f"Dir::State::lists={scratch}/lists",
               "-o", f"Dir::Cache={scratch}", "-o", "Debug::NoLocking=1"]
    _run(["apt-get", *options, "update"])
    listing = _run(["apt-get", *options, "source", "--print-uris", "pytorch"])
    found = re.search(r"^'(\S+\.orig\.tar\.xz)' \S+ \d+ SHA256:(\w+)", listing,
                      re.MULTILINE)
    if found is None:
        sys.exit("pytorch: the mirror has no source of PyTorch:\n" + listing)
    return found.groups()


def _fetch(scratch):
    """The two files, in `scratch`."""
    if all(os.path.exists(os.path.join(scratch, name)) for name in SOURCES):
        return
    uri, checksum = _source_uri(scratch)
    _say(f"fetching {uri}")
    with urllib.request.urlopen(uri, timeout=TIMEOUT_S) as response:
        archive = response.read()
    if hashlib.sha256(archive).hexdigest() != checksum:
        sys.exit(f"pytorch: {uri} has another SHA-256 than the mirror's list")
    path = os.path.join(scratch, "pytorch.tar.xz")
    with open(path, "wb") as file:
        file.write(archive)
    with tarfile.open(path) as tar:
        for member in tar:
            name = os.path.basename(member.name)
            if name in SOURCES and os.path.dirname(member.name).endswith(FOLDER):
                with open(os.path.join(scratch, name), "wb") as file:
                    file.write(tar.extractfile(member).read())
    os.remove(path)


def _compile(scratch, build):
    """The two programs: with Debian's libgloo, and with this library."""
    library = os.path.abspath(build)
    headers = os.path.dirname(os.path.dirname(HERE))
    program = os.path.join(HERE, "process_group.cc")
    flags = ["g++", "-w", "-std=c++17", "-O2", "-DUSE_C10D_GLOO",
             "-I/usr/include/torch/csrc/api/include"]
    torch = ["-ltorch", "-ltorch_cpu", "-lc10", "-lglog"]
    theirs = os.path.join(scratch, "with_libgloo")
    _say("compiling the program with Debian's libgloo")
    _run([*flags, program, "-o", theirs, *torch, "-l:libgloo.so.0"])
    ours = os.path.join(scratch, "with_ours")
    _say("compiling PyTorch's ProcessGroupGloo with this library")
    _run([*flags, *[f"-D{name}={name}Ours" for name in NAMES],
          f"-I{headers}", f"-I{library}/include", program,
          *[os.path.join(scratch, name) for name in SOURCES], "-o", ours,
          f"-L{library}", f"-Wl,-rpath,{library}", "-lgloo", *torch])
    return {"ours": ours, "libgloo": theirs}


def _measure(programs, ranks, rounds):
    times = {}
    for number in range(rounds):
        _say(f"{ranks} ranks, round {number + 1} of {rounds}")
        # Nobody always runs in the wake of the other.
        turn = number % len(programs)
        names = list(programs)
        for name in names[turn:] + names[:turn]:
            program = programs[name]
            for row in job.run([[program, "{directory}/store", str(rank),
                                 str(ranks)] for rank in range(ranks)],
                               {}, TIMEOUT_S):
                what = (row["collective"], row["bytes"])
                times.setdefault(what, {}).setdefault(name, []).append(row["us"])
    return times


def _print(times, ranks):
    print(f"ProcessGroupGloo, {ranks} ranks: medians in us")
    print(f"{'':10} {'bytes':>8} {'ours':>10} {'libgloo':>10}  ratio")
    for (collective, size), row in times.items():
        ours, theirs = (statistics.median(row[name])
                        for name in ("ours", "libgloo"))
        print(f"{collective:10} {size:>8} {ours:>10.1f} {theirs:>10.1f}  "
              f"{ours / theirs:.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(prog="pytorch", description=__doc__)
    parser.add_argument("--ranks", default="2,4", help="default 2,4")
    parser.add_argument("--rounds", type=int, default=3, help="default 3")
    parser.add_argument("--build-dir", metavar="DIR", required=True)
    arguments = parser.parse_args()
    counts = [int(count) for count in arguments.ranks.split(",")
              if count.isdigit() and int(count) > 1]
    if len(counts) != len(arguments.ranks.split(",")) or arguments.rounds < 1:
        parser.error("--ranks takes numbers from 2 on, --rounds one from 1 on")
    scratch = os.path.join(os.path.dirname(
        os.path.abspath(arguments.build_dir)), "pytorch")
    os.makedirs(scratch, exist_ok=True)
    _fetch(scratch)
    programs = _compile(scratch, arguments.build_dir)
    for ranks in counts:
        try:
            _print(_measure(programs, ranks, arguments.rounds), ranks)
        except job.JobError as error:
            sys.exit(f"pytorch: {error}")


if __name__ == "__main__":
    sys.exit(job.status_of(main))
