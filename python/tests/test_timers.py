"""Timers with call-backs: a Python call-back that raises."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
import weakref

import pytest

import hourglass
from hourglass import clock, errors
from hourglass.timers import Expiration, Timer

PATIENCE = 20.0
"""Longer than a slow machine takes, s; nothing waits for it where all is well."""


def until(condition: object) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():  # type: ignore[operator]
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.001)


def test_a_timer_calls_and_is_never_early() -> None:
    told: list[tuple[Expiration, int]] = []
    done = threading.Event()

    def call(expiration: Expiration) -> None:
        told.append((expiration, clock.now_ordered_ns()))
        done.set()

    with Timer(call) as timer:
        begun = clock.now_ns()
        timer.after("3ms")
        assert done.wait(PATIENCE)
        expiration, called = told[0]
        assert expiration.expiry_ns >= begun + 3_000_000 and called >= expiration.expiry_ns
        assert expiration.now_ns >= expiration.expiry_ns and not expiration.clock_set
        assert expiration.lateness_ns == expiration.now_ns - expiration.expiry_ns
        until(lambda: not timer.status().busy)
        status = timer.status()
        assert (status.armed, status.fired, status.raised, status.closed) == (False, 1, 0, False)
        done.clear()
        timer.at(0)
        assert done.wait(PATIENCE)


def test_a_periodic_timer_goes_on_until_it_is_cancelled() -> None:
    calls: list[int] = []
    timer = Timer(lambda expiration: calls.append(expiration.expiry_ns + 0 * expiration.overruns))
    timer.after("1ms", every="2ms", slack="100us")
    until(lambda: len(calls) >= 5)
    assert timer.cancel(next_only=True)
    assert timer.cancel() and not timer.cancel()
    until(lambda: not timer.status().busy)
    seen = len(calls)
    time.sleep(0.02)
    assert len(calls) == seen
    assert all((b - a) % 2_000_000 == 0 and b > a for a, b in zip(calls, calls[1:]))
    timer.close()


def test_what_a_call_back_raises_is_told_and_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[tuple[type[BaseException], object]] = []
    monkeypatch.setattr(sys, "unraisablehook", lambda args: told.append((args.exc_type, args.object)))

    def fails(_expiration: Expiration) -> None:
        raise ZeroDivisionError("in a call-back")

    with Timer(fails) as timer:
        timer.after(0, every="1ms")
        until(lambda: timer.status().raised >= 3)
    assert set(told) == {(ZeroDivisionError, fails)}


def test_a_call_back_may_arm_and_close_its_own_timer() -> None:
    over = threading.Event()
    left = 3

    def call(_expiration: Expiration) -> None:
        nonlocal left
        left -= 1
        if left:
            timer.after("1ms")
        else:
            timer.close()
            over.set()

    timer = Timer(call)
    timer.after("1ms")
    assert over.wait(PATIENCE)
    with pytest.raises(errors.ClosedError):
        timer.after("1ms")


def test_closing_waits_for_the_function() -> None:
    running = threading.Event()
    ended: list[int] = []

    def call(_expiration: Expiration) -> None:
        running.set()
        time.sleep(0.05)
        ended.append(1)

    timer = Timer(call)
    timer.after(0)
    assert running.wait(PATIENCE)
    timer.close()
    assert ended == [1]
    timer.close()
    for use in (timer.cancel, timer.status, lambda: timer.at(0)):
        with pytest.raises(errors.ClosedError, match="closed"):
            use()


def test_a_timer_that_nobody_has_is_closed() -> None:
    calls: list[int] = []
    timer = Timer(lambda _expiration: calls.append(1))
    timer.after("5ms", every="1ms")
    del timer
    gc.collect()
    seen = len(calls)
    time.sleep(0.03)
    assert len(calls) == seen

    class Holder:
        """Holds a timer whose function holds it."""

        def __init__(self) -> None:
            self.timer = Timer(self.call)

        def call(self, _expiration: Expiration) -> None:
            calls.append(2)

    holder = Holder()
    gone = weakref.ref(holder)
    holder.timer.after("1ms", every="1ms")
    until(lambda: 2 in calls)
    del holder
    # A call that goes on has it for so long.
    until(lambda: gc.collect() >= 0 and gone() is None)


def test_the_end_of_the_program_ends_its_timers() -> None:
    program = """
import hourglass, time
timer = hourglass.Timer(lambda expiration: time.sleep(0.001))
timer.after(0, every="1ms")
time.sleep(0.02)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_two_thousand_timers_expire() -> None:
    """More than a class of actions has room for by default; each is called, though all are due at once."""
    called: set[int] = set()
    timers = [Timer(lambda _expiration, number=number: called.add(number)) for number in range(2000)]  # type: ignore[misc]
    at = clock.now_ns() + 20_000_000
    for timer in timers:
        timer.at(at)
    until(lambda: len(called) == 2000)
    for timer in timers:
        timer.close()


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_makes_its_own() -> None:
    timer = Timer(lambda _expiration: None)
    child = os.fork()
    if child == 0:
        try:
            try:
                timer.after("1ms")
                os._exit(3)
            except errors.ForkedError:
                pass
            done = threading.Event()
            own = Timer(lambda _expiration: done.set())
            own.after("1ms")
            os._exit(0 if done.wait(PATIENCE) else 4)
        except BaseException:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    timer.close()


def test_what_cannot_be_meant() -> None:
    with pytest.raises(TypeError, match="calls a function, not int"):
        Timer(5)  # type: ignore[arg-type]
    with pytest.raises(errors.InvalidError, match="unknown 'lunar'; expected one of monotonic"):
        Timer(print, clock="lunar")  # type: ignore[arg-type]
    with Timer(print) as timer:
        for wrong in ({"length": -1}, {"length": 0, "every": 0}, {"length": 0, "slack": -1}, {"length": 2**70}):
            with pytest.raises(errors.InvalidError):
                timer.after(**wrong)  # type: ignore[arg-type]
        for wrong in (-1, 2**63, 2**70):
            with pytest.raises(errors.InvalidError):
                timer.at(wrong)
        for wrong in (1.5, "1ms", None):
            with pytest.raises(TypeError):
                timer.at(wrong)  # type: ignore[arg-type]
        assert not timer.status().armed
    assert hourglass.Timer is Timer
