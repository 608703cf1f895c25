"""The counters that the threads of prog/kill.c bump after each call, in memory that outlives the program."""
import mmap
import os
import struct

from harness import LIMIT, check, wait_until

THREADS, FIRST, BYTES = 4, 1000000, 64


class Shared:
    """The counters that the threads bump after each call; see prog/kill.c."""

    def __init__(self, box, name="counters"):
        self.path = os.path.join(box.path, name)
        with open(self.path, "wb") as f:
            f.write(bytes(4096))
        self.file = open(self.path, "r+b")
        self.map = mmap.mmap(self.file.fileno(), 4096)

    def wait_started(self, p):
        wait_until(lambda: struct.unpack_from("<Q", self.map, 0)[0] == THREADS or p.poll() is not None, "its threads do not start", LIMIT, every=0)
        check(p.poll() is None, "it ended by itself")

    def threads(self):
        """{tid: calls finished}"""
        pairs = [struct.unpack_from("<qq", self.map, 8 + BYTES * i) for i in range(THREADS)]
        return dict(pairs)

    def close(self):
        self.map.close()
        self.file.close()
