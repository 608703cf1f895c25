"""The services that tests record: how each is started, asked and ended, and what a recording of it says in numbers."""
import contextlib
import os
import shutil
import signal
import sys

import harness
import http_load
from harness import Skip, check

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


# ---- the protocols ---------------------------------------------------------------------------------------------


def get(port, path):
    return http_load.lines(port, [b"GET %s HTTP/1.1\r\nHost: x\r\n\r\n" % path], lambda f: b"".join(http_load.read_response(f)))


def ask_http(port, requests=REQUESTS):
    return http_load.http(port, requests, 4)


def resp(f):
    line = f.readline()
    if line[:1] == b"$" and line != b"$-1\r\n":
        line += f.read(int(line[1:]) + 2)
    return line


def ask_redis(port, requests=REQUESTS):
    commands = []
    for i in range(requests // 2):
        commands += [b"SET key%d value%d\r\n" % (i, i), b"GET key%d\r\n" % i]
    return http_load.lines(port, commands, resp)


def memcached_answer(f):
    out = f.readline()
    if out.startswith(b"VALUE"):
        out += f.readline() + f.readline()
    return out


def ask_memcached(port, requests=REQUESTS):
    commands = []
    for i in range(requests // 2):
        commands += [b"set k%d 0 0 4\r\nabcd\r\n" % i, b"get k%d\r\n" % i]
    return b"".join(http_load.lines(port, commands[part::4], memcached_answer) for part in range(4))  # a connection for each worker


# ---- the services ----------------------------------------------------------------------------------------------


class Service:
    """argv(box, port); ask(port, requests): the answers; end(pid, port): tells it to end; waits: where it parks; sicken(port): makes
    its loop stand still for 300 ms, and the findings of which one must say so."""

    def __init__(self, argv, ask, end, waits, sicken=None, findings=()):
        self.argv, self.ask, self.end, self.waits, self.sicken, self.findings = argv, ask, end, waits, sicken, findings


def end_by_signal(number):
    return lambda pid, _port: os.kill(pid, number)


def end_by_request(_pid, port):
    with contextlib.suppress(EOFError, OSError):
        get(port, b"/quit")


def end_redis(_pid, port):
    with contextlib.suppress(OSError):
        http_load.lines(port, [b"SHUTDOWN NOSAVE\r\n"], resp)


def sicken_http(port):
    get(port, b"/slow")


def sicken_redis(port):
    http_load.lines(port, [b"DEBUG SLEEP 0.3\r\n"], resp)


def argv_redis(box, port):
    return [need("redis-server"), "--port", port, "--bind", "127.0.0.1", "--save", "", "--dir", box.path, "--enable-debug-command", "yes"]


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


def argv_nginx(box, port):
    server = need("nginx")
    os.chmod(box.path, 0o755)
    path = os.path.join(box.path, "nginx.conf")
    with open(path, "w") as f:
        f.write(NGINX.format(dir=box.path, user="user www-data;" if os.geteuid() == 0 else "", port=port))
    return [server, "-p", box.path, "-c", path]


def argv_memcached(box, port):
    os.chmod(box.path, 0o755)
    user = ["-u", "nobody"] if os.geteuid() == 0 else []
    return [need("memcached"), "-l", "127.0.0.1", "-p", port, "-U", "0", "-t", "4"] + user


SERVICES = {
    "redis": Service(argv_redis, ask_redis, end_redis, {"epoll_wait"}, sicken_redis, {"blocking-call"}),
    "nginx": Service(argv_nginx, ask_http, end_by_signal(signal.SIGTERM), {"epoll_wait"}),
    "memcached": Service(argv_memcached, ask_memcached, end_by_signal(signal.SIGINT), {"epoll_wait"}),
    "node": Service(lambda _box, port: [need("node"), os.path.join(HERE, "server.js"), port], ask_http, end_by_request, {"epoll_pwait"},
                    sicken_http, {"long-poll"}),
    "asyncio": Service(lambda _box, port: [os.path.realpath(sys.executable), os.path.join(HERE, "server.py"), port], ask_http,
                       end_by_request, {"epoll_wait"}, sicken_http, {"blocking-call"}),
    "epoll": Service(lambda _box, port: [os.path.join(harness.PROGS, "epoll_server"), port], ask_http, end_by_request, {"epoll_wait"},
                     sicken_http, {"blocking-call"}),
    "tokio": Service(lambda _box, port: [harness.cargo(os.path.join(HERE, "tokio_http"), "tokio_http"), port], ask_http, end_by_request,
                     {"epoll_wait", "futex_wait"}, sicken_http, {"blocking-call", "driver-starved"}),
}


# ---- runs ------------------------------------------------------------------------------------------------------


class Run:
    """One run of a service: what it answered, how it ended, what the kernel said of its threads."""

    def __init__(self, answers, rc, out, pid, seen):
        self.answers, self.rc, self.out, self.pid, self.seen = answers, rc, out, pid, seen


def run(box, shim, service, load=None, look=threads_of, prefix=()):
    """load(port) instead of the service's own; look(pid): what to note while it runs; prefix: a command to start it with."""
    port = harness.free_port()
    p = box.start(list(prefix) + service.argv(box, port), shim=shim)
    http_load.wait_port(port)
    answers = (load or service.ask)(port)
    seen = look(p.pid)
    service.end(p.pid, port)
    r = box.finish(p, 60)
    return Run(answers, r.rc, r.out, p.pid, seen)


def both(box, service, look=threads_of):
    """Without and with the recorder; the two must not differ."""
    plain = run(box, False, service, look=look)
    recorded = run(box, True, service, look=look)
    harness.equal(recorded.rc, plain.rc, "exit code")
    check(recorded.answers == plain.answers, "the answers differ: %d and %d bytes" % (len(recorded.answers), len(plain.answers)))
    check(len(plain.answers) > REQUESTS, "the load got no answers")
    return recorded


# ---- recordings ------------------------------------------------------------------------------------------------


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
