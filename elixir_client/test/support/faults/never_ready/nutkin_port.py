"""Reads, but says nothing except one line of log."""

import wire

wire.send("log", 0, {"level": "warning", "source": "stderr", "text": "still loading"})
while True:
    wire.receive()
