"""What plots have in common: colours, units, axes, legends. For `hourglass.plots`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Mapping, Optional, Sequence

from .frames import Frame, needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from .runs import Run

BLACK = "#000000"
BLUE = "#0072B2"
SKY = "#56B4E9"
GREEN = "#009E73"
ORANGE = "#E69F00"
VERMILION = "#D55E00"
PURPLE = "#CC79A7"
YELLOW = "#F0E442"
GREY = "#999999"
LIGHT = "#D9D9D9"

CYCLE = (BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK, YELLOW)

CAUSES = {
    "context_switch_voluntary": (SKY, ""),
    "context_switch_involuntary": (BLUE, ""),
    "context_switch": (BLUE, "////"),
    "timer_tick": (ORANGE, ""),
    "irq": (YELLOW, ""),
    "softirq": (YELLOW, "////"),
    "migration": (GREEN, ""),
    "page_fault": (GREEN, "////"),
    "rt_throttling": (VERMILION, ""),
    "deadline_budget": (VERMILION, "////"),
    "reservation_budget": (VERMILION, "\\\\"),
    "cgroup_quota": (VERMILION, "xxxx"),
    "stopped": (PURPLE, ""),
    "irq_or_below": (BLACK, "///"),
    "below_kernel": (BLACK, ""),
    "unknown": (GREY, ""),
}
"""The colour and the hatching of each cause."""

UNITS = ((1, "ns"), (1_000, "µs"), (1_000_000, "ms"), (1_000_000_000, "s"))

MOST_RECTANGLES = 20_000
"""More are slow to draw and cannot be distinguished."""

US = 1_000


def new_axes(ax: Optional[Axes], width: float = 9.0, height: float = 4.5) -> Axes:
    if ax is not None:
        return ax
    pyplot = needed("matplotlib.pyplot", "a plot")
    _figure, ax = pyplot.subplots(figsize=(width, height), layout="constrained")
    return ax


def unit_for(largest_ns: float, least: float = 2.0) -> tuple[int, str]:
    """The largest unit in which the value is at least `least`."""
    fitting = [unit for unit in UNITS if largest_ns >= least * unit[0]]
    return fitting[-1] if fitting else UNITS[0]


def time_text(ns: float) -> str:
    """A time with three digits and its unit."""
    size, unit = unit_for(abs(ns), 1.0)
    return f"{ns / size:.3g} {unit}" if ns / size < 999.5 else f"{ns / size:.0f} {unit}"


def thread_name(thread: Mapping[str, Any]) -> str:
    name = thread.get("name")
    return str(name) if name else f"{thread['id']}: {thread['workload']}"


def thread_names(run: Run) -> dict[int, str]:
    return {thread["id"]: thread_name(thread) for thread in run.threads}


def by_thread(frame: Frame, column: str) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for thread, value in zip(frame["thread"], frame[column]):
        found.setdefault(thread, []).append(value)
    return found


def plain_numbers(axis: Any) -> None:
    """Writes 0.1, 1, 10 at a logarithmic axis, and not powers."""
    ticker = needed("matplotlib.ticker", "a plot")
    axis.set_major_formatter(ticker.FuncFormatter(lambda value, _place: f"{value:g}"))
    axis.set_minor_formatter(ticker.NullFormatter())


def legend_above(ax: Axes, **options: Any) -> None:
    ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.01),
        frameon=False,
        fontsize="small",
        borderaxespad=0.0,
        **options,
    )


def tidy(ax: Axes) -> None:
    ax.spines[["top", "right"]].set_visible(False)
    ax.set_axisbelow(True)


def colours_for(count: int) -> list[str]:
    return [CYCLE[number % len(CYCLE)] for number in range(count)]


def label_rows(ax: Axes, names: Sequence[str], window: tuple[float, float], unit: str) -> None:
    ax.set_yticks(range(len(names)), names)
    ax.set_ylim(len(names) - 0.4, -0.6)
    ax.set_xlim(*window)
    ax.set_xlabel(f"time from the start ({unit})")
    ax.tick_params(axis="y", length=0)
    ax.grid(True, axis="x", color=LIGHT, linewidth=0.6)
    tidy(ax)


def legend(
    ax: Axes, entries: Sequence[tuple[str, str, str]], marks: Sequence[tuple[str, str, str]] = ()
) -> None:
    """Rectangles: label, colour, hatching; marks: label, colour, shape."""
    patches, lines = needed("matplotlib.patches", "a plot"), needed("matplotlib.lines", "a plot")
    handles = [
        patches.Patch(facecolor=colour, hatch=hatch, edgecolor="white", label=label)
        for label, colour, hatch in entries
    ]
    handles += [
        lines.Line2D([], [], linestyle="none", marker=shape, color=colour, markersize=5, label=label)
        for label, colour, shape in marks
    ]
    legend_above(ax, handles=handles, ncols=min(6, len(handles)))
