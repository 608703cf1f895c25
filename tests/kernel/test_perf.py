#!/usr/bin/env python3
"""D9_PERF: context switches as a program without any right may see them, read by its own drain thread (`itself`) or by `d9 run`
(`run`); and a program that notices nothing."""
import json
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel import KERNEL, Program, files, need_kernel, of, start, stop, threads
from harness import D9, LIMIT, MUTANT, PROGS, SHIM, Skip, check, equal, equal_least, main, need, parametrise, test, wait_until

HOW = ["itself", "run"]
FLAG, PREEMPTED, NEW = 16, 1, 4


def nobody(box):
    """What stands before a command that is run by a user without rights, in a folder of that user's; D9 and the library where that user can read them."""
    os.chmod(box.path, 0o755)
    where = os.path.join(box.path, "bin")
    if not os.path.isdir(where):
        os.mkdir(where)
        os.mkdir(box.dir)
        for path in (D9, SHIM):
            shutil.copy(path, where)
    if os.geteuid():
        return []
    os.chown(box.dir, 65534, 65534)
    return [need("setpriv"), "--reuid=65534", "--regid=65534", "--clear-groups"]


def words(box, how, argv, perf="1", before=(), **env):
    """The whole command: `how` it is recorded, after what is done before that."""
    words = nobody(box) + list(before)
    where = os.path.join(box.path, "bin")
    env = ["%s=%s" % e for e in dict(env, D9_DIR=box.dir, D9_PERF=perf).items()]
    if MUTANT == "absent":
        return [*words, *argv]
    if how == "run":
        return [*words, "env", *env, os.path.join(where, os.path.basename(D9)), "run", "--quiet", "--kernel=off", "--dir", box.dir, "--", *argv]
    return [*words, "env", "LD_PRELOAD=" + os.path.join(where, os.path.basename(SHIM)), *env, *argv]


def needs_perf():
    """Skips where not even a process's own switches are shown."""
    source = "import ctypes,struct;l=ctypes.CDLL(None);a=struct.pack('<IIQQQQQ', 1, 112, 9, 0, 0, 0, 1 << 5 | 1 << 6).ljust(112, b'\\0');print(l.syscall(298, a, 0, -1, -1, 0))"
    r = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, timeout=LIMIT)
    if r.stdout.strip().startswith("-"):
        raise Skip("perf_event_open is refused here")


def perfs(box):
    """Folders with segments of perf's: {folder: segments}"""
    return {f: files(f) for f in box.folders() if files(f)}


PYTHON = """
import os, select, sys, threading, time
def busy(seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        sum(range(1000))
def naps(n, seconds=0.05):
    for _ in range(n):
        select.select([], [], [], seconds)
"""


def interpreter():
    """One that every user may execute."""
    path = shutil.which("python3", path="/usr/bin:/bin")
    if not path:
        raise Skip("no /usr/bin/python3")
    return path


def python(source):
    return [interpreter(), "-c", PYTHON + source]


@parametrise(HOW)
def preemptions_are_all_there(box, how):
    needs_perf()
    load = os.path.join(box.path, "load")
    shutil.copy(os.path.join(PROGS, "kernel_runq"), load)
    program = Program(box, "load", argv=words(box, how, [load, "load", "3"]))
    program.go()
    accounts = {int(a["tid"]): int(a["delay_ns"]) for a in program.lines("ACCOUNT", 5)}
    program.go()
    box.finish(program.p)
    check(box.folders(), "nothing was recorded")
    events = box.events()
    check(not of(events, "gap"), "there was room for everything: %s" % of(events, "gap"))
    totals = {e["tid"]: e for e in of(events, "runq_total")}
    *busy, ticker = sorted(accounts)
    for tid in busy:
        off = abs(totals[tid]["total_ns"] - accounts[tid])
        check(off <= accounts[tid] / 50 + 20_000_000, "thread %d waited %d ns, and is said to have waited %d" % (tid, accounts[tid], totals[tid]["total_ns"]))
    runq = of(events, "runq")
    check(all(e["flags"] & FLAG and e["flags"] & (PREEMPTED | NEW) and not e["flags"] & 2 and e["prev"] == -1 and not e["waker"] for e in runq), "more is said than was seen")
    check(all(e["dur_ns"] >= 50_000 for e in runq), "short waits are told one by one")
    sleeps = [e for e in of(events, "offcpu") if e["tid"] == ticker]
    equal_least(len([e for e in sleeps if e["dur_ns"] >= 5_000_000]), 30, "sleeps of 5 ms")
    check(all(e["dur_ns"] >= 1_000_000 and e["nr"] == -2 and e["flags"] == FLAG for e in sleeps), "sleeps of 5 ms: %s" % sleeps[:5])
    doc = box.document("runq")
    equal({t["source"] for t in doc["threads"]}, {"perf"}, "who told")
    equal({t["watched_ns"] for t in doc["threads"]}, {0}, "watched in full")
    check("after a wake-up" in box.d9("runq", box.dir).out, "d9 runq does not say what was not watched")
    doc = box.document("offcpu")
    equal({(t["source"], t["runnable_ns"], t["blocked_ns"]) for t in doc["threads"]}, {("perf", None, None)}, "who told, and of what nothing is known")
    report = box.document("report")
    check([u for u in report["unseen"] if u["what"] == "kernel" and "perf" in u["detail"]], "the report does not say so: %s" % report["unseen"])
    r = box.d9("report", "--fail-if", "runq>1s", box.dir, rc=3)
    check("in full" in r.err, r.err)


@parametrise(HOW)
def a_forked_child_has_its_own(box, how):
    needs_perf()
    r = box.run(words(box, how, python("""
pid = os.fork()
t = threading.Thread(target=busy, args=(1,))
t.start()
naps(10)
t.join()
if pid:
    os.waitpid(pid, 0)
print("PID pid=%d" % os.getpid(), flush=True)
""")), shim=False, rc=0)
    pids = {int(p["pid"]) for p in r.lines("PID")}
    equal(len(pids), 2, "processes")
    (folder, segments), = perfs(box).items()
    equal(len(segments), 2 if how == "itself" else 1, "segments")
    for segment in segments:
        by_pid = {}
        for e in of([json.loads(line) for line in box.d9("dump", "--json", os.path.join(folder, segment)).out.splitlines()], "offcpu"):
            by_pid.setdefault(e["pid"], []).append(e)
        equal(len(by_pid), len(pids) if how == "run" else 1, "processes in one segment")
        for pid, sleeps in by_pid.items():
            check(pid in pids, "whose are they? %d" % pid)
            equal_least(len([e for e in sleeps if e["dur_ns"] >= 50_000_000]), 10, "sleeps of 50 ms")
    report = box.document("report")
    equal({p["pid"] for p in report["processes"]}, pids, "processes of the report")


@parametrise(HOW)
def descriptors_are_the_programs(box, how):
    needs_perf()
    look = python("""
def fds():
    return [(n, os.readlink("/proc/self/fd/" + n)) for n in sorted(os.listdir("/proc/self/fd"), key=int) if os.path.lexists("/proc/self/fd/" + n)]
first = fds()
os.closerange(3, 5000)
naps(8)
print(first, fds(), os.dup(0), flush=True)
""")
    said = []
    for perf in "0", "1":
        r = box.run(words(box, how, look, perf), shim=False, rc=0)
        said.append("".join(c for c in r.out.replace("pipe:", "") if not c.isdigit() or len(c) > 9).replace(" ", ""))
        shutil.rmtree(os.path.join(box.path, "bin"))
        if perf == "0":
            shutil.rmtree(box.dir)
    equal(said[1], said[0], "descriptors")
    equal(len(perfs(box)), 1, "folders that have context switches")


FILTER = """
import ctypes, os, struct, sys
kill, argv = sys.argv[1] == "kill", sys.argv[2:]
libc = ctypes.CDLL(None)
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 298), (0x06, 0, 0, 0x80000000 if kill else 0x50001), (0x06, 0, 0, 0x7fff0000)]
program = ctypes.create_string_buffer(b"".join(struct.pack("<HBBI", *c) for c in code))
assert not libc.prctl(38, 1, 0, 0, 0)
assert not libc.prctl(22, 2, struct.pack("<HxxxxxxQ", len(code), ctypes.addressof(program)), 0, 0)
os.execvp(argv[0], argv)
"""


@parametrise([(how, action) for how in HOW for action in ("refuse", "kill")])
def who_is_refused_goes_on_and_says_so(box, how):
    how, action = how
    log = os.path.join(box.path, "log")
    open(log, "w").close()
    os.chmod(log, 0o666)
    argv = words(box, how, python("naps(3)\nprint('ran')\nsys.exit(3)"), before=[interpreter(), "-c", FILTER, action], D9_LOG=log)
    if how == "run":
        argv.remove("--quiet")
    r = box.run(argv, shim=False, rc=3)
    equal(r.out, "ran\n", "what the program says")
    with open(log) as f:
        said = f.read()
    said = [line for line in (r.err if how == "run" else said).splitlines() if "D9_PERF" in line]
    equal(len(said), 1, "how often it is said: %r" % said)
    check("context switches" in said[0] and "filter" in said[0], said[0])
    equal(perfs(box), {}, "segments")
    told = [e["text"] for e in box.meta() if e["event"] == "info" and "D9_PERF" in e["text"]]
    equal_least(len(told), 1, "what the recording says of it: %s" % told)


@parametrise(HOW)
def off_and_on_again(box, how):
    needs_perf()
    p = box.start(words(box, how, python("""
print("PID pid=%d" % os.getpid(), flush=True)
while os.getppid() != 1:
    naps(1, 0.01)
""")), shim=False)
    pid = p.stdout.readline().split("=")[1].strip()
    wait_until(lambda: perfs(box), "nothing is recorded", LIMIT)
    marks = []
    for word in ("off", "on"):
        time.sleep(0.5)  # of its life: what is recorded is counted against the clock
        box.d9("ctl", pid, word)
        marks.append(time.monotonic_ns())
        time.sleep(1.5)  # what was read half a second ago is on disk, should it be killed
        marks.append(time.monotonic_ns())
    os.kill(int(pid), signal.SIGTERM)
    box.finish(p)
    sleeps = of(box.events(), "offcpu")
    at = [e["t_ns"] for e in sleeps]
    equal([t for t in at if marks[0] + 250_000_000 < t < marks[1]], [], "sleeps while it was off")
    equal_least(len([t for t in at if t < marks[0]]), 10, "sleeps before")
    equal_least(len([t for t in at if t > marks[2]]), 10, "sleeps after")
    check(all(e["dur_ns"] < 200_000_000 for e in sleeps), "a sleep that reaches over the time in which it was off")


@test
def what_finds_the_rings_full_is_counted(box):
    needs_perf()
    p = box.start(words(box, "run", python("""
print("PID pid=%d" % os.getpid(), flush=True)
sys.stdin.readline()
a, b = os.pipe(), os.pipe()
if not os.fork():
    os.close(a[1])
    while os.read(a[0], 1):
        os.write(b[1], b"x")
    os._exit(0)
os.close(a[0])
for _ in range(30000):
    os.write(a[1], b"x")
    os.read(b[0], 1)
os.close(a[1])
os.wait()
print("DONE", flush=True)
naps(10)
""")), shim=False, stdin=subprocess.PIPE)
    pid = p.stdout.readline().split("=")[1].strip()
    wait_until(lambda: perfs(box), "nothing is recorded", LIMIT)
    with open("/proc/%s/stat" % pid) as f:
        d9 = int(f.read().rsplit(") ", 1)[1].split()[1])
    os.kill(d9, signal.SIGSTOP)
    p.stdin.write("x\n")
    p.stdin.flush()
    equal(p.stdout.readline(), "DONE\n", "the program says")
    before = time.monotonic_ns()
    os.kill(d9, signal.SIGCONT)
    box.finish(p)
    events = box.events()
    losses = box.document("report")["losses"]
    equal_least(losses["dropped_events"], 60_000, "what was lost: %s" % losses)
    check(any(g["from_ns"] < before for g in losses["gaps"]), "since when: %s" % losses)
    after = [e for e in of(events, "offcpu") if e["dur_ns"] >= 50_000_000 and e["t_ns"] > before]
    equal_least(len(after), 5, "sleeps after that")
    check(all(e["dur_ns"] < 500_000_000 for e in after), "two that do not belong together: %s" % after)


@test
def d9_kernel_is_believed_first(box):
    need_kernel()
    program = Program(box, "nap", argv=words(box, "itself", python("sys.stdin.read(1)\nnaps(40)\n")))
    folder = wait_until(box.begun, "nothing is recorded")
    k = start(box, "--pid", str(program.pid))
    program.go()
    box.finish(program.p)
    stop(box, k)
    equal(len(files(folder)), 2, "segments: %s" % files(folder))
    sleeps = [o for o in of(box.events(), "offcpu") if o["tid"] == program.pid]  # not of the drain thread
    equal(sum(50_000_000 <= o["dur_ns"] < 200_000_000 for o in sleeps), 40, "sleeps of 50 ms")
    doc = box.document("runq")
    equal({t["source"] for t in doc["threads"] if t["pid"] == program.pid}, {"d9-kernel"}, "who told")


@test
def d9_run_leaves_it_to_d9_kernel(box):
    need_kernel()
    r = box.run([D9, "run", "--kernel=on", "--dir", box.dir, "--perf=1", "--", *python("naps(5)")], shim=False, rc=0)
    (_, segments), = perfs(box).items()
    equal(len(segments), 1, "segments")
    check("D9_PERF" not in r.err, r.err)
    check(all(e["flags"] < FLAG for e in of(box.events(), "offcpu")), "perf took part")


if __name__ == "__main__":
    main()
