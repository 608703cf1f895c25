#!/usr/bin/env python3
"""Random calls answer under the recorder what they answer without it: results, errno, memory, descriptor numbers.
D9_TEST_DIFFER_S: seconds instead of 20."""
import os
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PROGS, check, main, seed, test

SECONDS, ROUNDS = int(os.environ.get("D9_TEST_DIFFER_S", "20")), 500
WAYS = {
    "recorded": {},
    "every call, with its stack": {"D9_IO_MIN_US": "0", "D9_STACK_MIN_US": "0", "D9_STACKS": "slice"},
    "standby": {"D9_ENABLED": "standby"},
    "some families": {"D9_HOOKS": "-mutex,-stdio,-sem"},
}


def first_difference(bare, got):
    n = next((i for i, (a, b) in enumerate(zip(bare, got)) if a != b), min(len(bare), len(got)))
    return "%r, not %r, after %r" % (got[n:n + 2], bare[n:n + 2], bare[max(0, n - 2):n])


@test
def calls_answer_as_without_the_recorder(box):
    rnd, end, made, compared = seed(), time.time() + SECONDS, 0, 0
    while time.time() < end or not made:
        made += 1
        check(compared or made < 20, "the program does not come to its end by itself")
        args = [os.path.join(PROGS, "differ"), str(rnd.getrandbits(32)), str(ROUNDS)]
        bare = box.run(args, shim=False)
        if bare.rc:
            continue  # glibc itself did not survive these
        for name, env in WAYS.items():
            r = box.run(args, env=env)
            check((r.rc, r.out) == (0, bare.out),
                  "%s, differ %s: exit code %d; %s" % (name, " ".join(args[1:]), r.rc, first_difference(bare.out.split("\n"), r.out.split("\n"))))
            compared += 1
    print("# %d runs compared, %d seeds" % (compared, made))
    check(any(e["event"] == "span" for e in box.events()), "nothing was recorded, so nothing was tested")


main()
