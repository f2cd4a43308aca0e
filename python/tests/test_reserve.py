"""Reservations, policies and progress of the program itself."""

from __future__ import annotations

import os
import threading
import time

import pytest

import hourglass
from hourglass import errors, reserve


def in_a_thread(work: object) -> None:
    """Policies are a thread's: a test that fails leaves none to the others."""
    raised: list[BaseException] = []

    def run() -> None:
        try:
            work()  # type: ignore[operator]
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if raised:
        raise raised[0]


def test_a_thread_is_reserved_for_and_let_go() -> None:
    def work() -> None:
        before = os.sched_getscheduler(0)
        held = reserve.Reservation("5ms", "50ms")
        try:
            held.check()
            held.begin()
        except errors.Error as refused:
            assert refused.remedy, str(refused)
            assert os.sched_getscheduler(0) == before
            pytest.skip(f"this machine reserves nothing: {refused} [lacks: chrt --fifo 1 true]")
        # SCHED_DEADLINE, of which `os` has no name, besides the flag that children are not in it.
        assert os.sched_getscheduler(0) & 0xFF == 6
        threading.Thread(target=lambda: None).start()
        with pytest.raises(errors.BusyError):
            held.begin()
        # A period is counted if a look came soon behind its end, which another thread or the host may hold up.
        end = time.monotonic() + 10
        while (supply := held.supply()).periods == 0 and time.monotonic() < end:
            pass
        assert supply.periods >= 1 and supply.overruns >= 0
        held.end()
        held.end()
        assert os.sched_getscheduler(0) == before
        with pytest.raises(errors.ClosedError):
            held.supply()

    in_a_thread(work)


def test_a_reservation_that_cannot_be_meant() -> None:
    for budget, period in (("2ms", "1ms"), (0, "1ms"), (-1, 5), ("1ms", 0)):
        with pytest.raises(errors.InvalidError):
            reserve.Reservation(budget, period)
    with pytest.raises(errors.InvalidError):
        reserve.Reservation("1ms", "10ms", deadline="20ms").check()
    with pytest.raises(TypeError):
        reserve.Reservation(1.5, "1ms")  # type: ignore[arg-type]
    with pytest.raises(errors.Error):
        reserve.Reservation("1ms", "10ms", thread=2**22 + 5).begin()


def test_a_thread_is_scheduled_otherwise_for_a_while() -> None:
    def work() -> None:
        before = (os.sched_getaffinity(0), os.sched_getscheduler(0))
        one = min(before[0])
        scheduled = reserve.Scheduled(cpus=one)
        with scheduled:
            assert os.sched_getaffinity(0) == {one}
            with pytest.raises(errors.BusyError), scheduled:
                pass
        try:
            with reserve.Scheduled("RTLOW", cpus=[one]):
                assert os.sched_getscheduler(0) == os.SCHED_FIFO
        except errors.PermissionDeniedError as refused:
            print(f"not privileged: {refused}")
        assert (os.sched_getaffinity(0), os.sched_getscheduler(0)) == before

    in_a_thread(work)
    with pytest.raises(errors.InvalidError, match="unknown priority"):
        reserve.Scheduled("SUPER")
    with pytest.raises(errors.InvalidError, match="take Reservation"):
        reserve.Scheduled("DEADLINE")


def test_progress_is_told() -> None:
    with reserve.Progress() as progress:
        assert progress.job == 0 or progress.job > 0
        before = progress.job
        progress.begin()
        for done in range(1, 11):
            progress.report(done, 10)
        assert progress.job == before + 1
        progress.report(1, 10)
        assert progress.job == before + 2
    with pytest.raises(errors.ClosedError, match="closed"):
        progress.report(1, 2)
    progress.close()
    reserve.progress(1, 3)
    reserve.progress(3, 3)
    with pytest.raises(TypeError):
        reserve.progress(0.5, 1)  # type: ignore[arg-type]
    with pytest.raises((OverflowError, errors.InvalidError)):
        reserve.progress(-1, 1)
    assert hourglass.reserve is reserve
