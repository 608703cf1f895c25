#!/usr/bin/env python3
"""d9-kernel against programs that know better: the kernel's own account of waits, moments that the program took, calls that it made."""
import bisect
import json
import os
import shutil
import signal
import stat
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel import KERNEL, MUTANT, Program, a_group_of_ours, buckets, chatter, files, join, made_group, need_kernel, of, removed_group, set_quota, start, stop, threads, throttled, totals, with_mounts
from harness import LIMIT, PROGS, Skip, check, equal, equal_least, main, need, parametrise, test, wait_until

READING_NS = 10000  # of each wait: the kernel reads its clock earlier in a switch than a program in it can
STOLEN_NS = 20_000_000  # a host that takes a CPU away between the two lets a wait last longer here than there, never shorter


# ---- waits for a CPU ---------------------------------------------------------------------------------------


def loaded(box, binary):
    """What the kernel says of each thread of an oversubscribed program, and what was recorded: {tid: (ns, event)}."""
    program = Program(box, "kernel_runq", "load", "4")
    k = start(box, "--pid", str(program.pid), binary=binary)
    program.go()
    account = {int(line["tid"]): int(line["delay_ns"]) for line in program.lines("ACCOUNT", 5)}
    r = stop(box, k)
    program.go()
    events = box.meta()
    recorded = totals(events)
    check(set(account) <= set(recorded), "threads without a total: %s" % (set(account) - set(recorded)))
    return {tid: (delay, recorded[tid]) for tid, delay in account.items()}, events, r


def is_off(delay, total):
    allowed = delay * 0.02 + total["count"] * READING_NS
    return not -allowed <= total["total_ns"] - delay <= allowed + STOLEN_NS


@test
def waits_come_to_what_the_kernel_counts(box):
    need_kernel()
    compared, events, r = loaded(box, KERNEL)
    for tid, (delay, total) in compared.items():
        check(not is_off(delay, total), "thread %d: %d ns, not %d" % (tid, total["total_ns"], delay))
        check(abs(total["stat_ns"] - delay) <= 1_000_000 + delay // 100, "thread %d: stat is %d, not %d" % (tid, total["stat_ns"], delay))
        equal(sum(buckets(total)), total["count"], "waits in the histogram of thread %d" % tid)
        waits = of(events, "runq", tid=tid)
        check(min(w["dur_ns"] for w in waits) >= 50_000, "a wait below the threshold")
        equal(sum(w["dur_ns"] >= 65536 for w in waits), sum(buckets(total)[16:]), "waits of 2^16 ns and more of thread %d" % tid)
        equal(max(w["dur_ns"] for w in waits), total["max_ns"], "the longest wait of thread %d" % tid)
    check(sum(delay for delay, _ in compared.values()) > 3_000_000_000, "the program was given all CPUs that it wanted")
    check("own account" not in r.err, r.err)
    equal(of(events, "gap"), [], "gaps")
    who_had_it_is_told_for_how_long(events, set(compared))


def who_had_it_is_told_for_how_long(events, tids):
    """Where it was another of them, that one's own last wait says since when; or a later one that was too short to be told of."""
    ended = {tid: sorted(w["t_ns"] + w["dur_ns"] for w in of(events, "runq", tid=tid)) for tid in tids}
    exact = less = told = 0
    for w in of(events, "runq"):
        until, since = w["t_ns"] + w["dur_ns"], ended.get(w["prev"], [])
        had = bisect.bisect_left(since, until)
        if not had or w["tid"] == w["prev"]:
            continue
        told += 1
        off = until - since[had - 1] - w["ran_ns"]
        exact += abs(off) < 1_000_000
        less += off >= 1_000_000
    equal_least(told, 50, "waits in which one of the program's own threads had the CPU")
    equal_least(exact + less, told * 95 // 100, "of %d, those whose end does not say less" % told)
    equal_least(exact, told // 4, "of %d, those whose end says as much" % told)


@test
def who_forgets_preemption_is_found_out(box):
    need_kernel()
    compared, _, r = loaded(box, MUTANT)
    wrong = [tid for tid, (delay, total) in compared.items() if is_off(delay, total)]
    equal_least(len(wrong), 4, "threads whose sum is wrong without the rule of preemption")
    check("own account" in r.err, "the check of the sums says nothing: %r" % r.err)


@test
def a_sleep_is_no_wait_whoever_moves_the_sleeper(box):
    """The kernel's account takes it for one (6.12 and later); what is told as the account's is without that."""
    need_kernel()
    if os.cpu_count() < 2:
        raise Skip("needs two CPUs")
    program = Program(box, "kernel_runq", "moved", "3")
    k = start(box, "--pid", str(program.pid))
    program.go()
    tid = int(program.lines("MOVED")[0]["tid"])
    stop(box, k)
    program.go()
    total = totals(box.meta())[tid]
    check(not is_off(total["stat_ns"], total), "waits of the thread that was moved: %s" % total)


@parametrise([[], ["--wakers"]])
def single_waits_lie_where_the_program_says(box, options):
    need_kernel()
    if os.cpu_count() < 2:
        raise Skip("needs two CPUs")
    n, whole = 20, 0
    program = Program(box, "kernel_runq", "woken", str(n))
    k = start(box, "--pid", str(program.pid), "--runq-min", "0ns", *options)
    program.go()
    lines = program.lines("WOKEN", n)
    stop(box, k)
    program.go()
    events = box.meta()
    for line in lines:
        wake, ran, tid, waker = (int(line[key]) for key in ("wake_ns", "ran_ns", "tid", "waker"))
        inside = [e for e in of(events, "runq", tid=tid) if e["t_ns"] >= wake and e["t_ns"] + e["dur_ns"] <= ran]
        first = [e for e in inside if e["flags"] & 2]
        equal(len(first), 1, "waits of the wake at %d" % wake)
        equal(first[0]["waker"], waker, "who woke it")
        check(first[0]["waking_ns"] is None if not options else wake <= first[0]["waking_ns"] <= first[0]["t_ns"], "the waker began at %s, was about to at %d" % (first[0]["waking_ns"], wake))
        waited = sum(e["dur_ns"] for e in inside)
        check(waited <= ran - wake, "it waited %d ns of %d" % (waited, ran - wake))
        whole += waited >= 0.9 * (ran - wake)
    equal_least(whole, n // 2, "wakes of which nearly all is known; of the others the waker was kept from its call, or the woken from its clock")


# ---- sleeps ------------------------------------------------------------------------------------------------


@test
def sleeps_have_their_call_and_their_place_in_the_kernel(box):
    need_kernel()
    program = Program(box, "kernel_offcpu", "calls")
    k = start(box, "--pid", str(program.pid), "--offcpu-min", "20us", "--user-stacks")
    program.go()
    lines = {line["name"]: line for line in program.lines("CALL", 3)}
    stop(box, k)
    program.go()
    events = box.meta()
    for name, frame in (("nanosleep", "nanosleep"), ("futex", "futex_wait"), ("fsync", "fsync")):
        line = lines[name]
        inside = [e for e in of(events, "offcpu", tid=int(line["tid"]))
                  if e["t_ns"] >= int(line["t0_ns"]) and e["t_ns"] + e["dur_ns"] <= int(line["t1_ns"]) and e["nr"] == int(line["nr"])]
        if name == "fsync" and not inside and on_tmpfs(box.path):
            continue
        check(inside, "no sleep in %s" % name)
        longest = max(inside, key=lambda e: e["dur_ns"])
        check(frame in longest.get("stack", ""), "no %s in the stack of %s: %r" % (frame, name, longest.get("stack")))
        check("0xffff" not in longest["stack"], "a kernel address is on record: %r" % longest["stack"])
        check(longest["woken_ns"] is None or longest["t_ns"] <= longest["woken_ns"] <= longest["t_ns"] + longest["dur_ns"], "woken outside of its sleep")
        if name != "fsync":
            equal_least(longest["dur_ns"], 19_000_000, "ns of %s" % name)
            ends = longest["t_ns"] + longest["dur_ns"]
            check(any(e["t_ns"] == ends for e in of(events, "user_stack", tid=int(line["tid"]))), "no stack of the program's for %s" % name)


@parametrise(["recorded", "not recorded"])
def the_programs_stacks_have_names(box, how):
    need_kernel()
    program = Program(box, "kernel_offcpu", "nested", shim=how == "recorded")
    if how == "recorded":
        wait_until(box.begun, "nothing is recorded")
    k = start(box, "--pid", str(program.pid), "--user-stacks", env={"D9_ROTATE_SECS": "1"})
    program.go()
    program.lines("SLEPT")
    equal(stop(box, k).err, "", "what it says")
    program.go()
    box.finish(program.p)
    modules = [e["path"] for e in of(box.meta(), "module")]
    with open(os.path.join(PROGS, "kernel_offcpu"), "rb") as f:
        image = f.read()
    mine = [m.split("\0")[0] for m in modules if m.endswith("/kernel_offcpu")]
    check(mine and bytes.fromhex(mine[0]) in image and len(mine[0]) == 40, "build ids of the program in %s" % modules)
    folded = [line for line in box.d9("offcpu", "--folded", box.dir).out.splitlines() if ";nested;nested_middle;" in line]
    check(any("hrtimer_nanosleep" in line and line.startswith("kernel_offcpu;") for line in folded), "its sleep is not there by name")
    check("nested_middle" in box.d9("offcpu", box.dir).out, "nor in the text")
    causes = box.document("offcpu")["causes"]
    check(any("nested_middle" in [f["symbol"] for f in c["user_stack"]] for c in causes), "nor in the document")


def on_tmpfs(path):
    return subprocess.run(["stat", "-f", "-c", "%T", path], capture_output=True, text=True, check=True).stdout.strip() == "tmpfs"


def growth(box, others):
    """{fd: longest sleep in the call that doubled the table, with the kernel's place}"""
    program = Program(box, "kernel_offcpu", "grow", str(others))
    k = start(box, "--pid", str(program.pid))
    program.go()
    lines = program.lines("DOUBLED", 1) if not program.said().lines("SKIP") else []
    if not lines:
        raise Skip("no more descriptors are allowed here")
    lines = program.lines("DOUBLED", 9)
    stop(box, k)
    program.go()
    sleeps = of(box.meta(), "offcpu", tid=program.pid)
    return {int(line["fd"]): [e for e in sleeps if e["t_ns"] >= int(line["t0_ns"]) and e["t_ns"] + e["dur_ns"] <= int(line["t1_ns"])]
            for line in lines}


@test
def a_growing_table_of_descriptors_is_named(box):
    need_kernel()
    at = growth(box, 1)
    named = [fd for fd, sleeps in at.items() if fd >= 256 and
             any("expand_files" in s.get("stack", "") or "synchronize_rcu" in s.get("stack", "") for s in sleeps)]
    equal_least(len(named), 5, "doublings from 256 to 16384 whose stall is named (%s)" % {fd: len(s) for fd, s in at.items()})
    equal([at[64], at[128]], [[], []], "stalls at 64 and 128")


@test
def a_table_of_one_thread_grows_at_once(box):
    need_kernel()
    at = growth(box, 0)
    stalled = [fd for fd, sleeps in at.items() if any("expand_files" in s.get("stack", "") or "synchronize_rcu" in s.get("stack", "") for s in sleeps)]
    equal(stalled, [], "stalls for the table's growth")


@test
def slow_calls_are_there_if_asked_for(box):
    need_kernel()
    for asked in (False, True):
        program = Program(box, "kernel_offcpu", "calls")
        folder = os.path.join(box.dir, str(asked))
        k = start(box, "--pid", str(program.pid), *["--syscalls", "10ms"] * asked, folder=folder)
        program.go()
        line = program.lines("CALL", 3)[0]
        stop(box, k)
        program.go()
        inside = [e for e in of(box.meta(os.path.join(folder, os.listdir(folder)[0])), "syscall", tid=int(line["tid"]), nr=int(line["nr"]))
                  if e["t_ns"] >= int(line["t0_ns"]) and e["t_ns"] + e["dur_ns"] <= int(line["t1_ns"]) and e["dur_ns"] >= 10_000_000]
        equal(len(inside), int(asked), "slow calls of nanosleep (asked for: %s)" % asked)
        r = box.d9("syscalls", "--json", folder)
        worst = [w for w in json.loads(r.out)["worst"] if (w["tid"], w["syscall"]) == (int(line["tid"]), "nanosleep")]
        equal([w["dur_ns"] for w in worst], [e["dur_ns"] for e in inside], "the same by d9 syscalls")
        check(asked or "--syscalls DUR" in r.err, "it is not said how to ask: %r" % r.err)


@test
def requests_to_a_disk_are_the_threads(box):
    need_kernel()
    if on_tmpfs(box.path):
        raise Skip("no disk below %s" % box.path)
    program = Program(box, "kernel_offcpu", "calls")
    k = start(box, "--pid", str(program.pid), "--offcpu-min", "0ns")
    program.go()
    line = next(line for line in program.lines("CALL", 3) if line["name"] == "fsync")
    stop(box, k)
    program.go()
    inside = [e for e in of(box.meta(), "block_io", tid=int(line["tid"]))
              if e["t_ns"] >= int(line["t0_ns"]) and e["t_ns"] + e["dur_ns"] <= int(line["t1_ns"]) and e["op"] == 1]
    equal_least(sum(e["bytes"] for e in inside), 1 << 20, "bytes written by fsync")
    check(all(e["error"] == 0 and e["dev"] >> 20 for e in inside), "a request without a disk, or with an error: %s" % inside)
    doc = box.document("disk", "--worst", "1000000")
    equal(sum(d["bytes"] for d in doc["devices"]), sum(e["bytes"] for e in of(box.meta(), "block_io")), "bytes by d9 disk")
    check({(e["sector"], e["dur_ns"]) for e in inside} <= {(w["sector"], w["dur_ns"]) for w in doc["worst"] if w["tid"] == int(line["tid"])}, "requests that d9 disk lacks")


@parametrise(["its own", "of the group above"])
def a_quota_is_counted(box, whose):
    need_kernel()
    group = a_group_of_ours("quota")
    inner = group + "/inner" if whose != "its own" else group
    program = Program(box, "kernel_runq", "load", "2")
    try:
        check(inner == group or made_group(inner), "no group in a group")
        if not set_quota(group, 50_000):
            raise Skip("the groups here have no CPU quota")
        join(inner, program)
        before = throttled(group)
        k = start(box, "--pid", str(program.pid))
        program.go()
        program.lines("ACCOUNT", 5)
        after = throttled(group)
        stop(box, k)
    finally:
        box.end(program.p)
        for g in {inner: 0, group: 0}:
            wait_until(lambda: removed_group(g), "the group stays")
    quotas = of(box.meta(), "quota")
    equal({q["cgroup"] for q in quotas}, {group}, "groups with a quota")
    equal((quotas[-1]["quota_ns"], quotas[-1]["period_ns"]), (50_000_000, 100_000_000), "quota and period")
    equal_least(quotas[-1]["throttled"], after - before, "periods in which it was stopped")
    equal_least(after - before, 5, "periods in which it was stopped")
    check(quotas[-1]["throttled_ns_ns"] > 0 and quotas[-1]["periods"] >= quotas[-1]["throttled"], str(quotas[-1]))


def write(path, text):
    with open(path, "w") as f:
        f.write(text)


def counted(folder, periods, stopped, us):
    """cpu.stat of version 2, put there whole."""
    write(folder + "/new", "usage_usec 9\nuser_usec 5\nsystem_usec 4\nnr_periods %d\nnr_throttled %d\nthrottled_usec %d\nnr_bursts 0\n" % (periods, stopped, us))
    os.rename(folder + "/new", folder + "/cpu.stat")


@test
def quotas_of_version_2_are_read(box):
    """Where version 1 holds the CPU controller, groups of version 2 have no quota: the program is in real ones, and d9-kernel sees files of ours
    in their place."""
    need_kernel()
    root = next((m for m in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup") if os.path.exists(m + "/cgroup.controllers")), None)
    top = root and "%s/d9-v2-%d" % (root, os.getpid())
    if not top or not made_group(top):
        raise Skip("no control groups of version 2 here")
    groups = [top, top + "/two", top + "/two/three", top + "/two/three/four"]
    seen = {g: os.path.join(box.path, "seen") + g[len(root):] for g in [root, *groups]}
    os.makedirs(seen[groups[-1]])
    for group, limit in zip([root, *groups], ("400000 100000", "max 100000", "50000 200000", None, "70000 100000")):
        if limit:
            write(seen[group] + "/cpu.max", limit + "\n")
        if group != groups[-1]:
            counted(seen[group], 1000, 100, 10_000)
    program = chatter(box)
    try:
        for group in groups[1:]:
            check(made_group(group), "no group in a group")
        join(groups[-1], program)
        k = start(box, "--pid", str(program.pid), wrap=with_mounts("mount --bind '%s' %s" % (seen[root], root)), env={"D9_ROTATE_SECS": "1"})
        two = groups[1]
        counted(seen[two], 1010, 104, 30_000)
        counted(seen[root], 1020, 100, 10_000)
        told = lambda **fields: [q for f in box.folders() for q in of(box.meta(f), "quota", **fields)]  # noqa: E731
        wait_until(lambda: told(cgroup=two, throttled=4) and told(cgroup=root, periods=20), "the quotas are not told: %s" % told())
        write(seen[two] + "/cpu.max", "max 200000\n")  # it is lifted, but what it did is still told
        counted(seen[two], 1011, 105, 30_500)
        wait_until(lambda: told(cgroup=two, throttled=5), "that a quota was lifted is not told: %s" % told())
        os.unlink(seen[two] + "/cpu.stat")
        equal(stop(box, k).err, "", "what it says")
    finally:
        box.end(program.p)
        for group in reversed(groups):
            wait_until(lambda: removed_group(group), "the group stays")
    quotas = of(box.meta(), "quota")
    equal({q["cgroup"] for q in quotas}, {root, two}, "groups with a quota and a count")
    for want in ({"quota_ns": 50_000_000, "period_ns": 200_000_000, "periods": 10, "throttled": 4, "throttled_ns_ns": 20_000_000},
                 {"quota_ns": None, "periods": 11, "throttled": 5, "throttled_ns_ns": 20_500_000}):
        check(of(quotas, "quota", cgroup=two, **want), "no %s in %s" % (want, quotas))
    check(of(quotas, "quota", cgroup=root, quota_ns=400_000_000, period_ns=100_000_000, periods=20, throttled=0), "that of the root: %s" % quotas)


# ---- who is recorded ---------------------------------------------------------------------------------------


@test
def a_crowd_is_known_to_the_last(box):
    need_kernel()
    program = Program(box, "kernel_family", "crowd", "1000")
    k = start(box, "--pid", str(program.pid))
    program.go()
    lines = program.lines("THREAD", 1000)
    stop(box, k)
    program.go()
    events = box.meta()
    known = threads(events)
    # Numbers are used again, so it is threads that are counted, not tids.
    check({int(line["tid"]) for line in lines} <= {t["tid"] for t in known.values()}, "threads that are not known")
    equal(len(known), 1001, "threads")
    equal(len({e["tid"] for e in of(events, "runq_total")}), len({t["tid"] for t in known.values()}), "threads with a total")
    equal(of(events, "gap"), [], "gaps")


def family_is_known(events, lines):
    known = list(threads(events).values())
    pids = {e["id"]: e["pid"] for e in of(events, "proc")}
    for line in lines:
        found = [t for t in known if t["tid"] == int(line["tid"]) and pids[t["proc"]] == int(line["pid"])]
        check(found and found[0]["name"] == line["name"], "%s is not among %s" % (line, known))
    child = [e for e in of(events, "proc") if e["parent"] != 0xffffffff]
    equal(len({e["pid"] for e in child}), 1, "children")


@test
def late_threads_and_children_are_followed(box):
    need_kernel()
    program = Program(box, "kernel_family", "late")
    k = start(box, "--pid", str(program.pid), "--runq-min", "0ns")
    program.go()
    lines = program.lines("THREAD", 2)
    stop(box, k)
    program.go()
    family_is_known(box.meta(), lines)


@test
def a_program_of_another_pid_namespace_has_its_own_numbers(box):
    need_kernel()
    unshare = need("unshare")
    program = Program(box, "kernel_family", argv=[unshare, "--pid", "--fork", "--mount-proc", os.path.join(PROGS, "kernel_family"), "late"])
    path = "/proc/%d/task/%d/children" % (program.pid, program.pid)
    inner = int(wait_until(lambda: open(path).read().strip(), "unshare starts nothing"))
    wait_until(lambda: open("/proc/%d/comm" % inner).read().startswith("kernel_family"), "unshare starts something else")
    k = start(box, "--pid", str(inner), "--runq-min", "0ns")
    program.go()
    lines = program.lines("THREAD", 2)
    stop(box, k)
    program.go()
    events = box.meta()
    check(all(int(line["pid"]) < 20 for line in lines), "the program is in no namespace of its own: %s" % lines)
    family_is_known(events, lines)
    check(all(t["kernel_tid"] != t["tid"] for t in threads(events).values()), "the kernel's numbers are those of the namespace")


@test
def d9_kernel_may_be_in_the_namespace_too(box):
    need_kernel()
    script = '"$0" late < "$2" > "$3" & "$1" --pid $! --dir "$4" --runq-min 0ns < /dev/null; echo $? > "$5"'
    fifo, said, code = (os.path.join(box.path, n) for n in ("in", "said", "code"))
    os.mkfifo(fifo)
    p = box.start([need("unshare"), "--pid", "--fork", "--mount-proc", "sh", "-c", script, os.path.join(PROGS, "kernel_family"), KERNEL, fifo, said,
                   box.dir, code], shim=False)
    with open(fifo, "w") as f:
        equal(p.stdout.readline(), "ready\n", "d9-kernel in a PID namespace says")
        f.write("xx")
    wait_until(lambda: os.path.exists(code), "d9-kernel does not end with its target", LIMIT)
    p.wait(LIMIT)
    equal(open(code).read().strip(), "0", "exit code of d9-kernel")
    lines = [dict(w.split("=", 1) for w in line.split()[1:]) for line in open(said)]
    family_is_known(box.meta(), lines)


@test
def another_program_is_still_the_process(box):
    need_kernel()
    program = Program(box, "kernel_family", argv=["sh", "-c", 'read x; exec "$0" crowd 8', os.path.join(PROGS, "kernel_family")])
    k = start(box, "--pid", str(program.pid))
    program.p.stdin.write("\nx")
    program.p.stdin.flush()
    program.lines("THREAD", 8)
    stop(box, k)
    program.go()
    events = box.meta()
    equal(of(events, "proc")[-1]["exe"].split("\0")[0], os.path.join(PROGS, "kernel_family"), "the program at the end")
    names = [e["name"] for e in of(events, "thread") if e["tid"] == program.pid]
    check(names[-1] == "kernel_family", "the names of its main thread: %s" % names)


@test
def all_of_one_name_and_all_of_a_group(box):
    need_kernel()
    group = a_group_of_ours("test")
    program = Program(box, "kernel_family", "chatter")
    program.lines("CHATTERS", 0)
    wait_until(lambda: "CHATTERS" in program.said().out, "it does not begin")
    try:
        by_name = start(box, "--comm", "kernel_fam[a-z]*", folder=os.path.join(box.dir, "name"))
        join(group, program)
        by_group = start(box, "--cgroup", group, folder=os.path.join(box.dir, "group"))
        stop(box, by_group)
        stop(box, by_name)
    finally:
        box.end(program.p)
        wait_until(lambda: removed_group(group), "the group stays")
    for which in ("name", "group"):
        folder = os.path.join(box.dir, which)
        events = box.meta(os.path.join(folder, os.listdir(folder)[0]))
        equal(len([t for t in threads(events).values() if t["kernel_pid"] == program.pid]), 2, "threads by " + which)


# ---- ends --------------------------------------------------------------------------------------------------


def size(box):
    return sum(os.path.getsize(os.path.join(f, n)) for f in box.folders() for n in os.listdir(f))


@test
def a_killed_d9_kernel_leaves_what_it_wrote(box):
    need_kernel()
    program = chatter(box)
    k = start(box, "--pid", str(program.pid), "--runq-min", "0ns")
    wait_until(lambda: size(box) > 200_000, "nothing is written")
    k.kill()
    k.wait(LIMIT)
    check(program.p.poll() is None, "the program ended with it")
    box.end(program.p)
    equal_least(len(of(box.meta(), "runq")), 1000, "waits on record")


@test
def d9_kernel_ends_with_its_target(box):
    need_kernel()
    program = chatter(box)
    k = start(box, "--pid", str(program.pid))
    box.end(program.p)
    r = box.finish(k)
    equal(r.rc, 0, "exit code of d9-kernel")
    events = box.meta()
    equal(len({e["tid"] for e in of(events, "runq_total")}), 2, "threads with a total")
    check(r.err == "", r.err)


@test
def what_finds_no_room_is_counted(box):
    need_kernel()
    program = chatter(box)
    k = start(box, "--pid", str(program.pid), "--runq-min", "0ns", "--ring-mb", "1")
    wait_until(lambda: size(box) > 0, "nothing is written")
    k.send_signal(signal.SIGSTOP)
    slices = switches(program.pid)
    wait_until(lambda: switches(program.pid) > slices + 100_000, "the program does not go on")
    k.send_signal(signal.SIGCONT)
    r = stop(box, k)
    box.end(program.p)
    events = box.meta()
    lost = of(events, "gap")
    equal_least(sum(e["events"] for e in lost), 50_000, "records that are told to be lost")
    check(all(e["tid"] is None for e in lost), "a gap of one thread")
    check("raise --ring-mb" in r.err, "it does not say so: %r" % r.err)
    # All waits are in the totals, those that no record tells of too.
    for tid, total in totals(events).items():
        check(not is_off(total["stat_ns"], total), "thread %d: %s" % (tid, total))


def switches(pid):
    with open("/proc/%d/status" % pid) as f:
        return sum(int(line.split()[1]) for line in f if "ctxt_switches" in line)


@test
def two_at_once_see_the_same(box):
    need_kernel()
    program = Program(box, "kernel_runq", "load", "1")
    both = [start(box, "--pid", str(program.pid), folder=os.path.join(box.dir, n)) for n in "ab"]
    program.go()
    account = {int(line["tid"]): int(line["delay_ns"]) for line in program.lines("ACCOUNT", 5)}
    for k in both:
        stop(box, k)
    program.go()
    for n in "ab":
        folder = os.path.join(box.dir, n)
        recorded = totals(box.meta(os.path.join(folder, os.listdir(folder)[0])))
        for tid, delay in account.items():
            check(not is_off(delay, recorded[tid]), "thread %d of %s: %s, not %d" % (tid, n, recorded[tid], delay))


@test
def segments_are_rolled_and_say_all_again(box):
    need_kernel()
    program = chatter(box)
    k = start(box, "--pid", str(program.pid), "--runq-min", "0ns", env={"D9_ROTATE_SECS": "1"})
    wait_until(lambda: box.folders() and len(files(box.folders()[0])) >= 3, "segments are not rolled")
    stop(box, k)
    box.end(program.p)
    folder = box.folders()[0]
    names = files(folder)
    equal(names, ["k-%06d.d9" % (i + 1) for i in range(len(names))], "segments")
    for name in names:
        equal(stat.S_IMODE(os.stat(os.path.join(folder, name)).st_mode), 0o600, "mode of " + name)
        alone = os.path.join(box.path, "alone-" + name)
        os.mkdir(alone)
        shutil.copy(os.path.join(folder, name), alone)
        events = box.meta(alone)
        equal(len(threads(events)), 2, "threads that %s defines" % name)
        check(all(e["tid"] is not None for e in of(events, "runq")), "a wait of nobody's in " + name)
        equal(len(of(events, "clock")), 2, "clock pairs of " + name)
    equal(stat.S_IMODE(os.stat(folder).st_mode), 0o700, "mode of the folder")


@test
def a_full_disk_is_waited_for(box):
    need_kernel()
    small = os.path.join(box.path, "small")
    os.mkdir(small)
    if subprocess.run([need("mount"), "-t", "tmpfs", "-o", "size=1m", "tmpfs", small], capture_output=True).returncode:
        raise Skip("nothing can be mounted here")
    try:
        program = chatter(box)
        k = start(box, "--pid", str(program.pid), "--runq-min", "0ns", folder=small)
        said = k.stderr.readline()
        check("cannot write a segment: No space left on device" in said, "it says %r" % said)
        folder = os.path.join(small, os.listdir(small)[0])
        first = files(folder)
        for name in first:
            os.unlink(os.path.join(folder, name))
        wait_until(lambda: files(folder) and max(os.path.getsize(os.path.join(folder, n)) for n in files(folder)) > 100_000, "it does not go on")
        box.end(program.p)
        r = box.finish(k)
        equal(r.rc, 0, "exit code")
        check("could not be written" in r.err, r.err)
        events = box.meta(folder)
        check(of(events, "runq") and of(events, "gap"), "waits and a gap")
        check(all(os.path.getsize(os.path.join(folder, n)) for n in files(folder)), "an empty segment: %s" % files(folder))
    finally:
        for p in box.procs:
            box.end(p)
        subprocess.run([need("umount"), "-l", small], check=True)


if __name__ == "__main__":
    main()
