"""Where a program is in time.

`now_ns()` reads the clock of the process: nanoseconds on `CLOCK_MONOTONIC`'s scale, by the processor's
counter where that can be trusted, by the operating system's clock where not. It costs less than
`time.monotonic_ns()`. `now_bounded()` says between which two times it is for certain, also while a
daemon slews the kernel's clock.

    >>> from hourglass import clock
    >>> begin = clock.now_ns()
    >>> clock.now_ns() >= begin
    True
    >>> read = clock.now_bounded()
    >>> read.earliest_ns <= read.latest_ns
    True

All functions may be called from any thread. The first reading starts the clock; nothing runs before that.
"""

from __future__ import annotations

from ._hourglass import (
    Bounds,
    Elapsed,
    Event,
    Evidence,
    Page,
    Reading,
    Ticks,
    Trust,
    Utc,
    UtcKeeper,
    counts,
    elapsed,
    events,
    examine,
    maintain,
    now_bounded,
    now_ns,
    now_on,
    now_ordered_ns,
    release_wall,
    set_source,
    set_wall,
    share,
    source,
    steer_wall,
    ticks,
    trust,
    utc_bounded,
    wall,
)

__all__ = [
    "Bounds",
    "Elapsed",
    "Event",
    "Evidence",
    "Page",
    "Reading",
    "Ticks",
    "Trust",
    "Utc",
    "UtcKeeper",
    "counts",
    "elapsed",
    "events",
    "examine",
    "maintain",
    "now_bounded",
    "now_ns",
    "now_on",
    "now_ordered_ns",
    "release_wall",
    "set_source",
    "set_wall",
    "share",
    "source",
    "steer_wall",
    "ticks",
    "trust",
    "utc_bounded",
    "wall",
]
