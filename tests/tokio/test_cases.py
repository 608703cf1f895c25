#!/usr/bin/env python3
"""The two cases that founded this field, as unmodified Tokio programs: a lock held across a read from a slow disk, and a crowd of connections
before too few workers."""
import os
import re
import resource
import selectors
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(sys.path[0], "kernel"))
import harness  # noqa: E402
from harness import Skip, check, equal, equal_least, said  # noqa: E402
from kernel import need_kernel  # noqa: E402
from tasks import totals, truth_of  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MS = 1_000_000


def program(name):
    return harness.cargo(os.path.join(HERE, "cases"), name)


# ---- a lock held across a read ---------------------------------------------------------------------------------

DISK_MS = 120  # more than a look-up of 0.3 ms can wait for two others, even where workers share a CPU, or a call for want of one
SHORT_NS, LONG_NS = 8 * MS, 32 * MS  # buckets end there: below the one hump, above the other


class SlowDisk:
    """Answers each question 120 ms late, those of a moment side by side: a FIFO is a file whose read blocks, and needs no root."""

    def __init__(self, box):
        self.ask, self.data = (os.path.join(box.path, name) for name in ("ask", "data"))
        for path in (self.ask, self.data):
            if not os.path.exists(path):
                os.mkfifo(path)
        self.thread = threading.Thread(target=self.answer, daemon=True)
        self.thread.start()

    def answer(self):
        with open(self.ask, "rb", buffering=0) as ask, open(self.data, "wb", buffering=0) as data:
            late = []
            while ask.read(1):
                late.append(threading.Timer(DISK_MS / 1000, data.write, [b"x" * 512]))
                late[-1].start()
            for timer in late:
                timer.join()


def waits_by_length(hist):
    """How many are short, between and long."""
    found = [0, 0, 0]
    for b in hist["buckets"]:
        found[0 if b["hi"] <= SHORT_NS * 1.1 else 2 if b["lo"] >= LONG_NS else 1] += b["count"]
    return found


def run_case(box, how, **options):
    disk = SlowDisk(box)
    r = box.run([program("lock_in_read"), how, disk.ask, disk.data], rc=0, **options)
    disk.thread.join(harness.LIMIT)
    return truth_of(r)


def recorded_case(box, how):
    """Its counts and its report; in a folder of its own."""
    alone = run_case(box, how, shim=False)
    box.dir = os.path.join(box.path, "traces-" + how)
    truth = run_case(box, how)
    equal(truth, alone, "what the program did")
    return truth, complete(box, truth)


def complete(box, truth):
    report = box.document("report")
    equal(totals(report), (truth["polls"], truth["tasks"], 0), "polls, tasks, losses")
    return report


@harness.test
def a_lock_held_in_a_read_gives_two_humps_and_one_without(box):
    """How long is long for the program's own reasons only the two together tell: others may have the CPUs."""
    truth, report = recorded_case(box, "held")
    reads = [e for e in box.events() if e["event"] == "span" and e["hook"] == "read" and e["result"] == 512]
    equal(len(reads), truth["reads"], "reads that blocked")
    short, between, long = waits_by_length(box.document("hist", "futex"))
    print("# held: %d futex waits are short, %d between, %d long" % (short, between, long))
    print("# " + "\n# ".join(said(report["findings"])))
    check(long >= truth["reads"] and short >= truth["reads"], "two humps: %d, %d, %d" % (short, between, long))
    check(between < min(short, long), "a valley between them: %d, %d, %d" % (short, between, long))
    who_held_it(box, report)
    truth, report = recorded_case(box, "free")
    few = waits_by_length(box.document("hist", "futex"))
    print("# free: %d short, %d between, %d long" % tuple(few))
    print("# " + "\n# ".join(said(report["findings"])))
    check(few[2] * 2 <= long, "the second hump is still there: %d long waits, %d before" % (few[2], long))
    equal([f for f in report["findings"] if f["id"] == "lock-holder-io" and "read" in f["title"]], [], "a read under the lock")


def who_held_it(box, report):
    """parking_lot's threads each wait at a word of their own, so the lock has no one address; but whoever lets it go wakes the next."""
    waits = holders = in_read = 0
    for lock in box.document("locks")["locks"]:
        if lock["kind"] == "futex" and lock["waits"] >= 10:  # not where the program waits for its tasks, or a worker for work
            waits += lock["total_ns"]
            holders += len(lock["holders"])
            in_read += sum(i["total_ns"] for h in lock["holders"] for i in h["inside"] if i["hook"] == "read")
    check(waits and holders, "nobody is known to have held it")
    check(in_read * 4 >= waits, "its holders were in the read for %d ns of the %d ns that the others waited" % (in_read, waits))
    named = [f for f in report["findings"] if f["id"] == "lock-holder-io"]
    check(named and "held a lock while in read" in named[0]["title"], "the holder's call: %s" % said(report["findings"]))
    equal(named[0]["certainty"], "inferred", "it was not seen who held it")
    equal_least(named[0]["count"], 2, "reads under the lock")


# ---- a crowd before two workers ---------------------------------------------------------------------------------

CROWD, WAVES, WORKERS = 2000, 4, 2
HOGS = 4  # beside it, for each CPU


def room_for_a_crowd():
    """How many connections the limits let this process and the server have."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = CROWD + 200
    if soft < wanted:
        soft = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    if soft < 700:
        raise Skip("%d descriptors are too few for a crowd" % soft)
    return min(CROWD, soft - 200)


def connect(port, seconds=60):
    end = time.monotonic() + seconds
    while True:
        try:
            return socket.create_connection(("127.0.0.1", port), 30)
        except ConnectionRefusedError:
            check(time.monotonic() < end, "the server does not listen")
            time.sleep(0.02)


def ask_all(conns, wave):
    """A line to every connection at once; all answers, by connection."""
    answers = {s: b"" for s in conns}
    with selectors.DefaultSelector() as waiting:
        for s in conns:
            waiting.register(s, selectors.EVENT_READ)
        for i, s in enumerate(conns):
            s.sendall(b"%d of wave %d\n" % (i, wave))
        while waiting.get_map():
            ready = waiting.select(60)
            check(ready, "%d connections get no answer" % len(waiting.get_map()))
            for key, _ in ready:
                got = key.fileobj.recv(4096)
                check(got, "the server closed a connection")
                answers[key.fileobj] += got
                if got.endswith(b"\n"):
                    waiting.unregister(key.fileobj)
    return [answers[s] for s in conns]


def crowd(box, n, under=(), **options):
    """The answers to some waves, what the server counted, and which part of its workers' time they had a CPU.  under: what starts it."""
    port = harness.free_port()
    p = box.start([*under, program("crowd"), port], **options)
    conns = [connect(port) for _ in range(n)]
    before, answers = (time.monotonic(), cpu_seconds(p.pid)), []
    for wave in range(WAVES):
        answers += ask_all(conns, wave)
    share = (cpu_seconds(p.pid) - before[1]) / (time.monotonic() - before[0]) / WORKERS
    conns[0].sendall(b"quit\n")
    r = box.finish(p)
    equal(r.rc, 0, "exit code: " + r.err)
    for s in conns:
        s.close()
    return answers, truth_of(r), share


def cpu_seconds(pid):
    with open("/proc/%d/stat" % pid) as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@harness.test
def a_crowd_of_connections_before_two_workers(box):
    n = room_for_a_crowd()
    plain, truth_plain, _ = crowd(box, n, shim=False)
    answers, truth, share = crowd(box, n)
    check(answers == plain, "the answers differ")
    equal((truth["tasks"], truth["answers"]), (n + 1, n * WAVES), "tasks and answers that the server counted")
    equal(truth_plain["answers"], truth["answers"], "answers without the recorder")
    report = box.document("report")
    polls, tasks, lost = totals(report)
    print("# %d connections, %d polls, %d events lost, %d %% of two CPUs" % (n, polls, lost, 100 * share))
    print("# " + "\n# ".join(said(report["findings"])))
    check(polls <= truth["polls"] <= polls + lost and tasks <= truth["tasks"] <= tasks + lost,
          "%d polls, %d tasks, %d lost: %s" % (polls, tasks, lost, truth))
    equal(lost, 0, "events lost")
    of_them = [t for t in box.document("tasks")["tasks"] if t["kind"] == "async"]
    equal(sum(t["polls"] for t in of_them), truth["polls"], "polls of the tasks")
    equal(sum(t["outcome"] == "alive" for t in of_them), 0, "tasks that did not end")
    check(any(re.search(r"\bserve\b|\bcrowd::", t["name"] or "") for t in of_them), "names: %s" % of_them[0])
    hists = report["hists"]
    equal_least(hists["queue"]["count"], truth["answers"], "delays from wake to poll")
    equal_least(hists["queue"]["p99_ns"], 10 * hists["poll-span"]["p99_ns"], "the delays, compared with a poll that is part of them")
    late = [f for f in report["findings"] if f["id"] == "wake-delay"]
    if share < 0.9:  # others had the CPUs, which is no fault of the service's, and it is not said to be
        print("# the workers had no CPU of their own: not judged")
        return
    check(late, "not told of: %s" % said(report["findings"]))
    check("of %d workers" % WORKERS in late[0]["title"], "the reason: %s" % late[0]["title"])
    equal_least(late[0]["measured"]["count"], 1, "delays")


@harness.test
def a_crowd_whose_workers_are_woken_and_not_run(box):
    """Its kernel half: all CPUs are busy with others' work, so a worker that is woken runs tens of milliseconds later."""
    need_kernel()
    n = room_for_a_crowd()
    for _ in range(HOGS * (os.cpu_count() or 1)):
        box.start([os.path.join(harness.PROGS, "busy")], shim=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    idle = harness.idle_seconds()
    began = time.monotonic()
    _, truth, _ = crowd(box, n, [harness.D9, "run", "--quiet", "--kernel", "on", "--dir", box.dir, "--"], shim=False)
    busy = 1 - (harness.idle_seconds() - idle) / (time.monotonic() - began) / (os.cpu_count() or 1)
    report = box.document("report")
    print("# %d connections, CPUs %d %% busy: %s" % (n, 100 * busy, truth))
    print("# " + "\n# ".join(said(report["findings"])))
    check(busy > 0.9, "the CPUs were busy for %d %% of the time only" % (100 * busy))
    f = report["findings"][0]
    equal((f["id"], f["certainty"]), ("kernel-delay", "seen"), "first")
    check(f["measured"]["runq_max_ns"] >= 10 * MS, "how late: %s" % f["measured"])
    check(re.search(r"worker \d.*ran \d+ ms later; .*busy\b.* had its CPUs", f["title"]), f["title"])
    check({v["tid"] for v in f["victims"]} | {f["tid"]}, "nobody waited: %s" % f)
    threads = box.document("runq")
    equal(threads["had_cpu"][0]["name"], "busy", "who had the CPUs most")


harness.main()
