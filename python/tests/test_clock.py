"""The clock: what `hourglass_clock` promises of bounds."""

from __future__ import annotations

import os
import threading
import time

import pytest

import hourglass
from hourglass import clock, sleep

FAR_NS = 50_000_000
"""What an unbounded reading may be off another one's, for a test: a slow machine preempts between the two."""


def test_it_counts_on_the_scale_of_clock_monotonic() -> None:
    for read in (clock.now_ns, clock.now_ordered_ns):
        before = time.monotonic_ns()
        now = read()
        after = time.monotonic_ns()
        assert before - FAR_NS < now < after + FAR_NS


def test_a_bounded_reading_holds_the_time() -> None:
    for _ in range(1000):
        before = time.monotonic_ns()
        read = clock.now_bounded()
        after = time.monotonic_ns()
        assert read.earliest_ns <= after and read.latest_ns >= before, (before, read, after)
        assert read.earliest_ns <= read.middle_ns <= read.latest_ns
        assert read.error_ns == -((read.earliest_ns - read.latest_ns) // 2)
        assert read.status in ("os_clock", "settling", "steady", "failed_over", "assumed")
    assert not read.is_before(read.latest_ns) and read.is_before(read.latest_ns + 1)
    assert not read.is_after(read.earliest_ns) and read.is_after(read.earliest_ns - 1)


def test_ordered_readings_do_not_go_back() -> None:
    last = 0
    for _ in range(10_000):
        now = clock.now_ordered_ns()
        assert now >= last
        last = now


def test_ticks_have_a_length() -> None:
    first = clock.ticks()
    time.sleep(0.01)
    second = clock.ticks()
    if first.epoch != second.epoch:
        pytest.skip("the source changed between two readings")
    took = clock.elapsed(first, second)
    assert took.ns >= 9_000_000 and took.ns == -clock.elapsed(second, first).ns
    with pytest.raises(hourglass.errors.InvalidError, match="epoch"):
        clock.elapsed(first, clock.Ticks(second.count, second.epoch + 1000))


@pytest.mark.parametrize(
    ("scale", "kernel"),
    [
        ("monotonic", time.CLOCK_MONOTONIC),
        ("monotonic_raw", time.CLOCK_MONOTONIC_RAW),
        ("realtime", time.CLOCK_REALTIME),
        ("boottime", time.CLOCK_BOOTTIME),
        ("tai", time.CLOCK_TAI),
    ],
)
def test_other_scales_are_the_kernels(scale: str, kernel: int) -> None:
    before = time.clock_gettime_ns(kernel)
    read = clock.now_on(scale)  # type: ignore[arg-type]
    after = time.clock_gettime_ns(kernel)
    assert before - FAR_NS < read.ns < after + FAR_NS
    with pytest.raises(hourglass.errors.InvalidError, match="one of monotonic"):
        clock.now_on("lunar")  # type: ignore[arg-type]


def test_wall_clock_time_is_set_for_this_process_only() -> None:
    try:
        now = clock.now_ns()
        clock.set_wall(now, 1_000_000_000, 5)
        read = clock.wall()
        assert read.status == "by_hand" and 0 <= read.ns - 1_000_000_000 < 10_000_000_000
        assert abs(time.time_ns() - read.ns) > FAR_NS
    finally:
        clock.release_wall()
    before = time.time_ns()
    read = clock.wall()
    after = time.time_ns()
    assert before - FAR_NS < read.ns < after + FAR_NS


def test_a_keeper_names_the_source_that_vouches_or_why_none_does() -> None:
    with clock.UtcKeeper() as keeper:
        if keeper.source is None:
            assert keeper.error_ns is None and "chronyd" in keeper.refused
        else:
            assert keeper.error_ns is not None and clock.utc_bounded() is not None
    assert keeper.source is None and keeper.refused == {}


def test_utc_is_between_two_bounds_and_can_be_waited_out() -> None:
    try:
        clock.set_wall(clock.now_ns(), 1_000_000_000, 1_000_000)
        begun = clock.utc_bounded()
        assert begun is not None and begun.status == "by_hand" and begun.error_ns >= 1_000_000
        wait = sleep.wait_until_past(begun.latest_ns)
        assert wait.end == "past" and wait.is_past and wait.waited_ns >= 1_000_000
        now = clock.utc_bounded()
        assert now is not None and begun.is_before(now) is True and now.is_before(begun) is False
        assert now.is_before(now) is None
        far = now.latest_ns + 3_600_000_000_000
        assert sleep.wait_until_past(far, at_most="1s").end == "out_of_reach"
        stop = sleep.Interrupt()
        stop.set()
        assert sleep.wait_until_past(far, interrupt=stop).end == "interrupted"
        for interrupted_s in (0.008, 0.2):
            stop.clear()
            timer, started_ns = threading.Timer(interrupted_s, stop.set), time.monotonic_ns()
            timer.start()
            wait = sleep.wait_until_past(far, interrupt=stop)
            passed_ns = time.monotonic_ns() - started_ns
            timer.join()
            assert wait.end == "interrupted" and interrupted_s * 5e8 < wait.waited_ns <= passed_ns
            assert wait.ahead_ns > 3_590_000_000_000
        # Long enough for several looks for signals.
        wait = sleep.wait_until_past(clock.wall().ns + 200_000_000)
        assert wait.end == "past" and wait.waited_ns > 200_000_000 and wait.ahead_ns > 190_000_000
    finally:
        clock.release_wall()
    now = clock.utc_bounded()
    if now is None:
        assert sleep.wait_until_past(0).end == "unvouched"
    else:
        assert now.status == "synchronised" and sleep.wait_until_past(0).end == "already_past"


def test_the_source_is_one_of_the_machines() -> None:
    assert clock.source() in ("tsc", "cntvct", "hpet", "monotonic")
    with pytest.raises(hourglass.errors.InvalidError, match="unknown 'sundial'; expected one of"):
        clock.set_source("sundial")  # type: ignore[arg-type]
    absent = {"tsc", "cntvct"} - {clock.source()}
    with pytest.raises(hourglass.errors.UnsupportedError, match="hourglass clocks"):
        for name in absent:
            clock.set_source(name)  # type: ignore[arg-type]


def test_its_health_is_told() -> None:
    trust = clock.trust()
    assert trust.source == clock.source() and trust.reason
    assert {"status"} <= {item.id for item in trust.evidence}
    counts = clock.counts()
    assert len(counts) == 15 and all(count >= 0 for count in counts.values())
    assert sum(counts.values()) >= len(clock.events())
    assert clock.maintain() >= 0


def test_a_page_is_read_by_another_process() -> None:
    fd = clock.share()
    try:
        page = clock.Page(fd)
        assert page.writer_pid == os.getpid()
        child = os.fork()
        if child == 0:
            # The reader knows nothing of the writer's memory: it maps the page anew.
            try:
                read = clock.Page(fd).now_bounded()
                now = time.monotonic_ns()
                os._exit(0 if read.earliest_ns <= now else 1)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
        before = time.monotonic_ns()
        read = page.now_bounded()
        assert read.latest_ns >= before
    finally:
        os.close(fd)
    with pytest.raises(OSError) as refused:
        clock.Page(fd)
    assert isinstance(refused.value, hourglass.Error)
    with pytest.raises(hourglass.errors.InvalidError, match="-1 is not a file descriptor"):
        clock.Page(-1)
    with open("/proc/self/exe", "rb") as program:
        with pytest.raises(hourglass.errors.DataError):
            clock.Page(program.fileno())


def test_values_show_themselves() -> None:
    assert repr(clock.Ticks(3, 4)) == "Ticks(count=3, epoch=4)"
    assert clock.Ticks(3, 4) == clock.Ticks(3, 4) != clock.Ticks(3, 5)
    assert repr(clock.now_bounded()).startswith("Bounds(earliest_ns=")
    with pytest.raises(AttributeError):
        clock.Ticks(3, 4).count = 5  # type: ignore[misc]
