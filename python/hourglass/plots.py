"""Plots of traces, latencies, causes and schedules, with matplotlib.

    >>> import hourglass
    >>> from hourglass import plots
    >>> run = hourglass.open_run("monday")  # doctest: +SKIP
    >>> ax = plots.latency_histogram(run)  # doctest: +SKIP
    >>> ax.figure.savefig("monday.png")  # doctest: +SKIP

Each function draws into `ax`, or into a new figure, and returns the axes; nothing is shown or saved.
matplotlib is imported when the first plot is drawn. Colours are those of Okabe and Ito, which people with
any colour vision tell apart; causes that share a colour differ by their hatching.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from .errors import InvalidError
from .frames import Frame, needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .runs import Run
    from .sched import Simulation

__all__ = [
    "distribution",
    "gap_causes",
    "latency_histogram",
    "responses",
    "schedule",
    "timeline",
]

_BLACK = "#000000"
_BLUE = "#0072B2"
_SKY = "#56B4E9"
_GREEN = "#009E73"
_ORANGE = "#E69F00"
_VERMILION = "#D55E00"
_PURPLE = "#CC79A7"
_YELLOW = "#F0E442"
_GREY = "#999999"
_LIGHT = "#D9D9D9"

_CYCLE = (_BLUE, _ORANGE, _GREEN, _VERMILION, _PURPLE, _SKY, _BLACK, _YELLOW)

_CAUSES = {
    "context_switch_voluntary": (_SKY, ""),
    "context_switch_involuntary": (_BLUE, ""),
    "context_switch": (_BLUE, "////"),
    "timer_tick": (_ORANGE, ""),
    "irq": (_YELLOW, ""),
    "softirq": (_YELLOW, "////"),
    "migration": (_GREEN, ""),
    "page_fault": (_GREEN, "////"),
    "rt_throttling": (_VERMILION, ""),
    "deadline_budget": (_VERMILION, "////"),
    "cgroup_quota": (_VERMILION, "xxxx"),
    "stopped": (_PURPLE, ""),
    "below_kernel": (_BLACK, ""),
    "unknown": (_GREY, ""),
}
"""The colour and the hatching of each cause."""

_UNITS = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))

_MOST_RECTANGLES = 20_000
"""More are slow to draw and cannot be told apart."""

_US = 1_000


def _axes(ax: Optional[Axes], width: float = 9.0, height: float = 4.5) -> Axes:
    if ax is not None:
        return ax
    pyplot = needed("matplotlib.pyplot", "a plot")
    _figure, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    return ax


def _unit(largest_ns: float) -> tuple[int, str]:
    """The largest unit in which the value is at least 2."""
    fitting = [unit for unit in _UNITS if largest_ns >= 2 * unit[0]]
    return fitting[-1] if fitting else _UNITS[0]


def _time(ns: float) -> str:
    """A time with three digits and its unit."""
    size, unit = _unit(abs(ns))
    return f"{ns / size:.3g} {unit}" if ns / size < 1_000 else f"{ns / size:.0f} {unit}"


def _name(thread: Mapping[str, Any]) -> str:
    name = thread.get("name")
    return str(name) if name else f"{thread['id']}: {thread['workload']}"


def _named(run: Run) -> dict[int, str]:
    return {thread["id"]: _name(thread) for thread in run.threads}


def _by_thread(frame: Frame, column: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for thread, value in zip(frame["thread"], frame[column]):
        found.setdefault(thread, []).append(value)
    return found


def _tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)


def latency_histogram(
    run: Run,
    *,
    threads: Optional[Sequence[int]] = None,
    step_ns: int = 1_000,
    ax: Optional[Axes] = None,
) -> Axes:
    """How late wake-ups were: counts on a logarithmic scale, as the latency plots of OSADL.

    One line for each thread that measured latency, in steps of `step_ns`; the legend has the least, the mean
    and the largest lateness. Times are microseconds.

    Raises `hourglass.errors.InvalidError` if no such thread measured latency.
    """
    if step_ns < 1:
        raise InvalidError(f"step_ns: {step_ns} is no step; give 1 or more")
    late = _by_thread(run.latencies, "late_ns")
    chosen = [thread for thread in (late if threads is None else threads) if late.get(thread)]
    if not chosen:
        raise InvalidError("no thread measured latency; run a workload 'LAT ...'")
    ax = _axes(ax)
    names, facts = _named(run), {thread["id"]: thread["latency"] for thread in run.threads}
    for colour, thread in zip(_cycle(len(chosen)), chosen):
        counts: dict[int, int] = {}
        for ns in late[thread]:
            counts[ns // step_ns] = counts.get(ns // step_ns, 0) + 1
        first, last = min(counts), max(counts)
        edges = [step * step_ns / _US for step in range(first, last + 2)]
        heights = [counts.get(step, 0) for step in range(first, last + 1)]
        latency = facts[thread]
        label = (
            f"{names[thread]}  (min {_time(latency['min_ns'])}, mean {_time(latency['mean_ns'])}, "
            f"max {_time(latency['max_ns'])}, {latency['count']} wake-ups)"
        )
        ax.stairs(heights, edges, color=colour, label=label, fill=len(chosen) == 1, alpha=0.9)
        # The latest is what counts, and one sample is easily overlooked.
        ax.plot([(last + 0.5) * step_ns / _US], [counts[last]], marker="v", color=colour, markersize=5)
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.7)
    ax.set_xlim(left=0)
    ax.set_xlabel("lateness of the wake-up (µs)")
    ax.set_ylabel(f"wake-ups in each {_time(step_ns)}")
    ax.grid(True, which="major", color=_LIGHT, linewidth=0.6)
    ax.legend(loc="upper right", frameon=False, fontsize="small")
    _tidy(ax)
    return ax


def _cycle(count: int) -> list[str]:
    return [_CYCLE[number % len(_CYCLE)] for number in range(count)]


def distribution(
    run: Run,
    *,
    what: str = "latency",
    threads: Optional[Sequence[int]] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """The share of wake-ups (`what="latency"`) or gaps (`"gaps"`) that are longer than a time; both scales
    are logarithmic, so that p99, p99.9 and the tail behind them are seen alike.

    Raises `hourglass.errors.InvalidError` if there are none.
    """
    if what == "latency":
        values, things = _by_thread(run.latencies, "late_ns"), "wake-ups"
    elif what == "gaps":
        values, things = _by_thread(run.gaps, "length_ns"), "gaps"
    else:
        raise InvalidError(f"what: '{what}': use latency or gaps")
    chosen = [thread for thread in (values if threads is None else threads) if values.get(thread)]
    if not chosen:
        raise InvalidError(f"this run has no {things}")
    ax = _axes(ax)
    names = _named(run)
    size, unit = _unit(max(max(values[thread]) for thread in chosen))
    for colour, thread in zip(_cycle(len(chosen)), chosen):
        ordered = sorted(values[thread])
        count = len(ordered)
        # The share that is at least as long: the longest one of n has the share 1/n.
        shares = [100.0 * (count - place) / count for place in range(count)]
        label = f"{names[thread]}  ({count} {things}, max {_time(ordered[-1])})"
        times = [ns / size for ns in ordered]
        ax.step(times, shares, where="pre", color=colour, label=label, linewidth=1.6)
    for share, name in ((1.0, "p99"), (0.1, "p99.9")):
        ax.axhline(share, color=_GREY, linewidth=0.8, linestyle=":")
        ax.annotate(
            name,
            (1.0, share),
            xycoords=ax.get_yaxis_transform(),
            xytext=(-3, 2),
            textcoords="offset points",
            ha="right",
            fontsize="small",
            color="#555555",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(f"{'lateness' if what == 'latency' else 'length of the gap'} ({unit})")
    ax.set_ylabel(f"{things} at least as long (%)")
    ax.grid(True, which="major", color=_LIGHT, linewidth=0.6)
    ax.legend(loc="lower left", frameon=False, fontsize="small")
    _tidy(ax)
    return ax


def gap_causes(run: Run, *, ax: Optional[Axes] = None) -> Axes:
    """The causes of gaps: the time that each took, with the number and the longest of its gaps.

    Raises `hourglass.errors.InvalidError` if no gap has a cause.
    """
    causes = sorted(run.causes, key=lambda cause: int(cause["total_ns"]))
    if not causes:
        raise InvalidError("no gap of this run has a cause")
    ax = _axes(ax, height=1.4 + 0.45 * len(causes))
    largest = causes[-1]["total_ns"]
    size, unit = _unit(largest)
    for place, cause in enumerate(causes):
        colour, hatch = _CAUSES.get(cause["cause"], (_GREY, ""))
        total = cause["total_ns"] / size
        ax.barh(place, total, color=colour, hatch=hatch, edgecolor="white", height=0.7)
        gaps = "1 gap" if cause["count"] == 1 else f"{cause['count']} gaps"
        text = f" {_time(cause['total_ns'])}: {gaps}, longest {_time(cause['max_ns'])}"
        ax.annotate(text, (total, place), va="center", fontsize="small")
    ax.set_yticks(range(len(causes)), [cause["cause"].replace("_", " ") for cause in causes])
    # Room for the text behind the longest bar.
    ax.set_xlim(0, 1.5 * largest / size)
    ax.set_xlabel(f"time taken from the threads ({unit})")
    ax.tick_params(axis="y", length=0)
    _tidy(ax)
    return ax


def timeline(
    run: Run,
    *,
    start_ns: int = 0,
    end_ns: Optional[int] = None,
    threads: Optional[Sequence[int]] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """Who ran when: a row for each thread, its intervals as rectangles, its gaps in the colours of their causes.

    Shows the run from `start_ns` to `end_ns`, ns from the run's start; without an end as much as 20 000
    rectangles show, which the title says.

    Raises `hourglass.errors.InvalidError` if nothing ran in this time.
    """
    shown = [t for t in run.threads if threads is None or t["id"] in threads]
    rows = {thread["id"]: row for row, thread in enumerate(shown)}
    pieces, end = _pieces(run.intervals, rows, start_ns, end_ns)
    if not pieces:
        raise InvalidError(f"no thread ran from {start_ns} ns on; look at run.intervals")
    ax = _axes(ax, width=11.0, height=1.6 + 0.6 * len(rows))
    size, unit = _unit(end - start_ns)
    _rectangles(ax, pieces, size)
    used = _gaps(ax, run, rows, (start_ns, end), size)
    _rows(ax, [_name(thread) for thread in shown], (start_ns / size, end / size), unit)
    if end_ns is None and end < run.manifest["elapsed_ns"]:
        ax.set_title(f"the first {_time(end - start_ns)} of what follows", loc="left", fontsize="medium")
    _legend(ax, [("ran", _LIGHT, ""), *((cause.replace("_", " "), *_CAUSES[cause]) for cause in used)])
    return ax


_Piece = tuple[int, int, int]
"""A row, a beginning and an end."""


def _pieces(
    intervals: Frame, rows: Mapping[int, int], start: int, end: Optional[int]
) -> tuple[list[_Piece], int]:
    """The intervals of the rows within a window, and its end."""
    pieces: list[_Piece] = []
    reached = start
    for thread, begun, ended in zip(
        intervals["thread"], intervals["start_ns"], intervals["end_ns"]
    ):
        row = rows.get(thread)
        if row is None or ended <= start:
            continue
        if (end is not None and begun >= end) or (end is None and len(pieces) >= _MOST_RECTANGLES):
            break
        reached = max(reached, ended)
        pieces.append((row, max(begun, start), ended if end is None else min(ended, end)))
    return pieces, reached if end is None else end


def _rectangles(ax: Axes, pieces: Sequence[_Piece], size: int) -> None:
    by_row: dict[int, list[tuple[float, float]]] = {}
    for row, begun, ended in pieces:
        by_row.setdefault(row, []).append((begun / size, (ended - begun) / size))
    for row, spans in by_row.items():
        ax.broken_barh(spans, (row - 0.35, 0.7), facecolors=_LIGHT, edgecolors="none")


def _gaps(
    ax: Axes, run: Run, rows: Mapping[int, int], window: tuple[int, int], size: int
) -> list[str]:
    """Draws the gaps; returns the causes that there are."""
    gaps, (start, end) = run.gaps, window
    words = gaps.labels["cause"]
    by_kind: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for thread, begun, ended, code in zip(
        gaps["thread"], gaps["start_ns"], gaps["end_ns"], gaps["cause"]
    ):
        row = rows.get(thread)
        if row is None or ended <= start or begun >= end:
            continue
        begun, ended = max(begun, start), min(ended, end)
        span = (begun / size, (ended - begun) / size)
        by_kind.setdefault((row, words[code]), []).append(span)
    for (row, cause), spans in by_kind.items():
        colour, hatch = _CAUSES[cause]
        # The line in the gap's own colour keeps one that is narrower than a pixel visible.
        ax.broken_barh(
            spans, (row - 0.35, 0.7), facecolors=colour, edgecolors=colour, linewidth=0.6, hatch=hatch
        )
    found = {cause for _row, cause in by_kind}
    return [cause for cause in _CAUSES if cause in found]


def _rows(ax: Axes, names: Sequence[str], window: tuple[float, float], unit: str) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(*window)
    ax.set_xlabel(f"time from the start ({unit})")
    ax.tick_params(axis="y", length=0)
    ax.grid(True, axis="x", color=_LIGHT, linewidth=0.6)
    _tidy(ax)


def _legend(ax: Axes, entries: Sequence[tuple[str, str, str]]) -> None:
    patches = needed("matplotlib.patches", "a plot")
    handles = [
        patches.Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=label)
        for label, colour, hatch in entries
    ]
    ax.legend(
        handles=handles,
        loc="lower left",
        bbox_to_anchor=(0.0, 1.01),
        ncols=min(5, len(handles)),
        frameon=False,
        fontsize="small",
        borderaxespad=0.0,
    )


def schedule(
    simulation: Simulation,
    *,
    start_ns: int = 0,
    end_ns: Optional[int] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """The schedule of a simulation: a row for each task, its jobs as rectangles in the colour of their CPU.

    Arrows upwards are nominal arrivals, arrows downwards deadlines; they are left out for tasks with
    release jitter, bursts or sporadic arrivals, whose arrivals a schedule does not show. Without `end_ns`, the first two
    hyperperiods or what 20 000 rectangles show.

    Raises `hourglass.errors.InvalidError` if the simulation has no schedule.
    """
    frame = simulation.schedule
    if frame is None or not len(frame):
        raise InvalidError("the simulation has no schedule; simulate with schedule=True")
    document = simulation.document
    repeats = document["hyperperiod_ns"]
    simulated = document["simulated_ns"]
    if end_ns is None and repeats is not None and start_ns + 2 * repeats < simulated:
        end_ns = start_ns + 2 * repeats
    named = [(entry["thread"], entry["name"]) for entry in document["tasks"]]
    named += [(entry["thread"], entry["name"]) for entry in document["background"]]
    rows = {thread: row for row, (thread, _name) in enumerate(named)}
    ax = _axes(ax, width=11.0, height=1.6 + 0.6 * len(rows))
    pieces, end = _pieces(frame, rows, start_ns, end_ns)
    end = simulated if end_ns is None and len(pieces) < _MOST_RECTANGLES else end
    size, unit = _unit(end - start_ns)
    cpus = sorted(set(frame["cpu"]))
    colours = dict(zip(cpus, _cycle(len(cpus))))
    for cpu in cpus:
        _jobs(ax, frame, rows, (cpu, colours[cpu]), (start_ns, end), size)
    for task in simulation.set_of_tasks.to_dict()["task"]:
        _arrivals(ax, simulation, task, rows, (start_ns, end), size)
    _rows(ax, [name for _thread, name in named], (start_ns / size, end / size), unit)
    _legend(ax, [(f"CPU {cpu}", colours[cpu], "") for cpu in cpus])
    return ax


def _jobs(
    ax: Axes,
    frame: Frame,
    rows: Mapping[int, int],
    cpu_and_colour: tuple[int, str],
    window: tuple[int, int],
    size: int,
) -> None:
    cpu, colour = cpu_and_colour
    start, end = window
    spans: dict[int, list[tuple[float, float]]] = {}
    for thread, on, begun, ended in zip(
        frame["thread"], frame["cpu"], frame["start_ns"], frame["end_ns"]
    ):
        row = rows.get(thread)
        if row is None or on != cpu or ended <= start or begun >= end:
            continue
        begun, ended = max(begun, start), min(ended, end)
        spans.setdefault(row, []).append((begun / size, (ended - begun) / size))
    for row, found in spans.items():
        ax.broken_barh(
            found, (row - 0.25, 0.6), facecolors=colour, edgecolors="white", linewidth=0.5
        )


def _arrivals(
    ax: Axes,
    simulation: Simulation,
    task: Mapping[str, Any],
    rows: Mapping[int, int],
    window: tuple[int, int],
    size: int,
) -> None:
    """Arrows of nominal arrivals and deadlines."""
    if task.get("jitter") or task.get("arrivals") or task.get("activation", "periodic") != "periodic":
        return
    facts = next(found for found in simulation.tasks if found["name"] == task["name"])
    row, period = rows[facts["thread"]], facts["period_ns"]
    start, end = window
    offset = _span(task.get("offset", 0))
    first = max(0, -(-(start - offset) // period))
    arrivals = range(offset + first * period, end, period)
    most = _MOST_RECTANGLES // 10
    if len(arrivals) > most:
        return
    for times, sign, colour in (
        (arrivals, 1, "#333333"),
        ([at + facts["deadline_ns"] for at in arrivals], -1, _VERMILION),
    ):
        within = [at / size for at in times if start <= at <= end]
        ax.plot(
            within,
            [row - 0.36 if sign > 0 else row + 0.42] * len(within),
            linestyle="none",
            marker="^" if sign > 0 else "v",
            color=colour,
            markersize=5,
            clip_on=False,
        )


def _span(given: Union[int, str]) -> int:
    from . import _hourglass

    return _hourglass.span_ns(given)


def responses(found: Union[Mapping[str, Any], Simulation], *, ax: Optional[Axes] = None) -> Axes:
    """Response times beside deadlines: of `sched.check`, `sched.predict` or a simulation.

    A bar for each task and each kind (bound, simulated, measured); a black line is the deadline. Where there is
    no bound, that is said.

    Raises `hourglass.errors.InvalidError` for another document.
    """
    rows, kinds = _responses(found)
    if not rows:
        raise InvalidError("there are no tasks in it")
    ax = _axes(ax, height=1.5 + 0.75 * len(rows))
    known = [value for _name, deadline, values in rows for value in (deadline, *values) if value]
    size, unit = _unit(max(known))
    height = 0.75 / len(kinds)
    colours = {"bound": _BLUE, "simulated": _SKY, "measured": _ORANGE}
    for place, (_name, deadline, values) in enumerate(rows):
        for number, (kind, value) in enumerate(zip(kinds, values)):
            at = place - 0.375 + height * (number + 0.5)
            if value is None:
                ax.annotate(f" no {kind} time", (0, at), va="center", fontsize="small", color="#555555")
                continue
            late = value > deadline
            label = kind if place == 0 else None
            hatch = "////" if late else ""
            ax.barh(
                at, value / size, height, color=colours[kind], hatch=hatch, edgecolor="white", label=label
            )
            text = f" {_time(value)}{', late' if late else ''}"
            ax.annotate(text, (value / size, at), va="center", fontsize="small")
        line = "deadline" if place == 0 else None
        ax.vlines(deadline / size, place - 0.45, place + 0.45, color=_BLACK, linewidth=2, label=line)
    ax.set_yticks(range(len(rows)), [name for name, _deadline, _values in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, 1.2 * max(known) / size)
    ax.set_xlabel(f"response time ({unit})")
    ax.tick_params(axis="y", length=0)
    ax.legend(loc="lower left", bbox_to_anchor=(0, 1.01), ncols=4, frameon=False, fontsize="small")
    _tidy(ax)
    return ax


_Row = tuple[str, int, list[Optional[int]]]


def _responses(found: Union[Mapping[str, Any], Simulation]) -> tuple[list[_Row], list[str]]:
    """Of each task its name, deadline and response times; and what these are."""
    document = found if isinstance(found, dict) else getattr(found, "document", {})
    tasks = document.get("tasks", [])
    schema = document.get("schema", "")
    if schema.startswith("hourglass.check/"):
        kinds = {"bound": "response_time_ns"}
    elif schema.startswith("hourglass.simulate/"):
        kinds = {"simulated": "max_response_ns"}
    elif schema.startswith("hourglass.predict/"):
        kinds = {"bound": "bound_ns", "simulated": "simulated_ns", "measured": "measured_ns"}
        kinds = {kind: key for kind, key in kinds.items() if any(t[key] for t in tasks)}
    else:
        raise InvalidError("give the document of check or predict, or a simulation")
    rows = [
        (task["name"], task["deadline_ns"], [task[key] for key in kinds.values()]) for task in tasks
    ]
    return rows, list(kinds)
