"""tests/services/server.py for Python of before 3.7.  usage: server.py PORT"""
import asyncio
import sys


async def client(reader, writer):
    while True:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = await reader.readline()
            if not line:
                writer.close()
                return
            head += line
        path = head.split()[1]
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: " + str(len(path)).encode() + b"\r\n\r\n" + path)
        await writer.drain()
        if path == b"/quit":
            writer.close()
            asyncio.get_event_loop().stop()
            return

loop = asyncio.get_event_loop()
loop.run_until_complete(asyncio.start_server(client, "127.0.0.1", int(sys.argv[1])))
loop.run_forever()
