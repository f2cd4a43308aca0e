"""Measuring a loop of the program's own.

A `Recorder` makes of a loop what `hourglass run` makes of its own threads: a run folder with every interval in which the
thread ran, its gaps, its deadlines, and what the kernel says about them.

    >>> import hourglass
    >>> with hourglass.Recorder("2ms") as recorder:
    ...     for tick in recorder.watch(hourglass.periodic("2ms", count=5)):
    ...         pass
    >>> recorder.result["threads"][0]["deadlines"]["completed"]
    5

Or by marks of one's own: `begin(due_ns)`, `check()` within long periods, `end()`; or `with recorder.period(due_ns):`. With
`folder` the run is stored there, for `hourglass show`, `report` and `export`, and for `hourglass.runs`.

A recorder belongs to the thread that starts it. Nothing is allocated by Rust, locked or written between the marks.
"""

from __future__ import annotations

import json as _json
import os as _os
from types import TracebackType
from typing import TYPE_CHECKING, Any, Iterable, Iterator, Optional, Type, TypeVar, Union

from ._hourglass import Deadlines
from ._hourglass import Recorder as _Recorder

if TYPE_CHECKING:
    from typing_extensions import Self

    from ._hourglass import SpanLike

__all__ = ["Deadlines", "Recorder"]

_T = TypeVar("_T")


class _Period:
    """One period, as a with statement."""

    __slots__ = ("_due_ns", "_recorder")

    def __init__(self, recorder: _Recorder, due_ns: Optional[int]) -> None:
        self._recorder = recorder
        self._due_ns = due_ns

    def __enter__(self) -> None:
        self._recorder.begin(self._due_ns)

    def __exit__(self, *_raised: object) -> None:
        self._recorder.end()


class Recorder(_Recorder):
    """Measures a loop of the program's own, in the thread that starts it.

    `period` and `deadline` (the period unless given) say when a period is hit, missed or lost. Two marks further apart than
    `gap` are a gap; without it gaps are what kernel and CPU clock say. `records` is the number of intervals that fit,
    `ring` stores the newest of them, `jobs` is the number of periods that are stored one by one
    (0 with a folder: up to 100,000). `folder` must not exist.

    Raises `InvalidError` for what cannot be meant and for a folder that cannot be made.
    """

    def __enter__(self) -> Self:
        self.start()
        return self

    def period(self, due_ns: Optional[int] = None) -> _Period:
        """A with statement that marks a period, due at `due_ns` or now."""
        return _Period(self, due_ns)

    def watch(self, ticks: Iterable[_T]) -> Iterator[_T]:
        """Iterates over `ticks`, and marks a period around the body of each.

        A tick of `hourglass.periodic` was due at its expiry; anything else is due when it comes.
        """
        for tick in ticks:
            self.begin(getattr(tick, "expiry_ns", None))
            try:
                yield tick
            finally:
                self.end()

    @property
    def document(self) -> Optional[dict[str, Any]]:
        """The document of the run (`hourglass.run/1`); None before the end."""
        text = self.json
        return None if text is None else _json.loads(text)

    @property
    def result(self) -> Optional[dict[str, Any]]:
        """The document without its manifest: threads, causes, warnings; None before the end."""
        document = self.document
        if document is not None:
            document.pop("manifest", None)
        return document
