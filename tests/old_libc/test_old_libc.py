#!/usr/bin/env python3
"""The recorder, built against this machine's glibc, in programs of systems whose glibc is older: before 2.34 libpthread and
libdl are libraries of their own, which a program may lack or open late, and names are missing that the recorder has a hook for."""
import os
import re
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(1, os.path.join(os.path.dirname(sys.path[0]), "tests", "services"))
import harness  # noqa: E402
import http_load  # noqa: E402
import roots  # noqa: E402
from harness import MUTANT, ROOT, check, compare, equal, parametrise  # noqa: E402
from services import SERVICES, calls, waits  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
N = 400  # requests
FAMILIES = ["event_wait", "futex", "cond", "cond_old", "mutex", "rwlock", "join", "sem", "accept_connect", "recv_send",
            "read_write", "transfers", "open", "files", "sync", "sleep", "signals", "stdio", "children", "children_old"]
C11 = {"bullseye": ["c11"]}  # threads.h came with glibc 2.28


def every(names, more=None):
    return parametrise(["%s: %s" % (suite, name) for suite in roots.SUITES for name in [*names, *(more or {}).get(suite, [])]])


def start(box, case, shim, argv, env=None):
    suite = case.split(":")[0]
    words = dict(env or {})
    if shim and MUTANT != "absent":
        words.update({"LD_PRELOAD": "/d9/shim/" + os.path.basename(harness.SHIM), "D9_DIR": "/d9/box/traces"})
    return box.start(roots.enter(roots.root(suite), box, words, argv), shim=False)


def run(box, case, shim, argv, env=None):
    return box.finish(start(box, case, shim, argv, env))


def both(box, case, argv):
    """Bare and recorded: the same end, the same words."""
    plain, recorded = run(box, case, False, argv), run(box, case, True, argv)
    equal((recorded.rc, recorded.out, recorded.err), (plain.rc, plain.out, plain.err), "end and words")
    return recorded


@every(["glibc"])
def is_what_it_is_taken_for(box, case):
    """The version gate of this root is worth something: the libc in it is as old as the tables say."""
    suite = case.split(":")[0]
    r = run(box, case, False, ["/lib/x86_64-linux-gnu/libc.so.6"])
    check(re.search(r"version %d\.%d[,.]" % roots.SUITES[suite].glibc, r.out), "glibc of %s: %s" % (suite, r.out[:200]))


# ---- services --------------------------------------------------------------------------------------------------


ARGV = {
    "redis": lambda port: ["redis-server", "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", "/d9/box"],
    "memcached": lambda port: ["memcached", "-u", "root", "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "4"],
    "asyncio": lambda port: ["python3", "/d9/box/server.py", port],
}


@every(ARGV)
def a_service_answers_as_ever(box, case):
    name = case.split(": ")[1]
    service, outcome = SERVICES[name], {}
    shutil.copy(os.path.join(HERE, "server.py"), box.path)
    for shim in (False, True):
        port = harness.free_port()
        p = start(box, case, shim, ARGV[name](port))
        http_load.wait_port(port, p)
        answers = service.ask(port, N)
        service.end(p.pid, port)
        r = box.finish(p, 60)
        outcome[shim] = (r.rc, answers, r.err.count("\n"))
    check(len(outcome[False][1]) > N, "the load got no answers")
    equal(outcome[True], outcome[False], "exit code, answers and lines on stderr")
    events = box.events()
    n = len(waits(events, service.waits))
    check(n >= N // 2, "waits recorded: %d for %d requests" % (n, N))
    check(not [e for e in events if e["event"] == "gap"], "events were lost")


# ---- programs --------------------------------------------------------------------------------------------------


@every(FAMILIES, C11)
def every_call_is_recorded(box, case):
    suite, name = case.split(": ")
    source = os.path.join(ROOT, "tests/prog", name.replace("_old", "") + ".c")
    program = roots.built(roots.root(suite), box, name, source, flags=["-DOLD_ABI"] if name.endswith("_old") else [])
    r = run(box, case, True, [program])
    equal(r.rc, 0, "exit code (%s)" % r.err)
    events = [e for f in box.folders() if os.path.basename(f).startswith(name + "-") for e in box.meta(f)]
    kinds = ("span", "calls", "gap", "pending") if name.startswith("children") else {e["event"] for e in events} - harness.META
    compare(r, [e for e in events if e["event"] in kinds and (e["pid"] == r.pid or not name.startswith("children"))])
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


@every(["without it", "opened late"])
def libpthread(box, case):
    suite, how = case.split(": ")
    late = how == "opened late"
    program = roots.built(roots.root(suite), box, "alone", os.path.join(HERE, "alone.c"), ["libdl.so.2"] if late else [],
                          ["-DLATE"] if late else [])
    r = both(box, case, [program])
    equal((r.rc, r.out, r.err), (7, "fine\n", ""), "the program")
    events = box.events()
    check(waits(events, {"poll"}, {r.pid}), "the wait was not recorded")
    locks = [e for e in waits(events, {"pthread_mutex_lock"}) if e["dur_ns"] > 20_000_000]
    equal(len(locks), int(late), "waits for a mutex, once there are threads")
    equal([e["hook"] for e in waits(events, {"pthread_join"})], ["pthread_join"] * late, "the join")


SHELL = "echo one; (sleep 0.05; echo two) & wait; cat /d9/box/text; exec sh -c 'sleep 0.02; exit 9'"
PERL = ("$| = 1; select undef, undef, undef, 0.02; print `echo from a child`; if (!fork) { sleep 1; exit 4 } "
        "wait; print $? >> 8; exit 6")
PLAIN = {
    "sh": (["sh", "-c", SHELL], 9, {"wait4", "waitpid", "wait3", "nanosleep", "clock_nanosleep"}),
    "perl": (["perl", "-e", PERL], 6, {"select", "waitpid", "wait4"}),
    "true": (["true"], 0, set()),
    "ls": (["ls", "-l", "/usr"], 0, set()),  # not /: what each run mounts there is new
}


@every(PLAIN)
def a_plain_program_says_the_same(box, case):
    argv, rc, hooks = PLAIN[case.split(": ")[1]]
    with open(os.path.join(box.path, "text"), "w", encoding="ascii") as f:
        f.write("three\n")
    r = both(box, case, argv)
    equal((r.rc, r.err), (rc, ""), "the program")
    check(box.folders(), "nothing was recorded")
    check(not hooks or waits(box.events(), hooks), "no wait was recorded")


@every(["python"])
def waits_of_each_kind(box, case):
    shutil.copy(os.path.join(HERE, "waits.py"), box.path)
    r = both(box, case, ["python3", "/d9/box/waits.py", "libdl.so.2"])
    equal(r.rc, 0, "the program (%s)" % r.err)
    events = [e for e in box.events() if e.get("pid") == r.pid]
    for word in r.out.split():
        hook, least = word.split("=")
        like = {"sem_wait": {"sem_wait", "sem_timedwait", "sem_clockwait"}, "waitpid": {"waitpid", "wait4"}}.get(hook, {hook})
        n = sum(calls(events, h) for h in like)
        check(n >= int(least), "%s: %d, not %s or more" % (hook, n, least))


if __name__ == "__main__":
    harness.main()
