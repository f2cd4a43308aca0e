"""Deadlines whose passing is reported at once, and not at the end of the work.

A `Watch` watches the thread that starts it. If a piece of work does not end by its deadline, a function is called on a
thread of its own while the work still runs:

    >>> import time
    >>> from hourglass import deadlines
    >>> late = []
    >>> with deadlines.Watch(late.append) as watch:
    ...     with watch.job("2ms") as job:
    ...         time.sleep(0.02)
    >>> job.missed, watch.faults
    (True, 1)

The function returns the verdict: None lets the work continue, a length of time (`"3ms"`) gives it another
deadline, counted from that moment, and `"end"` ends it: the work gets `hourglass.errors.EndedError` where it calls `watch.check()`, and
at its end. From then on each check raises it again; later work needs another watch. Nothing is
raised elsewhere, so that no lock or file remains in an intermediate state.

The function needs the interpreter lock (GIL), which a thread that computes in Python releases within `sys.getswitchinterval()` (5 ms
unless set), and one that sleeps, waits or reads at once. `fault.passed_ns` is the time at which the deadline was noticed, whatever
delayed the function. Work that holds the lock for longer delays it. So Python never stops or demotes a thread that missed its
deadline, as Rust and C can: it might hold the lock, for which its handler would wait.

What the function raises goes to `sys.unraisablehook`, is counted in `watch.raised`, and lets the work continue.

A thread has one watch at a time (`BusyError`), and closes it itself. It takes a real-time signal of the process, the
fifth unless `signal` names another, and one of the user's pending signals (`ulimit -i`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Optional

from ._hourglass import Done, Fault
from ._hourglass import Watch as _Watch
from .errors import ClosedError

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._hourglass import SpanLike

__all__ = ["Done", "Fault", "Job", "Watch"]


class Job:
    """A piece of work with a deadline, as a with statement; made by `Watch.job`."""

    __slots__ = ("_at_ns", "_done", "_length", "_watch")

    def __init__(self, watch: _Watch, length: Optional[SpanLike], at_ns: Optional[int]) -> None:
        """Not for programs: `Watch.job` makes jobs."""
        self._watch = watch
        self._length = length
        self._at_ns = at_ns
        self._done: Optional[Done] = None

    def __enter__(self) -> Self:
        self._watch.begin(self._length, at_ns=self._at_ns)
        return self

    def __exit__(self, *_raised: object) -> Literal[False]:
        self._done = self._watch.end()
        return False

    @property
    def done(self) -> Done:
        """When it was due and when it was over.

        Raises `hourglass.errors.ClosedError` before its end.
        """
        if self._done is None:
            raise ClosedError("the job is not over: ask after its with statement")
        return self._done

    @property
    def missed(self) -> bool:
        """Whether it was over at its deadline or after. Raises what `done` raises."""
        return self.done.missed


class Watch(_Watch):
    """Watches the deadlines of the thread that begins it: `with Watch(call) as watch:`.

    `call` is called with a `Fault` when a deadline has passed, and answers None, a length of time or `"end"`; without it
    faults are only counted. `arm` and `disarm` are for a deadline without a with statement, `arm_budget` for one in CPU time.

    Beginning it raises `BusyError` if this thread is watched already or the signal has a handler of the program's, and
    `ExhaustedError` if no signal remains (`ulimit -i`).
    """

    def __enter__(self) -> Self:
        self.start()
        return self

    def job(self, length: Optional[SpanLike] = None, *, at_ns: Optional[int] = None) -> Job:
        """A with statement around a piece of work that is to be over `length` after its start.

        `at_ns` is a time of `clock.now_ns()`'s scale instead, such as a tick's `deadline_ns`. A deadline that has passed
        is a fault at once.
        """
        return Job(self, length, at_ns)
