"""Loops at a rate.

`periodic` gives an iterator over ticks on an absolute grid: how long the loop's body takes, and how late it
was woken, shifts no later tick. The body of a tick is its job; it ends with the request for the next tick.

    >>> import hourglass
    >>> loop = hourglass.periodic("1ms", count=5)
    >>> for tick in loop:
    ...     assert tick.lateness_ns >= 0
    >>> loop.totals.completed
    5

A job is `hit` if it ends by its deadline (the next tick unless `deadline` says otherwise), `missed` if it ends
later; a period is `lost` if it had no job because an earlier one was still running.

`on_overrun` chooses what happens to ticks that pass while a body runs: `"skip"` drops them and keeps the phase,
`"catch_up"` runs them all, `"delay"` moves the grid.

`policy` (`"FIFO:50"`, `"RR:10"`, `"OTHER:-5"`, or `"DEADLINE"` with a `budget`) and `cpus` (`3`, `[0, 3]`, `"0-3"`) are given
to the thread with the first tick and restored at the end: when the iterator is exhausted, closed, or
dropped (a `for` that is left by `break` drops it, unless a name holds it). `with hourglass.periodic(...) as loop:` makes
sure of it.

`async for tick in hourglass.periodic("10ms")` awaits each tick and lets other tasks of the event loop run meanwhile; a task
that computes delays the ticks, which shows in `lateness_ns`. `await` by itself belongs to no tick's deadline: a job
ends with the request for the next tick, as in a plain `for`.

`loop.shift("20us")` moves all later ticks (`"-20us"`: earlier), so that a loop may follow the clock of a device.

`waiting` is how the loop waits, as a `Sleeper`'s policy: `"kernel"` costs least, `"learned"` spins the last microseconds.
The wait releases the interpreter lock (GIL); a thread that holds the lock then delays the tick, which shows in `lateness_ns`.
"""

from __future__ import annotations

import asyncio as _asyncio
from typing import TYPE_CHECKING, Callable, Iterable, Literal, Optional, Union

from . import clock as _clock
from ._hourglass import Completed, Distribution, Tick, Timer, Totals
from ._hourglass import Periodic as _Periodic

if TYPE_CHECKING:
    from ._hourglass import SpanLike
    from typing_extensions import Self

__all__ = ["Completed", "Distribution", "Periodic", "Tick", "Totals", "periodic"]


class _Alarm:
    """Wakes the task of an event loop that awaits it: at a time, or at once."""

    def __init__(self) -> None:
        self._loop = _asyncio.get_running_loop()
        self._awaited: Optional[_asyncio.Future[None]] = None
        self._timer = Timer(lambda _expiration: self.ring())

    def ring(self) -> None:
        """From any thread."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._set)

    def _set(self) -> None:
        if self._awaited is not None and not self._awaited.done():
            self._awaited.set_result(None)

    async def until(self, due_ns: int) -> None:
        # Also where it is past: other tasks are to run between two ticks.
        self._awaited = self._loop.create_future()
        if due_ns <= _clock.now_ns():
            self._loop.call_soon(self._set)
        else:
            self._timer.at(due_ns)
        try:
            await self._awaited
        finally:
            self._timer.cancel()
            self._awaited = None


class Periodic(_Periodic):
    """An iterator over ticks, for `for` and for `async for`; made by `periodic`."""

    _alarm: Optional[_Alarm] = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Tick:
        due_ns = self._complete()
        if due_ns is not None:
            if self._alarm is None:
                self._alarm = _Alarm()
            await self._alarm.until(due_ns)
            tick = self._begin()
            if tick is not None:
                return tick
        raise StopAsyncIteration

    def stop(self) -> None:
        """Ends the loop, from any thread: the wait in progress at once, a body that runs after it."""
        super().stop()
        if self._alarm is not None:
            self._alarm.ring()


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
