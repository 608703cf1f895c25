#!/usr/bin/env python3
"""Recording is turned on and off from outside: nothing is recorded outside the windows, nothing is missing inside."""
import bisect
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from counters import FIRST, Shared
from harness import LIMIT, PROGS, check, equal, main, need_command, test, wait_until

SWITCHES = 100


def start(box, enabled):
    need_command("ctl")
    shared = Shared(box)
    p = box.start([os.path.join(PROGS, "kill"), shared.path], env={"D9_ENABLED": enabled, "D9_MEM_MB": "256"})
    shared.wait_started(p)
    return p, shared


def progress(shared):
    """Every thread has finished more calls than now."""
    now = shared.threads()
    wait_until(lambda: all(n > now[tid] + 1 for tid, n in shared.threads().items()), "the threads do not go on", LIMIT, every=0)


def recorded(box):
    """{tid: numbers of the calls that are there}, and the windows [(from, to)] in which recording was on."""
    events = box.events()
    calls, windows, since = {}, [], None
    for e in events:
        if e["event"] == "span" and e["hook"] == "epoll_wait":
            calls.setdefault(e["tid"], []).append((e["fd"] - FIRST, e["t_ns"], e["t_ns"] + e["dur_ns"]))
    for e in sorted((e for e in events if e["event"] == "control"), key=lambda e: e["t_ns"]):
        if e["mask"] and since is None:
            since = e["t_ns"]
        elif not e["mask"] and since is not None:
            windows.append((since, e["t_ns"]))
            since = None
    if since is not None:
        windows.append((since, 1 << 62))
    check(not [e for e in events if e["event"] == "gap"], "there was room for everything")
    return calls, windows


def check_windows(calls, windows):
    """Each call that is there ended while recording was on, or at most a moment after: the switch is not a barrier."""
    starts = [w[0] for w in windows]
    for tid, seen in calls.items():
        for number, begin, end in seen:
            i = bisect.bisect_right(starts, end + 2_000_000) - 1
            check(i >= 0 and begin <= windows[i][1] + 2_000_000, "call %d of thread %d lies outside: %d..%d" % (number, tid, begin, end))


@test
def standby_records_nothing_until_it_is_told_to(box):
    p, shared = start(box, "standby")
    progress(shared)
    before = shared.threads()
    box.d9("ctl", str(p.pid), "on")
    on = shared.threads()
    progress(shared)
    box.end(p)
    end = shared.threads()
    calls, windows = recorded(box)
    equal(len(windows), 1, "windows in which recording was on")
    for tid in before:
        numbers = [c[0] for c in calls.get(tid, [])]
        check(numbers and min(numbers) >= before[tid] - 1, "thread %d had made %d calls when it was told" % (tid, before[tid]))
        check(min(numbers) <= on[tid] + 1, "the first call of thread %d that is there is %d, not %d" % (tid, min(numbers), on[tid]))
        equal(numbers, list(range(min(numbers), min(numbers) + len(numbers))), "calls of thread %d" % tid)
        check(max(numbers) + 1 >= end[tid], "thread %d finished %d calls" % (tid, end[tid]))
    check_windows(calls, windows)


@test
def on_and_off_a_hundred_times(box):
    p, shared = start(box, "1")
    inside, outside = {t: [] for t in shared.threads()}, {t: [] for t in shared.threads()}
    on_since = shared.threads()
    for n in range(SWITCHES):
        last = shared.threads()
        box.d9("ctl", str(p.pid), "off")
        off = shared.threads()
        progress(shared)
        again = shared.threads()
        box.d9("ctl", str(p.pid), "on")
        on = shared.threads()
        for tid in inside:
            inside[tid].append((on_since[tid] + 1, last[tid]))
            outside[tid].append((off[tid] + 1, again[tid]))
        on_since = on
        progress(shared)
    box.end(p)
    calls, windows = recorded(box)
    equal(len(windows), SWITCHES + 1, "windows in which recording was on")
    for tid in inside:
        there = {c[0] for c in calls.get(tid, [])}
        equal(len(there), len(calls.get(tid, [])), "different calls of thread %d" % tid)
        for first, end in inside[tid]:
            missing = [i for i in range(first, end) if i not in there]
            check(not missing, "thread %d: of the calls %d..%d %s are missing" % (tid, first, end, missing[:20]))
        for first, end in outside[tid]:
            foreign = [i for i in range(first, end) if i in there]
            check(not foreign, "thread %d: %d calls are there that were made while it was off" % (tid, len(foreign)))
    check_windows(calls, windows)


@test
def orders_that_nobody_drains(box):
    """More of them than the session memory remembers, to a program in which no drain thread is made."""
    p = box.start(["sleep", "60"])
    wait_until(box.begun, "the program was never recorded")
    for n in range(SWITCHES):
        box.d9("ctl", str(p.pid), "on" if n % 2 else "off")
    box.end(p)
    told = [e["mask"] != 0 for e in sorted((e for e in box.events() if e["event"] == "control"), key=lambda e: e["t_ns"])]
    equal(told, [n % 2 == 0 for n in range(SWITCHES + 1)], "what the recording says of the orders")


@test
def a_flush_puts_everything_on_disk(box):
    p, shared = start(box, "1")
    progress(shared)
    done = shared.threads()
    box.d9("ctl", str(p.pid), "flush")
    for arena in box.arenas_left():  # what is only in memory does not count
        os.rename(arena, arena + "-hidden")
    try:
        calls, _ = recorded(box)
    finally:
        for arena in box.arenas:
            if os.path.exists(arena + "-hidden"):
                os.rename(arena + "-hidden", arena)
    for tid, n in done.items():
        there = {c[0] for c in calls.get(tid, [])}
        check(there >= set(range(n)), "thread %d had finished %d calls, %d are on disk" % (tid, n, len(there)))


if __name__ == "__main__":
    main()
