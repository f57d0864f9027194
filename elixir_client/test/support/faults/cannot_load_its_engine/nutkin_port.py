"""Says hello, and then that its engine cannot be loaded."""

import os

import wire

wire.hello()
wire.receive()
wire.send("log", 0, {"level": "error", "source": "nutkin", "text": "Traceback (most recent call last):"})
message = "the engine cannot start: ModuleNotFoundError: No module named 'jax'"
wire.send("error", 0, {"code": "internal", "message": message})
os._exit(70)
