#!/usr/bin/env python3
"""Tokio programs that know nothing of the recorder: polls, outcomes, ends and wakes in the recording are what they count themselves."""
import collections
import os
import re
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from contract.contract import Judge  # noqa: E402
from harness import check, equal  # noqa: E402
from tasks import totals, truth_of  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
PENDING, READY, CANCELLED, WOKEN, ABORTED, UNKNOWN = 0, 1, 2, 3, 4, 0xFFFFFFFF
VERSIONS, NEWEST = ("1.23", "1.38", "1.43", "1.54"), "1.54"
VARIANTS = {  # name: profile, flags of the compiler
    "stripped": ("stripped", ""),
    "frame-pointers": ("release", "-C force-frame-pointers=yes"),
    "abort": ("abort", ""),
    "unstable": ("release", "--cfg tokio_unstable"),
}
MORE = {"v0": ("release", "-C symbol-mangling-version=v0"), "size": ("release", "-C opt-level=s")}
APART = {"debug": ("dev", ""), "symbols": ("symbols", "")}  # not optimised; as most programs are built: names of functions, and no more
if os.environ.get("D9_TEST_MATRIX"):  # scripts/bench matrix
    VARIANTS.update(MORE)
BUILDS = list(VERSIONS) + ["%s %s" % (v, kind) for v in VERSIONS for kind in VARIANTS if v == NEWEST or os.environ.get("D9_TEST_MATRIX")]
SUBTESTS = ("yields", "self_wake", "channels", "timers", "net", "blocking", "local_set", "abort", "abort_running", "panics",
            "evil_wakers", "many_runtimes", "shutdown", "no_tasks", "delay", "storm")
EXACT = (1, 38)  # from 1.29 on a task's memory says when it was made


def version(build):
    return tuple(int(n) for n in build.split()[0].split("."))


def program(build):
    number, kind = (build.split() + ["release"])[:2]
    profile, flags = dict(APART, **VARIANTS).get(kind, ("release", ""))
    path = harness.cargo(os.path.join(HERE, "v" + number), "tokio_truth_" + number.replace(".", "_"), profile, flags)
    return path.replace("/dev/", "/debug/")  # cargo's name of the folder


# Of the newest version's other builds in the suite; all of all in scripts/bench matrix.
FEW = ("channels", "blocking", "local_set", "abort", "panics", "shutdown")
UNWINDS = ("panics", "evil_wakers", "blocking")  # a panic ends the program where it may not unwind


def runs(build, subtest):
    few = " " in build and "stripped" not in build and not os.environ.get("D9_TEST_MATRIX") and subtest in SUBTESTS and subtest not in FEW
    return not few and ("abort" not in build or subtest not in UNWINDS)


def is_job(e):
    return e["runtime"] & 0xFFFFFF == 0


class Recording:
    def __init__(self, events):
        check(not [e for e in events if e["event"] == "gap"], "events were lost")
        by = collections.defaultdict(list)
        for e in events:
            by[e["event"]].append(e)
        self.polls = [e for e in by["poll"] if not is_job(e)]
        self.jobs = [e for e in by["poll"] if is_job(e)]
        self.spawns, self.ends, self.wakes = by["task_spawn"], by["task_end"], by["wake"]
        self.made = {e["task"]: e for e in self.spawns}

    def outcomes(self):
        return collections.Counter(e["outcome"] for e in self.polls)


def record(box, build, subtest, env=None):
    r = box.run([program(build), subtest], rc=0, env=env)
    return r, truth_of(r), Recording(box.events())


def between(low, got, high, what):
    check(low <= got <= high, "%s: %s, not %s to %s" % (what, got, low, high))


def counts(truth, rec, aborted):
    """Polls that were run, by outcome.  A task that is dropped without being run is none of them.  aborted: None where tasks are
    aborted while polls of theirs begin and end.  Such a poll may have come too late to be run, may have ended its task or not; and if its
    thread lost the CPU at its end, nothing is known of it."""
    there = rec.outcomes()
    run = sum(n for outcome, n in there.items() if outcome != CANCELLED)
    over = truth["ready"] + truth["panics"]
    if aborted is None:
        between(run - there[ABORTED], truth["polls"], run, "polls %s" % dict(there))
        between(there[READY], over, there[READY] + there[ABORTED] + there[UNKNOWN], "polls that ended their task %s" % dict(there))
        return
    equal(there[UNKNOWN], 0, "polls of which nothing is known")
    equal(run, truth["polls"], "polls %s" % dict(there))
    equal(there[READY], over, "polls that ended their task")
    equal(there[ABORTED], aborted, "polls during which the task was aborted")
    equal(there[PENDING] + there[WOKEN], truth["polls"] - over - aborted, "polls that came back pending")


def lives(truth, rec, aborted=0):
    jobs = [e for e in rec.spawns if e["flags"] & 2]
    equal(len(rec.spawns) - len(jobs), truth["tasks"], "tasks")
    equal(len(rec.made), len(rec.spawns), "numbers of tasks")
    equal((len(jobs), len(rec.jobs)), (truth["jobs"], truth["jobs"]), "blocking jobs")
    equal({e["outcome"] for e in rec.jobs} - {READY}, set(), "outcomes of jobs")
    equal(sorted(e["task"] for e in rec.ends), sorted(rec.made), "tasks that ended")
    ends = collections.Counter(e["outcome"] for e in rec.ends)
    between(ends[READY], truth["ready"] + truth["panics"] + truth["jobs"], ends[READY] + (ends[ABORTED] if aborted is None else 0),
            "tasks that got ready %s" % dict(ends))
    equal({e["task"] for e in rec.polls + rec.wakes} - set(rec.made), set(), "tasks that came out of nothing")


CLOCKS_NS = 5_000  # a wake's time may be read while the lock that decides it is still on its way to this CPU


def woken(rec, inlined_may_be):
    """Each poll but a task's first was asked for by a wake since the one before began.  One of a task that is polled may be inlined, or come just
    as the poll begins; then the poll says so."""
    polls, wakes = collections.defaultdict(list), collections.defaultdict(list)
    for e in rec.polls:
        polls[e["task"]].append(e)
    for e in rec.wakes:
        wakes[e["task"]].append(e["t_ns"])
    unasked = []
    for task, of_task in polls.items():
        of_task.sort(key=lambda e: e["t_ns"])
        for before, e in zip(of_task, of_task[1:]):
            if not any(before["t_ns"] - CLOCKS_NS <= t <= e["t_ns"] + CLOCKS_NS for t in wakes[task]):
                unasked.append(e)
                check(before["outcome"] == WOKEN, "polled unasked: %s after %s" % (e, before))
    check(inlined_may_be or not unasked, "%d wakes are missing: %s" % (len(unasked), unasked[:3]))


def order(rec):
    """No poll begins before its task was made, or while another is in it; only who was woken may run elsewhere before its worker, which lost
    its CPU, has come back from the poll."""
    of_task = collections.defaultdict(list)
    for e in rec.polls:
        of_task[e["task"]].append(e)
        made = rec.made[e["task"]]
        check((made["made_ns"] or 0) <= e["t_ns"] + harness.SLACK_NS, "polled before it was made: %s %s" % (made, e))
    for polls in of_task.values():
        polls.sort(key=lambda e: e["t_ns"])
        for a, b in zip(polls, polls[1:]):
            check(a["t_ns"] + a["dur_ns"] <= b["t_ns"] + CLOCKS_NS or a["outcome"] in (WOKEN, UNKNOWN), "polls overlap: %s %s" % (a, b))


def made(truth, rec):
    """Tasks know when they were made, and by whom."""
    equal([e for e in rec.spawns if not e["flags"] & 1], [], "tasks whose making was not seen")
    nested = [e for e in rec.spawns if e["parent"] and not e["flags"] & 2]
    check(len(nested) >= truth["nested"], "%d made by a task, not %d" % (len(nested), truth["nested"]))
    for e in rec.spawns:
        check(e["made_ns"] and e["made_ns"] <= e["t_ns"] and e["thread"] is not None, "made: %s" % e)


ABORTED_IN = {"abort": None, "abort_running": 5, "shutdown": None}


@harness.parametrise([b + " " + s for b in BUILDS for s in SUBTESTS if runs(b, s)])
def counts_are_the_programs_own(box, name):
    build, subtest = name.rsplit(" ", 1)
    r, truth, rec = record(box, build, subtest)
    counts(truth, rec, ABORTED_IN.get(subtest, 0))
    lives(truth, rec, ABORTED_IN.get(subtest, 0))
    woken(rec, "stripped" in build or subtest == "storm")
    order(rec)
    if version(build) >= EXACT:
        made(truth, rec)
    alone = box.run([program(build), subtest], rc=0, shim=False)
    equal(r.lines("EVIL"), alone.lines("EVIL"), "panics that came out")
    for key in ("ready", "panics", "tasks", "jobs", "dropped"):
        equal(truth[key], truth_of(alone)[key], key + " without a recorder")


@harness.parametrise(["1.23"])
def tasks_of_older_versions_are_bounded_by_their_first_poll(box, build):
    _, truth, rec = record(box, build, "yields")
    equal([e for e in rec.spawns if e["flags"] & 1 or e["made_ns"]], [], "tasks whose making was seen")
    first = {}
    for e in sorted(rec.polls, key=lambda p: p["t_ns"]):
        first.setdefault(e["task"], e["t_ns"])
    equal({e["task"]: e["t_ns"] for e in rec.spawns}, first, "first polls")


def of_future(build, name):
    """What a task's name must say: the type where debug information has it, else where its code lies."""
    crate = os.path.basename(program(build))
    where = r"%s\+0x[0-9a-f]+" % crate
    return re.fullmatch(where if "stripped" in build else r"%s::(Counted<.*>|job(::|<).*)" % crate, name)


@harness.parametrise([b for b in BUILDS if runs(b, "blocking")])
def d9_tasks_tells_what_was_recorded(box, build):
    _, truth, rec = record(box, build, "blocking")
    doc = box.document("tasks")
    Judge().document("d9.tasks/1", doc)
    equal([(m["index"], m["path"], m["state"]) for m in doc["modules"]], [(1, program(build), "patched")], "modules")
    tasks = {t["id"]: t for t in doc["tasks"]}
    equal(sorted(tasks), sorted(rec.made), "tasks")
    polls = collections.Counter(e["task"] for e in rec.polls + rec.jobs)
    wakes = collections.Counter(e["task"] for e in rec.wakes)
    equal(sum(t["kind"] == "blocking" for t in tasks.values()), truth["jobs"], "blocking jobs")
    for number, t in tasks.items():
        e = rec.made[number]
        equal((t["module"], t["polls"], t["wakes"]), (1, polls[number], wakes[number]), "task %s" % t)
        equal((t["kind"], t["spawn"]), ("blocking" if e["flags"] & 2 else "async", "exact" if e["flags"] & 1 else "bounded"), "task %s" % t)
        equal((t["spawned_ns"], t["parent"]), (e["made_ns"] or e["t_ns"], e["parent"] or None), "task %s" % t)
        equal(t["outcome"], "ready", "task %s" % t)
        check(of_future(build, t["name"]), "name of a task: %s" % t["name"])
        check(t["polls"] == 0 or e["flags"] & 1 == 0 or t["wake_delay_max_ns"] is not None, "from its making to its first poll: %s" % t)
    job = next(t for t in tasks.values() if t["kind"] == "blocking")
    life = box.document("task", job["key"])
    Judge().document("d9.task/1", life)
    equal([e["event"] for e in life["events"]], ["spawn", "poll", "end"], "life of a job")
    check("Tokio, module 1, blocking pools: %d jobs" % truth["jobs"] in box.d9("report", box.dir).out, "not told to people")


STRESS = int(os.environ.get("D9_TEST_STRESS") or 60_000)


def report_of(box):
    return box.document("report", timeout=100 + STRESS / 2000)


def polls_beside_an_abort(box):
    """They may have come too late to be run.  Counted as they come: there may be millions of others."""
    p = box.start([harness.D9, "dump", "--json", "--session", "all", box.dir], shim=False)
    late = sum('"event":"poll"' in line and '"outcome":%d' % ABORTED in line for line in p.stdout)
    equal(p.wait(harness.LIMIT), 0, "d9 dump")
    return late


@harness.parametrise(VERSIONS)
def a_poll_that_only_drops_its_task_is_none(box, build):
    _, truth, rec = record(box, build, "abort")
    check(rec.outcomes()[CANCELLED] >= 60, "tasks that were dropped: %s" % rec.outcomes())
    polls, tasks, lost = totals(report_of(box))
    between(polls - rec.outcomes()[ABORTED], truth["polls"], polls, "polls")
    equal((tasks, lost), (truth["tasks"], 0), "tasks, losses")


@harness.parametrise(VERSIONS if os.environ.get("D9_TEST_STRESS") else (VERSIONS[0], NEWEST))
def many_tasks_at_once(box, build):
    """A storm: whatever is made, woken, aborted and dropped at once is counted, and the program's own counts stay right."""
    r = box.run([program(build), "stress", str(STRESS)], rc=0, env={"D9_MEM_MB": "1024", "D9_TOTAL_MB": "65536"}, timeout=100 + STRESS / 2000)
    truth = truth_of(r)
    polls, tasks, lost = totals(report_of(box))
    late = polls_beside_an_abort(box)
    print("# %d tasks, %d polls, %d of them beside an abort, %d events lost" % (truth["tasks"], truth["polls"], late, lost))
    check(truth["tasks"] >= STRESS, "too few tasks: %s" % truth)
    between(polls - late, truth["polls"], polls + lost, "polls")
    between(tasks, truth["tasks"], tasks + lost, "tasks")


@harness.parametrise([b for b in BUILDS if "unstable" in b])
def workers_polled_as_tokio_counts_itself(box, build):
    r, truth, rec = record(box, build, "metrics")
    there = collections.Counter(e["worker"] for e in rec.polls)
    equal(sum(there.values()), truth["polls"], "polls")
    told = {int(w["index"]): int(w["polls"]) for w in r.lines("WORKER")}
    # A worker tells Tokio of its last polls when it parks next, or sees to its driver: within 61 polls.
    check(all(0 <= there[w] - n <= 61 for w, n in told.items()) and set(there) <= set(told), "polls of each worker: %s, not %s" % (dict(there), told))


@harness.parametrise(["alive", "killed"])
def a_poll_that_has_not_ended_is_told(box, how):
    p = box.start([program("1.54"), "stuck"], stdin=-1)
    equal(p.stdout.readline().split(), ["READY"], "the program")
    time.sleep(0.4)
    if how == "killed":
        p.kill()
        p.wait()
    tasks = box.document("tasks")["tasks"]
    last = max(tasks, key=lambda t: t["id"])
    equal((last["polls"], last["outcome"], last["ended_ns"], last["idle_since_ns"]), (1, "alive", None, None), "the task that is polled: %s" % last)
    if how == "alive":  # of what was killed nothing is known after its last word
        check(last["poll_max_ns"] >= 300e6 and last["key"] == tasks[0]["key"], "the longest poll: %s" % tasks[0])
    check("being polled" in box.d9("tasks", box.dir).out, "not told to people")
    check("polled for" in box.d9("task", last["key"], box.dir).out, "its life")
    if how == "alive":
        equal(box.finish_with_input(p, "go\n").rc, 0, "exit")
        tasks = box.document("tasks")["tasks"]
        equal([(t["polls"], t["outcome"]) for t in tasks if t["id"] == last["id"]], [(1, "ready")], "the task when it is over")


@harness.parametrise(BUILDS)
def d9_task_tells_who_woke_it(box, build):
    _, _, rec = record(box, build, "delay")
    waiter, waker = sorted(rec.made)
    life = box.document("task", str(waiter))
    wake = [e for e in life["events"] if e["event"] == "wake"]
    equal([(e["by"], e["source"]) for e in wake], [(waker, "task")], "its wake")
    check(max(e["queue_ns"] or 0 for e in life["events"]) >= 40e6, "from wake to poll: %s" % life["events"])
    check("woken by task %d" % waker in box.d9("task", str(waiter), box.dir).out, "not told to people")


@harness.test
def why_a_tokio_is_left_alone(box):
    record(box, "1.54", "yields", env={"D9_RUNTIMES": "scan"})
    doc = box.document("tasks")
    Judge().document("d9.tasks/1", doc)
    equal([(m["index"], m["path"], m["state"]) for m in doc["modules"]], [(None, program("1.54"), "refused")], "modules")
    check("D9_RUNTIMES=scan" in doc["modules"][0]["why"], "why: %s" % doc["modules"])


@harness.parametrise(["%s debug" % v for v in VERSIONS if os.environ.get("D9_TEST_MATRIX")])
def a_build_that_is_not_optimised_is_left_alone(box, build):
    """Its wakers are calls of calls, which say too little of themselves."""
    plain = box.run([program(build), "yields"], shim=False, rc=0)
    seen = box.run([program(build), "yields"], rc=0)
    equal(seen.out, plain.out, "what the program says")
    doc = box.document("tasks")
    equal([(m["state"], m["why"]) for m in doc["modules"]], [("refused", "tasks as it has them, but no wakers of theirs")], "modules")


@harness.parametrise(BUILDS)
def workers_have_their_index(box, build):
    _, _, rec = record(box, build, "workers")
    found = collections.defaultdict(list)
    for e in rec.polls:
        found[e["runtime"]].append(e["worker"])
    equal([sorted(found[r]) for r in sorted(found)], [[0], [0, 1], [0, 1, 2]], "workers of each runtime")
    _, _, rec = record(box, build, "many_runtimes")
    thread = {}
    for e in rec.polls:
        check(e["worker"] is not None and 0 <= e["worker"] < 3, "worker: %s" % e)
        equal(thread.setdefault((e["runtime"], e["tid"]), e["worker"]), e["worker"], "a thread's worker")
    equal(len({e["runtime"] for e in rec.polls}), 12, "runtimes")


@harness.parametrise(BUILDS)
def who_woke_and_how_long_it_took(box, build):
    _, _, rec = record(box, build, "delay")
    equal(len(rec.made), 2, "tasks")
    waiter, waker = sorted(rec.made)
    wake = [e for e in rec.wakes if e["task"] == waiter]
    equal([(e["by"], e["flags"]) for e in wake], [(waker, 0)], "the waiter's wake")
    after = [e for e in rec.polls if e["task"] == waiter and e["t_ns"] > wake[0]["t_ns"]]
    equal(len(after), 1, "polls after it")
    check(40e6 <= after[0]["t_ns"] - wake[0]["t_ns"] < 10e9, "from wake to poll: %d" % (after[0]["t_ns"] - wake[0]["t_ns"]))


# What each of the tasks of `awaits` waits in: functions that must be in its stacks, outermost first; a list for each stack.
AWAITED = (
    [["waits_for_a_timer"]],
    [["waits_for_a_message"]],
    [["waits_deep_down", "waits_for_a_message"]],
    [["waits_for_one_of_two", "waits_for_a_timer"], ["waits_for_one_of_two"]],
    [["waits_for_a_lock"]],
    [["waits_here_then_there", "waits_for_a_timer"]],
    [["waits_and_is_woken"], ["waits_and_is_woken", "waits_for_a_timer"]],
)


def tasks_that_wait(box, build, env=None):
    p = box.start([program(build), "awaits"], stdin=-1, env=env)
    equal(p.stdout.readline().split(), ["READY"], "the program")
    doc = box.document("tasks")
    Judge().document("d9.tasks/1", doc)
    tasks = sorted(doc["tasks"], key=lambda t: t["id"])
    equal(len(tasks), len(AWAITED), "tasks")
    life = box.d9("task", tasks[2]["key"], box.dir).out
    p.kill()
    p.wait()
    return tasks, life


def functions_of(stack):
    """Names that the program's own functions have, outermost first, each once."""
    found = []
    for frame in reversed(stack):
        m = re.search(r"::(waits_\w+)", frame["symbol"] or "")
        if m and found[-1:] != [m[1]]:
            found.append(m[1])
    return found


@harness.parametrise(BUILDS)
def tasks_say_what_they_await(box, build):
    tasks, life = tasks_that_wait(box, build)
    for t, want in zip(tasks, AWAITED):
        check(t["idle_since_ns"], "it is not idle: %s" % t)
        for stack in t["awaiting"]:
            check(stack and all(f["module"] == os.path.basename(program(build)) for f in stack), "a frame of another module: %s" % stack)
    if "stripped" in build:  # no names: but each waits somewhere else, and the way there is known
        places = [tuple(sorted(tuple(f["offset"] for f in stack) for stack in t["awaiting"])) for t in tasks]
        equal(len(set(places)), len(AWAITED), "different places: %s" % places)
        check(all(len(stack) >= 3 for t in tasks[:6] for stack in t["awaiting"]), "stacks: %s" % places)
        return
    whole = 0
    for t, want in zip(tasks, AWAITED):
        got, what = [functions_of(s) for s in t["awaiting"]], "what task %d awaits: %s" % (t["id"], [[f["symbol"] for f in s] for s in t["awaiting"]])
        whole += sorted(got) == sorted(want)
        equal(len(got), len(want), what)
        # A function that the compiler made one with others of the same code has lost its name; in the oldest most have, and where size counts.
        check(all(any(set(g) <= set(w) for w in want) for g in got), what)
    oldest = version(build) < EXACT
    check(whole == len(AWAITED) or oldest or "size" in build, "only %d of %d are told whole" % (whole, len(AWAITED)))
    check("  awaits\n" in life and (oldest or "waits_for_a_message" in life), "not told to people: %s" % life)


def outermost_own(stack):
    """The program's function, or its own crate's implementation of a trait, that the runtime's functions lead to."""
    own = [f["symbol"] for f in stack if re.match(r"<?tokio_truth_", f["symbol"] or "")]
    return own[-1] if own else None


@harness.test
def without_types_tasks_are_named_by_what_was_seen_in_their_polls(box):
    build = "1.54 symbols"
    tasks, life = tasks_that_wait(box, build)
    named, crate = 0, os.path.basename(program(build))
    for t in tasks:
        m = re.fullmatch(r"(?:(.+) in )?%s\+0x[0-9a-f]+" % crate, t["name"])
        check(m, "name of a task: %s" % t["name"])
        seen = {outermost_own(s) for s in t["awaiting"]} - {None}
        check(not m[1] or seen <= {m[1]}, "%s, and in its polls: %s" % (t["name"], seen))
        named += bool(m[1])
    check(named * 2 > len(tasks), "only %d are named: %s" % (named, [t["name"] for t in tasks]))
    check(tasks[2]["name"] in life, "not told to people: %s" % life)


@harness.parametrise(["1.54"])
def what_tasks_await_can_be_left_out(box, build):
    tasks, _ = tasks_that_wait(box, build, env={"D9_TASK_DUMPS": "off"})
    equal([t["awaiting"] for t in tasks], [[]] * len(AWAITED), "stacks")
    equal([e for e in box.events() if e["event"] == "task_dump"], [], "events")


@harness.parametrise([b for b in BUILDS if runs(b, "blocking")])
def tasks_say_for_whose_end_they_wait(box, build):
    p = box.start([program(build), "joins"], stdin=-1)
    equal(p.stdout.readline().split(), ["READY"], "the program")
    doc = box.document("tasks")
    Judge().document("d9.tasks/1", doc)
    tasks = {t["key"]: t for t in doc["tasks"]}
    other, one, runs_now, two, queued, three = sorted(tasks, key=lambda key: tasks[key]["id"])
    equal({key: t["awaiting_task"] for key, t in tasks.items() if t["awaiting_task"]}, {one: other, two: runs_now, three: queued}, "who waits for whom")
    equal([(tasks[key]["kind"], tasks[key]["polls"], tasks[key]["outcome"]) for key in (runs_now, queued)],
          [("blocking", 1, "alive"), ("blocking", 0, "alive")], "the job that runs and the one in the queue")
    equal(tasks[queued]["spawn"], "exact" if version(build) >= EXACT else "bounded", "the making of the job in the queue")
    check("awaits the end of task %s" % queued in box.d9("task", three, box.dir).out, "not told to people")
    equal([f["title"] for f in report_of(box)["findings"] if f["id"] == "pool-deadlock"], [], "a pool that goes on")
    r = box.finish_with_input(p, "go\n")
    equal(r.rc, 0, "exit: %s" % r.err)
    asked = collections.Counter((e["by"], e["task"]) for e in box.events() if e["event"] == "task_join" and e["by"])
    equal(asked, {(tasks[a]["id"], tasks[b]["id"]): 1 for a, b in ((one, other), (two, runs_now), (three, queued))}, "times that each asked")
    tasks = {t["key"]: t for t in box.document("tasks")["tasks"]}
    equal((tasks[queued]["polls"], tasks[queued]["outcome"], tasks[three]["awaiting_task"]), (1, "ready", None), "when all is over")


@harness.parametrise(["1.54"])
def recording_can_be_turned_on_and_off(box, build):
    p = box.start([program(build), "turned"], env={"D9_ENABLED": "standby"}, stdin=-1)
    said = lambda: p.stdout.readline().split()  # noqa: E731
    equal(said(), ["READY"], "the program")
    for how in ("on", "off"):
        go(p)
        equal(said(), ["ROUND"], "the program")
        box.d9("ctl", str(p.pid), how)
    go(p)
    equal(said(), ["ROUND"], "the program")
    r = box.finish_with_input(p, "")
    equal(r.rc, 0, "exit")
    rec = Recording(box.events())
    equal(len(rec.polls), 30 * 11, "polls of the round that was recorded")
    equal({e["worker"] for e in rec.polls} - {0, 1}, set(), "workers, whose threads had begun before")


@harness.parametrise(VERSIONS)
def a_limit_that_a_task_sets_is_the_programs(box, build):
    for shim in (False, True):
        r = box.run([program(build), "limited"], shim=shim, rc=0)
        check("LIMITED %d" % (5 << 20) in r.out, "what the program got: %s" % r.out)
    equal(box.arenas_left(), [], "left behind")


@harness.parametrise([b for b in VERSIONS if version(b) >= EXACT])
def a_task_in_the_memory_of_another_is_not_taken_for_it(box, build):
    p = box.start([program(build), "remade"], stdin=-1)
    for how in ("off", "on"):
        equal(p.stdout.readline().split(), ["READY"], "the program")
        box.d9("ctl", str(p.pid), how)
        go(p)
    equal(box.finish_with_input(p, "").rc, 0, "exit")
    rec = Recording(box.events())
    equal(len(rec.polls), 500, "polls of the second round")
    equal([e for e in rec.spawns if e["flags"] & 1], [], "tasks made while recording was off, of which it is said when")


def go(p):
    """The line that the program waits for."""
    p.stdin.write("go\n")
    p.stdin.flush()


def notes(box, key):
    return [e["text"].split("=", 1)[1] for e in box.meta() if e["event"] == "info" and e["text"].startswith(key + "=")]


@harness.parametrise(BUILDS)
def what_was_found_is_said_once(box, build):
    record(box, build, "yields")
    said = notes(box, "note")
    equal(len(said), 1, "notes %s" % said)
    check(re.fullmatch(re.escape(program(build)) + r": Tokio, \d+ kinds of tasks, recorded as module 1, in process \d+", said[0]), said[0])
    equal(notes(box, "warning"), [], "warnings")


@harness.test
def whatever_comes_out_of_a_poll(box):
    """Exceptions, the end of a thread, longjmp, fork, polls deeper than are kept: of a program that only looks like Tokio."""
    r = box.run([os.path.join(harness.PROGS, "tokio_fake")], rc=0)
    equal(r.out.splitlines()[-1:], ["DONE"], "the program")
    events = box.events()
    for kind, event, fields in (("POLL", "poll", ("task", "outcome")), ("WAKE", "wake", ("task",)), ("END", "task_end", ("task", "outcome"))):
        want = [tuple(int(line[f]) for f in fields) for line in r.lines(kind)]
        want += [(int(line["task"]), READY) for line in r.lines("POLL") if kind == "END" and line["outcome"] == str(READY)]
        got = [tuple(e[f] for f in fields) for e in events if e["event"] == event]
        equal(sorted(got), sorted(want), event)
    equal(sum(e["events"] for e in events if e["event"] == "gap"), 6, "polls that were too deep")
    box.run([os.path.join(harness.PROGS, "tokio_fake")], rc=0, shim=False)


@harness.parametrise(["job", "worker"])
def what_may_be_a_workers_life_is_a_job_that_has_a_name(box, what):
    """As long as it runs; and no task if it turns out to be a worker's."""
    p = box.start([os.path.join(harness.PROGS, "tokio_fake"), what], stdin=-1)
    equal(p.stdout.readline().split(), ["READY"], "the program")
    tasks = box.document("tasks")["tasks"]
    equal(box.finish_with_input(p, "\n").rc, 0, "exit")
    is_job = what == "job"
    equal([(t["kind"], t["outcome"]) for t in tasks], [("blocking", "alive") if is_job else ("async", "ready")], "tasks while it runs")
    check(re.fullmatch(r"tokio_fake\+0x[0-9a-f]+", tasks[0]["name"] or ""), "its name: %s" % tasks[0]["name"])
    tasks = box.document("tasks")["tasks"]
    equal([(t["kind"], t["outcome"], t["polls"]) for t in tasks], [("blocking" if is_job else "async", "ready", 1)], "tasks when all is over")
    equal([r["tasks"] for p in report_of(box)["processes"] for r in p["runtimes"]], [1], "tasks in the report")


OFF = {"off": {"D9_RUNTIMES": "off"}, "not this program": {"D9_RUNTIMES_EXE": "other,another"},
       "all but this program": {"D9_RUNTIMES_EXE": "-tokio_truth_1_54"}, "scan": {"D9_RUNTIMES": "scan"},
       "family off": {"D9_HOOKS": "-abi"}}


@harness.parametrise(OFF)
def it_can_be_left_alone(box, how):
    _, truth, rec = record(box, "1.54", "yields", env=OFF[how])
    check(truth["polls"], "the program did nothing")
    equal((rec.polls, rec.spawns, rec.wakes), ([], [], []), "tasks")
    said = notes(box, "warning")
    equal(["could be recorded, but D9_RUNTIMES=scan" in s for s in said], [True] if how == "scan" else [], "said: %s" % said)


@harness.parametrise(["other,tokio_truth_1_54", "-other,-another", "all"])
def it_can_be_chosen_by_name(box, names):
    _, truth, rec = record(box, "1.54", "self_wake", env={"D9_RUNTIMES_EXE": names})
    equal(len(rec.polls), truth["polls"], "polls")


@harness.test
def status_shows_what_was_found(box):
    p = box.start([program("1.54"), "turned"], stdin=-1)
    equal(p.stdout.readline().split(), ["READY"], "the program")
    processes = box.document("status")["processes"]
    check("recorded as module 1" in processes[0]["notes"][0], "notes: %s" % processes)
    check("note: %s: Tokio" % program("1.54") in box.d9("status", box.dir).out, "not told to people")
    box.finish_with_input(p, "")


harness.main()
