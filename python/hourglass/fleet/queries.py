"""A fleet as tables of DuckDB."""

from __future__ import annotations

import csv
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, Iterable, Sequence

from ..frames import needed

if TYPE_CHECKING:
    from .fleet import Fleet

__all__ = ["database"]

_COLUMNS = {
    "nodes": "node VARCHAR, host VARCHAR, kernel VARCHAR, hourglass VARCHAR, cpus VARCHAR, elapsed_ns BIGINT, "
    "threads BIGINT, max_gap_ns BIGINT",
    "missing": "node VARCHAR, reason VARCHAR",
    "causes": "node VARCHAR, cause VARCHAR, count BIGINT, total_ns BIGINT, max_ns BIGINT",
    "gaps": "node VARCHAR, thread BIGINT, cpu BIGINT, cause VARCHAR, seen BOOLEAN, start_ns BIGINT, end_ns BIGINT, "
    "length_ns BIGINT",
}


def database(fleet: Fleet) -> Any:
    """A database in memory with the fleet's tables and the views of `fleet.sql`."""
    duckdb = needed("duckdb", "sql")
    made = duckdb.connect()
    rows = {"nodes": _nodes(fleet), "missing": fleet.missing.items(), "causes": _causes(fleet), "gaps": _gaps(fleet)}
    with tempfile.TemporaryDirectory(prefix="hourglass-sql-") as room:
        for table, columns in _COLUMNS.items():
            made.execute(f"CREATE TABLE {table} ({columns})")
            file = Path(room) / f"{table}.csv"
            _write(file, rows[table])
            if file.stat().st_size:
                made.execute(f"COPY {table} FROM '{file}' (FORMAT csv, HEADER false, QUOTE '\"', ESCAPE '\"')")
    made.execute((Path(__file__).parent / "fleet.sql").read_text())
    return made


def _write(file: Path, rows: Iterable[Sequence[Any]]) -> None:
    with file.open("w", newline="", encoding="utf-8") as out:
        csv.writer(out, lineterminator="\n").writerows(rows)


def _nodes(fleet: Fleet) -> Iterable[Sequence[Any]]:
    for node in fleet.nodes:
        manifest, one, about = fleet.run(node).manifest, fleet.digest(node), fleet.about[node]
        cpus = ",".join(map(str, about.get("cpus", [])))
        host, kernel = about.get("host", node), manifest["host"]["kernel"]
        yield node, host, kernel, manifest["hourglass"], cpus, one.elapsed_ns, one.threads, one.max_gap_ns


def _causes(fleet: Fleet) -> Iterable[Sequence[Any]]:
    for node in fleet.nodes:
        one = fleet.digest(node)
        for cause, total in one.total_ns.items():
            yield node, cause, one.count[cause], total, one.longest[cause].length_ns


def _gaps(fleet: Fleet) -> Iterable[Sequence[Any]]:
    for node in fleet.nodes:
        gaps = fleet.run(node).gaps
        words = gaps.labels["cause"]
        columns = (gaps[name] for name in ("thread", "cpu_after", "cause", "seen", "start_ns", "end_ns", "length_ns"))
        for thread, cpu, code, seen, start, end, length in zip(*columns):
            yield node, thread, cpu, words[code], bool(seen), start, end, length
