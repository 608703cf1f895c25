#!/usr/bin/env python3
"""What hostile surroundings do to d9 and to a recorded program: each case was a bug once."""
import os
import resource
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import D9, PROGS, check, equal, main, need_root, parametrise, test


def program(name):
    return os.path.join(PROGS, name)


def spans(box, hook):
    return [e for e in box.events() if e["event"] == "span" and e["hook"] == hook]


def one_line(r, rc):
    equal(r.rc, rc, "exit code")
    check(r.err.startswith("d9: ") and r.err.count("\n") == 1 and r.err.endswith("\n"), "not one line: %r" % r.err)


# ---- messages ------------------------------------------------------------------------------------------


if __name__ == "__main__":
    main()
