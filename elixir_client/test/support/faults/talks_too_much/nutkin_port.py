"""Logs far more lines than anybody reads when it is asked, and exits."""

import os

import wire

wire.hello()
wire.receive()
for i in range(10_000):
    wire.send("log", 0, {"level": "info", "source": "stdout", "text": f"line {i}"})
os._exit(3)
