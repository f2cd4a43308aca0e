"""Exceptions.

Each refusal of Hourglass itself is an `Error`: `kind` is a name that programs may test,
`errno` the operating system's number or None, `remedy` the command that helps or None. Each is also
the builtin exception that a Python program would expect (`ValueError` for an invalid
argument, `PermissionError` for a missing privilege, `OSError` for what the system refuses).

An argument of a wrong type raises the builtin `TypeError`, as everywhere in Python, and a count that no counter holds
(a negative one, say) `OverflowError`. Invalid times, negative or too long, are `InvalidError`s.
"""

from __future__ import annotations

from typing import Optional

__all__ = [
    "BusyError",
    "CancelledError",
    "ClosedError",
    "DataError",
    "EndedError",
    "Error",
    "ExhaustedError",
    "ForkedError",
    "InvalidError",
    "LostError",
    "PermissionDeniedError",
    "SystemRefusedError",
    "UnsupportedError",
    "WrongThreadError",
]


class Error(Exception):
    """Hourglass refuses something; the text names the culprit and what to do."""

    kind: str = "other"
    """A name for programs, one for each class but `Error` itself."""
    errno: Optional[int]
    """The operating system's number (`errno` has the names), or None."""
    remedy: Optional[str]
    """The line that mends it, where the text does not say it already; or None."""
    text: str
    """The sentence."""

    def __init__(self, text: str = "", errno: Optional[int] = None, remedy: Optional[str] = None) -> None:
        super().__init__(text)
        self.text = text
        self.errno = errno
        self.remedy = remedy

    def __str__(self) -> str:
        return self.text if self.remedy is None else f"{self.text}; {self.remedy}"

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.text, self.errno, self.remedy))


class InvalidError(Error, ValueError):
    """Something was given that cannot be meant: another value helps."""

    kind = "invalid"


class ClosedError(Error, ValueError):
    """A thing that was closed or has ended, as files raise `ValueError` for."""

    kind = "closed"


class BusyError(Error, RuntimeError):
    """Another call or thread uses it now."""

    kind = "busy"


class WrongThreadError(Error, RuntimeError):
    """It belongs to another thread."""

    kind = "wrong_thread"


class PermissionDeniedError(Error, PermissionError):
    """A privilege is missing; the text or `remedy` has the line that grants it."""

    kind = "permission"


class ExhaustedError(Error, OSError):
    """The machine has no more of it: memory, files, threads, signals."""

    kind = "exhausted"


class UnsupportedError(Error, OSError):
    """This machine or kernel cannot."""

    kind = "unsupported"


class SystemRefusedError(Error, OSError):
    """The operating system said no."""

    kind = "os"


class DataError(Error, ValueError):
    """A file or folder does not hold what it should."""

    kind = "data"


class ForkedError(Error, RuntimeError):
    """It belongs to the process from which this one was forked: make another one here."""

    kind = "forked"


class CancelledError(Error, RuntimeError):
    """The time did not come: a timer was cancelled or terminated, or its clock was set."""

    kind = "cancelled"


class EndedError(Error, RuntimeError):
    """A deadline's handler ended this work: let it go up to where the work began."""

    kind = "ended"


class LostError(Error, RuntimeError):
    """Work on another process or machine did not come back, however often it was asked for."""

    kind = "lost"


_KINDS: dict[str, type[Error]] = {
    found.kind: found
    for found in (
        InvalidError,
        ClosedError,
        BusyError,
        WrongThreadError,
        PermissionDeniedError,
        ExhaustedError,
        UnsupportedError,
        SystemRefusedError,
        DataError,
        ForkedError,
        CancelledError,
        EndedError,
        LostError,
    )
}


def _of_kind(kind: str, text: str, errno: Optional[int], remedy: Optional[str]) -> Error:
    """The exception of a kind; the extension module calls this."""
    return _KINDS.get(kind, Error)(text, errno, remedy)
