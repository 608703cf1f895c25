#!/usr/bin/env python3
"""Everything at once (tests/prog/chaos.c): no crash, no hang, right answers, and each counted call kept or counted as
lost.  D9_TEST_CHAOS_S: seconds instead of 6 for each of the cases, each of them then with ten thousand threads that come and go
and two hundred programs that end while their threads live, however long these take (`scripts/bench chaos`)."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PROGS, check, equal, main, parametrise

LONG = os.environ.get("D9_TEST_CHAOS_S")
SECONDS = int(LONG or "6")
LEAST = ["10000", "200"] if LONG else []  # threads, programs


def figures(case, counted, kept, lost, done):
    kinds = ("forks", "threads", "exits", "cancels", "jumps", "handled", "opens")
    issued, there, gone = (sum(d.values()) for d in (counted, kept, lost))
    return "# %s: %s s, %d calls issued, %d kept, %d lost (%d of these are readings of the CPU clock); %s" % (
        case, done["seconds"], issued, there, gone, there + gone - issued, ", ".join("%s %s" % (done[k], k) for k in kinds))


@parametrise(["bare 64", "bare 1", "run 64", "run 1"])
def everything_at_once(box, case):
    how, mib = case.split()
    chaos = [os.path.join(PROGS, "chaos"), str(SECONDS), *LEAST]
    env = {"D9_MEM_MB": mib, "D9_TOTAL_MB": "65536", "D9_IO_MIN_US": "0"}
    limit = 2 * SECONDS + 60
    if how == "bare":
        r = box.run(chaos, env=env, timeout=limit)
    else:
        r = box.run([*box.d9_run_words("--quiet"), *chaos], env=env, shim=False, timeout=limit)
    equal(r.rc, 5, "exit code: %s%s" % (r.out[-500:], r.err[-1000:]))
    equal(r.err, "", "on stderr")
    counted = {int(line["tid"]): int(line["n"]) for line in r.lines("COUNT")}
    slow = {int(line["tid"]): int(line["slow"]) for line in r.lines("COUNT")}
    equal(len(counted), 2, "threads that counted")
    folder = next(f for f in box.folders() if os.path.basename(f).startswith("chaos-"))
    kept, lost = dict.fromkeys(counted, 0), dict.fromkeys(counted, 0)
    for e in box.sums(folder, limit):
        if e["tid"] in counted:
            kept[e["tid"]] += e["n"] if e["event"] == "span" and e["hook"] == "poll" else 0
            lost[e["tid"]] += e["lost"]
    done = r.lines("DONE")[0]
    print(figures(case, counted, kept, lost, done), flush=True)
    for tid, n in counted.items():
        extra = kept[tid] + lost[tid] - n  # a lost reading of the CPU clock is counted too: at most three for each slow turn
        check(0 <= extra <= (3 * slow[tid] if lost[tid] else 0),
              "thread %d: %d issued, %d kept, %d counted as lost, %d slow turns" % (tid, n, kept[tid], lost[tid], slow[tid]))
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


if __name__ == "__main__":
    main()
