"""Measuring each node of a fleet once."""

from __future__ import annotations

import json
import queue
import re
import secrets
import tempfile
import time
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, Any, Callable, Mapping, Optional, Sequence, Union

from .. import _hourglass
from ..errors import DataError, InvalidError
from . import node as on_node
from .engines import Engine, Reaches, engine as engine_of
from .fleet import ABOUT, FLEET, Fleet

if TYPE_CHECKING:
    import os

    from .._hourglass import SpanLike

__all__ = ["measure"]

_SLACK_S = 60
"""How long a node may take beyond what it was asked to measure for."""

_ON_THE_WAY_S = 30
"""How long the engine may take beyond that."""

_OURS = ("-o", "--output", "--json")


def measure(
    arguments: Sequence[str] = ("noise", "-D10s"),
    *,
    engine: Union[None, str, Engine, Mapping[str, Reaches]] = None,
    nodes: Optional[Sequence[str]] = None,
    where: Optional[Mapping[str, str]] = None,
    output: Union[None, str, os.PathLike[str]] = None,
    engine_cpus: Optional[Sequence[int]] = None,
    hourglass: Optional[str] = None,
    timeout: Optional[SpanLike] = None,
    at_once: Optional[int] = None,
    progress: Optional[Callable[[str, Optional[str]], object]] = None,
) -> Fleet:
    """Measures each node once with the command `hourglass ARGUMENTS`, and brings the run folders to `output`.

    `engine` is `"local"` (this machine), `"ray"`, nodes by name with a function or an executor that reaches each, or an
    engine that was made. `nodes` are names, all without; `where` has labels that they must have. On a node the
    engine's processes are kept to `engine_cpus` (its lowest CPU) meanwhile, and the others are measured. `hourglass` is
    the path of the command there. A node that does not answer within `timeout` (the duration and a minute) is
    missing. At most `at_once` nodes are measured at a time; all without, and one where nodes share a machine. `progress(node, reason)` is called after each, with None where
    it was measured. Ctrl-C cancels what has not started, and stores the results so far.

    Of two nodes that are one machine the first result counts, with a note in `about`, and the other node is missing;
    with an engine made with `same_machine=True` both count. Raises `InvalidError` for an invalid request, `DataError` where an
    engine brings a node's answer twice.
    """
    words = [str(word) for word in arguments]
    if not words or any(word.startswith(_OURS) for word in words):
        raise InvalidError("arguments: a command such as ['noise', '-D10s']; folders and --json are the fleet's business")
    limit = _duration_s(words) + _SLACK_S if timeout is None else _hourglass.span_ns(timeout) / 1e9
    reaches = engine_of(engine)
    folder, room = _folder(output)
    try:
        chosen = _chosen(reaches, nodes, where)
        _each_alone(reaches, chosen)
        gathered = _Gathered(folder, reaches.same_machine, progress)
        asked = {
            "arguments": words,
            "engine_cpus": None if engine_cpus is None else list(engine_cpus),
            "hourglass": hourglass,
            "timeout_s": limit,
        }
        try:
            # Nodes on one machine would measure each other.
            together = at_once or (1 if reaches.same_machine else len(chosen))
            _ask(reaches, chosen, asked, gathered, together, limit + _ON_THE_WAY_S)
        finally:
            for node in chosen:
                if node not in gathered.there:
                    gathered.missing.setdefault(node, "no answer: the measurement was ended before")
            _write(folder / FLEET, {"schema": "hourglass.fleet/1", "arguments": words, "missing": gathered.missing})
    finally:
        reaches.close()
    return Fleet(folder, room)


def _duration_s(words: Sequence[str]) -> float:
    """What the command is asked to measure for; ten seconds if it does not say so."""
    for at, word in enumerate(words):
        found = re.fullmatch(r"(?:-D|-t|--duration=|--runtime=)(.+)", word)
        value = found[1] if found else words[at + 1] if word in ("-D", "-t", "--duration") and at + 1 < len(words) else None
        if value is not None:
            plain = re.fullmatch(r"\d+(\.\d+)?", value)
            try:
                return float(value) if plain else _hourglass.span_ns(value) / 1e9
            except ValueError:
                return _hourglass.span_ns(f"{value}in" if value.endswith("m") else value) / 1e9
    return 10.0


def _folder(output: Union[None, str, os.PathLike[str]]) -> tuple[Path, Optional[tempfile.TemporaryDirectory[str]]]:
    if output is None:
        room = tempfile.TemporaryDirectory(prefix="hourglass-fleet-")
        return Path(room.name), room
    folder = Path(output)
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise InvalidError(f"output: {folder} exists and is not an empty folder; name another one")
    folder.mkdir(parents=True, exist_ok=True)
    return folder, None


def _chosen(
    reaches: Engine, nodes: Optional[Sequence[str]], where: Optional[Mapping[str, str]]
) -> list[str]:
    there = reaches.nodes(where)
    if nodes is None:
        if not there:
            raise InvalidError("nodes: the engine has none" + (f" with {dict(where)}" if where else ""))
        return there
    unknown = [node for node in nodes if node not in there]
    twice = [node for node in nodes if list(nodes).count(node) > 1]
    if unknown or twice or not nodes:
        wrong = f"'{unknown[0]}' is not among them" if unknown else f"'{twice[0]}' is named twice" if twice else "none is named"
        raise InvalidError(f"nodes: {wrong}; the engine has {', '.join(there[:8])}{', ...' if len(there) > 8 else ''}")
    return list(nodes)


def _each_alone(reaches: Engine, chosen: Sequence[str]) -> None:
    """Refuses two nodes on one machine where the engine knows machines beforehand, and was not made for that."""
    machine: Optional[Callable[[str], str]] = getattr(reaches, "machine", None)
    if machine is None or reaches.same_machine:
        return
    first: dict[str, str] = {}
    for node in chosen:
        other = first.setdefault(machine(node), node)
        if other != node:
            raise InvalidError(
                f"nodes: '{other}' and '{node}' are one machine ({machine(node)}); "
                "name one of them, or make the engine with same_machine=True"
            )


class _Gathered:
    """The answers so far."""

    def __init__(
        self, folder: Path, same_machine: bool, progress: Optional[Callable[[str, Optional[str]], object]]
    ) -> None:
        self.folder = folder
        self.there: dict[str, dict[str, Any]] = {}
        self.missing: dict[str, str] = {}
        self._same_machine = same_machine
        self._tell = progress or (lambda *_: None)

    def lost(self, node: str, reason: str) -> None:
        """It has not answered, and will not."""
        self.missing[node] = reason
        self._tell(node, reason)

    def answer(self, node: str, nonce: str, answer: Any) -> None:
        """Keeps what a node answered."""
        if not isinstance(answer, dict) or answer.get("nonce") != nonce or answer.get("node") != node:
            self.lost(node, "what came back is no answer to this question")
            return
        if node in self.there:
            raise DataError(f"node '{node}' answered twice; no sum of both is one node's")
        about = answer["about"]
        if answer["reason"] is not None:
            self.lost(node, answer["reason"])
            return
        one = (name for name, there in self.there.items() if there["boot_id"] == about["boot_id"])
        other = None if self._same_machine else next(one, None)
        if other is not None:
            self._twice(other, node, about["host"])
            return
        place = self.folder / _file_name(node)
        place.mkdir()
        for name, data in answer["files"].items():
            if Path(name).name == name:
                (place / name).write_bytes(data)
        _write(place / ABOUT, about)
        self.there[node] = about
        self._tell(node, None)

    def _twice(self, first: str, node: str, host: str) -> None:
        """Keeps the first answer of a machine, and notes there that the other one may have disturbed it."""
        about = self.there[first]
        about["notes"] = [*about["notes"], f"node '{node}' is the same machine ({host}): each may have measured the other"]
        _write(self.folder / _file_name(first) / ABOUT, about)
        self.lost(node, f"nodes '{first}' and '{node}' are one machine ({host}), which answered twice; name each once")


def _ask(
    reaches: Engine, chosen: Sequence[str], asked: Mapping[str, Any], gathered: _Gathered, at_once: int, patience: float
) -> None:
    """Asks every node, and takes what comes until all have answered or their time is over."""
    ended: queue.SimpleQueue[Future[on_node.Answer]] = queue.SimpleQueue()
    waiting = list(reversed(chosen))
    out: dict[Future[on_node.Answer], tuple[str, str, float]] = {}
    try:
        while waiting or out:
            while waiting and len(out) < at_once:
                node, nonce = waiting.pop(), secrets.token_hex(8)
                try:
                    future = reaches.submit(node, on_node.measure, {**asked, "node": node, "nonce": nonce})
                except Exception as error:
                    gathered.lost(node, _reason(error))
                    continue
                out[future] = (node, nonce, time.monotonic() + patience)
                future.add_done_callback(ended.put)
            _take(ended, out, gathered)
    finally:
        for future in out:
            future.cancel()


def _take(
    ended: queue.SimpleQueue[Future[on_node.Answer]],
    out: dict[Future[on_node.Answer], tuple[str, str, float]],
    gathered: _Gathered,
) -> None:
    """Waits a little for an answer; nodes whose time is over are missing."""
    try:
        future = ended.get(timeout=0.2)
    except queue.Empty:
        for late, (node, _, until) in list(out.items()):
            if time.monotonic() > until:
                del out[late]
                late.cancel()
                gathered.lost(node, "no answer in time")
        return
    known = out.pop(future, None)
    if known is None:
        return
    node, nonce, _ = known
    try:
        answer = future.result()
    except Exception as error:
        gathered.lost(node, _reason(error))
        return
    gathered.answer(node, nonce, answer)


def _reason(error: BaseException) -> str:
    text = next((line.strip() for line in str(error).splitlines() if line.strip()), "")
    return f"lost: {type(error).__name__}" + (f": {text[:200]}" if text else "")


def _file_name(node: str) -> str:
    """A node's name as that of a folder; different nodes have different ones."""
    return re.sub(r"[^A-Za-z0-9_.-]|^\.", lambda found: f"%{ord(found[0]):02X}", node)


def _write(path: Path, document: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(document, indent=1, sort_keys=True) + "\n")
