#!/usr/bin/env python3
"""Ways in which preloaded libraries have broken the programs they watched (docs/HOST_SAFETY.md has the table).  Each program is
run as it is, under the recorder, and under a naive recorder that makes that one mistake: it must hold, hold, and fail."""
import os
import re
import resource
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import MUTANT, PROGS, SHIM, check, equal, main, need, need_root, parametrise, test

os.environ.pop("LD_LIBRARY_PATH", None)  # meson's, which would lead to what only a RUNPATH should
HERE = os.path.join(os.path.dirname(PROGS), "preload")
ROWS = os.path.join(HERE, "rows")
# what the program does: the naive recorders under which it must fail
WHAT = {
    "constructor": ["constructor"], "constructor-thread": ["lazy"], "runpath": ["dlopen"], "destructor": ["destructor"],
    "frame": ["frame"], "buffer": ["buffer"], "thread": ["thread"], "lock": ["lock"], "descriptor": ["descriptor"],
    "standard": ["descriptor"], "file": ["file"], "unwind": ["unwind"], "cancel": ["cancel"], "errno": ["errno"],
    "filter": ["syscall"], "clock": ["clock"], "frames": ["frames"],
}


def naive(name):
    return os.path.join(HERE, "naive_%s.so" % name)


def run(box, argv, preload=None, timeout=60, **options):
    """Exit code and output; a hang is an exit code too."""
    env = dict(box.env(shim=False), **({"LD_PRELOAD": preload} if preload else {}))
    p = subprocess.Popen([str(a) for a in argv], env=env, cwd=box.path, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                         stderr=subprocess.PIPE, text=True, start_new_session=True, **options)
    box.procs.append(p)
    try:
        out, err = p.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        box.end(p)
        return "hangs", "", ""
    return p.returncode, out, err


def holds(box, what, **options):
    r = run(box, [ROWS, what], **options)
    return r[0] == 0 and r[1] == "ok %s\n" % what, r


@parametrise(sorted(WHAT))
def holds_and_bites(box, what):
    ok, r = holds(box, what)
    check(ok, "without a recorder: %s" % (r,))
    for n in WHAT[what]:
        ok, r = holds(box, what, preload=naive(n), timeout=12)
        check(not ok, "stays well under the naive recorder %s: %s" % (n, r))
    r = box.run([ROWS, what])
    equal((r.rc, r.out, r.err), (0, "ok %s\n" % what, ""), "under the recorder")
    if MUTANT != "absent":
        check(box.folders(), "nothing was recorded")


@test
def the_environment_stays(box):
    _, bare, _ = run(box, [ROWS, "environment"])
    preload = box.env()["LD_PRELOAD"]
    added = {line for line in run(box, [ROWS, "environment"], preload=naive("environment"))[1].splitlines()} - set(bare.splitlines())
    check("LD_PRELOAD=" + naive("environment") not in added, "the naive one leaves it")
    r = box.run([ROWS, "environment"], rc=0)
    lines = r.out.splitlines()
    equal(lines.count("LD_PRELOAD=" + preload), 2, "times that the program and its child have LD_PRELOAD")
    equal({line for line in lines if not re.match("(LD_PRELOAD|D9_|_|SHLVL|PWD|OLDPWD)", line)},
          {line for line in bare.splitlines() if not re.match("(LD_PRELOAD|D9_|_|SHLVL|PWD|OLDPWD)", line)}, "the rest")


@test
def exit_with_live_threads_twenty_times(box):
    bad = sum(not holds(box, "exit", preload=naive("exit"))[0] for _ in range(5))
    check(bad, "the naive recorder ends well")
    for _ in range(20):
        box.run([ROWS, "exit"], rc=0)


@test
def old_condition_variables(box):
    old = os.path.join(PROGS, "cond_old")
    code, _, err = run(box, [old], preload=naive("condition"), timeout=12)
    check(code != 0, "the naive recorder ends well: %s" % err)
    box.run([old], rc=0)


def valgrind_errors(box, preload=None):
    code, _, err = run(box, ["valgrind", "--trace-children=no", ROWS, "uninitialised"], preload=preload, timeout=120)
    equal(code, 0, "exit code under valgrind: %s" % err[-2000:])
    return int(re.search(r"ERROR SUMMARY: (\d+) errors", err)[1])


@parametrise(["auto", "slice"])
def valgrind_has_nothing_to_say_of_us(box, stacks):
    need("valgrind")
    base = valgrind_errors(box)
    check(valgrind_errors(box, naive("uninitialised")) > base, "nor of the naive recorder")
    env = box.env({"D9_STACKS": stacks})
    os.environ.update({k: v for k, v in env.items() if k.startswith("D9_")})
    equal(valgrind_errors(box, env["LD_PRELOAD"] if MUTANT != "absent" else None), base, "errors under the recorder")


@test
def under_gdb(box):
    need("gdb")
    r = box.run(["gdb", "-batch", "-ex", "set startup-with-shell off", "-ex", "set environment LD_PRELOAD " + SHIM, "-ex",
                 "set environment D9_DIR " + box.dir, "-ex", "break usleep", "-ex", "run", "-ex", "bt", "-ex", "delete", "-ex", "continue",
                 "--args", ROWS, "nothing"], shim=False, timeout=120)
    check("exited normally" in r.out and "ok nothing" in r.out, r.out[-2000:] + r.err[-1000:])
    check("nothing" in r.out.split("#0", 1)[-1], "no stack through the hook: %s" % r.out[-2000:])


@test
def no_more_processes_allowed(box):
    need_root()
    os.chmod(box.path, 0o777)
    os.makedirs(box.dir, exist_ok=True)
    os.chmod(box.dir, 0o777)

    def lower():
        resource.setrlimit(resource.RLIMIT_NPROC, (1, 1))
        os.setresgid(65534, 65534, 65534)
        os.setresuid(65534, 65534, 65534)
    r = box.run(["/bin/sh", "-c", "exec sleep 1.5"], preexec_fn=lower)
    equal((r.rc, r.err), (0, ""), "a program whose user may have no more threads")


if __name__ == "__main__":
    main()
