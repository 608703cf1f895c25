#!/usr/bin/env python3
"""Several `d9 run` in one folder: each drains, counts and evicts what its own program recorded, and nothing else."""
import os
import re
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import check, equal, main, need_command, test, wait_until


def d9_run(box, script, *options):
    return box.start(box.d9_run_words(*options) + ["sh", "-c", script], shim=False, stdin=subprocess.PIPE)


def wait_folders(box, n):
    wait_until(lambda: len(box.folders()) >= n, "not %d folders" % n, every=0.005)
    time.sleep(0.1)  # five rounds of every d9 run: whoever wants a family has it by now


def release(box, p, rc):
    r = box.finish_with_input(p, "go\n")
    equal(r.rc, rc, "exit code of d9 run")
    return r


def segments(folder):
    return {n: os.path.getsize(os.path.join(folder, n)) for n in os.listdir(folder) if n.endswith(".d9")}


@test
def each_knows_how_its_own_program_ended(box):
    need_command("run")
    codes = (9, 15, 10, 12)  # signals: how a process was killed only its parent knows
    runs = []
    for code in codes:
        runs.append(d9_run(box, "echo $$; read x; kill -%d $$" % code))
        wait_folders(box, len(runs))
    pids = {}
    for code, p in reversed(list(zip(codes, runs))):
        r = release(box, p, 128 + code)
        pids[int(r.out)] = code
        summary = re.search(r"d9: (\d+) process famil\w+, (\d+) records", r.err)
        check(summary and summary[1] == "1" and int(summary[2]) > 0, "the summary of signal %d: %s" % (code, r.err))
    told = {e["pid"]: (e["how"], e["code"]) for e in box.events() if e["event"] == "exit"}
    equal(told, {pid: (3, code) for pid, code in pids.items()}, "the ends that are told")
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


@test
def families_that_end_at_once_count_for_their_own_run(box):
    need_command("run")
    waiting = d9_run(box, "read x")
    wait_folders(box, 1)
    p = d9_run(box, "for i in 1 2 3 4 5 6 7 8; do /bin/true; done")
    r = release(box, p, 0)
    equal(re.findall(r"d9: (\d+) process famil", r.err), ["9"], "families of the second")
    r = release(box, waiting, 0)
    equal(re.findall(r"d9: (\d+) process famil", r.err), ["1"], "families of the first")


@test
def a_small_budget_takes_nothing_of_a_neighbour(box):
    need_command("run")
    many = "exec dd if=/dev/zero of=/dev/null bs=1 count=1000000 status=none"
    options = ["--io-min-us=0", "--segment-mb=1", "--stacks=off"]
    small = d9_run(box, "read x; " + many, "--total-mb=2", *options)
    wait_folders(box, 1)
    before = set(box.folders())
    r = release(box, d9_run(box, many, *options), 0)
    theirs = [f for f in box.folders() if f not in before]
    had = {f: segments(f) for f in theirs}
    check(sum(sum(s.values()) for s in had.values()) > 2 << 20, "too little to be evicted: %s\n%s" % (had, r.err))
    release(box, small, 0)
    equal({f: segments(f) for f in theirs}, had, "segments of the neighbour")
    own = [f for f in box.folders() if f not in theirs]
    total = sum(sum(segments(f).values()) for f in own)
    check(total <= 3 << 20, "its own %d bytes are over its budget" % total)


if __name__ == "__main__":
    main()
