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

import itertools
from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from . import drawing
from .errors import InvalidError
from .frames import Frame

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


def latency_histogram(
    run: Run,
    *,
    threads: Optional[Sequence[int]] = None,
    step_ns: Optional[int] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """How late wake-ups were: counts on a logarithmic scale, as the latency plots of OSADL.

    One line for each thread that measured latency; the legend has the least, the mean and the largest
    latency, and a mark shows the largest. Steps are `step_ns` wide, by default a microsecond or,
    where there would be more than 500, the next of 2, 5, 10, 20... that makes fewer.

    Raises `hourglass.errors.InvalidError` if no such thread measured latency.
    """
    if step_ns is not None and step_ns < 1:
        raise InvalidError(f"step_ns: {step_ns} is no step; give 1 or more")
    late = drawing.by_thread(run.latencies, "late_ns")
    chosen = [thread for thread in (late if threads is None else threads) if late.get(thread)]
    if not chosen:
        raise InvalidError("no thread measured latency; run a workload 'LAT ...'")
    if step_ns is None:
        step_ns = _step(max(max(late[thread]) for thread in chosen))
    ax = drawing.new_axes(ax)
    names, facts = drawing.thread_names(run), {thread["id"]: thread["latency"] for thread in run.threads}
    for colour, thread in zip(drawing.colours_for(len(chosen)), chosen):
        counts: dict[int, int] = {}
        for ns in late[thread]:
            counts[ns // step_ns] = counts.get(ns // step_ns, 0) + 1
        first, last = min(counts), max(counts)
        edges = [step * step_ns / drawing.US for step in range(first, last + 2)]
        heights = [counts.get(step, 0) for step in range(first, last + 1)]
        latency = facts[thread]
        label = (
            f"{names[thread]}  (min {drawing.time_text(latency['min_ns'])}, mean {drawing.time_text(latency['mean_ns'])}, "
            f"max {drawing.time_text(latency['max_ns'])}, {latency['count']} wake-ups)"
        )
        ax.stairs(heights, edges, color=colour, label=label, fill=len(chosen) == 1, linewidth=1.2)
        # The latest is what counts, and one sample is easily overlooked.
        ax.plot([(last + 0.5) * step_ns / drawing.US], [counts[last]], marker="v", color=colour, markersize=5)
    ax.set_yscale("log")
    ax.set_ylim(bottom=0.7)
    ax.set_xlim(left=0)
    ax.set_xlabel("latency of the wake-up (µs)")
    ax.set_ylabel(f"wake-ups in each {drawing.time_text(step_ns)}")
    ax.grid(True, which="major", color=drawing.LIGHT, linewidth=0.6)
    drawing.plain_numbers(ax.yaxis)
    drawing.legend_above(ax)
    drawing.tidy(ax)
    return ax


_MOST_STEPS = 500
"""More are thinner than a pixel."""


def _step(largest_ns: int) -> int:
    """A microsecond, or the next round time that makes few enough steps."""
    step = drawing.US
    for factor in itertools.cycle((2.0, 2.5, 2.0)):
        if largest_ns <= step * _MOST_STEPS:
            return step
        step = int(step * factor)
    return step


def distribution(
    run: Run,
    *,
    what: str = "latency",
    threads: Optional[Sequence[int]] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """The share of wake-ups (`what="latency"`) or gaps (`"gaps"`) that are at least as long as a time.

    One less the cumulative distribution, on logarithmic scales, so that p99, p99.9 and the tail behind them
    are seen alike.

    Raises `hourglass.errors.InvalidError` if there are none.
    """
    if what == "latency":
        values, things = drawing.by_thread(run.latencies, "late_ns"), "wake-ups"
    elif what == "gaps":
        values, things = drawing.by_thread(run.gaps, "length_ns"), "gaps"
    else:
        raise InvalidError(f"what: '{what}': use latency or gaps")
    chosen = [thread for thread in (values if threads is None else threads) if values.get(thread)]
    if not chosen:
        raise InvalidError(f"this run has no {things}")
    ax = drawing.new_axes(ax)
    names = drawing.thread_names(run)
    size, unit = drawing.unit_for(max(max(values[thread]) for thread in chosen))
    for colour, thread in zip(drawing.colours_for(len(chosen)), chosen):
        ordered = sorted(values[thread])
        count = len(ordered)
        # The share that is at least as long: the longest one of n has the share 1/n.
        shares = [100.0 * (count - place) / count for place in range(count)]
        label = f"{names[thread]}  ({count} {things}, max {drawing.time_text(ordered[-1])})"
        times = [ns / size for ns in ordered]
        ax.step(times, shares, where="pre", color=colour, label=label, linewidth=1.6)
    for share, name in ((1.0, "p99"), (0.1, "p99.9")):
        ax.axhline(share, color=drawing.GREY, linewidth=0.8, linestyle=":")
        ax.annotate(
            name,
            (0.0, share),
            xycoords=ax.get_yaxis_transform(),
            xytext=(3, 2),
            textcoords="offset points",
            fontsize="small",
            color="#555555",
        )
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(f"{'latency' if what == 'latency' else 'length of the gap'} ({unit})")
    ax.set_ylabel(f"{things} at least as long (%)")
    ax.grid(True, which="major", color=drawing.LIGHT, linewidth=0.6)
    drawing.plain_numbers(ax.xaxis)
    drawing.plain_numbers(ax.yaxis)
    drawing.legend_above(ax)
    drawing.tidy(ax)
    return ax


def gap_causes(run: Run, *, ax: Optional[Axes] = None) -> Axes:
    """The causes of gaps: the time that each took, with the number and the longest of its gaps.

    Raises `hourglass.errors.InvalidError` if no gap has a cause.
    """
    causes = sorted(run.causes, key=lambda cause: int(cause["total_ns"]))
    if not causes:
        raise InvalidError("no gap of this run has a cause")
    ax = drawing.new_axes(ax, height=1.4 + 0.45 * len(causes))
    largest = causes[-1]["total_ns"]
    size, unit = drawing.unit_for(largest)
    for place, cause in enumerate(causes):
        colour, hatch = drawing.CAUSES.get(cause["cause"], (drawing.GREY, ""))
        total = cause["total_ns"] / size
        ax.barh(place, total, color=colour, hatch=hatch, edgecolor="white", height=0.7)
        gaps = "1 gap" if cause["count"] == 1 else f"{cause['count']} gaps"
        text = (
            f" {drawing.time_text(cause['total_ns'])}: {gaps}, longest {drawing.time_text(cause['max_ns'])}"
        )
        ax.annotate(text, (total, place), va="center", fontsize="small")
    ax.set_yticks(range(len(causes)), [cause["cause"].replace("_", " ") for cause in causes])
    # Room for the text behind the longest bar.
    ax.set_xlim(0, 1.6 * largest / size)
    ax.set_xlabel(f"time taken from the threads ({unit})")
    ax.tick_params(axis="y", length=0)
    drawing.tidy(ax)
    return ax


_TOLD_APART = 1_000
"""Intervals that can be distinguished in the width of a figure."""


def timeline(
    run: Run,
    *,
    start_ns: int = 0,
    end_ns: Optional[int] = None,
    threads: Optional[Sequence[int]] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """When each thread ran: a row for each thread, its intervals as rectangles, its gaps in the colours of their causes.

    Threads that measured latency store no intervals and have no row, unless `threads` names them.
    Shows the run from `start_ns` to `end_ns`, ns from the run's start; without an end as much as can be
    distinguished (1 000 intervals), which the axis then says.

    Raises `hourglass.errors.InvalidError` if nothing ran in this time.
    """
    stored = set(run.intervals["thread"])
    shown = [t for t in run.threads if t["id"] in (stored if threads is None else threads)]
    rows = {thread["id"]: row for row, thread in enumerate(shown)}
    pieces, end = _pieces(run.intervals, rows, start_ns, end_ns, _TOLD_APART)
    if not pieces:
        raise InvalidError(f"no thread ran from {start_ns} ns on; see run.intervals")
    ax = drawing.new_axes(ax, width=11.0, height=1.6 + 0.6 * len(rows))
    size, unit = drawing.unit_for(end - start_ns)
    _rectangles(ax, pieces, size)
    used = _gaps(ax, run, rows, (start_ns, end), size)
    drawing.label_rows(
        ax, [drawing.thread_name(thread) for thread in shown], (start_ns / size, end / size), unit
    )
    if end_ns is None and end < run.manifest["elapsed_ns"]:
        ax.set_xlabel(f"{ax.get_xlabel()}: the first {drawing.time_text(end - start_ns)} of what is there")
    drawing.legend(
        ax,
        [("ran", drawing.LIGHT, ""), *((cause.replace("_", " "), *drawing.CAUSES[cause]) for cause in used)],
    )
    return ax


_Piece = tuple[int, int, int]
"""A row, a beginning and an end."""


def _pieces(
    intervals: Frame, rows: Mapping[int, int], start: int, end: Optional[int], most: int
) -> tuple[list[_Piece], int]:
    """The intervals of the rows within a window, and its end."""
    pieces: list[_Piece] = []
    reached = start
    for thread, begun, ended in zip(intervals["thread"], intervals["start_ns"], intervals["end_ns"]):
        row = rows.get(thread)
        if row is None or ended <= start:
            continue
        if (end is not None and begun >= end) or (end is None and len(pieces) >= most):
            break
        reached = max(reached, ended)
        pieces.append((row, max(begun, start), ended if end is None else min(ended, end)))
    return pieces, reached if end is None else end


def _rectangles(ax: Axes, pieces: Sequence[_Piece], size: int) -> None:
    by_row: dict[int, list[tuple[float, float]]] = {}
    for row, begun, ended in pieces:
        by_row.setdefault(row, []).append((begun / size, (ended - begun) / size))
    for row, spans in by_row.items():
        ax.broken_barh(spans, (row - 0.35, 0.7), facecolors=drawing.LIGHT, edgecolors="none")


def _gaps(ax: Axes, run: Run, rows: Mapping[int, int], window: tuple[int, int], size: int) -> list[str]:
    """Draws the gaps; returns the causes that there are."""
    gaps, (start, end) = run.gaps, window
    words = gaps.labels["cause"]
    by_kind: dict[tuple[int, str], list[tuple[float, float]]] = {}
    for thread, begun, ended, code in zip(gaps["thread"], gaps["start_ns"], gaps["end_ns"], gaps["cause"]):
        row = rows.get(thread)
        if row is None or ended <= start or begun >= end:
            continue
        begun, ended = max(begun, start), min(ended, end)
        span = (begun / size, (ended - begun) / size)
        by_kind.setdefault((row, words[code]), []).append(span)
    for (row, cause), spans in by_kind.items():
        colour, hatch = drawing.CAUSES[cause]
        # The line in the gap's own colour keeps one that is narrower than a pixel visible.
        ax.broken_barh(
            spans, (row - 0.35, 0.7), facecolors=colour, edgecolors=colour, linewidth=0.3, hatch=hatch
        )
    found = {cause for _row, cause in by_kind}
    return [cause for cause in drawing.CAUSES if cause in found]


_ARRIVAL, _DEADLINE = ("arrival", "#333333", "^"), ("deadline", drawing.VERMILION, "v")


def schedule(
    simulation: Simulation,
    *,
    start_ns: int = 0,
    end_ns: Optional[int] = None,
    ax: Optional[Axes] = None,
) -> Axes:
    """The schedule of a simulation: a row for each task, its jobs as rectangles in the colour of their CPU.

    Arrows upwards are nominal arrivals, arrows downwards deadlines; they are omitted for tasks with
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
    rows = {thread: row for row, (thread, name) in enumerate(named)}
    ax = drawing.new_axes(ax, width=11.0, height=1.6 + 0.6 * len(rows))
    pieces, end = _pieces(frame, rows, start_ns, end_ns, drawing.MOST_RECTANGLES)
    end = simulated if end_ns is None and len(pieces) < drawing.MOST_RECTANGLES else end
    size, unit = drawing.unit_for(end - start_ns)
    cpus = sorted(set(frame["cpu"]))
    colours = dict(zip(cpus, drawing.colours_for(len(cpus))))
    for cpu in cpus:
        _jobs(ax, frame, rows, (cpu, colours[cpu]), (start_ns, end), size)
    window = (start_ns, end)
    tasks = simulation.set_of_tasks.to_dict()["task"]
    marked = [_arrivals(ax, simulation, task, rows, window, size) for task in tasks]
    drawing.label_rows(ax, [name for _thread, name in named], (start_ns / size, end / size), unit)
    marks = [_ARRIVAL, _DEADLINE] if any(marked) else []
    drawing.legend(ax, [(f"CPU {cpu}", colours[cpu], "") for cpu in cpus], marks)
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
    for thread, on, begun, ended in zip(frame["thread"], frame["cpu"], frame["start_ns"], frame["end_ns"]):
        row = rows.get(thread)
        if row is None or on != cpu or ended <= start or begun >= end:
            continue
        begun, ended = max(begun, start), min(ended, end)
        spans.setdefault(row, []).append((begun / size, (ended - begun) / size))
    for row, found in spans.items():
        ax.broken_barh(found, (row - 0.25, 0.6), facecolors=colour, edgecolors="white", linewidth=0.5)


def _arrivals(
    ax: Axes,
    simulation: Simulation,
    task: Mapping[str, Any],
    rows: Mapping[int, int],
    window: tuple[int, int],
    size: int,
) -> bool:
    """Marks nominal arrivals and deadlines, where the schedule shows them; whether it does."""
    if task.get("jitter") or task.get("arrivals") or task.get("activation", "periodic") != "periodic":
        return False
    facts = next(found for found in simulation.tasks if found["name"] == task["name"])
    row, period = rows[facts["thread"]], facts["period_ns"]
    start, end = window
    offset = _span(task.get("offset", 0))
    arrivals = range(offset, end, period)
    if len(arrivals) > drawing.MOST_RECTANGLES:
        return False
    deadlines = [at + facts["deadline_ns"] for at in arrivals]
    for times, at_row, (_label, colour, shape) in (
        (arrivals, row - 0.36, _ARRIVAL),
        (deadlines, row + 0.42, _DEADLINE),
    ):
        within = [at / size for at in times if start <= at <= end]
        heights = [at_row] * len(within)
        ax.plot(within, heights, linestyle="none", marker=shape, color=colour, markersize=5, clip_on=False)
    return True


def _span(given: Union[int, str]) -> int:
    from . import _hourglass

    return _hourglass.span_ns(given)


def responses(found: Union[Mapping[str, Any], Simulation], *, ax: Optional[Axes] = None) -> Axes:
    """Response times and deadlines: of `sched.check`, `sched.predict` or a simulation.

    A bar for each task and each kind (bound, simulated, measured); a black line is the deadline. Where there is
    no bound, that is said.

    Raises `hourglass.errors.InvalidError` for another document.
    """
    rows, kinds = _responses(found)
    if not rows:
        raise InvalidError("there are no tasks in it")
    ax = drawing.new_axes(ax, height=1.5 + 0.75 * len(rows))
    known = [value for name, deadline, values in rows for value in (deadline, *values) if value]
    size, unit = drawing.unit_for(max(known))
    height = 0.75 / len(kinds)
    colours = {"bound": drawing.BLUE, "simulated": drawing.SKY, "measured": drawing.ORANGE}
    for place, (_name, deadline, values) in enumerate(rows):
        for number, (kind, value) in enumerate(zip(kinds, values)):
            middle = place - 0.375 + height * (number + 0.5)
            if value is None:
                ax.annotate(f" no {kind} time", (0, middle), va="center", fontsize="small", color="#555555")
                continue
            late = value > deadline
            label = kind if place == 0 else None
            hatch = "////" if late else ""
            ax.barh(
                middle, value / size, height, color=colours[kind], hatch=hatch, edgecolor="white", label=label
            )
            text = f" {drawing.time_text(value)}{', late' if late else ''}"
            # Above the deadline's line, which may be close to the end of the bar.
            ground = {"facecolor": "white", "edgecolor": "none", "pad": 0.6}
            ax.annotate(text, (value / size, middle), va="center", fontsize="small", bbox=ground, zorder=5)
        line = "deadline" if place == 0 else "_"
        at = deadline / size
        ax.vlines(at, place - 0.45, place + 0.45, color=drawing.BLACK, linewidth=2, label=line)
    ax.set_yticks(range(len(rows)), [name for name, _deadline, _values in rows])
    ax.set_ylim(len(rows) - 0.4, -0.6)
    ax.set_xlim(0, 1.2 * max(known) / size)
    ax.set_xlabel(f"response time ({unit})")
    ax.tick_params(axis="y", length=0)
    handles, labels = ax.get_legend_handles_labels()
    order = sorted(range(len(labels)), key=lambda place: labels[place] == "deadline")
    drawing.legend_above(
        ax, handles=[handles[place] for place in order], labels=[labels[place] for place in order], ncols=4
    )
    drawing.tidy(ax)
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
    rows = [(task["name"], task["deadline_ns"], [task[key] for key in kinds.values()]) for task in tasks]
    return rows, list(kinds)
