"""A measured fleet, and what may be said of it."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterator, Optional, Union

from .. import _hourglass
from ..errors import DataError, Error, InvalidError
from ..frames import needed
from ..runs import Run, open_run
from . import clocks, prediction, statistics
from .digest import WINDOWS, Digest, Gap, digest

if TYPE_CHECKING:
    import os

    from .._hourglass import SpanLike

__all__ = ["Coincidence", "Fleet", "Outlier", "Verdict", "open_fleet"]

FLEET = "fleet.json"
ABOUT = "node.json"

FLOORS = {"share": 1e-5, "longest_ns": 10_000.0}
"""How much more than the others a node has to lose, to be named: of the time, and in its longest gaps."""


@dataclass(frozen=True)
class Verdict:
    """Whether every node met a limit."""

    passed: bool
    """Every node answered, and met it."""
    limit: str
    failed: dict[str, str]
    """Nodes that broke it, with the worst; the worst first."""
    missing: dict[str, str]
    """Nodes of which nothing is known, with the reason."""
    kept: list[str]

    def __bool__(self) -> bool:
        return self.passed

    def __str__(self) -> str:
        head = f"{'passed' if self.passed else 'FAILED'}: {self.limit}: {len(self.kept)} kept it, {len(self.failed)} broke it"
        lines = [f"{head}, {len(self.missing)} missing"]
        lines += [f"  {node}: {worst}" for node, worst in self.failed.items()]
        lines += [f"  {node}: missing: {reason}" for node, reason in self.missing.items()]
        return "\n".join(lines)


@dataclass(frozen=True)
class Outlier:
    """A node that loses more to a cause than the others do."""

    node: str
    cause: str
    metric: str
    """`share` of the time, or `longest_ns`, the longest gap of a window."""
    value: float
    """The mean over the windows of its time, without the worst fifth."""
    others: float
    """The median of the other nodes."""
    p: float
    """How probable such a node is in a fleet whose nodes are alike, times all that was asked."""
    gap: Gap
    """Its longest gap of this cause: thread, CPU, interval, and its occupants."""

    def __str__(self) -> str:
        if self.metric == "share":
            said = f"{100 * self.value:.3f} % of the time, others {100 * self.others:.3f} %"
        else:
            said = f"longest gaps {self.value / 1e3:.1f} us, others {self.others / 1e3:.1f} us"
        engine = f"; the engine's own: {', '.join(self.gap.engine)}" if self.gap.engine else ""
        return f"{self.node}: {self.cause}: {said} (p {self.p:.1g}); longest: {self.gap}{engine}"


@dataclass(frozen=True)
class Coincidence:
    """Gaps of different nodes that overlapped, whatever the clocks' errors were."""

    nodes: tuple[str, str]
    gaps: tuple[Gap, Gap]
    overlap_ns: int
    """At least that long."""


class Fleet:
    """Nodes that were measured, and nodes that are missing."""

    def __init__(self, folder: Path, room: Optional[tempfile.TemporaryDirectory[str]] = None) -> None:
        """Not for programs: `measure` and `open_fleet` make fleets."""
        self.folder = folder
        self._room = room
        self._digests: dict[str, Digest] = {}
        self.missing: dict[str, str] = {}
        """Nodes that were to be measured and were not, with the reason."""
        self.about: dict[str, dict[str, Any]] = {}
        """What each node said of itself: `host`, `kernel`, `boot_id`, `cpus`, `engine`, `notes`."""
        self._folders: dict[str, Path] = {}
        self._documents: dict[str, dict[str, Any]] = {}
        for entry in sorted(folder.iterdir()):
            if entry.is_dir() and not entry.name.startswith("."):
                self._add(entry)
        said = _json(folder / FLEET) if (folder / FLEET).exists() else {"missing": {}}
        for node, reason in said["missing"].items():
            if node in self._folders:
                raise DataError(f"{folder}: node '{node}' is missing and there; remove one")
            self.missing[node] = reason
        if not self._folders and not self.missing:
            raise DataError(f"{folder}: no run folders are in it; `hourglass noise -o DIR/NODE` makes one")

    def _add(self, entry: Path) -> None:
        about: dict[str, Any] = _json(entry / ABOUT) if (entry / ABOUT).exists() else {}
        node = about.get("node", entry.name)
        if node in self._folders:
            raise DataError(f"{entry}: node '{node}' answered twice, see {self._folders[node]}; remove one")
        try:
            document = open_run(entry).document
        except Error as error:
            # Half-written, damaged, or of another version: nothing is known of that node.
            self.missing[node] = error.text
            return
        self._folders[node] = entry
        self._documents[node] = document
        self.about[node] = about

    @property
    def nodes(self) -> list[str]:
        """Those that were measured."""
        return list(self._folders)

    def run(self, node: str) -> Run:
        """The run of a node."""
        if node not in self._folders:
            known = f"it is missing: {self.missing[node]}" if node in self.missing else "there is no such node"
            raise InvalidError(f"node '{node}': {known}")
        return open_run(self._folders[node])

    def digest(self, node: str) -> Digest:
        """A node's run in short."""
        if node not in self._digests:
            self._digests[node] = digest(self.run(node))
        return self._digests[node]

    @cached_property
    def notes(self) -> list[str]:
        """What must be known before nodes are compared."""
        found = []
        for what in ("hourglass", "kernel"):
            values: dict[str, list[str]] = {}
            for node, document in self._documents.items():
                manifest = document["manifest"]
                values.setdefault(str({**manifest["host"], **manifest}[what]), []).append(node)
            if len(values) > 1:
                each = "; ".join(f"{value}: {_few(nodes)}" for value, nodes in sorted(values.items()))
                found.append(f"nodes with different versions of {what}: {each}")
        alike = self._alike()
        if len(alike) > 1:
            found.append(
                "measured differently, and so only compared among themselves: "
                + "; ".join(_few(nodes) for nodes in alike)
            )
        for node, document in self._documents.items():
            if document["interrupted"]:
                found.append(f"{node}: ended early, after {document['manifest']['elapsed_ns'] / 1e9:.3f} s")
            dropped = sum(thread["records_dropped"] for thread in document["threads"])
            if dropped:
                found.append(f"{node}: {dropped} records had no room; add --records or --gap")
            found.extend(f"{node}: {note}" for note in self.about[node].get("notes", []))
        return found

    def _alike(self) -> list[list[str]]:
        """Groups of nodes that made one measurement with one version, the largest group first."""
        groups: dict[str, list[str]] = {}
        for node, document in self._documents.items():
            manifest = document["manifest"]
            asked = [(thread["workload"], thread["policy"]) for thread in manifest["threads"][:1]]
            key = json.dumps([manifest["hourglass"], manifest["duration_ns"], asked])
            groups.setdefault(key, []).append(node)
        return sorted(groups.values(), key=len, reverse=True)

    def verdict(self, *, max_gap: Optional[SpanLike] = None, max_latency: Optional[SpanLike] = None) -> Verdict:
        """Whether no thread of any node had a longer gap (or a later wake-up). A missing node has not passed."""
        if (max_gap is None) == (max_latency is None):
            raise InvalidError("verdict: give max_gap or max_latency")
        limit = _hourglass.span_ns(max_gap if max_gap is not None else max_latency)  # type: ignore[arg-type]
        worst: dict[str, int] = {}
        missing = dict(self.missing)
        for node, document in self._documents.items():
            part = "gaps" if max_gap is not None else "latency"
            values = [thread[part]["max_ns"] or 0 for thread in document["threads"] if thread[part]]
            if document["interrupted"]:
                missing[node] = "ended early: what it would have found is not known"
            for premise in document.get("premises", []):
                missing[node] = f"no verdict: {premise['text']}"
            if values:
                worst[node] = max(values)
            else:
                missing[node] = f"it has no {part}; measure with {'noise' if part == 'gaps' else 'latency'}"
        broke = sorted((node for node, value in worst.items() if value > limit), key=lambda node: -worst[node])
        kept = [node for node in worst if worst[node] <= limit and node not in missing]
        failed = {node: self._broke(node, worst[node], max_gap is not None) for node in broke}
        missing = {node: reason for node, reason in missing.items() if node not in failed}
        name = f"max_gap {max_gap}" if max_gap is not None else f"max_latency {max_latency}"
        return Verdict(not failed and not missing and bool(kept), name, failed, missing, kept)

    def _broke(self, node: str, value: int, gap: bool) -> str:
        worst = self.digest(node).worst if gap else []
        if worst and worst[0].length_ns >= value - 1:
            return str(worst[0])
        return f"{value / 1e3:.1f} us"

    def outliers(self, *, alpha: float = 0.01) -> list[Outlier]:
        """Nodes that lose more to a cause than the others, the surest first, each once a cause.

        `alpha` is the probability with which a fleet whose nodes are alike has any. The test is in
        `hourglass.fleet.statistics`; nodes that were measured differently are compared among themselves.
        """
        if not 0 < alpha < 1:
            raise InvalidError(f"alpha: {alpha} is not between 0 and 1")
        found: dict[tuple[str, str], Outlier] = {}
        for nodes in self._alike():
            digests = {node: self.digest(node) for node in nodes}
            causes = sorted({cause for one in digests.values() for cause in one.total_ns})
            questions = len(nodes) * len(causes) * len(FLOORS)
            for cause in causes:
                for metric, floor in FLOORS.items():
                    values = {node: _windows(one, cause, metric) for node, one in digests.items()}
                    for odd in statistics.odd_ones(values, questions, alpha, floor):
                        gap = digests[odd.node].longest[cause]
                        outlier = Outlier(odd.node, cause, metric, odd.value, odd.others, odd.p, gap)
                        known = found.setdefault((odd.node, cause), outlier)
                        if outlier.p < known.p:
                            found[odd.node, cause] = outlier
        return sorted(found.values(), key=lambda outlier: (outlier.p, -outlier.value))

    def predict(
        self, *, nodes: int, sync: SpanLike, confidence: float = 0.95, seed: int = 1, resamples: int = 200
    ) -> prediction.Prediction:
        """How much slower a job is that synchronises `nodes` nodes like these every `sync` of computing.

        The model and what it leaves out are in `hourglass.fleet.prediction`. Needs numpy.
        """
        return prediction.predict(
            nodes, _hourglass.span_ns(sync), self._timelines(), confidence=confidence, seed=seed, resamples=resamples
        )

    def _timelines(self) -> Iterator[tuple[Any, int]]:
        np = needed("numpy", "predict")
        for node in self._folders:
            run = self.run(node)
            gaps = run.gaps
            thread, start, end = (np.asarray(gaps[name]) for name in ("thread", "start_ns", "end_ns"))
            threads = []
            for number in range(len(run.threads)):
                mine = thread == number
                order = np.argsort(start[mine])
                threads.append((start[mine][order], end[mine][order]))
            yield threads, int(run.manifest["elapsed_ns"])

    def coincidences(self, *, longer_than: SpanLike = "100us") -> tuple[list[Coincidence], dict[str, str]]:
        """Gaps of two nodes that were at the same time for certain, and the nodes of which that cannot be said, with what
        is missing. Nodes on one machine share a clock; others need a clock that is synchronised."""
        least = _hourglass.span_ns(longer_than)
        rows, unknown = [], {}
        for node in self._folders:
            place = self._clock(node)
            if isinstance(place, str):
                unknown[node] = place
                continue
            offset, bound = place
            gaps = self.run(node).gaps
            words = gaps.labels["cause"]
            columns = (gaps[name] for name in ("thread", "cpu_after", "cause", "start_ns", "end_ns"))
            for thread, cpu, code, start, end in zip(*columns):
                if end - start >= least:
                    rows.append((start + offset, end + offset, bound, node, Gap(thread, cpu, words[code], start, end)))
        rows.sort(key=lambda row: (row[0], row[1], row[3]))
        found: list[Coincidence] = []
        open_: list[tuple[int, int, int, str, Gap]] = []
        for row in rows:
            open_ = [other for other in open_ if other[1] > row[0]]
            for other in open_:
                error = 0 if self._one_clock(other[3], row[3]) else other[2] + row[2]
                overlap = min(other[1], row[1]) - row[0] - error
                if other[3] != row[3] and overlap > 0:
                    found.append(Coincidence((other[3], row[3]), (other[4], row[4]), overlap))
            open_.append(row)
        return found, unknown

    def _one_clock(self, one: str, other: str) -> bool:
        boots = [self._documents[node]["manifest"]["host"].get("boot_id") for node in (one, other)]
        return boots[0] is not None and boots[0] == boots[1]

    def _clock(self, node: str) -> Union[str, tuple[int, int]]:
        """From the times of a node's run to UTC, and the bound, ns; or what is missing."""
        begun = self._documents[node]["manifest"]["epoch"]["monotonic_ns"]
        readings = self._documents[node]["manifest"].get("utc")
        if not readings:
            return "its folder has no bound on UTC: it is of an earlier version, or was simulated"
        related = clocks.relation(readings)
        if related is not None:
            return begun + related.offset_ns, related.bound_ns
        if sum(self._one_clock(node, other) for other in self._folders) > 1:
            # Only those of the same machine are compared with it: no bound on UTC holds.
            offset = readings[0]["realtime_ns"] - readings[0]["monotonic_ns"]
            return begun + offset, 2**62
        return "its clock is not synchronised, or by nothing that states a bound; run chronyd or ntpd"

    def report(self, path: Union[str, os.PathLike[str]], *, max_gap: Optional[SpanLike] = None) -> Path:
        """One page of HTML that needs nothing else: nodes as rows, causes as colours, the worst first."""
        from . import page

        written = Path(path)
        written.write_text(page.page(self, max_gap), encoding="utf-8")
        return written

    def sql(self, query: str) -> Any:
        """Asks DuckDB: the tables `nodes`, `missing`, `causes`, `gaps`, and the views that `fleet.sql` has. Gives a
        `duckdb.DuckDBPyRelation`. Needs duckdb."""
        if self._database is None:
            from . import queries

            self._database = queries.database(self)
        return self._database.sql(query)

    _database: Any = None

    def __repr__(self) -> str:
        return f"<Fleet of {len(self._folders)} nodes, {len(self.missing)} missing, {self.folder}>"


def open_fleet(folder: Union[str, os.PathLike[str]]) -> Fleet:
    """Opens a folder with a run folder for each node, by the nodes' names.

    Raises `hourglass.errors.DataError` where there is none, or where a node is there twice.
    """
    path = Path(folder)
    if not path.is_dir():
        raise DataError(f"{path}: no such folder")
    return Fleet(path)


def _windows(one: Digest, cause: str, metric: str) -> list[float]:
    if metric == "share":
        whole = one.threads * one.elapsed_ns / WINDOWS
        return [total / whole for total in one.window_total_ns.get(cause, [0] * WINDOWS)]
    return [float(length) for length in one.window_longest_ns.get(cause, [0] * WINDOWS)]


def _few(nodes: list[str]) -> str:
    return ", ".join(nodes[:3]) + (f" and {len(nodes) - 3} more" if len(nodes) > 3 else "")


def _json(path: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(path.read_text())
        return found
    except (OSError, ValueError) as error:
        raise DataError(f"{path}: cannot be read: {error}") from error
