"""Loops at a rate."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import threading
import time
from typing import Callable

import pytest
from conftest import Alarm, interrupted_within_ms

import hourglass
from hourglass import clock, errors

MS = 1_000_000


def test_ticks_lie_on_a_grid_and_are_never_early() -> None:
    loop = hourglass.periodic("2ms", count=25)
    first = last = None
    lost = 0
    for number, tick in enumerate(loop):
        now = clock.now_ordered_ns()
        assert tick.number == number and now >= tick.started_ns >= tick.expiry_ns
        assert tick.lateness_ns == tick.started_ns - tick.expiry_ns
        assert tick.deadline_ns == tick.expiry_ns + 2 * MS
        first = tick.expiry_ns if first is None else first
        lost += tick.lost
        assert tick.expiry_ns == first + (number + lost) * 2 * MS
        assert (tick.previous is None) == (number == 0)
        last = tick
    totals = loop.totals
    assert last is not None and last.number == 24
    assert (totals.ticks, totals.completed, totals.hit + totals.missed) == (25, 25, 25)
    assert totals.latency.count == totals.response.count == 25
    assert (loop.hit, loop.missed, loop.lost) == (totals.hit, totals.missed, totals.lost)
    assert totals.latency.min_ns <= totals.latency.p50_ns <= totals.latency.p99_ns <= totals.latency.max_ns
    assert sum(count for _, count in totals.latency.buckets()) == 25


def test_misses_and_lost_periods_are_counted() -> None:
    """A body of three and a half periods misses its deadline, and three periods have no job."""
    loop = hourglass.periodic("10ms", count=4)
    told = []
    for tick in loop:
        if tick.number == 1:
            until = tick.expiry_ns + 35 * MS
            while clock.now_ns() < until:
                pass
        told.append(tick)
    assert told[2].missed and told[2].lost >= 3
    assert told[2].previous.missed and told[2].previous.overrun
    assert told[2].previous.response_ns >= 35 * MS and told[2].previous.cpu_ns > 0
    assert loop.missed >= 1 and loop.lost >= 3


def test_what_passes_may_be_caught_up_on_or_moved() -> None:
    def expiries(on_overrun: str) -> tuple[list[int], hourglass.Periodic]:
        loop = hourglass.periodic("10ms", count=4, on_overrun=on_overrun)  # type: ignore[arg-type]
        found = []
        for tick in loop:
            found.append(tick.expiry_ns)
            if tick.number == 0:
                time.sleep(0.025)
        return found, loop

    found, loop = expiries("catch_up")
    assert [b - a for a, b in zip(found, found[1:])] == [10 * MS] * 3
    assert loop.lost == 0 and loop.totals.late >= 1
    found, loop = expiries("delay")
    assert loop.totals.drift_ns > 0 and found[1] - found[0] >= 25 * MS


def test_rates_phases_and_epochs() -> None:
    epoch = clock.now_ns() + 5 * MS
    loop = hourglass.periodic(hertz=1000, epoch_ns=epoch, phase="300us", count=3)
    for tick in loop:
        assert (tick.expiry_ns - epoch - 300_000) % MS == 0 and tick.expiry_ns >= epoch
    loop = hourglass.periodic("20ms", deadline="1ns", budget=1, count=2)
    with pytest.raises(errors.InvalidError):
        hourglass.periodic("20ms", deadline="1ns", budget="1us")
    missed = sum(1 for tick in loop)
    assert missed == 2 and loop.missed == 2 and loop.totals.cost_overruns == 2


def test_a_loop_ends_in_every_way() -> None:
    assert [tick.number for tick in hourglass.periodic(1000, count=0)] == []
    loop = hourglass.periodic("1ms")
    for tick in loop:
        if tick.number == 3:
            break
    assert loop.totals.ticks == 4
    assert next(loop).number == 4  # It goes on where it was left.
    loop.stop()
    assert list(loop) == [] and list(loop) == []
    with hourglass.periodic("1ms") as loop:
        next(loop)
    with pytest.raises(errors.ClosedError, match="closed"):
        next(loop)
    loop.close()
    assert loop.totals.completed == 1


def test_a_loop_that_was_stopped_before_takes_nothing() -> None:
    loop = hourglass.periodic("1ms", cpus=5000)
    loop.stop()
    assert list(loop) == [] and loop.totals.ticks == 0
    loop.close()


def test_another_thread_stops_a_loop_that_waits() -> None:
    loop = hourglass.periodic("1h")
    assert next(loop).number == 0
    threading.Timer(0.05, loop.stop).start()
    begun = time.monotonic()
    assert list(loop) == []
    assert time.monotonic() - begun < 30


def test_a_loop_belongs_to_the_thread_that_began_it() -> None:
    loop = hourglass.periodic("1ms")
    next(loop)
    found: list[BaseException] = []

    def elsewhere() -> None:
        try:
            next(loop)
        except errors.WrongThreadError as wrong:
            found.append(wrong)

    other = threading.Thread(target=elsewhere)
    other.start()
    other.join()
    assert len(found) == 1 and next(loop).number == 1


def test_ctrl_c_ends_the_wait_within_50_ms(alarm: Callable[[], Alarm]) -> None:
    """Issue 8: "a signal while waiting in Python (KeyboardInterrupt comes through within 50 ms)"."""

    def waits() -> None:
        for _ in hourglass.periodic("20s"):
            pass

    assert interrupted_within_ms(alarm, waits) < 50
    short = hourglass.periodic("1ms")
    assert interrupted_within_ms(alarm, lambda: [None for _ in short]) < 50
    assert next(short).number == short.totals.completed


def test_an_exception_leaves_the_loop_and_its_thread_as_they_were() -> None:
    before = os.sched_getaffinity(0)
    one = min(before)
    with pytest.raises(ZeroDivisionError):
        for _ in hourglass.periodic("1ms", cpus=one):
            assert os.sched_getaffinity(0) == {one}
            raise ZeroDivisionError
    gc.collect()
    assert os.sched_getaffinity(0) == before


def test_cpus_and_policy_are_the_loops_only() -> None:
    before = (os.sched_getaffinity(0), os.sched_getscheduler(0))
    one = min(before[0])
    for cpus in (one, [one], str(one)):
        with hourglass.periodic("1ms", cpus=cpus, count=2) as loop:
            for _ in loop:
                assert os.sched_getaffinity(0) == {one}
        assert os.sched_getaffinity(0) == before[0]
    try:
        for _ in hourglass.periodic("1ms", policy="FIFO:3", count=3):
            assert os.sched_getscheduler(0) == os.SCHED_FIFO
            assert os.sched_getparam(0).sched_priority == 3
    except errors.PermissionDeniedError as refused:
        assert "setcap" in str(refused) or "ulimit" in str(refused)
        print(f"not privileged: {refused}")
    assert (os.sched_getaffinity(0), os.sched_getscheduler(0)) == before


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({}, "a period or hertz"),
        ({"period": "1ms", "hertz": 5}, "not both"),
        ({"period": 0}, "period"),
        ({"period": -5}, "period"),
        ({"period": "0ms"}, "period"),
        ({"period": 2**70}, "292 years"),
        ({"hertz": 0}, "period"),
        ({"period": "1ms", "deadline": -1}, "deadline"),
        ({"period": "1ms", "phase": "1ms"}, "phase"),
        ({"period": "1ms", "budget": "2ms"}, "budget"),
        ({"period": "1ms", "on_overrun": "panic"}, "on_overrun"),
        ({"period": "1ms", "waiting": "thesis"}, "hz"),
        ({"period": "1ms", "policy": "FIFO:100"}, "FIFO:100"),
        ({"period": "1ms", "policy": "BATCH"}, "BATCH"),
        ({"period": "1ms", "policy": "DEADLINE"}, "budget"),
        ({"period": "1ms", "cpus": []}, "cpus"),
        ({"period": "1ms", "cpus": "1-"}, "cpus"),
        ({"period": "1ms", "cpus": -1}, "cpus"),
    ],
)
def test_loops_that_cannot_be_meant(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(errors.InvalidError, match=says):
        hourglass.periodic(**arguments)  # type: ignore[arg-type]


def test_a_cpu_that_is_not_there_is_refused_with_the_first_tick() -> None:
    loop = hourglass.periodic("1ms", cpus=5000)
    with pytest.raises(errors.InvalidError, match="5000"):
        next(loop)


@pytest.mark.parametrize("arguments", [{"period": 1.5}, {"period": True}, {"period": "1ms", "cpus": 1.5}, {"period": "1ms", "count": "3"}])
def test_what_has_a_wrong_type(arguments: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        hourglass.periodic(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{"period": "1ms", "count": -1}, {"hertz": -1}, {"hertz": 2**40}])
def test_a_count_that_no_counter_holds(arguments: dict[str, object]) -> None:
    with pytest.raises(OverflowError):
        hourglass.periodic(**arguments)  # type: ignore[arg-type]


def test_a_handler_does_not_use_what_it_interrupted(alarm: Callable[[], Alarm]) -> None:
    refused: list[BaseException] = []

    def waits() -> None:
        loop = hourglass.periodic("20s")
        next(loop)

        def handle(_number: int, _frame: object) -> None:
            refused.clear()
            for use in (loop.close, lambda: next(loop)):
                try:
                    use()
                except errors.Error as error:
                    refused.append(error)
            loop.stop()

        signal.signal(signal.SIGINT, handle)
        one = alarm()
        one.after(0.05)
        with contextlib.suppress(errors.ClosedError):
            assert list(loop) == []
        one.join()
        loop.close()
        with pytest.raises(errors.ClosedError):
            next(loop)

    # Where the machine is busy, one may come before the wait.
    for _ in range(5):
        waits()
        if len(refused) == 2:
            break
    assert [type(error) for error in refused] == [errors.BusyError] * 2


def test_a_start_hook_runs_before_the_first_tick() -> None:
    seen: list[tuple[str, int, object]] = []
    cpu = min(os.sched_getaffinity(0))

    def hook() -> None:
        time.sleep(0.003)
        seen.append(("hook", clock.now_ordered_ns(), os.sched_getaffinity(0)))

    with hourglass.periodic("1ms", count=3, cpus=cpu, on_start=hook) as loop:
        assert [what for what, _, _ in seen] == ["hook"]
        first = next(iter(loop))
        assert first.expiry_ns >= seen[0][1]
        list(loop)
    assert seen[0][2] == {cpu} and len(seen) == 1


def test_a_start_hook_that_raises_ends_the_loop() -> None:
    before = os.sched_getaffinity(0)
    cpu = min(before)

    def hook() -> None:
        raise FileNotFoundError("no device")

    loop = hourglass.periodic("1ms", cpus=cpu, on_start=hook)
    with pytest.raises(FileNotFoundError, match="no device"):
        next(loop)
    assert os.sched_getaffinity(0) == before


def test_a_loop_follows_a_device() -> None:
    """Issue 33, 2: all later ticks move; by less than a period at a time."""
    loop = hourglass.periodic("5ms", count=5)
    expected = None
    for tick in loop:
        if expected is not None:
            assert (tick.expiry_ns - expected) == tick.lost * 5 * MS
        expected = tick.expiry_ns + 5 * MS
        if tick.number == 1:
            loop.shift("500us")
            expected += MS // 2
        elif tick.number == 2:
            loop.shift(-200_000)
            expected -= MS // 5
        elif tick.number == 3:
            loop.shift("1s")
            expected += 5 * MS - 1
    with pytest.raises(errors.ClosedError, match="not begun"):
        hourglass.periodic("1ms").shift(1)


def test_an_event_loop_awaits_ticks() -> None:
    """Issue 33, 2. Another task runs between the ticks; a stop from another thread ends the wait at once."""
    others = 0

    async def other() -> None:
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    async def ticks() -> list[hourglass.Tick]:
        beside = asyncio.create_task(other())
        loop = hourglass.periodic("2ms", count=10)
        seen = [tick async for tick in loop]
        assert loop.totals.completed == 10
        endless = hourglass.periodic("1h")
        async for tick in endless:
            threading.Timer(0.05, endless.stop).start()
        beside.cancel()
        return seen

    begun = time.monotonic()
    seen = asyncio.run(ticks())
    assert [tick.number for tick in seen] == list(range(10)) and others > 10
    lost = 0
    for tick in seen:
        lost += tick.lost
        assert tick.expiry_ns == seen[0].expiry_ns + (tick.number + lost) * 2 * MS and tick.lateness_ns >= 0
    assert time.monotonic() - begun < 60


def test_an_awaited_tick_can_be_cancelled() -> None:
    async def wait() -> int:
        loop = hourglass.periodic("1h")
        assert (await loop.__anext__()).number == 0
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(loop.__anext__(), 0.02)
        loop.close()
        return loop.totals.completed

    assert asyncio.run(wait()) == 1
