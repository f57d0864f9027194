"""Ignores the shutdown message, the end of its input and all polite signals."""

import signal
import time

import wire

for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
    signal.signal(number, signal.SIG_IGN)
wire.hello()
time.sleep(60)
