"""A client whose load ends by itself: plain sockets, a fixed number of requests, every answer kept."""
import contextlib
import re
import socket
import time

DATE = re.compile(rb"(?mi)^(date|keep-alive|connection|server):.*\r\n")


def wait_port(port, process=None, seconds=60):
    """Until a service listens there.  `process`, the one that starts it: if that fails, what it said is the error."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return
        if process and process.poll():
            raise RuntimeError("%s: exit %d: %s" % (process.args, process.returncode, process.stderr.read() if process.stderr else ""))
        time.sleep(0.02)  # polling for a server that says nothing when it is ready
    raise TimeoutError("nothing listens on port %d" % port)


def read_response(f):
    head = b""
    while True:
        line = f.readline()
        if not line:
            raise EOFError("the server closed within a response: %r" % head)
        head += line
        if line == b"\r\n":
            break
    m = re.search(rb"(?i)content-length: *(\d+)", head)
    return head, f.read(int(m.group(1)) if m else 0)


def http(port, requests, connections):
    """`requests` GETs over `connections` keep-alive connections, in turn.  The answers, without what differs by the clock."""
    conns, answers = [], []
    for _ in range(connections):
        s = socket.create_connection(("127.0.0.1", port), 30)
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conns.append((s, s.makefile("rb")))
    for i in range(requests):
        s, f = conns[i % connections]
        s.sendall(b"GET /item/%d HTTP/1.1\r\nHost: x\r\n\r\n" % (i % 7))
        head, body = read_response(f)
        answers.append(DATE.sub(b"", head) + body)
    for s, f in conns:
        f.close()
        s.close()
    return b"".join(answers)


def lines(port, commands, until, host="127.0.0.1"):
    """Sends each command, reads until `until(f)` has taken its answer; all answers."""
    with socket.create_connection((host, port), 30) as s, s.makefile("rb") as f:
        s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        out = []
        for c in commands:
            s.sendall(c)
            out.append(until(f))
        return b"".join(out)
