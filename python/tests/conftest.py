"""What several tests share."""

import pytest

import hourglass


@pytest.fixture(scope="session")
def kept(tmp_path_factory):
    """A run of a second that was kept: a periodic thread, one that measures latency, one that spins."""
    folder = tmp_path_factory.mktemp("runs") / "kept"
    threads = [
        {"name": "periodic", "workload": "PERIODIC 1ms 10ms"},
        {"name": "waker", "workload": "LAT 2ms"},
        {"name": "load", "workload": "CPU", "finish": "200ms"},
    ]
    return hourglass.run(threads, duration="1s", output=folder, seed=1)
