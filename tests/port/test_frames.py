"""Frames over real pipes: whole, in parts, too long, cut off, and with nobody at the other end."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Iterator

import pytest

from nutkin_port.frames import FrameReader, FrameTooLong, FrameWriter, Inbox, drain

LIMIT = 1 << 20
Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    ends = os.pipe()
    yield ends
    for end in ends:
        with contextlib.suppress(OSError):  # closed by the test
            os.close(end)


def framed(payload: bytes) -> bytes:
    return len(payload).to_bytes(4, "big") + payload


def write_and_close(descriptor: int, data: bytes) -> threading.Thread:
    def work() -> None:
        for start in range(0, len(data), 50_001):
            os.write(descriptor, data[start : start + 50_001])
        os.close(descriptor)

    thread = threading.Thread(target=work)
    thread.start()
    return thread


def test_reads_frames_of_all_sizes_in_order(pipe: Pipe) -> None:
    payloads = [b"", b"a", bytes(range(256)) * 4096, b"last"]
    thread = write_and_close(pipe[1], b"".join(map(framed, payloads)))
    reader = FrameReader(pipe[0], LIMIT)
    assert [reader.read() for _ in payloads] == payloads
    assert reader.read() is None
    thread.join()


@pytest.mark.parametrize("cut", [1, 3, 4, 9])
def test_a_frame_that_is_cut_off_is_the_end(pipe: Pipe, cut: int) -> None:
    os.write(pipe[1], framed(b"0123456789")[:cut])
    os.close(pipe[1])
    assert FrameReader(pipe[0], LIMIT).read() is None


@pytest.mark.parametrize("length", [LIMIT + 1, 2**31, 2**32 - 1])
def test_a_length_above_the_limit_is_not_allocated(pipe: Pipe, length: int) -> None:
    os.write(pipe[1], length.to_bytes(4, "big"))
    assert FrameReader(pipe[0], LIMIT).read() == FrameTooLong(length, LIMIT)


def test_the_limit_itself_is_allowed(pipe: Pipe) -> None:
    thread = write_and_close(pipe[1], framed(bytes(LIMIT)))
    assert FrameReader(pipe[0], LIMIT).read() == bytes(LIMIT)
    thread.join()


def test_writer_writes_frames_larger_than_the_pipe(pipe: Pipe) -> None:
    payloads = [bytes([number]) * 300_000 for number in range(4)]
    writer = FrameWriter(pipe[1], at_end=lambda: None)
    threads = [threading.Thread(target=writer.write, args=(payload,)) for payload in payloads]
    for thread in threads:
        thread.start()
    reader = FrameReader(pipe[0], LIMIT)
    assert sorted(bytes(reader.read()) for _ in payloads) == payloads
    for thread in threads:
        thread.join()


def test_writer_ends_when_nobody_reads(pipe: Pipe) -> None:
    ended = threading.Event()
    os.close(pipe[0])
    FrameWriter(pipe[1], at_end=ended.set).write(b"nobody")
    assert ended.is_set()


def test_drain_goes_on_to_the_end_after_a_frame_that_is_too_long(pipe: Pipe) -> None:
    thread = write_and_close(pipe[1], framed(b"first") + (2**31).to_bytes(4, "big") + bytes(200_000))
    inbox, ended = Inbox(LIMIT), threading.Event()
    drain(FrameReader(pipe[0], LIMIT), inbox, ended.set)
    thread.join()
    assert ended.is_set()
    assert [inbox.get(), inbox.get()] == [b"first", FrameTooLong(2**31, LIMIT)]


def test_inbox_holds_no_more_than_its_bound_but_lets_one_large_frame_in() -> None:
    inbox = Inbox(10)
    inbox.put(bytearray(100))
    second = threading.Thread(target=inbox.put, args=(bytearray(1),))
    second.start()
    inbox.interrupt("signal")
    assert len(inbox.get()) == 100
    assert inbox.get() in ("signal", bytearray(1))
    second.join(10)
    assert not second.is_alive()
