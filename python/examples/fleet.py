#!/usr/bin/env python3
"""A cluster on a laptop: a sweep in parts, and a fleet of four "nodes" that are all this machine.

    pip install './python[cluster]'
    python python/examples/fleet.py              # a pool of processes; needs nothing else
    python python/examples/fleet.py --dask       # the same sweep on a scheduler and workers of Dask

The command hourglass has to be in PATH, or in $HOURGLASS. On a cluster only the two lines change that say who does the work:
`executor=client.get_executor()`, and `engine="ray"`.
"""

import argparse
import concurrent.futures
import contextlib
import tempfile
from pathlib import Path

from hourglass import fleet, sched
from hourglass.fleet.engines import Local

EXPERIMENT = {"utilisations": "0.7:1:0.05", "sets": 200, "tasks": 10, "analyses": "liu-layland,hyperbolic,rm,edf-preemptive"}


@contextlib.contextmanager
def workers(dask):
    """Who does the parts of the sweep."""
    if not dask:
        with concurrent.futures.ProcessPoolExecutor() as pool:
            yield pool
        return
    from dask.distributed import Client, LocalCluster

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as client:
        yield client.get_executor(pure=False)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--dask", action="store_true")
    arguments.add_argument("--output", type=Path, help="folder for what is made; a new one in the temporary folder without")
    given = arguments.parse_args()
    out = given.output or Path(tempfile.mkdtemp(prefix="hourglass-example-"))

    with workers(given.dask) as executor:
        curve = sched.sweep(
            EXPERIMENT, executor=executor, shards=20, output=out / "sweep",
            progress=lambda step: print(f"\r{step.done} of {step.shards} parts", end="", flush=True),
        )  # fmt: skip
    print()
    for point in curve["points"]:
        print(point["utilisation"], point["accepted"])

    names = [f"node{number}" for number in range(4)]
    found = fleet.measure(
        ["noise", "-D2s", "--gap=1us", "-q", "--best-effort"], engine=Local(names), output=out / "fleet",
        progress=lambda node, reason: print(node, reason or "measured"),
    )  # fmt: skip
    print(found.verdict(max_gap="50us"))
    print(*(found.outliers() or ["no node is unlike the others"]), sep="\n")
    print(found.predict(nodes=4096, sync="1ms"))
    print(found.sql("SELECT cause, sum(count) AS gaps, max(max_ns) AS longest_ns FROM causes GROUP BY cause"))
    print("wrote", found.report(out / "fleet.html", max_gap="50us"))


if __name__ == "__main__":
    main()
