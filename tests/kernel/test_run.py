#!/usr/bin/env python3
"""`d9 run --kernel`, and d9-kernel beside a recorder: one folder, and a program that notices nothing."""
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel import KERNEL, Program, files, need_kernel, of, start, stop
from harness import D9, PROGS, SHIM, Skip, check, children_of, equal, main, need, parametrise, test, wait_until


def recorded(box):
    """{folder: (segments of the recorder, segments of d9-kernel)}"""
    found = {}
    for folder in box.folders():
        names = os.listdir(folder)
        found[folder] = (len([n for n in names if n.startswith("s-")]), len(files(folder)))
    return found


@parametrise(["auto", "on", "off", None])
def both_write_into_one_folder(box, how):
    need_kernel()
    options = ["--kernel", how] if how else []
    r = box.run([D9, "run", "--dir", box.dir, *options, "--", os.path.join(PROGS, "burn")], shim=False, rc=0)
    equal(list(recorded(box).values()), [(1, 0 if how == "off" else 1)], "segments (recorder's, kernel's) in each folder")
    check("kernel" not in r.err, "what it says of the kernel's side: %r" % r.err)
    check("1 process family," in r.err, r.err)


@test
def the_program_gets_what_it_would_get(box):
    need_kernel()
    look = ["sh", "-c", "ls -l /proc/self/fd | sed 's/.* \\([0-9]* -> .*\\)/\\1/; s/[0-9]\\{3,\\}//'; env | sort; cat /proc/self/status | grep -E 'Sig(Blk|Ign)'"]
    said = []
    for how in ("on", "off"):
        r = box.run([D9, "run", "--quiet", "--dir", box.dir, "--kernel", how, "--", *look], shim=False, rc=0)
        said.append([line for line in r.out.splitlines() if not line.startswith("D9_RUN=")])
    equal(said[0], said[1], "descriptors, environment and signals of the program")


@test
def codes_and_signals_are_passed_on(box):
    need_kernel()
    run = [D9, "run", "--quiet", "--dir", box.dir, "--kernel=on", "--"]
    box.run([*run, "sh", "-c", "exit 7"], shim=False, rc=7)
    box.run([*run, "/no/such/program"], shim=False, rc=127)
    check(all(s for s, _ in recorded(box).values()), "a folder for a program that did not run: %s" % recorded(box))
    p = box.start([*run, "sh", "-c", "trap 'exit 9' TERM; echo on; while :; do sleep 0.05; done"], shim=False)
    equal(p.stdout.readline(), "on\n", "the program says")
    p.send_signal(signal.SIGTERM)
    equal(box.finish(p).rc, 9, "exit code after a signal")


def kernel_of(pid):
    """The d9-kernel that this d9 run started."""
    for child in children_of(pid):
        with open("/proc/%d/comm" % child) as f:
            if f.read().strip() == "d9-kernel":
                return child
    return None


@test
def its_death_is_not_the_programs(box):
    need_kernel()
    p = box.start([D9, "run", "--dir", box.dir, "--kernel=on", "--", "sh", "-c", "echo on; read x; exit 5"], shim=False, stdin=subprocess.PIPE)
    equal(p.stdout.readline(), "on\n", "the program says")
    time.sleep(1.2)  # it flushes once a second
    os.kill(kernel_of(p.pid), signal.SIGKILL)
    time.sleep(0.3)  # what is missing must be worth a word
    r = box.finish_with_input(p, "x\n")
    equal(r.rc, 5, "exit code")
    check("d9-kernel ended before the program, by signal 9" in r.err, "it is not told: %s" % r.err)
    check("d9-kernel did not watch" in box.d9("report", box.dir).out, "the report does not tell of it")


@test
def it_ends_with_the_program(box):
    need_kernel()
    p = box.start([D9, "run", "--quiet", "--dir", box.dir, "--kernel=on", "--", "sh", "-c", "echo on; read x"], shim=False, stdin=subprocess.PIPE)
    equal(p.stdout.readline(), "on\n", "the program says")
    kernel = kernel_of(p.pid)
    box.finish_with_input(p, "x\n")
    check(not os.path.exists("/proc/%d" % kernel), "d9-kernel lives on")


@parametrise(["auto", "on"])
def who_may_not_is_told_so_once(box, how):
    need_kernel()
    os.chmod(box.path, 0o755)
    folder, bin_ = os.path.join(box.path, "nobodys"), os.path.join(box.path, "bin")
    os.mkdir(folder)
    os.chown(folder, 65534, 65534)
    os.mkdir(bin_)
    for path in (D9, SHIM, KERNEL):
        shutil.copy(path, bin_)
    nobody = [need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]
    r = box.run([*nobody, os.path.join(bin_, "d9"), "run", "--kernel", how, "--dir", folder, "--", "sh", "-c", "echo ran; exit 3"], shim=False)
    told = [line for line in r.err.splitlines() if "CAP_BPF" in line]
    equal(len(told), 1, "how often it is told: %r" % r.err)
    if how == "on":
        equal((r.rc, r.out, len(r.err.splitlines())), (125, "", 1), "exit code, what the program said, lines")
    else:
        equal((r.rc, r.out), (3, "ran\n"), "exit code, and what the program said")
        r = box.run([*nobody, os.path.join(bin_, "d9"), "run", "--quiet", "--dir", folder, "--", "true"], shim=False, rc=0)
        equal(r.err, "", "with --quiet")


@test
def a_d9_kernel_that_is_not_there_or_does_nothing_is_told(box):
    need_kernel()
    bin_ = os.path.join(box.path, "bin")
    os.mkdir(bin_)
    for path in (D9, SHIM):
        shutil.copy(path, bin_)
    run = [os.path.join(bin_, "d9"), "run", "--dir", box.dir]
    r = box.run([*run, "--kernel=on", "--", "echo", "ran"], shim=False, rc=125)
    check("d9-kernel was not found beside d9" in r.err and r.err.count("\n") == 1 and not r.out, r.err)
    box.run([*run, "--", "true"], shim=False, rc=0)
    for script, words in (("exit 1", "did not say why"), ("echo d9-kernel: why not >&2; exit 1", "d9-kernel why not"),
                          ("exec sleep 60", "was not ready within 10 s")):
        with open(os.path.join(bin_, "d9-kernel"), "w") as f:
            f.write("#!/bin/sh\n%s\n" % script)
        os.chmod(f.name, 0o755)
        r = box.run([*run, "--kernel=on", "--", "echo", "ran"], shim=False, rc=125)
        check(words in r.err and r.err.count("\n") == 1 and not r.out, "%s: %r" % (script, r.err))
        r = box.run([*run, "--", "echo", "ran"], shim=False, rc=0)
        equal(r.out, "ran\n", "what the program says")
        check(words in r.err or "sleep" in script, "%s: %r" % (script, r.err))


@parametrise(["pid", "session", "process folder"])
def it_joins_who_records_already(box, how):
    need_kernel()
    program = Program(box, "kernel_family", "chatter", shim=True)
    folder = wait_until(box.begun, "nothing is recorded")
    wait_until(lambda: "CHATTERS" in program.said().out, "it does not begin")
    target = {"pid": ["--pid", str(program.pid)], "session": ["--session", box.dir], "process folder": ["--session", folder]}[how]
    k = start(box, *target, "--runq-min", "0ns")
    wait_until(lambda: files(folder) and os.path.getsize(os.path.join(folder, files(folder)[0])) > 10_000, "d9-kernel writes elsewhere: %s" % recorded(box))
    stop(box, k)
    box.end(program.p)
    equal(len(box.folders()), 1, "folders")


@test
def two_beside_a_recorder_share_its_folder(box):
    need_kernel()
    program = Program(box, "kernel_family", "chatter", shim=True)
    folder = wait_until(box.begun, "nothing is recorded")
    both = [start(box, "--pid", str(program.pid)) for _ in range(2)]
    wait_until(lambda: len(files(folder)) == 2, "two segments of d9-kernel: %s" % recorded(box))
    for k in both:
        stop(box, k)
    box.end(program.p)
    equal(files(folder), ["k-000001.d9", "k-000002.d9"], "segments")


@test
def of_a_program_that_the_recorder_cannot_enter(box):
    need_kernel()
    source, program = os.path.join(box.path, "alone.c"), os.path.join(box.path, "alone")
    with open(source, "w") as f:
        f.write("#include <unistd.h>\nint main(void) { usleep(1500000); return 4; }\n")
    if subprocess.run(["gcc", "-static", source, "-o", program], capture_output=True).returncode:
        raise Skip("static programs cannot be built here")
    r = box.run([D9, "run", "--dir", box.dir, "--", program], shim=False, rc=4)
    check("nothing was recorded" in r.err and "by d9-kernel" in r.err, r.err)
    equal(list(recorded(box).values()), [(0, 1)], "segments (recorder's, kernel's) in each folder")
    check(os.path.basename(box.folders()[0]).startswith("alone-"), "its name: %s" % box.folders())
    equal(len([e for e in of(box.meta(), "offcpu") if e["dur_ns"] > 1_400_000_000]), 1, "sleeps as long as its own")


@test
def doctor_tries_it(box):
    need_kernel()
    r = box.d9("doctor", rc=None)
    check("d9-kernel" in r.out and "ok    d9-kernel works" in r.out, r.out)


if __name__ == "__main__":
    main()
