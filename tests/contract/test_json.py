#!/usr/bin/env python3
"""What commands print for scripts is what docs/CONTRACT.md promises: keys and types of each JSON document, metrics, orders,
exit codes.  On recordings of a lock convoy and of two threads that wait for each other, and on a program that still runs."""
import json
import os
import re
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness  # noqa: E402
from contract import Judge  # noqa: E402
from harness import check, equal, wait_until  # noqa: E402

SOURCES = os.path.join(os.path.dirname(HERE), "scenarios", "src")
PYTHON = os.path.realpath(sys.executable)
METRICS = ("d9_up d9_configured d9_supported d9_active d9_errors_total d9_disk_usage_bytes d9_events_total d9_dropped_events_total "
           "d9_written_bytes_total d9_heartbeat_age_seconds").split()


def convoy(box):
    exe = os.path.join(box.path, "convoy")
    subprocess.run(["cc", "-O2", "-g", "-w", "-pthread", "-o", exe, os.path.join(SOURCES, "s11_lock_convoy.c")], check=True, timeout=60)
    return [exe]


def circle(_box):
    return [PYTHON, os.path.join(SOURCES, "s25_lock_order.py")]


SCENES = {"convoy": convoy, "circle": circle}


def document(box, *argv):
    docs = harness.mutate([box.document(*argv)])
    check(docs, "nothing was recorded")
    return docs[0]


def record(box, name):
    box.run(SCENES[name](box), rc=0)
    check(box.events(), "nothing was recorded")


@harness.parametrise(SCENES)
def report(box, name):
    record(box, name)
    doc = document(box, "report")
    if harness.MUTANT == "mute":
        doc["findings"] = []
    Judge().document("d9.report/1", doc)
    check(doc["from_ns"] < doc["to_ns"], "a report of no time")
    equal([f["id"] for f in doc["findings"]][:1], ["lock-contention" if name == "convoy" else "deadlock-cycle"], "first finding")
    told = {f["id"]: f["measured"] for f in json.loads(box.d9("schema", "--findings").out)["findings"]}
    for f in doc["findings"]:
        equal(sorted(f["measured"]), sorted(told[f["id"]]), "what %s measured" % f["id"])
    for t in doc["processes"][0]["threads"]:
        parts = sum(t[k] or 0 for k in ("busy_ns", "parked_ns", "blocked_ns", "runnable_ns", "unexplained_ns"))
        check(abs(parts - t["wall_ns"]) <= 1000, "times of a thread do not add up: %s" % t)


def spoil(doc, how):
    thread = doc["processes"][0]["threads"][0]
    if how == "a key is missing":
        del thread["busy_ns"]
    elif how == "a key nobody told of":
        thread["busy"] = 1
    elif how == "a time that is text":
        thread["wall_ns"] = "1 s"
    elif how == "another role":
        thread["role"] = "helper"
    elif how == "an address that is a number":
        doc["findings"][0]["cause"]["object"] = 4711
    else:
        doc["worst_spans"][0]["kind"] = None


@harness.parametrise(["a key is missing", "a key nobody told of", "a time that is text", "another role", "an address that is a number",
                      "null where something is known"])
def this_test_sees(box, how):
    record(box, "convoy")
    doc = document(box, "report")
    spoil(doc, how)
    try:
        Judge().document("d9.report/1", doc)
    except harness.Failure:
        return
    raise harness.Failure("nothing was seen")


@harness.parametrise(SCENES)
def hist_spans_and_locks(box, name):
    record(box, name)
    kind = "mutex" if name == "convoy" else "sem"
    hist = document(box, "hist", kind)
    Judge().document("d9.hist/1", hist)
    equal(sum(b["count"] for b in hist["buckets"]), hist["count"], "calls in buckets")
    equal(sum(t["count"] for t in hist["threads"]), hist["count"], "calls of threads")
    check(all(b["hi"] == 2 * b["lo"] for b in hist["buckets"]), "buckets are no powers of two: %s" % hist["buckets"])
    spans = document(box, "spans")
    Judge().document("d9.spans/1", spans)
    lengths = [s["dur_ns"] for s in spans["spans"]]
    check(lengths and max(lengths) > 0, "no spans")
    equal(lengths, sorted(lengths, reverse=True), "longest first")
    locks = document(box, "locks")
    Judge().document("d9.locks/1", locks)
    equal({k["name"] for k in locks["locks"][:1]}, {"convoy:hot" if name == "convoy" else None}, "name of the lock")
    check(name != "convoy" or "(convoy:hot)" in box.d9("locks", box.dir).out, "the lock's name is not told to people")
    check(locks["locks"] and (locks["locks"][0]["waits"] > 100 if name == "convoy" else locks["locks"][0]["pending"]),
          "the lock that was waited for: %s" % locks)


@harness.test
def longer_and_kind_choose(box):
    record(box, "convoy")
    spans = document(box, "spans", "--longer", "500us", "--kind", "mutex")["spans"]
    check(spans and all(s["dur_ns"] > 500_000 and s["kind"] == "mutex" for s in spans), "chosen: %s" % spans[:3])
    every = [s for s in document(box, "spans")["spans"] if s["kind"] == "mutex" and s["dur_ns"] > 500_000]
    equal(len(spans), len(every), "spans chosen")


@harness.parametrise(["runq", "offcpu", "queue"])
def an_empty_kind_says_why(box, kind):
    record(box, "convoy")
    for command in (["hist", kind], ["hist", kind, "--json"], ["spans", "--kind", kind, "--json"]):
        r = box.d9(*command, box.dir)
        check(r.err.startswith("d9: no %s here: " % kind) and r.err.count("\n") == 1, "%s says %r" % (command, r.err))
    Judge().document("d9.hist/1", document(box, "hist", kind))
    unseen = {u["what"] for u in document(box, "report")["unseen"]}
    check("kernel" in unseen, "the report does not say that the kernel's side is missing: %s" % unseen)


@harness.test
def fail_if(box):
    record(box, "convoy")
    found = box.findings()
    critical = sum(f["severity"] == "critical" for f in found)
    for expr, rc in (("critical>=%d" % critical, 1), ("critical>%d" % critical, 0), ("findings>%d" % len(found), 0),
                     ("lock-contention>=1", 1), ("deadlock-cycle>0", 0), ("wait.p99>100us", 1), ("wait.max>10s", 0),
                     ("wait.max>10s,critical>0", 1), ("dropped>0", 0)):
        box.d9("report", "--fail-if", expr, box.dir, rc=rc)
    for expr in ("bogus>1", "wait.p99>1", "critical", "critical>1ms", "wait.p98>1ms", ""):
        box.d9("report", "--fail-if", expr, box.dir, rc=2)
    for subject in ("runq.p99", "offcpu"):
        r = box.d9("report", "--fail-if", "critical>1000,%s>1ms" % subject, box.dir, rc=3)
        check("`%s` was not measured: no kernel side in this recording" % subject.split(".")[0] in r.err and not r.out, r.err)
    with open(os.path.join(harness.ROOT, "docs", "CONTRACT.md")) as f:
        rows = [line.split("|")[1] for line in f.read().split("## Findings")[1].splitlines() if line.startswith("| `")]
    with open(os.path.join(harness.ROOT, "cli", "findings.def")) as f:
        found = set(re.findall(r'^D9_FINDING\("([a-z-]+)"', f.read(), re.M))
    ids = re.findall("`([a-z-]+)`", " ".join(rows))
    check(len(ids) > len(found) and found <= set(ids), "ids of the contract: %s" % ids)
    for i in ids:
        r = box.d9("report", "--fail-if", i + ">1000000", box.dir, rc=0 if i in found else 2)
        check(i in found or "`%s` is not built in this version" % i in r.err, "%s: %s" % (i, r.err))


@harness.test
def an_empty_window(box):
    record(box, "convoy")
    for args in (("--from", "5s", "--to", "1s"), ("--from", "-1ms", "--to", "0s"), ("--from", "2030-01-01T00:00:00Z", "--to", "1ms")):
        for command in ("report", "dump"):
            r = box.d9(command, *args, box.dir, rc=2)
            check("empty window" in r.err and not r.out, r.err)
    box.d9("report", "--from", "1ms", "--to", "1ms", box.dir)


@harness.test
def a_log_that_is_no_absolute_path(box):
    r = box.run([harness.D9, "run", "--dir", box.dir, "--", "/bin/true"], shim=False, env={"D9_LOG": "rel"})
    check(r.rc == 2 and "D9_LOG=rel: neither an absolute path nor `stderr`" in r.err, "d9 run: %d %s" % (r.rc, r.err))
    shutil.rmtree(box.dir, ignore_errors=True)
    p = box.start(["sleep", "60"], env={"D9_LOG": "rel"})
    wait_until(lambda: box.folders(), "a folder")
    told = []

    def is_told():
        told[:] = [w for p in box.document("status")["processes"] for w in p["warnings"]]
        return told
    wait_until(is_told, "a warning in d9 status")
    box.end(p)
    check(len(told) == 1 and told[0].startswith("D9_LOG=rel: "), "d9 status: %s" % told)
    for value in ("none", "stderr", os.path.join(box.path, "log")):
        box.run([harness.D9, "run", "--dir", box.dir, "--", "/bin/true"], shim=False, env={"D9_LOG": value}, rc=0)


@harness.test
def no_control_character_reaches_a_terminal(box):
    name = "x\x1b[31m\ny"
    folder, program = os.path.join(box.path, "d" + name), os.path.join(box.path, name)
    shutil.copy("/bin/sleep", program)
    with open(program + ".sh", "w") as f:
        f.write("#!%s\n" % "/bin/sh")
    os.chmod(program + ".sh", 0o755)
    outs = [box.run([harness.D9, "run", "--dir", folder, "--", program, "0.01"], shim=False, rc=0),
            box.run([harness.D9, "run", "--dir", folder, "--", program, "0"], shim=False, env={"D9_ENABLED": "0"}),
            box.run([harness.D9, "run", "--dir", folder, "--", program, "0.01"], shim=False, env={"D9_TOTAL_MB": name}, rc=2),
            box.d9("check", program), box.d9("check", program + ".sh"), box.run([harness.D9, "check", folder], shim=False)]
    outs += [box.run([harness.D9, *command, folder], shim=False)
             for command in (["report"], ["dump"], ["status"], ["hist", "sleep"], ["spans"], ["locks"], ["tasks"], ["recover"], ["bogus"])]
    outs += [box.run([harness.D9, "doctor"], shim=False, env={"D9_DIR": folder})]
    for r in outs:
        check("\x1b" not in r.out + r.err, "an escape in %r %r" % (r.out, r.err))


@harness.test
def exit_codes(box):
    record(box, "convoy")
    none = os.path.join(box.path, "none")
    mine = str(os.getpid())
    for rc, argv in ((0, ["report", box.dir]), (0, ["spans", "--longer", "60m", box.dir]), (0, ["dump", box.dir]),
                     (2, []), (2, ["report", "--bogus", box.dir]), (2, ["hist", box.dir]), (2, ["hist", "bogus", box.dir]),
                     (2, ["spans", "--longer", "1xx", box.dir]), (2, ["ctl", mine]), (2, ["ctl", mine, "dance"]), (2, ["nonsense"]),
                     (3, ["report", none]), (3, ["dump", none]), (3, ["locks", none]), (3, ["status", none]), (3, ["ctl", mine, "on"])):
        r = box.d9(*argv, rc=rc)
        check(bool(r.err) == (rc != 0) and (rc == 0 or not r.out), "%s: stdout %r, stderr %r" % (argv, r.out[:200], r.err[:200]))


# ---- a program that runs -----------------------------------------------------------------------------------------


def status(box):
    doc = document(box, "status")
    Judge().document("d9.status/1", doc)
    equal(len(doc["processes"]), 1, "families")
    return doc["processes"][0]


def running(box):
    p = box.start([PYTHON, "-c", "import time\nfor i in range(6000): time.sleep(0.01)"])
    wait_until(lambda: box.folders(), "no folder")
    wait_until(lambda: status(box)["alive"], "never alive")
    return p


@harness.test
def status_and_ctl(box):
    p = running(box)
    equal((status(box)["pid"], status(box)["state"], status(box)["active"]), (p.pid, "on", True), "at first")
    wait_until(lambda: status(box)["heartbeat_age_ns"], "no heartbeat")
    box.d9("ctl", str(p.pid), "off")
    wait_until(lambda: status(box)["state"] == "off", "off is not seen")
    equal((status(box)["configured"], status(box)["supported"], status(box)["active"]), (True, True, False), "when off")
    box.d9("ctl", str(p.pid), "on")
    wait_until(lambda: status(box)["state"] == "on", "on is not seen")
    box.d9("ctl", str(p.pid), "flush")
    wait_until(lambda: status(box)["events"], "flush writes nothing")
    time.sleep(0.3)  # long enough for calls that are to be recorded
    box.end(p)
    masks = [e["mask"] for e in box.events() if e["event"] == "control"]
    check(0 in masks and masks[-1] != 0, "off and on again is not in the recording: %s" % masks)
    equal((status(box)["alive"], status(box)["state"], status(box)["active"]), (False, "dead", False), "after its end")


@harness.test
def status_of_what_cannot_be_read(box):
    p = running(box)
    with open(os.readlink(os.path.join(box.folders()[0], "arena")), "r+b") as f:
        magic = f.read(8)
        f.seek(0)
        f.write(b"another ")
        f.flush()
        s = status(box)
        equal((s["state"], s["supported"], s["active"], s["pid"], s["events"]), ("failed", False, False, None, None), "of another version")
        check("another version" in s["warnings"][0], "warnings %s" % s["warnings"])
        check("another version" in box.d9("status", str(p.pid), rc=3).err, "not told of the process")
        f.seek(0)
        f.write(magic)
    equal((status(box)["state"], status(box)["supported"]), ("on", True), "as it was")


@harness.test
def metrics(box):
    p = running(box)
    wait_until(lambda: status(box)["events"] and status(box)["heartbeat_age_ns"], "nothing is written")
    out = box.d9("status", "--metrics", box.dir).out
    check(out.endswith("# EOF\n"), "it does not end as OpenMetrics does")
    samples = {}
    for line in out.splitlines():
        m = re.fullmatch(r'(\w+)(\{process="[^"]+",pid="%d"\})? (\d+(?:\.\d+)?)' % p.pid, line)
        check(m or re.match(r"# (TYPE|HELP) d9_\w+ \S|# EOF$", line), "no line of OpenMetrics: %s" % line)
        if m:
            samples[m.group(1)] = float(m.group(3))
    equal(sorted(samples), sorted(METRICS), "metrics")
    for name in METRICS:
        check("# TYPE %s " % re.sub("_total$", "", name) in out, "%s has no type" % name)
    equal([samples[k] for k in ("d9_up", "d9_configured", "d9_supported", "d9_active", "d9_errors_total")], [1, 1, 1, 1, 0], "values")
    check(samples["d9_events_total"] > 0 and samples["d9_written_bytes_total"] > 0, "nothing was written: %s" % samples)


harness.main()
