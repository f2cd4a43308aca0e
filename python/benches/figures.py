"""What the package costs: `python benches/figures.py`, with the package installed from a release build.

Peers run in the same sitting, interleaved; each figure is the median of the rounds, and ratios are paired within a
round.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
import timeit

ROUNDS = 41
CALLS = 200_000


def reading() -> dict[str, float]:
    """ns for a reading of the clock, beside `time.monotonic_ns()`; the goal is 1.5 times that."""
    subjects = {
        "time.monotonic_ns": timeit.Timer("now()", "from time import monotonic_ns as now"),
        "clock.now_ns": timeit.Timer("now()", "from hourglass.clock import now_ns as now"),
        "clock.now_ordered_ns": timeit.Timer("now()", "from hourglass.clock import now_ordered_ns as now"),
        "clock.now_bounded": timeit.Timer("now()", "from hourglass.clock import now_bounded as now"),
    }
    found: dict[str, list[float]] = {name: [] for name in subjects}
    ratios: list[float] = []
    for _ in range(ROUNDS):
        for name, subject in subjects.items():
            found[name].append(subject.timeit(CALLS) / CALLS * 1e9)
        ratios.append(found["clock.now_ns"][-1] / found["time.monotonic_ns"][-1])
    told = {f"{name}_ns": round(statistics.median(times), 1) for name, times in found.items()}
    told["now_ns_ratio_to_monotonic_ns"] = round(statistics.median(ratios), 3)
    return told


def importing() -> dict[str, float]:
    """ms for `import hourglass`, without what starting Python takes; the goal is 100."""

    def took(program: str) -> float:
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", program], check=True)
        return (time.perf_counter() - begun) * 1e3

    differences = [took("import hourglass") - took("pass") for _ in range(ROUNDS)]
    return {"import_ms": round(statistics.median(differences), 1), "import_min_ms": round(min(differences), 1)}


if __name__ == "__main__":
    import hourglass

    # Until the clock is calibrated, it reads the operating system's.
    end = time.monotonic() + 3
    while time.monotonic() < end:
        hourglass.clock.now_ns()
        time.sleep(0.001)
    trust = hourglass.clock.trust()
    print(json.dumps({"source": trust.source, "reason": trust.reason, **reading(), **importing()}, indent=2))
