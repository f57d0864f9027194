import threading
import time

import pytest

from nutkin.sampler import Pool

DEADLINE = 10.0


def finish(pool):
    """Until no thread of the pool is left."""
    deadline = time.monotonic() + DEADLINE
    while any(thread.name == pool._name for thread in threading.enumerate()):
        assert time.monotonic() < deadline
        time.sleep(0.001)


def test_tasks_run_in_their_order():
    pool, found, start = Pool(1, "order"), [], threading.Event()
    pool.submit(start.wait, DEADLINE)
    for i in range(100):
        pool.submit(found.append, i)
    start.set()
    finish(pool)
    assert found == list(range(100))


def test_as_many_run_at_once_as_there_are_threads():
    pool, meeting = Pool(3, "meeting"), threading.Barrier(3)
    most, now, lock = 0, 0, threading.Lock()

    def task():
        nonlocal most, now
        with lock:
            now += 1
            most = max(most, now)
        meeting.wait(DEADLINE)
        with lock:
            now -= 1

    for _ in range(12):
        pool.submit(task)
    finish(pool)
    assert (most, meeting.broken) == (3, False)


def test_a_task_is_followed_by_the_one_that_it_submits_in_its_own_thread():
    pool, found = Pool(4, "chain"), []

    def task(left):
        found.append(threading.get_ident())
        if left:
            pool.submit(task, left - 1)

    pool.submit(task, 20)
    finish(pool)
    assert len(found) == 21
    assert len(set(found)) == 1


def test_what_a_task_submits_besides_goes_to_other_threads():
    pool, meeting = Pool(4, "fan"), threading.Barrier(3)

    def task():
        for _ in range(3):
            pool.submit(meeting.wait, DEADLINE)

    pool.submit(task)
    finish(pool)
    assert not meeting.broken


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_a_task_that_fails_takes_no_other_with_it():
    pool, found, start = Pool(1, "failure"), [], threading.Event()
    pool.submit(start.wait, DEADLINE)
    pool.submit(int, "no number")
    pool.submit(found.append, 1)
    start.set()
    finish(pool)
    pool.submit(found.append, 2)
    finish(pool)
    assert found == [1, 2]


def test_without_another_thread_those_that_run_do_the_work(monkeypatch):
    pool, found, begun, start = Pool(4, "scarce"), [], threading.Event(), threading.Event()

    def first():
        begun.set()
        start.wait(DEADLINE)

    pool.submit(first)
    assert begun.wait(DEADLINE)

    def refuse(_thread):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        pool.submit(found.append, 1)
        pool.submit(found.append, 2)
        start.set()
        finish(pool)
        with pytest.raises(RuntimeError, match="new thread"):
            pool.submit(found.append, 3)
    pool.submit(found.append, 4)
    finish(pool)
    assert found == [1, 2, 4]
