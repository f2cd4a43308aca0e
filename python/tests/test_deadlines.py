"""Deadlines that are told of when they pass; after Savage and Tokuda (1993), section 4."""

from __future__ import annotations

import os
import sys
import threading
import time
from typing import Any

import pytest

import hourglass
from hourglass import clock, deadlines, errors

PATIENCE = 20.0
"""Longer than a slow machine takes, s."""


def until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.001)


def test_the_handler_is_called_while_the_work_still_runs() -> None:
    told: list[tuple[deadlines.Fault, int, int]] = []
    called = threading.Event()

    def late(fault: deadlines.Fault) -> None:
        told.append((fault, clock.now_ordered_ns(), threading.get_native_id()))
        called.set()

    with deadlines.Watch(late) as watch:
        begun = clock.now_ns()
        with watch.job("3ms") as job:
            assert called.wait(PATIENCE)
            with pytest.raises(errors.ClosedError, match="not over"):
                job.done  # noqa: B018
    fault, at_ns, thread = told[0]
    assert fault.deadline_ns is not None and fault.deadline_ns >= begun + 3_000_000
    assert fault.deadline_ns <= fault.passed_ns <= fault.handled_ns <= at_ns <= job.done.finished_ns
    assert (fault.count, fault.untold, fault.over_budget) == (1, 0, False)
    assert fault.thread == threading.get_native_id() != thread
    assert job.missed and job.done.deadline_ns == fault.deadline_ns
    assert (watch.faults, watch.untold, watch.raised) == (1, 0, 0)


def test_work_that_is_over_in_time_makes_no_fault() -> None:
    told: list[deadlines.Fault] = []
    with deadlines.Watch(told.append) as watch:
        for _ in range(20):
            with watch.job("20s") as job:
                pass
            assert not job.missed
        for tick in hourglass.periodic("1ms", deadline="20s", count=3):
            with watch.job(at_ns=tick.deadline_ns):
                pass
        watch.arm("20s")
        assert watch.disarm() and not watch.disarm()
        assert watch.end() is None
    assert (told, watch.faults) == ([], 0)


def test_a_deadline_that_has_passed_is_a_fault_at_once() -> None:
    with deadlines.Watch() as watch:
        with watch.job(at_ns=0) as job:
            assert watch.faults == 1
        watch.arm(0)
        assert job.missed and (watch.faults, watch.untold) == (2, 2)


def test_the_handler_may_give_more_time() -> None:
    told: list[deadlines.Fault] = []

    def late(fault: deadlines.Fault) -> str | None:
        told.append(fault)
        return "1ms" if len(told) < 3 else None

    with deadlines.Watch(late) as watch, watch.job("1ms"):
        until(lambda: len(told) == 3)
    due = [fault.deadline_ns for fault in told]
    assert [fault.count for fault in told] == [1, 2, 3]
    assert all(b is not None and b >= a.handled_ns + 1_000_000 for a, b in zip(told, due[1:]))


def test_the_handler_may_end_the_work_where_that_asks() -> None:
    steps = 0
    with deadlines.Watch(lambda _fault: "end") as watch:
        with pytest.raises(errors.EndedError, match="ended this work") as ended, watch.job("2ms"):
            give_up = time.monotonic() + PATIENCE
            while time.monotonic() < give_up:
                watch.check()
                steps += 1
        assert steps > 0 and isinstance(ended.value, RuntimeError) and ended.value.kind == "ended"
        for again in (watch.check, watch.end, watch.disarm, lambda: watch.begin("1s")):
            with pytest.raises(errors.EndedError):
                again()
    with deadlines.Watch() as watch, watch.job("20s"):
        watch.check()


@pytest.mark.parametrize("answer", [ZeroDivisionError("in a handler"), 1.5, "soon", -1, 0, []])
def test_what_a_handler_raises_is_told_and_ends_nothing(
    answer: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[BaseException | None] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append(args.exc_value))

    def late(_fault: deadlines.Fault) -> Any:
        if isinstance(answer, Exception):
            raise answer
        return answer

    with deadlines.Watch(late) as watch:
        for round_ in (1, 2):
            with watch.job("1ms"):
                until(lambda: watch.raised == round_)  # noqa: B023
            watch.check()
    assert len(told) == 2 and all(isinstance(error, (ZeroDivisionError, TypeError, ValueError)) for error in told)


def test_a_budget_of_cpu_time_is_told_of() -> None:
    told: list[deadlines.Fault] = []
    with deadlines.Watch(told.append) as watch:
        before = time.thread_time_ns()
        watch.arm_budget("2ms")
        end = time.monotonic() + PATIENCE
        while not told and time.monotonic() < end:
            pass
        assert time.thread_time_ns() - before >= 2_000_000
        watch.disarm_budget()
    assert told[0].over_budget and told[0].deadline_ns is None


def test_a_thread_has_one_watch_and_closes_it_itself() -> None:
    with deadlines.Watch() as watch:
        with pytest.raises(errors.BusyError, match="watched already"):
            deadlines.Watch().start()
        with pytest.raises(errors.BusyError, match="begun before"):
            watch.start()
        refused: list[BaseException] = []

        def elsewhere() -> None:
            for use in (watch.check, watch.close, lambda: watch.begin("1s")):
                try:
                    use()
                except errors.WrongThreadError as error:
                    refused.append(error)
            with deadlines.Watch() as own, own.job("20s"):
                own.check()

        other = threading.Thread(target=elsewhere)
        other.start()
        other.join()
        assert len(refused) == 3
    watch.close()
    with pytest.raises(errors.ClosedError, match="over"):
        watch.arm("1s")
    with pytest.raises(errors.ClosedError, match="not begun"):
        deadlines.Watch().check()


def test_a_watch_that_is_dropped_with_a_handler_that_runs_does_not_hang() -> None:
    running = threading.Event()

    def late(_fault: deadlines.Fault) -> None:
        running.set()
        time.sleep(0.02)

    watch = deadlines.Watch(late)
    watch.start()
    watch.arm(0)
    assert running.wait(PATIENCE)
    del watch
    with deadlines.Watch(late) as watch:
        watch.arm(0)


def test_what_cannot_be_meant() -> None:
    with pytest.raises(TypeError, match="calls a function, not int"):
        deadlines.Watch(5)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidError, match="real-time signal"):
        deadlines.Watch(signal=2).start()
    with deadlines.Watch() as watch:
        for wrong in ({}, {"length": "1ms", "at_ns": 5}, {"length": -1}, {"length": 2**70}, {"at_ns": -1}, {"at_ns": 2**63}):
            for use in (watch.begin, watch.arm):
                with pytest.raises(errors.InvalidError):
                    use(**wrong)  # type: ignore[arg-type]
        for kind in (1.5, float("nan"), None, []):
            with pytest.raises((TypeError, errors.InvalidError)):
                watch.begin(kind)  # type: ignore[arg-type]
        for budget in (0, -1, "0ms"):
            with pytest.raises(errors.InvalidError):
                watch.arm_budget(budget)
        assert watch.faults == 0


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_watches_anew() -> None:
    with deadlines.Watch() as watch:
        child = os.fork()
        if child == 0:
            try:
                try:
                    watch.arm("1ms")
                    os._exit(3)
                except errors.ForkedError:
                    pass
                try:
                    watch.close()
                    os._exit(4)
                except errors.ForkedError:
                    pass
                del watch
                os._exit(0)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        assert watch.disarm() is False
