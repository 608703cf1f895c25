#!/usr/bin/env python3
"""Real services under a load that ends by itself: the same answers and the same end with and without the recorder, and a
recording whose threads and counts are the service's own."""
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import check, children_of, equal, equal_least, need  # noqa: E402
from services import (REQUESTS, SERVICES, Postgres, both, calls, haproxy_says, recording, run,  # noqa: E402
                      threads_of, waits)


@harness.test
def epoll_server_counts_as_it_does_itself(box):
    r = both(box, SERVICES["epoll"])
    events = recording(box)
    truth = dict(w.split("=") for w in r.out.split()[1:])
    tid = int(truth.pop("tid"))
    for hook, n in truth.items():
        equal(calls(events, hook, tid), int(n), "calls of %s" % hook)
    equal_least(len(waits(events, {"epoll_wait"}, {tid})), 1000, "waits")


@harness.test
def epoll_server_counts_as_strace_does(box):
    need("strace")
    summary = os.path.join(box.path, "strace")
    prefix = ["strace", "-f", "-c", "-U", "calls,name", "-o", summary]
    if harness.MUTANT != "absent":
        prefix += ["-E", "LD_PRELOAD=" + harness.SHIM]
    run(box, False, SERVICES["epoll"], prefix=prefix)
    counted = {}
    with open(summary) as f:
        for words in (line.split() for line in f):
            if len(words) == 2 and words[0].isdigit():
                counted[words[1]] = int(words[0])
    events = recording(box)
    for hook in ("epoll_wait", "accept4"):
        equal(calls(events, hook), counted[hook], "calls of %s" % hook)


@harness.test
def redis(box):
    r = both(box, SERVICES["redis"])
    events = recording(box)
    equal_least(len(waits(events, {"epoll_wait"}, {r.pid})), 1000, "waits of the main thread")
    # One write for each answer; SHUTDOWN has none.
    writes = calls(events, "write", r.pid)
    check(REQUESTS <= writes <= REQUESTS + 30, "writes of the main thread: %d for %d answers" % (writes, REQUESTS))
    parked = {e["tid"] for e in events if e["event"] in ("span", "pending") and e["hook"].startswith("pthread_cond")}
    equal_least(len(parked - {r.pid}), 1, "background threads that park on a condition")


@harness.test
def nginx_master_and_workers(box):
    r = both(box, SERVICES["nginx"], look=children_of)
    events = recording(box)
    equal(len(r.seen), 2, "workers of the program")
    parked = {e["pid"] for e in waits(events, {"epoll_wait"})}
    equal(sorted(parked), sorted(r.seen), "processes that park in epoll_wait")
    equal_least(len(waits(events, {"epoll_wait"})), 1000, "waits")
    check(waits(events, {"sigsuspend"}, {r.pid}) or [e for e in events if e["event"] == "pending" and e["hook"] == "sigsuspend"],
          "the master was not seen in sigsuspend")
    equal(sum(1 for e in events if e["event"] == "span" and e["hook"] == "fork" and e["result"] in r.seen), 2, "forks of workers")
    with open(os.path.join(box.path, "access.log")) as f:
        equal(sum(1 for _ in f), 2 * REQUESTS, "requests that nginx logged in both runs")
    if os.geteuid() == 0:
        drops = {e["pid"] for e in events if e["event"] == "span" and e["hook"] in ("setuid", "initgroups")}
        equal(sorted(drops), sorted(r.seen), "workers that changed their user")


@harness.test
def memcached_workers_as_nobody(box):
    r = both(box, SERVICES["memcached"])
    events = recording(box)
    workers = {tid for tid, name in r.seen.items() if name.startswith("mc-worker")}
    equal(len(workers), 4, "workers of the program")
    seen = {e["tid"] for e in events if e["event"] in ("span", "pending") and e["hook"] == "epoll_wait"}
    equal(sorted(seen - {r.pid}), sorted(workers), "threads that park in epoll_wait")
    equal_least(len(waits(events, {"epoll_wait"}, workers)), 1000, "waits of the workers")
    equal(sum(calls(events, "sendmsg", t) for t in workers), REQUESTS, "answers sent")


@harness.test
def node(box):
    r = both(box, SERVICES["node"])
    events = recording(box)
    equal_least(len(waits(events, {"epoll_pwait"}, {r.pid})), 1000, "waits of the loop")
    pool = {e["tid"] for e in events if e["event"] in ("span", "pending") and e["hook"] == "pthread_cond_wait"}
    equal_least(len(pool - {r.pid}), 4, "threads of the pool")


@harness.test
def python_asyncio(box):
    r = both(box, SERVICES["asyncio"])
    events = recording(box)
    equal_least(len(waits(events, {"epoll_wait"}, {r.pid})), 1000, "waits of the loop")
    equal(calls(events, "send", r.pid), REQUESTS + 1, "answers sent")


@harness.test
def tokio_http(box):
    r = both(box, SERVICES["tokio"])
    events = recording(box)
    workers = {int(t) for t in r.out.split("workers=")[1].split(",")}
    equal(len(workers), 3, "workers of the program")
    parked = {e["tid"] for e in waits(events, {"epoll_wait", "futex_wait"})}
    check(workers <= parked, "workers %s, but only %s park" % (sorted(workers), sorted(parked)))
    equal(sorted({e["tid"] for e in waits(events, {"epoll_wait"})} - workers), [], "threads in epoll_wait that are no workers")
    equal_least(len(waits(events, {"epoll_wait", "futex_wait"}, workers)), 1000, "waits of the workers")
    equal(sum(calls(events, hook) for hook in ("send", "sendto")), REQUESTS + 1, "answers sent")


def truth_of(r):
    return dict(w.split("=") for w in r.out.split()[1:])


@harness.test
def haproxy_threads_in_a_chroot_as_nobody(box):
    def look(pid):
        return threads_of(pid), haproxy_says(box)
    r = both(box, SERVICES["haproxy"], look=look)
    events = recording(box)
    threads, said = r.seen
    equal(len(threads), 3, "threads of the program")
    equal(said["CumReq"], 2 * REQUESTS + 1, "requests that haproxy counted, to it and behind it")
    equal(sorted({e["tid"] for e in events if e["event"] in ("span", "pending") and e["hook"] == "epoll_wait"}), sorted(threads),
          "threads that park in epoll_wait")
    equal_least(len(waits(events, {"epoll_wait"})), 1000, "waits")
    equal_least(sum(calls(events, hook) for hook in ("send", "sendto", "sendmsg")), 3 * REQUESTS, "requests passed on and answers")
    if os.geteuid() == 0:
        equal({e["hook"] for e in events if e["event"] == "span" and e["hook"] in ("chroot", "setuid")}, {"chroot", "setuid"},
              "changes of identity")


COMMITS = 25


def ask_postgres_of_itself(port):
    """Commits that reach the disk; then {pid: what it is} of every process, and how many queries this connection made."""
    c = Postgres(port)
    c.query("CREATE TABLE IF NOT EXISTS durable (k int)")
    for i in range(COMMITS):
        c.query("INSERT INTO durable VALUES (%d)" % i)
    rows = c.column("SELECT pid || ' ' || backend_type FROM pg_stat_activity")
    c.close()
    return {int(pid): what for pid, what in (row.split(" ", 1) for row in rows)}


@harness.test
def postgres_as_its_user(box):
    r = both(box, SERVICES["postgres"], look=lambda _pid: ask_postgres_of_itself(box.port))
    events = recording(box)
    equal_least(len(r.seen), 6, "processes of the program")
    parked = {e["pid"] for e in events if e["event"] in ("span", "pending") and e["hook"] == "epoll_wait"}
    check(set(r.seen) <= parked, "%s, but only %s park in epoll_wait" % (r.seen, sorted(parked)))
    sent = {pid: calls(events, "send", pid) for pid in {e["pid"] for e in events if e["pid"]} - set(r.seen)}
    equal(sorted(sent.values())[-4:], [REQUESTS // 4 + 1] * 4, "answers sent by the backends, a greeting among them")
    equal_least(len([e for e in waits(events, {"epoll_wait"}) if e["pid"] in sent]), 1000, "waits of the backends")
    flushed = calls(events, "fdatasync") + calls(events, "fsync")
    equal_least(flushed, COMMITS, "flushes of the log for %d commits, one after the other" % COMMITS)
    check(waits(events, {"select", "epoll_wait"}, {r.pid}), "the postmaster was not seen to wait")


@harness.test
def uvicorn_on_uvloop(box):
    r = both(box, SERVICES["uvicorn"])
    events = recording(box)
    equal_least(len(waits(events, {"epoll_wait", "epoll_pwait"}, {r.pid})), 1000, "waits of the loop")
    equal(calls(events, "writev", r.pid), REQUESTS + 1, "answers sent")


@harness.test
def java_http_server(box):
    r = both(box, SERVICES["java"])
    events = recording(box)
    equal(truth_of(r)["answered"], str(REQUESTS + 1), "answers that the program counted")
    equal(sorted(set(r.seen) - {e["tid"] for e in events} - {r.pid}), [], "threads of the program that were not seen")
    named = {kind: {t for t, name in r.seen.items() if name.startswith(kind)} for kind in ("HTTP-Dispatcher", "pool-1-thread")}
    equal_least(len(waits(events, {"epoll_wait"}, named["HTTP-Dispatcher"])), 1000, "waits of the dispatcher")
    equal({e["tid"] for e in waits(events, {"epoll_wait"})}, named["HTTP-Dispatcher"], "threads in epoll_wait")
    equal({e["tid"] for e in waits(events, {"pthread_cond_wait"}) if e["tid"] in named["pool-1-thread"]}, named["pool-1-thread"],
          "threads of the pool, parked on its condition")
    equal_least(sum(calls(events, "write", t) for t in named["pool-1-thread"]), 2 * REQUESTS, "heads and bodies written")


@harness.test
def boost_asio_threads(box):
    r = both(box, SERVICES["asio"])
    events = recording(box)
    truth = truth_of(r)
    workers = {int(t) for t in truth["workers"].split(",")}
    equal(len(workers), 3, "threads of the program that run the io_context")
    parked = {hook: {e["tid"] for e in events if e["event"] in ("span", "pending") and e["hook"] == hook}
              for hook in ("epoll_wait", "pthread_cond_wait")}
    equal(parked["epoll_wait"] | parked["pthread_cond_wait"], workers, "threads that park")
    check(parked["epoll_wait"] and parked["pthread_cond_wait"], "one of the two ways to park was not seen: %s" % parked)
    equal_least(len(waits(events, {"epoll_wait", "pthread_cond_wait"}, workers)), 1000, "waits")
    equal(sum(calls(events, "send", t) for t in workers), int(truth["answers"]), "answers sent")


@harness.test
def glib_counts_as_it_does_itself(box):
    r = both(box, SERVICES["gio"])
    events = recording(box)
    truth = truth_of(r)
    tid = int(truth.pop("tid"))
    for hook, n in truth.items():
        equal(calls(events, hook, tid), int(n), "calls of %s" % hook)
    equal_least(len(waits(events, {"poll"}, {tid})), 1000, "waits")


if __name__ == "__main__":
    harness.main()
