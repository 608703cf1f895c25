#!/usr/bin/env python3
"""Programs for which LD_PRELOAD is not enough, too much, or nothing: they run as ever, and d9 run says what is missing."""
import os
import shutil
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import D9, PROGS, SHIM, check, equal, main, need, need_command, need_root, parametrise, test

SOURCE = r"""
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
int main(void) {
#ifdef SLOW
    sleep(4);
#endif
    usleep(2000); printf("fine %s\n", getenv("LD_PRELOAD") ? "preloaded" : "alone"); return 7; }
"""


def build(box, *flags, cc="gcc"):
    need(cc)
    path = os.path.join(box.path, "program")
    with open(path + ".c", "w") as f:
        f.write(SOURCE)
    r = subprocess.run([cc, path + ".c", "-o", path, *flags], capture_output=True, text=True, cwd=box.path)
    check(r.returncode == 0, "does not build: %s" % r.stderr)
    return path


def sleeps(box):
    return [e for e in box.events() if e["event"] == "span" and e["hook"] in ("usleep", "nanosleep", "clock_nanosleep")]


def d9_run_args(box, argv):
    need_command("run")
    return box.run([D9, "run", "--kernel", "off", "--dir", box.dir, "--", *argv], shim=False)


def d9_run(box, program):
    return d9_run_args(box, [program])


@parametrise(["gcc -fsanitize=address", "gcc -fsanitize=address -static-libasan", "gcc -fsanitize=undefined", "gcc -fsanitize=thread",
              "clang -fsanitize=address", "clang -fsanitize=thread"])
def sanitized(box, how):
    cc, *flags = how.split()
    r = d9_run(box, build(box, *flags, cc=cc))
    equal((r.rc, r.out), (7, "fine preloaded\n"), "the program: %s" % r.err)
    check(sleeps(box), "nothing was recorded")


def says_why(box, r, out, *words):
    equal((r.rc, r.out), (7, out), "the program: %s" % r.err)
    for w in words:
        check(w in r.err, "not a word of %s: %s" % (w, r.err))
    equal(box.folders(), [], "recordings")


@parametrise(["-static", "-static-pie"])
def static(box, flag):
    program = build(box, flag)
    says_why(box, d9_run(box, program), "fine preloaded\n", "nothing was recorded", "d9 check")
    r = box.d9("check", program, rc=1)
    check("linked statically" in r.out, r.out)


@test
def said_while_it_runs(box):
    program = build(box, "-static", "-DSLOW")
    p = box.start([D9, "run", "--kernel", "off", "--dir", box.dir, "--", program], shim=False)
    equal(p.stderr.readline(), "d9: nothing is recorded of %s so far: `d9 check %s` says why\n" % (program, program), "said")
    check(p.poll() is None, "only when it was over")
    says_why(box, box.finish(p), "fine preloaded\n", "nothing was recorded")


@test
def another_libc(box):
    """A loader of that name, though it is glibc's: a program of musl with our library would not start at all."""
    loader = os.path.join(box.path, "ld-musl-x86_64.so.1")
    os.symlink(os.path.realpath("/lib64/ld-linux-x86-64.so.2"), loader)
    program = build(box, "-Wl,--dynamic-linker=" + loader)
    says_why(box, d9_run(box, program), "fine alone\n", "musl", "nothing is recorded")


@test
def with_rights_of_its_own(box):
    need_root()
    program = build(box)
    os.chmod(box.path, 0o755)
    os.chmod(program, 0o4755)
    r = box.d9("check", program, rc=1)
    check("set-user-id" in r.out, r.out)
    os.makedirs(box.dir)
    os.chown(box.dir, 65534, 65534)
    r = box.run([D9, "run", "--kernel", "off", "--dir", box.dir, "--", program], shim=False, user=65534, group=65534)
    says_why(box, r, "fine alone\n", "nothing was recorded", "d9 check")


def unseen(box, what):
    r = box.document("report", "--session", "all")
    return [u["detail"] for u in r["unseen"] if u["what"] == what]


@parametrise(["bare", "run"])
def modules_that_go_past_the_hooks(box, how):
    program = os.path.join(PROGS, "dl")
    r = box.run([program]) if how == "bare" else d9_run(box, program)
    equal((r.rc, r.out), (0, ""), "the program: %s" % r.err)
    told = unseen(box, "warning")
    equal(sorted(line.split()[0] for line in told), ["libm.so.6", "libresolv.so.2"], "modules named: %s" % told)
    check(any("DEEPBIND" in line for line in told) and any("dlmopen" in line for line in told), told)


@parametrise(["-static", "an empty environment"])
def a_program_that_becomes_one_that_is_not_recorded(box, how):
    program = build(box, *([how] if how.startswith("-") else []))
    script = "exec %s%s" % ("" if how.startswith("-") else "env -i ", program)
    r = d9_run_args(box, ["sh", "-c", script])
    equal(r.rc, 7, "the program: %s" % r.err)
    told = unseen(box, "exec")
    check(len(told) == 1 and os.path.basename(program) in told[0] and "not recorded" in told[0], "told: %s" % told)


@test
def a_program_that_becomes_one_that_is_recorded(box):
    r = d9_run_args(box, ["sh", "-c", "exec " + build(box)])
    equal((r.rc, unseen(box, "exec")), (7, []), "told of what is seen")


STARTER = r"""
#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <spawn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
extern char **environ;
static void forbid(void) {
    struct sock_filter f[] = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(struct seccomp_data, nr)}, {BPF_JMP | BPF_JEQ | BPF_K, 3, 0, SYS_stat},
        {BPF_JMP | BPF_JEQ | BPF_K, 2, 0, SYS_open}, {BPF_JMP | BPF_JEQ | BPF_K, 1, 0, SYS_pread64}, {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW},
        {BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS}};
    struct sock_fprog p = {6, f};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &p, 0, 0)) _exit(99);
}
static void go(const char *how, char *path) {
    char *name = strrchr(path, '/') + 1, *argv[] = {path, 0};
    if (!strcmp(how, "filter")) { forbid(); execv("/nowhere", argv); exit(errno == ENOENT ? 7 : 98); }
    if (!strcmp(how, "faults")) {
        char *bad[] = {(char *)8, 0};
        if (execve((char *)8, argv, environ) != -1 || errno != EFAULT) exit(90);
        if (execve(path, argv, (char **)8) != -1 || errno != EFAULT) exit(91);
        if (execve(path, argv, bad) != -1 || errno != EFAULT) exit(92);
        if (execve(0, argv, environ) != -1 || errno != EFAULT) exit(93);
        how = "execv";
    }
    if (!strcmp(how, "execve")) execve(path, argv, environ);
    if (!strcmp(how, "execv")) execv(path, argv);
    if (!strcmp(how, "execvp")) execvp(name, argv);
    if (!strcmp(how, "execvpe")) execvpe(name, argv, environ);
    if (!strcmp(how, "execl")) execl(path, path, NULL);
    if (!strcmp(how, "execlp")) execlp(name, path, NULL);
    if (!strcmp(how, "execle")) execle(path, path, NULL, environ);
    if (!strcmp(how, "fexecve")) fexecve(open(path, O_RDONLY | O_CLOEXEC), argv, environ);
    if (!strcmp(how, "relative")) execv(name, argv);
}
int main(int argc, char **argv) {
    char *how = argv[1], *path = argv[2], *args[] = {path, 0};
    pid_t pid = 0;
    int status = 0;
    (void)argc;
    usleep(2000);
    if (!strncmp(how, "vfork-", 6)) {
        char *before = strdup(getenv("LD_PRELOAD"));
        if (!(pid = vfork())) { go(how + 6, path); _exit(97); }
        if (strcmp(before, getenv("LD_PRELOAD"))) return 96;
    } else if (!strcmp(how, "posix_spawn") && posix_spawn(&pid, path, 0, 0, args, environ)) return 95;
    else if (!strcmp(how, "posix_spawnp") && posix_spawnp(&pid, strrchr(path, '/') + 1, 0, 0, args, environ)) return 95;
    if (!pid) { go(how, path); return 94; }
    return waitpid(pid, &status, 0) == pid && WIFEXITED(status) ? WEXITSTATUS(status) : 93;
}
"""
ASAN = {"gcc": "-fsanitize=address", "clang": "-fsanitize=address -shared-libasan"}


def build_asan(box, cc="gcc"):
    flags = ASAN[cc].split()
    if cc == "clang":
        need(cc)
        library = subprocess.run([cc, "-print-file-name=libclang_rt.asan-x86_64.so"], capture_output=True, text=True).stdout.strip()
        flags.append("-Wl,-rpath," + os.path.dirname(library))
    program = build(box, *flags, cc=cc)
    r = box.run([program], shim=False)
    equal((r.rc, r.out), (7, "fine alone\n"), "the program alone: %s" % r.err)
    return program


def build_starter(box):
    starter = os.path.join(box.path, "starter")
    with open(starter + ".c", "w") as f:
        f.write(STARTER)
    r = subprocess.run(["gcc", "-O1", "-w", starter + ".c", "-o", starter], capture_output=True, text=True)
    check(r.returncode == 0, "does not build: %s" % r.stderr)
    return starter


def start(box, how, program, starter=None, **more):
    env = dict({"PATH": "/nowhere:%s:%s" % (box.path, os.environ["PATH"])}, **more)
    return box.run([D9, "run", "--kernel", "off", "--dir", box.dir, "--", starter or build_starter(box), how, program], shim=False, env=env)


@test
def a_sanitized_program_that_another_starts(box):
    program, starter = build_asan(box), build_starter(box)
    for how in ("execve", "execv", "execvp", "execvpe", "execl", "execlp", "execle", "fexecve", "relative", "faults", "posix_spawn",
                "posix_spawnp", "vfork-execve", "vfork-execvp", "vfork-execl"):
        r = start(box, how, program, starter)
        equal((how, r.rc, r.out), (how, 7, "fine preloaded\n"), "the program: %s" % r.err)
        equal((how, len(box.folders())), (how, 1), "families recorded")
        told = [line for line in unseen(box, "warning") if "libasan" in line]
        check(len(told) == 1 and "is not recorded" in told[0], "%s: told: %s" % (how, told))
        shutil.rmtree(box.dir)
    equal(start(box, "execv", program, starter, D9_ENABLED="0").rc, 7, "beside a recorder that is off")
    equal(start(box, "filter", "/bin/true", starter).rc, 7, "under a filter nothing is looked at")


@test
def a_sanitized_program_of_clang_that_another_starts(box):
    r = start(box, "execv", build_asan(box, "clang"))
    equal((r.rc, r.out), (7, "fine preloaded\n"), "the program: %s" % r.err)
    told = unseen(box, "exec")
    check(len(told) == 1 and "libasan" in told[0] and "d9 check" not in told[0], "the true reason: %s" % told)


@parametrise(["-fsanitize=address -static-libasan", "-fsanitize=undefined", "-fsanitize=thread", ""])
def other_programs_that_another_starts_are_recorded(box, flags):
    r = start(box, "execv", build(box, *flags.split()))
    equal((r.rc, r.out), (7, "fine preloaded\n"), "the program: %s" % r.err)
    equal((len(box.folders()), unseen(box, "warning")), (2, []), "families recorded, and what is told")


@test
def libasan_that_comes_first_already(box):
    library = subprocess.run(["gcc", "-print-file-name=libasan.so"], capture_output=True, text=True).stdout.strip()
    program = build_asan(box)
    env = {"LD_PRELOAD": "%s:%s" % (os.path.realpath(library), SHIM), "ASAN_OPTIONS": "detect_leaks=0"}
    r = box.run([build_starter(box), "execv", program], shim=False, env=env)
    equal((r.rc, r.out), (7, "fine preloaded\n"), "the program: %s" % r.err)
    equal((len(box.folders()), unseen(box, "warning")), (2, []), "families recorded, and what is told")


@parametrise(["exec", "fork and exec"])
def a_program_of_a_user_who_may_not_write(box, how):
    need_root()
    program = build(box)
    os.chmod(box.path, 0o755)
    os.makedirs(box.dir, 0o700)
    drop = "import os, time\ntime.sleep(0.01)\nif %r == 'exec' or not os.fork():\n os.setgroups([]); os.setgid(65534); os.setuid(65534)\n " \
           "os.execv(%r, ['program'])\nos._exit(os.waitstatus_to_exitcode(os.wait()[1]))" % (how, program)
    r = box.run([D9, "run", "--kernel", "off", "--dir", box.dir, "--", sys.executable, "-c", drop], shim=False, env={"D9_LOG": "stderr"})
    equal((r.rc, r.out), (7, "fine preloaded\n"), "the program: %s" % r.err)
    equal(len(box.folders()), 1, "families recorded")
    why = "is not recorded: it runs as user 65534, who may not write to %s" % os.path.realpath(box.dir)
    check("d9: %s %s\n" % (program, why) in r.err, "d9 run does not say why: %s" % r.err)
    check("cannot make the folder %s/program-" % os.path.realpath(box.dir) in r.err and "permission denied" in r.err, "D9_LOG: %s" % r.err)
    check(any(why in line for line in unseen(box, "exec")) and any(why in line for line in unseen(box, "warning")), "the report")
    os.chmod(box.dir, 0o777)
    r = box.run([D9, "run", "--kernel", "off", "--dir", box.dir, "--", sys.executable, "-c", drop], shim=False)
    check(r.rc == 7 and "not recorded" not in r.err, "told of one that may: %s" % r.err)


@parametrise(["missing", "too short", "not readable"])
def a_library_that_is_not_there(box, how):
    path = os.path.join(box.path, "libd9shim.so")
    if how == "too short":
        with open(path, "w") as f:
            f.write("x")
    if how == "not readable":
        need_root()
        shutil.copy(SHIM, path)
        os.chmod(path, 0)
    program = build(box)
    os.chmod(box.path, 0o755)
    r = box.run([program], env={"LD_PRELOAD": path}, shim=False, user=65534 if how == "not readable" else None)
    equal((r.rc, r.out), (7, "fine preloaded\n"), "the program")  # the loader says so on its own, and goes on
    equal(box.folders(), [], "recordings")


if __name__ == "__main__":
    main()
