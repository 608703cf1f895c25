#!/usr/bin/env python3
"""Programs that tell of their own tasks through d9.h, from C, Python and Rust on Tokio: what is recorded is what they count
themselves, and without a recorder they do the same."""
import collections
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from contract.contract import Judge  # noqa: E402
from harness import check, equal  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
READY, CANCELLED, UNKNOWN = 1, 2, 0xFFFFFFFF
ITSELF = {"D9_RUNTIMES": "off"}  # the example on Tokio tells of its tasks, so they are not to be told twice
COUNTED = ("task_spawn", "poll", "wake", "task_end", "app_span", "log", "counter", "custom", "park")

EXAMPLES = {
    "C": lambda: [os.path.join(harness.PROGS, "runtime")],
    "Python": lambda: [os.path.realpath(sys.executable), os.path.join(HERE, "example.py")],
    "Tokio": lambda: [harness.cargo(os.path.join(HERE, "rust"), "tokio_abi")],
}


def truth_of(r):
    lines = r.lines("TRUTH")
    equal(len(lines), 1, "lines of TRUTH")
    return {k: int(v) for k, v in lines[0].items()}


def record(box, name):
    r = box.run(EXAMPLES[name](), rc=0, env=ITSELF)
    events = box.events()
    check(not [e for e in events if e["event"] == "gap"], "events were lost")
    return r, truth_of(r), events


def of(events, kind):
    return [e for e in events if e["event"] == kind]


@harness.parametrise(EXAMPLES)
def counts_are_the_programs_own(box, name):
    _, truth, events = record(box, name)
    equal(truth["recorder"], 1, "a recorder was found")
    there = collections.Counter(e["event"] for e in events)
    equal({k: there[k] for k in COUNTED}, {k: truth[k] for k in COUNTED}, "events")
    check(truth["task_spawn"] >= 20 and truth["poll"] > truth["task_spawn"], "the program did too little: %s" % truth)


@harness.parametrise(EXAMPLES)
def every_task_is_made_polled_and_ended(box, name):
    _, truth, events = record(box, name)
    made = {e["task"]: e for e in of(events, "task_spawn")}
    equal(len(made), truth["task_spawn"], "tasks")
    equal(sorted(e["task"] for e in of(events, "task_end")), sorted(made), "tasks that ended")
    equal(sum(e["outcome"] == READY for e in of(events, "task_end")), truth["ready"], "tasks that got ready")
    equal({e["outcome"] for e in of(events, "task_end")} - {READY, CANCELLED}, set(), "other outcomes")
    equal({e["task"] for e in of(events, "poll")} - set(made), set(), "tasks that were polled and never made")
    equal({e["task"] for e in of(events, "wake")} - set(made), set(), "tasks that were woken and never made")
    for e in of(events, "poll"):
        check(e["t_ns"] >= made[e["task"]]["t_ns"] - harness.SLACK_NS, "polled before it was made: %s" % e)
    outcomes = {e["outcome"] for e in of(events, "poll")}
    equal(outcomes, {UNKNOWN} if name == "Tokio" else {0, READY}, "outcomes of polls")


@harness.parametrise(EXAMPLES)
def spans_lie_within_polls_and_polls_do_not_overlap(box, name):
    _, _, events = record(box, name)
    polls = collections.defaultdict(list)
    for e in of(events, "poll"):
        polls[e["tid"]].append((e["t_ns"], e["t_ns"] + e["dur_ns"]))
    for tid, of_thread in polls.items():
        of_thread.sort()
        for a, b in zip(of_thread, of_thread[1:]):
            check(a[1] <= b[0], "polls of %d overlap: %s %s" % (tid, a, b))
    spans = of(events, "app_span")
    check(spans and all(s["name"] == "parse" and s["dur_ns"] > 0 for s in spans), "spans: %s" % spans[:3])
    for s in spans:
        end = s["t_ns"] + s["dur_ns"]
        check(any(a <= s["t_ns"] and end <= b for a, b in polls[s["tid"]]), "not within a poll: %s" % s)


@harness.parametrise(EXAMPLES)
def custom_events_are_taken_apart(box, name):
    if os.environ.get("D9_TEST_READER") == "own":
        raise harness.Skip("the tests' own reader does not take them apart")
    r, _, events = record(box, name)
    want = [{"id": int(w["id"]), "delta": int(w["delta"]), "ratio": float(w["ratio"]), "what": w["what"]} for w in r.lines("CUSTOM")]
    check(len(want) >= 20, "the program declared none")
    equal([e["name"] for e in of(events, "custom")], ["order"] * len(want), "names")
    got = [e["fields"] for e in of(events, "custom")]
    equal(sorted(got, key=lambda f: f["id"]), sorted(want, key=lambda f: f["id"]), "fields")
    text = box.d9("dump", box.dir).out
    check("name=order id=7 delta=-7 ratio=1.75 what=box-7\n" in text, "d9 dump does not take them apart")


def in_queues(events):
    """Nanoseconds from each wake to the poll that followed: what d9 makes of them, made again."""
    found, tasks = [], collections.defaultdict(list)
    for e in of(events, "wake") + of(events, "poll"):
        tasks[e["task"]].append((e["t_ns"], e["event"] == "poll", e.get("dur_ns", 0)))
    for moments in tasks.values():
        since = polled = None
        for t, is_poll, dur in sorted(moments):
            if not is_poll:
                since = since or max(t, polled or 0)
                continue
            if since and since <= t:
                found.append(t - since)
            since, polled = None, t + dur
    return found


@harness.parametrise(EXAMPLES)
def the_report_knows_runtimes_and_queues(box, name):
    _, truth, events = record(box, name)
    doc = box.document("report")
    runtimes = [r for p in doc["processes"] for r in p["runtimes"]]
    equal(sum(r["polls"] for r in runtimes), truth["poll"], "polls of runtimes")
    equal(sum(r["wakes"] for r in runtimes), truth["wake"], "wakes")
    equal(sum(r["tasks"] for r in runtimes), truth["task_spawn"], "tasks")
    workers = {(e["runtime"], e["worker"]) for e in of(events, "poll") + of(events, "park")} - {(r["runtime"], UNKNOWN) for r in runtimes}
    equal(sum(r["workers"] for r in runtimes), len(workers), "workers")
    total = sum(e["dur_ns"] for e in of(events, "poll"))
    check(abs(sum(r["poll_total_ns"] for r in runtimes) - total) <= 2 * truth["poll"], "time of polls: %s" % runtimes)
    waits = in_queues(events)
    hist = box.document("hist", "queue")
    equal(hist["count"], len(waits), "times in a queue")
    check(waits and abs(hist["total_ns"] - sum(waits)) <= 2 * len(waits), "time in queues: %s, not %d" % (hist, sum(waits)))
    equal(doc["hists"]["queue"]["count"], len(waits), "times in a queue in the report")
    spans = box.document("spans", "--kind", "queue")["spans"]
    equal((len(spans), {s["task"] for s in spans} - {e["task"] for e in of(events, "wake")}), (len(waits), set()), "spans of kind queue")
    check("runtime %d: " % runtimes[0]["runtime"] in box.d9("report", box.dir).out, "not told to people")


@harness.parametrise(EXAMPLES)
def tasks_are_the_programs_own(box, name):
    _, truth, events = record(box, name)
    doc = box.document("tasks")
    Judge().document("d9.tasks/1", doc)
    tasks = {t["id"]: t for t in doc["tasks"]}
    equal(sorted(tasks), sorted(e["task"] for e in of(events, "task_spawn")), "tasks")
    equal(sum(t["polls"] for t in tasks.values()), truth["poll"], "polls")
    equal(sum(t["wakes"] for t in tasks.values()), truth["wake"], "wakes")
    equal(sum(t["outcome"] == "ready" for t in tasks.values()), truth["ready"], "tasks that got ready")
    for e in of(events, "task_spawn"):
        t = tasks[e["task"]]
        equal((t["spawn"], t["spawned_ns"], t["parent"], t["name"]), ("exact", e["t_ns"], e["parent"] or None, e["name"] or None), "spawn")
    for e in of(events, "task_end"):
        equal(tasks[e["task"]]["ended_ns"], e["t_ns"], "end")
    for task, t in tasks.items():
        polls = [e for e in of(events, "poll") if e["task"] == task]
        equal(t["polls"], len(polls), "polls of %d" % task)
        equal(t["poll_max_ns"], max([e["dur_ns"] for e in polls], default=0), "longest poll of %d" % task)
        equal(t["workers"], len({e["worker"] if e["worker"] != UNKNOWN else (e["tid"],) for e in polls}), "workers of %d" % task)
    waits = in_queues(events)
    check(abs(sum(t["queue_ns"] or 0 for t in tasks.values()) - sum(waits)) <= 2 * len(waits), "time in queues")
    first = doc["tasks"][0]
    equal(first["poll_max_ns"], max(t["poll_max_ns"] for t in tasks.values()), "longest poll")
    life = box.document("task", first["key"])
    Judge().document("d9.task/1", life)
    equal(life["task"], first, "a task alone")
    own = sorted((e["t_ns"], e["event"]) for e in events if e.get("task") == first["id"] and e["event"] != "app_span")
    equal(sorted((e["t_ns"], e["event"].replace("task_", "")) for e in life["events"]),
          sorted((t, kind.replace("task_", "")) for t, kind in own), "its life")
    equal(len(box.d9("tasks", box.dir).out.splitlines()), 1 + min(len(tasks), 50), "lines for people")
    check("task %s" % first["key"] in box.d9("task", str(first["id"]), box.dir).out, "not told to people")


@harness.parametrise(EXAMPLES)
def the_same_without_a_recorder(box, name):
    alone = box.run(EXAMPLES[name](), shim=False, rc=0)
    recorded, truth, events = record(box, name)
    equal(truth_of(alone)["recorder"], 0, "a recorder was found")
    check(events, "nothing was recorded")
    equal(sorted(map(str, alone.lines("CUSTOM"))), sorted(map(str, recorded.lines("CUSTOM"))), "what the program did")
    for k in ("task_spawn", "ready", "task_end", "app_span", "log", "custom"):
        equal(truth_of(alone)[k], truth[k], k)


harness.main()
