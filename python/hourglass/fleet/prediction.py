"""What a job loses that synchronises all its nodes: from their noise, by itself.

The job computes for `sync` on every CPU, waits for the slowest, and so on. A step that begins at time t on a node ends when
its slowest thread has had `sync` of the CPU; what was recorded says when that is, for every t. The step of the whole job takes
as long as the longest over all nodes, so that of N nodes the delay D has the distribution

    P(D <= x) = product over the measured nodes i of F_i(x) ** (N / n)

(Petrini, Kerbyson and Pakin, SC 2003, for why it is the maximum; De, Kothari and Mann, IPDPS 2007, for predicting it from
measured nodes; Tsafrir et al., ICS 2005, for the product). The nodes' phases are taken as independent; threads of a node are
taken together, as they were recorded. Where nodes stall together, the truth is lower, and never below `at_least`. Simulations of
the synchronisation agree within 15 % where the job is up to half as slow again; where it takes several times as long the
prediction is too high, by up to a factor of two, because noise that falls into waits is counted.

The interval is a bootstrap's, over nodes and over blocks of time. It cannot know of noise that is rarer than
what was measured: `measured_steps` says how many steps there were to see.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Callable, Iterable

from ..errors import InvalidError
from ..frames import needed

if TYPE_CHECKING:
    import numpy

__all__ = ["Prediction", "delays", "predict"]

Timeline = "list[tuple[numpy.ndarray[Any, Any], numpy.ndarray[Any, Any]]]"
"""Of each thread of a node, the starts and the ends of its gaps, ns, in order."""

BLOCKS = 10
STEPS_A_SYNC = 4
MOST_STEPS = 200_000
DEPTHS = (1.0, 1.5, 2.5, 5.0, 20.0, float("inf"))
"""How far within a gap a step may begin, in lengths of a step; see `_steps`."""

AGREED = 0.5
"""Up to this slow-down simulations agree within 15 %."""

_BINS_A_DOUBLING = 16
_DOUBLINGS = 42
_ROUNDS = 6


@dataclass(frozen=True)
class Prediction:
    """A job's slow-down, as a share: 0.05 is 5 % more time."""

    nodes: int
    sync_ns: int
    slowdown: float
    low: float
    """The lower end of the interval."""
    high: float
    confidence: float
    at_least: float
    """What the worst node alone takes: the least that is left if all stall at the same times."""
    measured_nodes: int
    measured_steps: int
    """Steps that the records have, of all nodes together. Noise that is rarer was not seen."""

    @property
    def known(self) -> bool:
        """Whether the ends of the interval are jobs whose times are within a factor of two. `slowdown` says nothing else."""
        return 1 + self.high <= 2 * (1 + self.low)

    @property
    def may_be_high(self) -> bool:
        """Whether the job is slowed by more than simulations agree for: then all of it may be too high, up to a factor of two."""
        return self.slowdown > AGREED

    def __str__(self) -> str:
        slower = f"{100 * self.slowdown:.2f} % slower (" if self.known else "how much slower is not known ("
        return (
            f"{self.nodes} nodes that synchronise every {self.sync_ns / 1e6:g} ms: {slower}"
            f"{100 * self.low:.2f} to {100 * self.high:.2f} %, {100 * self.confidence:g} %), from "
            f"{self.measured_nodes} nodes and {self.measured_steps} steps"
            + ("; it may be too high by up to a factor of two" if self.may_be_high else "")
        )


def delays(starts: Any, ends: Any, begins: Any, work: int) -> Any:
    """How much longer than `work` a step takes that begins at each of `begins`, ns. Gaps are in order and do not overlap."""
    np = needed("numpy", "predict")
    lost = np.concatenate(([0], np.cumsum(ends - starts)))
    # Where the thread had the CPU: the work that was done before each gap.
    done_at = starts - lost[:-1]
    at = np.searchsorted(ends, begins, side="right")
    inside = at < len(starts)
    begun = np.zeros(len(begins), dtype=bool)
    begun[inside] = starts[at[inside]] <= begins[inside]
    done = begins - lost[at]
    done[begun] = done_at[at[begun]]
    target = done + work
    # A gap that begins as the step ends is not its.
    finished = target + lost[np.searchsorted(done_at, target, side="left")]
    return finished - begins - work


def predict(
    nodes: int, sync_ns: int, timelines: Iterable[tuple[Any, int]], *, confidence: float, seed: int, resamples: int
) -> Prediction:
    """The slow-down of `nodes` nodes like those measured. `timelines` has of each node the gaps of its threads and how long it
    was measured, ns."""
    np = needed("numpy", "predict")
    if nodes < 1:
        raise InvalidError(f"nodes: {nodes} is below 1")
    if sync_ns < 1_000:
        raise InvalidError(f"sync: {sync_ns} ns is below a microsecond, and shorter gaps have not been told apart")
    if not 0.5 <= confidence < 1:
        raise InvalidError(f"confidence: {confidence} is not from 0.5 to below 1")
    edges = np.concatenate(([0.0], 2.0 ** (np.arange(_DOUBLINGS * _BINS_A_DOUBLING + 1) / _BINS_A_DOUBLING)))
    counts, steps, means = [], 0, []
    for threads, elapsed in timelines:
        late, depth, block = _steps(threads, elapsed, sync_ns, np)
        steps += max(1, elapsed // sync_ns)
        means.append(float(late[depth == 0].mean()))
        cell = (depth * BLOCKS + block) * len(edges) + np.searchsorted(edges, late, side="left")
        table = np.bincount(cell, minlength=len(DEPTHS) * BLOCKS * len(edges)).astype(np.uint32)
        counts.append(table.reshape(len(DEPTHS), BLOCKS, len(edges)).cumsum(axis=0, dtype=np.uint32))
    if not counts:
        raise InvalidError("predict: no node was measured")
    table = np.stack(counts, axis=1)
    expected = _expectation(edges, nodes, np)
    depth, middle = _settled(table, expected, sync_ns, np)
    chosen = table[depth].astype(np.float64)
    random = np.random.default_rng(seed)
    drawn = []
    for _ in range(resamples):
        weights = np.stack([
            random.multinomial(BLOCKS, [1 / BLOCKS] * BLOCKS) for _ in range(len(chosen))
        ])  # fmt: skip
        sums = np.einsum("nb,nbx->nx", weights, chosen)
        drawn.append(expected(sums[random.integers(0, len(chosen), len(chosen))]))
    low, high = np.quantile(drawn, [(1 - confidence) / 2, (1 + confidence) / 2])
    return Prediction(
        nodes, sync_ns, middle / sync_ns, min(float(low), middle) / sync_ns, max(float(high), middle) / sync_ns, confidence,
        max(means) / sync_ns, len(chosen), steps,
    )  # fmt: skip


def _steps(threads: Any, elapsed: int, work: int, np: Any) -> tuple[Any, Any, Any]:
    """How late steps of a node are that begin evenly spread over its time, the class of `DEPTHS`, and the block of each.

    Steps do not begin evenly within a long gap. The node finishes a step before it goes on waiting, and if a gap comes then, the
    next step begins within it, at most the time of one step after the gap's beginning; from then on all others
    wait for it. So a step that begins deeper in a gap than a step takes is none that a job would have.
    """
    if elapsed < 2 * BLOCKS * work:
        raise InvalidError(f"sync: {work} ns is too long for runs of {elapsed} ns; take one below {elapsed // (2 * BLOCKS)} ns")
    count = int(min(MOST_STEPS, STEPS_A_SYNC * elapsed // work))
    # A step is seen from its beginning to its end: none begins where the record would end within it.
    begins = (np.arange(count, dtype=np.int64) * (elapsed - 2 * work)) // count
    late, within = np.zeros(count, dtype=np.int64), np.zeros(count, dtype=np.int64)
    for starts, ends in threads:
        if len(starts):
            late = np.maximum(late, delays(starts, ends, begins, work))
            at = np.minimum(np.searchsorted(ends, begins, side="right"), len(starts) - 1)
            inside = (starts[at] <= begins) & (begins < ends[at])
            within = np.maximum(within, np.where(inside, begins - starts[at], 0))
    depth = np.searchsorted(np.asarray(DEPTHS[:-1]) * work, within, side="left")
    return late, depth, np.arange(count) * BLOCKS // count


def _settled(table: Any, expected: Callable[[Any], float], work: int, np: Any) -> tuple[int, float]:
    """The class of `DEPTHS` that a step's own length asks for, and the delay with it."""
    depth = 0
    for _ in range(_ROUNDS):
        delay = expected(table[depth].sum(axis=1, dtype=np.float64))
        wanted = int(np.searchsorted(DEPTHS, 1 + delay / work, side="left"))
        if wanted <= depth:
            break
        depth = wanted
    return depth, expected(table[depth].sum(axis=1, dtype=np.float64))


def _expectation(edges: Any, nodes: int, np: Any) -> Callable[[Any], float]:
    """The mean of the maximum over `nodes` nodes, from counts below each edge for each measured node."""

    def expected(counts: Any) -> float:
        below = np.cumsum(counts, axis=1)
        share = below / below[:, -1:]
        with np.errstate(divide="ignore"):
            log = np.log(share).sum(axis=0) * (nodes / len(counts))
        # All of a bin count as in its middle.
        middle = np.concatenate(([0.0], (edges[1:] + edges[:-1]) / 2))
        probability = np.diff(np.exp(log), prepend=0.0)
        return float((probability * middle).sum())

    return expected
