"""An ASGI application under uvicorn on uvloop; stands still on /slow, ends on /quit.  usage: server_uvicorn.py PORT"""
import sys
import time

import uvicorn


async def app(scope, receive, send):
    path = scope["path"].encode()
    if path == b"/slow":
        time.sleep(0.3)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"%d" % len(path))]})
    await send({"type": "http.response.body", "body": path})
    if path == b"/quit":
        server.should_exit = True


server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=int(sys.argv[1]), loop="uvloop", http="h11", lifespan="off", access_log=False,
                                       log_level="warning", server_header=False, date_header=False))
server.run()
