#!/usr/bin/env python3
"""Real services under a load that ends by itself: the same answers and the same end with and without the recorder, and a
recording whose threads and counts are the service's own."""
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import http_load  # noqa: E402
from harness import Skip, check, equal  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
REQUESTS = 3000


def need(program):
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if not path:
        raise Skip("%s is not installed" % program)
    return path


def threads_of(pid):
    """{tid: name} of a process, from the kernel."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            found[int(tid)] = f.read().strip()
    return found


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


class Run:
    """One run of a service: what it answered, how it ended, what the kernel said of its threads."""

    def __init__(self, answers, rc, out, pid, threads):
        self.answers, self.rc, self.out, self.pid, self.threads = answers, rc, out, pid, threads


def run(box, shim, argv, port, load, stop, look=None, env=None, **options):
    """look(pid): what to note while it runs; stop(pid): how it is told to end."""
    p = box.start(argv, env=env, shim=shim, **options)
    http_load.wait_port(port)
    answers = load(port)
    seen = look(p.pid) if look else threads_of(p.pid)
    stop(p.pid)
    r = box.finish(p, 60)
    return Run(answers, r.rc, r.out, p.pid, seen)


def both(box, make_argv, load, stop, **kw):
    """Without and with the recorder; the two must not differ."""
    port = harness.free_port()
    plain = run(box, False, make_argv(port), port, load, stop, **kw)
    port = harness.free_port()
    recorded = run(box, True, make_argv(port), port, load, stop, **kw)
    equal(recorded.rc, plain.rc, "exit code")
    check(recorded.answers == plain.answers, "the answers differ: %d and %d bytes" % (len(recorded.answers), len(plain.answers)))
    check(len(plain.answers) > REQUESTS, "the load got no answers")
    return recorded


def get_quit(port):
    with contextlib.suppress(EOFError, OSError):
        http_load.lines(port, [b"GET /quit HTTP/1.1\r\nHost: x\r\n\r\n"], lambda f: b"".join(http_load.read_response(f)))


def load_http(port):
    answers = http_load.http(port, REQUESTS, 4)
    get_quit(port)
    return answers


def nothing(_pid):
    """The load's last request ends the service."""


def waits(events, hooks, tids=None):
    return [e for e in events if e["event"] == "span" and e["hook"] in hooks and (tids is None or e["tid"] in tids)]


def calls(events, hook, tid=None):
    """Calls of a hook: spans and what was only counted."""
    n = sum(1 for e in events if e["event"] == "span" and e["hook"] == hook and tid in (None, e["tid"]))
    last = {}
    for e in events:
        if e["event"] == "calls" and e["hook"] == hook and tid in (None, e["tid"]):
            last[(e["pid"], e["tid"])] = e["count"]
    return n + sum(last.values())


def recording(box):
    events = box.events()
    check(events, "nothing was recorded")
    check(not [e for e in events if e["event"] == "gap"], "events were lost")
    check(min(e["t_ns"] for e in events) > 0 and any(e["dur_ns"] for e in events if e["event"] == "span"), "times that stand still")
    return events


def equal_least(got, least, what):
    check(got >= least, "%s: %d, not %d or more" % (what, got, least))


# ---- the services ------------------------------------------------------------------------------------------


@harness.test
def epoll_server_counts_as_it_does_itself(box):
    server = os.path.join(harness.PROGS, "epoll_server")
    r = both(box, lambda port: [server, port], load_http, nothing, look=lambda pid: {})
    events = recording(box)
    truth = dict(w.split("=") for w in r.out.split()[1:])
    tid = int(truth.pop("tid"))
    for hook, n in truth.items():
        equal(calls(events, hook, tid), int(n), "calls of %s" % hook)
    equal_least(len(waits(events, {"epoll_wait"}, {tid})), 1000, "waits")


@harness.test
def epoll_server_counts_as_strace_does(box):
    server = os.path.join(harness.PROGS, "epoll_server")
    need("strace")
    port = harness.free_port()
    summary = os.path.join(box.path, "strace")
    argv = ["strace", "-f", "-c", "-U", "calls,name", "-o", summary]
    if harness.MUTANT != "absent":
        argv += ["-E", "LD_PRELOAD=" + harness.SHIM]
    run(box, False, argv + [server, port], port, load_http, nothing, look=lambda pid: {})
    counted = {}
    with open(summary) as f:
        for words in (line.split() for line in f):
            if len(words) == 2 and words[0].isdigit():
                counted[words[1]] = int(words[0])
    events = recording(box)
    for hook in ("epoll_wait", "accept4"):
        equal(calls(events, hook), counted[hook], "calls of %s" % hook)


def resp(f):
    line = f.readline()
    if line[:1] == b"$" and line != b"$-1\r\n":
        line += f.read(int(line[1:]) + 2)
    return line


def load_redis(port):
    commands = []
    for i in range(REQUESTS // 2):
        commands += [b"SET key%d value%d\r\n" % (i, i), b"GET key%d\r\n" % i]
    answers = http_load.lines(port, commands, resp)
    with contextlib.suppress(OSError):
        http_load.lines(port, [b"SHUTDOWN NOSAVE\r\n"], resp)
    return answers


@harness.test
def redis(box):
    server = need("redis-server")
    r = both(box, lambda port: [server, "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", box.path], load_redis, nothing,
             look=lambda pid: {})
    events = recording(box)
    equal_least(len(waits(events, {"epoll_wait"}, {r.pid})), 1000, "waits of the main thread")
    # One write for each answer; SHUTDOWN has none.
    writes = calls(events, "write", r.pid)
    check(REQUESTS <= writes <= REQUESTS + 30, "writes of the main thread: %d for %d answers" % (writes, REQUESTS))
    parked = {e["tid"] for e in events if e["event"] in ("span", "pending") and e["hook"].startswith("pthread_cond")}
    equal_least(len(parked - {r.pid}), 1, "background threads that park on a condition")


NGINX = """
worker_processes 2;
daemon off;
pid {dir}/nginx.pid;
error_log {dir}/error.log;
{user}
events {{ worker_connections 256; }}
http {{
  access_log {dir}/access.log;
  client_body_temp_path {dir}/body; proxy_temp_path {dir}/proxy; fastcgi_temp_path {dir}/fastcgi;
  uwsgi_temp_path {dir}/uwsgi; scgi_temp_path {dir}/scgi;
  keepalive_requests 100000;
  server {{ listen 127.0.0.1:{port}; location / {{ return 200 "hello $uri"; }} }}
}}
"""


@harness.test
def nginx_master_and_workers(box):
    server = need("nginx")
    user = "user www-data;" if os.geteuid() == 0 else ""
    os.chmod(box.path, 0o755)

    def argv(port):
        path = os.path.join(box.path, "nginx.conf")
        with open(path, "w") as f:
            f.write(NGINX.format(dir=box.path, user=user, port=port))
        return [server, "-p", box.path, "-c", path]

    r = both(box, argv, lambda port: http_load.http(port, REQUESTS, 8), lambda pid: os.kill(pid, signal.SIGTERM), look=children_of)
    events = recording(box)
    equal(len(r.threads), 2, "workers of the program")
    parked = {e["pid"] for e in waits(events, {"epoll_wait"})}
    equal(sorted(parked), sorted(r.threads), "processes that park in epoll_wait")
    equal_least(len(waits(events, {"epoll_wait"})), 1000, "waits")
    check(waits(events, {"sigsuspend"}, {r.pid}) or [e for e in events if e["event"] == "pending" and e["hook"] == "sigsuspend"],
          "the master was not seen in sigsuspend")
    equal(sum(1 for e in events if e["event"] == "span" and e["hook"] == "fork" and e["result"] in r.threads), 2, "forks of workers")
    with open(os.path.join(box.path, "access.log")) as f:
        equal(sum(1 for _ in f), 2 * REQUESTS, "requests that nginx logged in both runs")
    if user:
        drops = {e["pid"] for e in events if e["event"] == "span" and e["hook"] in ("setuid", "initgroups")}
        equal(sorted(drops), sorted(r.threads), "workers that changed their user")


def memcached_answer(f):
    out = f.readline()
    if out.startswith(b"VALUE"):
        out += f.readline() + f.readline()
    return out


def load_memcached(port):
    commands = []
    for i in range(REQUESTS // 2):
        commands += [b"set k%d 0 0 4\r\nabcd\r\n" % i, b"get k%d\r\n" % i]
    answers = b""
    for part in range(4): # a connection for each worker
        answers += http_load.lines(port, commands[part::4] if part % 2 == 0 else commands[part::4], memcached_answer)
    return answers


@harness.test
def memcached_workers_as_nobody(box):
    server = need("memcached")
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    os.chmod(box.path, 0o755)
    r = both(box, lambda port: [server, "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "4"] + user, load_memcached,
             lambda pid: os.kill(pid, signal.SIGINT))
    events = recording(box)
    workers = {tid for tid, name in r.threads.items() if name.startswith("mc-worker")}
    equal(len(workers), 4, "workers of the program")
    seen = {e["tid"] for e in events if e["event"] in ("span", "pending") and e["hook"] == "epoll_wait"}
    equal(sorted(seen - {r.pid}), sorted(workers), "threads that park in epoll_wait")
    equal_least(len(waits(events, {"epoll_wait"}, workers)), 1000, "waits of the workers")
    equal(sum(calls(events, "sendmsg", t) for t in workers), REQUESTS, "answers sent")


@harness.test
def node(box):
    program = need("node")
    r = both(box, lambda port: [program, os.path.join(HERE, "server.js"), port], load_http, nothing, look=lambda pid: {})
    events = recording(box)
    equal_least(len(waits(events, {"epoll_pwait"}, {r.pid})), 1000, "waits of the loop")
    pool = {e["tid"] for e in events if e["event"] in ("span", "pending") and e["hook"] == "pthread_cond_wait"}
    equal_least(len(pool - {r.pid}), 4, "threads of the pool")


@harness.test
def python_asyncio(box):
    r = both(box, lambda port: [os.path.realpath(sys.executable), os.path.join(HERE, "server.py"), port], load_http, nothing,
             look=lambda pid: {})
    events = recording(box)
    equal_least(len(waits(events, {"epoll_wait"}, {r.pid})), 1000, "waits of the loop")
    equal(calls(events, "send", r.pid), REQUESTS + 1, "answers sent")


@harness.test
def tokio_http(box):
    server = harness.cargo(os.path.join(HERE, "tokio_http"), "tokio_http")
    r = both(box, lambda port: [server, port], load_http, nothing, look=lambda pid: {})
    events = recording(box)
    workers = {int(t) for t in r.out.split("workers=")[1].split(",")}
    equal(len(workers), 3, "workers of the program")
    parked = {e["tid"] for e in waits(events, {"epoll_wait", "futex_wait"})}
    check(workers <= parked, "workers %s, but only %s park" % (sorted(workers), sorted(parked)))
    equal(sorted({e["tid"] for e in waits(events, {"epoll_wait"})} - workers), [], "threads in epoll_wait that are no workers")
    equal_least(len(waits(events, {"epoll_wait", "futex_wait"}, workers)), 1000, "waits of the workers")
    equal(sum(calls(events, hook) for hook in ("send", "sendto")), REQUESTS + 1, "answers sent")


if __name__ == "__main__":
    harness.main()
