"""Begins an answer and exits before its end."""

import os

import wire

wire.hello()
wire.receive()
wire.send("log", 0, {"level": "error", "source": "stderr", "text": "out of luck"})
os.write(4, (1000).to_bytes(4, "big") + b"only this")
os._exit(3)
