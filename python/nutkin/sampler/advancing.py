"""Advancing all chains of a run until they are finished, and waiting for it."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from nutkin.errors import Cancelled
from nutkin.sampler.chain import Chain, Chunk
from nutkin.sampler.pool import Pool
from nutkin.sampler.run import Run, cores


def all_chunks(run: Run, is_stopped: Callable[[], bool] = lambda: False) -> list[list[Chunk]]:
    """Advances the chains until they are finished. -> the chunks of each. Raises what a chain raises.

    `is_stopped` is asked before each call; once it says so, Cancelled is raised."""
    chunks: list[list[Chunk]] = [[] for _ in run.chains]
    ended: queue.SimpleQueue[BaseException | None] = queue.SimpleQueue()  # an entry for each chain that is finished
    stopped = threading.Event()
    pool = Pool(cores(), "chains")

    def go_on(chains: tuple[Chain, ...]) -> None:
        for chain in chains:
            if chain.finished:
                ended.put(None)
        if not chains[0].finished:
            pool.submit(proceed, chains)

    def proceed(chains: tuple[Chain, ...]) -> None:
        if stopped.is_set():
            return
        try:
            if is_stopped():
                raise Cancelled("the run was stopped")
            for chunk in run.advance(chains):
                chunks[chunk.chain].append(chunk)
            for chain in chains:
                if chain.waits:
                    for met in run.meet(chain):
                        go_on(met)
                else:
                    go_on((chain,))
        except BaseException as error:
            ended.put(error)

    for chains in run.first_calls():
        pool.submit(proceed, chains)
    try:
        for _ in run.chains:
            if (error := ended.get()) is not None:
                raise error
    finally:
        stopped.set()
    return chunks
