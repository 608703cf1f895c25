#!/usr/bin/env python3
"""SIGKILL at random moments: of each thread's n finished calls n or n+1 are recovered, in order, none twice, none invented."""
import os
import signal
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from counters import FIRST, Shared
from harness import LIMIT, PROGS, check, children_of, main, need_command, seed, test, wait_until

KILLS = int(os.environ.get("D9_TEST_KILLS", "200"))
RANDOM = seed()


def kill_one(box, start, pid_of, longest_ms, late=False):
    """Starts, kills at a random moment, returns the counters at the end.  late: whoever drains stands still from some moment until then."""
    shared = Shared(box)
    p = start(shared.path)
    shared.wait_started(p)
    pid, begun = pid_of(p), time.monotonic()
    moment = RANDOM.uniform(0, longest_ms / 1000)
    if late:
        time.sleep(RANDOM.uniform(0, moment))
        os.kill(p.pid, signal.SIGSTOP)
    while time.monotonic() < begun + moment:
        pass
    os.kill(pid, signal.SIGKILL)
    if late:
        os.kill(p.pid, signal.SIGCONT)
    box.finish(p)
    truth = shared.threads()
    shared.close()
    return truth


def judge(events, truth, suffix=False):
    """Raises unless the calls of each thread are there.  Returns how many threads were shown in a call."""
    calls = {tid: [] for tid in truth}
    pending = 0
    for e in events:
        if e.get("tid") not in truth:
            continue
        if e["event"] == "span" and e["hook"] == "epoll_wait":
            check(e["result"] == -9, "an outcome that no call had: %s" % e)
            calls[e["tid"]].append(e["fd"] - FIRST)
        elif e["event"] == "pending":
            check(e["hook"] in ("epoll_wait", "poll"), "in a call that nobody made: %s" % e)
            pending += 1
    for tid, seen in calls.items():
        n = truth[tid]
        first = seen[0] if suffix and seen else 0
        jumps = [(a, b) for a, b in zip(seen, seen[1:]) if b != a + 1]
        check(not jumps, "thread %d: call %d is followed by %d (%d jumps)" % ((tid,) + (jumps or [(0, 0)])[0] + (len(jumps),)))
        check(n <= first + len(seen) <= n + 1, "thread %d finished %d calls, %d..%d are there" % (tid, n, first, first + len(seen)))
    return pending


@test
def nothing_is_lost_or_invented(box):
    in_calls = 0
    for n in range(KILLS):
        box.dir = os.path.join(box.path, "traces-%d" % n)
        truth = kill_one(box, lambda path: box.start([os.path.join(PROGS, "kill"), path]), lambda p: p.pid, 30)
        in_calls += judge(box.events(), truth) > 0
        for arena in box.arenas_left():
            os.unlink(arena)
    print("# %d of %d kills found a thread in a call" % (in_calls, KILLS))
    check(in_calls >= KILLS * 3 // 4, "only %d of %d kills found a thread in a call" % (in_calls, KILLS))


@test
def nor_while_d9_run_drains_rolls_and_evicts(box):
    need_command("run")
    env = {"D9_SEGMENT_MB": "1", "D9_TOTAL_MB": "2", "D9_ROTATE_SECS": "1", "D9_MEM_MB": "1024"}
    program = os.path.join(PROGS, "kill")
    for n in range(max(2, KILLS // 10)):
        box.dir = os.path.join(box.path, "run-%d" % n)
        prefix = box.d9_run_words("--quiet")
        truth = kill_one(box, lambda path: box.start(prefix + [program, path], env=env, shim=False),
                         lambda p: wait_until(lambda: children_of(p.pid), "d9 run started nothing", LIMIT)[0] if prefix else p.pid, 2500,
                         late=bool(prefix and n % 2))
        events = box.events()
        lost = [e for e in events if e["event"] == "gap"]
        check(not lost, "there was room, and this was lost: %s" % lost[:3])
        judge(events, truth, suffix=True)
        check(not box.arenas_left(), "d9 run left an arena behind")


if __name__ == "__main__":
    main()
