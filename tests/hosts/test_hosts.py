"""Other projects' own tests under the recorder: a fixed part of what `scripts/bench hosts` runs in full (suites.py has both).

Each part is run bare and recorded; a case that passes bare and fails recorded, in most of four runs each way, fails the test.
"""
import os
import subprocess
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
from harness import MUTANT, SHIM, Skip, check, equal, main, need, parametrise, test  # noqa: E402
import suites  # noqa: E402

LIMIT = 90  # seconds for one run of a part


def quick_parts():
    return ["%s %s" % (s.name, part) for s in suites.SUITES for part in s.quick]


@parametrise(quick_parts())
def nothing_new_fails(box, which):
    name, part = which.split()
    suite = next(s for s in suites.SUITES if s.name == name)()
    try:
        suite.prepare()
    except suites.Unavailable as why:
        raise Skip(str(why)) from None
    recorder = suites.Recorder(SHIM)
    c = suites.compare(suite, part, recorder, list(suite.quick[part] or ()), LIMIT)
    for kind, found in (("flake", c.flakes), ("bare alone", c.only_bare)):
        for case, text in found:
            print("# %s: %s: %s" % (kind, case, text))
    print("# %s: %d cases pass bare, %d recorded; %.0f s, %.0f s" %
          (which, c.count(suites.PASS, False), c.count(suites.PASS, True), *c.seconds), flush=True)
    check(not c.new, "\n".join("%s: %s" % n for n in c.new))
    check(c.count(suites.PASS, False), "no case passes, bare")
    check(recorder.bytes or MUTANT == "absent", "nothing was recorded")


@test
def a_library_that_breaks_a_case_is_told(box):
    need("gcc")
    suite = suites.Python()
    try:
        suite.prepare()
    except suites.Unavailable as why:
        raise Skip(str(why)) from None
    bad = os.path.join(box.path, "bad.so")
    subprocess.run(["gcc", "-shared", "-fPIC", "-o", bad, "-x", "c", "-"], input="int select(void) { return 0; }\n", text=True, check=True)
    case = "test.test_select.SelectTestCase.test_errno"
    c = suites.compare(suite, "select", suites.Recorder(bad), [case], LIMIT)
    equal([n for n, _ in c.new], [case], "new")


if __name__ == "__main__":
    suites.adopt_orphans()
    main()
