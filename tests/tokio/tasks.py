"""What a Tokio program counted of itself, and what the report says of it."""
from harness import equal


def truth_of(r):
    lines = r.lines("TRUTH")
    equal(len(lines), 1, "lines of TRUTH in %s%s" % (r.out[-2000:], r.err[-2000:]))
    return {k: int(v) for k, v in lines[0].items()}


def totals(report):
    """Polls and tasks of the runtimes, blocking pools apart, and the events that are missing."""
    tasks = [r for p in report["processes"] for r in p["runtimes"] if r["module"] and r["runtime"] & 0xFFFFFF]
    return sum(r["polls"] for r in tasks), sum(r["tasks"] for r in tasks), report["losses"]["dropped_events"]
