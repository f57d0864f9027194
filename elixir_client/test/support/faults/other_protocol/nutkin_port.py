"""Speaks a later version of the protocol."""

import wire

wire.hello(protocol=2)
wire.receive()
