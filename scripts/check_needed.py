#!/usr/bin/env python3
"""check_needed.py LIBRARY [ARCHIVE...]: libd9shim.so loads wherever glibc 2.17 is, and stays what its users count on.

The archives are shim/'s: no hooked function may be called from there.
"""
import re
import subprocess
import sys

import tables

FLOOR = (2, 17)
TLS_MAX = 64


def run(*argv):
    return subprocess.run(argv, check=True, capture_output=True, text=True).stdout


def check_dynamic(library):
    out = run("readelf", "-dW", library)
    needed = re.findall(r"\(NEEDED\).*\[(.*)\]", out)
    if needed != ["libc.so.6"]:
        yield "needs %s, not libc.so.6 alone" % needed
    flags = " ".join(re.findall(r"\(FLAGS(?:_1)?\)\s+(.*)", out))
    for flag in ("NOW", "NODELETE", "INITFIRST"):
        if flag not in flags.split():
            yield "has no flag %s (%s)" % (flag, flags)
    if "TEXTREL" in out:
        yield "has text relocations"
    if "RPATH" in out or "RUNPATH" in out:
        yield "has a search path of its own"


def check_versions(library):
    out = run("readelf", "-VW", library)
    needs = out[out.index("Version needs section"):] if "Version needs section" in out else ""
    for version in sorted(set(re.findall(r"Name: GLIBC_([0-9.]+)", needs))):
        if tuple(int(n) for n in version.split(".")) > FLOOR:
            yield "needs GLIBC_%s: it would keep programs from starting on an older libc" % version


def check_pthread(library):
    """Before glibc 2.34 what libc has of these answers 0 until libpthread is loaded, and most are not there."""
    for line in run("nm", "-D", "--undefined-only", library).splitlines():
        name = line.split()[-1].split("@")[0]
        if name.startswith(("pthread_", "sem_", "dl")) and name != "dl_iterate_phdr":
            yield "needs %s, which a program without libpthread or libdl has not" % name


def check_tls(library):
    for line in run("readelf", "-lW", library).splitlines():
        words = line.split()
        if words and words[0] == "TLS" and int(words[5], 16) > TLS_MAX:
            yield "takes %d bytes of static TLS, more than %d" % (int(words[5], 16), TLS_MAX)
        if words and words[0] == "GNU_STACK" and "E" in words[6]:
            yield "asks for an executable stack"


def check_archives(archives):
    hooked = {row["name"] for row in tables.hooks() if row["macro"] != "D9_PRIMITIVE"}
    for archive in archives:
        undefined = set(re.findall(r"^\s+U (\w+)", run("nm", archive), flags=re.M))
        for name in sorted(undefined & hooked):
            yield "%s calls %s, which is hooked" % (archive, name)


def main():
    library = sys.argv[1]
    wrong = list(check_dynamic(library)) + list(check_versions(library)) + list(check_pthread(library)) + list(check_tls(library))
    wrong += list(check_archives(sys.argv[2:]))
    print("\n".join(wrong) or "as it should be")
    return bool(wrong)


sys.exit(main())
