"""Runs: what was measured, and the folders in which runs are stored.

    >>> import hourglass
    >>> run = hourglass.open_run("monday")  # doctest: +SKIP
    >>> run.manifest["clock"]["source"]  # doctest: +SKIP
    >>> run.causes  # doctest: +SKIP
    >>> run.intervals.to_pandas()  # doctest: +SKIP
    >>> run.missing  # doctest: +SKIP

Documents are dictionaries and equal what `hourglass show --json` prints (`hourglass.run/1`); records are
`hourglass.frames.Frame`s. Records of a folder are read at their first use.
"""

from __future__ import annotations

import json
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Optional, Union

from . import _hourglass
from .frames import Frame

if TYPE_CHECKING:
    import os

__all__ = ["Run", "open_run"]

_INTERVALS_UNKNOWN = ("cleared", "involuntary", "voluntary", "faults")
_GAPS_UNKNOWN = (
    "to_thread",
    "to_tid",
    "switched_ns",
    "tick_ns",
    "irq_ns",
    "softirq_ns",
    "fault_ns",
    "signal_ns",
    "silent_ns",
)


def open_run(path: Union[str, os.PathLike[str]]) -> Run:
    """Opens a folder that `hourglass run -o`, `hourglass.run(output=...)` or a simulation wrote.

    Raises `hourglass.errors.DataError` with the sentence of the command where the folder holds no run, is
    half-written, damaged or of another version. Damaged records raise it when they are read.
    """
    return Run(_hourglass.open_run(path))


class Run:
    """A run: its document and its records."""

    def __init__(self, data: _hourglass.RunData) -> None:
        """Not for programs: `hourglass.run` and `open_run` make runs."""
        self._data = data

    @cached_property
    def document(self) -> dict[str, Any]:
        """The document `hourglass.run/1`, as `hourglass show --json` prints it."""
        found: dict[str, Any] = json.loads(self._data.document())
        return found

    @property
    def folder(self) -> Optional[Path]:
        """Its folder; None for a run in memory only."""
        folder = self._data.folder()
        return None if folder is None else Path(folder)

    @property
    def manifest(self) -> dict[str, Any]:
        """What explains the numbers: the machine, the clock, the threads as they were asked for."""
        found: dict[str, Any] = self.document["manifest"]
        return found

    @property
    def threads(self) -> list[dict[str, Any]]:
        """What each thread did and what was done to it, in the order of their numbers."""
        found: list[dict[str, Any]] = self.document["threads"]
        return found

    @property
    def causes(self) -> list[dict[str, Any]]:
        """The causes of gaps by name: how many, how long, how sure."""
        found: list[dict[str, Any]] = self.document["causes"]
        return found

    @property
    def inferences(self) -> list[dict[str, Any]]:
        """What the trace says by the rules of the Hourglass paper's sections 4 and 5."""
        found: list[dict[str, Any]] = self.document.get("inferences", [])
        return found

    @property
    def warnings(self) -> list[dict[str, Any]]:
        """What must be known before the numbers are believed: `id`, `text`, `remedy`."""
        found: list[dict[str, Any]] = self.document["warnings"]
        return found

    @property
    def gates(self) -> list[dict[str, Any]]:
        """Limits of the run, and whether it met each."""
        found: list[dict[str, Any]] = self.document["gates"]
        return found

    @property
    def passed(self) -> bool:
        """Whether every limit was met; also if there was none. Not where a premise broke: then nothing is decided."""
        return not self.document.get("premises") and all(gate["passed"] for gate in self.gates)

    @property
    def interrupted(self) -> bool:
        """Whether a signal ended it early."""
        return bool(self.document["interrupted"])

    @cached_property
    def summary(self) -> Frame:
        """One row for each thread: the numbers of `threads` side by side, `None` where there are none."""
        plain = ("workload", "policy", "cpu_time_ns", "wall_ns", "intervals", "records_dropped")
        parts = {
            "gaps": ("count", "total_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"),
            "deadlines": ("hit", "missed", "lost"),
            "latency": ("count", "min_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns", "mean_ns", "lost"),
        }
        columns: dict[str, list[Any]] = {
            "id": [thread["id"] for thread in self.threads],
            "name": [thread.get("name") for thread in self.threads],
            **{name: [thread[name] for thread in self.threads] for name in plain},
        }
        for part, names in parts.items():
            for name in names:
                values = [(thread[part] or {}).get(name) for thread in self.threads]
                columns[name if part == "deadlines" else f"{part}_{name}"] = values
        return Frame(columns)

    @cached_property
    def intervals(self) -> Frame:
        """The execution trace in order of start: which thread ran, on which CPU, from when to when.

        `start_ns` and `end_ns` count from the run's start, `start_ticks` and `end_ticks` are the raw
        counter. `onset` says why the interval before this one of the thread ended. `cleared`,
        `involuntary`, `voluntary` and `faults` are the thread's evidence about the gap before it.
        """
        return Frame._of_native(self._data.intervals(), {"onset": _hourglass.ONSETS}, _INTERVALS_UNKNOWN)

    @cached_property
    def gaps(self) -> Frame:
        """The gaps above a microsecond with their causes, in order of thread and then of end.

        `seen` is 1 where the cause follows from what was seen, else it is the best explanation, with a
        `confidence` from 0 to 1. `to_thread` (a thread of the run) or `to_tid` (the kernel's number) had the
        CPU. Where the kernel was traced that is the occupant for the longest time, and `switched_ns` to `silent_ns`
        say where the time went.
        """
        return Frame._of_native(self._data.gaps(), {"cause": _hourglass.CAUSES}, _GAPS_UNKNOWN)

    @cached_property
    def kernel_events(self) -> Frame:
        """The kernel's trace events, in order of time; empty if it was not traced.

        What `a`, `b` and `value` mean depends on `kind`; the chapter on Python has the table.
        """
        return Frame._of_native(self._data.kernel_events(), {"kind": _hourglass.KERNEL_EVENT_KINDS})

    @cached_property
    def latencies(self) -> Frame:
        """Latencies of wake-ups, one by one, in the order of thread and then of waking.

        Where a folder has a histogram only, they come sorted and to its three digits; `missing` says so.
        """
        return Frame._of_native(self._data.wake_ups())

    @cached_property
    def jobs(self) -> Frame:
        """The jobs of periodic threads, by thread: `release_ns`, `deadline_ns`, `started_ns`, `finished_ns`.

        A job that was released while an earlier one ran and never started is `lost`; one that did not start or end
        has no such time. Times count from the run's start. At most 100,000 jobs a thread are stored.
        """
        return Frame._of_native(self._data.jobs(), unknown=("started_ns", "finished_ns"))

    @cached_property
    def missing(self) -> dict[str, str]:
        """What this run does not have, and what would give it: `{"kernel_events": "..."}`."""
        found: dict[str, str] = {}
        simulated = self.manifest.get("simulation") is not None
        traced = self.manifest.get("kernel") is not None
        for facts in self.manifest.get("evidence", []):
            # The kernel's trace has what records of switches would tell.
            if not facts["used"] and not (traced and facts["source"] == "perf"):
                remedy = facts.get("remedy")
                text = facts["found"] if remedy is None else f"{facts['found']}; {remedy}"
                found[f"evidence.{facts['source']}"] = text
        if not traced and not simulated:
            found["kernel_events"] = "the kernel was not traced; run again with trace=True, which needs root"
        if all(thread["latency"] is None for thread in self.threads):
            found["latencies"] = "no thread measured latency; run a workload 'LAT ...'"
        tested = ", ".join(str(thread["id"]) for thread in self.threads if thread["latency"] is not None)
        if tested:
            found["intervals.latency"] = (
                f"intervals and gaps of thread {tested}, which measured latency, are counted and not stored"
            )
        rounded = self._data.rounded()
        if rounded:
            threads = ", ".join(map(str, rounded))
            found["latencies.single"] = (
                f"of thread {threads} only a histogram was stored: values are to three digits, in ascending order"
            )
        dropped = sum(thread["records_dropped"] for thread in self.threads)
        if dropped:
            found["intervals"] = f"{dropped} records had no room; run again with more records"
        return found

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else str(self.folder)
        seconds = self.manifest["elapsed_ns"] / 1e9
        return f"<Run of {len(self.threads)} threads for {seconds:.3f} s, {where}>"
