#!/usr/bin/env python3
"""With which rights d9-kernel records, and what it says without them."""
import os
import shutil
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel import KERNEL, Program, chatter, need_kernel, of, refuses, start, stop, with_mounts, without_bpf
from harness import Skip, check, equal, equal_least, main, need, parametrise, test

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


if __name__ == "__main__":
    main()
