#!/usr/bin/env python3
"""A program under the recorder behaves as it does alone: errno, cancellation, jumps and exceptions out of waits."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PROGS, Skip, check, compare, equal, main, parametrise, test

LIMITS = [None, "0"]  # D9_IO_MIN_US: I/O counted, I/O recorded


def run(box, name, env=None, shim=True):
    path = os.path.join(PROGS, name)
    if not os.path.exists(path):
        raise Skip("%s was not built" % name)
    return box.run([path], env=env, shim=shim, rc=0)


@parametrise(LIMITS)
def errno_is_what_the_kernel_said(box, limit):
    alone = run(box, "errno", shim=False)
    recorded = run(box, "errno", env={"D9_IO_MIN_US": limit})
    equal(recorded.out, alone.out, "what it prints")
    check(any(e["event"] == "span" for e in box.events()), "nothing was recorded, so nothing was tested")


@test
def cancellation_unwinds_through_the_hooks(box):
    r = run(box, "cancel")
    events = box.events()
    own = [e for e in events if e.get("tid") == r.pid or e["event"] == "pending"]
    compare(r, [e for e in own if e.get("hook") != "pthread_create"])


@test
def jumps_out_of_waits_leave_nothing_behind(box):
    compare(run(box, "jump"), box.events())


@test
def exceptions_pass_through_the_hooks(box):
    run(box, "throw", shim=False)
    run(box, "throw")
    polls = [e for e in box.events() if e["event"] == "span" and e["hook"] == "poll"]
    equal(len(polls), 2, "waits that ended by themselves")
    check(not [e for e in box.events() if e["event"] == "pending"], "a wait that was left by an exception is shown as pending")


main()
