"""Waits of each kind in Python of any version; prints how many of each a recording must hold at the least.

usage: waits.py LIBRARY, one that is opened later
"""
import asyncio
import ctypes
import os
import select
import socket
import subprocess
import sys
import threading
import time

N = 20
ctypes.CDLL(sys.argv[1])


def with_a_partner(wait, wake):
    for _ in range(N):
        t = threading.Timer(0.002, wake)
        t.start()
        wait()
        t.join()


def locks():
    lock = threading.Lock()
    lock.acquire()
    with_a_partner(lock.acquire, lock.release)


def descriptors():
    a, b = socket.socketpair()
    poll, epoll = select.poll(), select.epoll()
    poll.register(a, select.POLLIN)
    epoll.register(a.fileno(), select.EPOLLIN)
    for wait in (lambda: select.select([a], [], []), poll.poll, epoll.poll):
        with_a_partner(lambda: (wait(), a.recv(1)), lambda: b.send(b"x"))
    with_a_partner(lambda: a.recv(1), lambda: b.send(b"x"))


def children():
    for _ in range(3):
        assert subprocess.call(["sleep", "0.02"]) == 0
        pid = os.fork()
        if not pid:
            time.sleep(0.02)
            os._exit(5)
        assert os.WEXITSTATUS(os.waitpid(pid, 0)[1]) == 5


async def loop():
    for _ in range(N):
        await asyncio.sleep(0.002)

locks()
descriptors()
children()
asyncio.get_event_loop().run_until_complete(loop())
print("sem_wait=%d select=%d poll=%d epoll_wait=%d recv=%d waitpid=3" % (N, N, N, 2 * N, N))
