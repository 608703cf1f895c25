#!/usr/bin/env python3
"""However a process ends, what it recorded before is there."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PROGS, check, compare, equal, main, need_command, parametrise, test

# how it ends: exit code, what the `exit` event says under d9 run (how, code), and without it
ENDS = {
    "return": (5, (1, 5), 1), "exit": (5, (1, 5), 1), "_exit": (5, (2, 5), 2), "_Exit": (5, (2, 5), 2),
    "quick_exit": (5, (2, 5), 2), "exit-in-thread": (5, (1, 5), 1), "pthread_exit": (0, (1, 0), 1),
    "exit_group": (5, (2, 5), None), "abort": (-signal.SIGABRT, (3, 6), None), "segv": (-signal.SIGSEGV, (3, 11), None),
    "kill": (-signal.SIGKILL, (3, 9), None),
}


def ends(events, pid):
    return [(e["how"], e["code"]) for e in events if e["event"] == "exit" and e["pid"] == pid]


@parametrise(sorted(ENDS))
def what_was_recorded_before_is_there(box, how):
    code, _, said = ENDS[how]
    r = box.run([os.path.join(PROGS, "exit"), how])
    equal(r.rc, code, "exit code")
    events = box.events()
    compare(r, events)
    if said:
        equal(ends(events, r.pid), [(said, code)], "the end that is told")
        check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


@parametrise(sorted(ENDS))
def d9_run_knows_how_it_ended(box, how):
    need_command("run")
    code, told, _ = ENDS[how]
    r = box.d9_run([os.path.join(PROGS, "exit"), how])
    equal(r.rc, code if code >= 0 else 128 - code, "exit code")
    events = box.events()
    compare(r, events)
    equal([(e["how"], e["code"]) for e in events if e["event"] == "exit"], [told], "the end that is told")
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


@test
def the_cpu_clock_is_read_after_a_long_computation(box):
    r = box.run([os.path.join(PROGS, "burn")], rc=0)
    line = r.lines("BURNT")[0]
    runs = [e["run_ns"] for e in box.events() if e["event"] == "cpu" and e["tid"] == int(line["tid"]) and e["source"] == 0]
    check(runs and max(runs) >= int(line["min_ns"]) and max(runs) <= int(line["max_ns"]),
          "CPU time %s, by the thread's own clock %s" % (runs, line))


if __name__ == "__main__":
    main()
