"""Sleeping: never early, interruptible, with signals heard."""

from __future__ import annotations

import datetime
import signal
import threading
import time
from typing import Callable

import pytest
from conftest import Alarm, interrupted_within_ms

import hourglass
from hourglass import clock, errors, sleep


def test_a_sleep_is_never_early() -> None:
    for length_ns in (0, 1, 1_000, 50_000, 1_000_000, 3_000_000) * 5:
        begun = clock.now_ordered_ns()
        slept = sleep.sleep_for(length_ns)
        ended = clock.now_ordered_ns()
        assert slept.reached and not slept.interrupted
        assert ended - begun >= length_ns and ended >= slept.woke_ns >= slept.deadline_ns
        assert slept.miss_ns == slept.woke_ns - slept.deadline_ns


@pytest.mark.parametrize("policy", ["learned", "frugal", "precise", "kernel", "spin"])
def test_each_policy_reaches_its_deadline(policy: str) -> None:
    sleeper = sleep.Sleeper(policy)  # type: ignore[arg-type]
    for _ in range(20):
        deadline = clock.now_ns() + 300_000
        assert sleeper.sleep_until(deadline).woke_ns >= deadline
    assert sleep.Sleeper("thesis", hz=250).sleep_for("1ms").reached
    surely = sleep.Sleeper(policy, surely=True).sleep_for("200us")  # type: ignore[arg-type]
    assert clock.now_bounded().latest_ns >= surely.deadline_ns and surely.reached


def test_times_are_written_in_several_ways() -> None:
    for length in (2_000_000, "2ms", "0.002s", datetime.timedelta(milliseconds=2)):
        begun = time.monotonic_ns()
        assert sleep.sleep_for(length).reached
        assert time.monotonic_ns() - begun >= 2_000_000
    assert sleep.Sleeper().sleep_ticks(1000).reached


def test_ticks_are_counted_out() -> None:
    """Long enough for several rounds: the main thread hears signals in between."""
    begun = clock.ticks()
    count = 100_000_000
    slept = sleep.Sleeper().sleep_ticks(count)
    ended = clock.ticks()
    assert slept.reached and (ended.epoch != begun.epoch or ended.count - begun.count >= count)
    stop = sleep.Interrupt()
    threading.Timer(0.05, stop.set).start()
    assert sleep.Sleeper(interrupt=stop).sleep_ticks(2**64 - 1).interrupted


def test_a_time_that_is_past_is_no_sleep() -> None:
    slept = sleep.sleep_until(0)
    assert slept.delay == "already_past" and slept.kernel_ns == slept.spin_ns == 0


@pytest.mark.parametrize("wrong", [1.5, None, True, [], b"1ms", object()])
def test_what_is_no_time_is_a_type_error(wrong: object) -> None:
    for call in (sleep.sleep_for, sleep.sleep_ns, sleep.sleep_until, sleep.Sleeper().sleep_for):
        with pytest.raises(TypeError, match="nanoseconds"):
            call(wrong)  # type: ignore[operator]


@pytest.mark.parametrize("wrong", [-1, "-1ms", "1", "1 fortnight", "", 2**63, -(2**70), "300000d"])
def test_a_time_that_cannot_be_slept_is_refused(wrong: object) -> None:
    with pytest.raises(errors.InvalidError) as refused:
        sleep.sleep_for(wrong)  # type: ignore[arg-type]
    assert isinstance(refused.value, ValueError) and refused.value.kind == "invalid"
    with pytest.raises(errors.InvalidError):
        sleep.sleep_until(-1)
    with pytest.raises(errors.InvalidError):
        sleep.sleep_until(2**64)
    with pytest.raises(errors.InvalidError, match="longer than 292 years"):
        sleep.sleep_for(datetime.timedelta.max)


def test_a_sleep_as_long_as_can_be_is_interrupted() -> None:
    stop = sleep.Interrupt()
    threading.Timer(0.05, stop.set).start()
    begun = time.monotonic()
    slept = sleep.sleep_until(2**64 - 1, interrupt=stop)
    assert slept.interrupted and not slept.reached and slept.miss_ns == 0
    assert time.monotonic() - begun < 30
    assert stop.is_set() and stop.clear() and not stop.clear()


def test_an_interrupt_that_comes_early_is_not_lost() -> None:
    sleeper = sleep.Sleeper()
    sleeper.interrupt()
    assert sleeper.sleep_for("1h").interrupted
    assert sleeper.clear() and sleeper.sleep_for("1us").reached
    # One word for several, and only for those.
    stop = sleep.Interrupt()
    first, second = sleep.Sleeper(interrupt=stop), sleep.Sleeper("kernel", interrupt=stop)
    stop.set()
    assert first.sleep_for("1h").interrupted and second.sleep_for("1h").interrupted
    assert sleep.sleep_for("1us").reached


def turns_of_another_thread(waits: Callable[[], object]) -> int:
    """How often another thread had the interpreter meanwhile."""
    counted = 0
    over = threading.Event()

    def count() -> None:
        nonlocal counted
        while not over.is_set():
            counted += 1
            time.sleep(0.0005)

    other = threading.Thread(target=count)
    other.start()
    waits()
    seen = counted
    over.set()
    other.join()
    return seen


def test_others_run_while_a_thread_sleeps() -> None:
    """Held, the interpreter would let another thread run once or twice; a busy machine may, too."""
    spinning = sleep.Sleeper("spin")
    for waits in (lambda: sleep.sleep_for("80ms"), lambda: spinning.sleep_for("80ms")):
        assert max(turns_of_another_thread(waits) for _ in range(5)) > 5


def test_one_thread_at_a_time_has_a_sleeper() -> None:
    sleeper = sleep.Sleeper("kernel")
    begun = threading.Event()

    def long() -> None:
        begun.set()
        while True:
            try:
                sleeper.sleep_for("1h")
                return
            except errors.BusyError:
                pass  # The other thread has it at the moment.

    other = threading.Thread(target=long)
    other.start()
    begun.wait()
    refused = None
    until = time.monotonic() + 10
    while refused is None and time.monotonic() < until:
        try:
            sleeper.sleep_for(0)
        except errors.BusyError as busy:
            refused = busy
    sleeper.interrupt()
    other.join()
    assert refused is not None and isinstance(refused, RuntimeError)


def test_ctrl_c_ends_a_sleep_within_50_ms(alarm: Callable[[], Alarm]) -> None:
    """Issue 8: "a signal while waiting in Python (KeyboardInterrupt comes through within 50 ms)"."""
    assert interrupted_within_ms(alarm, lambda: sleep.sleep_for("20s")) < 50
    assert interrupted_within_ms(alarm, lambda: sleep.sleep_until(2**64 - 1)) < 50
    sleeper = sleep.Sleeper("learned")
    assert interrupted_within_ms(alarm, lambda: sleeper.sleep_for("20s")) < 50
    assert interrupted_within_ms(alarm, lambda: sleeper.sleep_ticks(2**63)) < 50
    assert interrupted_within_ms(alarm, lambda: sleeper.sleep_ticks(2**64 - 1)) < 50
    # It can be used as before.
    assert sleeper.sleep_for("1ms").reached and sleep.sleep_for("1ms").reached


def test_a_handler_that_raises_nothing_ends_no_sleep(alarm: Callable[[], Alarm]) -> None:
    heard: list[int] = []
    signal.signal(signal.SIGINT, lambda number, _frame: heard.append(number))
    for turn in range(1, 6):
        one = alarm()
        one.after(0.05)
        begun = time.monotonic_ns()
        slept = sleep.sleep_for("200ms")
        ended = time.monotonic_ns()
        assert slept.reached and ended - begun >= 200_000_000
        one.join()
        assert heard == [signal.SIGINT] * turn
        # Whether it came during the sleep is chance where the machine is busy.
        if begun < one.sent_ns < ended:
            return
    raise AssertionError("no signal came during a sleep")


def test_a_handler_may_sleep_and_interrupt(alarm: Callable[[], Alarm]) -> None:
    stop = sleep.Interrupt()
    sleeper = sleep.Sleeper(interrupt=stop)
    refused: list[BaseException] = []

    def handle(_number: int, _frame: object) -> None:
        sleep.sleep_for("1ms")
        try:
            sleeper.sleep_for(0)
        except errors.BusyError as busy:
            refused.append(busy)
        stop.set()

    signal.signal(signal.SIGINT, handle)
    # Where the machine is busy, one may come before the sleep.
    for _ in range(5):
        one = alarm()
        one.after(0.05)
        assert sleeper.sleep_for("20s").interrupted and stop.clear()
        one.join()
        if refused:
            break
    assert len(refused) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"policy": "sound"}, "one of learned, frugal"),
        ({"policy": "thesis"}, "needs the tick's rate"),
        ({"policy": "thesis", "hz": 0}, "needs the tick's rate"),
        ({"hz": 100}, "knows no tick"),
        ({"share_ppm": 1_000_001}, "share_ppm"),
        ({"quantile_ppm": 2_000_000}, "quantile_ppm"),
        ({"per_sleep": -1}, "per_sleep"),
    ],
)
def test_settings_that_cannot_be_meant(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(errors.InvalidError, match=says):
        sleep.Sleeper(**arguments)  # type: ignore[arg-type]


def test_names_are_at_the_top() -> None:
    assert hourglass.Sleeper is sleep.Sleeper and hourglass.Interrupt is sleep.Interrupt
