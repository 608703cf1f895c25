#!/usr/bin/env python3
"""Everything at once (tests/prog/chaos.c): no crash, no hang, right answers, and each counted call kept or counted as
lost.  D9_TEST_CHAOS_S: seconds instead of 6 for each of the cases."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import D9, MUTANT, PROGS, check, equal, main, parametrise

SECONDS = int(os.environ.get("D9_TEST_CHAOS_S", "6"))


@parametrise(["bare 64", "bare 1", "run 64", "run 1"])
def everything_at_once(box, case):
    how, mib = case.split()
    chaos = [os.path.join(PROGS, "chaos"), str(SECONDS)]
    env = {"D9_MEM_MB": mib, "D9_TOTAL_MB": "4096", "D9_IO_MIN_US": "0"}
    if how == "bare" or MUTANT == "absent":
        r = box.run(chaos, env=env, timeout=SECONDS + 60)
    else:
        r = box.run([D9, "run", "--quiet", "--dir", box.dir, "--", *chaos], env=env, shim=False, timeout=SECONDS + 60)
    equal(r.rc, 5, "exit code: %s%s" % (r.out[-500:], r.err[-1000:]))
    equal(r.err, "", "on stderr")
    counted = {int(line["tid"]): int(line["n"]) for line in r.lines("COUNT")}
    equal(len(counted), 2, "threads that counted")
    folder = next(f for f in box.folders() if os.path.basename(f).startswith("chaos-"))
    kept, lost = dict.fromkeys(counted, 0), dict.fromkeys(counted, 0)
    for e in box.meta(folder):
        if e.get("tid") in counted and e["event"] == "span" and e["hook"] == "poll":
            kept[e["tid"]] += 1
        elif e.get("tid") in counted and e["event"] == "gap":
            lost[e["tid"]] += e["events"]
    print("# %s: %s issued, %s kept, %s counted as lost; %s" % (case, counted, kept, lost, r.lines("DONE")))
    for tid, n in counted.items():
        extra = kept[tid] + lost[tid] - n  # a lost reading of the CPU clock, one a millisecond at most, is counted too
        check(0 <= extra <= (SECONDS * 1000 if lost[tid] else 0), "thread %d: %d issued, %d kept, %d counted" % (tid, n, kept[tid], lost[tid]))
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


if __name__ == "__main__":
    main()
