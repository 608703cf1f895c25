#!/usr/bin/env python3
"""With which rights d9-kernel records, and what it says without them."""
import json
import os
import shutil
import stat
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel import KERNEL, Program, a_group_of_ours, chatter, files, join, need_kernel, of, refuses, removed_group, start, stop, with_mounts, without_bpf
from harness import D9, PROGS, ROOT, SHIM, Skip, check, equal, equal_least, main, need, parametrise, test, wait_until

NOBODY = ["--reuid=65534", "--regid=65534", "--clear-groups"]


def as_nobody(box, *caps):
    """A copy of d9-kernel that anybody may run, what stands before it, and a folder of nobody's."""
    os.chmod(box.path, 0o755)
    binary, folder = os.path.join(box.path, "d9-kernel"), os.path.join(box.path, "nobodys")
    shutil.copy(KERNEL, binary)
    os.mkdir(folder)
    os.chown(folder, 65534, 65534)
    inherited = [] if not caps else ["--inh-caps=" + ",".join("+" + c for c in caps), "--ambient-caps=" + ",".join("+" + c for c in caps)]
    return binary, folder, [need("setpriv"), *NOBODY, *inherited]


@parametrise(["", "bpf", "perfmon", "bpf syslog"])
def what_it_may_not_do_is_said(box, caps):
    need_kernel()
    program = chatter(box)
    binary, _, wrap = as_nobody(box, *caps.split())
    missing = {"": "has not either", "bpf": "has not CAP_PERFMON", "perfmon": "has not CAP_BPF", "bpf syslog": "has not CAP_PERFMON"}[caps]
    r = refuses(box, 4, missing, "--pid", str(program.pid), binary=binary, wrap=wrap)
    check("setcap" in r.err, r.err)


@parametrise(["bpf perfmon", "sys_admin"])
def two_capabilities_are_enough(box, caps):
    need_kernel()
    program = Program(box, "kernel_offcpu", "calls")
    binary, folder, wrap = as_nobody(box, *caps.split())
    k = start(box, "--pid", str(program.pid), binary=binary, folder=folder, wrap=wrap)
    program.go()
    program.lines("CALL", 3)
    r = stop(box, k)
    program.go()
    events = box.meta(os.path.join(folder, os.listdir(folder)[0]))
    check(of(events, "offcpu", nr=35), "no nanosleep")
    check(not any("stack" in e for e in of(events, "offcpu")), "kernel stacks without CAP_SYSLOG")
    equal(r.err.count("CAP_SYSLOG"), 1, "how often it is said that there are no names: %r" % r.err)
    equal_least(len([e for e in of(events, "info") if e["text"].startswith("warning=")]), 1, "warnings on record")


@test
def a_user_namespace_is_told(box):
    need_kernel()
    program = chatter(box)
    refuses(box, 4, "user namespace", "--pid", str(program.pid), wrap=[need("unshare"), "--user", "--map-root-user"])


@parametrise([(1, 4, "refused by a seccomp filter"), (38, 3, "no bpf(), or a filter hides it"), (22, 3, "does not take the programs")])
def a_filter_is_told(box, how):
    need_kernel()
    error, rc, words = how
    program = chatter(box)
    refuses(box, rc, words, "--pid", str(program.pid), wrap=without_bpf(error))


@test
def a_locked_kernel_is_told(box):
    need_kernel()
    if not os.path.isdir("/sys/kernel/security"):
        raise Skip("this kernel has no securityfs")
    program = chatter(box)
    locked = with_mounts("mount -t tmpfs tmpfs /sys/kernel/security", "echo 'none integrity [confidentiality]' > /sys/kernel/security/lockdown")
    refuses(box, 4, "locked down", "--pid", str(program.pid), wrap=[*locked, *without_bpf(22)])


# ---- rights of a file ---------------------------------------------------------------------------------------


def with_file_rights(box):
    """docs/KERNEL.md's line on a copy, for nobody; its folder, and what makes a command nobody's."""
    binary, folder, wrap = as_nobody(box)
    r = box.run([need("setcap"), "cap_bpf,cap_perfmon,cap_syslog+ep", binary], shim=False)
    if r.rc:
        raise Skip("no capabilities of files here: " + r.err.strip())
    return binary, folder, wrap


def is_nobodys(folder):
    """The one recording in it; all of it is nobody's and nobody else's."""
    (name,) = os.listdir(folder)
    family = os.path.join(folder, name)
    names = files(family)
    check(names, "no segment in %s" % os.listdir(family))
    for path, mode in [(family, 0o700)] + [(os.path.join(family, n), 0o600) for n in names]:
        s = os.stat(path)
        equal((stat.S_IMODE(s.st_mode), s.st_uid, s.st_gid), (mode, 65534, 65534), "mode, user and group of " + path)
    return family


@test
def a_user_may_with_the_files_rights(box):
    need_kernel()
    binary, folder, wrap = with_file_rights(box)
    shutil.copy(os.path.join(PROGS, "kernel_offcpu"), box.path)
    os.chown(box.path, 65534, 65534)  # where it writes a file
    program = Program(box, "kernel_offcpu", argv=[*wrap, os.path.join(box.path, "kernel_offcpu"), "calls"])
    wait_until(lambda: is_running(program.pid, "kernel_offcpu"), "it does not begin")
    k = start(box, "--pid", str(program.pid), binary=binary, folder=folder, wrap=wrap)
    program.go()
    program.lines("CALL", 3)
    r = stop(box, k)
    program.go()
    equal(r.err, "", "what it says")
    sleeps = of(box.meta(is_nobodys(folder)), "offcpu", nr=35)
    check(any("nanosleep" in e.get("stack", "") for e in sleeps), "no nanosleep with its place in the kernel: %s" % sleeps)


def is_running(pid, name):
    with open("/proc/%d/comm" % pid) as f:
        return f.read().strip() == name[:15]


@test
def and_records_with_d9_run(box):
    need_kernel()
    _, folder, wrap = with_file_rights(box)
    for path in (D9, SHIM):
        shutil.copy(path, box.path)
    r = box.run([*wrap, os.path.join(box.path, "d9"), "run", "--kernel=on", "--dir", folder, "--", "sleep", "0.2"], shim=False, rc=0)
    check("kernel" not in r.err, r.err)
    family = is_nobodys(folder)
    check([n for n in os.listdir(family) if n.startswith("s-")], "no segment of the recorder's: %s" % os.listdir(family))
    sleeps = of(map(json.loads, box.d9("dump", "--json", family).out.splitlines()), "offcpu")
    check(any(e["dur_ns"] > 190_000_000 for e in sleeps), "the sleep of the program is not among %s" % sleeps)


# ---- the unit -----------------------------------------------------------------------------------------------

UNIT = os.path.join(ROOT, "docs", "d9-kernel.service")


def unit():
    """{key: value} of its [Service]"""
    with open(UNIT, encoding="utf-8") as f:
        return dict(line.strip().split("=", 1) for line in f if "=" in line and not line.startswith("#"))


@test
def systemd_takes_the_unit(box):
    need_kernel()
    path = os.path.join(box.path, os.path.basename(UNIT))
    with open(UNIT, encoding="utf-8") as f, open(path, "w", encoding="utf-8") as out:
        out.write(f.read().replace("/usr/local/bin/d9-kernel", KERNEL))
    with open(os.path.join(box.path, "myservice.service"), "w", encoding="utf-8") as out:
        out.write("[Service]\nExecStart=/bin/true\n")
    r = box.run([need("systemd-analyze"), "verify", path], shim=False)
    equal((r.rc, r.out, r.err), (0, "", ""), "exit code of systemd-analyze, and what it says of the unit")


@test
def the_unit_records_its_service(box):
    need_kernel()
    said = unit()
    equal(said["AmbientCapabilities"], said["CapabilityBoundingSet"], "capabilities, and their bound")
    caps = [c.lower().replace("cap_", "") for c in said["AmbientCapabilities"].split()]
    binary, folder, wrap = as_nobody(box, *caps)
    os.chmod(folder, int(said["StateDirectoryMode"], 8))
    wrap += ["--bounding-set=-all," + ",".join("+" + c for c in caps), "--no-new-privs"]
    equal((said["ProtectSystem"], said["NoNewPrivileges"]), ("strict", "yes"), "what else it may not")
    strict = with_mounts("mount --bind %s %s" % (folder, folder), "mount -o remount,bind,ro /")
    group = a_group_of_ours("unit")
    program = Program(box, "kernel_offcpu", "calls")
    try:
        join(group, program)
        argv = said["ExecStart"].split()
        equal((argv[0], argv[1], argv[3], len(argv)), ("/usr/local/bin/d9-kernel", "--cgroup", "--dir", 5), "what it starts")
        equal(argv[4], "/var/lib/" + said["StateDirectory"], "where it writes")
        k = start(box, "--cgroup", group, binary=binary, folder=folder, wrap=[*strict, *wrap])
        program.go()
        program.lines("CALL", 3)
        r = stop(box, k)
        program.go()
    finally:
        box.end(program.p)
        wait_until(lambda: removed_group(group), "the group stays")
    equal(r.err, "", "what it says")
    sleeps = of(box.meta(is_nobodys(folder)), "offcpu", nr=35)
    check(any("nanosleep" in e.get("stack", "") for e in sleeps), "no nanosleep with its place in the kernel: %s" % sleeps)


if __name__ == "__main__":
    main()
