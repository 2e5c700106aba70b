#!/usr/bin/env python3
"""Checks what the shared library exports: namespace gloo, and of it no more
than the API; and what it needs. Usage: check_exports.py LIBRARY
[INLINE_NAMESPACE]

Anything else could collide with, or be replaced by, a symbol of the program
or of another library in the same process. And it must load where there is no
RDMA and no GPU: their libraries are loaded when they are used.
"""

import re
import subprocess
import sys

# What an exported symbol may be about: "gloo::f()", "typeinfo for gloo::X",
# "void gloo::sum<int>(...)", "guard variable for gloo::x".
OURS = re.compile(r"_Z(N[KVRO]*4gloo|T[ISVTCW]N4gloo|Th|Tv|Tc|GVN4gloo|"
                  r"GVZN[K]?4gloo|ZN[K]?4gloo)")
# Namespaces of ours whose names are nobody's business.
HIDDEN = re.compile(r"::transport::(base|auto)::|::algorithms::")
# Some of what must be there: a list that is empty would pass all else.
NEEDED = ["gloo::{ns}Context::Context(int, int, int)",
          "typeinfo for gloo::{ns}IoException"]
# Libraries that are loaded when they are used.
LATE = re.compile(r"lib(ibverbs|cuda|cudart)\.so")


def run(*command):
    return subprocess.run(command, capture_output=True, text=True,
                          check=True).stdout


def exported(library):
    """(mangled, demangled) of each defined dynamic symbol."""
    rows = [line.split() for line in
            run("nm", "-D", "--defined-only", library).splitlines()]
    names = [row[2].split("@")[0] for row in rows if row[1] != "A"]
    demangled = subprocess.run(
        ["c++filt"], input="\n".join(names), capture_output=True, text=True,
        check=True).stdout.splitlines()
    return list(zip(names, demangled))


def needed_libraries(library):
    """Of the dynamic section: "libc.so.6"."""
    return re.findall(r"\(NEEDED\).*\[(.*)\]",
                      run("readelf", "-dW", library))


def main():
    library = sys.argv[1]
    inline = sys.argv[2] + "::" if len(sys.argv) > 2 and sys.argv[2] else ""
    problems = []
    symbols = exported(library)
    for name, text in symbols:
        if not OURS.match(name) or "gloo::" not in text:
            problems.append(f"outside namespace gloo: {text}")
        elif inline and "gloo::" + inline not in text:
            problems.append(f"outside the inline namespace: {text}")
        elif HIDDEN.search(text.split("(")[0]):
            problems.append(f"internal, yet exported: {text}")
    texts = {text for _, text in symbols}
    for needed in NEEDED:
        if needed.format(ns=inline) not in texts:
            problems.append(f"not exported: {needed.format(ns=inline)}")
    libraries = needed_libraries(library)
    if not any(name.startswith("libc.so") for name in libraries):
        problems.append(f"needs {libraries}: is that all?")
    problems += [f"needs {name}, which is to be loaded when it is used"
                 for name in libraries if LATE.match(name)]
    for problem in problems:
        print(problem)
    print(f"{len(symbols)} exported symbols, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
