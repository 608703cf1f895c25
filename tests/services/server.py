"""An asyncio HTTP server; stands still on /slow, ends on /quit.  usage: server.py PORT"""
import asyncio
import sys
import time


async def serve(reader, writer, done):
    while True:
        head = await reader.readuntil(b"\r\n\r\n")
        path = head.split()[1]
        if path == b"/slow":
            time.sleep(0.3)
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(path), path))
        await writer.drain()
        if path == b"/quit":
            writer.close()
            done.set()
            return


async def main():
    done = asyncio.Event()

    async def client(reader, writer):
        try:
            await serve(reader, writer, done)
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    server = await asyncio.start_server(client, "127.0.0.1", int(sys.argv[1]))
    async with server:
        await done.wait()

asyncio.run(main())
