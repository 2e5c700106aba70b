#!/usr/bin/env python3
"""Checks that sources include the precompiled headers that they use.

The compiler does not notice it when one is missing: cmake/precompile.cmake has
every source read them. A header is included by the source itself or by what it
includes of ours. By names, without their meaning: a name that is not listed here
is not seen.

Prints each violation as FILE: what is missing; exits 1 if there is any.
"""

import pathlib
import re
import sys

import check_layers

# Of each header, what is typical of it. <utility> comes with nearly all others.
NAMES = {
    "algorithm": r"(all_of|any_of|binary_search|clamp|copy|copy_n|count|count_if"
                 r"|equal|fill|fill_n|find|find_if|find_if_not|for_each|generate"
                 r"|is_sorted|lower_bound|max|max_element|min|min_element|minmax"
                 r"|mismatch|none_of|nth_element|remove|remove_if|reverse|rotate"
                 r"|shuffle|sort|stable_sort|swap_ranges|transform|unique"
                 r"|upper_bound)\(",
    "array": r"array<",
    "atomic": r"(atomic|atomic_\w+|memory_order\w*)\b",
    "chrono": r"chrono::",
    "condition_variable": r"condition_variable\b",
    "cstring": r"(memcmp|memcpy|memmove|memset|strcmp|strerror|strlen)\(",
    "deque": r"deque<",
    "functional": r"(function|greater|hash|less|plus|reference_wrapper)<",
    "map": r"(map|multimap)<",
    "memory": r"(make_shared|make_unique|shared_ptr|unique_ptr|weak_ptr)<",
    "mutex": r"(call_once|lock_guard|mutex|once_flag|scoped_lock|unique_lock)\b",
    "optional": r"(nullopt\b|optional<)",
    "sstream": r"(istringstream|ostringstream|stringstream)\b",
    "stdexcept": r"(invalid_argument|length_error|logic_error|out_of_range"
                 r"|runtime_error)\b",
    "string": r"(string|to_string)\b",
    "thread": r"(this_thread::|thread\b)",
    "unordered_map": r"unordered_map<",
    "utility": None,
    "vector": r"vector<",
}
USES = {header: re.compile(r"\bstd::" + names)
        for header, names in NAMES.items() if names}
FOLDERS = ("gloo",) + check_layers.SIBLINGS + ("tests",)


def reached(path, included):
    """The headers that are not ours and that `path` reads."""
    seen, to_do, others = set(), [path], set()
    while to_do:
        at = to_do.pop()
        if at in seen:
            continue
        seen.add(at)
        for target in included[at]:
            beside = at.rsplit("/", 1)[0] + "/" + target
            ours = [t for t in (target, beside) if t in included]
            to_do += ours
            if not ours:
                others.add(target)
    return others


def missing(path, text, included):
    """(header, the name that asks for it)"""
    code = re.sub(r"//.*", "", text)
    others = reached(path, included)
    for header, uses in USES.items():
        found = uses.search(code)
        if found and header not in others:
            yield header, found.group(0)


def main():
    root = pathlib.Path(__file__).parents[2].resolve()
    # Those of all builds: of others a build that lacks them tells.
    always = re.search(r"set\(GLOO_PRECOMPILED_HEADERS([^)]*)",
                       (root / "cmake/precompile.cmake").read_text()).group(1)
    precompiled = set(re.findall(r"<(\w+)>", always))
    if precompiled != set(NAMES):
        print("cmake/precompile.cmake and NAMES of this file list other headers:"
              f" {sorted(precompiled ^ set(NAMES))}")
        return 1
    texts = {path: (root / path).read_text()
             for path in check_layers.tracked_files(root)
             if path.endswith((".h", ".cc"))}
    included = {path: [target for _, target, _ in check_layers.includes(text)]
                for path, text in texts.items()}
    violations = 0
    for path, text in texts.items():
        if path.split("/")[0] not in FOLDERS:
            continue
        for header, name in missing(path, text, included):
            print(f"{path}: include <{header}> for {name.rstrip('<(')}")
            violations += 1
    return 1 if violations else 0


if __name__ == "__main__":
    sys.exit(main())
