"""What is looked at of a node's run: the longest gaps, and how much each cause took in each part of the time."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..runs import Run
from .node import engine_process

__all__ = ["Digest", "Gap", "WINDOWS", "digest"]

WINDOWS = 20
"""Parts that a run's time is cut into, so that a single event is distinguished from a lasting one."""

_LONGEST = 5


@dataclass(frozen=True)
class Gap:
    """A thread did not run. Times are nanoseconds from the run's beginning."""

    thread: int
    cpu: int
    cause: str
    start_ns: int
    end_ns: int
    names: tuple[str, ...] = ()
    """The occupants of that CPU meanwhile, where they are known: the most likely first."""

    @property
    def length_ns(self) -> int:
        """How long it was, ns."""
        return self.end_ns - self.start_ns

    @property
    def engine(self) -> tuple[str, ...]:
        """Those of them that are the engine's own."""
        return tuple(name for name in self.names if engine_process(name))

    def __str__(self) -> str:
        who = f" ({', '.join(self.names[:3])})" if self.names else ""
        start, end = self.start_ns / 1e6, self.end_ns / 1e6
        return f"{self.cause}{who}, {self.length_ns / 1e3:.1f} us at {start:.3f}..{end:.3f} ms on CPU {self.cpu}"


@dataclass
class Digest:
    """A node's run in short."""

    elapsed_ns: int
    threads: int
    max_gap_ns: int
    max_latency_ns: int | None
    """The longest wake-up latency; None if no thread measured it."""
    total_ns: dict[str, int] = field(default_factory=dict)
    """What each cause took of all threads, ns."""
    count: dict[str, int] = field(default_factory=dict)
    longest: dict[str, Gap] = field(default_factory=dict)
    """The longest gap of each cause."""
    worst: list[Gap] = field(default_factory=list)
    """The longest gaps, the longest first."""
    window_total_ns: dict[str, list[int]] = field(default_factory=dict)
    """What each cause took in each window, ns. A gap belongs to the window of its end."""
    window_longest_ns: dict[str, list[int]] = field(default_factory=dict)


def digest(run: Run) -> Digest:
    """Reads a run. Gaps above a microsecond have causes."""
    threads = run.threads
    elapsed = max(1, int(run.manifest["elapsed_ns"]))
    latencies = [thread["latency"]["max_ns"] for thread in threads if thread["latency"]]
    found = Digest(
        elapsed_ns=elapsed,
        threads=max(1, len(threads)),
        max_gap_ns=max((thread["gaps"]["max_ns"] or 0 for thread in threads if thread["gaps"]), default=0),
        max_latency_ns=max((one or 0 for one in latencies), default=None),
    )
    gaps = run.gaps
    words = gaps.labels["cause"]
    columns = (gaps[name] for name in ("thread", "cpu_after", "cause", "start_ns", "end_ns"))
    rows = sorted(zip(*columns), key=lambda row: row[3] - row[4])
    names = _meanwhile(run.document)
    for thread, cpu, code, start, end in rows:
        cause, length = words[code], end - start
        if cause not in found.total_ns:
            found.total_ns[cause] = found.count[cause] = 0
            found.window_total_ns[cause] = [0] * WINDOWS
            found.window_longest_ns[cause] = [0] * WINDOWS
            found.longest[cause] = Gap(thread, cpu, cause, start, end, names.get((thread, end), ()))
        if len(found.worst) < _LONGEST:
            found.worst.append(Gap(thread, cpu, cause, start, end, names.get((thread, end), ())))
        found.total_ns[cause] += length
        found.count[cause] += 1
        window = min(WINDOWS - 1, max(0, end * WINDOWS // elapsed))
        found.window_total_ns[cause][window] += length
        found.window_longest_ns[cause][window] = max(found.window_longest_ns[cause][window], length)
    return found


def _meanwhile(document: dict[str, Any]) -> dict[tuple[int, int], tuple[str, ...]]:
    """The occupants of the longest gaps, by thread and end; not the run's own command."""
    found = {}
    for one in document.get("meanwhile") or []:
        if one["of"] == "gap":
            names = (who["name"] for who in sorted(one["ran"], key=lambda who: -who["total_ns"]))
            found[one["thread"], one["at_ns"]] = tuple(dict.fromkeys(name for name in names if not name.startswith("hourglass")))
    return found
