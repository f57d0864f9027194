"""Answers with bytes that are not msgpack."""

import os

import wire

wire.hello()
wire.receive()
os.write(4, (3).to_bytes(4, "big") + b"\xc1\xc1\xc1")
while True:
    wire.receive()
