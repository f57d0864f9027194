"""Says hello without limits."""

import wire

wire.hello(limits={})
wire.receive()
