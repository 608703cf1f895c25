#!/usr/bin/env python3
"""What the recorder does at its limits: the program lives, and each event is kept or counted."""
import collections
import os
import signal
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PROGS, Skip, check, equal, main, need_command, need_root, parametrise, test


def program(name):
    return os.path.join(PROGS, name)


def accounts(events):
    """{(tid, hook): spans}, {tid: events counted as lost}"""
    kept, lost = collections.Counter(), collections.Counter()
    for e in events:
        if e["event"] == "span":
            kept[(e["tid"], e["hook"])] += 1
        elif e["event"] == "gap":
            lost[e["tid"]] += e["events"]
    return kept, lost


@parametrise(["hook 1", "hook 64", "abi 1", "abi 64"])
def a_storm_of_signals(box, case):
    kind, mib = case.split()
    # Only what is counted: the program prints and joins as well.
    env = {"D9_IO_MIN_US": "0", "D9_MEM_MB": mib, "D9_STACKS": "off", "D9_HOOKS": "read,thread,abi"}
    r = box.run([program("storm"), "700", kind], env=env, rc=0)
    line = r.lines("ISSUED")[0]
    tid, issued = int(line["tid"]), int(line["n"])
    kept, lost = accounts(box.meta())
    own = kept[(tid, "read")] if kind == "hook" else sum(e["event"] == "wake" and e["tid"] == tid for e in box.meta())
    creates = kept[(tid, "pthread_create")]
    print("# %d issued, %d kept, %d counted" % (issued, own, lost[tid]))
    extra = own + creates + lost[tid] - issued - 1
    # A hooked call may bring a reading of the CPU clock with it, at most one a millisecond: lost ones are counted too.
    check(0 <= extra <= (1500 if kind == "hook" and lost[tid] else 0), "kept + counted is off by %d" % extra)
    if mib == "1":
        check(lost[tid] > 0, "the arena was never full: nothing was tested")


def in_small_tmpfs(box, argv, mib, env):
    need_root()
    script = "mount -t tmpfs -o size=%dm none /dev/shm || exit 77; shift 0; exec env LD_PRELOAD=\"$D9_TEST_SHIM\" \"$@\"" % mib
    from harness import MUTANT, SHIM
    env = dict(env, D9_TEST_SHIM="" if MUTANT == "absent" else SHIM)
    r = box.run(["unshare", "-m", "sh", "-c", script, "sh"] + argv, env=env, shim=False)
    if r.rc == 77:
        raise Skip("no tmpfs can be mounted here")
    return r


LATE_STORM = """import select, sys, time
poll = select.poll()
for i in range(150): time.sleep(0.01)
print('STORM t_ns=%d' % time.monotonic_ns(), flush=True)
sys.stdin.readline()
for i in range(300000): poll.poll(0)
print('OVER', flush=True)"""


@test
def losses_begin_when_they_did(box):
    """Nobody drains in the storm: what was lost was lost in it, and not since the thread began."""
    need_command("run")
    p = box.start(box.d9_run_words("--quiet", "--mem-mb=1", "--stacks=off") + [sys.executable, "-S", "-c", LATE_STORM],
                  shim=False, stdin=subprocess.PIPE)
    storm = int(p.stdout.readline().split("=")[1])
    os.kill(p.pid, signal.SIGSTOP)
    p.stdin.write("\n")
    p.stdin.flush()
    equal(p.stdout.readline(), "OVER\n", "the program")
    os.kill(p.pid, signal.SIGCONT)
    equal(box.finish(p).rc, 0, "exit code")
    gaps = box.document("report")["losses"]["gaps"]
    check(gaps, "nothing was lost, so nothing was tested")
    # d9 run drains twice a second.
    check(all(g["from_ns"] >= storm - 1_200_000_000 for g in gaps), "the storm began at %d, losses %s" % (storm, gaps))


@parametrise(["quarter", "filled"])
def a_full_tmpfs(box, how):
    fill = ["/dev/shm/filler"] if how == "filled" else []
    r = in_small_tmpfs(box, [program("full")] + fill, 8, {"D9_IO_MIN_US": "0", "D9_EXIT_MS": "20000"})
    equal(r.rc, 0, "exit code, with %s%s" % (r.out, r.err))
    check("ALIVE" in r.out, "it did not get to its end")
    if fill:
        check("FILLED" in r.out, "the tmpfs was not filled")
    kept, lost = accounts(box.meta())
    check(sum(lost.values()) > 0, "nothing was lost: nothing was tested")
    for line in r.lines("ISSUED"):
        tid = int(line["tid"])
        creates = 4 if kept[(tid, "pthread_create")] else 0
        extra = kept[(tid, "read")] + kept[(tid, "pthread_create")] + lost[tid] - int(line["n"]) - creates
        print("# thread %d: %s issued, %d kept, %d counted" % (tid, line["n"], kept[(tid, "read")], lost[tid]))
        check(0 <= extra <= (1000 if lost[tid] else 0), "kept + counted of thread %d is off by %d" % (tid, extra))


@test
def ten_thousand_threads(box):
    import subprocess
    p = box.start([program("many"), "10000"], stdin=subprocess.PIPE)
    made = int(p.stdout.readline().split("n=")[1])
    equal(p.stdout.readline(), "WAITED\n", "what it says")
    arenas = box.arenas_left()
    used = sum(os.stat(a).st_blocks * 512 for a in arenas)
    r = box.finish_with_input(p, "x")
    equal(r.rc, 0, "exit code")
    if made < 10000:
        raise Skip("only %d threads can be made here" % made)
    print("# %d threads, %.1f MiB of the tmpfs" % (made, used / (1 << 20)))
    polls = collections.Counter(e["tid"] for e in box.events() if e["event"] == "span" and e["hook"] == "poll")
    equal(len(polls), made, "threads whose wait was recorded")
    equal(set(polls.values()), {1}, "waits of a thread")
    check(len(arenas) == 1 and used <= 64 << 20, "%d bytes of the tmpfs in use" % used)


@test
def growing_the_descriptor_table_never_waits(box):
    r = box.run([program("fdgrow")], rc=0)
    if "SKIP" in r.out:
        raise Skip(r.out.split(" ", 1)[1].strip())
    line = r.lines("GROWN")[0]
    check(int(line["max"]) > 16500, "%s" % line)
    drained = [e for e in box.meta() if e["event"] == "cpu" and e["source"] == 1]
    check(drained, "nothing drained beside it, so nothing was tested")
    equal(int(line["waited"]), 0, "calls that gave up the CPU (%s)" % line)


@test
def in_a_sandbox_that_allows_exit_alone(box):
    need_root()
    empty = os.path.join(box.path, "empty")
    os.mkdir(empty)
    os.chmod(empty, 0o755)
    r = box.run([program("sandbox"), empty], env={"D9_STACKS": "fp"}, rc=0)
    for line in r.lines("CHILD"):
        equal(line["status"], "0", "child %s ended with" % line["how"])
    kept, lost = accounts(box.meta())
    equal(len(r.lines("ISSUED")), 8, "children that issued calls")
    for line in r.lines("ISSUED"):
        tid = int(line["tid"])
        others = sum(n for (t, hook), n in kept.items() if t == tid and hook != "pthread_mutex_lock")
        total = kept[(tid, "pthread_mutex_lock")] + lost[tid]
        print("# child %d: %d kept, %d counted, %d of other hooks" % (tid, kept[(tid, "pthread_mutex_lock")], lost[tid], others))
        check(int(line["n"]) <= total <= int(line["n"]) + 4, "kept + counted: %d of %s" % (total, line))
        check(kept[(tid, "pthread_mutex_lock")] > 0, "nothing was kept")


@test
def dormant_maps_nothing(box):
    r = box.run([program("maps")], env={"D9_ENABLED": "0"}, rc=0)
    foreign = [l for l in r.out.splitlines() if "/dev/shm" in l or "/d9-" in l]
    check(not foreign, "mapped: %s" % foreign)
    check("libd9shim.so" in r.out, "the library is not there: nothing was tested")
    check(not os.path.exists(box.dir), "a folder was made")
    alone = box.run([program("maps")], shim=False, rc=0)
    ours = {l.split()[-1] for l in r.out.splitlines() if len(l.split()) > 5}
    theirs = {l.split()[-1] for l in alone.out.splitlines() if len(l.split()) > 5}
    equal({os.path.basename(m) for m in ours - theirs}, {"libd9shim.so"}, "what is mapped by name")
    anonymous = [sum(len(l.split()) == 5 for l in x.out.splitlines()) for x in (r, alone)]
    check(anonymous[0] <= anonymous[1] + 1, "anonymous mappings: %d, alone %d" % tuple(anonymous))  # its .bss


if __name__ == "__main__":
    main()
