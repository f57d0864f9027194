"""Needs a blob that the request does not have; answers pings."""

import wire

wire.hello()
while True:
    kind, id, _ = wire.receive()
    if kind == "compile":
        wire.send("need", id, {"blobs": [bytes(range(32))]})
    elif kind == "ping":
        pong = {
            "resident": 1,
            "requests": 0,
            "blobs": {"count": 0, "bytes": 0},
            "compilations": 0,
            "seconds": 0.5,
            "devices": [],
        }
        wire.send("pong", id, pong)
