#!/usr/bin/env python3
"""How a program in Python tells d9shim of its tasks: the functions of shim/d9.h through ctypes, nothing to install.

    d9 run -- python3 example.py && d9 dump --json

Without a recorder the calls do nothing.  Prints what a recording of it must hold.
"""
import collections
import contextlib
import ctypes as c
import struct

PENDING, READY, CANCELLED = 0, 1, 2
INFO = 3
RUNTIME, WORKER = 1, 0


class Table(c.Structure):
    """struct d9_abi."""
    _fields_ = [
        ("version", c.c_uint32), ("size", c.c_uint32),
        ("worker_park", c.CFUNCTYPE(None, c.c_uint32, c.c_uint32)),
        ("worker_unpark", c.CFUNCTYPE(None)),
        ("task_spawn", c.CFUNCTYPE(None, c.c_uint64, c.c_uint64, c.c_uint32, c.c_char_p)),
        ("poll_begin", c.CFUNCTYPE(None, c.c_uint64, c.c_uint32, c.c_uint32)),
        ("poll_end", c.CFUNCTYPE(None, c.c_uint32)),
        ("wake", c.CFUNCTYPE(None, c.c_uint64, c.c_uint64, c.c_uint32)),
        ("task_end", c.CFUNCTYPE(None, c.c_uint64, c.c_uint32)),
        ("span_begin", c.CFUNCTYPE(None, c.c_char_p, c.c_uint64)),
        ("span_end", c.CFUNCTYPE(None)),
        ("log_line", c.CFUNCTYPE(None, c.c_uint32, c.c_char_p)),
        ("counter", c.CFUNCTYPE(None, c.c_char_p, c.c_int64)),
        ("event_type", c.CFUNCTYPE(c.c_uint32, c.c_char_p, c.c_char_p)),
        ("event", c.CFUNCTYPE(None, c.c_uint32, c.c_char_p, c.c_size_t)),
    ]


class Silent:
    """Nobody records."""

    def __getattr__(self, _name):
        return lambda *_: 0


def find():
    """The recorder's functions; what does nothing if there is no recorder or another version of it."""
    try:
        table = Table.in_dll(c.CDLL(None), "d9_abi")
    except ValueError:
        return Silent()
    return table if table.version == 1 and table.size >= c.sizeof(Table) else Silent()


d9 = find()
count = collections.Counter()


@contextlib.contextmanager
def span(name, number):
    d9.span_begin(name, number)
    try:
        yield
    finally:
        d9.span_end()
        count["app_span"] += 1


class Loop:
    """A runtime of one worker: tasks are generators, a poll runs one to its next yield."""

    def __init__(self):
        self.ready = collections.deque()
        self.last = self.now = 0  # the last task made, the task being polled

    def spawn(self, name, generator):
        self.last += 1
        d9.task_spawn(self.last, self.now, RUNTIME, name)
        count["task_spawn"] += 1
        self.wake(self.last, generator)

    def wake(self, task, generator):
        d9.wake(task, self.now, RUNTIME)
        count["wake"] += 1
        self.ready.append((task, generator))

    def poll(self, task, generator):
        self.now = task
        d9.poll_begin(task, RUNTIME, WORKER)
        outcome = PENDING
        try:
            next(generator)
        except StopIteration:
            outcome = READY
        d9.poll_end(outcome)
        count["poll"] += 1
        if outcome == READY:
            d9.task_end(task, READY)
            count["task_end"] += 1
            count["ready"] += 1
        else:
            self.wake(task, generator)
        self.now = 0

    def run(self):
        while self.ready:
            d9.counter(b"queue", len(self.ready))
            count["counter"] += 1
            self.poll(*self.ready.popleft())


def say_order(kind, number):
    what = b"box-%d" % (number % 100)
    d9.event(kind, struct.pack("<Qqd", number, -number, number / 4) + what + b"\0", 24 + len(what) + 1)
    count["custom"] += 1
    print("CUSTOM name=order id=%d delta=%d ratio=%g what=%s" % (number, -number, number / 4, what.decode()))


def order(loop, kind, number):
    for _ in range(4):
        with span(b"parse", number):
            sum(range(2000))
        yield
    if number % 5 == 0:
        loop.spawn(b"receipt", iter([None] * (number % 3)))
    say_order(kind, number)
    d9.log_line(INFO, b"order parsed")
    count["log"] += 1


def main():
    kind = d9.event_type(b"order", b"id:u64,delta:i64,ratio:f64,what:str")
    loop = Loop()
    for number in range(1, 21):
        loop.spawn(b"order", order(loop, kind, number))
    loop.run()
    print("TRUTH recorder=%d park=0 %s" % (not isinstance(d9, Silent), " ".join("%s=%d" % i for i in sorted(count.items()))))


if __name__ == "__main__":
    main()
