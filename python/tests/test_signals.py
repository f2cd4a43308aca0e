"""Signals: what a handler raises is never lost, whatever Hourglass is doing."""

from __future__ import annotations

import random
import signal
import sys
import time
from typing import Callable

import pytest

import hourglass
from hourglass import clock, errors, reserve, sched, sleep, timers


class Rang(Exception):
    """What the handler of these tests raises."""


def refused(call: Callable[[], object], kind: type[BaseException]) -> Callable[[], None]:
    def tries() -> None:
        try:
            call()
        except kind:
            return
        raise AssertionError(f"not refused with {kind}")

    return tries


def same(call: Callable[[], object], expected: object) -> Callable[[], None]:
    def tries() -> None:
        found = call()
        assert found == expected, found

    return tries


CALLS: dict[str, Callable[[], None]] = {
    "a text of time": same(lambda: sleep.sleep_for("1ns").reached, True),
    "a wrong text": refused(lambda: sleep.sleep_for("soon"), errors.InvalidError),
    "a wrong type": refused(lambda: sleep.sleep_for(1.5), TypeError),  # type: ignore[arg-type]
    "a large number": refused(lambda: sleep.sleep_until(2**70), errors.InvalidError),
    "CPUs": refused(lambda: reserve.Scheduled(cpus=[2**40]), errors.InvalidError),
    "CPUs by text": refused(lambda: reserve.Scheduled(cpus="0-"), errors.InvalidError),
    "a representation": same(lambda: repr(clock.Ticks(1, 2)), "Ticks(count=1, epoch=2)"),
    "a wrong function": refused(lambda: timers.Timer(5), TypeError),  # type: ignore[arg-type]
    "theory": same(
        lambda: sched.response_times({"task": [{"name": "a", "wcet": "1ms", "period": "5ms", "priority": 1}]}),
        {"a": 1_000_000},
    ),
    "an option": refused(lambda: hourglass.run([{"workload": "CPU"}], seed="x"), TypeError),  # type: ignore[arg-type]
}


def over_and_over(call: Callable[[], None]) -> None:
    """A function of its own: some Pythons let what is raised at a loop's end out of the `try` around it."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        call()


@pytest.mark.parametrize("name", CALLS)
def test_what_a_handler_raises_is_never_lost(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python looks for signals also where it makes a text; an error that is dropped there made another one of it."""
    dropped: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: dropped.append(args.exc_value))
    seed = random.randrange(2**32)
    print("seed", seed)
    moments = random.Random(seed)
    call = CALLS[name]

    def ring(_number: int, _frame: object) -> None:
        raise Rang

    before = signal.signal(signal.SIGALRM, ring)
    caught = 0
    try:
        for _ in range(60):
            try:
                signal.setitimer(signal.ITIMER_REAL, moments.uniform(20e-6, 400e-6))
                over_and_over(call)
            except Rang:
                caught += 1
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    assert (caught, dropped) == (60, [])
