"""Latency of a fleet: every node measured once, by any engine that reaches it, and statements about all of them.

    >>> from hourglass import fleet
    >>> found = fleet.measure(["noise", "-D10s"], engine="ray", where={"pool": "rt"}, output="monday")  # doctest: +SKIP
    >>> found.verdict(max_gap="50us").passed  # doctest: +SKIP
    >>> for outlier in found.outliers(): print(outlier)  # doctest: +SKIP
    >>> print(found.predict(nodes=4096, sync="1ms"))  # doctest: +SKIP
    >>> found.report("monday.html")  # doctest: +SKIP

`open_fleet("monday")` opens it again. It opens any folder with run folders in it, too: those that `srun`, a Slurm array or a
Kubernetes job wrote, one a node. A node that was lost is *missing*, with a reason; it never counts as a node without noise.
No engine is imported before it is used; `predict` needs numpy, `sql` needs duckdb.
"""

from __future__ import annotations

from .fleet import Coincidence, Fleet, Outlier, Verdict, open_fleet
from .measuring import measure
from .prediction import Prediction

__all__ = ["Coincidence", "Fleet", "Outlier", "Prediction", "Verdict", "measure", "open_fleet"]
