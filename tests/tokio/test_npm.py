#!/usr/bin/env python3
"""Rust programs as their makers ship them (npm): what they put out is the same, and each kind of task was polled as often as the
kernel counted calls of the function that polls it, in the same run."""
import collections
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
from harness import Skip, check, equal, need, need_root  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))
MODULES = 40  # of the program that is bundled
CLOCKS_NS = 1000000  # that the kernel's time stamps and the recorder's may be apart
BUNDLE = """const { rspack } = require('@rspack/core');
rspack({ mode: 'production', context: process.argv[2], entry: './main.js', output: { path: process.argv[3] }, optimization: { minimize: true } },
  (e, stats) => { if (e || stats.hasErrors()) { console.error(e || stats.toString()); process.exit(1); } console.log('built'); });
"""


def installed():
    """The packages of the lock file, installed once for all tests."""
    npm, path = need("npm"), os.path.join(harness.PROGS, "npm")
    if not os.path.exists(os.path.join(path, "done")):
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(os.path.join(HERE, "npm"), path)
        r = subprocess.run([npm, "ci", "--no-audit", "--no-fund", "--ignore-scripts"], cwd=path, capture_output=True, text=True, timeout=600)
        check(r.returncode == 0, "npm ci: " + r.stderr[-2000:])
        with open(os.path.join(path, "bundle.js"), "w") as f:
            f.write(BUNDLE)
        open(os.path.join(path, "done"), "w").close()
    return path


def sources(box):
    """A program in modules, to be bundled."""
    path = os.path.join(box.path, "in")
    os.makedirs(path, exist_ok=True)
    for i in range(MODULES):
        with open(os.path.join(path, "m%d.js" % i), "w") as f:
            f.write("export const f%d = (x) => { let s = 0; for (let i = 0; i < x; i++) s += i * %d; return s; };\nexport const unused%d = [%s];\n" %
                    (i, i, i, ", ".join(map(str, range(200)))))
    with open(os.path.join(path, "main.js"), "w") as f:
        f.write("".join("import { f%d } from './m%d.js';\n" % (i, i) for i in range(MODULES)))
        f.write("console.log(%s);\n" % " + ".join("f%d(10)" % i for i in range(MODULES)))
    return path


def files_in(path):
    found = {}
    for folder, _, names in os.walk(path):
        for name in names:
            with open(os.path.join(folder, name), "rb") as f:
                found[os.path.relpath(os.path.join(folder, name), path)] = f.read()
    return found


def rolldown(box, run):
    path, out = installed(), tempfile.mkdtemp(dir=box.path)
    r = run([need("node"), os.path.join(path, "node_modules/rolldown/bin/cli.mjs"), os.path.join(sources(box), "main.js"), "-d", out])
    return r.rc, files_in(out)


def rspack(box, run):
    path, out = installed(), tempfile.mkdtemp(dir=box.path)
    r = run([need("node"), os.path.join(path, "bundle.js"), sources(box), out])
    return r.rc, r.out, files_in(out)


def biome(box, run):
    """Its server, asked by a client that is not recorded."""
    exe = os.path.join(installed(), "node_modules/@biomejs/cli-linux-x64/biome")
    home = tempfile.mkdtemp(dir=box.path)
    env = {"HOME": home, "XDG_CACHE_HOME": home, "TMPDIR": home, "BIOME_LOG_PATH": home}
    answers = []

    def ask(*words, text=None):
        r = subprocess.run([exe, *words], env=dict(os.environ, **env), input=text, capture_output=True, text=True, timeout=harness.LIMIT)
        return r.returncode, r.stdout

    server = run([exe, "__run_server"], env=env, start=True)
    harness.wait_until(lambda: server.poll() is not None or any("sock" in f for f in under(home)), "the server made no socket")
    for i in range(20):
        answers.append(ask("format", "--use-server", "--stdin-file-path=a%d.js" % i, text="const  a%d=[1,2 ,3]\n" % i))
    answers.append(ask("stop"))
    r = box.finish(server)
    return r.rc, answers


def under(path):
    return [name for _, _, names in os.walk(path) for name in names]


CASES = {"rolldown": rolldown, "rspack": rspack, "biome": biome}


def runner(box, **how):
    def run(argv, env=None, start=False):
        if start:
            return box.start(argv, env=env, **how)
        return box.run(argv, env=env, **how)
    return run


@contextlib.contextmanager
def tracefs():
    """The kernel's tracing, mounted for us alone; it shows itself nowhere else."""
    path = tempfile.mkdtemp(prefix="d9-tracefs-")
    r = subprocess.run(["mount", "-t", "tracefs", "none", path], capture_output=True, text=True)
    try:
        if r.returncode or not os.path.exists(path + "/uprobe_events"):
            raise Skip("no uprobes here: %s" % (r.stderr.strip() or "the kernel has none"))
        yield path
    finally:
        subprocess.run(["umount", path], capture_output=True)
        os.rmdir(path)


@contextlib.contextmanager
def probes(path, places):
    """The kernel's note of calls of functions by some threads, when asked: {(file, offset): [moments in ns]}."""
    group, events = "d9_%d" % os.getpid(), path + "/uprobe_events"
    own = path + "/instances/" + group

    def write(file, text):
        try:
            fd = os.open(file, os.O_WRONLY | os.O_APPEND)
            os.write(fd, text.encode())
            os.close(fd)
        except OSError as e:
            raise harness.Failure("%s: %s: %s" % (file, text.strip(), e)) from None
    made = {}
    try:
        for i, (file, offset) in enumerate(places):
            write(events, "p:%s/p%d %s:0x%x\n" % (group, i, file, offset))
            made["p%d" % i] = (file, offset)
        os.mkdir(own)
        write(own + "/trace_clock", "mono")
        write("%s/events/%s/enable" % (own, group), "1")

        def hits(threads):
            found = {place: [] for place in places}
            with open(own + "/trace") as f:
                for line in f:
                    m = re.search(r"-(\d+) .* (\d+)\.(\d{6}): (p\d+): ", line)
                    if m and int(m[1]) in threads:
                        found[made[m[4]]].append(int(m[2]) * 1000000000 + int(m[3]) * 1000)
                    else:
                        check("LOST" not in line, "the kernel lost some: " + line)
            return found
        yield hits
    finally:
        with contextlib.suppress(harness.Failure):
            write("%s/events/%s/enable" % (own, group), "0")
        with contextlib.suppress(OSError):
            os.rmdir(own)
        for name in made:
            write(events, "-:%s/%s\n" % (group, name))


def polls_by_place(box):
    """{(file, offset of the function in it): polls} of every kind of task, those that had not ended included."""
    meta, of_task, polls, counts = box.meta(), {}, set(), collections.Counter()
    maps = [(int(e["start"], 16), int(e["end"], 16), e["offset"], e["path"].split("\0")[1]) for e in meta if e["event"] == "module"]
    for e in meta:
        if e["event"] == "task_spawn":
            code = int(e["code"], 16)
            place = [(path, code - start + offset) for start, end, offset, path in maps if start <= code < end]
            check(place, "no mapping holds the code of a task: %s" % e)
            of_task[(e["module"], e["task"])] = place[-1]
    for e in meta:
        if e["event"] in ("poll", "in_poll"):
            polls.add((e["module"], e["task"], e["t_ns"] if e["event"] == "poll" else e["since_ns"]))
    for module, task, _ in polls:
        counts[of_task[(module, task)]] += 1
    return counts


@harness.parametrise(CASES)
def polled_as_often_as_the_kernel_counts(box, name):
    need_root()
    case = CASES[name]
    alone = case(box, runner(box, shim=False))
    equal(alone[0], 0, "exit without the recorder")
    equal(case(box, runner(box)), alone, "what came out")
    places = polls_by_place(box)
    check(len(places) >= 3 and sum(places.values()) >= 50, "there was little to count: %s" % places)
    shutil.rmtree(box.dir)
    with tracefs() as path, probes(path, places) as hits:
        equal(case(box, runner(box)), alone, "what came out")
        counted = hits({e["tid"] for e in box.meta()})
    seen, end = polls_by_place(box), min(e["t_ns"] for e in box.meta() if e["event"] == "exit")
    late = {p: sum(t > end - CLOCKS_NS for t in counted[p]) for p in places}
    print("# %s: %d kinds of tasks, %d polls; %d while the program ended" % (name, len(seen), sum(seen.values()), sum(late.values())))
    for p in places:
        check(len(counted[p]) - late[p] <= seen[p] <= len(counted[p]), "%s: %d polls seen, the kernel counts %d, %d of them while it ended" %
              (p, seen[p], len(counted[p]), late[p]))
    check(not [e for e in box.events() if e["event"] == "gap"], "events were lost")


harness.main()
