#!/usr/bin/env python3
"""One program for each family of hooks; the recording must hold what the program printed, each once, and nothing else."""
import json
import os
import shutil
import socket
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import D9, PROGS, Skip, check, compare, equal, last_line_of_a_daemon, main, need_command, need_root, parametrise, test, wait_until

FAMILIES = ["event_wait", "futex", "cond", "cond_old", "mutex", "rwlock", "join", "c11", "sem", "accept_connect", "recv_send", "read_write", "transfers",
            "open", "files", "sync", "sleep", "signals", "stdio", "dns", "fortify", "uring_new"]


def program(name):
    path = os.path.join(PROGS, name)
    if not os.path.exists(path):
        raise Skip("%s was not built" % name)
    return path


@parametrise(FAMILIES)
def slow_calls_are_spans_and_fast_ones_are_counted(box, name):
    r = box.run([program(name)], rc=0)
    compare(r, box.events())
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())


@parametrise(FAMILIES)
def every_call_is_a_span_if_asked(box, name):
    r = box.run([program(name)], env={"D9_IO_MIN_US": "0"}, rc=0)
    compare(r, box.events(), all_io=True)


@parametrise(FAMILIES)
def the_program_behaves_without_the_recorder(box, name):
    box.run([program(name)], shim=False, rc=0)


@test
def threads_and_their_names(box):
    r = box.run([program("thread")], rc=0)
    compare(r, box.events() + [e for e in box.meta() if e["event"] == "thread"])


@test
def fork_and_exec(box):
    r = box.run([program("fork_exec")], rc=0)
    family = box.meta(next(f for f in box.folders() if os.path.basename(f).startswith("fork_exec")))
    compare(r, [e for e in family if e["event"] in ("span", "calls", "gap", "exec") and e["pid"] == r.pid])
    for line in r.lines("PROC"):
        ends = [e for e in family if e["event"] == "exit" and e["pid"] == int(line["pid"])]
        check([e["how"] for e in ends] == [int(line["how"])], "the end of %s: %s" % (line, ends))


@parametrise(["%s%s" % (name, limit) for name in ("children", "children_old") for limit in ("", " D9_IO_MIN_US=0")])
def children(box, case):
    name, *limit = case.split()
    r = box.run([program(name)], env=dict(word.split("=") for word in limit), rc=0)
    family = box.meta(next(f for f in box.folders() if os.path.basename(f).startswith(name + "-")))
    compare(r, [e for e in family if e.get("pid") == r.pid and e["event"] in ("span", "calls", "gap", "pending")], bool(limit))


@test
def the_parent_of_a_daemon_ends_by_exit(box):
    said = os.path.join(box.path, "said")
    r = box.run([program("daemon"), said, "daemon"], rc=0)
    last_line_of_a_daemon(said)
    ends = [e for e in box.meta() if e["event"] == "exit" and e["pid"] == r.pid]
    check([(e["how"], e["code"]) for e in ends] == [(2, 0)], "the end of the parent: %s" % ends)
    check(not [e for e in box.events() if e["event"] == "pending"], "the parent's daemon is shown as a wait")


class NameServer(threading.Thread):
    """Answers after 60 ms: d9.test is 192.0.2.1, nothing else is known."""
    ADDRESS = "127.9.8.7"

    def __init__(self):
        super().__init__(daemon=True)
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        try:
            self.socket.bind((self.ADDRESS, 53))
        except OSError as e:
            raise Skip("no name server at %s: %s" % (self.ADDRESS, e)) from None

    def run(self):
        while True:
            query, peer = self.socket.recvfrom(512)
            time.sleep(0.06)
            known = b"\2d9\4test\0" in query
            answer = b"\xc0\x0c\0\1\0\1\0\0\0\x3c\0\4\xc0\0\2\1" if known else b""
            end = query.index(b"\0", 12) + 5
            flags = b"\x81\x80" if known else b"\x81\x83"
            self.socket.sendto(query[:2] + flags + b"\0\1" + (b"\0\1" if known else b"\0\0") + b"\0\0\0\0" + query[12:end] + answer, peer)


@test
def names_over_the_network(box):
    need_root()
    if not shutil.which("unshare") or subprocess.run(["unshare", "-m", "true"], check=False, capture_output=True).returncode:
        raise Skip("no mount namespace of one's own")
    NameServer().start()
    conf = os.path.join(box.path, "resolv.conf")
    with open(conf, "w", encoding="utf-8") as f:
        f.write("nameserver %s\n" % NameServer.ADDRESS)
    script = "mount --bind %s /etc/resolv.conf && LD_PRELOAD=%s exec %s network" % (conf, box.env().get("LD_PRELOAD", ""), program("dns"))
    r = box.run(["unshare", "-m", "sh", "-c", script], shim=False, rc=0)
    compare(r, box.events())
    need_command("spans")
    spans = box.document("spans", "--kind", "dns")["spans"]
    check(len(spans) == 5 and all(s["stack"] for s in spans), "lookups and their stacks: %s" % spans)


@test
def identity(box):
    need_root()
    r = box.run([program("identity")], env={"D9_HOOKS": "epoll"}, rc=0)
    compare(r, box.events())


def ring_program(box, name, *words, env=None):
    """What it printed, and what the report says of its ring."""
    r = box.run([program(name), *words], env=env)
    if r.rc == 77:
        raise Skip(r.out.strip())
    check(r.rc == 0, "%s: exit %d\n%s%s" % (name, r.rc, r.out[-2000:], r.err[-2000:]))
    need_command("report")
    report = box.document("report")
    return r, [u["detail"] for u in report["unseen"] if u["what"] == "io-uring"]


@parametrise(["%s%s" % (name, limit) for name in ("uring", "uring_syscall") for limit in ("", " D9_IO_MIN_US=0")])
def rings(box, case):
    name, *limit = case.split()
    r, told = ring_program(box, name, env=dict(word.split("=") for word in limit))
    compare(r, box.events(), bool(limit))
    check(len(told) == 1 and "pid %d uses io_uring" % r.pid in told[0] and "instruction" not in told[0], "said of it: %s" % told)


@test
def a_ring_past_the_hooks_is_told(box):
    r, told = ring_program(box, "uring_static")
    compare(r, box.events())
    check(len(told) == 1 and "pid %d has an io_uring, and no call" % r.pid in told[0], "said of it: %s" % told)
    check(told[0].endswith("io_uring_enter is an instruction in uring_static"), "the file: %s" % told)


@parametrise(["uring seen", "uring_static not"])
def a_ring_is_told_while_it_runs(box, case):
    name, word = case.split()
    p = box.start([program(name), "stay"])

    def told():
        if p.poll() is not None:
            raise Skip("no io_uring here") if p.returncode == 77 else AssertionError("it ended: %d" % p.returncode)
        out = box.run([D9, "status", "--json", box.dir], shim=False).out
        lines = [w for s in json.loads(out or "{}").get("processes", []) for w in s["warnings"] if "io_uring" in w]
        return lines if any(("are seen" in w) == (word == "seen") for w in lines) else None
    equal(len(wait_until(told, "status never told of the ring")), 1, "lines about it")


@parametrise(["recorded", "bare"])
def a_program_without_liburing_sees_none(box, how):
    r = box.run([program("uring_late")], shim=how == "recorded", rc=0)
    if how == "recorded":
        compare(r, box.events())


@parametrise(["abi", "abi_nopie"])
def runtime_abi(box, name):
    r = box.run([program(name), "recorded"], rc=0)
    compare(r, box.events())
    types = [e for e in box.meta() if e["event"] == "custom_type"]
    check([t["text"] for t in types] == ["order\0id:u64,delta:i64,what:str"], "types declared: %s" % types)


@parametrise(["abi", "abi_nopie"])
def runtime_abi_without_a_recorder(box, name):
    box.run([program(name)], shim=False, rc=0)


main()
