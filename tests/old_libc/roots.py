"""Roots of older systems, each with its own glibc: packages that debootstrap fetches and checks, unpacked beside the programs.

A root is made once and whole, under a name that it gets when it is done.  Nothing in it is configured: no program of it runs
before a test starts one.
"""
import contextlib
import fcntl
import functools
import glob
import hashlib
import os
import re
import shutil
import subprocess

import harness
from harness import Skip, check, need, need_root

PACKAGES = "redis-server,memcached,python3"
LIMIT = 500  # seconds for one root
LEFT_OUT = ["./usr/share/%s" % d for d in ("doc", "man", "info", "locale", "i18n", "zoneinfo")]


class Suite:
    """release: SHA-256 of its Release file, where Debian has no keyring for it and the file never changes again."""

    def __init__(self, glibc, options=(), release=None):
        self.glibc, self.options, self.release = glibc, list(options), release


SUITES = {
    "xenial": Suite((2, 23), ["--components=main,universe", "--no-check-gpg"],
                    "ce816774886f565d152b0b233fd715af3aa966fefb2277546bce75fdcf9ae996"),
    "bullseye": Suite((2, 31)),
}


def mirror(suite):
    """Where this machine gets its own packages, for a suite of Debian's; none: where debootstrap looks by itself."""
    if SUITES[suite].release:
        return []
    for path in ["/etc/apt/sources.list"] + sorted(glob.glob("/etc/apt/sources.list.d/*")):
        with contextlib.suppress(OSError), open(path, encoding="utf-8") as f:
            found = re.search(r"^(?:deb\s+(?:\[.*?\]\s+)?|URIs:\s*)(https?://\S+/debian/?)(?=\s|$)", f.read(), flags=re.M)
            if found:
                return [found.group(1)]
    return []


def fetch(suite, path):
    argv = [need("debootstrap"), "--download-only", "--variant=minbase", "--include=" + PACKAGES]
    r = subprocess.run([*argv, *SUITES[suite].options, suite, path, *mirror(suite)], capture_output=True, text=True, timeout=LIMIT)
    if r.returncode:
        FAILED[suite] = "debootstrap of %s: %s" % (suite, "; ".join((r.stdout + r.stderr).strip().splitlines()[-2:]))
        raise Skip(FAILED[suite])
    if SUITES[suite].release:
        found, = glob.glob(os.path.join(path, "var/lib/apt/lists/*_Release"))
        with open(found, "rb") as f:
            same = hashlib.sha256(f.read()).hexdigest() == SUITES[suite].release
        check(same, "not the Release file of %s that was pinned" % suite)


def unpack(path):
    packages = os.path.join(path, "var/cache/apt/archives")
    for package in sorted(glob.glob(os.path.join(packages, "*.deb"))):
        with subprocess.Popen(["dpkg-deb", "--fsys-tarfile", package], stdout=subprocess.PIPE) as files:
            tar = ["tar", "-x", "-C", path] + ["--exclude=" + d for d in LEFT_OUT]
            r = subprocess.run(tar, stdin=files.stdout, capture_output=True, text=True, timeout=LIMIT)
        check(r.returncode == 0 and files.returncode == 0, "%s: %s" % (package, r.stderr))
    for folder in (packages, os.path.join(path, "var/lib/apt/lists"), os.path.join(path, "debootstrap")):
        shutil.rmtree(folder)
    for folder in ("proc", "dev", "d9/box", "d9/shim"):  # what enter() mounts over
        os.makedirs(os.path.join(path, folder), exist_ok=True)
    shutil.copy(os.path.join(path, "usr/share/base-passwd/passwd.master"), os.path.join(path, "etc/passwd"))


FAILED = {}  # suite: why it cannot be had; asked for once


def root(suite):
    """The folder of a root, made if it is not there."""
    need_root()
    if suite in FAILED:
        raise Skip(FAILED[suite])
    path = os.path.join(os.path.dirname(harness.PROGS), "old-root-" + suite)
    with open(path + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(path):
            begun = path + ".begun"
            shutil.rmtree(begun, ignore_errors=True)
            fetch(suite, begun)
            unpack(begun)
            os.rename(begun, path)
    return path


MOUNTS = ('mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && mount --bind "$1" "$0/d9/box" && '
          'mount --bind "$2" "$0/d9/shim" && root=$0 && shift 2 && cd / && exec chroot "$root" /usr/bin/env -i "$@"')


def enter(path, box, env, argv):
    """The command that runs argv in a root: the test's folder is /d9/box there, the recorder's /d9/shim; mounts go with it."""
    need("unshare")
    words = ["PATH=/usr/sbin:/usr/bin:/sbin:/bin"] + ["%s=%s" % (k, v) for k, v in env.items()]
    return ["unshare", "-m", "sh", "-c", MOUNTS, path, box.path, os.path.dirname(harness.SHIM), *words, *[str(a) for a in argv]]


# ---- programs of ours ------------------------------------------------------------------------------------------


def tool(*argv):
    return subprocess.run(argv, capture_output=True, text=True, check=True).stdout


@functools.lru_cache
def missing(path):
    """The hooked names that the root's glibc has nowhere."""
    there = tool("nm", "-D", "--defined-only", *[os.path.join(path, LIB, name) for name in ("libc.so.6", *EXTRA)])
    with open(os.path.join(harness.ROOT, "interpose/hooks.def"), encoding="utf-8") as f:
        hooked = set(re.findall(r"^D9_HOOK(?:_[XV])?\(\w+, [^,]+, [^(]*?(\w+), \(", f.read(), flags=re.M))
    return sorted(hooked - set(re.findall(r" (\w+)(?:@\S+)?$", there, flags=re.M)))


LIB = "lib/x86_64-linux-gnu"
EXTRA = ("libpthread.so.0", "libdl.so.2")


def built(path, box, name, source, libraries=EXTRA, flags=()):
    """A program linked against the root's glibc, with this machine's headers.  A name that glibc lacks is weak: the recorder's,
    or NULL."""
    need("gcc")
    suite = os.path.basename(path).rpartition("-")[2]
    weak = os.path.join(box.path, "weak.h")
    with open(weak, "w", encoding="ascii") as f:
        f.writelines("#pragma weak %s\n" % n for n in missing(path))
    crt = {n: tool("gcc", "-print-file-name=" + n).strip() for n in ("Scrt1.o", "crti.o", "crtn.o", "libc_nonshared.a")}
    old = [os.path.join(path, LIB, n) for n in (*libraries, "libc.so.6", "ld-linux-x86-64.so.2")]
    libgcc = tool("gcc", "-print-libgcc-file-name").strip()
    argv = ["gcc", "-g", "-O1", "-w", "-std=gnu11", "-D_GNU_SOURCE", "-fno-omit-frame-pointer", "-U_FORTIFY_SOURCE",
            "-fno-builtin", "-I", harness.ROOT, "-I", os.path.join(harness.ROOT, "tests/prog"),
            "-DGLIBC_MINOR=%d" % SUITES[suite].glibc[1], "-include", weak, *flags, source, "-o", os.path.join(box.path, name),
            "-nostdlib", "-pie", "-Wl,-z,dynamic-undefined-weak", crt["Scrt1.o"], crt["crti.o"], *old, crt["libc_nonshared.a"],
            libgcc, crt["crtn.o"]]
    r = subprocess.run(argv, capture_output=True, text=True)
    check(r.returncode == 0, "%s does not build: %s" % (name, r.stderr))
    return "/d9/box/" + name
