#!/usr/bin/env python3
"""Checks that the source tree keeps its rules.

Dependencies are a star: gloo/ is the contract and sees none of its siblings;
transport/, rendezvous/ and algorithms/ see gloo/ and themselves. Within
transport/, the transports see base and themselves, and only auto sees all.
Public headers include only public headers; examples only installed ones.
Each tests/**/*_test.cc is named in a CMakeLists.txt, or it would never run.

Prints each violation as FILE:LINE: what is wrong; exits 1 if there is any.
With --report, also lists the files and functions that are long.
"""

import argparse
import pathlib
import re
import subprocess
import sys

SIBLINGS = ("transport", "rendezvous", "algorithms")
# Folders of gloo/ that are no promise.
PRIVATE = ("internal", "reductions")
INCLUDE = re.compile(r'^\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)')

# Text that must not be in the repository: places of one machine, and marks of
# unfinished work. Written in parts, so that this file does not match itself.
BANNED = [
    (re.compile("/" + r"(work|home|root)/"), "a path of one machine"),
    (re.compile(r"\b(TO" + "DO|FIX" + "ME|XX" + r"X)\b"), "unfinished work"),
]

# Private headers that are installed, because a public class or template needs
# them: cmake/headers.cmake lists them.
INSTALLED_INTERNAL = re.compile(
    r"set\(GLOO_INSTALLED_INTERNAL_HEADERS([^)]*)\)")

MAX_FILE_LINES = 400
MAX_FUNCTION_LINES = 40


def tracked_files(root):
    """Paths relative to root, of what is or would be committed."""
    if not (root / ".git").exists():  # a source archive
        return [str(p.relative_to(root)) for p in sorted(root.rglob("*"))
                if p.is_file() and p.relative_to(root).parts[0] != "build"]
    out = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=root, capture_output=True, text=True, check=True).stdout
    return [p for p in out.split("\n") if p and (root / p).is_file()]


def includes(text):
    """(line number, path, quoted) of each include."""
    for number, line in enumerate(text.split("\n"), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1) or match.group(2), bool(match.group(1))


def allowed_folders(path):
    """The first folders that this file may include from, or None: any."""
    top = path.split("/")[0]
    if top == "gloo":
        return {"gloo"}
    if top in SIBLINGS:
        return {"gloo", top}
    if top == "examples":
        return {"gloo", "examples"}
    return None


def why_not(path, target, installed_internal):
    """Why `path` must not include `target`; empty if it may."""
    allowed = allowed_folders(path)
    top = target.split("/")[0]
    if allowed is not None and top not in allowed:
        return f"may include from {', '.join(sorted(allowed))} only"
    parts, target_parts = path.split("/"), target.split("/")
    if parts[0] == "transport" and target_parts[0] == "transport":
        return why_not_within_transport(parts[1], target_parts[1])
    is_public = (path in installed_internal or parts[0] == "examples" or
                 (parts[0] == "gloo" and path.endswith(".h") and
                  parts[1] not in PRIVATE))
    if (is_public and target_parts[1] in PRIVATE and
            target not in installed_internal):
        return ("may not include a header that is not installed "
                "(cmake/headers.cmake lists those of gloo/internal that are)")
    return ""


def why_not_within_transport(folder, target):
    if folder == "auto" or target == folder or target == "base":
        return ""
    if folder == "base":
        return "base is written once for all transports and sees none"
    return f"transports do not see each other (this is {folder})"


def check_includes(root, path, text, installed_internal):
    top = path.split("/")[0]
    for number, target, quoted in includes(text):
        project = (root / target).exists() or target.startswith("gloo/")
        if not project:
            beside = top == "examples" and (root / top / target).exists()
            if quoted and allowed_folders(path) is not None and not beside:
                yield number, f'"{target}": not a path from the root'
            continue
        if not quoted and allowed_folders(path) is not None:
            yield number, f"<{target}>: write our own headers in quotes"
        why = why_not(path, target, installed_internal)
        if why:
            yield number, f'"{target}": {why}'


def check_words(text):
    for number, line in enumerate(text.split("\n"), 1):
        for pattern, what in BANNED:
            if pattern.search(line):
                yield number, f"{what}: {line.strip()[:60]}"


def check_namespace(path, text):
    """Library code opens its namespace by the macro, never by hand."""
    if path.split("/")[0] not in ("gloo",) + SIBLINGS:
        return
    for number, line in enumerate(text.split("\n"), 1):
        if re.match(r"\s*namespace gloo\b", line):
            yield number, "write GLOO_NAMESPACE_BEGIN, not namespace gloo"


def check_built(path, lists):
    """`lists`: the words of all CMakeLists.txt."""
    if (path.startswith("tests/") and path.endswith("_test.cc") and
            path.split("/")[-1] not in lists):
        yield 1, "a test that no CMakeLists.txt builds"


def long_functions(text):
    """(line, length) of bodies that open at the end of an unindented line or
    of a member's, by indentation: a report, not a proof."""
    lines = text.split("\n")
    start = None
    for number, line in enumerate(lines, 1):
        opens = re.match(r"^( {0,2})\S.*\)[^;]*\{$", line)
        if opens and start is None:
            start, closing = number, opens.group(1) + "}"
        elif start is not None and line.startswith(closing):
            yield start, number - start + 1
            start = None


def report(files):
    for path, text in files:
        lines = text.count("\n")
        if lines > MAX_FILE_LINES:
            print(f"{path}: {lines} lines")
        for start, length in long_functions(text):
            if length > MAX_FUNCTION_LINES:
                print(f"{path}:{start}: a function of {length} lines")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--root", type=pathlib.Path,
                        default=pathlib.Path(__file__).parents[2])
    parser.add_argument("--report", action="store_true",
                        help="also list long files and functions")
    args = parser.parse_args()
    root = args.root.resolve()

    listed = INSTALLED_INTERNAL.search(
        (root / "cmake/headers.cmake").read_text())
    installed_internal = set(listed.group(1).split())

    paths = tracked_files(root)
    # "../contract/messages_test.cc" counts too.
    lists = {word.split("/")[-1] for path in paths
             if path.endswith("CMakeLists.txt")
             for word in re.split(r"[\s()]+", (root / path).read_text())}
    violations = 0
    sources = []
    for path in paths:
        try:
            text = (root / path).read_text()
        except UnicodeDecodeError:
            continue
        found = list(check_words(text))
        if path.endswith((".h", ".cc")):
            sources.append((path, text))
            found += check_includes(root, path, text, installed_internal)
            found += check_namespace(path, text)
            found += check_built(path, lists)
        for number, what in found:
            print(f"{path}:{number}: {what}")
            violations += 1
    if args.report:
        report(sources)
    print(f"{len(sources)} sources checked, {violations} violations")
    if not sources:
        print("no sources found: is this the right folder?")
        return 1
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
