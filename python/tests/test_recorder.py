"""Recording a loop of the program's own, from Python."""

from __future__ import annotations

import gc
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

import hourglass
from hourglass import clock, errors


def test_a_loop_is_kept_like_any_other_run(tmp_path: pathlib.Path) -> None:
    folder = tmp_path / "run"
    with hourglass.Recorder("2ms", folder=folder, name="control", jobs=20) as recorder:
        for tick in hourglass.periodic("2ms", count=20):
            with recorder.period(tick.expiry_ns):
                recorder.check()
        counted = recorder.deadlines
        assert counted.completed == 20 and recorder.document is None and recorder.kept is None
    assert recorder.kept == folder and (folder / "trace.parquet").is_file()
    kept = json.loads((folder / "manifest.json").read_text())
    document = recorder.document
    assert document is not None and document["schema"] == "hourglass.run/1"
    thread = document["threads"][0]
    assert (thread["name"], thread["workload"]) == ("control", "LOOP 2ms")
    assert thread["deadlines"]["completed"] == 20
    assert thread["deadlines"]["hit"] + thread["deadlines"]["missed"] == 20
    assert kept["epoch"] == document["manifest"]["epoch"]
    assert recorder.result == {key: value for key, value in document.items() if key != "manifest"}


def test_watching_marks_each_tick() -> None:
    recorder = hourglass.Recorder("1ms")
    recorder.start()
    seen = [tick.number for tick in recorder.watch(hourglass.periodic("1ms", count=6))]
    assert seen == [0, 1, 2, 3, 4, 5] and recorder.deadlines.completed == 6
    for item in recorder.watch("ab"):
        if item == "b":
            break
    recorder.finish()
    assert recorder.result is not None and recorder.result["threads"][0]["deadlines"]["completed"] == 8
    recorder.finish()


def test_a_period_that_takes_too_long_is_missed() -> None:
    with hourglass.Recorder("50ms", deadline="1ms") as recorder:
        recorder.begin()
        until = clock.now_ns() + 3_000_000
        while clock.now_ns() < until:
            recorder.check()
        recorder.end()
        assert (recorder.deadlines.hit, recorder.deadlines.missed) == (0, 1)


def test_an_exception_does_not_lose_what_was_measured(tmp_path: pathlib.Path) -> None:
    with pytest.raises(ZeroDivisionError):
        with hourglass.Recorder("1ms", folder=tmp_path / "run") as recorder:
            with recorder.period():
                raise ZeroDivisionError
    assert recorder.kept == tmp_path / "run" and recorder.result is not None


def test_a_recorder_is_used_in_order_and_in_its_thread(tmp_path: pathlib.Path) -> None:
    recorder = hourglass.Recorder("1ms", folder=tmp_path / "run")
    for use in (recorder.begin, recorder.end, recorder.check, recorder.finish):
        with pytest.raises(errors.ClosedError, match="not begun"):
            use()
    recorder.start()
    with pytest.raises(errors.BusyError):
        recorder.start()
    found: list[BaseException] = []

    def elsewhere() -> None:
        for use in (recorder.begin, recorder.finish):
            try:
                use()
            except errors.WrongThreadError as wrong:
                found.append(wrong)

    other = threading.Thread(target=elsewhere)
    other.start()
    other.join()
    assert len(found) == 2
    recorder.finish()
    for use in (recorder.begin, recorder.end, recorder.check):
        with pytest.raises(errors.ClosedError, match="over"):
            use()
    again = hourglass.Recorder("1ms", folder=tmp_path / "run")
    with pytest.raises(errors.InvalidError, match="exists already"):
        again.start()


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"period": 0}, "period"),
        ({"period": "-1ms"}, "period"),
        ({"period": "1ms", "deadline": 0}, "deadline"),
        ({"period": "1ms", "gap": -1}, "gap"),
        ({"period": "1ms", "records": 0}, "records"),
        ({"period": "1ms", "records": 2**40}, "records"),
        ({"period": 2**64}, "292 years"),
    ],
)
def test_recorders_that_cannot_be_meant(arguments: dict[str, object], says: str) -> None:
    with pytest.raises(errors.InvalidError, match=says):
        hourglass.Recorder(**arguments)  # type: ignore[arg-type]


@pytest.mark.parametrize("arguments", [{}, {"period": 1.5}, {"period": "1ms", "folder": 5}, {"period": "1ms", "jobs": "many"}])
def test_what_has_a_wrong_type(arguments: dict[str, object]) -> None:
    with pytest.raises(TypeError):
        hourglass.Recorder(**arguments)  # type: ignore[arg-type]


@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_a_forked_child_has_no_recorder(tmp_path: pathlib.Path) -> None:
    """Its records are not mapped there: touching them ended the child by SIGSEGV."""
    with hourglass.Recorder("1ms", folder=tmp_path / "run") as recorder:
        with recorder.period():
            pass
        child = os.fork()
        if child == 0:
            try:
                for use in (recorder.begin, recorder.check, recorder.end, recorder.finish):
                    try:
                        use()
                        os._exit(3)
                    except errors.ForkedError:
                        pass
                del recorder, use
                gc.collect()
                os._exit(0)
            except BaseException:
                os._exit(2)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert recorder.kept == tmp_path / "run"


HOG = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
print("ready", flush=True)
for _ in range(100):
    time.sleep(0.1)
    until = time.monotonic() + 0.012
    while time.monotonic() < until:
        pass
"""


def test_a_starved_loop_says_why(tmp_path: pathlib.Path) -> None:
    """Issue 33, 2: beside a FIFO hog the folder had no gap, no latency, no cause, and the policy OTHER."""
    cpus = sorted(os.sched_getaffinity(0))
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError as refused:
        pytest.skip(f"SCHED_FIFO: {refused} [lacks: chrt --fifo 1 true]")
    os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
    with subprocess.Popen([sys.executable, "-c", HOG, str(cpus[-1])], stdout=subprocess.PIPE) as hog:
        assert hog.stdout is not None and hog.stdout.readline()
        with hourglass.Recorder("1ms", folder=tmp_path / "run") as recorder:
            ticks = hourglass.periodic("1ms", count=400, policy="FIFO:10", cpus=cpus[-1])
            for _ in recorder.watch(ticks):
                pass
        hog.kill()
    assert recorder.result is not None
    thread = recorder.result["threads"][0]
    assert (thread["policy"], thread["cpus"]) == ("FIFO:10", [cpus[-1]])
    assert thread["latency"]["count"] >= 360 and thread["latency"]["max_ns"] >= 8_000_000
    assert thread["latency"]["lost"] == thread["deadlines"]["lost"] > 0
    causes = {cause["cause"]: cause for cause in recorder.result["causes"]}
    assert causes["context_switch_involuntary"]["max_ns"] >= 8_000_000
    if len(cpus) > 1:
        who = {ran["name"] for gap in recorder.result["meanwhile"] for ran in gap["ran"]}
        assert any(name and name.startswith("python") for name in who), who
