"""Engines, which reach the nodes. None of them is imported before it is used.

An engine has nodes by name, starts a function on one of them, and gives a `concurrent.futures.Future` back. Where
to place it, transport and finding out that a node died are its business.
"""

from __future__ import annotations

import os
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any, Callable, Mapping, Optional, Protocol, Union

from ..errors import InvalidError
from . import node as on_node

__all__ = ["Callables", "Engine", "Local", "Ray", "engine"]

Work = Callable[[Mapping[str, Any]], on_node.Answer]
Reaches = Union[Executor, Callable[[Work, Mapping[str, Any]], on_node.Answer]]


class Engine(Protocol):
    """An engine, which reaches the nodes."""

    same_machine: bool
    """Whether several nodes may be one machine (for trials)."""

    def nodes(self, where: Optional[Mapping[str, str]]) -> list[str]:
        """The names of the nodes that have these labels."""

    def submit(self, node: str, work: Work, request: Mapping[str, Any]) -> Future[on_node.Answer]:
        """Starts `work(request)` on the node, and on no other."""

    def close(self) -> None:
        """Lets go of what it made itself."""


class Callables:
    """Nodes that are reached by a function each, `function(work, request)`, or by an executor each."""

    def __init__(self, nodes: Mapping[str, Reaches], *, same_machine: bool = False) -> None:
        self.same_machine = same_machine
        self._nodes = dict(nodes)
        self._pool = ThreadPoolExecutor(max(1, len(self._nodes)), thread_name_prefix="hourglass-fleet")

    def nodes(self, where: Optional[Mapping[str, str]]) -> list[str]:
        """All of them."""
        if where:
            raise InvalidError("where: these nodes have no labels; leave it out")
        return list(self._nodes)

    def submit(self, node: str, work: Work, request: Mapping[str, Any]) -> Future[on_node.Answer]:
        """Calls the node's function in a thread."""
        reaches = self._nodes[node]
        if isinstance(reaches, Executor):
            return reaches.submit(work, request)
        return self._pool.submit(reaches, work, request)

    def close(self) -> None:
        """Ends the threads when they are done."""
        self._pool.shutdown(wait=False, cancel_futures=True)


class Local(Callables):
    """This machine, under one name or several: for one machine, and for trials without a cluster."""

    def __init__(self, names: Union[int, list[str]] = 1) -> None:
        if isinstance(names, int):
            host = os.uname().nodename
            names = [host] if names == 1 else [f"{host}-{number}" for number in range(names)]
        super().__init__({name: lambda work, request: work(request) for name in names}, same_machine=True)


class Ray:
    """The nodes of a Ray cluster. Each gets its task by strict affinity: no other node does it in its place."""

    def __init__(self, address: Optional[str] = None, *, same_machine: bool = False) -> None:
        from ..frames import needed

        self.same_machine = same_machine
        self._ray = needed("ray", "a fleet on Ray")
        self._mine = not self._ray.is_initialized()
        if self._mine:
            self._ray.init(address=address or "auto", log_to_driver=False)
        self._ids: dict[str, str] = {}
        self._addresses: dict[str, str] = {}

    def nodes(self, where: Optional[Mapping[str, str]]) -> list[str]:
        """Those that are alive; by their names where these are different, else by their numbers."""
        alive = [found for found in self._ray.nodes() if found["Alive"]]
        names = [found.get("NodeName") or found["NodeManagerHostname"] for found in alive]
        for found, name in zip(alive, names):
            labels = found.get("Labels") or {}
            if all(labels.get(key) == value for key, value in (where or {}).items()):
                number = found["NodeID"]
                node = name if names.count(name) == 1 else f"{name}-{number[:8]}"
                self._ids[node], self._addresses[node] = number, found["NodeManagerAddress"]
        return list(self._ids)

    def machine(self, node: str) -> str:
        """The address of its host, on which there may be several raylets."""
        return self._addresses[node]

    def submit(self, node: str, work: Work, request: Mapping[str, Any]) -> Future[on_node.Answer]:
        """Starts it there; a node that dies loses it, and it is not tried elsewhere."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy  # type: ignore[import-not-found,unused-ignore]

        there = NodeAffinitySchedulingStrategy(self._ids[node], soft=False)
        task = self._ray.remote(work).options(num_cpus=0, max_retries=0, scheduling_strategy=there)
        future: Future[on_node.Answer] = task.remote(dict(request)).future()
        return future

    def close(self) -> None:
        """Leaves the cluster if it was joined for this."""
        if self._mine:
            self._ray.shutdown()


def engine(given: Union[None, str, Engine, Mapping[str, Reaches]]) -> Engine:
    """The engine that is meant: `"ray"`, `"local"`, nodes by name, or one that was made."""
    if given is None or given == "local":
        return Local()
    if given == "ray" or getattr(given, "__name__", None) == "ray":
        return Ray()
    if isinstance(given, Mapping):
        return Callables(given)
    if isinstance(given, str):
        raise InvalidError(f"engine: unknown '{given}'; take local, ray, or nodes by name")
    return given
