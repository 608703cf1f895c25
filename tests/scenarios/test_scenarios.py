#!/usr/bin/env python3
"""Public stall reports as tiny programs with a known answer: the recording must give that answer first, and no other cause of
first rank.  Each also under another name, with its constants x0.6 and x1.7, and beside load.

A program prints `TRUTH k=v ...` from its own clocks; what was measured must agree within max(15 ms, 10 %).
"""
import os
import re
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import Skip, check, equal  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MS = 1_000_000


def near(got_ns, want_ms, what):
    slack = max(15, 0.1 * want_ms)
    check(got_ns is not None and abs(got_ns / MS - want_ms) <= slack, "%s: %s ms, not %.0f +- %.0f ms" %
          (what, got_ns and got_ns / MS, want_ms, slack))


def least(got_ns, want_ms, what):
    near(max(got_ns or 0, want_ms * MS), want_ms, what) if (got_ns or 0) < want_ms * MS else None
    check((got_ns or 0) / MS >= want_ms - max(15, 0.1 * want_ms), "%s: %s ms, not %.0f or more" % (what, got_ns, want_ms))


ARGUMENT = ("its argument",) # the factor of a Rust program


class Scenario:
    def __init__(self, name, judges, constants=(), beside=(), instead=lambda truth: None):
        """judges: the findings that must stand first, in any order; constants: patterns whose first group is a number that the
        variants scale, or ARGUMENT; beside: what else is true of the program and may be told of after; instead: the judges of a run
        in which the program's threads did not meet as they mostly do, by what it says itself."""
        self.name, self.judges, self.constants, self.beside, self.instead = name, judges, constants, beside, instead


def of_task(f, name):
    """Does it say in which task?"""
    check(f["task"] is not None and re.search(r"; task \d+:1:%d `.*\b%s\b" % (f["task"], name), f["title"]), "no task %s: %s" % (name, f["title"]))


def s01_another_took_the_driver(f, truth, _scale):
    near(f["measured"]["blocked_ns"], float(truth["blocked_worker_ms"]), "the sleep")
    check("clock_nanosleep" in f["title"], "the call is not named: %s" % f["title"])
    of_task(f, truth["task"])


def s01(f, truth, scale):
    s01_another_took_the_driver(f, truth, scale)
    near(f["measured"]["late_ns"], float(truth["blocked_worker_ms"]), "time without a poller")
    equal(f["measured"]["idle_workers"], 2, "workers that were idle")


def s03(f, truth, _scale):
    near(f["measured"]["blocked_ns"], float(truth["read_blocked_ms"]), "the read")
    check("recv" in f["title"], "the call is not named: %s" % f["title"])
    of_task(f, truth["task"])


def s04(f, truth, _scale):
    equal(f["measured"]["pool_threads"], 2, "threads of the pool")
    near(f["measured"]["queue_wait_ns"], float(truth["fast_job_queue_wait_ms"]), "the fast job's wait")
    near(f["measured"]["blocked_ns"], float(truth["both_slow_ms"]), "busy")
    equal(f["certainty"], "seen", "certainty")


def s06(f, truth, scale):
    least(f["measured"]["pending_ns"], 700 * scale, "stuck")
    equal(f["certainty"], "inferred", "certainty")
    check("s06_mutex_across_await::M" in f["title"] and f["title"].endswith("; no holder seen; only thread of its runtime"), f["title"])


def s07(f, truth, scale):
    equal(f["measured"]["pool_threads"], int(truth["pool_threads"]), "threads of the pool")
    least(f["measured"]["pending_ns"], 750 * scale, "stuck")
    equal((len(f["victims"]), f["certainty"], truth["progress"]), (2, "inferred", "never"), "victims, certainty")
    of_task(f, "main")


def lock_across_await(f, truth, _scale):
    near(f["measured"]["held_ns"], float(truth["kept_ms"]), "held")
    near(f["measured"]["wait_total_ns"], float(truth["waited_ms"]), "waited")
    equal((f["measured"]["waiters"], f["certainty"]), (1, "inferred"), "waiters, certainty")
    check("lock_across_await::TABLE" in f["title"], "the lock is not named: %s" % f["title"])
    of_task(f, truth["task"])


def s09(f, truth, scale):
    # The collector, and the writer whom it lets go on, may wait for a CPU besides.
    least(f["measured"]["blocked_ns"], 500 * scale, "the write that stalled")
    check(f["measured"]["blocked_ns"] / MS <= float(truth["all_workers_stalled_ms"]) + 15, "longer than all stood still: %s" % f["measured"])
    equal(f["measured"]["fd"], 1, "descriptor")
    of_task(f, "main")


def s11(f, truth, _scale):
    near(f["measured"]["wait_total_ns"], float(truth["total_lock_wait_ms"]), "time waited")
    share = f["measured"]["share"]
    # Ours is of the threads' own lives, the program's of its wall time.
    check(abs(share - float(truth["share_of_thread_time"])) < 0.15, "share %s, not %s" % (share, truth["share_of_thread_time"]))
    equal(f["measured"]["waiters"], 4, "waiters")


def s12(f, truth, scale):
    near(f["measured"]["wait_total_ns"], float(truth["waiter_total_ms"]), "time the waiters waited")
    least(f["measured"]["holder_ns"], 270 * scale, "the holder's read") # a program that is kept waiting sleeps longer
    equal(f["measured"]["waiters"], 3, "waiters")
    check("read" in f["title"], "the holder's call is not named: %s" % f["title"])


def s14(f, truth, scale):
    least(f["measured"]["pending_ns"], 700 * scale, "stuck")
    equal(f["measured"]["waiters"], 4, "threads that are stuck")


def s15(f, truth, _scale):
    share = f["measured"]["share"]
    check(abs(share - float(truth["busiest_share"])) <= 0.1, "share %s, not %s" % (share, truth["busiest_share"]))


def s19(f, truth, _scale):
    equal(f["measured"]["wakeups"], int(truth["wakeups"]), "wake-ups")
    # Fast reads are counted without their descriptor: it is known if one of them took long enough to be recorded.
    check(f["measured"]["fd"] in (None, int(truth["spin_fd"])), "descriptor %s, not %s" % (f["measured"]["fd"], truth["spin_fd"]))


def s20(f, truth, scale):
    near(f["measured"]["blocked_ns"], float(truth["worst_10ms_tick_gap_ms"]), "the open")
    check("open" in f["title"], "the call is not named: %s" % f["title"])


def s21(f, truth, _scale):
    equal(f["measured"]["pool_threads"], 2, "threads of the pool")
    near(f["measured"]["blocked_ns"], float(truth["getaddrinfo_ms"]) + 20, "busy")
    check("nanosleep" in f["title"], "the call is not named: %s" % f["title"])


def s22_sleep(f, truth, scale):
    near(f["measured"]["blocked_ns"], 250 * scale, "the sleep")
    check("nanosleep" in f["title"], "the call is not named: %s" % f["title"])


def s22_computing(f, truth, scale):
    near(f["measured"]["on_cpu_ns"], 250 * scale, "the computing")


def s23(f, truth, _scale):
    near(f["measured"]["wait_p50_ns"], float(truth["with_gil_hog_ms"]) - float(truth["quiet_1ms_sleep_ms"]), "each wait")
    check(f["measured"]["count"] >= 16 and f["cause"]["owner_tid"], "who had the lock: %s" % f["cause"])


def s25(f, truth, scale):
    least(f["measured"]["pending_ns"], 700 * scale, "stuck")
    equal(f["measured"]["cycle"], 2, "threads in the circle")


def s26(f, truth, _scale):
    equal(f["measured"]["pool_threads"], 4, "threads of the pool")
    near(f["measured"]["blocked_ns"], float(truth["stat_ms"]) + 20, "busy")
    check("open" in f["title"], "the call is not named: %s" % f["title"])


def s28(f, truth, scale):
    least(f["measured"]["poll_ns"], 250 * scale, "the poll")
    # What of it was spent waiting for a CPU depends on the machine; the rest was computing, and no call lay inside.
    check(0 < f["measured"]["on_cpu_ns"] <= f["measured"]["poll_ns"], "not on a CPU: %s" % f["measured"])


def slow_connect(f, truth, _scale):
    near(f["measured"]["blocked_ns"], float(truth["connect_ms"]), "the connect")
    check("connect" in f["title"] and f["measured"]["count"] == 1, f["title"])


def task_leak(f, truth, _scale):
    equal(f["measured"]["tasks_last"], int(truth["tasks_last"]), "tasks at the end")
    check(abs(f["measured"]["tasks_first"] - int(truth["tasks_first"])) <= 0.1 * int(truth["tasks_last"]), "tasks at first: %s" % f["measured"])
    check("`conn`" in f["title"], "the tasks are not named: %s" % f["title"])


SCENARIOS = [
    Scenario("s01_driver_held.rs", {"driver-starved": s01}, ARGUMENT,
             instead=lambda truth: None if truth["ticks_meanwhile"] == "0" else {"blocking-call": s01_another_took_the_driver}),
    Scenario("s03_blocking_read.rs", {"blocking-call": s03}, ARGUMENT),
    Scenario("s04_blocking_pool_starved.rs", {"pool-saturated": s04}, ARGUMENT),
    Scenario("s06_mutex_across_await.rs", {"self-deadlock": s06}, ARGUMENT),
    Scenario("s07_handoff_deadlock.rs", {"pool-deadlock": s07}, ARGUMENT),
    Scenario("lock_across_await.rs", {"lock-across-await": lock_across_await}, ARGUMENT),
    Scenario("s09_stdout_pipe_stall.rs", {"log-pipe-stall": s09}, ARGUMENT),
    Scenario("s11_lock_convoy.c", {"lock-contention": s11}, [r"nap\((1000)\)", r"nap\((200)\)"]),
    Scenario("s12_holder_in_io.c", {"lock-holder-io": s12}, [r"usleep\((20000)\)", r"usleep\((250000)\)"]),
    Scenario("s14_cond_holding_lock.c", {"deadlock-cycle": s14}, [r"usleep\((800000)\)"]),
    Scenario("s15_accept_imbalance.c", {"accept-imbalance": s15}, [r"k ?< ?(300)"]),
    Scenario("s19_level_triggered_spin.c", {"event-loop-spin": s19}, [r"a ?< ?(400)"]),
    Scenario("s20_open_blocks_loop.c", {"blocking-call": s20}, [r"usleep\((350000)\)"]),
    Scenario("s21_executor_saturated.py", {"pool-saturated": s21}, [r"time.sleep, (0\.3)\)"]),
    Scenario("s22_blocking_in_loop.py", {"blocking-call": s22_sleep, "long-poll": s22_computing}, [r"time.sleep\((0\.25)\)", r"process_time\(\) \+ (0\.25)"]),
    # It sleeps 50 ms between its two loops, which the report tells too.
    Scenario("s23_gil_wait.py", {"gil-contention": s23}, [r"setswitchinterval\((0\.02)\)"], beside={"blocking-call"}),
    Scenario("s25_lock_order.py", {"deadlock-cycle": s25}, [r"time.sleep\((0\.8)\)"]),
    Scenario("s26_threadpool_starved.js", {"pool-saturated": s26}, [r"\}, (350)\)"]),
    Scenario("s28_sync_json.js", {"long-poll": s28}, [r"< (250)e6", r"\}, (700)\)"]),
    Scenario("slow_connect.c", {"slow-call": slow_connect}),
    Scenario("task_leak.c", {"task-leak": task_leak}, [r"ROUNDS (400)"]),
]


def source_of(s):
    folder = os.path.join("rs", "src", "bin") if s.name.endswith(".rs") else "src"
    return os.path.join(HERE, folder, s.name)


def scaled(text, s, scale):
    for pattern in s.constants:
        check(re.search(pattern, text), "%s has no %s" % (s.name, pattern))

        def times(m):
            old = m.group(1)
            new = "%g" % (float(old) * scale) if "." in old else str(int(int(old) * scale))
            return m.group(0).replace(old, new)

        text = re.sub(pattern, times, text)
    return text


def command(box, s, name, scale):
    """The program, made in the box under `name`."""
    kind = s.name.rsplit(".", 1)[1]
    if kind == "rs":
        return [shutil.copy(harness.cargo(os.path.join(HERE, "rs"), s.name[:-3]), os.path.join(box.path, name)), "%g" % scale]
    with open(source_of(s)) as f:
        text = scaled(f.read(), s, scale)
    path = os.path.join(box.path, "%s.%s" % (name, kind))
    with open(path, "w") as f:
        f.write(text)
    if kind == "c":
        exe = os.path.join(box.path, name)
        subprocess.run(["cc", "-O2", "-g", "-w", "-pthread", "-I", os.path.join(harness.ROOT, "shim"), "-o", exe, path], check=True, timeout=60)
        return [exe, box.path]
    program = os.path.realpath(sys.executable) if kind == "py" else harness.need("node")
    return [program, path, box.path]


def truth_of(r):
    for line in (r.out + r.err).splitlines():
        if line.startswith("TRUTH"):
            return dict(w.split("=", 1) for w in line.replace(">=", "=").split()[1:] if "=" in w)
    raise harness.Failure("no TRUTH: %s%s" % (r.out[-500:], r.err[-500:]))


def judge(box, s, name, scale):
    judge_run(box, box.run(command(box, s, name, scale), rc=0), s, scale)


def judge_run(box, r, s, scale):
    truth = truth_of(r)
    judges = s.instead(truth) or s.judges
    findings = box.findings()
    check(findings, "nothing was found")
    said = ["%s %s: %s" % (f["severity"], f["id"], f["title"]) for f in findings]
    first = findings[:len(judges)]
    equal(sorted(f["id"] for f in first), sorted(judges), "first of %s" % said)
    others = [f for f in findings if f["severity"] == "critical" and f["id"] not in judges and f["id"] not in s.beside]
    check(not others, "other causes of first rank: %s" % said)
    for f in first:
        judges[f["id"]](f, truth, scale)


@harness.parametrise([s.name for s in SCENARIOS])
def the_right_finding_first(box, name):
    s = next(s for s in SCENARIOS if s.name == name)
    judge(box, s, name.rsplit(".", 1)[0], 1)


@harness.test
def a_slow_name_lookup(box):
    """Its name server has a loopback address of its own, and its resolv.conf is in a mount namespace."""
    harness.need_root()
    if subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        raise Skip("no mount namespace of one's own")
    s = Scenario("slow_lookup.c", {"slow-call": lambda f, truth, _: (
        near(f["measured"]["blocked_ns"], float(truth["lookup_ms"]), "the lookup"), check("getaddrinfo" in f["title"], f["title"]))})
    conf = os.path.join(box.path, "resolv.conf")
    with open(conf, "w", encoding="utf-8") as f:
        f.write("nameserver 127.9.53.1\n")
    exe = command(box, s, "slow_lookup", 1)[0]
    script = "mount --bind %s /etc/resolv.conf && LD_PRELOAD=%s exec %s" % (conf, box.env().get("LD_PRELOAD", ""), exe)
    judge_run(box, box.run(["unshare", "-m", "sh", "-c", script], shim=False, rc=0), s, 1)


@harness.parametrise([s.name for s in SCENARIOS if s.constants])
def under_another_name_and_smaller(box, name):
    judge(box, next(s for s in SCENARIOS if s.name == name), "zebra", 0.6)


@harness.parametrise([s.name for s in SCENARIOS if s.constants])
def larger(box, name):
    judge(box, next(s for s in SCENARIOS if s.name == name), "worker", 1.7)


@harness.parametrise([s.name for s in SCENARIOS])
def beside_load(box, name):
    s = next(s for s in SCENARIOS if s.name == name)
    for _ in range(os.cpu_count() or 1):
        box.start([os.path.join(harness.PROGS, "busy")], shim=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    judge(box, s, name.rsplit(".", 1)[0], 1)


if __name__ == "__main__":
    harness.main()
