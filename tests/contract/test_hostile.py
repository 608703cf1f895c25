#!/usr/bin/env python3
"""Recordings that somebody made to harm who reads them: session memory, folders, names, segments, changed at every place that
has a meaning and at random.  Whatever is in them, a command ends by itself, with an exit code of docs/CONTRACT.md, in time and
with one sentence for each thing that is wrong; nothing outside of the session is read, written or ordered about, and nothing
in it reaches a terminal as more than text.

Unlike tests/fuzz this goes through the whole command: opening, /proc, printing."""
import contextlib
import fcntl
import itertools
import json
import mmap
import os
import re
import shutil
import signal
import socket
import stat
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from counters import Shared
from harness import D9, PROGS, check, equal, main, seed, test, wait_until

RANDOM = seed()
ROUNDS = int(os.environ.get("D9_TEST_HOSTILE", "30"))  # random changes
LIMIT = 60  # seconds: whoever needs so long hangs
READING = [c.split() for c in ("status", "status --json", "status --metrics", "report", "report --json", "dump", "dump --json")]
TURNS = {c: itertools.cycle([r for r in READING if r[0] == c]) for c in ("status", "report", "dump")}
EVIL = b"\x1b]0;owned\x07\x1b[31m\xc2\x9b32m\x9b33m\x7f\r\nd9: all is well\n\"}\\"
SECRET = "the-secret-of-another"  # an argument of a program that was recorded outside of the session

# ---- the layout (format/arena.h), as far as it is attacked by name; sound() says if it is not that any more ----

N_HOOKS, N_WAKERS, N_SITES, N_TYPES, N_PROCS, N_THREADS, N_MODULES = 512, 1024, 4096, 64, 4096, 16384, 2048
HEADER, CLOCKS, TEXT, HOOK = 16384, 4096, 8192, 64
DIR, NAME, ERROR_TEXT, WARNINGS, EXE = 8192, 9216, 9280, 9728, 12288
MASK, FLUSH_ASKED, DRAIN_WAKE, PROC_NEXT = 128, 144, 164, 192
LEASE_HEARTBEAT, ERROR_CODE = 336, 344
ORDERS = ((MASK, 8), (FLUSH_ASKED, 4))  # what d9 ctl writes


def pages(n):
    return (n + 4095) & ~4095


class Layout:
    def __init__(self, n):
        self.hooks = HEADER
        self.chunk_table = self.hooks + N_HOOKS * HOOK
        self.wakers = self.chunk_table + pages(n * 8)
        self.sites = self.wakers + N_WAKERS * 32
        self.types = self.sites + N_SITES * 32
        self.procs = self.types + N_TYPES * 256
        self.threads = self.procs + N_PROCS * 128
        threads = min(N_THREADS, max(256, (n + 63) // 64 * 64))
        self.calls = self.threads + threads * 256
        self.modules = self.calls + threads * 64 * 32
        self.chunks = self.modules + pages(N_MODULES * 384)
        self.bytes = self.chunks + n * 4096

    def region(self):
        """A place of each kind as often as of any other; of the tables, what is used."""
        return RANDOM.choice([(0, 512), (0, 512), (CLOCKS, 4096), (TEXT, 8192), (self.hooks, HOOK * 40), (self.chunk_table, 512),
                              (self.wakers, 4096), (self.sites, 65536), (self.types, 512), (self.procs, 512),
                              (self.threads, 2560), (self.calls, 8192), (self.modules, 384 * 8), (self.chunks, 65536)])


def extents(fd, size):
    at = 0
    while at < size:
        try:
            at = os.lseek(fd, at, os.SEEK_DATA)
        except OSError:
            return
        end = os.lseek(fd, at, os.SEEK_HOLE)
        yield at, os.pread(fd, end - at, at)
        at = end


class Memory:
    """Session memory as bytes to be changed: what the file holds, its holes left out."""

    def __init__(self, path):
        with open(path, "rb") as f:
            self.size = os.fstat(f.fileno()).st_size
            self.parts = [(at, bytearray(b)) for at, b in extents(f.fileno(), self.size)]
        self.n, = struct.unpack_from("<I", self.parts[0][1], 12)
        self.at = Layout(self.n)

    def copy(self):
        m = object.__new__(Memory)
        m.__dict__.update(self.__dict__, parts=[(at, bytearray(b)) for at, b in self.parts])
        return m

    def put(self, at, data):
        for start, b in self.parts:
            if start <= at and at + len(data) <= start + len(b):
                b[at - start:at - start + len(data)] = data
                return
        self.parts.append((at, bytearray(data)))

    def get(self, at, n):
        return next((bytes(b[at - start:at - start + n]) for start, b in self.parts if start <= at < start + len(b)), bytes(n))

    def text(self, at, data, room):
        self.put(at, (data + b"\0" * room)[:room])

    def u32(self, at, v):
        self.put(at, struct.pack("<I", v & 0xFFFFFFFF))

    def u64(self, at, v):
        self.put(at, struct.pack("<Q", v & (1 << 64) - 1))

    def write(self, path):
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        os.ftruncate(fd, self.size)
        for at, b in self.parts:
            if at < self.size:
                os.pwrite(fd, b[:self.size - at], at)
        os.close(fd)


# ---- what is attacked -----------------------------------------------------------------------------------


class Scene:
    """A session that died undrained, to be changed; one that lives and one that is over, which are none of its business."""

    def __init__(self, box):
        self.box, self.taken = box, []
        self.victim, self.shared = self.start("victim")
        self.victim_folder = box.folders()[0]
        dead, shared = self.start("dead", D9_DIR=os.path.join(box.path, "dead"))  # where nobody adopts it
        self.folder = os.path.join(box.path, "dead", os.listdir(os.path.join(box.path, "dead"))[0])
        self.victim_arena = os.readlink(os.path.join(self.victim_folder, "arena"))
        self.arena = os.readlink(os.path.join(self.folder, "arena"))
        box.arenas.update((self.arena, self.victim_arena))
        box.d9("ctl", str(dead.pid), "flush")
        now = shared.threads()
        wait_until(lambda: all(n > now[t] + 20 for t, n in shared.threads().items()), "the threads do not go on")
        box.end(dead)
        shared.close()
        self.outside = os.path.join(box.path, "outside")
        box.run([D9, "run", "--quiet", "--dir", self.outside, "--", "true", SECRET], shim=False, rc=0)
        self.outside_folder = os.path.join(self.outside, os.listdir(self.outside)[0])
        self.memory = Memory(self.arena)
        self.sound()
        self.segments = {n: open(os.path.join(self.folder, n), "rb").read() for n in os.listdir(self.folder) if n != "arena"}
        check(self.segments, "nothing was flushed")
        # Moved out of the way: only what a case makes of it is in the folder.
        os.kill(self.victim.pid, signal.SIGSTOP)  # it need not run to be disturbed
        self.dir = os.path.join(box.path, "attacked")
        os.mkdir(self.dir)

    def start(self, name, **env):
        shared = Shared(self.box, name + "-counters")
        env = {"D9_NAME": name, "D9_MEM_MB": "1", "D9_IO_MIN_US": "0", **env}
        p = self.box.start([os.path.join(PROGS, "kill"), shared.path], env=env)
        shared.wait_started(p)
        return p, shared

    def sound(self):
        m = self.memory
        equal(m.size, m.at.bytes, "bytes of the session memory as this test computes them")
        equal(m.get(DIR, 1024).split(b"\0")[0].decode(), self.folder, "what lies where the folder's name is expected")
        equal(m.get(EXE, 4096).split(b"\0")[0].decode(), os.path.join(PROGS, "kill"), "what lies where the program's name is")
        pid = struct.unpack("<i", m.get(m.at.procs + 40, 4))[0]
        check(pid > 1, "no process where the first one is expected")

    def arena_name(self):
        path = "/dev/shm/d9-%d-%032x" % (os.geteuid(), RANDOM.getrandbits(128))
        self.taken.append(path)
        return path

    def build(self, memory=None, name="dead-01234567", link=None, segments=None):
        """The folder anew.  link: where `arena` leads instead of to a file with this memory."""
        self.clear()
        folder = os.path.join(os.fsencode(self.dir), os.fsencode(name))
        os.mkdir(folder)
        for n, data in (self.segments if segments is None else segments).items():
            with open(os.path.join(folder, os.fsencode(n)), "wb") as f:
                f.write(data)
        if link is None:
            link = self.arena_name()
            (memory or self.memory).write(link)
        if link:
            os.symlink(link, os.path.join(folder, b"arena"))
        return folder

    def clear(self):
        shutil.rmtree(self.dir)
        os.mkdir(self.dir)
        for path in self.taken:
            with contextlib.suppress(FileNotFoundError):
                if os.path.isdir(path) and not os.path.islink(path):
                    os.rmdir(path)
                else:
                    os.unlink(path)
        self.taken = []

    # ---- what must stay as it is ----

    def others(self):
        """Everything that is not the attacked session."""
        found = {}
        for root in (self.outside, self.box.dir, os.path.dirname(self.folder)):
            for folder, _, names in os.walk(root):
                for n in names:
                    path = os.path.join(folder, n)
                    if not folder.startswith(self.victim_folder):  # it grows by itself
                        found[path] = (os.lstat(path).st_size, os.lstat(path).st_mtime_ns)
        with open(self.victim_arena, "rb") as f, mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ) as m:
            found["orders"] = [bytes(m[at:at + n]) for at, n in ORDERS]
        found["alive"] = self.victim.poll()
        return found

    def close(self):
        self.clear()
        self.shared.close()


@contextlib.contextmanager
def scene(box):
    s = Scene(box)
    try:
        yield s
    finally:
        s.close()


# ---- judging --------------------------------------------------------------------------------------------

CONTROL = re.compile("[\0-\x08\x0b-\x1f\x7f\x80-\x9f]")  # tabs and line ends are the commands' own
METRIC = re.compile(r'(# (TYPE|HELP|EOF).*|[a-z0-9_]+(\{[a-z]+="([^"\\\n]|\\.)*"(,[a-z]+="([^"\\\n]|\\.)*")*\})? -?[0-9.e+-]+)$')


def judge(what, command, r, codes=(0, 3, 4)):
    say = "%s: d9 %s: exit %d\n%r\n%r" % (what, " ".join(command), r.rc, r.out[-1500:], r.err[-1500:])
    check(r.rc in codes, "exit code: " + say)
    for text in (r.out, r.err):
        check(not CONTROL.search(text), "control characters for the terminal: " + say)
        check(not re.search("^d9: all is well", text, re.M), "a line of the file's own: " + say)
        check(SECRET not in text, "what is outside of the session was read: " + say)
    lines = r.err.split("\n")
    check(lines.pop() == "" and all(line.startswith("d9: ") for line in lines), "not sentences: " + say)
    check(r.rc == 0 or lines, "nothing said: " + say)
    if r.rc == 0 and "--json" in command:
        for line in r.out.splitlines():
            json.loads(line)
    if r.rc == 0 and "--metrics" in command:
        for line in r.out.splitlines():
            check(METRIC.match(line), "not a metric: %r in %s" % (line, say))


def run(s, command):
    r = s.box.run([D9, *command], shim=False, timeout=LIMIT, errors="surrogateescape")
    # Bytes that are no UTF-8 count as the characters of the same number: a terminal may take them for these.
    r.out, r.err = (re.sub("[\udc80-\udcff]", lambda m: chr(ord(m[0]) & 0xFF), t) for t in (r.out, r.err))
    return r


def attack(s, what, dirs=None, every=False):
    """The reading commands on what is there, by turns as text and as JSON unless `every`; then the one that changes it."""
    before = s.others()
    for d in dirs or [s.dir]:
        for command in READING if every else [next(TURNS[c]) for c in sorted(TURNS)]:
            judge(what, command, run(s, [*command, *(["--session", "all"] if command[0] != "status" else []), d]))
        judge(what, ["recover"], run(s, ["recover", d]))
    equal(s.others(), before, "what is outside of the session, after " + what)


# ---- structured -----------------------------------------------------------------------------------------


def files_of_all_sizes(s):
    m = s.memory
    for size in (0, 1, 4095, 4096, HEADER - 1, HEADER, m.at.procs, m.size // 2, m.size - 4096, m.size - 1, m.size + 1, 1 << 40):
        yield "a file of %d bytes" % size, dict(memory=size)
    for n in (0, 1, m.n - 1, m.n + 1, 1 << 20, 1 << 24, (1 << 24) + 1, 0xFFFFFFFF):
        c = m.copy()
        c.u32(12, n)
        c.u64(16, Layout(n).bytes)
        c.size = min(Layout(n).bytes, 1 << 42)
        yield "%d chunks" % n, dict(memory=c)


@test
def memory_of_another_size(box):
    with scene(box) as s:
        for what, how in files_of_all_sizes(s):
            if isinstance(how["memory"], int):
                c = s.memory.copy()
                c.size = how["memory"]
                how = dict(memory=c)
            s.build(**how)
            attack(s, what)


@test
def texts_that_a_terminal_would_obey(box):
    with scene(box) as s:
        c, at = s.memory.copy(), s.memory.at
        for place, room in ((DIR, 1024), (NAME, 64), (ERROR_TEXT, 192), (ERROR_TEXT + 192, 32), (9504, 16), (9520, 40),
                            (WARNINGS, 1536), (EXE, 4096)):
            c.text(place, EVIL, room)
        c.u32(ERROR_CODE, 1)
        for i in range(1, 40):
            c.text(at.hooks + HOOK * i, EVIL, 48)
            c.text(at.hooks + HOOK * i + 48, b"\x1b[3m", 12)
        for i in range(8):
            c.text(at.threads + 256 * i + 16, EVIL, 16)
            c.text(at.modules + 384 * i + 88, EVIL, 296)
        c.put(at.types, struct.pack("<II", 1, 40) + EVIL + b"\0a:u64")
        s.build(memory=c, segments={})
        attack(s, "escapes in every text", every=True)
        s.build(memory=c)
        attack(s, "escapes in every text, beside a segment", every=True)
        whole = EVIL.replace(b"/", b"_")
        names = (b"dead-\x1b[31m-01234567", b"dead\nd9: all is well-01234567", b'dead"} 1-01234567',
                 b"dead-\xc2\x9b31m-01234567", b"dead-\xff\x9b-01234567", whole + b"-01234567",
                 b"-rf-01234567", b"dead-\\-01234567", b"x" * 246 + b"-01234567")
        for name in names:
            s.build(name=name)
            attack(s, "a folder called %r" % name, [s.dir, os.path.join(os.fsencode(s.dir), name)], every=name == names[0])
        for link in (EVIL, b"/dev/shm/d9-0-" + EVIL, b"x" * 4000):
            s.build(link=link)
            attack(s, "a link to %r" % link[:40])


@test
def links_that_lead_elsewhere(box):
    with scene(box) as s:
        elsewhere = os.path.join(box.path, "elsewhere")
        s.memory.write(elsewhere)
        named = s.arena_name
        for link in (elsewhere, s.outside_folder, os.path.join(s.outside_folder, "s-000001.d9"), "/etc/passwd", "/dev/zero",
                     "/dev/tty", "arena", "../arena", ".", "", "/dev/shm/../../etc/passwd", "/dev/shm/d9-0-",
                     "/dev/shm/d9-0-" + "0" * 31, "/dev/shm/d9-0-" + "0" * 33):
            s.build(link=link or None)
            attack(s, "a link to %s" % link)

        def make(what):
            path = named()
            if what == "link":
                os.symlink(s.victim_arena, path)
            elif what == "fifo":
                os.mkfifo(path)
            elif what == "folder":
                os.mkdir(path)
            elif what == "socket":
                with socket.socket(socket.AF_UNIX) as sock:
                    sock.bind(path)
            elif what == "device":
                os.mknod(path, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
            elif what == "stranger's":
                s.memory.write(path)
                os.chown(path, 65534, 65534)
            return path
        kinds = ["nothing", "link", "fifo", "folder", "socket"] + (["device", "stranger's"] if os.geteuid() == 0 else [])
        for what in kinds:
            s.clear()
            taken = make(what)
            s.taken = []
            s.build(link=taken)
            s.taken = [taken]
            attack(s, "memory that is a %s" % what, [s.dir, os.path.join(s.dir, "dead-01234567")])
        for what in ("file", "fifo", "folder"):  # `arena` itself
            folder = s.build(link="")
            place = os.path.join(folder, b"arena")
            if what == "file":
                s.memory.write(place)
            elif what == "fifo":
                os.mkfifo(place)
            else:
                os.mkdir(place)
            attack(s, "an arena that is a %s" % what)


@test
def folders_with_other_things_in_them(box):
    with scene(box) as s:
        segment, data = next(iter(s.segments.items()))
        secret = next(os.path.join(s.outside_folder, n) for n in os.listdir(s.outside_folder) if n.endswith(".d9"))
        for what in ("link", "fifo", "folder", "device", "huge", "empty", "short", "evil"):
            folder = os.fsdecode(s.build(segments={}))
            place = os.path.join(folder, segment)
            if what == "link":
                os.symlink(secret, place)
            elif what == "fifo":
                os.mkfifo(place)
            elif what == "folder":
                os.mkdir(place)
            elif what == "device":
                if os.geteuid():
                    continue
                os.mknod(place, 0o600 | stat.S_IFCHR, os.makedev(1, 5))
            else:
                with open(place, "wb") as f:
                    f.write(b"" if what == "empty" else data[:1] if what == "short" else data if what == "huge" else EVIL)
                    if what == "huge":
                        f.truncate(1 << 40)
            attack(s, "a segment that is a %s" % what, [s.dir, folder])
        s.build()
        for link, target in (("linked-01234567", s.outside_folder), ("session-01234567", s.victim_folder), ("loop-01234567", "."),
                             ("up-01234567", "..")):
            os.symlink(target, os.path.join(s.dir, link))
        attack(s, "folders that are links")
        s.build()
        for name in ("fifo-01234567", "other"):
            os.mkfifo(os.path.join(s.dir, name))
        with open(os.path.join(s.dir, "file-01234567"), "w", encoding="ascii") as f:
            f.write("x")
        attack(s, "files where folders are expected")


@test
def processes_that_are_not_its_own(box):
    with scene(box) as s:
        at = s.memory.at
        with open("/proc/%d/stat" % s.victim.pid, encoding="ascii") as f:
            start = int(f.read().rsplit(")", 1)[1].split()[19])
        for pid in (s.victim.pid, 1, os.getpid(), 0, -1, -s.victim.pid, 0x7FFFFFFF, -0x80000000):
            for state, began, said in ((1, start, 0), (1, 0, 0), (1, 0, 2), (5, start, 0), (77, 1, 77)):
                c = s.memory.copy()
                c.u32(PROC_NEXT, 4096)
                for i in range(4):
                    entry = struct.pack("<IIQQQQiiIIiIII", state, i - 1 & 0xFFFFFFFF, i, began, 1, 0, pid, pid, 0, 0, 0, said,
                                        1, 0)
                    c.put(at.procs + 128 * i, entry)
                c.put(72, struct.pack("<I", pid & 0xFFFFFFFF))
                s.build(memory=c)
                before = s.others()
                for command in (["status", "--json"], ["report"], ["recover"]):
                    judge("process %d in state %d" % (pid, state), command, run(s, [*command, s.dir]))
                equal(s.others(), before, "what is outside of the session")


# ---- orders ---------------------------------------------------------------------------------------------

# A process that has mapped that file, as a recorded one has: it says so, then waits until it is ended.
HOLDER = """import mmap, os, sys, time
files = [open(p, "r+b") for p in sys.argv[1:]]
maps = [mmap.mmap(f.fileno(), 0) for f in files]
print("ready", flush=True)
time.sleep(1000)"""


def held(s, *paths):
    p = s.box.start([sys.executable, "-c", HOLDER, *paths], shim=False)
    check(p.stdout.readline() == "ready\n", "the process does not start: %s" % (p.poll(),))
    return p


def order(s, what, p, flush=True):
    """Every command that takes a pid, at this process: nobody else notices."""
    before = s.others()
    commands = ["status PID", "status --json PID", "status --metrics PID", "ctl PID off", "ctl PID on", "ctl PID flush"]
    for command in commands if flush else commands[:-1]:
        command = command.replace("PID", str(p.pid)).split()
        judge(what, command, run(s, command))
    equal(s.others(), before, "what is outside of the session, after %s" % what)
    check(p.poll() is None, "%s: the process was ended" % what)
    s.box.end(p)


@test
def orders_to_a_process_that_lies(box):
    with scene(box) as s:
        def case(what, change, paths=None, flush=True):
            c = s.memory.copy()
            change(c)
            s.clear()
            path = s.arena_name()
            c.write(path)
            order(s, what, held(s, *(paths or []), path), flush)
        case("memory as it was", lambda c: None)
        case("the folder of a process that lives", lambda c: c.text(DIR, s.victim_folder.encode(), 1024))
        case("the folder of a family that died undrained", lambda c: c.text(DIR, s.folder.encode(), 1024))
        case("a folder outside", lambda c: c.text(DIR, s.outside_folder.encode(), 1024))
        # A file that only looks like the memory of another process in the list of mappings.
        decoy = os.path.join(box.path, "dev", "shm")
        os.makedirs(decoy)
        decoy = os.path.join(decoy, os.path.basename(s.victim_arena))
        s.memory.write(decoy)
        order(s, "a file called as the memory of another process", held(s, decoy))
        s.clear()
        gone = s.arena_name()
        s.memory.write(gone)
        p = held(s, gone)
        os.unlink(gone)
        os.symlink(s.victim_arena, gone)
        order(s, "memory that was removed, a link in its place", p)
        p = held(s, decoy)
        os.unlink(decoy)
        order(s, "memory that was removed", p)
        case("a folder that is no text", lambda c: c.text(DIR, EVIL + b"x" * 1024, 1024))
        case("an error that was", lambda c: [c.text(ERROR_TEXT, EVIL, 192), c.text(WARNINGS, EVIL, 1536), c.u32(ERROR_CODE, 2)])
        case("a drainer that seems to live", lambda c: c.u64(LEASE_HEARTBEAT, (1 << 64) - 1), flush=False)
        case("another version", lambda c: c.u32(8, 99))
        case("no chunks", lambda c: c.u32(12, 0))


@test
def memory_that_is_cut_off_meanwhile(box):
    with scene(box) as s:
        path = s.arena_name()
        s.memory.write(path)
        p = held(s, path)
        with open(path, "r+b") as f:
            fcntl.flock(f, fcntl.LOCK_EX)  # the order has mapped the memory and waits for its turn
            ctl = box.start([D9, "ctl", str(p.pid), "off"], shim=False)

            def mapped():
                with open("/proc/%d/maps" % ctl.pid, encoding="ascii") as maps:
                    return path in maps.read()
            wait_until(mapped, "the order does not map the memory")
            f.truncate(0)
        r = box.finish(ctl, LIMIT)
        judge("memory that is cut off", ["ctl"], r, (3,))
        s.box.end(p)


@test
def an_order_waits_for_nobody_for_ever(box):
    """Somebody holds the lock by which two orders at once are one after the other."""
    with scene(box) as s:
        with open(s.victim_arena, "r+b") as f:
            fcntl.flock(f, fcntl.LOCK_EX)
            r = run(s, ["ctl", str(s.victim.pid), "off"])
            judge("a lock that is held", ["ctl"], r, (3,))


# ---- at random ------------------------------------------------------------------------------------------


def value():
    return RANDOM.choice((0, 1, 0x7F, 0xFF, 0xFFFF, 0x7FFFFFFF, 0x80000000, 0xFFFFFFFF, 1 << 32, (1 << 63) - 1,
                          1 << 63, (1 << 64) - 1, RANDOM.getrandbits(64), RANDOM.getrandbits(8), RANDOM.getrandbits(16)))


@test
def changes_at_random(box):
    with scene(box) as s:
        for n in range(ROUNDS):
            c, said = s.memory.copy(), []
            for _ in range(RANDOM.choice((1, 2, 5, 30))):
                start, room = c.at.region()
                at = start + RANDOM.randrange(room) // 4 * 4
                data = RANDOM.choice((struct.pack("<Q", value()), struct.pack("<I", value() & 0xFFFFFFFF),
                                      EVIL[:RANDOM.randrange(1, len(EVIL))], bytes(RANDOM.randrange(64))))
                c.put(at, data)
                said.append((at, data.hex()))
            segments = {}
            for name, data in s.segments.items():
                data = bytearray(data)
                for _ in range(n % 3):
                    data[RANDOM.randrange(len(data))] = RANDOM.randrange(256)
                segments[name] = bytes(data[:RANDOM.randrange(len(data))]) if n % 7 == 6 else bytes(data)
            s.build(memory=c, segments=segments if n % 2 else {})
            attack(s, "round %d: %s" % (n, said[:6]))


if __name__ == "__main__":
    main()
