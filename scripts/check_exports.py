#!/usr/bin/env python3
"""check_exports.py LIBRARY: what libd9shim.so exports is what hooks.def says, both ways, and d9_abi; versions included."""
import subprocess
import sys

import tables


def exported(library):
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True, text=True).stdout
    words = [line.split() for line in out.splitlines()]
    return {w[-1] for w in words if w[-2] != "A"}  # A: the version nodes themselves


def expected():
    names = {"d9_abi"}
    for row in tables.hooks():
        if row["macro"] == "D9_PRIMITIVE":
            continue
        if row["macro"] in ("D9_HOOK_OLD", "D9_HOOK_LIB"):
            names.add("%s@%s" % (row["name"], row["version"]))  # not the default: dlsym would find another library's
        elif row["version"]:
            names.add("%s@@%s" % (row["name"], row["version"]))
        else:
            names.add(row["name"])
    return names


def main():
    there, wanted = exported(sys.argv[1]), expected()
    for name in sorted(wanted - there):
        print("%s: a row of hooks.def that the library does not export" % name)
    for name in sorted(there - wanted):
        print("%s: exported, and no row of hooks.def" % name)
    print("%d names exported" % len(there))
    return there != wanted or len(wanted) < 50


sys.exit(main())
