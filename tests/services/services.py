"""The services that tests record: how each is started, asked and ended, and what a recording of it says in numbers."""
import contextlib
import filecmp
import glob
import os
import pwd
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time

import harness
import http_load
from harness import Skip, check, need

HERE = os.path.dirname(os.path.abspath(__file__))
REQUESTS = 3000


def threads_of(pid):
    """{tid: name} of a process, from the kernel; the recorder's own thread is not the program's."""
    found = {}
    for tid in os.listdir("/proc/%d/task" % pid):
        with contextlib.suppress(OSError), open("/proc/%d/task/%s/comm" % (pid, tid)) as f:
            found[int(tid)] = f.read().strip()
    return {tid: name for tid, name in found.items() if name != "d9-drain"}


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


class Postgres:
    """A connection to PostgreSQL: simple queries, the server's messages as they come."""

    def __init__(self, port):
        end = time.monotonic() + 60
        while True:
            self.socket = socket.create_connection(("127.0.0.1", port), 30)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.file = self.socket.makefile("rb")
            hello = struct.pack("!i", 196608) + b"user\0postgres\0database\0postgres\0\0"
            self.socket.sendall(struct.pack("!i", len(hello) + 4) + hello)
            messages = self.messages()
            if not any(kind == b"E" for kind, _ in messages):
                return
            self.close()
            if time.monotonic() > end:
                raise TimeoutError("PostgreSQL is not ready: %r" % messages)
            time.sleep(0.05)  # it listens before it can answer

    def messages(self):
        """Up to ReadyForQuery, or an error that ends the connection."""
        got = []
        while not got or got[-1][0] != b"Z":
            head = self.file.read(5)
            if len(head) < 5:
                return got
            got.append((head[:1], self.file.read(struct.unpack("!i", head[1:])[0] - 4)))
        return got

    def query(self, sql):
        self.socket.sendall(b"Q" + struct.pack("!i", len(sql) + 5) + sql.encode() + b"\0")
        got = self.messages()
        check(got and got[-1][0] == b"Z" and not any(kind == b"E" for kind, _ in got), "%s: %r" % (sql, got))
        return got

    def column(self, sql):
        """The first column of every row."""
        return [body[6:6 + struct.unpack("!i", body[2:6])[0]].decode() for kind, body in self.query(sql) if kind == b"D"]

    def close(self):
        self.file.close()
        self.socket.close()


def ask_postgres(port, requests=REQUESTS):
    """A table for each of four connections; half of the queries write to it."""
    conns = [Postgres(port) for _ in range(4)]
    answers = [m for c in conns for m in c.query("SET synchronous_commit = off; CREATE TEMP TABLE t (k int PRIMARY KEY, v text)")]
    for i in range(4, requests):
        c, k = conns[i % 4], i // 8
        answers += c.query("INSERT INTO t VALUES (%d, 'value %d')" % (k, i) if i // 4 % 2 else "SELECT count(*), max(v) FROM t")
    for c in conns:
        c.close()
    return b"".join(kind + body for kind, body in answers)


# ---- what is built or laid out first ---------------------------------------------------------------------------


def installed(folder, source, steps):
    """A folder beside the test programs that `steps` have filled from the file `source`; filled again only if that changed."""
    path = os.path.join(harness.PROGS, folder)
    stamp = os.path.join(path, "made-from")
    if not os.path.exists(stamp) or not filecmp.cmp(stamp, source, shallow=False):
        shutil.rmtree(path, ignore_errors=True)
        for step in steps(path):
            r = subprocess.run(step, capture_output=True, text=True, timeout=900)
            check(r.returncode == 0, "%s: %s" % (step, (r.stdout + r.stderr)[-2000:]))
        shutil.copy(source, stamp)
    return path


def venv():
    """Python with uvicorn and uvloop from PyPI, as requirements.txt pins them."""
    wanted = os.path.join(HERE, "uvicorn", "requirements.txt")

    def steps(path):
        pip = [os.path.join(path, "bin", "python"), "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary", ":all:"]
        return [sys.executable, "-m", "venv", path], pip + ["--require-hashes", "-r", wanted]
    return os.path.join(installed("uvicorn-venv", wanted, steps), "bin", "python")


def java_classes():
    compiler, source = need("javac"), os.path.join(HERE, "java", "Server.java")
    return installed("java-classes", source, lambda path: [[compiler, "-d", path, source]])


def server(name):
    """A server that was built where its library is there."""
    path = os.path.join(os.path.dirname(harness.PROGS), "services", name)
    if not os.path.exists(path):
        raise Skip("%s was not built" % name)
    return path


def postgres_program(name):
    found = sorted(glob.glob("/usr/lib/postgresql/*/bin/" + name))
    return found[-1] if found else need(name)


def postgres_user():
    """Options for Popen: PostgreSQL refuses root."""
    if os.geteuid():
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise Skip("there is no user postgres") from None
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


def argv_postgres(box, port):
    data = os.path.join(box.path, "data")
    if not os.path.exists(data):
        options = postgres_user()
        if options:
            os.chown(box.path, options["user"], options["group"])
        box.run([postgres_program("initdb"), "-D", data, "-A", "trust", "-U", "postgres", "-N", "--no-locale"], shim=False, rc=0, **options)
    return [postgres_program("postgres"), "-D", data, "-p", port, "-k", box.path, "-c", "listen_addresses=127.0.0.1"]


# ---- the services ----------------------------------------------------------------------------------------------


class Service:
    """argv(box, port); ask(port, requests): the answers; end(pid, port): tells it to end; waits: where it parks; sicken(port): makes
    its loop stand still for 300 ms, and the findings of which one must say so; options(): how else to start it."""

    def __init__(self, argv, ask, end, waits, sicken=None, findings=(), options=dict):
        self.argv, self.ask, self.end, self.waits, self.sicken, self.findings, self.options = argv, ask, end, waits, sicken, findings, options


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


HAPROXY = """
global
  nbthread 3
  maxconn 200
  {drop}
  stats socket {dir}/stats.sock mode 600
defaults
  mode http
  timeout connect 20s
  timeout client 60s
  timeout server 60s
frontend front
  bind 127.0.0.1:{port}
  default_backend answers
backend answers
  server one 127.0.0.1:{behind} pool-max-conn 0
frontend behind
  bind 127.0.0.1:{behind}
  http-request return status 200 content-type text/plain lf-string "hello %[path]"
"""


def argv_haproxy(box, port):
    """A proxy before itself, three threads; as root it changes its root and drops to nobody."""
    program = need("haproxy")
    os.chmod(box.path, 0o755)
    path = os.path.join(box.path, "haproxy.cfg")
    empty = os.path.join(box.path, "empty")
    os.makedirs(empty, exist_ok=True)
    with open(path, "w") as f:
        f.write(HAPROXY.format(dir=box.path, drop="user nobody\n  chroot " + empty if os.geteuid() == 0 else "", port=port,
                               behind=harness.free_port()))
    return [program, "-f", path]


def haproxy_says(box):
    """The numbers of `show info`."""
    with socket.socket(socket.AF_UNIX) as s:
        s.settimeout(30)
        s.connect(os.path.join(box.path, "stats.sock"))
        s.sendall(b"show info\n")
        text = b"".join(iter(lambda: s.recv(65536), b"")).decode()
    return {k: int(v) for k, v in (line.split(": ", 1) for line in text.splitlines() if ": " in line) if v.isdigit()}


def argv_java(_box, port):
    return [need("java"), "-Xmx64m", "-cp", java_classes(), "Server", port]


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
    "haproxy": Service(argv_haproxy, ask_http, end_by_signal(signal.SIGUSR1), {"epoll_wait"}),
    "postgres": Service(argv_postgres, ask_postgres, end_by_signal(signal.SIGINT), {"epoll_wait"}, options=postgres_user),
    "uvicorn": Service(lambda _box, port: [venv(), os.path.join(HERE, "uvicorn", "server.py"), port], ask_http, end_by_request,
                       {"epoll_wait", "epoll_pwait"}, sicken_http, {"blocking-call", "driver-starved"}),
    "java": Service(argv_java, ask_http, end_by_request, {"epoll_wait"}),
    "asio": Service(lambda _box, port: [server("asio_server"), port], ask_http, end_by_request, {"epoll_wait", "pthread_cond_wait"},
                    sicken_http, {"blocking-call", "driver-starved"}),
    "gio": Service(lambda _box, port: [server("gio_server"), port], ask_http, end_by_request, {"poll"}, sicken_http, {"blocking-call"}),
}


# ---- runs ------------------------------------------------------------------------------------------------------


class Run:
    """One run of a service: what it answered, how it ended, what the kernel said of its threads."""

    def __init__(self, answers, rc, out, pid, seen):
        self.answers, self.rc, self.out, self.pid, self.seen = answers, rc, out, pid, seen


def run(box, shim, service, load=None, look=threads_of, prefix=()):
    """load(port) instead of the service's own; look(pid): what to note while it runs; prefix: a command to start it with."""
    port = box.port = harness.free_port()
    p = box.start(list(prefix) + service.argv(box, port), shim=shim, **service.options())
    http_load.wait_port(port, p)
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
