"""A run of real chains in this process, under limits so small that chunks must be split."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nutkin.compile
import nutkin.model
import nutkin.sampler
from nutkin.errors import LimitExceeded, ProtocolError
from nutkin.sampler import Pool, Progress
from nutkin_port import codec
from nutkin_port.limits import Limits
from nutkin_port.runs import Run
from port.models import gaussian
from port.port_client import DEADLINE

SIZE = 10
DRAW_BYTES = 8 * SIZE + 5 * 8 + 2 * 4 + 1


class Recorder:
    """What a run sends, and how it ended."""

    def __init__(self) -> None:
        self.draws: list[dict[str, Any]] = []
        self.result: dict[str, Any] | Exception | None = None
        self._changed = threading.Condition()

    def send(self, kind: str, body: dict[str, Any]) -> None:
        with self._changed:
            if kind == "draws":
                self.draws.append(body)
            self._changed.notify_all()

    def finish(self, result: dict[str, Any] | Exception) -> None:
        with self._changed:
            assert self.result is None
            self.result = result
            self._changed.notify_all()

    def wait(self, condition: Callable[[], bool]) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, DEADLINE)


@pytest.fixture(scope="module")
def sampler() -> nutkin.sampler.Sampler:
    target = nutkin.compile.bind(nutkin.model.read(gaussian(SIZE)["model"]), {}, {})
    return nutkin.sampler.compile_sampler(target)


@pytest.fixture
def pool() -> Pool:
    return Pool(2, "chains")


def await_turn(pool: Pool) -> None:
    """Until what was submitted to a pool of one thread before has left it."""
    here = threading.Event()
    pool.submit(here.set)
    assert here.wait(DEADLINE)


def start(
    sampler: nutkin.sampler.Sampler, pool: Pool, *, credit: int, limits: Limits, **options: Any
) -> tuple[Run, Recorder]:
    recorder = Recorder()
    chains = nutkin.sampler.Run(sampler, nutkin.sampler.Options(**{"warmup": 20, "seed": 3, **options}))
    run = Run(
        chains,
        credit=credit,
        compile_seconds=1.5,
        limits=limits,
        pool=pool,
        send=recorder.send,
        finish=recorder.finish,
    )
    run.start()
    return run, recorder


def joined(draws: list[dict[str, Any]], chain: int) -> np.ndarray:
    return np.concatenate([body["variables"]["x"] for body in draws if body["chain"] == chain])


def test_pieces_stay_below_the_limit_and_together_are_the_chunk(sampler: nutkin.sampler.Sampler, pool: Pool) -> None:
    whole = start(sampler, pool, credit=10**6, limits=Limits(), draws=100, chains=2)[1]
    split = start(sampler, pool, credit=10**6, limits=Limits(chunk=2000), draws=100, chains=2)[1]
    for recorder in (whole, split):
        recorder.wait(lambda recorder=recorder: recorder.result is not None)
        assert recorder.result["status"] == "complete"
        assert recorder.result["seconds"]["compile"] == 1.5
    for chain in range(2):
        np.testing.assert_array_equal(joined(whole.draws, chain), joined(split.draws, chain))
    assert max(len(codec.pack("draws", 1, body, limit=10**6)) for body in split.draws) <= 2000
    assert len(split.draws) > len(whole.draws)


def test_every_piece_takes_credit(sampler: nutkin.sampler.Sampler) -> None:
    pool = Pool(1, "chains")
    run, recorder = start(sampler, pool, credit=1, limits=Limits(chunk=2000), draws=100, chains=1)
    for sent in range(1, 5):
        recorder.wait(lambda sent=sent: len(recorder.draws) >= sent)
        await_turn(pool)  # its only thread has left the chain
        assert len(recorder.draws) == sent
        run.ack(1)
    run.ack(10**6)
    recorder.wait(lambda: recorder.result is not None)
    assert [body["start"] for body in recorder.draws] == np.cumsum(
        [0, *(b["count"] for b in recorder.draws[:-1])]
    ).tolist()


def test_a_draw_larger_than_a_chunk_travels_alone(sampler: nutkin.sampler.Sampler, pool: Pool) -> None:
    _, recorder = start(sampler, pool, credit=10**6, limits=Limits(chunk=DRAW_BYTES), draws=5, chains=1)
    recorder.wait(lambda: recorder.result is not None)
    assert [body["count"] for body in recorder.draws] == [1] * 5


def test_a_draw_larger_than_a_frame_ends_the_run(sampler: nutkin.sampler.Sampler, pool: Pool) -> None:
    _, recorder = start(sampler, pool, credit=10**6, limits=Limits(frame=DRAW_BYTES), draws=5, chains=3)
    recorder.wait(lambda: recorder.result is not None)
    assert isinstance(recorder.result, LimitExceeded)
    assert "variables" in recorder.result.hint
    assert recorder.draws == []


def test_cancelled_while_a_part_of_a_chunk_waits(sampler: nutkin.sampler.Sampler, pool: Pool) -> None:
    run, recorder = start(sampler, pool, credit=2, limits=Limits(chunk=2000), draws=100, chains=1)
    recorder.wait(lambda: len(recorder.draws) == 2)
    run.stop()
    recorder.wait(lambda: recorder.result is not None)
    assert recorder.result["status"] == "cancelled"
    assert recorder.result["chains"][0]["draws"] == sum(body["count"] for body in recorder.draws)
    assert len(recorder.draws) == 2


def test_an_error_from_outside_is_the_result(sampler: nutkin.sampler.Sampler, pool: Pool) -> None:
    run, recorder = start(sampler, pool, credit=1, limits=Limits(), draws=10**6, chains=3)
    recorder.wait(lambda: len(recorder.draws) == 1)
    error = ProtocolError("stop")
    run.fail(error)
    recorder.wait(lambda: recorder.result is not None)
    assert recorder.result is error


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("adaptation", ["pooled", "windowed"])
def test_draws_do_not_depend_on_threads_or_credit(
    sampler: nutkin.sampler.Sampler, pool: Pool, threads: int, adaptation: str
) -> None:
    options = {"draws": 50, "warmup": 190, "keep_warmup": True, "adaptation": adaptation, "chains": 5}
    _, expected = start(sampler, pool, credit=10**6, limits=Limits(), **options)
    expected.wait(lambda: expected.result is not None)
    other_pool = Pool(threads, "chains")
    run, recorder = start(sampler, other_pool, credit=1, limits=Limits(chunk=2000), **options)
    sent = 0
    while recorder.result is None:
        recorder.wait(lambda sent=sent: len(recorder.draws) > sent or recorder.result is not None)
        sent = len(recorder.draws)
        run.ack(1)
    assert recorder.result["status"] == "complete"
    for chain in range(5):
        np.testing.assert_array_equal(joined(recorder.draws, chain), joined(expected.draws, chain))
    assert [chain["warmup"] for chain in recorder.result["chains"]] == [190] * 5


def one_waits_one_is_parked(sampler: nutkin.sampler.Sampler, pool: Pool) -> tuple[Run, Recorder]:
    """A run of two chains: the one that had the only credit has ended its window, the other may not send its part."""
    run, recorder = start(sampler, pool, credit=1, limits=Limits(), draws=10, warmup=190, chains=2, keep_warmup=True)
    recorder.wait(lambda: len(recorder.draws) == 1)
    await_turn(pool)  # its only thread has left the chains
    assert sorted([len(run._waiting), len(run._parked)]) == [1, 1]
    return run, recorder


def test_cancelled_while_chains_wait_for_each_other(sampler: nutkin.sampler.Sampler) -> None:
    pool = Pool(1, "chains")
    run, recorder = one_waits_one_is_parked(sampler, pool)
    run.stop()
    recorder.wait(lambda: recorder.result is not None)
    assert recorder.result["status"] == "cancelled"
    assert sorted(chain["warmup"] for chain in recorder.result["chains"]) == [10, 10]
    assert recorder.result["seconds"]["sample"] == 0.0


def test_a_chain_that_waits_is_changed_only_where_it_meets_others(
    sampler: nutkin.sampler.Sampler, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is settled by two threads at once may be kept half in one window and half in the next."""
    pool = Pool(1, "chains")
    run, recorder = one_waits_one_is_parked(sampler, pool)
    (waiting,) = run._waiting
    settled: list[int] = []
    monkeypatch.setattr("nutkin.sampler.Chain.settle", lambda chain: settled.append(chain.index))
    run.stop()
    recorder.wait(lambda: recorder.result is not None)
    assert recorder.result["status"] == "cancelled"
    assert waiting not in settled


def test_an_error_ends_chains_that_wait(sampler: nutkin.sampler.Sampler) -> None:
    pool = Pool(1, "chains")
    run, recorder = one_waits_one_is_parked(sampler, pool)
    error = ProtocolError("stop")
    run.fail(error)
    recorder.wait(lambda: recorder.result is not None)
    assert recorder.result is error


def test_an_error_where_chains_meet_is_the_result(
    sampler: nutkin.sampler.Sampler, pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    error = ArithmeticError("the metric")

    def fail(*_: Any) -> None:
        raise error

    monkeypatch.setattr("nutkin.sampler.pooled.r_hat", fail)
    _, recorder = start(sampler, pool, credit=10**6, limits=Limits(), draws=10, chains=5)
    recorder.wait(lambda: recorder.result is not None)
    assert recorder.result is error


def test_progress_becomes_rarer(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A consumer that reads none of it for hours has to keep few; each chain has its turn."""
    clock = SimpleNamespace(now=0.0, monotonic=lambda: clock.now)
    monkeypatch.setattr("nutkin_port.runs.time", clock)
    sent: list[tuple[float, int]] = []
    chains = [
        SimpleNamespace(index=index, sent=(0, 0), finished=False, progress=lambda index=index: progress(index))
        for index in range(4)
    ]
    run = Run(
        SimpleNamespace(chains=chains),
        credit=0,
        compile_seconds=0.0,
        limits=Limits(),
        pool=pool,
        send=lambda _, body: sent.append((clock.now, body["chain"])),
        finish=lambda result: None,
    )
    hours = 3
    for step in range(hours * 3600 * 5):
        clock.now = step / 5
        run._report(run._outboxes[step % 4])
    assert len(sent) <= 50 + 100 + 100 * math.log(hours * 3600 / 10)
    assert len(sent) > 100 * math.log(hours * 3600 / 20)
    assert {chain for _, chain in sent[-8:]} == set(range(4))
    pauses = np.diff([at for at, _ in sent])
    np.testing.assert_array_less(0.01 * np.array([at for at, _ in sent[1:]]), pauses + 0.01)


def progress(chain: int) -> Progress:
    numbers = dict.fromkeys(Progress.__dataclass_fields__, 0)
    return Progress(**{**numbers, "chain": chain, "phase": "sample"})
