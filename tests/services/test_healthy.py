#!/usr/bin/env python3
"""Services that do nothing wrong, under a steady load, alone and on a machine with twice as many busy programs as CPUs: the
report must not blame them.  Then the service is made to stand still, and the same report must say so: it is not mute."""
import os
import subprocess
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, os.path.join(sys.path[0], "kernel"))
import harness  # noqa: E402
import http_load  # noqa: E402
import kernel  # noqa: E402
from harness import check, equal, equal_least, said  # noqa: E402
from services import SERVICES, recording, waits  # noqa: E402

SECONDS = 4
CLIENTS = 3
MACHINES = {"kernel-delay", "noisy-neighbour"}  # where others have the CPUs they are true, and no fault of the service's
IDLE_CPUS = 1.0  # as many in the mean, and no thread can have waited long
BATCH = 200  # requests over connections that are then made anew


def client(service, port, until, done):
    while time.monotonic() < until:
        service.ask(port, BATCH)
        done.append(BATCH)
        time.sleep(0.01)  # steady, not saturating


def steady_load(service, port):
    """How many requests were answered."""
    done = []
    until = time.monotonic() + SECONDS
    clients = [threading.Thread(target=client, args=(service, port, until, done)) for _ in range(CLIENTS)]
    for c in clients:
        c.start()
    for c in clients:
        c.join(harness.LIMIT)
        check(not c.is_alive(), "the service does not answer")
    return sum(done)


def judge(box, name, both_sides=False):
    """both_sides: d9-kernel watches too; what the recorder alone knows must then be as true."""
    service = SERVICES[name]
    port = harness.free_port()
    p = box.start(service.argv(box, port), **service.options())
    http_load.wait_port(port, p)
    helper = kernel.start(box, "--session", box.dir) if both_sides else None
    began, idle = time.monotonic(), harness.idle_seconds()
    answered = steady_load(service, port)
    idle = (harness.idle_seconds() - idle) / (time.monotonic() - began)
    sick_from = time.monotonic_ns()
    if service.sicken:
        service.sicken(port)
    service.end(p.pid, port)
    equal(box.finish(p, 60).rc, 0, "exit code")
    equal_least(answered, CLIENTS * BATCH, "requests answered")
    if helper:
        kernel.stop(box, helper)
        check('"schedstat_ns"' in box.d9("runq", "--json", box.dir).out, "the kernel's side saw no thread")
        print("# %s: %.2f CPUs idle" % (name, idle))
        judge_report(box, service, sick_from, set() if idle >= IDLE_CPUS else MACHINES)
        kernel.forget(box)
    equal_least(len(waits(recording(box), service.waits)), 100, "waits")
    judge_report(box, service, sick_from)


def judge_report(box, service, sick_from, but=()):
    bad = [f for f in box.findings() if f["severity"] in ("critical", "warning")]
    false = said(f for f in bad if f["from_ns"] < sick_from and f["id"] not in but)
    check(not false, "said of a healthy service:\n" + "\n".join(false))
    if service.sicken:
        ids = {f["id"] for f in bad}
        check(service.findings & ids, "it stood still, and all that was said is %s" % ids)


# Not java: a virtual machine stops all its threads now and then.  Not postgres: each backend's first query computes for 10 ms.
HEALTHY = [name for name in SERVICES if name not in ("java", "postgres")]
# Not haproxy: where others have the CPU, a thread that is kept from it within a send looks blocked in it; there are three a request.
HEALTHY_AND_BUSY = [name for name in HEALTHY if name != "haproxy"]


@harness.parametrise(HEALTHY)
def a_healthy_service_is_not_blamed(box, name):
    judge(box, name, both_sides=kernel.refused_here() is None)


@harness.parametrise(HEALTHY_AND_BUSY)
def nor_on_a_busy_machine(box, name):
    for _ in range(2 * (os.cpu_count() or 1)):
        box.start([os.path.join(harness.PROGS, "busy")], shim=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    judge(box, name)


harness.main()
