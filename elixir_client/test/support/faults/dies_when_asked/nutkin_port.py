"""Exits whenever a request comes, and never answers one."""

import os

import wire

wire.hello()
wire.receive()
os._exit(7)
