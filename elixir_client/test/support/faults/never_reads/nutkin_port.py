"""Says hello and never reads what it is sent."""

import time

import wire

wire.hello()
time.sleep(60)
