#!/usr/bin/env python3
"""Programs for which LD_PRELOAD is not enough, too much, or nothing: they run as ever, and d9 run says what is missing."""
import json
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import D9, PROGS, SHIM, check, equal, main, need, need_command, need_root, parametrise, test

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
#ifdef SLOW
    sleep(4);
#endif
    usleep(2000); printf("fine %s\n", getenv("LD_PRELOAD") ? "preloaded" : "alone"); return 7; }
"""


def build(box, *flags, cc="gcc"):
    need(cc)
    path = os.path.join(box.path, "program")
    with open(path + ".c", "w") as f:
        f.write(SOURCE)
    r = subprocess.run([cc, path + ".c", "-o", path, *flags], capture_output=True, text=True, cwd=box.path)
    check(r.returncode == 0, "does not build: %s" % r.stderr)
    return path


def sleeps(box):
    return [e for e in box.events() if e["event"] == "span" and e["hook"] in ("usleep", "nanosleep", "clock_nanosleep")]


def d9_run_args(box, argv):
    need_command("run")
    return box.run([D9, "run", "--dir", box.dir, "--", *argv], shim=False)


def d9_run(box, program):
    return d9_run_args(box, [program])


@parametrise(["gcc -fsanitize=address", "gcc -fsanitize=address -static-libasan", "gcc -fsanitize=undefined", "gcc -fsanitize=thread",
              "clang -fsanitize=address", "clang -fsanitize=thread"])
def sanitized(box, how):
    cc, *flags = how.split()
    r = d9_run(box, build(box, *flags, cc=cc))
    equal((r.rc, r.out), (7, "fine preloaded\n"), "the program: %s" % r.err)
    check(sleeps(box), "nothing was recorded")


def says_why(box, r, out, *words):
    equal((r.rc, r.out), (7, out), "the program: %s" % r.err)
    for w in words:
        check(w in r.err, "not a word of %s: %s" % (w, r.err))
    equal(box.folders(), [], "recordings")


@parametrise(["-static", "-static-pie"])
def static(box, flag):
    program = build(box, flag)
    says_why(box, d9_run(box, program), "fine preloaded\n", "nothing was recorded", "d9 check")
    r = box.d9("check", program, rc=1)
    check("linked statically" in r.out, r.out)


@test
def said_while_it_runs(box):
    program = build(box, "-static", "-DSLOW")
    p = box.start([D9, "run", "--dir", box.dir, "--", program], shim=False)
    equal(p.stderr.readline(), "d9: nothing is recorded of %s so far: `d9 check %s` says why\n" % (program, program), "said")
    check(p.poll() is None, "only when it was over")
    says_why(box, box.finish(p), "fine preloaded\n", "nothing was recorded")


@test
def another_libc(box):
    """A loader of that name, though it is glibc's: a program of musl with our library would not start at all."""
    loader = os.path.join(box.path, "ld-musl-x86_64.so.1")
    os.symlink(os.path.realpath("/lib64/ld-linux-x86-64.so.2"), loader)
    program = build(box, "-Wl,--dynamic-linker=" + loader)
    says_why(box, d9_run(box, program), "fine alone\n", "musl", "nothing is recorded")


@test
def with_rights_of_its_own(box):
    need_root()
    program = build(box)
    os.chmod(box.path, 0o755)
    os.chmod(program, 0o4755)
    r = box.d9("check", program, rc=1)
    check("set-user-id" in r.out, r.out)
    os.makedirs(box.dir)
    os.chown(box.dir, 65534, 65534)
    r = box.run([D9, "run", "--dir", box.dir, "--", program], shim=False, user=65534, group=65534)
    says_why(box, r, "fine alone\n", "nothing was recorded", "d9 check")


def unseen(box, what):
    r = json.loads(box.d9("report", "--json", "--session", "all", box.dir).out)
    return [u["detail"] for u in r["unseen"] if u["what"] == what]


@parametrise(["bare", "run"])
def modules_that_go_past_the_hooks(box, how):
    program = os.path.join(PROGS, "dl")
    r = box.run([program]) if how == "bare" else d9_run(box, program)
    equal((r.rc, r.out), (0, ""), "the program: %s" % r.err)
    told = unseen(box, "warning")
    equal(sorted(line.split()[0] for line in told), ["libm.so.6", "libresolv.so.2"], "modules named: %s" % told)
    check(any("DEEPBIND" in line for line in told) and any("dlmopen" in line for line in told), told)


@parametrise(["-static", "an empty environment"])
def a_program_that_becomes_one_that_is_not_recorded(box, how):
    program = build(box, *([how] if how.startswith("-") else []))
    script = "exec %s%s" % ("" if how.startswith("-") else "env -i ", program)
    r = d9_run_args(box, ["sh", "-c", script])
    equal(r.rc, 7, "the program: %s" % r.err)
    told = unseen(box, "exec")
    check(len(told) == 1 and os.path.basename(program) in told[0] and "not recorded" in told[0], "told: %s" % told)


@test
def a_program_that_becomes_one_that_is_recorded(box):
    r = d9_run_args(box, ["sh", "-c", "exec " + build(box)])
    equal((r.rc, unseen(box, "exec")), (7, []), "told of what is seen")


@parametrise(["missing", "too short", "not readable"])
def a_library_that_is_not_there(box, how):
    path = os.path.join(box.path, "libd9shim.so")
    if how == "too short":
        with open(path, "w") as f:
            f.write("x")
    if how == "not readable":
        need_root()
        shutil.copy(SHIM, path)
        os.chmod(path, 0)
    program = build(box)
    os.chmod(box.path, 0o755)
    r = box.run([program], env={"LD_PRELOAD": path}, shim=False, user=65534 if how == "not readable" else None)
    equal((r.rc, r.out), (7, "fine preloaded\n"), "the program")  # the loader says so on its own, and goes on
    equal(box.folders(), [], "recordings")


if __name__ == "__main__":
    main()
