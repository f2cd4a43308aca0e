"""Experiments in parts, on any `concurrent.futures.Executor`.

`hourglass.sched.sweep(experiment, executor=..., shards=...)` is the way in. The executor may be the standard
library's, `distributed.Client.get_executor()`, or that of Ray, Parsl or MPI: nothing of any of them is imported here.

The experiment and a number identify a part. The worker generates, judges and stores it as `hourglass sweep --shard K/N` does,
and returns its folder as bytes. So a part that is done twice has one result, parts that are done need
not be done again, and all parts together are, byte for byte, what one process writes.
"""

from __future__ import annotations

import contextlib
import json
import queue
import shutil
import tempfile
import time
from collections import deque
from concurrent.futures import BrokenExecutor, CancelledError, Executor, Future
from pathlib import Path
from typing import Any, Callable, Mapping, NamedTuple, Optional, Union

from . import _hourglass
from .errors import DataError, Error, InvalidError, LostError

__all__ = ["Progress", "part", "sweep"]

MOST_PARTS = 1_000_000
"""Parts that an experiment can be cut into from here."""

WINDOW = 1_024
"""Parts that an executor holds at a time; it has no use for more, and what it holds can be cancelled."""

NAMED = 5
"""Parts that a message names."""

PAUSE_S = 0.2
"""How long a wait lasts until it is asked whether it is to end."""

Files = dict[str, bytes]
"""A folder: the names of its files, and what they hold."""


class Progress(NamedTuple):
    """How far a sweep is."""

    done: int
    """Parts that are done, those of an earlier call among them."""
    shards: int
    """Parts that there are."""
    lost: int
    """How often a part did not come back and was asked for again."""


def part(recipe: Mapping[str, Any], index: int, of: int) -> Files:
    """Does one part of an experiment: the files of its folder. Called on the worker.

    Raises what `hourglass.sched.sweep` raises, and `CancelledError` if a signal ended it early.
    """
    with tempfile.TemporaryDirectory(prefix="hourglass-part-") as room:
        folder = Path(room) / "part"
        asked = {**recipe, "path": None, "output": str(folder), "shard": (index, of)}
        found = json.loads(_hourglass.sweep(None, asked))
        if found["interrupted"]:
            raise CancelledError(f"part {index} of {of} was ended by a signal")
        return {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def sweep(
    recipe: Mapping[str, Any],
    facts: Mapping[str, Any],
    executor: Union[Executor, Callable[[], Executor]],
    shards: int,
    *,
    retries: int,
    progress: Optional[Callable[[Progress], object]],
    output: Optional[str],
) -> dict[str, Any]:
    """Does an experiment in parts: the document `hourglass.sweep/1`. `sched.sweep` calls this."""
    if not 1 <= shards <= MOST_PARTS:
        raise InvalidError(f"shards: {shards} is out of range; take 1 to {MOST_PARTS}")
    if retries < 0:
        raise InvalidError(f"retries: {retries} is below 0")
    if output is not None:
        parts = Path(f"{output}.parts")
        _Parts(parts, recipe, facts, shards).all(executor, retries, progress)
        found: dict[str, Any] = json.loads(_hourglass.sweep_merge([str(parts)], output))
        shutil.rmtree(parts)
        return found
    with tempfile.TemporaryDirectory(prefix="hourglass-sweep-") as room:
        parts = Path(room) / "parts"
        _Parts(parts, recipe, facts, shards).all(executor, retries, progress)
        found = json.loads(_hourglass.sweep_merge([str(parts)], str(Path(room) / "whole")))
        return found


class _Parts:
    """The parts of an experiment: which are there, and getting the others."""

    def __init__(self, folder: Path, recipe: Mapping[str, Any], facts: Mapping[str, Any], of: int) -> None:
        self.folder = folder
        self.recipe = recipe
        self.facts = facts
        self.of = of
        self.lost = 0
        self._home: Union[Executor, Callable[[], Executor]]
        self._executor: Executor
        self._out: dict[Future[Files], int] = {}
        self._ended: queue.SimpleQueue[Future[Files]] = queue.SimpleQueue()

    def all(
        self,
        executor: Union[Executor, Callable[[], Executor]],
        retries: int,
        progress: Optional[Callable[[Progress], object]],
    ) -> None:
        """Gets every part that is not there, each at most `1 + retries` times."""
        self.folder.mkdir(parents=True, exist_ok=True)
        there = self._there()
        wanted = deque(index for index in range(self.of) if index not in there)
        done = self.of - len(wanted)
        tell = progress or (lambda _: None)
        tell(Progress(done, self.of, 0))
        if not wanted:
            return
        losses: dict[int, list[str]] = {}
        own = not isinstance(executor, Executor)
        self._home = executor
        self._executor = executor() if callable(executor) and own else executor  # type: ignore[assignment]
        try:
            while wanted or self._out:
                while wanted and len(self._out) < WINDOW:
                    self._submit(wanted.popleft(), losses, retries)
                future = self._next()
                index = self._out.pop(future)
                files = self._files(future, index, losses, retries)
                if files is None:
                    wanted.append(index)
                    continue
                self._keep(index, files)
                done += 1
                tell(Progress(done, self.of, self.lost))
        finally:
            self._stop(own)

    def _submit(self, index: int, losses: dict[int, list[str]], retries: int) -> None:
        while True:
            try:
                future = self._executor.submit(part, self.recipe, index, self.of)
                break
            except BrokenExecutor as error:
                self._renew(index, error, losses, retries)
        self._out[future] = index
        future.add_done_callback(self._ended.put)

    def _renew(self, index: int, error: BaseException, losses: dict[int, list[str]], retries: int) -> None:
        """Another pool in the place of a broken one, if the caller can make one."""
        if isinstance(self._home, Executor):
            raise LostError(
                f"part {index} of {self.of}: the executor is broken ({_sentence(error)}); {self._kept()}"
                " with another one, or with a function that makes them"
            ) from error
        if len(losses.get(index, [])) > retries:
            raise self._given_up(index, losses) from error
        losses.setdefault(index, []).append(_sentence(error))
        self._executor.shutdown(wait=False, cancel_futures=True)
        self._executor = self._home()

    def _next(self) -> Future[Files]:
        """The next part that ends; Ctrl-C is raised meanwhile."""
        while True:
            try:
                future = self._ended.get(timeout=PAUSE_S)
            except queue.Empty:
                continue
            if future in self._out:
                return future

    def _files(
        self, future: Future[Files], index: int, losses: dict[int, list[str]], retries: int
    ) -> Optional[Files]:
        """What came back; None if the part is to be asked for again."""
        try:
            return future.result()
        except (InvalidError, DataError) as error:
            # It would be refused again.
            raise type(error)(f"part {index} of {self.of}: {error.text}", error.errno, error.remedy) from error
        except Exception as error:
            reasons = losses.setdefault(index, [])
            reasons.append(_sentence(error))
            if len(reasons) > retries:
                raise self._given_up(index, losses) from error
            self.lost += 1
            return None

    def _given_up(self, index: int, losses: Mapping[int, list[str]]) -> LostError:
        reasons = losses[index]
        others = [other for other in losses if other != index]
        more = f"; lost before: {', '.join(map(str, others[:NAMED]))}" if others else ""
        if len(others) > NAMED:
            more += ", ..."
        return LostError(
            f"part {index} of {self.of} did not come back, {len(reasons)} times; the last time: {reasons[-1]}"
            f"{more}; {self._kept()}"
        )

    def _kept(self) -> str:
        return f"parts that are done are in {self.folder}; call again"

    def _there(self) -> set[int]:
        """The parts that an earlier call has left, of this experiment and cut alike."""
        there = set()
        for index, folder in self._listed():
            file = folder / "experiment.json"
            try:
                found = json.loads(file.read_text())
            except (OSError, ValueError) as error:
                raise DataError(f"{file}: cannot be read ({_sentence(error)}); remove {folder}") from error
            self._same(found, index, f"{folder}: ")
            there.add(index)
        return there

    def _listed(self) -> list[tuple[int, Path]]:
        """Folders of parts by their numbers. What a call that was killed had half-written goes."""
        listed = []
        for entry in self.folder.iterdir():
            words = entry.name.split("-")
            if entry.name.startswith(".half-"):
                shutil.rmtree(entry, ignore_errors=True)
            elif len(words) == 4 and words[0] == "shard" and words[1].isdigit() and words[3].isdigit():
                if int(words[3]) != self.of:
                    raise InvalidError(
                        f"shards: {self.folder} holds parts of {words[3]}, not of {self.of}; take {words[3]}, or"
                        " remove the folder"
                    )
                listed.append((int(words[1]), entry))
        return listed

    def _same(self, found: dict[str, Any], index: int, place: str) -> None:
        """That a part is one of this experiment, by this version."""
        shard = found.pop("shard", None)
        if not isinstance(shard, dict) or (shard.get("index"), shard.get("of")) != (index, self.of):
            raise DataError(f"{place}it is not part {index} of {self.of}")
        wanted = {key: value for key, value in self.facts.items() if key != "shard"}
        for key in sorted({*found, *wanted}):
            if found.get(key) != wanted.get(key):
                raise DataError(
                    f"{place}part {index} has {key} {found.get(key)!r}, here it is {wanted.get(key)!r};"
                    " parts of one experiment, by one version, make a whole"
                )

    def _keep(self, index: int, files: Files) -> None:
        """Writes a part: whole, or not at all."""
        self._same(json.loads(files["experiment.json"]), index, "")
        folder = _hourglass.sweep_part_folder(str(self.folder), index, self.of)
        half = Path(tempfile.mkdtemp(prefix=".half-", dir=self.folder))
        for name, data in files.items():
            if Path(name).name != name:
                raise DataError(f"part {index}: '{name}' is no name of a file")
            (half / name).write_bytes(data)
        half.chmod(0o755)
        half.rename(folder)

    def _stop(self, own: bool) -> None:
        """Cancels what has not begun, and keeps what ended meanwhile."""
        for future in self._out:
            future.cancel()
        ends = time.monotonic() + PAUSE_S
        while self._out and time.monotonic() < ends:
            try:
                future = self._ended.get(timeout=0.01)
            except queue.Empty:
                break
            index = self._out.pop(future, None)
            # What is wrong with it does not matter now: another reason ends the sweep.
            with contextlib.suppress(Exception):
                if index is not None:
                    self._keep(index, future.result(timeout=0))
        self._out.clear()
        if own:
            self._executor.shutdown(wait=False, cancel_futures=True)


def _sentence(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, Error):
        return str(error)
    text = " ".join(str(error).split())
    name = type(error).__name__
    return f"{name}: {text[:200]}" if text else name
