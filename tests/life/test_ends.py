#!/usr/bin/env python3
"""However a process ends, what it recorded before is there."""
import os
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import PROGS, SHIM, check, compare, equal, main, need_command, parametrise, test, wait_until

# how it ends: exit code, what the `exit` event says under d9 run (how, code), and without it
ENDS = {
    "return": (5, (1, 5), 1), "exit": (5, (1, 5), 1), "_exit": (5, (2, 5), 2), "_Exit": (5, (2, 5), 2),
    "quick_exit": (5, (2, 5), 2), "exit-in-thread": (5, (1, 5), 1), "pthread_exit": (0, (1, 0), 1),
    "exit_group": (5, (2, 5), None), "abort": (-signal.SIGABRT, (3, 6), None), "segv": (-signal.SIGSEGV, (3, 11), None),
    "kill": (-signal.SIGKILL, (3, 9), None),
}


def ends(events, pid):
    return [(e["how"], e["code"]) for e in events if e["event"] == "exit" and e["pid"] == pid]


@parametrise(sorted(ENDS))
def what_was_recorded_before_is_there(box, how):
    code, _, said = ENDS[how]
    r = box.run([os.path.join(PROGS, "exit"), how])
    equal(r.rc, code, "exit code")
    events = box.events()
    compare(r, events)
    if said:
        equal(ends(events, r.pid), [(said, code)], "the end that is told")
        check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


@parametrise(sorted(ENDS))
def d9_run_knows_how_it_ended(box, how):
    need_command("run")
    code, told, _ = ENDS[how]
    r = box.d9_run([os.path.join(PROGS, "exit"), how])
    equal(r.rc, code if code >= 0 else 128 - code, "exit code")
    events = box.events()
    compare(r, events)
    equal([(e["how"], e["code"]) for e in events if e["event"] == "exit"], [told], "the end that is told")
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


# ---- what the report says of those that nobody saw end ---------------------------------------------------


def processes(box):
    """{(name of the program, pid): end} of the newest session."""
    return {(p["name"], p["pid"]): p["end"] for p in box.document("report")["processes"]}


def people_are_told(box, words):
    text = box.d9("report", box.dir).out
    check("[%s]" % words in text, "[%s] is not in the report for people: %s" % (words, text[:400]))


@test
def a_child_that_execs_after_d9_run_has_ended(box):
    go = os.path.join(box.path, "go")
    r = box.d9_run(["sh", "-c", "(while [ ! -e %s ]; do sleep 0.02; done; exec sleep 60) </dev/null >/dev/null 2>&1 & echo $!" % go], rc=0)
    with open(go, "w"):
        pass
    pid = int(r.out)
    wait_until(lambda: processes(box).get(("sleep", pid)) == "running", "the program that it became does not run")
    equal({n: end for (n, p), end in processes(box).items() if p == pid}, {"dash": "exec", "sleep": "running"}, "what it was and is")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: ("sleep", pid) in processes(box) and processes(box)[("sleep", pid)] != "running", "a process that was killed runs on")
    equal(processes(box)[("sleep", pid)], "unknown", "end of the killed one")
    people_are_told(box, "end not seen")
    states = {p["state"] for p in box.document("status")["processes"]}
    equal(states, {"dead"}, "d9 status")


@parametrise(["running", "killed"])
def a_program_that_nobody_drains(box, how):
    p = box.start(["sleep", "60"])
    wait_until(box.begun, "no arena")
    wait_until(lambda: not box.run(["grep", "-q", "/dev/shm/d9-", "/proc/%d/maps" % p.pid], shim=False).rc, "no arena mapped")
    if how == "killed":
        os.kill(p.pid, signal.SIGKILL)
        p.wait(20)
    equal(list(processes(box).values()), ["running" if how == "running" else "unknown"], "end")
    people_are_told(box, "running" if how == "running" else "end not seen")


# ---- a program that loads the recorder itself ------------------------------------------------------------

LOADS = "import ctypes, threading, time; ctypes.CDLL(%r); t = threading.Thread(target=time.sleep, args=(0.05,)); t.start(); t.join()"


@parametrise(["loaded", "preloaded", "preloaded, no calls"])
def a_report_says_where_no_hook_is_in_place(box, how):
    argv = ["true"] if "no calls" in how else [os.path.realpath(sys.executable), "-c", LOADS % SHIM]
    box.run(argv, env={"LD_PRELOAD": None} if how == "loaded" else None, rc=0)
    doc, text = box.document("report"), box.d9("report", box.dir).out
    equal(len(doc["processes"]), 1, "processes")
    said = [u["detail"] for u in doc["unseen"] if u["what"] == "hooks"]
    equal((len(said), text.count("not seen: it loaded libd9shim.so itself")), (1, 1) if how == "loaded" else (0, 0), "that no hook is in place")
    if how == "loaded":
        check("pid %d:" % doc["processes"][0]["pid"] in said[0] and "d9 run" in said[0], said)
        check(" main " not in text, "an idle process is shown: %s" % text[:500])


LIFE = """import os, threading, time
life = []
def work():
    fd = os.open('/dev/null', os.O_WRONLY)
    os.write(fd, b'x')
    os.close(fd)
    time.sleep(0.1)
    life.append(threading.get_native_id())
t0 = time.monotonic_ns()
t = threading.Thread(target=work)
t.start()
t.join()
t1 = time.monotonic_ns()
child = os.fork()
if not child:
    os.write(1, b'')
    time.sleep(0.1)
    os._exit(7)
t2 = time.monotonic_ns()
os.waitpid(child, 0)
t3 = time.monotonic_ns()
time.sleep(1.5)
print('LIVED thread=%d thread_ns=%d child=%d child_ns=%d' % (life[0], t1 - t0, child, t3 - t2))"""


@test
def nobody_lives_longer_than_it_did(box):
    """Totals of short calls are written down when a segment ends, which may be long after the thread or the process did."""
    line = box.run([sys.executable, "-c", LIFE], env={"D9_IO_MIN_US": "1000000"}, rc=0).lines("LIVED")[0]
    report = box.document("report", "--session", "all")
    walls = {t["tid"]: t["wall_ns"] for p in report["processes"] for t in p["threads"]}
    for who in ("thread", "child"):
        wall, most = walls[int(line[who])], int(line[who + "_ns"])
        check(90_000_000 <= wall <= most + 15_000_000, "the %s lived %d ns at most, not %d" % (who, most, wall))


@test
def the_cpu_clock_is_read_after_a_long_computation(box):
    r = box.run([os.path.join(PROGS, "burn")], rc=0)
    line = r.lines("BURNT")[0]
    runs = [e["run_ns"] for e in box.events() if e["event"] == "cpu" and e["tid"] == int(line["tid"]) and e["source"] == 0]
    check(runs and max(runs) >= int(line["min_ns"]) and max(runs) <= int(line["max_ns"]),
          "CPU time %s, by the thread's own clock %s" % (runs, line))


if __name__ == "__main__":
    main()
