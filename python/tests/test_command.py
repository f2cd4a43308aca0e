"""Documents are those of the command: the same values under the same keys.

`cargo xtask python` builds the command and tells where it is (`$HOURGLASS`); elsewhere it is looked for in PATH.
"""

import json
import os
import shutil
import subprocess

import pytest

import hourglass
from hourglass import reserve, sched

TOML = """
[[task]]
name = "audio"
period = "8ms"
wcet = "3ms"
priority = 80

[[task]]
name = "video"
period = "33ms"
wcet = "17ms"
jitter = "1ms"
priority = 40
"""


@pytest.fixture(scope="module")
def told():
    """What the command prints with `--json`."""
    command = os.environ.get("HOURGLASS") or shutil.which("hourglass")
    if not command:
        pytest.skip("no command hourglass [lacks: test -x \"$HOURGLASS\" || command -v hourglass]")

    def run(*words):
        printed = subprocess.run([command, *map(str, words), "--json"], capture_output=True, text=True)
        assert printed.returncode in (0, 1, 4), printed.stderr
        return json.loads(printed.stdout)

    return run


@pytest.fixture
def tasks(tmp_path):
    file = tmp_path / "tasks.toml"
    file.write_text(TOML)
    return file


def test_show(told, kept):
    assert hourglass.open_run(kept.folder).document == told("show", kept.folder)


def test_diff(told, tmp_path):
    folders = [tmp_path / name for name in "ab"]
    for folder in folders:
        hourglass.run([{"workload": "PERIODIC 1ms 5ms"}], duration="200ms", output=folder)
    assert hourglass.diff(*folders, margin=7.5, gap="2us", seed=3) == told(
        "diff", *folders, "--margin", 7.5, "--gap", "2us", "--seed", 3
    )


def test_check(told, tasks):
    assert sched.check(tasks) == told("check", tasks)
    words = "--analysis", "fp-preemptive", "--sensitivity", "--server", "5ms", "--explain"
    asked = sched.check(tasks, analysis="fp-preemptive", sensitivity=True, server="5ms", explain=True)
    assert asked == told("check", tasks, *words)


def test_analyses(told):
    assert sched.analyses() == told("check", "--list-analyses")


def test_simulate(told, tasks):
    asked = sched.simulate(tasks, horizon="1s", seed=5, releases="random", rt_throttling=("950ms", "1s"))
    words = "--horizon", "1s", "--seed", 5, "--releases", "random", "--rt-throttling", "950ms/1s"
    assert asked.document == told("simulate", tasks, *words)


def test_predict(told, tasks):
    asked = sched.predict(tasks, run=False, seed=2, horizon="500ms")
    assert asked == told("predict", tasks, "--no-run", "--seed", 2, "--horizon", "500ms")


def test_sweep(told, tasks):
    asked = sched.sweep(utilisations="0.7:0.9:0.1", sets=5, tasks=3, seed=2, granularity="10us")
    words = "-u", "0.7:0.9:0.1", "--sets", 5, "-n", 3, "--seed", 2, "--granularity", "10us"
    assert asked == told("sweep", *words)
    assert sched.sweep(tasks, utilisations="0.5") == told("sweep", tasks, "-u", "0.5")


def test_reserve(told):
    """Of the machine only what does not change from one moment to the next."""
    asked = reserve.check("1ms/20ms", soft=True, deadline="15ms", cpu=0)
    command = told("reserve", "1ms/20ms", "--soft", "--deadline", "15ms", "--cpu", 0, "--check")
    assert asked.keys() == command.keys()
    same = ("schema", "target", "budget_ns", "period_ns", "deadline_ns", "soft", "cpus", "exit_code")
    assert {key: asked[key] for key in same} == {key: command[key] for key in same}
