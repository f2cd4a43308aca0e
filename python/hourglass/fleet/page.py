"""A fleet on one page."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Optional

from .. import drawing
from .digest import Digest

if TYPE_CHECKING:
    from .._hourglass import SpanLike
    from .fleet import Fleet, Outlier

__all__ = ["page"]

_STYLE = """
:root{color-scheme:light dark;--line:#8884;--bad:#c0392b}
body{font:15px/1.45 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1rem}
h1{font-size:1.5rem;margin:0 0 .3rem}h2{font-size:1.1rem;margin:1.6rem 0 .4rem}
p{margin:.3rem 0}table{border-collapse:collapse;width:100%}
th,td{text-align:left;padding:.3rem .6rem;border-bottom:1px solid var(--line);vertical-align:top}
th{font-weight:600}td.n,th.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
td:first-child{white-space:nowrap}td.bar{width:34%;min-width:10rem}.stack{display:flex;height:1.1rem;margin-top:.15rem}
.stack i{display:block;height:100%;min-width:1px}.bad{color:var(--bad);font-weight:600}
.key{display:flex;flex-wrap:wrap;gap:.2rem 1.2rem;margin:.4rem 0;padding:0;list-style:none}
.key i{display:inline-block;width:.9rem;height:.9rem;margin-right:.4rem;vertical-align:-.1rem}
.quiet{opacity:.75}tr.missing td{background:#8881}
"""


def page(fleet: Fleet, max_gap: Optional[SpanLike]) -> str:
    """The page's text. What is unknown of a node is said and not drawn."""
    digests = {node: fleet.digest(node) for node in fleet.nodes}
    outliers: dict[str, list[Outlier]] = {}
    for outlier in fleet.outliers():
        outliers.setdefault(outlier.node, []).append(outlier)
    order = sorted(digests, key=lambda node: (node not in outliers, -digests[node].max_gap_ns, node))
    causes = sorted(
        {cause for one in digests.values() for cause in one.total_ns},
        key=lambda cause: -sum(one.total_ns.get(cause, 0) for one in digests.values()),
    )
    widest = max((_share(one) for one in digests.values()), default=0.0) or 1.0
    broken = set(fleet.verdict(max_gap=max_gap).failed) if max_gap is not None else set()
    rows = "".join(_row(node, digests[node], causes, widest, outliers.get(node, []), node in broken) for node in order)
    missing = "".join(
        f'<tr class=missing><td>{escape(node)}</td><td colspan=4 class=bad>missing: {escape(reason)}</td></tr>'
        for node, reason in fleet.missing.items()
    )
    key = "".join(f"<li><i style='background:{_background(cause)}'></i>{escape(cause)}</li>" for cause in causes)
    notes = "".join(f"<li>{escape(note)}</li>" for note in fleet.notes)
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<title>Fleet of {len(digests)} nodes</title><style>{_STYLE}</style>"
        f"<h1>Fleet of {len(digests)} nodes, {len(fleet.missing)} missing</h1>{_head(fleet, max_gap, len(outliers))}"
        f"<ul class=key>{key}</ul>"
        f"<table><thead><tr><th>node<th class=n>longest gap<th class=n>lost<th>of the time, by cause (full width: "
        f"{100 * widest:.3g} %)<th>worst</tr></thead><tbody>{missing}{rows}</tbody></table>"
        + (f"<h2>To be known</h2><ul>{notes}</ul>" if notes else "")
        + "<p class=quiet>Gaps above a microsecond. A node is unlike the others where a rank test over time and its distance "
        "from the fleet's spread both say so, at 1 % for the whole fleet (hourglass.fleet.statistics).</p>\n"
    )


def _head(fleet: Fleet, max_gap: Optional[SpanLike], odd: int) -> str:
    said = f"<p>{odd or 'No'} node{'s' if odd != 1 else ''} unlike the others.</p>"
    if max_gap is not None:
        verdict = fleet.verdict(max_gap=max_gap)
        word = "kept" if verdict.passed else "<span class=bad>not kept</span>"
        said += (
            f"<p>No gap longer than {escape(str(max_gap))}: {word}; {len(verdict.kept)} nodes kept it, "
            f"{len(verdict.failed)} broke it, of {len(verdict.missing)} nothing is known.</p>"
        )
    return said


def _row(node: str, one: Digest, causes: list[str], widest: float, odd: list[Outlier], broke: bool) -> str:
    whole = one.threads * one.elapsed_ns * widest
    parts = "".join(
        f"<i style='width:{100 * one.total_ns[cause] / whole:.3f}%;background:{_background(cause)}' "
        f"title='{escape(cause)}: {one.count[cause]} gaps, {one.total_ns[cause] / 1e6:.3f} ms'></i>"
        for cause in causes
        if one.total_ns.get(cause)
    )
    said = "".join(f"<p class=bad>{escape(str(outlier).partition(': ')[2])}</p>" for outlier in odd)
    if not odd and one.worst:
        said = escape(str(one.worst[0]))
        if one.worst[0].engine:
            said += f"; the engine's own: {escape(', '.join(one.worst[0].engine))}"
    mark = " bad" if broke else ""
    return (
        f"<tr><td>{escape(node)}</td><td class='n{mark}'>{one.max_gap_ns / 1e3:.1f} us</td>"
        f"<td class=n>{100 * _share(one):.3f} %</td><td class=bar><div class=stack>{parts}</div></td><td>{said}</td></tr>"
    )


def _share(one: Digest) -> float:
    return sum(one.total_ns.values()) / (one.threads * one.elapsed_ns)


def _background(cause: str) -> str:
    """The colour of plots, and stripes where they have a hatching."""
    colour, hatching = drawing.CAUSES.get(cause, (drawing.GREY, ""))
    if not hatching:
        return colour
    angle, width = 45 if hatching.startswith("/") else 135, len(hatching)
    return f"repeating-linear-gradient({angle}deg,{colour} 0 {width}px,#fff8 {width}px {width + 2}px)"
