"""Clocks of nodes: how a monotonic clock stands to UTC, and how sure that is.

Run folders have the time in UTC from before the run and after it, with the narrowest bound on its error that somebody vouched for
(`utc` in the manifest): chronyd's, a PTP clock's, ClockBound's, or that which the kernel keeps for chronyd or ntpd (`adjtimex`).
systemd-timesyncd and phc2sys state none. Two times of different machines are together only where the bounds of both leave no other
possibility.
"""

from __future__ import annotations

from typing import Any, Mapping, Optional

__all__ = ["Relation", "relation"]

_DRIFT_PARTS = 2_000
"""An interval divided by this is what the kernel adds to its bound while the clock is not corrected (500 ppm)."""


class Relation:
    """From a node's monotonic time to UTC, with a bound."""

    def __init__(self, offset_ns: int, bound_ns: int) -> None:
        self.offset_ns = offset_ns
        """UTC less monotonic, ns."""
        self.bound_ns = bound_ns
        """The most that it is wrong by, ns."""


def relation(readings: Optional[list[Mapping[str, Any]]]) -> Optional[Relation]:
    """What the readings before and after a run allow to say; None where the clock was not synchronised or was set."""
    if not readings or not all(_is_stated(one) for one in readings):
        return None
    offsets = [one["realtime_ns"] - one["monotonic_ns"] for one in readings]
    errors = [one["max_error_ns"] + one["bracket_ns"] for one in readings]
    middle = (min(offsets) + max(offsets)) // 2
    # In between no bound was read: it grows from either end.
    drift = (readings[-1]["monotonic_ns"] - readings[0]["monotonic_ns"]) // _DRIFT_PARTS
    error = max(*errors, (errors[0] + errors[-1] + drift + 1) // 2)
    # The monotonic clock is slewed with UTC; what is left between the readings is a step or the clocks' difference.
    return Relation(middle, error + (max(offsets) - min(offsets) + 1) // 2)


def _is_stated(reading: Mapping[str, Any]) -> bool:
    """A multiple of what the kernel adds each second began at 0: its synchroniser stated no bound."""
    error = reading["max_error_ns"]
    return error is not None and (reading.get("source", "adjtimex") != "adjtimex" or error % 500_000 != 0)
