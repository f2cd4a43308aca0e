"""Measuring what the scheduler does, and comparing.

    >>> import hourglass
    >>> run = hourglass.run([{"workload": "PERIODIC 3ms 8ms", "priority": "RTMED"}], duration="2s")  # doctest: +SKIP
    >>> run.threads[0]["deadlines"]  # doctest: +SKIP
    {'hit': 249, 'missed': 0, 'lost': 0, 'completed': 249}

A workload is described as in a workload file of the command (`hourglass run FILE.toml`), by any of

- the path of such a file,
- its text (a `str` with a line break or a `=`),
- a dictionary with the keys of the file; `[[thread]]` is a list `"thread"`,
- a list of dictionaries: the threads alone.

In dictionaries a time may also be whole nanoseconds or a `timedelta`, where the file needs a text. In addition to `"thread"` a
dictionary may have limits (`"max_gap"`, `"max_latency"`, `"max_misses"`), which the run is judged by:

    >>> spec = {"thread": [{"name": "control", "workload": "LAT 1ms"}], "max_latency": "5ms"}
    >>> run = hourglass.run(spec, duration="1s")  # doctest: +SKIP
    >>> run.passed, run.gates  # doctest: +SKIP
    (True, [{'name': 'max-latency', 'limit': 5000000.0, 'value': 131072.0, 'unit': 'ns', 'passed': True}])
"""

from __future__ import annotations

import json
import os
import re
import sys
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, Mapping, Optional, Sequence, Union

from . import _hourglass
from .errors import Error, InvalidError, SystemRefusedError
from .runs import Run

if TYPE_CHECKING:
    from ._hourglass import SpanLike

__all__ = ["Workload", "compare", "diff", "run"]

PathLike = Union[str, "os.PathLike[str]"]

Workload = Union[str, "os.PathLike[str]", Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""What to run, see above."""

_TIMES = frozenset(
    {
        "amount",
        "duration",
        "finish",
        "gap",
        "max_gap",
        "max_latency",
        "period",
        "start",
        "stop_on_gap",
        "stop_on_latency",
        "warm_up",
    }
)
"""Keys whose values are times."""


def run(
    workload: Workload,
    *,
    duration: Optional[SpanLike] = None,
    output: Optional[PathLike] = None,
    warm_up: Optional[SpanLike] = None,
    seed: Optional[int] = None,
    records: Optional[int] = None,
    ring: Optional[bool] = None,
    trace: Optional[bool] = None,
    best_effort: Optional[bool] = None,
    dma_latency_us: Optional[int] = None,
) -> Run:
    """Runs a workload and returns what was found, as `hourglass run` does.

    Arguments override the workload. `output` names a new folder in which the run
    is stored; without it the records are held in memory. `trace=True` records the kernel's events too, and
    needs root. `best_effort=True` continues without a priority that the machine refuses, with a warning in
    `Run.warnings`.

    Waits for the run's duration without the interpreter's lock; other Python threads continue, and are
    a load for the measurement. The process's memory is locked meanwhile, where that is allowed. Ctrl-C ends the run: the folder is written as the command writes it, then
    `KeyboardInterrupt` is raised (in the main thread, whichever thread called this).

    Raises `hourglass.errors.InvalidError` or `DataError` for an invalid workload,
    `PermissionDeniedError` where the machine refuses what it needs, with the command that grants it. If the run
    was made and could not be stored, the error has it as its attribute `run`.
    """
    options = {
        "duration": duration,
        "warm_up": warm_up,
        "seed": seed,
        "records": records,
        "ring": ring,
        "trace": trace,
        "best_effort": best_effort,
        "dma_latency_us": dma_latency_us,
        "command_line": command_line(),
    }
    with _places(workload):
        data, not_kept = _hourglass.run(_told(workload), options, _path(output))
    found = Run(data)
    if not_kept is not None:
        error = SystemRefusedError(f"output: the run was not kept: {not_kept}")
        error.run = found  # type: ignore[attr-defined]
        raise error
    return found


def compare(
    a: Workload,
    b: Workload,
    *,
    rounds: int = 10,
    duration: Optional[SpanLike] = None,
    output: Optional[PathLike] = None,
    seed: Optional[int] = None,
) -> dict[str, Any]:
    """Runs two workloads in turn and says what differs: the document `hourglass.diff/1`.

    As `hourglass run --against`: both runs of a round draw the same execution times, and which is first is
    drawn. Below 6 rounds there is no verdict; a warning in the document says what too few
    rounds cannot decide. `output` names a new folder for all runs (`a-01`, `b-01`...).

    Waits and is interrupted as `run` is. Raises what `run` raises.
    """
    options = {
        "duration": duration,
        "warm_up": None,
        "seed": seed,
        "records": None,
        "ring": None,
        "trace": None,
        "best_effort": None,
        "dma_latency_us": None,
        "command_line": command_line(),
    }
    with _places(a, b):
        text, not_kept = _hourglass.rounds(_told(a), _told(b), options, rounds, _path(output))
    found: dict[str, Any] = json.loads(text)
    if not_kept is not None:
        error = SystemRefusedError(f"output: not everything was kept: {not_kept}")
        error.document = found  # type: ignore[attr-defined]
        raise error
    return found


def diff(
    a: Union[PathLike, Run, Sequence[Union[PathLike, Run]]],
    b: Union[PathLike, Run, Sequence[Union[PathLike, Run]], None] = None,
    *,
    margin: float = 5.0,
    gap: SpanLike = 0,
    seed: int = 1,
) -> dict[str, Any]:
    """Compares stored runs: the document `hourglass.diff/1`, as `hourglass diff --json` prints it.

    `a` and `b` are a folder (or a `Run` with a folder) each, or as many of them on both sides, round by
    round; `a` alone is a folder of rounds that `compare(output=...)` wrote. Changes up to `margin` per
    cent of `a` count as none; gaps up to `gap` are not counted.

    Raises `hourglass.errors.DataError` where a folder cannot be read or has no partner.
    """
    first, second = _folders(a), [] if b is None else _folders(b)
    if b is not None and (len(first) != len(second) or not first):
        raise InvalidError(
            f"{len(first)} runs in a and {len(second)} in b: give as many on both sides, round by round"
        )
    text = _hourglass.diff(first, second, margin, gap, seed)
    found: dict[str, Any] = json.loads(text)
    return found


def _folders(given: Union[PathLike, Run, Sequence[Union[PathLike, Run]]]) -> list[str]:
    if isinstance(given, (str, os.PathLike, Run)):
        given = [given]
    found = []
    for one in given:
        if isinstance(one, Run):
            if one.folder is None:
                raise InvalidError(f"{one!r}: only kept runs can be compared; run with output=...")
            found.append(str(one.folder))
        else:
            found.append(os.fspath(one))
    return found


def _path(given: Optional[PathLike]) -> Optional[str]:
    if given is None:
        return None
    path = os.fspath(given)
    if not path:
        raise InvalidError("output: the name of the folder is empty")
    return path


def command_line() -> list[str]:
    """This program's, for manifests."""
    return list(sys.orig_argv)


def _told(workload: Workload) -> Union[str, tuple[str, str]]:
    """For the extension module: a path, or a name and the text of a file."""
    if isinstance(workload, str):
        if "\n" in workload or "=" in workload:
            return "workload", workload
        return workload
    if isinstance(workload, os.PathLike):
        return os.fspath(workload)
    if isinstance(workload, Mapping):
        return "workload", toml(workload)
    if isinstance(workload, Sequence) and all(isinstance(thread, Mapping) for thread in workload):
        return "workload", toml({"thread": list(workload)})
    raise TypeError(
        "a workload is a path, the text of a workload file, a dictionary with its keys or a list of threads, "
        f"not {type(workload).__name__}"
    )


class _places:
    """Names the thread in what is refused, and not a line of a text that the program never wrote."""

    def __init__(self, *workloads: Workload) -> None:
        self._given = [given for given in workloads if not isinstance(given, (str, os.PathLike))]

    def __enter__(self) -> None:
        return None

    def __exit__(self, _type: object, raised: Optional[BaseException], _trace: object) -> Literal[False]:
        found = re.match(r"workload:(\d+):\d+(?: \([^)]*\))?: ", str(raised)) if isinstance(raised, Error) else None
        if found is None or not self._given:
            return False
        assert isinstance(raised, Error)
        # The error does not say which of two workloads; only the thread's number is given where both are alike.
        places = {_place(given, int(found[1])) for given in self._given}
        place = places.pop() if len(places) == 1 else "the workload"
        raise type(raised)(f"{place}: {raised.text[found.end():]}", raised.errno, raised.remedy) from None


def _place(workload: Any, line: int) -> str:
    """What stands in a line of the text that `toml` makes of it."""
    table = workload if isinstance(workload, Mapping) else {"thread": list(workload)}
    lines = toml(table).splitlines()[:line]
    number = sum(text == '[["thread"]]' for text in lines)
    if not number:
        return "the workload"
    name = table["thread"][number - 1].get("name")
    return f"thread {number}" if name is None else f"thread {number} ({name})"


def toml(table: Mapping[str, Any]) -> str:
    """A dictionary as the text of a workload file."""
    lines = [_line(key, value) for key, value in table.items() if not _is_tables(value)]
    for key, value in table.items():
        if _is_tables(value):
            for entry in value:
                lines.append(f"[[{_key(key)}]]")
                lines.extend(_line(inner, held) for inner, held in entry.items())
    return "\n".join(lines) + "\n"


def _is_tables(value: Any) -> bool:
    listed = isinstance(value, Sequence) and not isinstance(value, str)
    return listed and bool(value) and all(isinstance(entry, Mapping) for entry in value)


def _line(key: str, value: Any) -> str:
    return f"{_key(key)} = {_value(key, value)}"


def _key(key: Any) -> str:
    if not isinstance(key, str):
        raise TypeError(f"the key {key!r} is no text")
    return json.dumps(key)


def _value(key: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, timedelta) or (isinstance(value, int) and key in _TIMES):
        return f'"{_hourglass.span_ns(value)}ns"'
    if isinstance(value, int):
        return str(value)
    if isinstance(value, str):
        # A basic string of TOML has the escapes of JSON.
        return json.dumps(value).replace("\x7f", "\\u007F")
    if isinstance(value, Mapping):
        return "{" + ", ".join(_line(inner, held) for inner, held in value.items()) + "}"
    if isinstance(value, Sequence):
        return "[" + ", ".join(_value(key, entry) for entry in value) + "]"
    raise TypeError(f"{key}: a {type(value).__name__} is nothing that a workload has")
