"""A fleet on Ray: four raylets on one host, one of which is loaded and one killed as it is measured."""

import os
import sys
import threading
import time

import pytest

from hourglass import fleet
from hourglass.fleet.engines import Ray
from test_fleet import ARGUMENTS, command, gone, needs_real_time, wrapper  # noqa: F401

ray = pytest.importorskip("ray")


@pytest.fixture
def cluster(monkeypatch):
    """Four raylets with names of their own; nothing is sent anywhere."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    # Under load its agents take longer to start than it waits for them by default.
    monkeypatch.setenv("RAY_agent_register_timeout_ms", "120000")
    from ray.cluster_utils import Cluster

    made = Cluster()
    try:
        nodes = {"one": made.add_node(num_cpus=1, node_name="one", include_dashboard=False, object_store_memory=80 << 20)}
        for name in ("two", "loaded", "killed"):
            labels = {"pool": "rt"}
            nodes[name] = made.add_node(num_cpus=1, node_name=name, labels=labels, object_store_memory=80 << 20)
        made.wait_for_nodes()
        ray.init(address=made.address, log_to_driver=False)
    except Exception as error:
        made.shutdown()
        check = f"timeout 120 {sys.executable} -c 'import ray; ray.init(num_cpus=1, include_dashboard=False)'"
        pytest.skip(f"Ray's processes do not start here, or not in time: {str(error).splitlines()[0]} [lacks: {check}]")
    yield made, nodes
    ray.shutdown()
    made.shutdown()


def test_the_loaded_node_is_found_and_the_killed_one_missing(cluster, wrapper, tmp_path):  # noqa: F811
    made, nodes = cluster
    program, mark = wrapper

    def kills():
        while not mark.exists():
            time.sleep(0.01)
        time.sleep(0.2)
        made.remove_node(nodes["killed"], allow_graceful=False)

    killer = threading.Thread(target=kills)
    killer.start()
    engine = Ray(same_machine=True)
    assert sorted(Ray(same_machine=True).nodes({"pool": "rt"})) == ["killed", "loaded", "two"]
    found = fleet.measure(ARGUMENTS, engine=engine, hourglass=program, output=tmp_path / "out", timeout="40s")
    killer.join()
    assert sorted(found.nodes) == ["loaded", "one", "two"], found.missing
    assert list(found.missing) == ["killed"] and found.missing["killed"].startswith("lost: "), found.missing
    assert gone(int(mark.read_text()), 30), "the command of a worker that died goes on"
    assert not found.verdict(max_gap="1h").passed
    for name in found.nodes:
        about = found.about[name]
        assert "raylet" in about["engine"] and "gcs_server" in about["engine"], about
        assert not set(about["cpus"]) & set(about["engine_cpus"]), about
    # The engine has its CPUs back, once the process that measured on the killed node has ended as well.
    everything = os.sched_getaffinity(0)
    for _ in range(100):
        raylets = {pid: os.sched_getaffinity(pid) for pid in alive("raylet")}
        if len(raylets) >= 3 and all(cpus == everything for cpus in raylets.values()):
            break
        time.sleep(0.1)
    else:
        raise AssertionError(raylets)
    needs_real_time()
    outliers = found.outliers()
    assert outliers and outliers[0].node == "loaded", outliers


def alive(name):
    """Processes of that name that have not ended."""
    pids = (int(pid) for pid in os.listdir("/proc") if pid.isdigit())
    return [pid for pid in pids if comm(pid) == name and not gone(pid, 0)]


def comm(pid):
    try:
        with open(f"/proc/{pid}/comm") as file:
            return file.read().strip()
    except OSError:
        return ""
