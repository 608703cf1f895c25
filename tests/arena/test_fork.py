#!/usr/bin/env python3
"""Forks of every kind: each process's calls are recorded under its own id, all of them, once."""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PROGS, check, equal, last_line_of_a_daemon, main, need_command, parametrise, test


def count_spans(events):
    return collections.Counter((e["pid"], e["tid"], e["hook"]) for e in events if e["event"] == "span")


def compare_counts(lines, events):
    counts = count_spans(events)
    wrong = []
    for line in lines:
        key = (int(line["pid"]), int(line["tid"]), line["hook"])
        if counts[key] != int(line["n"]):
            wrong.append("%s recorded %d" % (line, counts[key]))
    check(not wrong, "%d of %d are wrong:\n%s" % (len(wrong), len(lines), "\n".join(wrong[:8])))
    check(len(lines) > 0, "nobody said what it did")


def check_order(events):
    """A thread's calls do not overlap and none is there twice."""
    last = {}
    for e in events:
        if e["event"] == "span" and e["hook"] == "poll":
            key = (e["pid"], e["tid"])
            check(e["t_ns"] >= last.get(key, 0), "calls of %s overlap at %s" % (key, e))
            last[key] = e["t_ns"] + e["dur_ns"] - 1000


@test
def four_kinds_beside_three_writers(box):
    r = box.run([os.path.join(PROGS, "forks")], env={"D9_MEM_MB": "512", "D9_STACKS": "fp"}, rc=0)
    lines = r.lines("COUNT")
    equal(len(lines), 3 + 1 + 200 + 4 * 5, "processes and threads that said their counts")
    events = box.events()
    compare_counts(lines, events)
    check(not [e for e in events if e["event"] == "gap"], "there was room for everything")
    check_order(events)


@parametrise(["%s%s" % (kind, by) for by in ("", " under d9 run") for kind in ("daemon", "fork", "raw", "twice")])
def a_daemon_whose_parent_is_gone_before_it_records(box, case):
    said, kind = os.path.join(box.path, "said"), case.split()[0]
    if "d9 run" in case:
        need_command("run")
        box.d9_run([os.path.join(PROGS, "daemon"), said, kind])
    else:
        box.run([os.path.join(PROGS, "daemon"), said, kind])
    line = last_line_of_a_daemon(said)
    compare_counts([line], box.events())
    if "d9 run" in case:  # it may have held the lease when the daemon ended: then nobody was left to drain
        box.d9("recover", box.dir)
        compare_counts([line], box.events())
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


if __name__ == "__main__":
    main()
