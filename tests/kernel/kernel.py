"""What the tests of d9-kernel share: starting it beside a program, and its recording."""
import functools
import os
import signal
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import LIMIT, PROGS, Result, Skip, check, equal, need, need_root, wait_until

KERNEL = os.environ.get("D9_KERNEL", "")
MUTANT = os.environ.get("D9_KERNEL_MUTANT", "")


@functools.lru_cache
def refused():
    """What d9-kernel says where it may not, as in a container; None: it may."""
    with tempfile.TemporaryDirectory() as folder:
        p = subprocess.Popen([KERNEL, "--pid", str(os.getpid()), "--dir", folder], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        ready = p.stdout.readline() == "ready\n"
        p.send_signal(signal.SIGTERM)
        said = p.communicate(timeout=LIMIT)[1]
        return said.strip() if not ready and p.returncode == 4 else None


def refused_here():
    """Why there can be no kernel's side here; None: there can."""
    if os.geteuid():
        return "needs to be root"
    if not KERNEL:
        return "d9-kernel is not in this build (clang, llvm, bpftool, libbpf)"
    if not os.access("/sys/kernel/btf/vmlinux", os.R_OK):
        return "this kernel has no BTF"
    return refused()


def need_kernel():
    if refused_here():
        raise Skip(refused_here())


class Program:
    """A test program that begins when it is told to, says things, and waits for another byte before it ends."""

    def __init__(self, box, name, *args, argv=None, env=None, shim=False):
        self.path = os.path.join(box.path, "%s-%d" % (name, len(box.procs)))
        with open(self.path, "w") as out:
            self.p = box.start(argv or [os.path.join(PROGS, name), *args], env=env, shim=shim, stdin=-1, stdout=out)
        self.pid = self.p.pid

    def go(self):
        self.p.stdin.write("x")
        self.p.stdin.flush()

    def said(self):
        with open(self.path) as f:
            return Result(0, f.read(), "", self.pid)

    def lines(self, kind, n=1):
        """Its lines of that kind, once there are n."""
        wait_until(lambda: len(self.said().lines(kind)) >= n or self.p.poll() is not None, "the program does not say %s" % kind, LIMIT)
        lines = self.said().lines(kind)
        check(len(lines) >= n, "the program ended with %s and said %d of %d %s" % (self.p.poll(), len(lines), n, kind))
        return lines


def chatter(box):
    program = Program(box, "kernel_family", "chatter")
    wait_until(lambda: "CHATTERS" in program.said().out, "it does not begin")
    return program


def start(box, *options, binary=None, folder=None, wrap=(), env=None):
    """d9-kernel, ready."""
    os.makedirs(os.path.dirname(folder or box.dir), exist_ok=True)
    p = box.start([*wrap, binary or KERNEL, "--dir", folder or box.dir, *options], shim=False, env=env)
    line = p.stdout.readline()
    if line != "ready\n":
        p.wait(LIMIT)
        raise AssertionError("d9-kernel says %r and ends with %s: %s" % (line, p.returncode, p.stderr.read()))
    return p


def refuses(box, rc, words, *argv, binary=None, wrap=(), env=None):
    """It records nothing: says so in one sentence that has those words, with that exit code, and leaves nothing in its folder."""
    folder = os.path.join(box.path, "refused")
    os.makedirs(folder, exist_ok=True)
    r = box.run([*wrap, binary or KERNEL, *argv, *["--dir", folder] * ("--dir" not in argv)], shim=False, env=env)
    told = "%s %s: exit %d, %r" % (wrap, argv, r.rc, r.err)
    check(r.rc == rc and words in r.err and r.err.startswith("d9-kernel: ") and r.err.count("\n") == 1, "%s, not %d and %r" % (told, rc, words))
    equal((r.out, os.listdir(folder)), ("", []), "stdout, and what it left")
    return r


def with_mounts(*commands):
    """What stands before a command that runs where these were done, and nobody else sees them."""
    return [need("unshare"), "--mount", "sh", "-ec", "; ".join((*commands, 'exec "$@"')), "sh"]


# A filter that answers bpf() with an error, as a container's does.
FILTERED = """
import ctypes, os, struct, sys
code = [(0x20, 0, 0, 0), (0x15, 0, 1, 321), (6, 0, 0, 0x50000 | int(sys.argv[1])), (6, 0, 0, 0x7fff0000)]
lines = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in code))
if ctypes.CDLL(None).prctl(22, 2, struct.pack("HxxxxxxQ", len(code), ctypes.addressof(lines))):
    sys.exit("no seccomp")
os.execv(sys.argv[2], sys.argv[2:])
"""


def without_bpf(error):
    return [sys.executable, "-c", FILTERED, str(error)]


def stop(box, p):
    """Ends it as a person does; what it said."""
    p.send_signal(signal.SIGTERM)
    r = box.finish(p)
    check(r.rc == 0, "d9-kernel ended with %d: %s" % (r.rc, r.err))
    return r


def of(events, name, **fields):
    return [e for e in events if e["event"] == name and all(e.get(k) == v for k, v in fields.items())]


def threads(events):
    """{id: its last definition}, with what the kernel calls it."""
    known = {e["id"]: e for e in of(events, "thread")}
    for e in of(events, "kernel_thread"):
        known[e["id"]] = dict(known[e["id"]], kernel_tid=e["tid"], kernel_pid=e["pid"])
    return known


def totals(events):
    """{tid: its last runq_total}"""
    return {e["tid"]: e for e in of(events, "runq_total")}


def buckets(total):
    data = bytes.fromhex(total.get("buckets", ""))
    return [int.from_bytes(data[i:i + 8], "little") for i in range(0, len(data), 8)]


def forget(box):
    """What d9-kernel recorded beside the recorder is gone."""
    for folder in box.folders():
        for name in files(folder):
            os.unlink(os.path.join(folder, name))


def files(folder):
    return sorted(n for n in os.listdir(folder) if n.startswith("k-"))


# ---- control groups ----------------------------------------------------------------------------------------


def made_group(path):
    try:
        os.mkdir(path)
    except OSError:
        return False
    if os.path.exists(path + "/cgroup.procs"):
        return True
    os.rmdir(path)  # what is mounted there holds the groups of version 1
    return False


def removed_group(path):
    try:
        os.rmdir(path)
        return True
    except OSError:
        return False


def a_group_of_ours(name):
    """A control group of version 2 or 1 that may have a CPU quota."""
    name = "d9-%s-%d" % (name, os.getpid())
    found = next((g for g in ("/sys/fs/cgroup/" + name, "/sys/fs/cgroup/cpu/" + name) if made_group(g)), None)
    if not found:
        raise Skip("control groups cannot be made here")
    return found


def set_quota(group, us):
    """So many microseconds in 100 ms; False: it cannot have one."""
    for name, value in (("cpu.max", "%d 100000" % us), ("cpu.cfs_quota_us", str(us))):
        if os.path.exists(group + "/" + name):
            with open(group + "/" + name, "w") as f:
                f.write(value)
            return True
    return False


def throttled(group):
    with open(group + "/cpu.stat") as f:
        return int(dict(line.split() for line in f)["nr_throttled"])


def joins(group, argv):
    """The command, as one that is in the group from its start; None: as it is."""
    return ["sh", "-c", "echo $$ > %s/cgroup.procs && exec \"$@\"" % group, "sh", *argv] if group else argv


def join(group, program):
    with open(group + "/cgroup.procs", "w") as f:
        f.write(str(program.pid))
