"""Test suites of other projects, run as they are and under the recorder.

A suite says where it comes from (pinned), how one part of it is run, and what each case of it came to.  compare() runs a part bare
and recorded.  A case that passes bare and does not pass recorded (or the other way round) is run again both ways, in turns: from
what it came to in all runs it is `new` (never fails bare, fails recorded more than once), a `flake` (fails both ways, or not again)
or `bare` (fails bare alone).  None of the three is left out of what is printed.

What is fetched and built stays in build-bench/hosts; what runs has a folder of its own that goes with it.
"""
import ctypes
import fnmatch
import functools
import glob
import hashlib
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
CACHE = os.path.join(ROOT, "build-bench", "hosts")
AGAIN = 3  # times that a case is run again, each way
PASS, FAIL, SKIP, TIMEOUT, MISSING = "pass", "fail", "skip", "timeout", "missing"
BAD = (FAIL, TIMEOUT, MISSING)


class Unavailable(Exception):
    """Why a suite cannot be run here."""


def tool(name, package):
    path = shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
    if not path:
        raise Unavailable("%s is not installed (%s)" % (name, package))
    return path


def must(argv, what, **options):
    r = subprocess.run(argv, capture_output=True, text=True, **options)
    if r.returncode:
        raise Unavailable("%s: %s" % (what, (r.stderr or r.stdout).strip()[-300:] or "exit %d" % r.returncode))
    return r.stdout


def package_version(name):
    r = subprocess.run(["dpkg-query", "-W", "-f", "${Version}", name], capture_output=True, text=True)
    return r.stdout.strip() if not r.returncode else "of unknown version"


# ---- what is fetched -------------------------------------------------------------------------------------

def debian_archives():
    """(URI, release, component) of Debian's archive, from where this machine takes its packages."""
    r = subprocess.run(["apt-get", "indextargets", "--format", "$(ORIGIN)|$(REPO_URI)|$(RELEASE)|$(COMPONENT)", "Created-By: Packages"],
                       capture_output=True, text=True)
    lines = [line.split("|") for line in r.stdout.splitlines()]
    return sorted({tuple(fields[1:]) for fields in lines if fields[0] == "Debian" and fields[3] == "main"})


def debian_source(package, tarball, sha256):
    """The upstream archive of a Debian 12 source package, by apt but with lists of its own: the system's need no deb-src line."""
    path = os.path.join(CACHE, tarball)
    if not os.path.exists(path):
        lists = os.path.join(CACHE, "apt")
        for d in ("lists/partial", "cache/archives/partial"):
            os.makedirs(os.path.join(lists, d), exist_ok=True)
        with open(os.path.join(lists, "sources.list"), "w", encoding="utf-8") as f:
            f.write("".join("deb-src %s %s %s\n" % where for where in debian_archives()))
        options = ["-q"]
        for o in ("Dir::State::lists=%s/lists" % lists, "Dir::Cache=%s/cache" % lists, "Dir::Etc::sourcelist=%s/sources.list" % lists,
                  "Dir::Etc::sourceparts=/dev/null", "APT::Sandbox::User=root"):
            options += ["-o", o]
        must([tool("apt-get", "apt"), *options, "update"], "apt-get update")
        must(["apt-get", *options, "--download-only", "source", package], "apt-get source " + package, cwd=CACHE)
        shutil.rmtree(lists)
        if not os.path.exists(path):
            raise Unavailable("the archive has another version of %s than %s" % (package, tarball))
    with open(path, "rb") as f:
        if hashlib.sha256(f.read()).hexdigest() != sha256:
            raise Unavailable("%s is not the file that was pinned" % tarball)
    return path


def unpacked(archive, folder):
    path = os.path.join(CACHE, folder)
    if not os.path.isdir(path):
        must(["tar", "xf", archive, "-C", CACHE], "tar")
    return path


# ---- the suites ------------------------------------------------------------------------------------------

class Suite:
    """parts(): names of what is run at a time; run(part, env, box, only): (argv, cwd) ; cases(part, run): {case: outcome}."""
    limit = 600  # seconds for a part
    quick = {}   # part: patterns of cases (None: all), for scripts/test
    skips = {}   # pattern of cases: why they are not run at all

    def prepare(self):
        """Fetches and builds; raises Unavailable."""

    def environment(self, part):
        """What is set beside what a test of ours has."""
        return {}

    def cases(self, part, run, only):
        raise NotImplementedError


class Run:
    """One run of a part: what it printed, how it ended, its folder."""

    def __init__(self, out, rc, box, seconds):
        self.out, self.rc, self.box, self.seconds = out, rc, box, seconds


class Python(Suite):
    """CPython's own, of Debian's python3."""
    name = "python"
    python = "/usr/bin/python3"
    asyncio = tuple("asyncio.test_" + m for m in (
        "base_events", "buffered_proto", "context", "events", "futures", "futures2", "locks", "pep492", "protocols", "queues", "runners",
        "selector_events", "sendfile", "server", "sock_lowlevel", "ssl", "sslproto", "streams", "subprocess", "taskgroups", "tasks", "threads",
        "timeouts", "transports", "unix_events", "waitfor"))
    modules = (*asyncio, "threading", "subprocess", "signal", "socket", "select", "epoll", "poll", "selectors", "multiprocessing_fork",
               "multiprocessing_spawn", "multiprocessing_forkserver", "concurrent_futures", "fork1", "wait3", "wait4", "posix", "faulthandler")
    skips = {"test.test_socket.ThreadedVSOCK*": "waits for ever without the recorder where the machine's vsock has no peer"}
    quick = {
        "threading": ("*.ThreadTests.*", "*.LockTests.*", "*.RLock*", "*.ConditionTests.*", "*.EventTests.*", "*.Semaphore*",
                      "*.ThreadJoinOnShutdown.*", "*.SubinterpThreadingTests.*", "*.TimerTests.*"),
        "subprocess": ("*.POSIXProcessTestCase.*", "*.ProcessTestCase.test_communicate*", "*.ProcessTestCase.test_wait*"),
        "signal": ("*.WakeupFDTests.*", "*.WakeupSignalTests.*", "*.PendingSignalsTests.*", "*.PosixTests.*"),
        "select": None,
        "epoll": None,
        "socket": ("*.BasicTCPTest.*", "*.BasicUDPTest.*", "*.*Sendmsg*", "*.NonBlockingTCPTests.*", "*.*Timeout*"),
        "asyncio.test_unix_events": None,
        "asyncio.test_events": ("*.EPollEventLoopTests.*",),
        "asyncio.test_sock_lowlevel": ("*.EPoll*",),
        "multiprocessing_fork": ("*.WithProcessesTestProcess.*", "*.WithProcessesTestQueue.*", "*.WithProcessesTestEvent.*",
                                 "*.WithProcessesTestLock.*"),
    }

    def prepare(self):
        tool("python3", "python3")
        if subprocess.run([self.python, "-c", "import test.test_threading, test.test_asyncio"], capture_output=True).returncode:
            raise Unavailable("the tests of %s are not installed (libpython3.11-testsuite)" % self.python)

    def version(self):
        return "CPython %s (Debian's libpython3.11-testsuite %s)" % (
            must([self.python, "-c", "import platform; print(platform.python_version())"], "python3").strip(), package_version("libpython3.11-testsuite"))

    def parts(self):
        return self.modules

    def command(self, part, box, only):
        argv = [self.python, "-m", "test", "-v", "--junit-xml", os.path.join(box, "results.xml"), "--tempdir", box]
        for pattern in self.skips:
            argv += ["--ignore", pattern]
        for pattern in only or ():
            argv += ["--match", pattern]
        return argv + ["test_" + part], box

    def cases(self, part, run, only):
        found = {}
        try:
            for case in xml.etree.ElementTree.parse(os.path.join(run.box, "results.xml")).iter("testcase"):
                name = case.get("name")
                bad = case.find("failure") is not None or case.find("error") is not None
                now = FAIL if bad else SKIP if case.find("skipped") is not None or case.get("result") == "skipped" else PASS
                if found.get(name) != FAIL:  # parts of one case have its name
                    found[name] = now
        except (OSError, xml.etree.ElementTree.ParseError):
            # It did not come to its end: what it had printed till then.
            for name, rest in re.findall(r"^\w+ \((test\.[\w.]+)\)(?:\n.*?)?(?: \.\.\. )(.*)$", run.out, re.M):
                found[name] = PASS if rest.endswith("ok") else SKIP if "skipped" in rest else TIMEOUT if not rest.strip() else FAIL
        if run.rc is None or (run.rc and not any(v == FAIL for v in found.values())):
            tail = re.findall(r"^test_[\w.]+ (?:crashed|failed|timed out).*$", run.out, re.M)
            found["test_%s as a whole" % part] = TIMEOUT if run.rc is None else SKIP if not found and not tail else FAIL
        return found


class Libevent(Suite):
    """Its regress program, with each of its back ends."""
    name = "libevent"
    limit = 400
    backends = ("epoll", "poll", "select")

    def prepare(self):
        self.program = os.path.join(CACHE, "libevent-build", "bin", "regress")
        archive = debian_source("libevent", "libevent_2.1.12-stable.orig.tar.gz", "92e6de1be9ec176428fd2367677e61ceffc2ee1cb119035037a27d346b0403bb")
        source = unpacked(archive, "libevent-2.1.12-stable")
        if not os.path.exists(self.program):
            must([tool("cmake", "cmake"), "-S", source, "-B", CACHE + "/libevent-build", "-DEVENT__LIBRARY_TYPE=STATIC", "-DEVENT__DISABLE_SAMPLES=ON",
                  "-DEVENT__DISABLE_BENCHMARK=ON", "-DEVENT__DISABLE_MBEDTLS=ON"], "cmake of libevent")
            must(["cmake", "--build", CACHE + "/libevent-build", "--target", "regress"], "build of libevent")

    def version(self):
        return "libevent 2.1.12-stable (Debian's source)"

    def parts(self):
        return self.backends

    def environment(self, part):
        return {"EVENT_NO" + b.upper(): "1" for b in ("epoll", "poll", "select", "devpoll", "kqueue") if b != part}

    def command(self, part, box, only):
        return [self.program, *(only or ())], box

    def cases(self, part, run, only):
        found, last = {}, None
        for line in run.out.splitlines():
            m = re.match(r"^(\w+/\w+): (?:\[forking\] )?(.*)$", line)
            if m:
                last, rest = m.groups()
                found[last] = PASS if rest.endswith("OK") else SKIP if "SKIPPED" in rest or "DISABLED" in rest else TIMEOUT
            elif last and line.strip() == "OK":
                found[last] = PASS
            m = re.match(r"^\s*\[(\w+)(?:/\w+)? FAILED\]", line)
            if m and last:
                found[last] = FAIL
        if run.rc is None or (run.rc and not any(v in BAD for v in found.values())):
            found["regress as a whole"] = TIMEOUT if run.rc is None else FAIL
        return {k: FAIL if v == TIMEOUT and run.rc is not None else v for k, v in found.items()}


class Tokio(Suite):
    """Tokio's tests/, as its published crate has them."""
    name = "tokio"
    limit = 240
    version_, locked = "1.54.1", "1.54.0"

    def prepare(self):
        cargo = tool("cargo", "cargo")
        self.source = os.path.join(CACHE, "tokio-" + self.version_)
        self.binaries = {}
        if not os.path.isdir(self.source):
            # The crate comes through a project that names it: cargo checks it against the registry's checksum.
            fetch = os.path.join(CACHE, "tokio-fetch")
            os.makedirs(os.path.join(fetch, "src"), exist_ok=True)
            with open(os.path.join(fetch, "Cargo.toml"), "w", encoding="utf-8") as f:
                f.write('[package]\nname = "fetch"\nversion = "0.0.0"\nedition = "2021"\n[dependencies]\ntokio = "=%s"\n' % self.version_)
            open(os.path.join(fetch, "src", "lib.rs"), "w", encoding="utf-8").close()
            meta = json.loads(must([cargo, "metadata", "--format-version", "1"], "cargo metadata", cwd=fetch))
            crate = next(os.path.dirname(p["manifest_path"]) for p in meta["packages"] if p["name"] == "tokio")
            shutil.copytree(crate, self.source)
            shutil.rmtree(fetch)
            # The lock file of the crate is kept, but what its tests need has to use this tokio, not the one before it.
            with open(os.path.join(self.source, "Cargo.toml"), "a", encoding="utf-8") as f:
                f.write('\n[patch.crates-io]\ntokio = { path = "." }\n')
            must([cargo, "update", "-p", "tokio@" + self.locked], "cargo update", cwd=self.source)
        env = dict(os.environ, CARGO_TARGET_DIR=os.path.join(CACHE, "tokio-target"), CARGO_PROFILE_TEST_DEBUG="0", CARGO_PROFILE_DEV_DEBUG="0",
                   CARGO_INCREMENTAL="0")
        out = must([cargo, "test", "--locked", "--no-run", "--tests", "--features", "full,test-util", "--message-format=json", "--quiet"],
                   "build of tokio's tests", cwd=self.source, env=env)
        for line in out.splitlines():
            m = json.loads(line)
            if m.get("executable") and "test" in m["target"]["kind"]:
                self.binaries[m["target"]["name"]] = m["executable"]

    def version(self):
        return "tokio %s (its crate)" % self.version_

    def parts(self):
        return sorted(self.binaries)

    def command(self, part, box, only):
        return [self.binaries[part], *(["--exact", *only] if only else ())], self.source

    def cases(self, part, run, only):
        found = {}
        for name, rest in re.findall(r"^test (\S+)(?: - should panic)? \.\.\. (\w+)", run.out, re.M):
            found[name] = {"ok": PASS, "FAILED": FAIL, "ignored": SKIP}.get(rest, FAIL)
        if run.rc is None or (run.rc and FAIL not in found.values()):
            for name in re.findall(r"^(\S+): test$", subprocess.run([self.binaries[part], "--list"], capture_output=True, text=True).stdout, re.M):
                if not only or name in only:
                    found.setdefault(name, TIMEOUT if run.rc is None else FAIL)
        return found


class Haproxy(Suite):
    """haproxy's reg-tests of the version that Debian ships, against Debian's haproxy; driven by VTest, which is preloaded as well."""
    name = "haproxy"
    limit = 900
    vtest_commit = "32b160fa3109eb766f193c713e236f6a4ae48512"
    groups = ("balance", "cache", "checks", "compression", "connection", "converter", "filters", "http-capture", "http-cookies", "http-errorfiles",
              "http-messaging", "http-rules", "http-set-timeout", "jwt", "log", "lua", "mailers", "mcli", "peers", "sample_fetches",
              "seamless-reload", "server", "spoe", "ssl", "startup", "stick-table", "stickiness", "stream", "tcp-rules", "webstats")

    def prepare(self):
        self.haproxy = tool("haproxy", "haproxy")
        installed = package_version("haproxy")
        if not installed.startswith("2.6.12-"):
            raise Unavailable("haproxy %s is installed, the tests are those of 2.6.12" % installed)
        archive = debian_source("haproxy", "haproxy_2.6.12.orig.tar.gz", "58f9edb26bf3288f4b502658399281cc5d6478468bd178eafe579c8f41895854")
        self.source = unpacked(archive, "haproxy-2.6.12")
        vtest = os.path.join(CACHE, "vtest")
        self.vtest = os.path.join(vtest, "vtest")
        if not os.path.isdir(vtest):
            where = os.environ.get("D9_TEST_VTEST_GIT")
            if not where:
                raise Unavailable("D9_TEST_VTEST_GIT does not say where VTest's git repository is")
            must([tool("git", "git"), "clone", "-q", where, vtest], "git clone of VTest")
            must(["git", "checkout", "-q", self.vtest_commit], "git checkout of VTest", cwd=vtest)
        if not os.path.exists(self.vtest):
            must([tool("make", "make"), "FLAGS=-O2", "vtest"], "build of VTest (libpcre2-dev, zlib1g-dev)", cwd=vtest)

    def version(self):
        return "haproxy %s, its reg-tests by VTest %s" % (package_version("haproxy"), self.vtest_commit[:8])

    def environment(self, part):
        return {"HAPROXY_PROGRAM": self.haproxy, "VTEST_PROGRAM": self.vtest}

    def parts(self):
        return self.groups

    def command(self, part, box, only):
        return ["scripts/run-regtests.sh", "--v", "--j", "2", *(only or ["reg-tests/" + part])], self.source

    def cases(self, part, run, only):
        found = {}
        for name, rest in re.findall(r"^#\s+top\s+TEST (\S+) (passed|FAILED|skipped|TIMED OUT)", run.out, re.M):
            found[name] = {"passed": PASS, "skipped": SKIP, "TIMED OUT": TIMEOUT}.get(rest, FAIL)
        if run.rc is None:
            found["reg-tests/%s as a whole" % part] = TIMEOUT
        return found


SUITES = (Python, Libevent, Tokio, Haproxy)


# ---- running ---------------------------------------------------------------------------------------------

def adopt_orphans():
    """What a suite leaves behind becomes a child of this process, so that it can be ended and nothing else is."""
    ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)  # PR_SET_CHILD_SUBREAPER


def end_children():
    count = 0
    for _ in range(200):
        pids = []
        for path in glob.glob("/proc/self/task/*/children"):
            with open(path, encoding="ascii") as f:
                pids += [int(p) for p in f.read().split()]
        if not pids:
            break
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
                count += os.waitpid(pid, 0)[1] == signal.SIGKILL
            except (ProcessLookupError, ChildProcessError):
                pass
    return count


class Recorder:
    def __init__(self, shim):
        self.shim = os.path.abspath(shim)
        self.folders = self.bytes = self.arenas = 0

    def tidy(self, traces):
        """Counts what was recorded and removes what is in memory for processes that were killed."""
        for folder in glob.glob(os.path.join(glob.escape(traces), "*/")):
            self.folders += 1
            self.bytes += sum(os.path.getsize(p) for p in glob.glob(folder + "*.d9"))
        for arena in glob.glob("/dev/shm/d9-*"):
            try:
                with open(arena, "rb") as f:
                    ours = os.fsencode(traces) + b"/" in f.read(65536)  # an arena names its folder in its head
                if ours:
                    self.arenas += 1
                    os.unlink(arena)
            except OSError:
                pass  # another's, gone by now


# A process that is killed while its recorder starts leaves memory that names nobody: as root a run has a /dev/shm of its own.
OWN_SHM = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs -o mode=1777 d9-hosts /dev/shm && exec env "$@"', "sh"]


@functools.lru_cache
def own_shm():
    return not os.geteuid() and shutil.which("unshare") and subprocess.run([*OWN_SHM, "true"], capture_output=True).returncode == 0


def run_part(suite, part, recorder, only=None, limit=None):
    """(cases, seconds) of one run; recorder: None to run it bare."""
    top = tempfile.mkdtemp(prefix="d9-hosts-")
    box, traces = os.path.join(top, "t"), os.path.join(top, "traces")
    os.mkdir(box)
    os.mkdir(traces)
    os.chmod(top, 0o755)
    env = {k: v for k, v in os.environ.items() if not k.startswith("D9_") and k != "LD_PRELOAD"}
    env.update(TMPDIR=box, **suite.environment(part))
    argv, cwd = suite.command(part, box, only)
    recording = {"LD_PRELOAD": recorder.shim, "D9_DIR": traces} if recorder else {}
    if own_shm():
        argv = [*OWN_SHM, *("%s=%s" % v for v in recording.items()), *argv]  # what comes before it is not recorded
    else:
        env.update(recording)
    started = time.monotonic()
    try:
        with open(os.path.join(top, "out"), "w+b") as out:
            p = subprocess.Popen(argv, cwd=cwd, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=subprocess.STDOUT, start_new_session=True)
            try:
                rc = p.wait(limit or suite.limit)
            except subprocess.TimeoutExpired:
                os.killpg(p.pid, signal.SIGKILL)
                p.wait()
                rc = None
            seconds = time.monotonic() - started
            end_children()
            out.seek(0)
            text = out.read().decode(errors="replace")
        cases = suite.cases(part, Run(text, rc, box, seconds), only)
        log = os.environ.get("D9_HOSTS_LOGS")
        if log:
            os.makedirs(log, exist_ok=True)
            with open(os.path.join(log, "%s-%s-%s%s.log" % (suite.name, part, "recorded" if recorder else "bare", "-again" if only else "")), "w",
                      encoding="utf-8") as f:
                f.write(text)
        return cases, seconds
    finally:
        end_children()
        if recorder:
            recorder.tidy(traces)
        shutil.rmtree(top, ignore_errors=True)


class Comparison:
    def __init__(self, part, bare, recorded, seconds):
        self.part, self.bare, self.recorded, self.seconds = part, bare, recorded, seconds
        self.new, self.flakes, self.only_bare = [], [], []  # (case, text)

    def count(self, outcome, recorded):
        return sum(v == outcome for v in (self.recorded if recorded else self.bare).values())


def compare(suite, part, recorder, only=None, limit=None):
    bare, t0 = run_part(suite, part, None, only, limit)
    recorded, t1 = run_part(suite, part, recorder, only, limit)
    c = Comparison(part, bare, recorded, (t0, t1))
    names = sorted(set(bare) | set(recorded))
    differ = [n for n in names if (bare.get(n, MISSING) in BAD) != (recorded.get(n, MISSING) in BAD) or
              (bare.get(n) == PASS) != (recorded.get(n) == PASS)]
    if not differ:
        return c
    runs = {n: ([bare.get(n, MISSING)], [recorded.get(n, MISSING)]) for n in differ}
    again = [n for n in differ if " as a whole" not in n]
    for _ in range(AGAIN):
        for way in (0, 1):
            got = run_part(suite, part, (None, recorder)[way], again, limit)[0] if again else {}
            for n in again:
                runs[n][way].append(got.get(n, MISSING))
    for n in differ:
        bad = [sum(x in BAD for x in way) for way in runs[n]]
        skipped = [sum(x == SKIP for x in way) for way in runs[n]]
        text = "bare %s; recorded %s" % tuple(",".join(way) for way in runs[n])
        if not bad[0] and (bad[1] > 1 or skipped[1] > 1 and not skipped[0] or (bad[1] and n not in again)):
            c.new.append((n, text))
        elif bad[0] and not bad[1]:
            c.only_bare.append((n, text))
        else:
            c.flakes.append((n, text))
    return c


def show(suite, results, recorder, stream=sys.stdout):
    def say(text):
        print(text, file=stream, flush=True)

    total = {o: (sum(c.count(o, False) for c in results), sum(c.count(o, True) for c in results)) for o in (PASS, FAIL, SKIP, TIMEOUT)}
    say("   all: " + ", ".join("%s %d -> %d" % (o, *total[o]) for o in total) + "; new %d, flakes %d, bare alone %d; %.0f s -> %.0f s" % (
        sum(len(c.new) for c in results), sum(len(c.flakes) for c in results), sum(len(c.only_bare) for c in results),
        sum(c.seconds[0] for c in results), sum(c.seconds[1] for c in results)))
    say("   recorded: %d process folders, %.1f MB; what killed processes left in memory: %s" %
        (recorder.folders, recorder.bytes / 1e6, "gone with a /dev/shm of its own" if own_shm() else "%d removed" % recorder.arenas))
    for pattern, why in suite.skips.items():
        say("   not run: %s: %s" % (pattern, why))


def bench(shim, only, quick, parts=()):
    """All suites, or one; true if nothing is new."""
    adopt_orphans()
    os.makedirs(CACHE, exist_ok=True)
    good = True
    for cls in SUITES:
        if only not in (None, cls.name):
            continue
        suite = cls()
        try:
            suite.prepare()
        except Unavailable as why:
            print("\n== %s: not run: %s" % (cls.name, why), flush=True)
            continue
        print("\n== %s" % suite.version(), flush=True)
        recorder, results = Recorder(shim), []
        for part in (suite.quick if quick else suite.parts()):
            if parts and not any(fnmatch.fnmatch(part, p) for p in parts):
                continue
            c = compare(suite, part, recorder, list(suite.quick.get(part) or ()) or None if quick else None)
            results.append(c)
            print("   %-28s %s; %.0f s -> %.0f s" % (part, ", ".join("%s %d -> %d" % (o, c.count(o, False), c.count(o, True)) for o in
                  (PASS, FAIL, SKIP, TIMEOUT) if c.count(o, False) or c.count(o, True)) or "no case", *c.seconds), flush=True)
            for kind, found in (("new", c.new), ("flake", c.flakes), ("bare alone", c.only_bare)):
                for case, text in found:
                    print("      %s: %s: %s" % (kind, case, text), flush=True)
            good = good and not c.new
        show(suite, results, recorder)
    return good
