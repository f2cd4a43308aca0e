"""Experiments in parts on executors: the bytes of one process, whatever becomes of the workers."""

import concurrent.futures as futures
import os
import signal
import sys
import threading
import time
from pathlib import Path

import pytest

import hourglass
from hourglass import sched, shards
from hourglass.errors import DataError, InvalidError, LostError

EXPERIMENT = {"utilisations": "0.7:0.95:0.05", "sets": 20, "tasks": 5, "analyses": "rm,dm,edf-preemptive", "keep_sets": True}

TEXTBOOK = """
[[task]]
name = "a"
period = "8ms"
wcet = "3ms"
priority = 80

[[task]]
name = "b"
period = "33ms"
wcet = "17ms"
deadline = "30ms"
priority = 40
"""


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in folder.iterdir()}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The experiment by one process: its document and its folder."""
    folder = tmp_path_factory.mktemp("whole") / "sweep"
    return sched.sweep(EXPERIMENT, output=folder), bytes_of(folder)


class Here(futures.Executor):
    """Does what it is given at once, or fails as it is told to."""

    def __init__(self, fails=lambda index, time: None):
        self.fails = fails
        self.asked = {}

    def submit(self, call, recipe, index, of):
        future = futures.Future()
        self.asked[index] = self.asked.get(index, 0) + 1
        error = self.fails(index, self.asked[index])
        if error is None:
            future.set_result(call(recipe, index, of))
        else:
            future.set_exception(error)
        return future


def test_a_pool_of_processes_writes_the_bytes_of_one(whole, tmp_path):
    seen = []
    with futures.ProcessPoolExecutor(2) as pool:
        document = sched.sweep(EXPERIMENT, executor=pool, shards=7, output=tmp_path / "out", progress=seen.append)
    assert document == whole[0] and bytes_of(tmp_path / "out") == whole[1]
    assert [step.done for step in seen] == list(range(8)) and {step.shards for step in seen} == {7}
    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]


@pytest.mark.parametrize("count", [1, 2, 11, 12, 14])
def test_the_number_of_parts_does_not_matter(tmp_path, count):
    """12 sets: also more parts than sets."""
    small = {**EXPERIMENT, "utilisations": "0.7:0.95:0.05", "sets": 2}
    document = sched.sweep(small, output=tmp_path / "whole")
    assert sched.sweep(small, executor=Here(), shards=count, output=tmp_path / "out") == document
    assert bytes_of(tmp_path / "out") == bytes_of(tmp_path / "whole")


def test_what_is_kept_nowhere_is_the_same_document(whole):
    assert sched.sweep(EXPERIMENT, executor=Here(), shards=3) == whole[0]
    small = {**EXPERIMENT, "utilisations": "0.7,0.9", "sets": 3}
    here = Here()
    assert sched.sweep(small, executor=here) == sched.sweep(small) and len(here.asked) == 6


def test_files_and_sets_of_tasks_go_to_workers_as_texts(tmp_path):
    """A worker has neither the file nor the object."""
    file = tmp_path / "tasks.toml"
    file.write_text(TEXTBOOK)
    question = {"utilisations": "0.4:1:0.1", "analyses": "rm,dm", "sets": 1}
    alone = sched.sweep(file, **question)
    assert alone["experiment"]["generator"] == "scaled"
    for given in (file, TEXTBOOK, sched.TaskSet(TEXTBOOK)):
        assert sched.sweep(given, **question, executor=Here(), shards=3) == alone


def test_a_part_that_is_lost_is_asked_for_again(whole):
    here = Here(lambda index, time: OSError("the worker went") if time <= index % 4 else None)
    seen = []
    assert sched.sweep(EXPERIMENT, executor=here, shards=8, progress=seen.append) == whole[0]
    assert here.asked == {index: index % 4 + 1 for index in range(8)}
    assert seen[-1] == shards.Progress(done=8, shards=8, lost=12)


def test_a_part_that_never_comes_is_named_and_the_others_are_kept(whole, tmp_path):
    here = Here(lambda index, time: RuntimeError("no memory") if index == 5 else None)
    says = r"part 5 of 8 did not come back, 3 times; the last time: RuntimeError: no memory; parts that are done are in"
    with pytest.raises(LostError, match=says):
        sched.sweep(EXPERIMENT, executor=here, shards=8, retries=2, output=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    again = Here()
    document = sched.sweep(EXPERIMENT, executor=again, shards=8, output=tmp_path / "out")
    assert again.asked == {5: 1}
    assert document == whole[0] and bytes_of(tmp_path / "out") == whole[1]


def test_what_is_refused_is_not_asked_for_again():
    here = Here(lambda index, time: InvalidError("no such thing") if index == 1 else None)
    with pytest.raises(InvalidError, match="part 1 of 4: no such thing"):
        sched.sweep(EXPERIMENT, executor=here, shards=4)
    assert here.asked[1] == 1


def test_wrong_experiments_reach_no_worker():
    here = Here()
    with pytest.raises(InvalidError, match="no-such"):
        sched.sweep(EXPERIMENT, analyses="no-such", executor=here, shards=4)
    with pytest.raises(InvalidError, match="shards: 0 is out of range"):
        sched.sweep(EXPERIMENT, executor=here, shards=0)
    with pytest.raises(InvalidError, match="retries: -1 is below 0"):
        sched.sweep(EXPERIMENT, executor=here, shards=4, retries=-1)
    with pytest.raises(InvalidError, match="shards: only for a sweep on an executor"):
        sched.sweep(EXPERIMENT, shards=4)
    assert here.asked == {}


def test_parts_of_another_experiment_are_refused(tmp_path):
    broken = Here(lambda index, time: OSError("gone") if index == 1 else None)
    with pytest.raises(LostError):
        sched.sweep(EXPERIMENT, executor=broken, shards=2, output=tmp_path / "out", retries=0)
    with pytest.raises(DataError, match="part 0 has seed 1, here it is 2"):
        sched.sweep(EXPERIMENT, seed=2, executor=Here(), shards=2, output=tmp_path / "out")
    with pytest.raises(InvalidError, match="holds parts of 2, not of 3; take 2, or remove"):
        sched.sweep(EXPERIMENT, executor=Here(), shards=3, output=tmp_path / "out")


def test_a_worker_of_another_version_is_refused():
    class Older(Here):
        def submit(self, call, recipe, index, of):
            future = super().submit(call, recipe, index, of)
            files = future.result()
            said = f'"version":"{hourglass.__version__}"'.encode()
            files["experiment.json"] = files["experiment.json"].replace(said, b'"version":"0.0.1"').replace(
                said.replace(b":", b": "), b'"version": "0.0.1"'
            )
            return future

    with pytest.raises(DataError, match="part 0 has version '0.0.1', here it is"):
        sched.sweep(EXPERIMENT, executor=Older(), shards=2)


def _die_once(recipe, index, of):
    """Kills its process where nobody has died of this part yet."""
    mark = Path(recipe["mark"]) / str(index)
    if index % 3 == 1 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return shards.part({key: value for key, value in recipe.items() if key != "mark"}, index, of)


class Deadly(futures.ProcessPoolExecutor):
    mark = ""

    def submit(self, call, recipe, index, of):
        return super().submit(_die_once, {**recipe, "mark": self.mark}, index, of)


def test_a_broken_pool_is_replaced_by_who_makes_pools(whole, tmp_path):
    """A worker that is killed breaks a pool of the standard library for good."""
    (tmp_path / "marks").mkdir()
    Deadly.mark = str(tmp_path / "marks")
    seen = []
    document = sched.sweep(
        EXPERIMENT, executor=lambda: Deadly(2), shards=6, output=tmp_path / "out", progress=seen.append, retries=9
    )
    assert document == whole[0] and bytes_of(tmp_path / "out") == whole[1]
    assert seen[-1].lost >= 2 and len(list((tmp_path / "marks").iterdir())) == 2


def test_a_broken_pool_without_another_is_named(tmp_path):
    (tmp_path / "marks").mkdir()
    Deadly.mark = str(tmp_path / "marks")
    with Deadly(1) as pool, pytest.raises(LostError, match=r"part \d of 6.*the executor is broken"):
        sched.sweep(EXPERIMENT, executor=pool, shards=6, output=tmp_path / "out", retries=9)
    assert sched.sweep(EXPERIMENT, executor=Here(), shards=6, output=tmp_path / "out")["interrupted"] is False


def test_ctrl_c_cancels_what_has_not_begun_and_keeps_what_is_done(whole, tmp_path, alarm):
    begun, over = threading.Event(), threading.Event()

    class Slow(futures.ThreadPoolExecutor):
        submitted = []

        def submit(self, call, recipe, index, of):
            def work():
                if index >= 2:
                    begun.set()
                    over.wait(20)
                return call(recipe, index, of)

            self.submitted.append(super().submit(work))
            return self.submitted[-1]

    one = alarm()

    def progress(step):
        if step.done == 2:
            begun.wait()
            one.after(0.05)

    with Slow(1) as pool:
        with pytest.raises(KeyboardInterrupt):
            sched.sweep(EXPERIMENT, executor=pool, shards=6, output=tmp_path / "out", progress=progress)
        # It did not wait for the one that runs.
        assert pool.submitted[2].running()
        over.set()
        assert sum(future.cancelled() for future in pool.submitted) == 3
    again = Here()
    document = sched.sweep(EXPERIMENT, executor=again, shards=6, output=tmp_path / "out")
    assert sorted(again.asked) == [2, 3, 4, 5]
    assert document == whole[0] and bytes_of(tmp_path / "out") == whole[1]


def _slow_part(recipe, index, of):
    """A part that takes long enough to be on a worker when that is killed."""
    time.sleep(0.05)
    return shards.part(recipe, index, of)


def test_dask_with_two_of_four_workers_killed(whole, tmp_path, monkeypatch):
    """Issue 23: a real scheduler and four worker processes on loopback, two of them killed in the midst."""
    distributed = pytest.importorskip("distributed")
    monkeypatch.setattr(shards, "part", _slow_part_of(shards.part))
    started = time.monotonic()
    with distributed.LocalCluster(
        n_workers=4, threads_per_worker=1, processes=True, host="127.0.0.1", dashboard_address=None, worker_dashboard_address=None
    ) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(4, timeout=60)
        # Asked before: the scheduler may not know yet that one of them is gone.
        alive = list(client.run(os.getpid).values())
        killed = []

        def progress(step):
            if step.done in (5, 12) and len(killed) < 2:
                killed.append(alive[len(killed)])
                os.kill(killed[-1], signal.SIGKILL)

        executor = client.get_executor(pure=False)
        document = sched.sweep(EXPERIMENT, executor=executor, shards=40, output=tmp_path / "out", progress=progress)
    assert len(killed) == 2
    assert document == whole[0] and bytes_of(tmp_path / "out") == whole[1]
    print(f"{time.monotonic() - started:.1f} s with the cluster", file=sys.stderr)


def _slow_part_of(part):
    return _slow_part
