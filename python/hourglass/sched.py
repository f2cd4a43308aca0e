"""What theory says about sets of tasks, and simulations of them.

    >>> from hourglass import sched
    >>> tasks = {"task": [
    ...     {"name": "audio", "wcet": 3_000_000, "period": 8_000_000, "priority": 80},
    ...     {"name": "video", "wcet": "17ms", "period": "33ms", "priority": 40},
    ... ]}
    >>> sched.response_times(tasks)
    {'audio': 3000000, 'video': 29000000}
    >>> sched.check(tasks)["verdict"]
    'feasible'

A set of tasks is described as in a file of tasks of the command (`man 5 hourglass-tasks`), by any of

- a `TaskSet`,
- the path of such a file (TOML, JSON, rt-app's JSON) or of a run folder, whose tasks need what was measured,
- its text (a `str` with a line break, a `=` or a `{`),
- a dictionary with the keys of the file; numbers without a unit are nanoseconds there,
- a list of dictionaries: the tasks alone.

All times in answers are whole nanoseconds, and exact.
"""

from __future__ import annotations

import json
import math
import os
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from . import _hourglass
from .errors import InvalidError, SystemRefusedError
from .frames import Frame
from .lab import _path, command_line
from .runs import _INTERVALS_UNKNOWN

if TYPE_CHECKING:
    from concurrent.futures import Executor

    from typing_extensions import TypeGuard

    from ._hourglass import SpanLike
    from .shards import Progress

__all__ = [
    "Simulation",
    "TaskSet",
    "Tasks",
    "analyses",
    "check",
    "predict",
    "response_times",
    "simulate",
    "sweep",
]


class TaskSet:
    """A set of tasks that was read and checked.

    `format` is `"toml"`, `"json"`, `"rt-app"` or `"run"`; without it the content decides.

    Raises `hourglass.errors.DataError` with the line or the task, the key and the remedy.
    """

    _native: _hourglass.TaskData

    def __init__(self, tasks: Tasks, *, format: Optional[str] = None) -> None:
        native = _hourglass.TaskData
        if isinstance(tasks, TaskSet):
            self._native = tasks._native
        elif isinstance(tasks, Mapping) or _is_list(tasks):
            if format is not None:
                raise InvalidError("format: a dictionary or a list has none; leave it out")
            given = tasks if isinstance(tasks, Mapping) else {"task": list(tasks)}
            _checked(given, "tasks")
            # Whole numbers are nanoseconds, as everywhere in this package.
            table = {"unit": "1ns", **given}
            self._native = native.parse("tasks", json.dumps(table, default=_text), "json")
        elif isinstance(tasks, str) and any(sign in tasks for sign in "\n={"):
            self._native = native.parse("tasks", tasks, format)
        elif isinstance(tasks, (str, os.PathLike)):
            self._native = native.read(os.fspath(tasks), format)
        else:
            raise TypeError(
                "a set of tasks is a path, the text of a file of tasks, a dictionary with its keys or a list of tasks, "
                f"not {type(tasks).__name__}"
            )

    @property
    def name(self) -> str:
        """What it is called: its own name, or that of its file."""
        return self._native.name()

    @property
    def tasks(self) -> list[str]:
        """The names of the tasks, in order."""
        return self._native.tasks()

    @property
    def notes(self) -> list[str]:
        """Notes on what was omitted, was interpreted or is unusual, one sentence each."""
        return self._native.notes()

    def to_toml(self) -> str:
        """As a file of tasks."""
        return self._native.to_toml()

    def to_dict(self) -> dict[str, Any]:
        """With the keys of a file of tasks; times are texts with a unit."""
        found: dict[str, Any] = json.loads(self._native.to_json())
        return found

    def __len__(self) -> int:
        return len(self.tasks)

    def __repr__(self) -> str:
        return f"<TaskSet {self.name!r}: {', '.join(self.tasks)}>"


Tasks = Union[TaskSet, str, "os.PathLike[str]", Mapping[str, Any], Sequence[Mapping[str, Any]]]
"""A set of tasks, see above."""


def _is_list(tasks: Any) -> TypeGuard[Sequence[Mapping[str, Any]]]:
    listed = isinstance(tasks, Sequence) and not isinstance(tasks, (str, bytes))
    return listed and all(isinstance(task, Mapping) for task in tasks)


def _checked(value: Any, where: str) -> None:
    """That there is nothing in it that no file of tasks can have, by its place."""
    if isinstance(value, Mapping):
        named = value.get("name")
        within = f"task '{named}'" if isinstance(named, str) and where != "tasks" else where
        for key, held in value.items():
            if not isinstance(key, str):
                raise InvalidError(f"{within}: the key {key!r} is no text")
            _checked(held, f"{within}: {key}")
    elif isinstance(value, (list, tuple)):
        for number, held in enumerate(value):
            _checked(held, f"{where} {number + 1}")
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidError(f"{where}: {value} is no number to calculate with")
    elif isinstance(value, int) and not -(2**63) <= value < 2**63:
        raise InvalidError(f"{where}: too large; times are in nanoseconds, up to 292 years")


def _text(value: Any) -> str:
    if isinstance(value, timedelta):
        return f"{_hourglass.span_ns(value)}ns"
    raise TypeError(f"a {type(value).__name__} is nothing that a set of tasks has")


def check(
    tasks: Tasks,
    *,
    analysis: Optional[str] = None,
    partition: Optional[str] = None,
    server: Optional[SpanLike] = None,
    sensitivity: bool = False,
    explain: bool = False,
) -> dict[str, Any]:
    """Says whether the deadlines of a set hold: the document `hourglass.check/1`.

    The analysis follows from what the set says, unless one of `analyses()` is asked for by name.
    `partition` places the tasks on CPUs (`"first-fit"`, `"worst-fit,period"`), `server` finds the smallest
    reservation with this period, `sensitivity` how far each task may change. `verdict` is `"feasible"`,
    `"infeasible"`, `"no_bound"` or `"unknown"`; only the first is a proof that every deadline holds.

    Raises `hourglass.errors.DataError` for a set that cannot be meant, `InvalidError` for a question that does
    not fit it.
    """
    if analysis is not None and analysis not in {known["name"] for known in analyses()}:
        raise InvalidError(f"analysis: unknown '{analysis}'; expected one of {', '.join(known['name'] for known in analyses())}")
    question = {
        "analysis": analysis,
        "partition": partition,
        "server": server,
        "sensitivity": sensitivity,
        "explain": explain,
    }
    found: dict[str, Any] = json.loads(_hourglass.check(TaskSet(tasks)._native, question))
    return found


def response_times(tasks: Tasks, *, analysis: Optional[str] = None) -> dict[str, Optional[int]]:
    """A bound on each task's response time from its nominal arrival, ns; None where there is none.

    Raises what `check` raises.
    """
    found = check(tasks, analysis=analysis)["tasks"]
    return {task["name"]: task["response_time_ns"] for task in found}


def analyses() -> list[dict[str, str]]:
    """The analyses that `check` can be asked for: `name`, `about`, `source`."""
    found: list[dict[str, str]] = json.loads(_hourglass.analyses())
    return found


class Simulation:
    """What a simulation found."""

    set_of_tasks: TaskSet
    """What was simulated."""
    document: dict[str, Any]
    """The document `hourglass.simulate/1`, as `hourglass simulate --json` prints it."""
    schedule: Optional[Frame]
    """What ran where, in order of start, with the columns of `Run.intervals`; None if it was not wanted."""
    dropped: int
    """Intervals for which the schedule had no room."""
    folder: Optional[Path]
    """Its folder, if it is stored."""

    def __init__(
        self,
        set_of_tasks: TaskSet,
        document: dict[str, Any],
        schedule: Optional[Frame],
        dropped: int,
        folder: Optional[Path],
    ) -> None:
        """Not for programs: `simulate` makes simulations."""
        self.set_of_tasks = set_of_tasks
        self.document = document
        self.schedule = schedule
        self.dropped = dropped
        self.folder = folder

    @property
    def tasks(self) -> list[dict[str, Any]]:
        """What became of each task: jobs, misses, response times."""
        found: list[dict[str, Any]] = self.document["tasks"]
        return found

    @property
    def failed(self) -> int:
        """Jobs that were not finished by their deadline, of all tasks."""
        return sum(task["missed"] + task["lost"] for task in self.tasks)

    def __repr__(self) -> str:
        jobs = self.document["jobs"]
        return f"<Simulation of {jobs} jobs of {len(self.tasks)} tasks, {self.failed} failed>"


def simulate(
    tasks: Tasks,
    *,
    horizon: Optional[SpanLike] = None,
    seed: int = 0,
    releases: str = "critical",
    late: str = "queue",
    rt_throttling: Optional[tuple[SpanLike, SpanLike]] = None,
    smt: Optional[str] = None,
    alpha: Optional[str] = None,
    margin: Optional[SpanLike] = None,
    stop_latency: Optional[SpanLike] = None,
    interval: Optional[SpanLike] = None,
    progress: Optional[int] = None,
    schedule: bool = True,
    records: Optional[int] = None,
    output: Union[None, str, os.PathLike[str]] = None,
) -> Simulation:
    """Simulates a set on virtual time, exactly, as `hourglass simulate` does.

    Without a `horizon`, until everything repeats, or for a million jobs. `releases` is `"critical"`,
    `"nominal"` or `"random"`; `late` says what becomes of a job that is released while an earlier one runs
    (`"queue"`, `"skip"`); `rt_throttling` is a pair such as `("950ms", "1s")`; `smt` is a policy for hardware
    threads (`"unaware"`, `"disabling"`, `"slack"`), and `alpha` (a fraction such as `"1/2"`) to `progress`
    (steps that a job reports) belong to the last one. `output` stores it as a run folder.

    Ctrl-C ends it and raises `KeyboardInterrupt`. Raises `hourglass.errors.DataError` for a set that cannot be
    meant, `InvalidError` where it cannot be simulated.
    """
    scenario = {
        "horizon": horizon,
        "seed": seed,
        "releases": releases,
        "late": late,
        "rt_throttling": rt_throttling,
        "smt": smt,
        "alpha": alpha,
        "margin": margin,
        "stop_latency": stop_latency,
        "interval": interval,
        "progress": progress,
        "schedule": schedule,
        "records": records,
        "output": _path(output),
        "command_line": command_line(),
    }
    read = TaskSet(tasks)
    text, columns, dropped, folder, not_kept = _hourglass.simulate(read._native, scenario)
    frame = None
    if columns is not None:
        frame = Frame._of_native(columns, {"onset": _hourglass.ONSETS}, _INTERVALS_UNKNOWN)
    kept = None if folder is None else Path(folder)
    found = Simulation(read, json.loads(text), frame, dropped, kept)
    if not_kept is not None:
        error = SystemRefusedError(f"output: the simulation was not kept: {not_kept}")
        error.simulation = found  # type: ignore[attr-defined]
        raise error
    return found


def predict(
    tasks: Tasks,
    *,
    run: bool = True,
    duration: SpanLike = "10s",
    cpus: Optional[str] = None,
    jitter: bool = False,
    best_effort: bool = False,
    horizon: Optional[SpanLike] = None,
    seed: int = 0,
    output: Union[None, str, os.PathLike[str]] = None,
) -> dict[str, Any]:
    """Bounds, simulation and a real run of the same tasks side by side: the document `hourglass.predict/1`.

    `run=False` leaves the run out. Where a job took longer than its bound, `explanation` says which
    assumption was wrong. `output` stores the run in a new folder.

    Waits and is interrupted as `hourglass.run` is, and raises what it raises.
    """
    wish = {
        "run": run,
        "duration": duration,
        "cpus": cpus,
        "jitter": jitter,
        "best_effort": best_effort,
        "horizon": horizon,
        "seed": seed,
        "output": _path(output),
        "command_line": command_line(),
    }
    text, not_kept = _hourglass.predict(TaskSet(tasks)._native, wish)
    found: dict[str, Any] = json.loads(text)
    if not_kept is not None:
        error = SystemRefusedError(f"output: the run was not kept: {not_kept}")
        error.document = found  # type: ignore[attr-defined]
        raise error
    return found


_MOST_THREADS = 1_024


def sweep(
    experiment: Union[None, Tasks] = None,
    *,
    utilisations: Union[None, str, Sequence[float]] = None,
    sets: Optional[int] = None,
    tasks: Optional[int] = None,
    processors: Optional[int] = None,
    generator: Optional[str] = None,
    bounds: Union[None, str, Sequence[str]] = None,
    periods: Optional[str] = None,
    granularity: Optional[SpanLike] = None,
    cost_granularity: Optional[SpanLike] = None,
    deadlines: Optional[str] = None,
    jitter: Optional[str] = None,
    seed: Optional[int] = None,
    analyses: Union[None, str, Sequence[str]] = None,
    keep_sets: Optional[bool] = None,
    threads: Optional[int] = None,
    output: Union[None, str, os.PathLike[str]] = None,
    executor: Union[None, Executor, Callable[[], Executor]] = None,
    shards: Optional[int] = None,
    retries: int = 3,
    progress: Optional[Callable[[Progress], object]] = None,
) -> dict[str, Any]:
    """Compares analyses on random sets, as `hourglass sweep` does: the document `hourglass.sweep/1`.

    `experiment` is the path or text of an experiment, a dictionary with its keys, or a set of tasks in any of
    the forms above, whose execution times are scaled from utilisation to utilisation. Arguments override
    it; they are written as on the command line (`utilisations="0.6:1:0.02"`) or as lists. An
    experiment gives the same document on any number of `threads`.

    `output` stores every finished point in a folder. Ctrl-C ends it and raises `KeyboardInterrupt`; a repeated call
    with that folder then resumes. Raises `hourglass.errors.DataError` for an invalid file,
    `InvalidError` for an experiment that cannot be done.

    With an `executor` the experiment is done in `shards` parts, each by one worker and with one thread (or
    `threads`), and the result is, byte for byte, that of one process. It may be any `concurrent.futures.Executor`
    (`distributed.Client.get_executor()`, say), or a function that makes one: then a pool that broke is replaced. A part
    that does not return is submitted again, up to `retries` times; after that `LostError` names it.
    `progress` is called with a `hourglass.shards.Progress` after each part. Ctrl-C cancels what has not started. Parts that
    are done are in `OUTPUT.parts` until all are done, and a repeated call resumes from them.
    """
    if executor is None and (shards is not None or progress is not None):
        given = "shards" if shards is not None else "progress"
        raise InvalidError(f"{given}: only for a sweep on an executor; add executor=..., or leave it out")
    if threads is not None and not 1 <= threads <= _MOST_THREADS:
        raise InvalidError(f"threads: {threads} is out of range; take 1 to {_MOST_THREADS}")
    said: dict[str, Any] = {
        "utilisations": utilisations,
        "sets": sets,
        "tasks": tasks,
        "processors": processors,
        "generator": generator,
        "bounds": bounds,
        "periods": periods,
        "granularity": granularity,
        "cost_granularity": cost_granularity,
        "deadlines": deadlines,
        "jitter": jitter,
        "seed": seed,
        "analyses": analyses,
        "keep_sets": keep_sets,
    }
    template = text = path = None
    if isinstance(experiment, Mapping) and "task" not in experiment:
        said = {**experiment, **{key: value for key, value in said.items() if value is not None}}
    elif isinstance(experiment, (TaskSet, Mapping)) or _is_list(experiment):
        template = TaskSet(experiment)._native
    elif isinstance(experiment, str) and any(sign in experiment for sign in "\n={"):
        text = experiment
    elif isinstance(experiment, (str, os.PathLike)):
        path = os.fspath(experiment)
    elif experiment is not None:
        raise TypeError(
            f"an experiment is a path, its text, a dictionary or a set of tasks, not {type(experiment).__name__}"
        )
    asked = {
        "path": path,
        "text": text,
        "keys": [(str(key), _word(key, value)) for key, value in said.items() if value is not None],
        "threads": threads,
        "output": _path(output),
        "shard": None,
    }
    if executor is not None:
        return _in_parts(template, asked, executor, shards, retries, progress)
    found: dict[str, Any] = json.loads(_hourglass.sweep(template, asked))
    return found


def _in_parts(
    template: Optional[_hourglass.TaskData],
    asked: dict[str, Any],
    executor: Union[Executor, Callable[[], Executor]],
    count: Optional[int],
    retries: int,
    progress: Optional[Callable[[Progress], object]],
) -> dict[str, Any]:
    """A sweep on an executor. What workers are sent are texts: they need not have the file."""
    from . import shards

    path, output = asked["path"], asked["output"]
    text = _hourglass.sweep_text(path) if path is not None else asked["text"]
    asked = {**asked, "path": None, "text": text, "output": None}
    facts: dict[str, Any] = json.loads(_hourglass.sweep_facts(template, asked))
    # A given set, in the words that a worker finds the same in.
    recipe = {**asked, "text": facts.get("template") or text, "threads": asked["threads"] or 1}
    again = json.loads(_hourglass.sweep_facts(None, recipe))
    if again != facts:
        raise InvalidError("experiment: this set of tasks changes when it is written down; sweep it without executor")
    if count is None:
        # Some for each of a few hundred workers, and none without a set.
        count = min(1_000, facts["sets"] * len(facts["utilisations"]))
    return shards.sweep(
        recipe, facts, executor, count, retries=retries, progress=progress, output=output
    )


def _word(key: str, value: Any) -> str:
    """A value of an experiment as on the command line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if key in ("granularity", "cost_granularity"):
        return f"{_hourglass.span_ns(value)}ns"
    if isinstance(value, (list, tuple)):
        return ",".join(_word("", part) for part in value)
    return str(value)
