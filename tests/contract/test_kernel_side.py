#!/usr/bin/env python3
"""What commands make of a recording that has a kernel's side: documents as docs/CONTRACT.md has them, lines of one form, and a clear
sentence where there is none.  On a recording made for it (tests/unit/kernel_scene.c): no d9-kernel is needed."""
import json
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.dirname(HERE))
import harness  # noqa: E402
from contract import Judge  # noqa: E402
from harness import check, equal  # noqa: E402

SCENE = harness.path_of("D9_SCENE", "tests", "unit", "kernel_scene")
NO_SIDE = "no kernel side in this recording: "


def scene(box):
    made = subprocess.run([SCENE], capture_output=True, text=True, timeout=60, check=True).stdout.strip()
    shutil.move(made, box.dir)
    check(any(name.startswith("k-") for _, _, names in os.walk(box.dir) for name in names), "no k-segment")
    return box.dir


def without(box):
    shutil.rmtree(box.dir, ignore_errors=True)
    scene(box)
    for folder, _, names in os.walk(box.dir):
        for name in names:
            if name.startswith("k-"):
                os.unlink(os.path.join(folder, name))
    return box.dir


def document(box, name, *argv):
    docs = harness.mutate([box.document(*argv)])
    check(docs, "nothing was read")
    if harness.MUTANT == "mute":
        docs[0].get("findings", []).clear()
    Judge().document("d9.%s/1" % name, docs[0])
    return docs[0]


@harness.test
def runq(box):
    scene(box)
    doc = document(box, "runq", "runq")
    threads = {t["tid"]: t for t in doc["threads"]}
    equal(sorted(threads), [100, 155], "threads")
    equal((threads[100]["count"], threads[100]["total_ns"], threads[100]["max_ns"]), (901, 19_000_000, 18_000_000), "all waits of 100")
    worst = doc["worst"][0]
    equal((worst["tid"], worst["dur_ns"], worst["how"]), (100, 18_000_000, "woken"), "the longest")
    equal(worst["woken_by"], {"tid": 4133, "name": "pool;1 ?[31m"}, "who woke it")
    equal(worst["had_cpu"]["pid"], 70, "who had its CPU")
    equal(doc["had_cpu"][0]["total_ns"], 18_000_000, "who had the CPUs")
    equal(doc["worst"][1]["had_cpu"], None, "a CPU that was idle")
    equal(len(document(box, "runq", "runq", "--worst", "1")["worst"]), 1, "as many as were asked for")
    text = box.d9("runq", box.dir).out
    check("cc1 ?[31m" in text and "\x1b" not in text, text)
    box.d9("runq", "--worst", "x", box.dir, rc=2)


@harness.test
def offcpu(box):
    scene(box)
    doc = document(box, "offcpu", "offcpu")
    first = doc["causes"][0]
    equal((first["syscall"], first["function"], first["blocked_ns"], first["runnable_ns"]), ("fsync", "blkdev_issue_flush", 252_000_000, 1_000_000),
          "the first cause")
    equal([f["symbol"] for f in first["stack"]], ["io_schedule", "blkdev_issue_flush", "ext4_sync_file"], "its stack")
    equal([[f["offset"] for f in c["user_stack"]] for c in doc["causes"][:2]], [["0x4711"], []], "where the program was")
    equal({c["syscall"] for c in doc["causes"]}, {"fsync", "dup", None, "syscall 99999"}, "calls")
    for t in doc["threads"]:
        equal(sum(c["total_ns"] for c in t["causes"]), t["total_ns"], "causes of %d" % t["tid"])
    equal(sum(t["total_ns"] for t in doc["threads"]), sum(c["total_ns"] for c in doc["causes"]), "threads and causes")
    text = box.d9("offcpu", box.dir).out
    check("fsync < blkdev_issue_flush" in text and "in ?+0x4711" in text, "the text does not name the cause, or where the program was: %s" % text)
    box.d9("offcpu", "--folded", "--json", box.dir, rc=2)


@harness.test
def folded(box):
    scene(box)
    lines = box.d9("offcpu", "--folded", box.dir).out.splitlines()
    for line in lines:
        check(re.fullmatch(r"[^;]+(;[^;]+)+ [1-9]\d*", line) and line.isprintable(), "no folded line: %r" % line)
    equal(lines, sorted(lines), "lines in order")
    values = {line.rsplit(" ", 1)[0]: int(line.rsplit(" ", 1)[1]) for line in lines}
    equal(values["pool:1 ?[31m;?+0x4711;fsync;ext4_sync_file;blkdev_issue_flush;io_schedule"], 252_000, "the longest, with where the program was")
    equal(values["pool:1 ?[31m;?+0x4711;fsync;ext4_sync_file;blkdev_issue_flush;io_schedule;[no CPU]"], 1000, "without a CPU")
    equal(values["unseen by hooks;dup;alloc_fd;expand_files;synchronize_rcu_normal"], 8000, "one without a stack of the program's")
    total = sum(c["total_ns"] for c in document(box, "offcpu", "offcpu")["causes"])
    equal(sum(values.values()), total // 1000, "all of it")


@harness.test
def disk(box):
    scene(box)
    doc = document(box, "disk", "disk")
    equal([(d["device"], d["op"], d["count"], d["bytes"], d["errors"], d["total_ns"], d["max_ns"]) for d in doc["devices"]],
          [("8:16", "flush", 1, 0, 0, 240_000_000, 240_000_000), ("8:16", "write", 2, 12288, 1, 12_000_000, 9_000_000)], "by device and operation")
    equal([sum(b["count"] for b in d["buckets"]) for d in doc["devices"]], [1, 2], "requests in the histograms")
    equal([(t["tid"], t["count"], t["bytes"]) for t in doc["threads"]], [(133, 2, 4096), (155, 1, 8192)], "by who made them")
    equal([(w["tid"], w["op"], w["dur_ns"], w["sector"], w["error"]) for w in doc["worst"]],
          [(133, "flush", 240_000_000, 2048, 0), (133, "write", 9_000_000, 2048, 0), (155, "write", 3_000_000, 2048, -5)], "the longest first")
    equal(len(document(box, "disk", "disk", "--worst", "1")["worst"]), 1, "as many as were asked for")
    equal([t["tid"] for t in document(box, "disk", "disk", "--thread", "155")["threads"]], [155], "of one thread")
    text = box.d9("disk", box.dir).out
    check("flush 8:16" in text and "8192 bytes: error -5" in text and "1 failed" in text and "\x1b" not in text, text)
    box.d9("disk", "--worst", "x", box.dir, rc=2)


@harness.test
def syscalls(box):
    scene(box)
    doc = document(box, "syscalls", "syscalls")
    equal([(c["syscall"], c["nr"], c["count"], c["errors"], c["total_ns"]) for c in doc["calls"]],
          [("fsync", 74, 1, 0, 253_000_000), ("dup", 32, 1, 1, 8_000_000), ("syscall 99999", 99999, 1, 1, 4_000_000)], "by call")
    equal([(w["tid"], w["syscall"], w["args"], w["result"]) for w in doc["worst"]],
          [(133, "fsync", ["0x9", "0xffffffffffffffff", "0x0"], 0), (155, "dup", ["0x3", "0xffffffffffffffff", "0x0"], -24),
           (155, "syscall 99999", ["0x0", "0xffffffffffffffff", "0x0"], -9)], "the longest first")
    equal(document(box, "syscalls", "syscalls", "--worst", "1", "--thread", "155")["worst"][0]["dur_ns"], 8_000_000, "the longest of one thread")
    text = box.d9("syscalls", box.dir).out
    check("fsync(0x9, 0xffffffffffffffff, 0x0) = 0" in text and "\x1b" not in text, text)
    box.d9("syscalls", "--worst", "-1", box.dir, rc=2)


@harness.test
def the_others(box):
    scene(box)
    report = document(box, "report", "report")
    check({"runq", "offcpu"} <= set(report["hists"]), "hists: %s" % sorted(report["hists"]))
    equal(sorted(f["id"] for f in report["findings"]), ["disk-stall", "fd-table-growth", "kernel-delay"], "findings")
    delay = next(f for f in report["findings"] if f["id"] == "kernel-delay")
    check("was woken and ran 18 ms later; cc1" in delay["title"], delay["title"])
    check("kernel" not in {u["what"] for u in report["unseen"]}, "the kernel's side is there")
    equal(report["losses"]["dropped_events"], 17, "losses")
    for t in report["processes"][0]["threads"]:
        parts = sum(t[k] or 0 for k in ("busy_ns", "parked_ns", "blocked_ns", "runnable_ns", "unexplained_ns"))
        check(parts <= t["wall_ns"], "times of a thread are more than passed: %s" % t)
    equal(sum(1 for p in report["processes"] for t in p["threads"] if t["tid"] == 100), 1, "threads 100")
    for kind, count in (("runq", 902), ("offcpu", 4)):
        equal(document(box, "hist", "hist", kind)["count"], count, "hist " + kind)
    spans = document(box, "spans", "spans", "--kind", "offcpu")["spans"]
    equal((spans[0]["hook"], spans[0]["runnable_ns"], spans[0]["fd"]), ("fsync", 1_000_000, 9), "the longest wait")
    check("offcpu in fsync" in box.d9("spans", "--kind", "offcpu", box.dir).out, "no line of it")
    longest = document(box, "spans", "spans", "--kind", "runq")["spans"][0]
    equal((longest["runnable_ns"], longest["had_cpu"]), (18_000_000, [{"name": "cc1 ?[31m", "total_ns": 18_000_000}]), "the longest wait for a CPU")
    wait = next(s for s in document(box, "spans", "spans", "--kind", "epoll")["spans"] if s["runnable_ns"])
    check(0 < sum(h["total_ns"] for h in wait["had_cpu"]) <= wait["runnable_ns"], "who had the CPU in a wait of which that was a part: %s" % wait)
    check("[without a CPU " in box.d9("spans", "--kind", "epoll", box.dir).out, "the text does not split it")
    box.d9("report", "--fail-if", "runq.max>17ms", box.dir, rc=1)
    box.d9("report", "--fail-if", "offcpu>10s,runq>20ms", box.dir)
    out = box.d9("report", box.dir).out
    check("17 events of the kernel's side were lost" in out and "D9_MEM_MB" not in out, "the text does not tell of losses")
    events = [json.loads(line) for line in box.d9("dump", "--json", box.dir).out.splitlines()]
    equal(sum(e["event"] == "runq" for e in events), 2, "runq events in the dump")
    equal({e["tid"] for e in events if e["event"] == "runq"}, {100, 155}, "threads of the dump's events")


@harness.test
def without_a_kernel_side(box):
    without(box)
    for command in (["runq"], ["runq", "--json"], ["offcpu"], ["offcpu", "--folded"], ["disk"], ["syscalls", "--json"]):
        r = box.d9(*command, box.dir, rc=3)
        check(r.err.startswith("d9: %s: %s" % (command[0], NO_SIDE)) and r.err.count("\n") == 1 and not r.out, "%s: %r" % (command, r.err))
        check("d9-kernel" in r.err, "it is not said what to do: %r" % r.err)
    r = box.d9("hist", "runq", box.dir)
    check(NO_SIDE in r.err, r.err)
    box.d9("report", "--fail-if", "kernel-delay>0", box.dir)


@harness.test
def kernel_files_alone(box):
    scene(box)
    for folder, _, names in os.walk(box.dir):
        for name in names:
            if name.startswith("s-"):
                os.unlink(os.path.join(folder, name))
            else:
                path = os.path.join(folder, name)
    for operand in (box.dir, os.path.dirname(path), path):
        report = json.loads(box.d9("report", "--json", operand).out)
        equal([p["pid"] for p in report["processes"]], [100], "processes")
        equal([u["what"] for u in report["unseen"]].count("hooks"), 1, "that nothing was hooked: %s" % report["unseen"])
        equal(json.loads(box.d9("runq", "--json", operand).out)["worst"][0]["dur_ns"], 18_000_000, "the longest")


@harness.test
def a_file_that_is_none_is_left_out_once(box):
    scene(box)
    folder = next(folder for folder, _, names in os.walk(box.dir) if any(n.startswith("k-") for n in names))
    with open(os.path.join(folder, "k-000009.d9"), "w", encoding="ascii") as f:
        f.write("junk")
    r = box.d9("runq", "--json", box.dir)
    equal(json.loads(r.out)["worst"][0]["dur_ns"], 18_000_000, "the longest")
    equal(r.err.count("k-000009.d9 is left out"), 1, "how often it is told: %s" % r.err)


harness.main()
