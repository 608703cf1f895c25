#!/usr/bin/env python3
"""A folder that cannot be written for a while: told at once, nothing lost that fits in memory, over without a restart."""
import contextlib
import glob
import json
import os
import shutil
import subprocess
import sys
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import LIMIT, Skip, check, equal, main, need_command, need_root, parametrise, test, wait_until

READS = """import os, select, sys
if sys.argv[1:]: os.setgid(int(sys.argv[1])), os.setuid(int(sys.argv[1]))
fd = os.open('/dev/zero', os.O_RDONLY)
while True:
    if not select.select([0], [], [], 0.1)[0]: continue
    line = os.read(0, 20)
    if not line: break
    for i in range(int(line)): os.read(fd, 1001 + i % 7)
    os.write(1, b'done\\n')
"""
ENV = {"D9_IO_MIN_US": "0", "D9_STACKS": "off", "D9_ROTATE_SECS": "1", "D9_NAME": "reader"}


class Reader:
    """A recorded program that reads as often as it is told."""

    def __init__(self, box, how, *uid, quiet=("--quiet",)):
        argv = [sys.executable, "-S", "-c", READS, *uid]
        if how == "run":
            argv = box.d9_run_words(*quiet) + argv
        self.box, self.how, self.total = box, how, 0
        self.p = box.start(argv, env=ENV, shim=how != "run", stdin=subprocess.PIPE)

    def read(self, n):
        self.total += n
        self.p.stdin.write("%d\n" % n)
        self.p.stdin.flush()
        equal(self.p.stdout.readline(), "done\n", "the program")

    def status(self):
        r = self.box.d9("status", "--json", self.box.dir)
        return [p for p in json.loads(r.out)["processes"] if "reader" in p["id"]][0]

    def until(self, state, seconds):
        end = time.monotonic() + seconds
        while self.status()["state"] != state:
            check(time.monotonic() < end, "not %s within %d s: %s" % (state, seconds, self.status()))
            time.sleep(0.05)

    def finish(self):
        r = self.box.finish(self.p)
        equal(r.rc, 0, "exit code: %s" % r.err)
        equal(r.err, "", "on stderr")
        spans = [e for e in self.box.events() if e["event"] == "span" and e["hook"] == "read" and 1001 <= e["result"] <= 1007]
        equal(len([e for e in self.box.events() if e["event"] == "gap"]), 0, "gaps")
        equal(len(spans), self.total, "reads that are recorded")


@contextlib.contextmanager
def small_disk(box, size):
    """box.dir on a file system of its own."""
    need_root()
    os.makedirs(box.dir, exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=%s,mode=700" % size, "none", box.dir], capture_output=True).returncode:
        raise Skip("cannot mount a tmpfs")
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", box.dir], check=True, timeout=LIMIT)


def fill(path):
    with open(path, "wb", buffering=0) as f:
        with contextlib.suppress(OSError):
            while f.write(b"x" * 4096):
                pass


@parametrise(["bare", "run"])
def a_full_disk(box, how):
    need_command("run")
    with small_disk(box, "4m"):
        reader = Reader(box, how)
        reader.read(1000)
        reader.until("on", 10)
        time.sleep(1.2)  # bare: the drain thread begins a second after the start
        reader.read(1000)
        fill(os.path.join(box.dir, "filler"))
        reader.read(20000)
        reader.until("failed", 10)
        check("pace" in reader.status()["last_error"]["message"], "message %s" % reader.status()["last_error"])
        time.sleep(2)  # several tries
        folder = [f for f in box.folders() if "reader" in f][0]
        empty = [n for n in os.listdir(folder) if n.endswith(".d9") and os.path.getsize(os.path.join(folder, n)) < 1024]
        check(len(empty) <= 1, "empty segments: %s" % empty)
        os.unlink(os.path.join(box.dir, "filler"))
        reader.until("on", 40)
        reader.read(1000)
        reader.finish()
        os.sync()


@parametrise(["bare", "run"])
def nothing_is_written_twice(box, how):
    """The disk is full in the middle of a chunk, of which a part is written already."""
    need_command("run")
    for kib in (64, 80, 96, 112, 128):
        box.dir = os.path.join(box.path, "traces-%d" % kib)
        with small_disk(box, "%dk" % kib):
            reader = Reader(box, how, quiet=())
            if how == "bare":
                time.sleep(1.2)
            for _ in range(5):
                reader.read(20000)
                time.sleep(0.1 if how == "run" else 0.3)
            r = box.finish(reader.p)
            equal(r.rc, 0, "exit code: %s" % r.err)
            if how == "run":
                check("No space left on device" in r.err and "d9 recover " + box.dir in r.err, "the summary: %s" % r.err)
            subprocess.run(["mount", "-o", "remount,size=64m", box.dir], check=True, timeout=LIMIT)
            for left in ("shared memory", "segments"):
                reads = [e["t_ns"] for e in box.events() if e["event"] == "span" and e["hook"] == "read" and 1001 <= e["result"] <= 1007]
                equal(len(reads), len(set(reads)), "reads from %s, and the different ones of %d KiB" % (left, kib))
                equal(len(reads), reader.total, "reads from %s, of %d KiB" % (left, kib))
                box.d9("recover", box.dir)
            losses = box.document("report")["losses"]
            equal(losses["torn_blocks"], 0, "damaged blocks")


@test
def a_disk_that_becomes_read_only(box):
    with small_disk(box, "64m"):
        def remount(how):
            return subprocess.run(["mount", "-o", "remount,bind," + how, box.dir], capture_output=True, timeout=LIMIT).returncode == 0
        reader = Reader(box, "bare")
        reader.read(1000)
        time.sleep(1.2)
        reader.read(1000)
        wait_until(lambda: remount("ro"), "no moment without an open file")  # the segments are closed each second
        reader.read(20000)
        reader.until("failed", 10)
        equal(reader.status()["last_error"]["code"], "dir", "the error")
        check(remount("rw"), "cannot be made writable again")
        reader.until("on", 40)
        reader.read(1000)
        reader.finish()


@test
def a_permission_that_is_taken_away(box):
    """Of one that became another user: root may write everywhere."""
    need_root()
    os.chmod(box.path, 0o755)
    reader = Reader(box, "bare", "65534")
    reader.read(1000)
    time.sleep(1.2)
    reader.read(1000)
    folder = [f for f in box.folders() if "reader" in f][0]
    os.chmod(folder, 0)
    reader.read(20000)
    reader.until("failed", 10)
    equal(reader.status()["last_error"]["code"], "dir", "the error")
    os.chmod(folder, 0o700)
    reader.until("on", 40)
    reader.finish()


@parametrise(["moved", "deleted"])
def a_folder_that_is_removed(box, how):
    reader = Reader(box, "bare")
    reader.read(1000)
    time.sleep(1.5)
    reader.read(1000)
    before = [f for f in box.folders() if "reader" in f][0]
    box.d9("ctl", str(reader.p.pid), "flush")
    moved = box.path + "/moved"
    if how == "moved":
        os.rename(before, moved)
    else:
        shutil.rmtree(before)
        reader.total = 0  # what was written is gone
    reader.read(1000)
    time.sleep(2.5)
    reader.read(1000)
    r = box.finish(reader.p)
    equal((r.rc, r.err), (0, ""), "the program")
    n = 0
    for folder in ([moved] if how == "moved" else []) + [f for f in box.folders() if "reader" in f]:
        r = box.d9("dump", "--json", folder)
        n += sum(e["event"] == "span" and e["hook"] == "read" and 1001 <= e["result"] <= 1007 for e in map(json.loads, r.out.splitlines()))
    equal(n, reader.total, "reads that are recorded, where the folder went and where it was")


@parametrise(["recover", "flush"])
def what_root_writes_is_its_owners(box, how):
    need_root()
    os.mkdir(box.dir, 0o777)
    os.chmod(box.dir, 0o777)
    os.chmod(box.path, 0o755)
    nobody = {"user": 65534, "group": 65534, "extra_groups": []}
    p = box.start(["/usr/bin/python3", "-S", "-c", "import time\nwhile True: time.sleep(0.01)"], **nobody)
    wait_until(lambda: any("arena" in os.listdir(f) for f in box.folders()), "not recorded")
    time.sleep(0.3)
    if how == "flush":
        box.d9("ctl", str(p.pid), "flush")
    box.end(p)
    box.note_arenas()
    if how == "recover":
        box.d9("recover", box.dir)
    files = [os.path.join(f, n) for f in box.folders() for n in os.listdir(f) if n.endswith(".d9")]
    check(files, "no segment")
    equal({(os.stat(f).st_uid, os.stat(f).st_gid) for f in files}, {(65534, 65534)}, "owners of the segments")


def memory_that_names(box):
    """Session memory whose head names a folder of this box: there may be no folder that leads to it."""
    found = []
    for path in glob.glob("/dev/shm/d9-*"):
        with contextlib.suppress(OSError), open(path, "rb") as f:
            if os.fsencode(box.dir) + b"/" in f.read(65536):
                found.append(path)
    return found


@parametrise(["0", "1.5"])
def a_folder_that_may_not_be_made_leaves_no_memory(box, seconds):
    need_root()
    os.mkdir(box.dir, 0o755)
    code = "import time; time.sleep(%s); print(open('/proc/self/maps').read().count('/dev/shm/d9-'))" % seconds
    r = box.run(["/usr/bin/python3", "-S", "-c", code], user=65534, group=65534, extra_groups=[], rc=0)
    left = memory_that_names(box)
    box.arenas.update(left)
    check(int(r.out), "it was not recorded at all")
    equal(box.folders(), [], "folders")
    equal(left, [], "memory that nobody will find")


if __name__ == "__main__":
    main()
