#!/usr/bin/env python3
"""What hostile surroundings do to d9 and to a recorded program: each case was a bug once."""
import ctypes
import os
import pty
import resource
import shutil
import signal
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import D9, PROGS, SHIM, Skip, check, equal, main, need_root, parametrise, test, wait_until


def program(name):
    return os.path.join(PROGS, name)


def spans(box, hook):
    return [e for e in box.events() if e["event"] == "span" and e["hook"] == hook]


def one_line(r, rc):
    equal(r.rc, rc, "exit code")
    check(r.err.startswith("d9: ") and r.err.count("\n") == 1 and r.err.endswith("\n"), "not one line: %r" % r.err)


# ---- d9 run --------------------------------------------------------------------------------------------


@test
def d9_run_where_the_ends_of_children_are_ignored(box):
    code = "import signal, os, sys; signal.signal(signal.SIGCHLD, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])"
    r = box.run([sys.executable, "-c", code, D9, "run", "--quiet", "--dir", box.dir, "--", "sh", "-c", "exit 9"], shim=False, timeout=20)
    equal(r.rc, 9, "exit code")


@test
def the_program_gets_the_signal_dispositions_that_d9_got(box):
    look = ["grep", "SigIgn", "/proc/self/status"]
    for ignored in ("SIGCHLD", "SIGXFSZ", "SIGPIPE"):
        code = "import signal, os, sys; signal.signal(signal.%s, signal.SIG_IGN); os.execvp(sys.argv[1], sys.argv[1:])" % ignored
        bare = box.run([sys.executable, "-c", code] + look, shim=False, rc=0)
        under = box.run([sys.executable, "-c", code, D9, "run", "--quiet", "--dir", box.dir, "--"] + look, shim=False, rc=0)
        equal(under.out, bare.out, "signals ignored by the program, %s ignored" % ignored)
    bare = box.run(look, shim=False, rc=0)
    equal(box.d9_run(look, rc=0).out, bare.out, "signals ignored by the program")


COUNT = """import signal, sys, time
got = []
signal.signal(signal.SIGINT, lambda *a: got.append(1)); signal.signal(signal.SIGHUP, lambda *a: got.append(2))
print('ready', flush=True)
while not got: time.sleep(0.01)
time.sleep(0.3); print('got', got, flush=True)"""


@parametrise(["INT", "HUP"])
def a_signal_to_d9_reaches_the_program_once(box, name):
    p = box.start([D9, "run", "--quiet", "--dir", box.dir, "--", sys.executable, "-c", COUNT], shim=False)
    p.stdout.readline()
    p.send_signal(getattr(signal, "SIG" + name))
    r = box.finish(p)
    equal((r.rc, r.out), (0, "got %s\n" % [{"INT": 1, "HUP": 2}[name]]), "what the program got")


@test
def an_interrupt_at_the_terminal_reaches_the_program_once(box):
    pid, fd = pty.fork()
    if not pid:
        os.execve(D9, [D9, "run", "--quiet", "--dir", box.dir, "--", sys.executable, "-c", COUNT], box.env(shim=False))
    out = b""
    try:
        while b"ready" not in out:
            out += os.read(fd, 1000)
        os.write(fd, b"\x03")
        while b"]" not in out:
            out += os.read(fd, 1000)
        equal(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0, "exit code")
        check(b"got [1]" in out, "what the program got: %r" % out)
    finally:
        os.close(fd)


@parametrise([("--segment-mb=1", "--total-mb=4"), ("--total-mb=4", "--segment-mb=1")])
def options_that_depend_on_each_other_in_any_order(box, options):
    box.d9_run(["true"], options=options, rc=0)
    one_line(box.d9_run(["true"], options=["--total-mb=4"]), 2)


@test
def a_folder_name_longer_than_the_recorder_can_hold_is_refused(box):
    deep = os.path.join(box.path, *["d" * 200] * 4)
    os.makedirs(deep)
    one_line(box.run([D9, "run", "--dir", deep, "--", "true"], shim=False), 2)


# ---- messages ------------------------------------------------------------------------------------------


NAMES = {"line end": "a\nb", "escape": "\033[31mred", "long": "x" * 5000}


@parametrise(sorted(NAMES))
def a_message_is_one_line_whatever_the_name(box, name):
    for command in ("report", "status", "recover"):
        r = box.run([D9, command, NAMES[name]], shim=False)
    one_line(r, 3)
    check("\033" not in r.err, "an escape reached the terminal")


@test
def a_report_shows_no_escapes_of_a_command_line(box):
    box.d9_run(["sh", "-c", "sleep 0.01 # \033[31m \a\n:"], rc=0)
    r = box.d9("report", box.dir)
    check("sleep 0.01 # " in r.out, "the command line is not there")
    check(not any(c < " " and c != "\n" for c in r.out), "control characters in %r" % r.out)


@parametrise(["schema", "schema --md", "report", "report --json", "dump", "status", "doctor", "--help"])
def a_full_disk_behind_stdout_is_told(box, command):
    box.d9_run(["true"], rc=0)
    with open("/dev/full", "w") as full:
        r = box.run([D9] + command.split() + ([box.dir] if command[:3] in ("rep", "dum", "sta") else []), shim=False, stdout=full)
    one_line(r, 3)


# ---- what belongs to somebody else ---------------------------------------------------------------------

NOBODY = 65534
PR_CAPBSET_DROP = 24
CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON = 19, 21, 38  # newer kernels let those with the last two read maps


def as_nobody(box, *argv):
    return box.run([D9] + list(argv), shim=False, user=NOBODY, group=NOBODY, extra_groups=[])


@parametrise(["report", "report --json", "dump", "spans", "locks", "hist epoll", "status", "recover"])
def the_recording_of_another_user(box, command):
    need_root()
    box.d9_run(["sleep", "0.01"], rc=0)
    folder, argv = box.folders()[0], command.split()
    segment = os.path.join(folder, "s-000001.d9")
    os.chmod(box.path, 0o755)
    os.chmod(box.dir, 0o700)
    one_line(as_nobody(box, *argv, box.dir), 4)
    os.chmod(box.dir, 0o755)
    one_line(as_nobody(box, *argv, box.dir), 4)
    one_line(as_nobody(box, *argv, folder), 4)
    if command not in ("status", "recover"):
        one_line(as_nobody(box, *argv, "--session", os.path.basename(folder), box.dir), 4)
        os.chmod(folder, 0o755)
        one_line(as_nobody(box, *argv, box.dir), 4)
        one_line(as_nobody(box, *argv, segment), 4)
        os.chmod(segment, 0o644)
        equal(as_nobody(box, *argv, box.dir).rc, 0, "exit code when it may be read")


@parametrise(["report", "dump", "status"])
def the_session_memory_of_another_user(box, command):
    need_root()
    p = box.start(["sleep", "60"])
    folder = wait_until(box.begun, "the program was never recorded")
    for path in (box.path, box.dir, folder):
        os.chmod(path, 0o755)
    one_line(as_nobody(box, command, box.dir), 4)
    box.d9("ctl", str(p.pid), "flush")
    one_line(as_nobody(box, "ctl", str(p.pid), "off"), 4)
    one_line(as_nobody(box, "status", str(p.pid)), 4)


@test
def what_may_be_read_is_and_the_rest_is_told(box):
    need_root()
    for name in ("theirs", "mine"):
        box.d9_run(["sleep", "0.01"], env={"D9_NAME": name}, rc=0)
    os.chmod(box.path, 0o755)
    os.chmod(box.dir, 0o755)
    for folder in box.folders():
        if "mine" in folder:
            os.chmod(folder, 0o755)
            os.chmod(os.path.join(folder, "s-000001.d9"), 0o644)
    for command in ("report", "status"):
        r = as_nobody(box, command, box.dir)
        one_line(r, 0)
        check("mine-" in r.out and "theirs-" not in r.out and "left out" in r.err, "%r, %r" % (r.out[:200], r.err))


@parametrise(["ctl PID on", "status PID", "check PID"])
def root_that_may_not_look_into_a_process_is_told_so(box, command):
    need_root()
    p = box.start(["sleep", "60"], shim=False, user=NOBODY, group=NOBODY, extra_groups=[])
    libc = ctypes.CDLL(None)

    def drop():
        for capability in (CAP_SYS_PTRACE, CAP_SYS_ADMIN, CAP_PERFMON):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)
    argv = [str(p.pid) if w == "PID" else w for w in command.split()]
    r = box.run([D9] + argv, shim=False, preexec_fn=drop)
    one_line(r, 4)
    check("even root" in r.err and str(p.pid) in r.err and "use root" not in r.err and "or root" not in r.err, "says %r" % r.err)


@parametrise(["report", "dump", "spans", "locks", "hist epoll", "status", "recover"])
def an_empty_name_is_told_as_such(box, command):
    r = box.run([D9] + command.split() + [""], shim=False)
    one_line(r, 3)
    check("DIR is empty" in r.err, "says %r" % r.err)


@test
def foreign_files_are_ignored(box):
    box.d9_run(["sleep", "0.01"], rc=0)
    folder = box.folders()[0]
    before = box.d9("status", "--metrics", box.dir).out
    for name in ("notes.d9", "s-1.d9", "s-0000001.d9", "s-00000x.d9", "s-000001.d9.bak"):
        with open(os.path.join(folder, name), "w") as f:
            f.write("x" * 1000)
    os.mkdir(os.path.join(box.dir, "other"))
    with open(os.path.join(box.dir, "other", "notes.d9"), "w") as f:
        f.write("x")
    equal(box.d9("status", "--metrics", box.dir).out, before, "status with foreign files in the folder")
    equal(box.d9("report", box.dir).err, "", "what the report complains of")


# ---- file sizes ----------------------------------------------------------------------------------------


@parametrise([0, 1024])
def a_file_size_limit_does_not_kill_the_program(box, limit):
    def lower():
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
        signal.signal(signal.SIGXFSZ, signal.SIG_DFL)
    r = box.run(["sh", "-c", "sleep 0.01; exit 9"], preexec_fn=lower)
    equal(r.rc, 9, "exit code")


@parametrise([40, 120, 400, 1000])
def an_address_space_limit_is_the_programs(box, mib):
    limit = mib << 20
    lower = {"preexec_fn": lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))}
    code = "import time; time.sleep(0.01); print([l.split()[1] for l in open('/proc/self/status') if l.startswith('VmSize')][0])"
    bare = box.run([sys.executable, "-S", "-c", code], shim=False, rc=0, **lower)
    r = box.run([sys.executable, "-S", "-c", code], rc=0, **lower)
    equal(r.err, "", "on stderr")
    taken = (int(r.out) - int(bare.out)) << 10
    check(taken < limit * 2 // 7, "%d of %d MiB are the recorder's" % (taken >> 20, mib))
    check(mib < 200 or spans(box, "clock_nanosleep") or spans(box, "select"), "nothing was recorded")


# How a limit is set, and whether the recorder can go: it holds what the program would miss.
LIMITS = {how: True for how in ("setrlimit", "setrlimit64", "prlimit", "prlimit64", "raw", "raw-prlimit", "child", "data", "once")}
LIMITS.update({how: False for how in ("threads", "handler", "open")})


def said_of_memory(box):
    """What all reports say of it; each family has its own."""
    sessions = [os.path.basename(f) for f in box.folders()]
    docs = [box.document("report", "--session", s) for s in sessions]
    return {u["detail"] for d in docs for u in d["unseen"] if "limited its memory" in u["detail"]}


# 1300 ms: a drain thread is there already
@parametrise(sorted(["%s 0" % how for how in LIMITS] + ["%s 1300" % how for how in ("setrlimit", "child", "threads", "handler", "data")]))
def a_limit_that_a_program_sets_itself_is_the_programs(box, how):
    argv = [program("memory")] + how.split()
    bare = box.run(argv[:2], shim=False, rc=7)
    check("do not" not in bare.out and "fit" in bare.out, "without the recorder: %s" % bare.out)
    r = box.run(argv)
    equal((r.rc, r.out, r.err), (7, bare.out, ""), "what the program got")
    check([s for s in spans(box, "poll") if s["pid"] == r.pid], "nothing was recorded before")
    goes = LIMITS[how.split()[0]]
    said = said_of_memory(box)
    check(len(said) == 1 and ("ended there" in said.pop()) == goes, "said of it: %s" % said)
    check(not box.arenas_left(), "left behind: %s" % box.arenas_left())
    after = [s for s in spans(box, "usleep") if s["pid"] == r.pid]
    equal(len(after), 0 if goes and not how.startswith("child") else 1, "waits that were recorded after it")
    r = box.d9_run(argv[:2])
    equal((r.rc, r.out), (7, bare.out), "what the program got under d9 run")


@parametrise(["vfork", "other"])
def a_limit_of_another_process_changes_nothing(box, how):
    bare = box.run([program("memory"), how], shim=False, rc=7)
    r = box.run([program("memory"), how])
    equal((r.rc, r.out, r.err), (7, bare.out, ""), "what the program got")
    check([s for s in spans(box, "usleep") if s["pid"] == r.pid], "the program is not recorded after it")
    equal(said_of_memory(box), set(), "said of its memory")


@test
def a_shell_that_limits_itself(box):
    for limit in ("-v 100000", "-d 20000"):
        script = "ulimit %s; x=$(seq 1 300000); echo ${#x}" % limit
        for r in (box.run(["bash", "-c", script]), box.d9_run(["bash", "-c", script])):
            equal((r.rc, r.out), (0, "1988894\n"), "after ulimit %s: %s" % (limit, r.err))


# mlockall's flags, twice if by two calls, and the limit of one who has no rights, in KiB
LOCKS = ["now 0", "later 0", "now+later 0", "raw+now+later 0", "now+on-fault 0", "now+later+on-fault 0", "later,now 0", "now+later,later 0", "wrong 0",
         "on-fault 0", "now 8192", "now+later 8192", "now+on-fault 8192", "later+on-fault 8192", "now+later,now 8192", "now+later 1024", "now 1",
         "now+later 8000"]


@parametrise(sorted(["%s 0" % how for how in LOCKS] + ["%s 1300" % how for how in ("later 0", "now+later 0", "now+later 8192")]))
def what_a_program_locks_is_its_own(box, how):
    need_root()
    os.chmod(box.path, 0o777)
    os.makedirs(box.dir, exist_ok=True)
    os.chmod(box.dir, 0o777)
    argv = [program("memory"), "lock"] + how.split()
    env = {"D9_MEM_MB": "1"} if "8000" in how else {}  # all of it is within the limit then
    bare = box.run(argv[:4] + ["0"], shim=False)
    if bare.rc == 77:
        raise Skip("the limit cannot be set here")
    equal(bare.rc, 7, "without the recorder")

    def same(r):
        apart = ([line for line in x.out.splitlines() if "kib=" not in line] for x in (r, bare))
        equal(*apart, "what the program saw")
        equal((r.rc, r.err), (7, ""), "its end")
        # KiB: what differs anyway; the stack of a drain thread, which libc keeps
        for word, more in (("LOCKED", 64 if how.split()[1] == "0" else 330), ("LATER", 330)):
            mine, alone = (int(x.lines(word)[0]["kib"]) for x in (r, bare))
            check(-64 <= mine - alone <= more, "%s: %d KiB, without the recorder %d" % (word, mine, alone))
    p = box.start(argv, env=env)
    used = 0
    while p.poll() is None:
        try:
            used = max([used] + [os.stat(a).st_blocks * 512 for a in box.arenas_left()])
        except FileNotFoundError:
            pass
    same(box.finish(p))
    check(used < 8 << 20, "%d bytes of the memory brought in" % used)
    check(not how.endswith("1300") or spans(box, "poll"), "nothing was recorded")
    if how.endswith(" 0"):
        r = box.d9_run(argv[:4] + ["0"])
        r.err = ""
        same(r)


@parametrise([None, "4"])
def little_private_memory_is_taken(box, mib):
    code = "import re; print(*[re.search('Vm%s:\\\\s+(\\\\d+)' % n, open('/proc/self/status').read())[1] for n in ('Size', 'Data')])"
    argv = [os.path.realpath(sys.executable), "-S", "-c", code.replace("\\\\", "\\")]
    size, data = (int(n) for n in box.run(argv, shim=False, rc=0).out.split())
    r = box.run(argv, env={"D9_MEM_MB": mib} if mib else None, rc=0)
    more_size, more_data = (int(w) - n for w, n in zip(r.out.split(), (size, data)))
    print("# %d KiB of address space, %d private" % (more_size, more_data))
    check(more_data < 1500, "%d KiB of private memory" % more_data)
    check(not mib or more_size < 12000, "%d KiB of address space" % more_size)


@test
def no_child_waits_for_the_loader(box):
    """A thread of ours that held the loader's lock when another forks would leave it taken in the child."""
    for shim in (False, True):
        equal(box.run([program("loader"), "2000"], shim=shim, rc=0).out, "stuck: 0\n", "children, %s the recorder" % ("with" if shim else "without"))


# ---- shared memory -------------------------------------------------------------------------------------


@test
def a_full_shared_memory_is_none(box):
    need_root()
    mount = "mount -t tmpfs -o size=1m none /dev/shm && head -c 2m /dev/zero >/dev/shm/fill 2>/dev/null; "
    if box.run(["unshare", "-m", "true"], shim=False).rc:
        raise Skip("cannot make a mount namespace")
    program = "LD_PRELOAD=%s sleep 0.05; ls /dev/shm" % SHIM
    r = box.run(["unshare", "-m", "sh", "-c", mount + program], shim=False, rc=0)
    equal(r.out, "fill\n", "left in /dev/shm")
    equal(r.err, "", "on stderr")
    check(spans(box, "nanosleep"), "nothing was recorded")


@test
def a_second_copy_of_the_library_passes_calls_through(box):
    other = os.path.join(box.path, "libd9other.so")
    shutil.copy(SHIM, other)
    r = box.run(["sleep", "0.05"], env={"LD_PRELOAD": "%s:%s" % (SHIM, other)}, shim=False, rc=0)
    equal(r.err, "", "on stderr")
    equal(len(box.folders()), 1, "families of one process")
    equal(len(spans(box, "clock_nanosleep") + spans(box, "nanosleep")), 1, "sleeps")


@test
def recovery_takes_no_memory_into_a_strangers_folder(box):
    need_root()
    box.run([program("exit"), "kill"], rc=-signal.SIGKILL)
    arena = box.arenas_left()[0]
    theirs = os.path.join(box.path, "theirs", "evil-00000000")
    os.makedirs(theirs)
    os.symlink(arena, os.path.join(theirs, "arena"))
    os.chown(theirs, 65534, 65534)
    one_line(box.d9("recover", os.path.dirname(theirs), rc=4), 4)
    equal((os.listdir(theirs), os.path.exists(arena)), (["arena"], True), "after the refusal")
    box.d9("recover", box.dir)
    check(not os.path.exists(arena), "not recovered where it belongs")


# ---- rights and clocks ---------------------------------------------------------------------------------


@parametrise(["keep-caps", "keep-caps-raw", "no-fixup"])
def a_change_of_one_threads_rights(box, how):
    need_root()
    os.chmod(box.path, 0o755)
    for delay in ("0", "1300"):  # 1300 ms: a drain thread is there already
        bare = box.run([program("rights"), how, delay], shim=False)
        equal(bare.rc, 7, "exit code without the recorder")
        r = box.run([program("rights"), how, delay])
        equal(r.rc, 7, "exit code after %s ms: %s" % (delay, r.err))
    check(spans(box, "setresgid"), "the change of group is not recorded")


@parametrise(["namespaces", "namespaces-raw"])
def a_change_of_namespaces(box, how):
    need_root()
    if box.run([program("rights"), how], shim=False).rc != 7:
        raise Skip("no namespaces to be had here")
    for delay in ("0", "1300"):
        r = box.run([program("rights"), how, delay])
        equal(r.rc, 7, "exit code after %s ms: %s" % (delay, r.err))


@parametrise(["own-stack", "signal-stack", "sleep", "cond", "sem"])
def no_thread_is_made_inside_a_handler_or_an_allocator(box, how):
    bare = box.run([program("handler"), how], shim=False, rc=0)
    r = box.run([program("handler"), how], rc=0)
    equal(r.out, bare.out, "what it prints")
    check(spans(box, "poll"), "nothing was recorded, so nothing was tested")


@test
def a_family_goes_on_while_many_others_come_and_go(box):
    code = '''import os, select, subprocess
for _ in range(150):
    subprocess.run(["true"], check=True)
pid = os.fork()
if pid:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
for _ in range(30):
    select.select([], [], [], 0.05)
os._exit(3)'''
    # Freed memory is filled, so that who still reads it is misled.
    box.d9_run([sys.executable, "-c", code], env={"MALLOC_PERTURB_": "170"}, rc=3)
    ends = [e for e in box.events() if e["event"] == "exit" and e["code"] == 3]
    last = max(s["t_ns"] for s in spans(box, "select") + spans(box, "pselect"))
    equal(len(ends), 2, "ends with the code 3")
    check(min(e["t_ns"] for e in ends) > last, "a process was given up while it ran: %s, last wait at %d" % (ends, last))


@parametrise(["fork", "_Fork", "SYS_fork"])
def a_thread_is_made_after_libcs_fork_alone(box, how):
    code = '''import ctypes, os, select, sys
libc = ctypes.CDLL(None)
pid = {"fork": os.fork, "_Fork": lambda: libc._Fork(), "SYS_fork": lambda: libc.syscall(57)}[sys.argv[1]]()
if pid:
    os._exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
for _ in range(30):
    select.select([], [], [], 0.05)
os.write(1, b"%d\\n" % len(os.listdir("/proc/self/task")))
os._exit(5)'''
    if how == "_Fork" and not hasattr(ctypes.CDLL(None), "_Fork"):
        raise Skip("this libc has no _Fork")
    r = box.run([sys.executable, "-c", code.replace("\\\\", "\\"), how], rc=5)
    equal(r.out, "2\n" if how == "fork" else "1\n", "threads of the child")
    # The recorder waits with everything else that it knows of until the end, which it drains.
    equal(len([s for s in spans(box, "select") + spans(box, "pselect") if s["dur_ns"] > 40_000_000]), 30, "waits of the child")


@test
def a_member_that_calls_a_stranger_its_own(box):
    """What the drainer, which may be root, sees of a process goes into memory that each member reads."""
    marker = os.path.join(box.path, "the-strangers-program")
    shutil.copy(shutil.which("sleep"), marker)
    stranger = box.start([marker, "60"], shim=False)
    with open("/proc/%d/stat" % stranger.pid, encoding="ascii") as f:
        start = f.read().rsplit(")", 1)[1].split()[19]
    code = '''import mmap, os, glob, select, struct, sys, time
pid, start, marker = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3].encode()
link = glob.glob(os.environ["D9_DIR"] + "/*/arena")[0]
with open(os.readlink(link), "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    own = next(at for at in range(0, len(m) // 128 * 128, 128) if m[at:at + 4] == struct.pack("<I", 1)
               and m[at + 40:at + 48] == struct.pack("<ii", os.getpid(), os.getppid()))
    m[own + 128:own + 256] = struct.pack("<IIQQQQii", 1, 0, 1, start, 1, 0, pid, 1) + bytes(80)
    m[192:196] = struct.pack("<I", 2)
    end = time.time() + 8
    while time.time() < end: select.select([], [], [], 0.05)
    args = 12288 # where the program's own arguments are
    print(m.find(marker, 0, args), m.find(marker, args + 4096))'''
    r = box.d9_run([sys.executable, "-c", code, str(stranger.pid), start, marker], rc=0)
    equal(r.out, "-1 -1\n", "places at which the stranger's program is named")


@test
def a_member_that_writes_another_folder_into_the_memory(box):
    elsewhere = os.path.join(box.path, "elsewhere")
    os.mkdir(elsewhere)
    code = '''import glob, mmap, os, select, sys, time
link = glob.glob(os.environ["D9_DIR"] + "/*/arena")[0]
with open(os.readlink(link), "r+b") as f, mmap.mmap(f.fileno(), 0) as m:
    at = m.find(os.path.dirname(link).encode() + b"\\0")
    assert at > 0
    new = sys.argv[1].encode() + b"\\0"
    m[at:at + len(new)] = new
end = time.time() + 2.5
while time.time() < end: select.select([], [], [], 0.05)'''
    box.run([sys.executable, "-c", code.replace("\\\\", "\\"), elsewhere], rc=0)
    equal(os.listdir(elsewhere), [], "files made where the memory said")
    check([n for _, _, names in os.walk(box.dir) for n in names if n.startswith("s-")], "no segments in the folder of the recording")


@parametrise(["tsc", "tsc-raw", "strict", "strict-raw"])
def a_program_that_forbids_itself_the_clock(box, how):
    for delay in ("5", "1300"):
        r = box.run([program("rights"), how, delay])
        equal(r.rc, 7, "exit code after %s ms" % delay)
        r = box.d9_run([program("rights"), how, delay], env={"D9_NAME": "outside"})
        equal(r.rc, 7, "exit code under d9 run")
    waits = [s for s in spans(box, "poll") if s["dur_ns"] > 4_000_000]
    check(len(waits) >= 4, "what was recorded before is not there: %s" % [(s["pid"], s["dur_ns"]) for s in waits])


if __name__ == "__main__":
    main()
