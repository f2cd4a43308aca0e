"""Timers that call functions.

    >>> import hourglass, threading
    >>> done = threading.Event()
    >>> with hourglass.Timer(lambda expiration: done.set()) as timer:
    ...     timer.after("5ms")
    ...     done.wait(10)
    True

A function runs on a thread of the timer service, which takes the interpreter for it; functions of all timers run
one after the other, and expiries of a timer whose function still runs are one more call afterwards, with the
rest in `overruns`. What it raises goes to `sys.unraisablehook`, is counted in `status().raised`, and ends nothing.

Of expiries that wait for their functions there is room for 16,384, one a timer: what finds none calls nothing and is
counted in `status().overruns`.

A timer without a reference is closed. All timers are closed when the interpreter ends.
"""

from __future__ import annotations

from ._hourglass import Expiration, Timer, TimerStatus

__all__ = ["Expiration", "Timer", "TimerStatus"]
