"""Closes the descriptor that it should read from, and lives on."""

import os
import time

import wire

os.close(3)
wire.hello()
time.sleep(60)
