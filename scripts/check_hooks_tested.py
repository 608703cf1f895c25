#!/usr/bin/env python3
"""Every row of hooks.def and of events.def is named in a test: a hook in a program of tests/prog, an event, and what
is recorded under a name of its own, anywhere in tests."""
import os
import re
import sys

import tables

TESTS = os.path.join(tables.ROOT, "tests")


def sources(folder, endings):
    for path, _, names in os.walk(folder):
        for name in names:
            if name.endswith(endings):
                with open(os.path.join(path, name), encoding="utf-8", errors="replace") as f:
                    yield f.read()


def main():
    programs = "\n".join(sources(os.path.join(TESTS, "prog"), (".c", ".cpp")))
    scripts = programs + "\n".join(sources(TESTS, (".py",)))
    missing = []
    for row in tables.hooks():
        where = scripts if row["macro"] == "D9_PRIMITIVE" else programs
        if not re.search(r'"%s"|\b%s\(' % (row["name"], row["name"]), where):
            missing.append("hook %s is in no program of tests/prog" % row["name"])
    for name in tables.events():
        if not re.search(r'event=%s\b|"%s"' % (name, name), scripts):
            missing.append("event %s is in no test" % name)
    print("\n".join(missing) or "all are")
    return bool(missing)


sys.exit(main())
