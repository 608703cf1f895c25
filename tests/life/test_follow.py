#!/usr/bin/env python3
"""D9_FOLLOW: which children are recorded, and what becomes of LD_PRELOAD."""
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import SHIM, check, equal, main, parametrise, test

PROGRAM = """import os, subprocess, sys, time
def nap(): time.sleep(0.002)
nap()
child = os.fork()
if not child:
    nap()
    if not os.fork(): nap(); os._exit(0)
    os.wait(); os._exit(0)
os.waitpid(child, 0)
said = subprocess.run([sys.executable, "-c", "import os, time; time.sleep(0.002); print(os.environ.get('LD_PRELOAD'))"],
                      stdout=subprocess.PIPE, text=True).stdout.strip()
print("PIDS own=%d forked=%d preload=%s" % (os.getpid(), child, said.replace(" ", ":") or "-"))"""


def follow(box, mode, preload, **how):
    env = {"D9_FOLLOW": mode, "LD_PRELOAD": preload}
    r = box.run([sys.executable, "-c", PROGRAM], env=env, rc=0, **how)
    line = r.lines("PIDS")[0]
    slept = {e["pid"] for e in box.events() if e["event"] == "span" and e["kind"] == "sleep"}
    return int(line["own"]), int(line["forked"]), line["preload"], slept


@parametrise(["all", "fork", "exec", "none"])
def which_are_recorded(box, mode):
    own, forked, preload, slept = follow(box, mode, SHIM)
    check(own in slept, "the program itself is not recorded")
    equal(forked in slept, mode in ("all", "fork"), "the forked child is recorded")
    equal(len(slept), {"all": 4, "fork": 3, "exec": 2, "none": 1}[mode], "processes recorded")
    equal(preload, SHIM if mode in ("all", "exec") else "-", "LD_PRELOAD of a program that it executes")
    equal(box.arenas_left(), [], "left in /dev/shm")
    report = box.d9("report", os.path.realpath(box.folders()[0])).out
    equal("are not recorded: D9_FOLLOW" in report, mode != "all", "the report says what is left out")


@parametrise(["%s:{shim}", "{shim}:%s", "%s {shim} %s", "{shim}:{shim}", ":{shim}:"])
def the_others_stay_in_it(box, pattern):
    other = "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2"
    preload = pattern.replace("{shim}", SHIM)
    filled = preload.replace("%s", other)
    _, _, said, slept = follow(box, "fork", filled)
    left = [e for e in filled.replace(":", " ").split() if e != SHIM]
    equal([e for e in said.replace(":", " ").split() if e != "-"], left, "LD_PRELOAD of a program that it executes")
    equal(len(slept), 3, "processes recorded")


@test
def found_by_its_name_alone(box):
    folder, name = os.path.split(SHIM)
    env = {"D9_FOLLOW": "none", "LD_PRELOAD": name, "LD_LIBRARY_PATH": folder}
    r = box.run([sys.executable, "-c", PROGRAM], env=env, rc=0)
    equal(r.lines("PIDS")[0]["preload"], "-", "LD_PRELOAD of a program that it executes")
    equal(len({e["pid"] for e in box.events() if e["event"] == "span"}), 1, "processes recorded")


main()
