#!/usr/bin/env python3
"""Rust services from Cargo's registry, in release and stripped, under concurrent load: what axum with a pool of database connections, and a tunnel of
somebody else's, answer is the same with and without the recorder; their tasks are told by what the load was."""
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import threading

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import http_load  # noqa: E402
from harness import check, equal, equal_least  # noqa: E402
from services import recording, waits  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
CLIENTS, ROUNDS, REQUESTS = 8, 6, 20  # at once; connections of each, one after the other; requests of each connection


def at_once(client):
    """The answers of all clients, each of which runs in a thread: by client, not by time."""
    answers = [None] * CLIENTS

    def run(number):
        answers[number] = client(number)
    threads = [threading.Thread(target=run, args=(number,)) for number in range(CLIENTS)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(harness.LIMIT)
    check(None not in answers, "a client got no answer")
    return answers


def tasks_of(box, folder, program):
    """What `d9 tasks` says of a stripped program: the one module, patched; every task with its place in the code for a name."""
    doc = json.loads(box.d9("tasks", "--json", folder).out)
    equal([(m["path"], m["state"]) for m in doc["modules"]], [(program, "patched")], "modules")
    tasks = doc["tasks"]
    place = re.compile(re.escape(os.path.basename(program)) + r"\+0x[0-9a-f]+")
    equal([t["name"] for t in tasks if not place.fullmatch(t["name"] or "")], [], "names of tasks in a stripped program")
    return tasks


DO_NOT_WAIT = {"send", "sendto", "recv", "recvfrom", "write", "writev", "read", "readv", "accept4"}  # on what Tokio and mio have open


def kept_from_a_cpu(f):
    """Where others have the CPU, a thread that is kept from it within such a call looks blocked in it, now and then."""
    return f["id"] in ("blocking-call", "driver-starved") and f["cause"]["hook"] in DO_NOT_WAIT and f["count"] < 3


def report_without_blame(box, folder):
    report = json.loads(box.d9("report", "--json", folder).out)
    equal(report["losses"]["dropped_events"], 0, "events lost")
    bad = []
    for f in report["findings"]:
        line = "%s %s (%s): %s" % (f["severity"], f["id"], f["certainty"], f["title"])
        print("# " + line)
        if f["severity"] == "critical" and not kept_from_a_cpu(f):
            bad.append(line)
    equal(bad, [], "said of a healthy service")
    return report


# ---- axum with a pool of connections ----------------------------------------------------------------------------


def web_client(port, number):
    """Puts and gets items of its own, so that the answers do not depend on who came first."""
    got = b""
    for i in range(ROUNDS):
        with socket.create_connection(("127.0.0.1", port), 30) as s, s.makefile("rb") as f:
            s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for k in range(REQUESTS):
                key, text = number * 1000 + k // 2 % 7, b"value %d of %d" % (k, i)
                if k % 2:
                    s.sendall(b"GET /item/%d HTTP/1.1\r\nHost: x\r\n\r\n" % (key + 500 * (k > REQUESTS - 3)))  # the last one is nobody's
                else:
                    s.sendall(b"PUT /item/%d HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n%s" % (key, len(text), text))
                head, body = http_load.read_response(f)
                got += http_load.DATE.sub(b"", head) + body
    return got


def web_pool(box, shim):
    program, port = harness.cargo(os.path.join(HERE, "web_pool"), "web_pool"), harness.free_port()
    p = box.start([program, port, os.path.join(box.path, "items-%d" % shim)], shim=shim)
    http_load.wait_port(port, p)
    answers = at_once(lambda number: web_client(port, number))
    p.send_signal(signal.SIGTERM)
    r = box.finish(p, 60)
    return answers, r.rc, r.out


@harness.test
def axum_before_a_pool_of_connections(box):
    plain, recorded = web_pool(box, False), web_pool(box, True)
    equal(plain[1], 0, "exit code without the recorder")
    check(recorded == plain, "answers or end differ: %s" % [r[1:] for r in (plain, recorded)])
    text = b"".join(plain[0])
    equal((text.count(b" 404 ") > 0, text.count(b" 50")), (True, 0), "items of nobody, and failures")
    connections, requests = CLIENTS * ROUNDS, CLIENTS * ROUNDS * REQUESTS
    events = recording(box)
    tasks = tasks_of(box, box.dir, os.path.join(harness.PROGS, "tokio-target", "release", "web_pool"))
    conns = [t for t in tasks if t["kind"] == "async"]
    jobs = [t for t in tasks if t["kind"] == "blocking"]
    equal_least(len(conns), connections, "tasks for the connections")
    equal_least(len(jobs), requests, "jobs for the requests, each of which asks the database")
    # How one ended whose last poll met the end of the runtime is not known.
    equal([t for t in tasks if t["ended_ns"] is None], [], "tasks that did not end")
    equal([t for t in jobs if t["outcome"] == "ready" and t["polls"] != 1], [], "jobs that were not run once")
    equal_least(sum(t["polls"] for t in conns), requests, "polls")
    equal_least(sum(t["wakes"] for t in conns), requests, "wakes")
    report = report_without_blame(box, box.dir)
    pools = [r for p in report["processes"] for r in p["runtimes"] if r["module"] and not r["runtime"] & 0xFFFFFF]
    equal(sum(r["tasks"] for r in pools), len(jobs), "jobs that the report tells of")
    equal_least(len(waits(events, {"epoll_wait", "futex_wait"})), 100, "waits of the workers")
    print("# %d tasks, %d jobs, %d polls" % (len(conns), len(jobs), sum(t["polls"] for t in tasks)))


# ---- a tunnel, which is a proxy in two processes ----------------------------------------------------------------


def bore():
    """As its users install it, with the lock file that its maker ships: the Tokio in it is 1.28."""
    with open(os.path.join(HERE, "bore", "crate")) as f:
        crate = f.read().strip()
    return os.path.join(harness.cargo_installed("bore", crate), "bin", "bore")


def tunnelled_client(address, port, number):
    got = b""
    for i in range(ROUNDS):
        asked = [b"GET /%d/%d/%d/%s HTTP/1.1\r\nHost: x\r\n\r\n" % (number, i, k, b"x" * 500) for k in range(REQUESTS)]
        got += http_load.lines(port, asked, lambda f: b"".join(http_load.read_response(f)), address)
    return got


def tunnel(box, shim):
    """Answers of a server behind the tunnel; how its two halves end: the one by a signal, the other because the first is gone."""
    program, behind, port = bore(), harness.free_port(), harness.free_port()
    address = "127.%d.%d.%d" % tuple(random.randrange(1, 250) for _ in range(3))  # it listens on one port, which is always the same
    quiet = {"stdout": subprocess.DEVNULL, "shim": shim}
    backend = box.start([os.path.join(harness.PROGS, "epoll_server"), behind], shim=False)
    http_load.wait_port(behind, backend)
    server = box.start([program, "server", "--bind-addr", address, "--min-port", port, "--max-port", port], env={"D9_NAME": "far-end"}, **quiet)
    harness.wait_until(lambda: listens(address, 7835) or server.poll() is not None, "bore server does not listen")
    local = box.start([program, "local", behind, "--local-host", "127.0.0.1", "--to", address, "--port", port], env={"D9_NAME": "near-end"},
                      **quiet)
    harness.wait_until(lambda: listens(address, port) or local.poll() is not None, "bore local made no tunnel")
    answers = at_once(lambda number: tunnelled_client(address, port, number))
    server.send_signal(signal.SIGTERM)
    return answers, box.finish(server).rc, box.finish(local).rc


def listens(address, port):
    with socket.socket() as s:
        return s.connect_ex((address, port)) == 0


@harness.test
def a_tunnel_of_somebody_elses(box):
    plain, recorded = tunnel(box, False), tunnel(box, True)
    equal(plain[1:], (-signal.SIGTERM, 0), "ends without the recorder")
    check(recorded == plain, "answers or ends differ: %s" % [r[1:] for r in (plain, recorded)])
    connections = CLIENTS * ROUNDS
    for end, per_connection in (("far-end", 2), ("near-end", 1)):  # far: the tunnel's connection, and a timer that forgets it
        folder = next((f for f in box.folders() if os.path.basename(f).startswith(end)), None)
        check(folder, "nothing was recorded of %s" % end)
        tasks = [t for t in tasks_of(box, folder, bore()) if t["kind"] == "async"]
        equal_least(len(tasks), connections * per_connection, "tasks of " + end)
        equal_least(sum(t["polls"] for t in tasks), connections * (REQUESTS + 1), "polls of " + end)
        over = [t for t in tasks if t["outcome"] == "ready"]
        equal_least(len(over), connections - CLIENTS, "tasks of %s that ended; a client's last connection may still be open when the far end is" % end)
        report_without_blame(box, folder)
        print("# %s: %d tasks, %d of them over, %d polls" % (end, len(tasks), len(over), sum(t["polls"] for t in tasks)))


harness.main()
