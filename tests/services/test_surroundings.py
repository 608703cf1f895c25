#!/usr/bin/env python3
"""Services in surroundings that are hard on a preloaded library: the same answers, the same end and the same words with and
without the recorder, something recorded, and nothing left in /dev/shm.

Dropping privileges while it runs is in test_services.py (nginx, memcached, haproxy)."""
import contextlib
import ctypes
import glob
import os
import re
import resource
import shutil
import signal
import struct
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import http_load  # noqa: E402
from harness import MUTANT, SHIM, Skip, check, children_of, equal, need, need_root, parametrise, test, wait_until  # noqa: E402
from services import SERVICES, threads_of, waits  # noqa: E402

N = 400  # requests: enough to see that it parks and answers
NOBODY = 65534
NOBODY_ELSE = 61234  # a user of whom nothing else runs


class Outcome:
    def __init__(self, answers, r, seen):
        self.answers, self.rc, self.err, self.pid, self.seen = answers, r.rc, r.err, r.pid, seen


def own_arenas(box):
    """Files in /dev/shm that say they belong to this test's folder."""
    found = []
    for path in glob.glob("/dev/shm/d9-*"):
        with contextlib.suppress(OSError), open(path, "rb") as f:
            if box.path.encode() in f.read(1 << 16):
                found.append(path)
    return found


def nothing_left(box):
    end = time.monotonic() + 5
    while own_arenas(box) and time.monotonic() < end:
        time.sleep(0.05)
    left = own_arenas(box)
    box.arenas.update(left)
    equal(left, [], "left in /dev/shm")


def open_to(box, uid):
    """The test's folders for a service of another user."""
    os.chmod(box.path, 0o755)
    os.makedirs(box.dir, exist_ok=True)
    for path in (box.path, box.dir):
        os.chown(path, uid, uid)


def once(box, shim, name, wrap=list, env=None, look=None, pid_of=lambda p: p.pid, **options):
    """One run.  wrap(argv): the command in its surrounding; look(pid): what to note; pid_of(process): whom to signal."""
    service = SERVICES[name]
    port = box.port = harness.free_port()
    p = box.start(wrap(service.argv(box, port)), env=env, shim=shim, **options)
    http_load.wait_port(port, p)
    answers = service.ask(port, N)
    pid = pid_of(p)
    seen = look(pid) if look else None
    service.end(pid, port)
    return Outcome(answers, box.finish(p, 60), seen)


def same(box, name, bare_env=None, env=None, least=N // 2, **how):
    """Without and with the recorder; the recording."""
    plain = once(box, False, name, env=bare_env, **how)
    r = once(box, True, name, env=env, **how)
    compare(plain, r)
    nothing_left(box)
    return r, recorded(box, name, least) if least else []


def compare(plain, r):
    check(len(plain.answers) > N, "the load got no answers")
    check(r.answers == plain.answers, "the answers differ: %d and %d bytes" % (len(r.answers), len(plain.answers)))
    equal((r.rc, re.sub(r"\d+", "", r.err)), (plain.rc, re.sub(r"\d+", "", plain.err)), "exit code and words on stderr")


def recorded(box, name, least):
    events = box.events()
    n = len(waits(events, SERVICES[name].waits))
    check(n >= least, "waits recorded: %d, not %d or more" % (n, least))
    return events


def descriptors(pid):
    """{number: kind} of the program's open files."""
    found = {}
    for fd in os.listdir("/proc/%d/fd" % pid):
        with contextlib.suppress(OSError):
            found[int(fd)] = re.sub(r"\d+", "", os.readlink("/proc/%d/fd/%s" % (pid, fd)))
    return found


def child(p):
    return children_of(p.pid)[0]


# ---- who it is, where its root is, what is open ------------------------------------------------------------------


AS_USER = {
    "setpriv": ["setpriv", "--reuid=%d" % NOBODY, "--regid=%d" % NOBODY, "--clear-groups"],
    "runuser": ["runuser", "-u", "nobody", "--"],
}


@parametrise(AS_USER)
def another_user(box, how):
    need_root()
    need(how)
    open_to(box, NOBODY)
    same(box, "redis", wrap=lambda argv: AS_USER[how] + argv)


@test
def another_user_whose_folder_is_not_his(box):
    """As root started it, /var/tmp/d9-0 would be D9_DIR: nothing can be recorded, and nothing breaks."""
    need_root()
    os.chmod(box.path, 0o755)
    os.makedirs(box.dir, 0o700)
    data = os.path.join(box.path, "data")
    os.mkdir(data)
    os.chown(data, NOBODY, NOBODY)
    options = {"user": NOBODY, "group": NOBODY, "extra_groups": []}
    plain = once(box, False, "redis", **options)
    r = once(box, True, "redis", **options)
    compare(plain, r)
    nothing_left(box)
    equal(box.folders(), [], "recordings")
    once(box, True, "redis")
    recorded(box, "redis", N // 2)


def libraries(program):
    """What the loader maps for it."""
    out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    return re.findall(r"(/\S+) \(0x", out)


def new_root(box, *programs):
    """A root folder with these programs, what they need, and the recorder; nothing else, neither /proc nor /dev."""
    root = os.path.join(box.path, "root")
    for path in {p for program in programs for p in [program, *libraries(program)]} | {SHIM, *libraries(SHIM)}:
        to = root + path
        if not os.path.exists(to):
            os.makedirs(os.path.dirname(to), exist_ok=True)
            shutil.copy(path, to)
    os.makedirs(root + box.path, exist_ok=True)
    for name in ("tmp", "proc", "dev/shm"):
        os.makedirs(os.path.join(root, name), exist_ok=True)
    return root


MOUNTS = """mount --bind /dev/shm "$0/dev/shm" && mount -t proc proc "$0/proc" && exec chroot "$0" "$@" """


@parametrise(["bare", "with /proc and /dev/shm"])
def a_chroot(box, how):
    need_root()
    need("unshare")
    root = new_root(box, need("redis-server"), shutil.which("env"))
    enter = ["chroot", root] if how == "bare" else ["unshare", "-m", "sh", "-c", MOUNTS, root]
    outside, box.dir = box.dir, root + box.dir

    def inside(shim):
        words = ["LD_PRELOAD=" + SHIM, "D9_DIR=" + outside] if shim and MUTANT != "absent" else []
        return lambda argv: enter + [shutil.which("env")] + words + argv
    plain = once(box, False, "redis", wrap=inside(False))
    r = once(box, False, "redis", wrap=inside(True))
    compare(plain, r)
    nothing_left(box)
    recorded(box, "redis", N // 2)


def settled(pid):
    """Its descriptors, once the connections of the load are closed."""
    before = None
    for _ in range(50):
        now = descriptors(pid)
        if now == before:
            return now
        before = now
        time.sleep(0.1)  # the service says nothing when it has closed them
    raise harness.Failure("descriptors come and go: %s" % before)


@parametrise(["redis", "asyncio", "gio"])
def without_descriptors_0_to_2(box, name):
    def close():
        os.closerange(0, 3)
    plain = once(box, False, name, look=settled, preexec_fn=close)
    r = once(box, True, name, look=settled, preexec_fn=close)
    compare(plain, r)
    equal(r.seen, plain.seen, "descriptors of the program")
    nothing_left(box)
    recorded(box, name, N // 2)


# ---- limits --------------------------------------------------------------------------------------------------------


ONE_HEAP = {"MALLOC_ARENA_MAX": "1"}  # else glibc reserves 64 MB for each thread, and memcached by itself has no room for its ten
LIMITS = {
    "address space of 400 MB": (resource.RLIMIT_AS, 400 << 20, ["redis", "nginx", "memcached"]),
    "files of 100 KB": (resource.RLIMIT_FSIZE, 100 << 10, ["redis", "nginx"]),
    "files of 0 bytes": (resource.RLIMIT_FSIZE, 0, ["redis"]),
    "48 descriptors": (resource.RLIMIT_NOFILE, 48, ["redis", "nginx"]),
}


@parametrise(["%s: %s" % (limit, name) for limit, how in LIMITS.items() for name in how[2]])
def ulimit(box, case):
    limit, name = case.split(": ")
    what, value, _ = LIMITS[limit]
    unwritable = limit == "files of 0 bytes"  # what was recorded dies with it, and nothing else does
    same(box, name, ONE_HEAP, ONE_HEAP, least=0 if unwritable else N // 2, preexec_fn=lambda: resource.setrlimit(what, (value, value)))


@test
def ulimit_by_a_shell_that_becomes_the_service(box):
    same(box, "redis", wrap=lambda argv: ["sh", "-c", "ulimit -n 100; ulimit -c 0; exec \"$@\"", "sh"] + argv)


@test
def no_more_threads_than_its_own(box):
    need_root()
    open_to(box, NOBODY_ELSE)
    options = {"user": NOBODY_ELSE, "group": NOBODY_ELSE, "extra_groups": []}
    own = len(once(box, False, "redis", look=threads_of, **options).seen)
    check(own > 3, "threads of redis: %d" % own)
    r, _ = same(box, "redis", look=threads_of, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NPROC, (own, own)), **options)
    equal(len(r.seen), own, "threads of redis")


# ---- filters and namespaces ------------------------------------------------------------------------------------------


def number_of(names):
    with open("/usr/include/x86_64-linux-gnu/asm/unistd_64.h") as f:
        known = dict(re.findall(r"#define __NR_(\w+) (\d+)", f.read()))
    return sorted(int(known[n]) for n in names if n in known)


ALLOW, KILL, EPERM, ENOSYS = 0x7FFF0000, 0x80000000, 0x00050001, 0x00050026


def put_filter(rules, otherwise):
    """For preexec_fn: a filter over this process; rules: {number of a call: what happens}."""
    code = struct.pack("HBBI", 0x20, 0, 0, 0)  # load the number
    for nr, verdict in rules.items():
        code += struct.pack("HBBI", 0x15, 0, 1, nr) + struct.pack("HBBI", 0x06, 0, 0, verdict)
    code += struct.pack("HBBI", 0x06, 0, 0, otherwise)
    buffer = ctypes.create_string_buffer(code)
    program = struct.pack("HxxxxxxQ", len(code) // 8, ctypes.addressof(buffer))
    libc = ctypes.CDLL(None, use_errno=True)

    def put(_alive=buffer):
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, program, 0, 0):
            raise OSError(ctypes.get_errno(), "no filter")
    return put


def container_rules():
    """What container runtimes of some years ago do: EPERM for what needs rights, ENOSYS for calls that they do not know."""
    refused = ("ptrace mount umount2 unshare setns bpf perf_event_open kexec_load init_module finit_module delete_module add_key"
               " request_key keyctl userfaultfd process_vm_readv process_vm_writev pivot_root swapon swapoff reboot acct"
               " open_by_handle_at lookup_dcookie quotactl personality").split()
    return {**{n: EPERM for n in number_of(refused)}, **{n: ENOSYS for n in range(424, 463)}}


@parametrise(["redis", "nginx", "memcached"])
def a_filter_as_of_a_container(box, name):
    os.makedirs(box.dir)
    os.chmod(box.dir, 0o755)  # no thread that keeps it open: found by its name at the end, as the user it is then
    same(box, name, preexec_fn=put_filter(container_rules(), ALLOW))


@test
def a_filter_that_kills_for_what_needs_rights(box):
    rules = {n: KILL for n, verdict in container_rules().items() if verdict == EPERM}
    same(box, "redis", preexec_fn=put_filter(rules, ALLOW))
    seen = box.meta()
    check([e for e in seen if e["event"] == "module" and re.match("[0-9a-f]{16,}\0/", e["path"])], "no build id of any module")
    check([e for e in seen if e.get("stack")], "no stack")


@test
def a_filter_of_the_programs_own_calls(box):
    """All that redis does by itself, and ENOSYS for the rest: it answers as ever; what is recorded is what can be."""
    need("strace")
    trace = os.path.join(box.path, "strace")
    once(box, False, "redis", wrap=lambda argv: ["strace", "-f", "-n", "-o", trace] + argv)
    with open(trace) as f:
        own = {int(n) for n in re.findall(r"^\d+ +\[ *(\d+)\]", f.read(), flags=re.M)} | set(number_of(["execve", "exit", "exit_group"]))
    check(len(own) > 20, "calls of redis: %s" % own)
    how = {"preexec_fn": put_filter({n: ALLOW for n in own}, ENOSYS)}
    compare(once(box, False, "redis", **how), once(box, True, "redis", **how))
    nothing_left(box)


@parametrise(["redis", "nginx", "redis, /proc of the outer one", "nginx, /proc of the outer one"])
def a_pid_namespace(box, case):
    need_root()
    name, _, outer = case.partition(", ")
    enter = ["unshare", "-p", "-f"] + ([] if outer else ["--mount-proc"])
    _, events = same(box, name, wrap=lambda argv: enter + argv, pid_of=child)
    tids = {e["tid"] for e in waits(events, {"epoll_wait"})}
    check(1 in tids if name == "redis" else tids and max(tids) < 100, "threads as the program sees them: %s" % sorted(tids))


# ---- debuggers, other libraries in the chain ---------------------------------------------------------------------


GDB = ["gdb", "-batch", "-nx", "-ex", "set startup-with-shell off", "-ex", "set print thread-events off"]


@test
def started_by_gdb(box):
    need("gdb")
    set_env = [] if MUTANT == "absent" else ["-ex", "set environment LD_PRELOAD " + SHIM, "-ex", "set environment D9_DIR " + box.dir]
    plain = once(box, False, "redis", wrap=lambda argv: GDB + ["-ex", "run", "--args"] + argv)
    r = once(box, False, "redis", wrap=lambda argv: GDB + set_env + ["-ex", "run", "--args"] + argv)
    compare(plain, r)
    nothing_left(box)
    recorded(box, "redis", N // 2)


@test
def gdb_looks_into_it_and_leaves(box):
    need("gdb")

    def look(pid):
        r = subprocess.run(["gdb", "-batch", "-nx", "-p", str(pid), "-ex", "thread apply all bt"], capture_output=True, text=True, timeout=120)
        return r.stdout
    r, _ = same(box, "redis", look=look)
    check("main" in r.seen and "epoll_wait" in r.seen, "no stack through the hook: %s" % r.seen[-3000:])


@parametrise(["epoll", "gio"])
def under_valgrind(box, name):
    need("valgrind")
    same(box, name, wrap=lambda argv: ["valgrind", "-q", "--error-exitcode=9"] + argv)


@test
def with_the_address_sanitizer(box):
    """libasan has to come first: `d9 run` sees to it."""
    program = os.path.join(box.path, "server")
    source = os.path.join(harness.ROOT, "tests", "prog", "epoll_server.c")
    r = subprocess.run([need("gcc"), "-g", "-fsanitize=address", source, "-o", program], capture_output=True, text=True)
    check(r.returncode == 0, "does not build: %s" % r.stderr)
    d9_run = box.d9_run_words("--quiet")
    plain = once(box, False, "epoll", wrap=lambda argv: [program, argv[1]])
    r = once(box, False, "epoll", wrap=lambda argv: d9_run + [program, argv[1]])
    compare(plain, r)
    nothing_left(box)
    recorded(box, "epoll", N // 2)


LIBRARIES = {"jemalloc": "libjemalloc.so.2", "tcmalloc": "libtcmalloc_minimal.so.4", "faketime": "faketime/libfaketimeMT.so.1"}


@contextlib.contextmanager
def without_leftovers_of_faketime():
    """The library leaves shared memory of its own behind, with or without us, when the `faketime` command did not start it."""
    before = set(glob.glob("/dev/shm/*faketime*"))
    try:
        yield
    finally:
        for path in set(glob.glob("/dev/shm/*faketime*")) - before:
            if gone(int(path.rsplit("_", 1)[1])):
                os.unlink(path)


@parametrise(["%s %s: %s" % (library, order, name) for library in LIBRARIES for order in ("first", "last") for name in ("memcached", "asyncio", "redis")
              if (library, name) != ("faketime", "redis")])  # redis-server and libfaketime hang without a recorder too
def beside_another_library(box, case):
    library, order, name = re.match(r"(\w+) (\w+): (\w+)", case).groups()
    path = "/usr/lib/x86_64-linux-gnu/" + LIBRARIES[library]
    if not os.path.exists(path):
        raise Skip("%s is not installed" % path)
    chain = [] if MUTANT == "absent" else [SHIM]
    chain = [path] + chain if order == "first" else chain + [path]
    env = {"FAKETIME": "-3d"} if library == "faketime" else {}
    begin = time.monotonic_ns()
    with without_leftovers_of_faketime():
        _, events = same(box, name, bare_env={"LD_PRELOAD": path, **env}, env={"LD_PRELOAD": ":".join(chain), **env})
    spans = [e for e in events if e["event"] == "span"]
    check(begin < min(e["t_ns"] for e in spans) and max(e["t_ns"] for e in spans) < time.monotonic_ns(), "times that are not those of the clock")


# ---- daemons and new images --------------------------------------------------------------------------------------


def gone(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    with contextlib.suppress(OSError), open("/proc/%d/stat" % pid) as f:
        return f.read().rsplit(")", 1)[1].split()[0] == "Z"
    return True


def pid_in(path):
    with contextlib.suppress(OSError, ValueError), open(path) as f:
        return int(f.read())
    return 0


def daemon(box, shim, argv, pidfile, name):
    """Started, in the background, asked, ended: the answers, the starter's exit code and words, the daemon's pid."""
    r = box.run(argv, shim=shim, stdout=subprocess.DEVNULL)
    pid = wait_until(lambda: pid_in(pidfile), "no pid of the daemon", 30)
    try:
        http_load.wait_port(box.port)
        answers = SERVICES[name].ask(box.port, N)
        SERVICES[name].end(pid, box.port)
        wait_until(lambda: gone(pid), "the daemon does not end", 30)
    finally:
        if not gone(pid):
            os.kill(pid, signal.SIGKILL)
    return Outcome(answers, r, pid)


@parametrise(["redis", "nginx"])
def daemonized(box, name):
    r = {}
    pidfile = os.path.join(box.path, name + ".pid")
    for shim in (False, True):
        box.port = harness.free_port()
        argv = SERVICES[name].argv(box, box.port)
        if name == "redis":
            argv += ["--daemonize", "yes", "--pidfile", pidfile, "--logfile", os.path.join(box.path, "log")]
        else:
            edit(argv[-1], "daemon off", "daemon on")
        r[shim] = daemon(box, shim, argv, pidfile, name)
    compare(r[False], r[True])
    nothing_left(box)
    events = recorded(box, name, N // 2)
    check(r[True].seen in {e["pid"] for e in events}, "the daemon was not recorded")


def edit(path, old, new):
    with open(path) as f:
        text = f.read()
    with open(path, "w") as f:
        f.write(text.replace(old, new))


@test
def redis_starts_itself_anew(box):
    """DEBUG RESTART: execve with the environment as it is; the same process is recorded before and after."""
    def restart(pid):
        with contextlib.suppress(EOFError, OSError):
            http_load.lines(box.port, [b"DEBUG RESTART\r\n"], lambda f: f.readline())
        http_load.wait_port(box.port)
        return SERVICES["redis"].ask(box.port, N)
    r, _ = same(box, "redis", look=restart)
    check(r.seen == r.answers, "other answers after it")
    _, second = [f for f in box.folders() if not f.endswith(".tmp")][:2]
    n = len([e for e in box.meta(second) if e["event"] == "span" and e["hook"] == "epoll_wait" and e["tid"] == r.pid])
    check(n >= N // 2, "waits of the new image: %d" % n)


ENV_OF_NGINX = " env LD_PRELOAD; env D9_DIR;"


@parametrise(["as it is", "with env in its configuration"])
def nginx_upgraded(box, how):
    """USR2: a new master and new workers from the program's file, the old ones leave.  nginx starts the new one with an empty
    environment, so it is recorded only if its configuration keeps LD_PRELOAD and D9_DIR."""
    r = {}
    for shim in (False, True):
        r[shim] = upgrade(box, shim, how != "as it is")
    compare(r[False], r[True])
    nothing_left(box)
    events = recorded(box, "nginx", N // 4)
    old, new, workers = r[True].seen
    pids = {e["pid"] for e in waits(events, {"epoll_wait"})}
    if how == "as it is":
        check(not pids & set(workers) and len(box.folders()) == 1, "recorded although its environment was taken")
    else:
        check(set(workers) <= pids, "new workers %s, recorded were %s" % (workers, sorted(pids)))
        check({old, new} <= {e["pid"] for e in events}, "the masters %d and %d were not both recorded" % (old, new))


def upgrade(box, shim, keep):
    """In the background: nginx takes no upgrade while the one who started it is its parent."""
    service = SERVICES["nginx"]
    box.port = harness.free_port()
    argv = service.argv(box, box.port)
    pidfile = os.path.join(box.path, "nginx.pid")
    edit(argv[-1], "daemon off;", "daemon on;" + (ENV_OF_NGINX if keep else ""))
    result = box.run(argv, shim=shim)
    old = new = wait_until(lambda: pid_in(pidfile), "no pid of the master", 30)
    try:
        http_load.wait_port(box.port)
        answers = service.ask(box.port, N // 2)
        os.kill(old, signal.SIGUSR2)
        wait_until(lambda: pid_in(pidfile) not in (0, old) and pid_in(pidfile + ".oldbin") == old, "no new master", 30)
        new = pid_in(pidfile)
        wait_until(lambda: len(children_of(new)) == 2, "no workers of it", 30)
        os.kill(old, signal.SIGQUIT)
        wait_until(lambda: gone(old), "the old master does not end", 30)
        answers += service.ask(box.port, N // 2)
        workers = children_of(new)
        os.kill(new, signal.SIGTERM)
        wait_until(lambda: gone(new), "the new master does not end", 30)
    finally:
        for pid in {old, new}:
            if not gone(pid):
                os.kill(pid, signal.SIGKILL)
    return Outcome(answers, result, (old, new, workers))


if __name__ == "__main__":
    harness.main()
