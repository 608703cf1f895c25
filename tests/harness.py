"""What the tests share: private folders, processes with a time limit, recordings as lists of events, TAP.

A test file is a script: functions marked @test take a Box; main() runs them and prints TAP (exit 0, 1, or 77 if
everything was skipped).  A Box ends only the processes it started and removes only the arenas of its own folders.

The build says where things are: D9_SHIM, D9_EXE, D9_READ (tests/tool/read_events), D9_PROGS.  D9_TEST_READER=own reads
every recording with read_events instead of `d9 dump`.

D9_TEST_MUTANT breaks the recorder on purpose, to show that a test can fail: absent (nothing is preloaded), empty (nothing
was recorded), clock (all times are 0), mute (no findings).
"""
import contextlib
import functools
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MUTANT = os.environ.get("D9_TEST_MUTANT", "")
LIMIT = 120  # seconds that any process may take


def path_of(variable, *default):
    path = os.environ.get(variable) or os.path.join(ROOT, "build", *default)
    return os.path.abspath(path)


SHIM = path_of("D9_SHIM", "interpose", "libd9shim.so")
D9 = path_of("D9_EXE", "cli", "d9")
READ = path_of("D9_READ", "tests", "tool", "read_events")
PROGS = path_of("D9_PROGS", "tests", "prog")


class Skip(Exception):
    """Raised with the reason why a test cannot be made here."""


class Failure(AssertionError):
    pass


def check(condition, message):
    if not condition:
        raise Failure(message)


def equal(got, want, what):
    check(got == want, "%s: %r, not %r" % (what, got, want))


def equal_least(got, least, what):
    check(got >= least, "%s: %d, not %d or more" % (what, got, least))


def wait_until(condition, message, seconds=20, every=0.02):
    """For what a program does in its own time: asks every so many seconds, and returns the first answer that is true."""
    end = time.monotonic() + seconds
    while not (answer := condition()):
        check(time.monotonic() < end, message)
        time.sleep(every)
    return answer


def children_of(pid):
    with open("/proc/%d/task/%d/children" % (pid, pid)) as f:
        return [int(p) for p in f.read().split()]


def idle_seconds():
    """Of all CPUs, since the machine began; what waits for a disk is idle too."""
    with open("/proc/stat") as f:
        fields = f.readline().split()
    return (int(fields[4]) + int(fields[5])) / os.sysconf("SC_CLK_TCK")


def need_root():
    if os.geteuid():
        raise Skip("needs to be root")


def need(program):
    """The path of an installed program."""
    path = shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin")
    if not path:
        raise Skip("%s is not installed" % program)
    return path


@functools.lru_cache
def cargo(folder, program, profile="release", flags=""):
    """Builds a Rust program of the tests, all of them in one folder for each set of the compiler's flags; its path."""
    tool = need("cargo")
    target = os.path.join(PROGS, "tokio-target" + "".join(c if c.isalnum() else "-" for c in flags))
    env = dict(os.environ, RUSTFLAGS=flags) if flags else None
    r = subprocess.run([tool, "build", "--profile", profile, "--locked", "--quiet", "--target-dir", target], cwd=folder, capture_output=True,
                       text=True, timeout=900, env=env)
    cargo_worked(r)
    return os.path.join(target, profile, program)


def cargo_worked(r):
    """Raises unless cargo did what it should: a machine without a registry can make no such test."""
    if r.returncode and "failed to download from" in r.stderr:
        raise Skip("Cargo's registry cannot be reached: " + r.stderr.strip().splitlines()[-1].strip())
    check(r.returncode == 0, "cargo: " + r.stderr[-2000:])


@functools.lru_cache
def cargo_installed(name, crate):
    """A program of somebody else's, CRATE@VERSION with the lock file in it, as its users install it, and stripped; its folder."""
    tool, path = need("cargo"), os.path.join(PROGS, name)
    stamp = os.path.join(path, "made-from")
    with contextlib.suppress(OSError), open(stamp, encoding="utf-8") as f:
        if f.read().strip() == crate:
            return path
    r = subprocess.run([tool, "install", crate, "--locked", "--quiet", "--force", "--root", path], capture_output=True, text=True, timeout=900,
                       env=dict(os.environ, CARGO_PROFILE_RELEASE_STRIP="symbols"))
    cargo_worked(r)
    with open(stamp, "w", encoding="utf-8") as f:
        f.write(crate + "\n")
    return path


def seed():
    """A random source whose seed is printed and can be given again."""
    value = int(os.environ.get("D9_TEST_SEED") or time.time_ns() & 0xFFFFFFFF)
    print("# D9_TEST_SEED=%d" % value, flush=True)
    return random.Random(value)


@functools.lru_cache
def d9_commands():
    out = subprocess.run([D9, "--help"], capture_output=True, text=True, timeout=LIMIT).stdout
    return [line.split()[0] for line in out.splitlines() if line.startswith("  ") and line.split()]


def need_command(name):
    if name not in d9_commands():
        raise Skip("d9 %s is not in this build" % name)


def said(findings):
    return ["%s %s (%s): %s %s" % (f["severity"], f["id"], f["certainty"], f["title"], f["measured"]) for f in findings]


class Result:
    def __init__(self, rc, out, err, pid):
        self.rc, self.out, self.err, self.pid = rc, out, err, pid

    def lines(self, kind):
        """The lines `KIND a=b c=d`, as dictionaries."""
        found = []
        for line in self.out.splitlines():
            words = line.split()
            if words and words[0] == kind:
                found.append(dict(w.split("=", 1) for w in words[1:] if "=" in w))
        return found


def last_line_of_a_daemon(said):
    """What the program `daemon` says of its calls in that file, once it has ended."""
    def complete():
        if os.path.exists(said):
            with open(said, encoding="utf-8") as f:
                text = f.read()
            return text if text.endswith("\n") else None
        return None
    words = wait_until(complete, "the daemon never said anything", LIMIT).split()
    line = dict(w.split("=", 1) for w in words[1:])
    wait_until(lambda: not os.path.exists("/proc/" + line["pid"]), "the daemon does not end", LIMIT)
    return line


def zero_times(value):
    if isinstance(value, dict):
        return {k: 0 if k.endswith("_ns") and isinstance(v, int) else zero_times(v) for k, v in value.items()}
    if isinstance(value, list):
        return [zero_times(v) for v in value]
    return value


def mutate(events):
    if MUTANT == "empty":
        return []
    return zero_times(events) if MUTANT == "clock" else events


def timed(events):
    """No event but a definition is without a time."""
    check(all(e["t_ns"] or e["event"] in META for e in events), "an event without a time")
    return events


class Box:
    """A folder of one test, what runs in it and what was recorded there."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="d9-test-")
        self.dir = os.path.join(self.path, "traces")
        self.procs = []
        self.arenas = set()

    # ---- processes ----

    def env(self, extra=None, shim=True, direct=True):
        env = {k: v for k, v in os.environ.items() if not k.startswith("D9_") and k != "LD_PRELOAD"}
        env["D9_DIR"] = self.dir
        if shim and direct:
            env["LD_PRELOAD"] = SHIM
        env.update(extra or {})
        if MUTANT == "absent" and env.get("LD_PRELOAD"):
            others = [e for e in re.split("[: ]", env["LD_PRELOAD"]) if os.path.basename(e) != os.path.basename(SHIM)]
            env["LD_PRELOAD"] = ":".join(others) or None
        return {k: v for k, v in env.items() if v is not None}

    def start(self, argv, env=None, shim=True, **options):
        """A process; ended with the box at the latest."""
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("stdin", subprocess.DEVNULL)
        p = subprocess.Popen([str(a) for a in argv], env=self.env(env, shim), cwd=self.path, text=True,
                             start_new_session=True, **options)
        self.procs.append(p)
        return p

    def finish(self, p, timeout=LIMIT):
        return self.finish_with_input(p, None, timeout)

    def run(self, argv, env=None, shim=True, timeout=LIMIT, rc=None, **options):
        r = self.finish(self.start(argv, env, shim, **options), timeout)
        if rc is not None:
            check(r.rc == rc, "%s: exit %d, not %d\n%s%s" % (argv, r.rc, rc, r.out[-2000:], r.err[-2000:]))
        return r

    def finish_with_input(self, p, text, timeout=LIMIT):
        try:
            out, err = p.communicate(text, timeout=timeout)
        except subprocess.TimeoutExpired:
            self.end(p)
            raise Failure("%s did not end within %d s" % (p.args, timeout)) from None
        self.note_arenas()
        return Result(p.returncode, out or "", err or "", p.pid)

    def end(self, p):
        if p.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(p.pid, signal.SIGKILL)
        p.wait(LIMIT)

    def d9(self, *argv, timeout=LIMIT, rc=0, env=None):
        return self.run([D9] + list(argv), env=env, shim=False, timeout=timeout, rc=rc)

    def document(self, *argv, **options):
        """What `d9 COMMAND --json` says of the box's folder."""
        return json.loads(self.d9(*argv, "--json", self.dir, **options).out)

    def d9_run(self, argv, options=(), env=None, timeout=LIMIT, rc=None):
        """`d9 run` records from outside."""
        return self.run(self.d9_run_words("--quiet", *options) + [str(a) for a in argv], env=env, shim=False, timeout=timeout, rc=rc)

    def d9_run_words(self, *options):
        """What stands before a command that `d9 run` records; d9-kernel has tests of its own."""
        return [] if MUTANT == "absent" else [D9, "run", "--kernel", "off", "--dir", self.dir, *options, "--"]

    # ---- recordings ----

    def folders(self):
        if not os.path.isdir(self.dir):
            return []
        paths = [os.path.join(self.dir, n) for n in os.listdir(self.dir)]
        return sorted((p for p in paths if os.path.isdir(p)), key=os.path.getctime)

    def begun(self):
        """The first folder, once its session memory is there."""
        return next((f for f in self.folders()[:1] if os.path.lexists(os.path.join(f, "arena"))), None)

    def note_arenas(self):
        """Remembers the arenas that folders of this box name: they are ours to remove."""
        for folder in self.folders():
            with contextlib.suppress(OSError):
                target = os.readlink(os.path.join(folder, "arena"))
                if target.startswith("/dev/shm/d9-"):
                    self.arenas.add(target)

    def arenas_left(self):
        self.note_arenas()
        return sorted(a for a in self.arenas if os.path.exists(a))

    def meta(self, folder=None):
        """Everything, definitions included, by the tests' own reader."""
        folders = [folder] if folder else self.folders()
        if not folders:
            return []
        r = subprocess.run([READ] + folders, capture_output=True, text=True, timeout=LIMIT)
        check(r.returncode == 0, "read_events: %s" % r.stderr)
        return timed(mutate([json.loads(line) for line in r.stdout.splitlines()]))

    def sums(self, folder, timeout=LIMIT):
        """How many events of what kind each thread has there; for recordings that are too long to be listed."""
        r = subprocess.run([READ, "--sums", folder], capture_output=True, text=True, timeout=timeout)
        check(r.returncode == 0, "read_events: %s" % r.stderr)
        return mutate([json.loads(line) for line in r.stdout.splitlines()])

    def events(self):
        """What `d9 dump --json` says of every session in the folder."""
        if os.environ.get("D9_TEST_READER") == "own" or "dump" not in d9_commands():
            return [e for e in self.meta() if e["event"] not in META]
        if not self.folders():
            return []
        r = subprocess.run([D9, "dump", "--json", "--session", "all", self.dir], capture_output=True, text=True, timeout=LIMIT,
                           env=self.env(shim=False))
        check(r.returncode == 0, "d9 dump: exit %d: %s" % (r.returncode, r.stderr))
        return timed(mutate([json.loads(line) for line in r.stdout.splitlines()]))

    def findings(self):
        r = self.d9("report", "--json", self.dir)
        report = mutate([json.loads(r.out)])
        return [] if MUTANT == "mute" or not report else report[0]["findings"]

    def close(self):
        for p in self.procs:
            self.end(p)
            for f in (p.stdout, p.stderr, p.stdin):
                if f:
                    f.close()
        for arena in self.arenas_left():
            os.unlink(arena)
        shutil.rmtree(self.path, ignore_errors=True)


META = {"proc", "thread", "module", "hook", "site", "blob", "clock", "info", "custom_type", "kernel_thread"}


def free_port():
    """A loopback port that nothing listens on, and that no connection is given before the caller's service binds it: below the
    range that the kernel takes a client's ports from."""
    with open("/proc/sys/net/ipv4/ip_local_port_range", encoding="ascii") as f:
        below = int(f.read().split()[0])
    while True:
        port = random.randrange(below // 2, below)
        with contextlib.suppress(OSError), socket.socket() as s:
            s.bind(("127.0.0.1", port))
            return port


# ---- comparing a recording with what the program printed ----------------------------------------------

SLACK_NS = 200_000  # two clocks, and the reading of both around a call
NO_NUMBER = {"-1": None, "null": None}


def number(text):
    return NO_NUMBER[text] if text in NO_NUMBER else int(text, 0)


def same(event, field, text):
    """Is the event's field what the line says?  Text as text, numbers as numbers, -1 and null as null."""
    value = event.get(field)
    if isinstance(value, str) and value.startswith("0x"):
        return int(value, 16) == int(text, 16)
    if isinstance(value, str):
        return value.rstrip("\0") == text
    return value == (int(text) if field in ("result", "value") else number(text))


def matches(span, line):
    for field in ("tid", "hook", "result", "object", "fd", "owner", "waker"):
        if field in line and not same(span, field, line[field]):
            if field == "owner" and line[field] == "0" and not span.get("owner"):
                continue
            return False
    begin, dur = span["t_ns"], span["dur_ns"]
    if "t0_ns" in line and (begin < int(line["t0_ns"]) - SLACK_NS or begin + dur > int(line["t1_ns"]) + SLACK_NS):
        return False
    if "max_ns" in line and dur > int(line["max_ns"]) + SLACK_NS:
        return False
    return dur >= int(line.get("min_ns", 0)) * 0.999


def take(spans, line):
    for i, span in enumerate(spans):
        if matches(span, line):
            return spans.pop(i)
    return None


def near(spans, line):
    return [s for s in spans if str(s["tid"]) == line["tid"] and s["hook"] == line["hook"]]


# What programs do between their deeds: print, clean up, wait for a thread or a child to be gone.  Of these families a
# program is judged by the hooks that it names alone.
ASIDE_KINDS = {"stdio", "path", "join", "wait"}
ASIDE_HOOKS = {"close"}


def aside(event, named):
    hook = event.get("hook")
    return hook not in named and (hook in ASIDE_HOOKS or kind_of(hook) in ASIDE_KINDS)


@functools.lru_cache
def kind_of(hook):
    with open(os.path.join(ROOT, "interpose", "hooks.def"), encoding="utf-8") as f:
        m = re.search(r"^D9_HOOK\w*\((\w+), .*?[ *]%s, \(" % hook, f.read(), flags=re.M)
    return m and m.group(1)


def compare(result, events, all_io=False):
    """Raises unless the recording holds exactly what the program printed.  all_io: made with D9_IO_MIN_US=0."""
    named = {line["hook"] for kind in ("EXPECT", "FAST") for line in result.lines(kind)}
    events = [e for e in events if not aside(e, named)]
    spans = [e for e in events if e["event"] == "span"]
    wrong = []
    for line in result.lines("EXPECT"):
        if not take(spans, line):
            wrong.append("missing %s\n    there is: %s" % (line, near(spans, line)[:4]))
    fast = {}
    for line in result.lines("FAST"):
        fast.setdefault((int(line["tid"]), line["hook"]), []).append(line)
    totals = {}
    for e in events:
        if e["event"] == "calls":
            totals[(e["tid"], e["hook"])] = e  # a running sum: the last one counts
    for key, lines in fast.items():
        errors = sum(int(line["result"]) < 0 for line in lines)
        slow = [span for span in (take(spans, line) for line in lines) if span]
        counted = totals.pop(key, {"count": 0, "errors": 0})
        if all_io and len(slow) != len(lines):
            wrong.append("%d of %d calls of %s are there: %s" % (len(slow), len(lines), key, near(spans, lines[0])[:4]))
        if counted["count"] + len(slow) != len(lines):
            wrong.append("%s: %d counted + %d recorded, not %d" % (key, counted["count"], len(slow), len(lines)))
        if counted["errors"] + sum(s["result"] < 0 for s in slow) != errors:
            wrong.append("%s: %d errors counted, not %d" % (key, counted["errors"], errors))
    wrong += ["unexpected %s" % s for s in spans]
    wrong += ["unexpected total %s" % t for t in totals.values()]
    wrong += ["unexpected %s" % e for e in events if e["event"] == "gap" or (e["event"] == "pending" and not ended(e, events))]
    others = [e for e in events if e["event"] not in ("span", "calls")]
    for line in result.lines("EVENT"):
        if not take_event(others, line):
            wrong.append("missing %s" % line)
    check(not wrong, "\n".join(wrong[:12]))
    check(result.lines("EXPECT") or result.lines("FAST") or result.lines("EVENT"), "the program printed nothing to look for")


def ended(pending, events):
    """Is there the span of a call that was pending for a while?"""
    return any(e["event"] == "span" and e["tid"] == pending["tid"] and e["hook"] == pending["hook"] and
               abs(e["t_ns"] - pending["since_ns"]) < SLACK_NS and e["t_ns"] + e["dur_ns"] + SLACK_NS > pending["t_ns"]
               for e in events)


def take_event(events, line):
    fields = {("tid" if k == "id_tid" else k): v for k, v in line.items() if k not in ("event", "min_ns")}
    for i, e in enumerate(events):
        if e["event"] != line["event"] or not all(same(e, k, v) for k, v in fields.items()):
            continue
        if "min_ns" in line and e["dur_ns"] < int(line["min_ns"]) * 0.999:
            continue
        return events.pop(i)
    return None


# ---- TAP ------------------------------------------------------------------------------------------------

TESTS = []


def test(function):
    """Registers a test; parametrise() makes several of one function."""
    TESTS.append((function.__name__, function, ()))
    return function


def parametrise(values):
    def register(function):
        for v in values:
            TESTS.append(("%s: %s" % (function.__name__, v), function, (v,)))
        return function
    return register


def run_one(function, args):
    """None, or the reason it was skipped; raises if it failed."""
    box = Box()
    try:
        function(box, *args)
        return None
    except Skip as reason:
        return str(reason) or "no reason given"
    finally:
        box.close()


def main():
    wanted = sys.argv[1:]
    chosen = [t for t in TESTS if not wanted or any(w in t[0] for w in wanted)]
    if not chosen:
        print("Bail out! no test is called %s" % " or ".join(wanted), flush=True)
        sys.exit(99)
    print("1..%d" % len(chosen), flush=True)
    failed = skipped = 0
    for n, (name, function, args) in enumerate(chosen, 1):
        name = name.replace("_", " ")
        try:
            reason = run_one(function, args)
            skipped += reason is not None
            print("ok %d - %s%s" % (n, name, " # SKIP " + reason if reason else ""), flush=True)
        except Exception as error:  # every failure is a line of TAP
            failed += 1
            print("not ok %d - %s" % (n, name))
            text = str(error) if isinstance(error, Failure) else traceback.format_exc()
            print("\n".join("# " + line for line in text.splitlines()), flush=True)
    sys.exit(1 if failed else 77 if skipped and skipped == len(chosen) else 0)
