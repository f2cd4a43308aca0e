"""The plugin for pytest-benchmark: a pytest of its own, with benchmarks whose interruptions are known."""

from __future__ import annotations

import json
import pathlib
import subprocess
import sys

import pytest

BENCHMARKS = """
import time

calls = 0

def work():
    global calls
    calls += 1
    if calls % 4 == 0:
        time.sleep(0.002)
    return calls

def test_sometimes_sleeps(benchmark):
    # Three calls before the rounds, so that rounds 0, 4, 8, ... sleep.
    assert benchmark.pedantic(work, rounds=40, warmup_rounds=3) == 43

def test_is_calibrated(benchmark):
    benchmark(sum, [1, 2, 3])

def test_measures_nothing():
    pass

def test_has_an_error(benchmark):
    def fails():
        raise ValueError("of its own")
    import pytest
    with pytest.raises(ValueError):
        benchmark(fails)
"""


def run(folder: pathlib.Path, *options: str) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(BENCHMARKS)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *options, "test_it.py"]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300, check=False)


def test_disturbed_rounds_are_marked_and_left_out(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pytest_benchmark")
    options = ["--benchmark-witness", "--benchmark-json=out.json", "--benchmark-max-time=0.05", "--benchmark-min-rounds=5"]
    answer = run(tmp_path, *options)
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "rounds that the scheduler disturbed" in answer.stdout
    document = json.loads((tmp_path / "out.json").read_text())
    found = {one["name"]: one for one in document["benchmarks"]}
    sleeps = found["test_sometimes_sleeps"]
    known = sleeps["extra_info"]["hourglass"]
    assert known["rounds"] == 40
    # Others may have been disturbed by the machine.
    assert set(known["disturbed"]) >= set(range(0, 40, 4))
    assert sum(known["causes"].values()) == len(known["disturbed"])
    least, most = known["off_cpu_ns"]
    assert least <= most and most >= 10 * 2_000_000
    data = [seconds for number, seconds in enumerate(sleeps["stats"]["data"]) if number not in known["disturbed"]]
    clean = known["clean"]
    assert clean["rounds"] == len(data) and clean["max"] == max(data) and clean["min"] == min(data)
    assert sleeps["stats"]["max"] >= 0.002
    calibrated = found["test_is_calibrated"]
    assert calibrated["extra_info"]["hourglass"]["rounds"] == calibrated["stats"]["rounds"] >= 5


def test_without_the_option_nothing_changes(tmp_path: pathlib.Path) -> None:
    pytest.importorskip("pytest_benchmark")
    answer = run(tmp_path, "--benchmark-json=out.json", "--benchmark-max-time=0.05", "--benchmark-min-rounds=5")
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "disturbed" not in answer.stdout
    document = json.loads((tmp_path / "out.json").read_text())
    assert all(one["extra_info"] == {} for one in document["benchmarks"])


def test_the_option_without_pytest_benchmark_is_one_line(tmp_path: pathlib.Path) -> None:
    answer = run(tmp_path, "--benchmark-witness", "-p", "no:benchmark")
    assert answer.returncode == 4, answer.stdout + answer.stderr
    assert "needs pytest-benchmark: pip install pytest-benchmark" in answer.stderr
