#!/usr/bin/env python3
"""What both sides of a recording say together of real programs: the right cause first, as seen, with who or what it was; and nothing
of a service that is well."""
import contextlib
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel import a_group_of_ours, joins, made_group, need_kernel, removed_group, set_quota, throttled  # noqa: E402
import harness  # noqa: E402
from harness import D9, PROGS, ROOT, Skip, check, equal, equal_least, main, need, parametrise, said, test, wait_until  # noqa: E402

MS = 1_000_000
CPUS = os.cpu_count() or 1


def tokio(name):
    """One of the Tokio programs of tests/tokio/cases."""
    return harness.cargo(os.path.join(ROOT, "tests", "tokio", "cases"), name)


def scenario(box, name):
    exe = os.path.join(box.path, name)
    source = os.path.join(ROOT, "tests", "scenarios", "src", name + ".c")
    subprocess.run(["cc", "-O2", "-g", "-w", "-pthread", "-o", exe, source], check=True, timeout=60)
    return exe


def record(box, argv, wrap=(), **options):
    """The program under `d9 run` with d9-kernel beside it; what it said as TRUTH."""
    r = box.run([*wrap, D9, "run", "--quiet", "--kernel", "on", "--dir", box.dir, "--", *argv], shim=False, rc=0, **options)
    return {k: int(float(v)) for line in r.lines("TRUTH") for k, v in line.items()}


def first(box, wanted, beside=()):
    """The finding that stands first, which is the wanted one, as seen; nothing else of first rank but those beside it."""
    findings = box.findings()
    print("# " + "\n# ".join(said(findings)))
    check(findings and findings[0]["id"] == wanted, "%s is not first: %s" % (wanted, said(findings)))
    others = {f["id"] for f in findings if f["severity"] == "critical"} - {wanted, *beside}
    check(not others, "other causes of first rank: %s" % said(findings))
    equal(findings[0]["certainty"], "seen", "certainty")
    return findings[0]


def none_of(box, *ids):
    bad = [f for f in box.findings() if f["id"] in ids and f["severity"] != "info"]
    check(not bad, "found: %s" % said(bad))


# ---- a slow disk -------------------------------------------------------------------------------------------

BLOCK_KIB, RATE = 256, 1 << 20  # a block takes a quarter of a second
COLD_BYTES, COLD_RATE = 6 << 17, 1 << 19  # a page fault reads 128 KiB; of six, the kernel may not tell of one's end


class SlowDisk:
    """ext4 on a loop device, and a group of processes that may read or write there so many bytes a second."""

    def __init__(self, box):
        image, self.mount = os.path.join(box.path, "image"), os.path.join(box.path, "disk")
        self.device, self.group = None, None
        for program in ("losetup", "mkfs.ext4", "mount", "umount"):
            need(program)
        with open(image, "wb") as f:
            f.truncate(64 << 20)
        os.mkdir(self.mount)
        r = subprocess.run([need("losetup"), "--find", "--show", image], capture_output=True, text=True)
        if r.returncode:
            raise Skip("no loop device: " + r.stderr.strip())
        self.device = r.stdout.strip()
        subprocess.run([need("mkfs.ext4"), "-q", self.device], check=True, timeout=60)
        r = subprocess.run(["mount", self.device, self.mount], capture_output=True, text=True)
        if r.returncode:
            self.close()
            raise Skip("no mounts here: " + r.stderr.strip())
        with open("/sys/block/%s/queue/read_ahead_kb" % os.path.basename(self.device), "w") as f:
            f.write("128")

    def throttle(self, rate):
        number = os.stat(self.device).st_rdev
        device = "%d:%d" % (os.major(number), os.minor(number))
        group = "/sys/fs/cgroup/blkio/d9-disk-%d" % os.getpid()
        if not made_group(group):
            raise Skip("control groups of block devices cannot be made here")
        self.group = group
        for which in ("read", "write"):
            try:
                with open("%s/blkio.throttle.%s_bps_device" % (group, which), "w") as f:
                    f.write("%s %d" % (device, rate))
            except OSError as e:
                raise Skip("no throttling of block devices: %s" % e) from None

    def path(self, name):
        return os.path.join(self.mount, name)

    def close(self):
        if self.group:
            wait_until(lambda: removed_group(self.group), "the group stays")
        if os.path.ismount(self.mount):
            wait_until(lambda: not subprocess.run(["umount", self.mount], capture_output=True).returncode, "the disk stays mounted")
        if self.device:
            subprocess.run([need("losetup"), "--detach", self.device], check=True)


@contextlib.contextmanager
def slow_disk(box):
    disk = SlowDisk(box)
    try:
        yield disk
    finally:
        disk.close()


@test
def a_disk_that_stalls_a_pool_and_no_poll(box):
    need_kernel()
    program = tokio("pool_disk")
    with slow_disk(box) as disk:
        polls = []
        for throttled_disk in (False, True):
            if throttled_disk:
                disk.throttle(RATE)
            box.dir = os.path.join(box.path, "traces-%s" % throttled_disk)
            truth = record(box, joins(disk.group, [program, disk.path("log"), "4", str(BLOCK_KIB)]))
            print("# throttled: %s; %s" % (throttled_disk, truth))
            polls.append(box.document("report")["hists"]["poll-span"])
            equal_least(polls[-1]["count"], truth["polls"], "polls recorded")
            if not throttled_disk:
                none_of(box, "disk-stall")
        equal_least(truth["slowest_job_ms"], 200, "the slowest job (ms)")
        f = first(box, "disk-stall")
        check("tokio-runtime-w" in f["title"] or "tokio-rt-worker" in f["title"], "the pool's thread: %s" % f["title"])
        check(200 * MS <= f["measured"]["blocked_ns"] <= (truth["slowest_job_ms"] + 1) * MS, "%s; the program: %s" % (f["measured"], truth))
        check("fsync" in f["title"], "the call is not named: %s" % f["title"])
        # Not a hundredth of what the jobs took, and no finding of what a poll waits for.
        for p in polls:
            check(p["p999_ns"] < 20 * MS, "polls take long: %s" % p)
        none_of(box, "long-poll", "blocking-call")


@test
def a_mapped_file_whose_pages_are_cold(box):
    need_kernel()
    with slow_disk(box) as disk:
        path = disk.path("cold")
        with open(path, "wb") as f:
            f.write(os.urandom(COLD_BYTES))
            os.fsync(f.fileno())
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        truth = record(box, [os.path.join(PROGS, "kernel_cold"), path])
        print("# not throttled: %s" % truth)
        none_of(box, "page-fault-stall", "disk-stall")
        disk.throttle(COLD_RATE)
        with open(path, "rb") as f:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        box.dir = os.path.join(box.path, "cold")
        truth = record(box, joins(disk.group, [os.path.join(PROGS, "kernel_cold"), path]))
        print("# throttled: %s" % truth)
        f = first(box, "page-fault-stall")
        check(f["measured"]["blocked_ns"] <= (truth["worst_ms"] + 1) * MS, "%s; the program: %s" % (f["measured"], truth))


# ---- descriptors -------------------------------------------------------------------------------------------


@parametrise([1, 0])
def sockets_for_which_the_table_grows(box, others):
    need_kernel()
    p = box.start([D9, "run", "--quiet", "--kernel", "on", "--dir", box.dir, "--", os.path.join(PROGS, "kernel_offcpu"), "sockets", str(others)],
                  shim=False, stdin=subprocess.PIPE)
    r = box.finish_with_input(p, "xx")
    if r.lines("SKIP"):
        raise Skip("no more descriptors are allowed here")
    took = {int(line["fd"]): (int(line["t1_ns"]) - int(line["t0_ns"])) for line in r.lines("DOUBLED")}
    found = {f["measured"]["fd"]: f for f in box.findings() if f["id"] == "fd-table-growth"}
    print("# took (ms): %s" % {fd: round(ns / MS, 2) for fd, ns in took.items()})
    if not others:
        equal(found, {}, "growths that stalled a program of one thread")
        return
    equal_least(len([fd for fd in found if fd in (256, 512, 1024, 2048, 4096, 8192, 16384)]), 5, "growths of seven that are named: %s" % said(found.values()))
    for fd, f in found.items():
        check(fd in took and fd >= 256 and f["measured"]["blocked_ns"] <= took[fd], "%s; the program: %s" % (f["measured"], took))
        equal(f["certainty"], "seen", "certainty")
        check("socket" in f["title"] and "dup2" in " ".join(f["try"]), "call and remedy: %s %s" % (f["title"], f["try"]))
    text = box.d9("report", box.dir).out
    check("expand_files" in text, "the kernel's stack is not shown:\n" + text)


# ---- too few CPUs ------------------------------------------------------------------------------------------


@test
def more_busy_workers_than_cpus(box):
    need_kernel()
    truth = record(box, [tokio("busy_workers"), str(4 * CPUS), "1200"])
    print("# %s" % truth)
    f = first(box, "cpu-oversubscribed")
    share = truth["waited_ms"] / (truth["waited_ms"] + truth["ran_ms"])
    check(abs(f["measured"]["runq_share"] - share) < 0.1, "share %s; the program: %s" % (f["measured"], share))


@test
def a_pair_that_shares_a_cpu_with_hogs_of_its_own(box):
    """S17."""
    need_kernel()
    truth = record(box, [scenario(box, "s17_runqueue")])
    print("# %s" % truth)
    f = first(box, "cpu-oversubscribed")
    waited = {t["tid"]: t["total_ns"] for t in box.document("runq")["threads"]}
    # The kernel's account of what a thread asks about itself is without its wait of that moment.
    check(waited[f["pid"]] / MS >= truth["runq_wait_ms_main"] * 0.98 - 1, "the main thread waited %s; the program: %s" % (waited, truth))


@test
def a_quota_that_stops_it(box):
    need_kernel()
    group = a_group_of_ours("findings")
    try:
        if not set_quota(group, 20_000):
            raise Skip("the groups here have no CPU quota")
        # All of it from the start, as in a container: a group that a process joins later is known a second after.
        truth = record(box, [tokio("busy_workers"), "2", "1500"], wrap=joins(group, []))
        periods = throttled(group)
    finally:
        wait_until(lambda: removed_group(group), "the group stays")
    print("# %s, stopped in %d periods" % (truth, periods))
    f = first(box, "cpu-throttled")
    check(os.path.basename(group) in f["title"] and "20 ms in 100 ms" in f["title"], f["title"])
    check(10 <= f["count"] <= periods, "%d periods, not %d" % (f["count"], periods))
    check(f["measured"]["throttled_ns"] / MS >= truth["waited_ms"] / 2, "%s; the program: %s" % (f["measured"], truth))


if __name__ == "__main__":
    main()
