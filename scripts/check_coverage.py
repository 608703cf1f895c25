#!/usr/bin/env python3
"""check_coverage.py [PROGS]: every import of the services we test with that can block, or that changes who a process is, is a
row of interpose/hooks.def or is told of in docs/NOT_SEEN.md.  PROGS: the folder that test programs were built in.

With --seen NAME... only says which of the services import the names.
"""
import glob
import importlib
import os
import re
import shutil
import subprocess
import sys

import tables

# What libc offers that may keep a thread from running on, or that changes what a process is or may do, by kind.  A name
# with a star stands for its *64 sibling and its fortified __*_chk one too.
NAMES = {
    # waits for events, for others, for time
    "event": "epoll_wait epoll_pwait epoll_pwait2 poll* ppoll* select pselect",
    "signal": "pause sigpause sigsuspend sigwait sigwaitinfo sigtimedwait",
    "child": "wait wait3 wait4 waitid waitpid",
    "sleep": "nanosleep clock_nanosleep usleep sleep thrd_sleep sched_yield pthread_yield thrd_yield",
    # waits for what somebody holds or signals
    "lock": "pthread_mutex_lock pthread_mutex_timedlock pthread_mutex_clocklock pthread_mutex_trylock pthread_mutex_unlock"
            " pthread_rwlock_rdlock pthread_rwlock_wrlock pthread_rwlock_timedrdlock pthread_rwlock_timedwrlock"
            " pthread_rwlock_clockrdlock pthread_rwlock_clockwrlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock"
            " pthread_rwlock_unlock pthread_spin_lock pthread_once call_once mtx_lock mtx_timedlock mtx_trylock mtx_unlock",
    "signalled": "pthread_cond_wait pthread_cond_timedwait pthread_cond_clockwait pthread_cond_signal pthread_cond_broadcast"
                 " cnd_wait cnd_timedwait cnd_signal cnd_broadcast sem_wait sem_timedwait sem_clockwait sem_trywait sem_post"
                 " pthread_barrier_wait syscall aio_suspend* lio_listio* gai_suspend",
    "thread": "pthread_create pthread_join pthread_timedjoin_np pthread_clockjoin_np pthread_tryjoin_np pthread_exit"
              " pthread_setname_np thrd_create thrd_join thrd_exit",
    "filelock": "flock lockf* fcntl*",
    "sysv": "semop semtimedop msgrcv msgsnd mq_receive mq_timedreceive mq_send mq_timedsend",
    # input and output on a descriptor
    "socket": "accept accept4 connect socket socketpair bind listen shutdown epoll_ctl",
    "transfer": "read* pread* __pread64_chk readv preadv* preadv2 preadv64v2 write pwrite* writev pwritev* pwritev2 pwritev64v2"
                " recv* recvfrom* recvmsg recvmmsg send sendto sendmsg sendmmsg sendfile* splice tee vmsplice copy_file_range"
                " eventfd_read eventfd_write __read __write __pread64 __pwrite64 __send",
    "descriptor": "eventfd dup dup2 dup3 pipe pipe2 epoll_create epoll_create1 timerfd_create timerfd_settime signalfd"
                  " inotify_init inotify_init1 memfd_create pidfd_open fanotify_init close close_range closefrom",
    "device": "ioctl tcdrain tcflow tcflush tcsetattr tcsendbreak getrandom getentropy arc4random arc4random_buf",
    # files by name, metadata, storage
    "open": "open* openat* creat* __open_2 __open64_2 __openat_2 __openat64_2 mkstemp* mkostemp* mkstemps* mkostemps* tmpfile*"
            " openpty shm_open sem_open mq_open",
    "sync": "fsync fdatasync msync sync syncfs sync_file_range",
    "storage": "ftruncate* truncate* fallocate* posix_fallocate* posix_fadvise* readahead mlock mlock2 mlockall mmap* munmap mremap"
               " madvise mprotect shmat shmdt",
    "path": "stat* lstat* fstat* fstatat* statx __xstat* __lxstat* __fxstat* __fxstatat* access faccessat euidaccess chmod fchmod"
            " fchmodat chown fchown fchownat lchown mkdir mkdirat mkdtemp rmdir unlink unlinkat remove rename renameat renameat2"
            " link linkat symlink symlinkat readlink* readlinkat mkfifo mkfifoat mknod mknodat utime utimes futimes futimens"
            " utimensat opendir fdopendir closedir readdir* readdir_r scandir* nftw* ftw* fts_read glob* realpath* canonicalize_file_name"
            " chdir fchdir getcwd get_current_dir_name statfs* fstatfs* statvfs* fstatvfs* mount umount umount2 getxattr lgetxattr fgetxattr setxattr"
            " lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr inotify_add_watch"
            " inotify_rm_watch",
    # buffered I/O and what writes for the program
    "stdio": "fopen* freopen* fdopen fclose fflush fread* fwrite fgets* fgetc getc fgetwc getchar getwc ungetc __uflow __overflow gets getline"
             " getdelim __getdelim fputs fputc putc putchar puts putw printf* fprintf* vprintf* vfprintf* dprintf* vdprintf* scanf"
             " fscanf vfscanf __isoc99_fscanf __isoc99_scanf fseek fseeko* ftell ftello* fgetpos* fsetpos* rewind perror flockfile"
             " getpass",
    "log": "syslog* vsyslog* openlog closelog",
    # names that are looked up in files, over sockets, in plugins
    "dns": "getaddrinfo getaddrinfo_a getnameinfo gethostbyname gethostbyname2 gethostbyname_r gethostbyname2_r gethostbyaddr"
           " gethostbyaddr_r res_init __res_init res_query res_search res_send res_nquery res_nsearch res_nsend",
    "users": "getpwnam getpwnam_r getpwuid getpwuid_r getpwent setpwent endpwent getgrnam getgrnam_r getgrgid getgrgid_r getgrent"
             " getgrouplist getspnam getlogin getlogin_r getservbyname getservbyname_r getservbyport getservbyport_r getprotobyname"
             " getprotobynumber getnetbyname gethostent getifaddrs if_nametoindex if_indextoname if_nameindex ctermid ttyname"
             " ttyname_r",
    "loader": "dlopen dlmopen dlclose dlsym dlvsym dl_iterate_phdr",
    # processes and their ends
    "process": "fork vfork __fork _Fork clone posix_spawn posix_spawnp system popen pclose daemon forkpty execve execv execvp execvpe"
               " execl execlp execle fexecve execveat wordexp",
    "end": "exit _exit _Exit quick_exit abort longjmp siglongjmp _longjmp __longjmp_chk",
    "interrupt": "kill killpg raise pthread_kill tgkill pthread_cancel alarm setitimer",
    # who a process is and what it may do
    "identity": "setuid setgid seteuid setegid setreuid setregid setresuid setresgid setfsuid setfsgid initgroups setgroups chroot"
                " pivot_root unshare setns prctl capset login_tty setsid setpgid setpgrp setrlimit* prlimit* umask sethostname personality"
                " acct swapon ptrace",
    "scheduling": "sched_setscheduler sched_setparam sched_setaffinity pthread_setaffinity_np pthread_setschedparam setpriority nice",
    "uring": "__io_uring_get_cqe __io_uring_sqring_wait io_uring_enter io_uring_enter2 io_uring_get_events io_uring_submit"
             " io_uring_submit_and_get_events io_uring_submit_and_wait io_uring_submit_and_wait_timeout io_uring_submit_and_wait_min_timeout"
             " io_uring_submit_and_wait_reg io_uring_wait_cqe_timeout io_uring_wait_cqes io_uring_wait_cqes_min_timeout"
             " io_uring_register_sync_cancel io_uring_setup io_uring_register io_uring_queue_init io_uring_queue_init_params"
             " io_uring_queue_init_mem io_uring_queue_exit io_uring_register_buffers io_uring_register_files io_uring_peek_batch_cqe",
    "context": "getcontext setcontext makecontext swapcontext",
}

LIBRARIES = ["libevent-2*.so.*", "libevent_core-2*.so.*", "libuv.so.*", "libjemalloc.so.*", "libstdc++.so.6", "libglib-2*.so.0",
             "libgio-2*.so.0"]
FOLDERS = ["/usr/lib/x86_64-linux-gnu", "/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"]


def variants(word):
    name = word.rstrip("*")
    return [name, name + "64", "__%s_chk" % name, "__%s64_chk" % name] if word.endswith("*") else [name]


def kinds():
    return {name: kind for kind, words in NAMES.items() for word in words.split() for name in variants(word)}


def python_files():
    """This interpreter, the library it may live in, and the modules that wait."""
    for name in ("select", "_socket", "_posixsubprocess", "fcntl"):  # so that they are mapped, where they are files
        importlib.import_module(name)
    found = {os.path.realpath(sys.executable)}
    with open("/proc/self/maps") as f:
        for line in f:
            path = line.split()[-1]
            if re.match(r"(libpython|select\.|_socket\.|_posixsubprocess\.|fcntl\.).*so", os.path.basename(path)):
                found.add(path)
    return sorted(found)


def java_files():
    """The virtual machine and the libraries that wait."""
    program = shutil.which("java")
    home = os.path.dirname(os.path.dirname(os.path.realpath(program))) if program else ""
    return [p for n in ("server/libjvm.so", "libjava.so", "libnet.so", "libnio.so") for p in [os.path.join(home, "lib", n)] if os.path.exists(p)]


def targets(progs):
    """{what it is called in the page: files}; none where it is not installed."""
    found = {}
    for name, program in (("redis", "redis-server"), ("nginx", "nginx"), ("memcached", "memcached"), ("node", "node"), ("haproxy", "haproxy")):
        path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
        found[name] = [path] if path else []
    found["postgres"] = sorted(glob.glob("/usr/lib/postgresql/*/bin/postgres"))[-1:]
    found["java"] = java_files()
    found["uvloop"] = glob.glob(os.path.join(progs, "uvicorn-venv", "lib", "python3*", "site-packages", "uvloop", "loop.*.so"))
    found["asio"] = [p for p in [os.path.join(os.path.dirname(progs), "services", "asio_server")] if os.path.exists(p)]
    found["python"] = python_files()
    tokio = os.path.join(progs, "tokio-target", "release", "tokio_http")
    found["tokio"] = [tokio] if os.path.exists(tokio) else []
    for pattern in LIBRARIES:
        name = re.split(r"[-_.]", pattern)[0]
        paths = sorted({os.path.realpath(p) for folder in FOLDERS for p in glob.glob(os.path.join(folder, pattern))})
        found[name] = found.get(name, []) + paths
    return found


def imports(path):
    out = subprocess.run(["nm", "-D", "--undefined-only", path], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1].split("@")[0] for line in out.splitlines() if line.split()}


def told():
    """The names in the first column of the page's tables."""
    with open(os.path.join(tables.ROOT, "docs", "NOT_SEEN.md"), encoding="utf-8") as f:
        rows = [line.split("|")[1] for line in f if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def seen_by(progs):
    """{import: names of the services}, and the services that are not there."""
    found, missing = {}, []
    for name, files in targets(progs).items():
        if not files:
            missing.append(name)
        for name_of_import in {i for path in files for i in imports(path)}:
            found.setdefault(name_of_import, []).append(name)
    return found, missing


def wrong_lines(page, hooked, kind_of):
    for name in sorted({n for n in page if page.count(n) > 1}):
        yield "%s: docs/NOT_SEEN.md has it twice" % name
    for name in sorted(set(page)):
        if name in hooked:
            yield "%s: docs/NOT_SEEN.md has it, and it is hooked" % name
        if name not in kind_of:
            yield "%s: docs/NOT_SEEN.md has it, the table of this script does not" % name


def main():
    args = sys.argv[1:]
    progs = args[0] if args and args[0] != "--seen" else os.path.join(tables.ROOT, "build", "tests", "prog")
    if not shutil.which("nm"):
        print("# SKIP nm is not installed")
        return 77
    found, missing = seen_by(progs)
    if "--seen" in args:
        for name in args[args.index("--seen") + 1:]:
            print("%s: %s" % (name, " ".join(found.get(name, []))))
        return 0
    if not found:
        print("# SKIP none of the services is installed")
        return 77
    for name in missing:
        print("not looked at: %s is not there" % name)
    kind_of, page = kinds(), told()
    hooked = {row["name"] for row in tables.hooks()}
    wrong = list(wrong_lines(page, hooked, kind_of))
    for name in sorted(set(found) & set(kind_of) - hooked - set(page)):
        wrong.append("%s (%s), imported by %s: no hook, and docs/NOT_SEEN.md does not have it" %
                     (name, kind_of[name], ", ".join(found[name])))
    known = set(found) & set(kind_of)
    print("\n".join(wrong + ["%d imports that matter: %d hooked, %d told" % (len(known), len(known & hooked), len(known - hooked))]))
    return bool(wrong)


sys.exit(main())
