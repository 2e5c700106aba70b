#!/usr/bin/env python3
"""The checks find each kind of violation, and nothing in good files."""

import sys

import check_layers
import check_precompiled

# (file, what it includes, whether it may)
INCLUDES = [
    ("gloo/context.h", "gloo/transport/pair.h", True),
    ("gloo/context.h", "transport/base/wire.h", False),
    ("gloo/context.h", "gloo/internal/channel.h", False),
    ("gloo/context.h", "gloo/internal/installed.h", True),
    ("gloo/internal/installed.h", "gloo/internal/channel.h", False),
    ("gloo/internal/cause.h", "gloo/internal/channel.h", True),
    ("gloo/context.cc", "gloo/internal/channel.h", True),
    ("gloo/context.cc", "algorithms/schedule.h", False),
    ("gloo/math.h", "gloo/reductions/find.h", False),
    ("transport/tcp/link.cc", "transport/base/link.h", True),
    ("transport/tcp/link.cc", "transport/tcp/link.h", True),
    ("transport/tcp/link.cc", "transport/shm/link.h", False),
    ("transport/tcp/link.cc", "rendezvous/mesh.h", False),
    ("transport/base/mesh.cc", "transport/tcp/link.h", False),
    ("transport/auto/choose.cc", "transport/shm/link.h", True),
    ("rendezvous/store.cc", "gloo/rendezvous/store.h", True),
    ("rendezvous/store.cc", "transport/base/socket.h", False),
    ("algorithms/ring.cc", "algorithms/schedule.h", True),
    ("algorithms/ring.cc", "transport/base/link.h", False),
    ("examples/allreduce.cc", "gloo/allreduce.h", True),
    ("examples/allreduce.cc", "gloo/internal/channel.h", False),
    ("examples/allreduce.cc", "algorithms/schedule.h", False),
    ("tests/tcp/link_test.cc", "transport/tcp/link.h", True),
]

WORDS = [
    ("see /" + "work/main", False),
    ("// TO" + "DO: later", False),
    ("the networks/work of others", True),
]


def main():
    installed = {"gloo/internal/installed.h"}
    wrong = [f"{path} -> {target}" for path, target, may in INCLUDES
             if (check_layers.why_not(path, target, installed) == "") != may]
    wrong += [text for text, good in WORDS
              if (not list(check_layers.check_words(text))) != good]
    by_hand = "namespace gloo {\n"
    if not list(check_layers.check_namespace("gloo/a.h", by_hand)):
        wrong.append("namespace gloo in library code")
    for test, good in (("a_test.cc", True), ("b_test.cc", False)):
        if bool(list(check_layers.check_built(f"tests/x/{test}",
                                              {"a_test.cc"}))) == good:
            wrong.append(test)
    included = {"tests/a.cc": ["b.h", "string"], "tests/b.h": ["vector"]}
    found = list(check_precompiled.missing(
        "tests/a.cc", "std::vector<std::string> a;  // std::map<>\nstd::mutex m;",
        included))
    if found != [("mutex", "std::mutex")]:
        wrong.append(f"precompiled headers: {found}")
    for one in wrong:
        print(f"judged wrongly: {one}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
