"""Needs a package that is not installed."""

import os

if __name__ == "__main__":  # spares the terminal of whoever runs the tests
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)

import msgpack_of_nobody  # noqa: F401
