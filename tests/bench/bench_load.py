"""A load for memcached: a few connections, one request in flight on each, for some seconds."""
import select
import socket
import time


def memcached(port, seconds, connections=8):
    conns = [socket.create_connection(("127.0.0.1", port)) for _ in range(connections)]
    conns[0].sendall(b"set k 0 0 5\r\nhello\r\n")
    conns[0].recv(100)
    for c in conns:
        c.sendall(b"get k\r\n")
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for c in select.select(conns, [], [], 1)[0]:
            if not c.recv(4096).endswith(b"END\r\n"):
                continue
            c.sendall(b"get k\r\n")
    for c in conns:
        c.close()
