"""Loops at a rate.

`periodic` gives an iterator over ticks on an absolute grid: how long the loop's body takes, and how late it
was woken, shifts no later tick. The body of a tick is its job; it is over when the next tick is asked for.

    >>> import hourglass
    >>> loop = hourglass.periodic("1ms", count=5)
    >>> for tick in loop:
    ...     assert tick.lateness_ns >= 0
    >>> loop.totals.completed
    5

A job is `hit` if it is over by its deadline (the next tick unless `deadline` says otherwise), `missed` if it is over
later; a period is `lost` if it had no job since an earlier one was still running.

`on_overrun` says what becomes of ticks that pass while a body runs: `"skip"` drops them and keeps the phase,
`"catch_up"` runs them all, `"delay"` moves the grid.

`policy` (`"FIFO:50"`, `"RR:10"`, `"OTHER:-5"`, or `"DEADLINE"` with a `budget`) and `cpus` (`3`, `[0, 3]`, `"0-3"`) are given
to the thread with the first tick and taken back at the end: when the iterator is exhausted, closed, or
dropped (a `for` that is left by `break` drops it, unless a name holds it). `with hourglass.periodic(...) as loop:` makes
sure of it.

`waiting` is how the loop waits, as a `Sleeper`'s policy: `"kernel"` costs least, `"learned"` spins the last microseconds.
The interpreter is let go while it waits; a thread that holds it then delays the tick, and `lateness_ns` tells so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Callable, Iterable, Literal, Optional, Union

from ._hourglass import Completed, Distribution, Periodic, Tick, Totals

if TYPE_CHECKING:
    from ._hourglass import SpanLike

__all__ = ["Completed", "Distribution", "Periodic", "Tick", "Totals", "periodic"]


def periodic(
    period: Optional[SpanLike] = None,
    *,
    hertz: Optional[int] = None,
    deadline: Optional[SpanLike] = None,
    phase: Optional[SpanLike] = None,
    budget: Optional[SpanLike] = None,
    epoch_ns: Optional[int] = None,
    on_overrun: Literal["skip", "catch_up", "delay"] = "skip",
    policy: Optional[str] = None,
    cpus: Union[int, Iterable[int], str, None] = None,
    waiting: Literal["kernel", "frugal", "learned", "precise", "spin"] = "kernel",
    count: Optional[int] = None,
    on_start: Optional[Callable[[], object]] = None,
) -> Periodic:
    """An iterator over ticks, every `period` or `hertz` times a second.

    The first tick comes at once, or with `epoch_ns` (a time of `clock.now_ns()`'s scale) and `phase` at the next point of
    that grid. `budget` is CPU time that a job may take: what takes more is counted. `count` ends the
    loop after that number of ticks; without it, it goes on until `stop()`, `close()` or `break`. `on_start` is called
    once in the loop's thread, when that has `policy` and `cpus` and before the first tick is due; what it
    raises comes out of the first tick (or of `with`), and policy and CPUs are given back.

    Raises `InvalidError` for what cannot be meant; the first tick raises `PermissionDeniedError` with the line that
    grants it if the kernel refuses `policy`.
    """
    return Periodic(
        period,
        hertz=hertz,
        deadline=deadline,
        phase=phase,
        budget=budget,
        epoch_ns=epoch_ns,
        on_overrun=on_overrun,
        policy=policy,
        cpus=cpus,
        waiting=waiting,
        count=count,
        on_start=on_start,
    )
