"""Answers with a header that announces 2 GB, which makes the runtime wait for ever."""

import os

import wire

wire.hello()
wire.receive()
os.write(4, (1 << 31).to_bytes(4, "big"))
while True:
    wire.receive()
