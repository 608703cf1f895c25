#!/usr/bin/env python3
"""Every row of docs/HOST_SAFETY.md names tests that are there: `file`, `file::function` or, of parametrised ones, `file::value`."""
import os
import re
import sys

import tables

ROWS = 29


def missing(name):
    file, _, what = name.partition("::")
    path = os.path.join(tables.ROOT, file if file.startswith("scripts/") else os.path.join("tests", file))
    if not os.path.exists(path):
        return "no such file"
    with open(path, encoding="utf-8") as f:
        text = f.read()
    return None if not what or re.search(r'def %s\(|"%s"' % (re.escape(what), re.escape(what)), text) else "no such test"


def main():
    wrong, seen = [], []
    with open(os.path.join(tables.ROOT, "docs/HOST_SAFETY.md"), encoding="utf-8") as f:
        rows = [[cell.strip() for cell in line.strip().strip("|").split("|")] for line in f if re.match(r"\| \d+ \|", line)]
    for cells in rows:
        number, names = cells[0], cells[-1]
        seen.append(int(number))
        wrong += ["row %s: %s: %s" % (number, n, missing(n)) for n in names.split(", ") if n != "open" and missing(n)]
    if seen != list(range(1, ROWS + 1)):
        wrong.append("rows %s, not 1 to %d" % (seen, ROWS))
    print("\n".join(wrong) or "all are there")
    return bool(wrong)


sys.exit(main())
