#!/usr/bin/env python3
"""What d9-kernel says where it cannot do what it was asked for: one sentence, an exit code, and nothing is lost that it had."""
import os
import shutil
import signal
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from kernel import KERNEL, chatter, files, need_kernel, of, refuses, start, stop, with_mounts
from harness import check, equal, main, need, test, wait_until


# ---- the command line ---------------------------------------------------------------------------------------


@test
def wrong_words_are_refused(box):
    need_kernel()
    none = str(int(open("/proc/sys/kernel/pid_max").read()) - 1)
    for argv, rc, words in (([], 2, "takes one of"), (["--pid", "x"], 2, "process id"), (["--pid", "1", "--comm", "x"], 2, "one of"),
                            (["--pid", "1", "--runq-min", "5"], 2, "duration"), (["--pid", "1", "--ring-mb", "3"], 2, "power of two"),
                            (["--pid", "1", "--ring-mb", "2048"], 2, "power of two"), (["--pid", "1", "more"], 2, "what to do with `more`"),
                            (["--pid", "1", "--dir", ""], 2, "--dir takes a folder"), (["--comm", "("], 2, "regular expression"),
                            (["--pid", none], 3, "no such process: " + none), (["--comm", "no-such-name"], 3, "no process"),
                            (["--cgroup", "/no/such"], 3, "no control group"), (["--session", box.path], 3, "nothing that lives")):
        refuses(box, rc, words, *argv)
    r = box.run([KERNEL, "--what"], shim=False, rc=2)
    check("--what" in r.err and "d9-kernel --help" in r.err and not r.out, r.err)
    r = box.run([KERNEL, "--help"], shim=False, rc=0)
    check(r.out.startswith("Usage: d9-kernel") and not r.err, "--help")
    r = box.run([KERNEL, "--version"], shim=False, rc=0)
    check(r.out.startswith("d9-kernel ") and not r.err, "--version")


@test
def a_wrong_variable_is_told_and_not_used(box):
    need_kernel()
    program = chatter(box)
    r = stop(box, start(box, "--pid", str(program.pid), env={"D9_SEGMENT_MB": "0", "D9_TOTAL_MB": "x"}))
    equal([line.split(" is not a whole number")[0] for line in r.err.splitlines()], ["d9-kernel: D9_SEGMENT_MB=0", "d9-kernel: D9_TOTAL_MB=x"], "what it says")


# ---- the target ---------------------------------------------------------------------------------------------


@test
def a_thread_is_no_process(box):
    need_kernel()
    program = chatter(box)
    tid = next(t for t in os.listdir("/proc/%d/task" % program.pid) if t != str(program.pid))
    refuses(box, 3, "--pid %d" % program.pid, "--pid", tid)


@test
def itself_is_no_target(box):
    need_kernel()
    refuses(box, 3, "is d9-kernel itself", wrap=["sh", "-c", 'exec "$0" --pid $$ "$@"'])


@test
def who_has_ended_is_no_target(box):
    need_kernel()
    ended = os.fork()
    if not ended:
        os._exit(0)
    os.waitid(os.P_PID, ended, os.WEXITED | os.WNOWAIT)
    try:
        refuses(box, 3, "or has just ended", "--pid", str(ended))
    finally:
        os.waitpid(ended, 0)
    refuses(box, 3, "no such process: %d" % ended, "--pid", str(ended))


@test
def a_target_outside_of_the_namespace_is_not_seen(box):
    need_kernel()
    program = chatter(box)
    inside = [need("unshare"), "--pid", "--fork"]
    refuses(box, 3, "no such process in this PID namespace: %d" % program.pid, "--pid", str(program.pid), wrap=[*inside, "--mount-proc"])
    refuses(box, 3, "another PID namespace", "--pid", str(program.pid), wrap=inside)
    refuses(box, 3, "/proc is not mounted", "--pid", str(program.pid), wrap=with_mounts("mount -t tmpfs tmpfs /proc"))


# ---- the kernel ---------------------------------------------------------------------------------------------


@test
def a_kernel_without_btf_is_told(box):
    need_kernel()
    program = chatter(box)
    os.mkdir(os.path.join(box.path, "nothing"))
    refuses(box, 3, "no BTF", "--pid", str(program.pid), wrap=with_mounts("mount --bind '%s/nothing' /sys/kernel/btf" % box.path))


@test
def what_it_needs_of_the_machine_is_told(box):
    need_kernel()
    program = chatter(box)
    refuses(box, 3, "ulimit -n", "--pid", str(program.pid), wrap=[need("prlimit"), "--nofile=32"])
    refuses(box, 3, "lower --ring-mb", "--pid", str(program.pid), "--ring-mb", "64", wrap=[need("prlimit"), "--as=100000000"])
    k = start(box, "--pid", str(program.pid), wrap=[need("prlimit"), "--nofile=16:64"])  # it may raise that itself
    equal(stop(box, k).err, "", "what it says")


# ---- the folder ---------------------------------------------------------------------------------------------


def ready_and_then(box, pid, rc, words, folder, wrap=()):
    """Where it writes depends on its target, so it looks when it has that: it says one sentence and ends."""
    r = box.finish(start(box, "--pid", str(pid), folder=folder, wrap=wrap))
    check(r.rc == rc and words in r.err and folder in r.err and r.err.count("\n") == 1, "%s: exit %d, %r, not %d and %r" % (folder, r.rc, r.err, rc, words))


@test
def a_link_is_no_folder(box):
    need_kernel()
    program = chatter(box)
    os.mkdir(os.path.join(box.path, "elsewhere"))
    link = os.path.join(box.path, "link")
    os.symlink(os.path.join(box.path, "elsewhere", "missing"), link)
    ready_and_then(box, program.pid, 3, "cannot make the folder", link)
    equal(os.listdir(os.path.join(box.path, "elsewhere")), [], "what it made")


@test
def a_folder_that_cannot_be_made_is_told(box):
    need_kernel()
    program = chatter(box)
    os.chmod(box.path, 0o755)
    shutil.copy(KERNEL, box.path)
    taken, roots = os.path.join(box.path, "taken"), os.path.join(box.path, "roots")
    open(taken, "w").close()
    os.mkdir(roots, 0o755)
    ready_and_then(box, program.pid, 3, "Not a directory", taken)
    ready_and_then(box, program.pid, 3, "Read-only file system", roots, wrap=with_mounts("mount --bind '%s' '%s'" % (roots, roots), "mount -o remount,bind,ro '%s'" % roots))
    k = start(box, "--pid", str(program.pid), binary=os.path.join(box.path, "d9-kernel"), folder=roots,
              wrap=[need("setpriv"), "--reuid=65534", "--clear-groups", "--inh-caps=+bpf,+perfmon", "--ambient-caps=+bpf,+perfmon"])
    r = box.finish(k)
    check(r.rc == 4 and "Permission denied; --dir names another" in r.err and r.err.count("\n") == 1, "exit %d, %r" % (r.rc, r.err))
    equal(os.listdir(roots), [], "what it made")


@test
def a_disk_that_is_full_from_the_start_is_told(box):
    need_kernel()
    program = chatter(box)
    small = os.path.join(box.path, "small")
    os.mkdir(small)
    # Room for the folder and not for a file in it.
    ready_and_then(box, program.pid, 3, "No space left on device", small, wrap=with_mounts("mount -t tmpfs -o nr_inodes=2 tmpfs '%s'" % small))


@test
def what_was_written_stays_when_the_end_does_not_fit(box):
    need_kernel()
    program = chatter(box)
    k = start(box, "--pid", str(program.pid), "--runq-min", "0ns")
    segment = lambda: next((os.path.join(f, n) for f in box.folders() for n in files(f)), None)  # noqa: E731
    wait_until(lambda: segment() and os.path.getsize(segment()) > 200_000, "nothing is written")
    k.send_signal(signal.SIGSTOP)
    written = os.path.getsize(segment())
    subprocess.run([need("prlimit"), "--pid", str(k.pid), "--fsize=%d" % written], check=True)
    k.send_signal(signal.SIGTERM)
    k.send_signal(signal.SIGCONT)
    r = box.finish(k)
    box.end(program.p)
    equal(r.rc, 0, "exit code")
    check("could not be finished: File too large" in r.err or "could not be written" in r.err, r.err)
    check(not os.path.getsize(segment()) < written, "the segment is %d bytes, was %d" % (os.path.getsize(segment()), written))
    check(len(of(box.meta(), "runq")) > 1000, "what was written is not read")


if __name__ == "__main__":
    main()
