"""The port program: carries requests of a client (Elixir, or any other) to the engine and its draws back.

It knows frames, msgpack, Nx bytes and runs; it knows no statistics. `bridge/PROTOCOL.md` is the contract.
"""
