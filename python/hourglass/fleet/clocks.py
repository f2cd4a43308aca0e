"""Clocks of nodes: how a monotonic clock stands to UTC, and how sure that is.

The kernel keeps a bound on the error of its UTC (`adjtimex`, `maxerror`), which chronyd, ntpd and ptp4l's phc2sys maintain;
it holds while the kernel says that the clock is synchronised. Two times of different machines are together only
where the bounds of both leave no other possibility.
"""

from __future__ import annotations

import ctypes
import time
from typing import Any, Mapping, Optional

__all__ = ["Relation", "reading", "relation"]

_UNSYNCHRONISED = 0x0040
_ERROR = 5


class _Timex(ctypes.Structure):
    _fields_ = [
        ("modes", ctypes.c_uint),
        ("offset", ctypes.c_long),
        ("freq", ctypes.c_long),
        ("maxerror", ctypes.c_long),
        ("esterror", ctypes.c_long),
        ("status", ctypes.c_int),
        ("rest", ctypes.c_byte * 256),
    ]


def reading() -> dict[str, Any]:
    """Both clocks at one moment: `monotonic_ns`, `realtime_ns`, `bracket_ns` (how long reading took), `max_error_ns`
    (the kernel's bound on its UTC, or None where it is not synchronised)."""
    tries = []
    for _ in range(9):
        before = time.monotonic_ns()
        real = time.time_ns()
        after = time.monotonic_ns()
        tries.append((after - before, (before + after) // 2, real))
    bracket, monotonic, real = min(tries)
    timex = _Timex()
    libc = ctypes.CDLL(None, use_errno=True)
    state = libc.adjtimex(ctypes.byref(timex))
    synchronised = 0 <= state < _ERROR and not timex.status & _UNSYNCHRONISED
    bound = timex.maxerror * 1_000 if synchronised else None
    return {"monotonic_ns": monotonic, "realtime_ns": real, "bracket_ns": bracket, "max_error_ns": bound}


class Relation:
    """From a node's monotonic time to UTC, with a bound."""

    def __init__(self, offset_ns: int, bound_ns: int) -> None:
        self.offset_ns = offset_ns
        """UTC less monotonic, ns."""
        self.bound_ns = bound_ns
        """The most that it is wrong by, ns."""


def relation(readings: Optional[list[Mapping[str, Any]]]) -> Optional[Relation]:
    """What the readings before and after a run allow to say; None where the clock was not synchronised or was set."""
    if not readings or any(one["max_error_ns"] is None for one in readings):
        return None
    offsets = [one["realtime_ns"] - one["monotonic_ns"] for one in readings]
    errors = [one["max_error_ns"] + one["bracket_ns"] for one in readings]
    middle = (min(offsets) + max(offsets)) // 2
    # The monotonic clock is slewed with UTC; what is left between the readings is a step or the clocks' difference.
    return Relation(middle, max(errors) + (max(offsets) - min(offsets) + 1) // 2)
