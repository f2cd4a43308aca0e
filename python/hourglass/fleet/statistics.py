"""Which nodes are unlike the others: a test that holds for many nodes.

A node is named for a cause if two questions, each put to every node and cause, are both answered with yes.

1. *Does it go on?* Time is cut into windows, and in each the nodes are ranked. If they were exchangeable, a node's rank would
   be any other's in each window, so that the sum over windows has a known distribution (Friedman 1937), of which
   the tail is bounded by Chernoff's method from the ranks that there are, ties and all. No shape of the noise is
   assumed, and one rare event on one node, which many nodes would have sooner or later, is no reason.
2. *Is it more than how nodes differ?* Each node has its mean without the worst fifth of its windows, so that what was rare
   does not speak here. Their logarithms are compared with the median, in units of the median absolute deviation. The tail is Student's with 0.37 (n - 1) degrees, because the deviation is estimated,
   with the efficiency of 37 % that it has for normal values (Rousseeuw and Croux 1993). Below 24 nodes the
   deviation says too little; there a node has to have three times what the others have.

Each probability is multiplied by the number of questions (Bonferroni), so that a fleet without such a node names one with
probability `alpha` at most. A node has, besides, to lose enough for anybody to care.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Mapping, Sequence

__all__ = ["Odd", "odd_ones"]

FEW = 24
"""Below that many nodes their spread is not estimated."""

FACTOR = 1.5
"""A node with less than that many times what the others have is not named."""

FACTOR_FEW = 3.0
"""The same where the spread is not estimated."""

_THETAS = [0.5 * 1.6**step for step in range(14)]
_NORMAL = 1.4826
_EFFICIENCY = 0.37
_LEAST_SPREAD = 0.1


@dataclass(frozen=True)
class Odd:
    """A node that is unlike the others."""

    node: str
    value: float
    """Its mean without the worst fifth of the windows."""
    others: float
    """The median of the others."""
    p: float
    """Probability of such a node among nodes that are alike; times the number of questions."""


def odd_ones(values: Mapping[str, Sequence[float]], questions: int, alpha: float, floor: float) -> list[Odd]:
    """The nodes of which `values`, one for each window, are too high. `floor` is how much more than
    the others matters."""
    if len(values) < 2:
        return []
    names = list(values)
    means = [_lasting(values[name]) for name in names]
    ordered = sorted(means)
    middle = _median(ordered)
    candidates = [at for at, mean in enumerate(means) if mean - middle >= floor / 2]
    if not candidates:
        return []
    goes_on = _rank_tails([values[name] for name in names], candidates)
    differs = _spread_tails(means, candidates, floor)
    found = []
    for at in candidates:
        others = _median(_without(ordered, means[at]))
        more = means[at] - others
        least = FACTOR if len(names) >= FEW else FACTOR_FEW
        p = min(1.0, questions * max(goes_on[at], differs[at]))
        if p <= alpha and more >= floor and means[at] >= least * others:
            found.append(Odd(names[at], means[at], others, p))
    return found


def _lasting(row: Sequence[float]) -> float:
    """The mean without the worst fifth."""
    kept = sorted(row)[: max(1, len(row) - len(row) // 5)]
    return math.fsum(kept) / len(kept)


def _median(ordered: Sequence[float]) -> float:
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def _without(ordered: list[float], value: float) -> list[float]:
    at = ordered.index(value)
    return ordered[:at] + ordered[at + 1 :]


def _rank_tails(rows: Sequence[Sequence[float]], candidates: Sequence[int]) -> dict[int, float]:
    """For each candidate a bound on the probability of its sum of ranks, or a higher one."""
    sums = dict.fromkeys(candidates, 0.0)
    generating = [0.0] * len(_THETAS)
    count = len(rows)
    for window in zip(*rows):
        groups: dict[float, int] = {}
        for value in window:
            groups[value] = groups.get(value, 0) + 1
        below, rank = 0, {}
        for value in sorted(groups):
            # The middle of the tied ones, from -1/2 to 1/2.
            rank[value] = (below + (groups[value] - 1) / 2) / max(1, count - 1) - 0.5
            below += groups[value]
        for at, theta in enumerate(_THETAS):
            mean = math.fsum(groups[value] * math.exp(theta * rank[value]) for value in groups) / count
            generating[at] += math.log(mean)
        for at in candidates:
            sums[at] += rank[window[at]]
    return {
        at: math.exp(min(0.0, min(log - theta * total for theta, log in zip(_THETAS, generating))))
        for at, total in sums.items()
    }


def _spread_tails(means: Sequence[float], candidates: Sequence[int], floor: float) -> dict[int, float]:
    """For each candidate the probability of a value as far above the median."""
    if len(means) < FEW:
        return dict.fromkeys(candidates, 0.0)
    logs = [math.log(mean + floor) for mean in means]
    middle = _median(sorted(logs))
    spread = _NORMAL * _median(sorted(abs(log - middle) for log in logs))
    spread = max(spread, _LEAST_SPREAD)
    freedom = max(3.0, _EFFICIENCY * (len(means) - 1))
    return {at: _student_tail((logs[at] - middle) / spread, freedom) for at in candidates}


def _student_tail(t: float, freedom: float) -> float:
    """P(T >= t) of Student's distribution."""
    half = 0.5 * _incomplete_beta(freedom / 2, 0.5, freedom / (freedom + t * t))
    return half if t >= 0 else 1 - half


def _incomplete_beta(a: float, b: float, x: float) -> float:
    """Regularized, by Lentz's continued fraction (Abramowitz and Stegun 26.5.8)."""
    if x <= 0 or x >= 1:
        return min(max(x, 0.0), 1.0)
    front = math.exp(math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log1p(-x))
    if x > (a + 1) / (a + b + 2):
        return 1 - _incomplete_beta(b, a, 1 - x)
    tiny = 1e-300
    c, d = 1.0, 1 - (a + b) * x / (a + 1)
    d = 1 / (d or tiny)
    result = d
    for m in range(1, 300):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1 / ((1 + term * d) or tiny)
            c = (1 + term / c) or tiny
            result *= c * d
        if abs(c * d - 1) < 1e-13:
            break
    return front * result / a
