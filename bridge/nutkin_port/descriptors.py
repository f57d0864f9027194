"""The descriptors of the process: the wire is taken away from fds 0 to 4 before anything can print on it.

Afterwards fd 0 reads nothing, and what is written to fds 1 and 2, by C++ code too, arrives in two pipes.
"""

from __future__ import annotations

import contextlib
import ctypes
import dataclasses
import fcntl
import os
import signal
import sys

PR_SET_PDEATHSIG = 1
PIPE_BYTES = 2**20


@dataclasses.dataclass(frozen=True)
class Descriptors:
    """Private descriptors, closed in child processes."""

    frames_in: int
    frames_out: int
    stdout: int  # reading ends of what replaced fds 1 and 2
    stderr: int
    terminal: int  # what fd 2 was: for a crash, when nobody is left to send a log message


def claim(*, stdio: bool) -> Descriptors:
    """Takes the wire from fds 3 and 4, or from 0 and 1. OSError where the caller opened no such descriptors."""
    wire = (0, 1) if stdio else (3, 4)
    frames_in, frames_out = (_private_copy(descriptor) for descriptor in wire)
    for descriptor in (frames_in, frames_out):
        _enlarge(descriptor)
    terminal = _private_copy(2)
    if not stdio:
        os.close(3)
        os.close(4)
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    return Descriptors(frames_in, frames_out, _piped(1), _piped(2), terminal)


def release_output() -> None:
    """Closes the writing ends on fds 1 and 2, so that the readers of their pipes come to an end."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1)
    os.dup2(null, 2)
    os.close(null)


def die_with_parent() -> None:
    """Asks the kernel for SIGKILL when the parent dies; ends at once if it died in the meantime."""
    if not sys.platform.startswith("linux"):
        return
    parent = os.getppid()
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)


def _private_copy(descriptor: int) -> int:
    # above the numbers that a caller may have opened for this program
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 10)


def _enlarge(pipe: int) -> None:
    """A frame of draws then fits into the pipe: its thread need not wait until the client has read it."""
    if hasattr(fcntl, "F_SETPIPE_SZ"):  # Linux
        with contextlib.suppress(OSError):  # more than this user may have, or no pipe
            fcntl.fcntl(pipe, fcntl.F_SETPIPE_SZ, PIPE_BYTES)


def _piped(descriptor: int) -> int:
    reading, writing = os.pipe()
    os.dup2(writing, descriptor)
    os.close(writing)
    return reading
