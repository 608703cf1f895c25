#!/usr/bin/env python3
"""`d9 dump --json` and the tests' own reader say the same of a recording: every event once, lost ones too."""
import collections
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from harness import META, PROGS, check, main, need_command, parametrise

SAME = ("pid", "tid", "hook", "result", "object", "fd", "task", "code", "how", "name", "text", "events", "count", "errors", "mask")


def key(event):
    # The name of a declared kind is what d9 dump looks up in its definition; the event itself has the number.
    fields = [f for f in SAME if event.get(f) is not None and (event["event"], f) != ("custom", "name")]
    return (event["event"],) + tuple((f, event[f].rstrip("\0") if isinstance(event[f], str) else event[f]) for f in fields)


@parametrise(["event_wait", "mutex", "accept_connect", "fork_exec", "abi recorded", "storm 200 hook"])
def dump_holds_every_event_once(box, command):
    need_command("dump")
    name, *args = command.split()
    env = {"D9_MEM_MB": "1", "D9_IO_MIN_US": "0", "D9_STACKS": "off"} if name == "storm" else {}
    box.run([os.path.join(PROGS, name)] + args, env=env, rc=0)
    dumped = collections.Counter(key(e) for e in box.events())
    own = collections.Counter(key(e) for folder in box.folders() for e in box.meta(folder) if e["event"] not in META)
    for counted in (own, dumped):
        for k in counted:
            if k[0] in ("calls", "cpu"):  # running sums may be told again: the last one counts
                counted[k] = 1
    missing, foreign = own - dumped, dumped - own
    check(own, "nothing was recorded")
    check(not missing and not foreign, "missing in d9 dump: %s\nnot there: %s" % (list(missing.items())[:4], list(foreign.items())[:4]))


if __name__ == "__main__":
    main()
