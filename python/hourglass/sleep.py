"""Precise sleep.

A sleep is a kernel wait that is asked to end early by a learnt margin, and a short spin. It never ends
before its deadline, and what it returns (`Slept`) has its latency and the cause.

    >>> from hourglass import clock, sleep
    >>> slept = sleep.sleep_for("300us")
    >>> slept.reached and not slept.interrupted
    True

A sleep releases the interpreter lock (GIL). A signal's handler runs while the main thread sleeps, within
30 ms; what it raises (`KeyboardInterrupt` for Ctrl-C) ends the sleep. An `Interrupt` ends sleeps from other
threads:

    >>> stop = sleep.Interrupt()
    >>> stop.set()
    >>> sleep.sleep_for("1h", interrupt=stop).interrupted
    True

`Sleeper` has settings: how a sleep is split between kernel and spin (`policy`), which share of the wake-ups the
margin covers (`quantile_ppm`), and how much CPU time may be spun: `per_sleep`, in addition as much as the kernel's
wait takes, and to cover two of three wake-ups `share_ppm` of the time slept. Policies are `"learned"` (a sleep
costs at most about twice a plain one), `"frugal"` (three of four wake-ups instead of 99 %, `share_ppm` 500), `"precise"` (99.9 % of
the wake-ups, at any cost), `"kernel"`, `"spin"`, and `"thesis"` with `hz`. With `surely` a sleep ends only when even the
earliest time that it can be is at the deadline.

`wait_until_past` waits until a time of UTC has passed for certain (commit-wait): until `clock.utc_bounded().earliest_ns` is
after it.
"""

from __future__ import annotations

from ._hourglass import (
    Interrupt,
    Sleeper,
    Slept,
    UtcWait,
    sleep_for,
    sleep_ns,
    sleep_until,
    wait_until_past,
)

__all__ = [
    "Interrupt",
    "Sleeper",
    "Slept",
    "UtcWait",
    "sleep_for",
    "sleep_ns",
    "sleep_until",
    "wait_until_past",
]
