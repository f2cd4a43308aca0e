"""Run folders: documents, what is missing, what is refused. The numbers are in test_frames.py."""

import json
import shutil

import pytest

import hourglass
from hourglass.errors import DataError


def test_the_document_has_the_keys_of_the_contract(kept):
    """`hourglass.run/1` as the contract lists it."""
    document = kept.document
    assert document["schema"] == "hourglass.run/1"
    for key in ("manifest", "threads", "causes", "switches", "warnings", "gates", "interrupted"):
        assert key in document, key
    for thread in kept.threads:
        for key in (
            "id",
            "workload",
            "policy",
            "cpus",
            "cpu_time_ns",
            "wall_ns",
            "intervals",
            "gaps",
            "deadlines",
            "latency",
            "work",
            "records_dropped",
        ):
            assert key in thread, key
    assert all(
        set(gap) >= {"count", "total_ns", "p50_ns", "p99_ns", "p999_ns", "max_ns"}
        for gap in (thread["gaps"] for thread in kept.threads)
    )
    assert kept.manifest["clock"]["source"]
    assert kept.passed and not kept.interrupted


def test_the_folder_is_a_folder_of_the_command(kept):
    names = {path.name for path in kept.folder.iterdir()}
    assert names >= {"manifest.json", "trace.parquet", "latency.hlog", "latency.parquet"}
    assert kept.manifest["command_line"]


def test_the_summary_has_a_row_for_each_thread(kept):
    summary = kept.summary
    assert len(summary) == len(kept.threads)
    for row, thread in zip(summary, kept.threads):
        assert row["id"] == thread["id"]
        assert row["gaps_count"] == thread["gaps"]["count"]
        assert row["gaps_max_ns"] == thread["gaps"]["max_ns"]
        deadlines = thread["deadlines"]
        assert row["hit"] == (deadlines["hit"] if deadlines else None)
        latency = thread["latency"]
        assert row["latency_max_ns"] == (latency["max_ns"] if latency else None)


def test_jobs_are_those_that_the_document_counts(kept):
    for run in kept, hourglass.run([{"workload": "PERIODIC 1ms 5ms"}], duration="100ms"):
        for thread in run.threads:
            jobs = [job for job in run.jobs if job["thread"] == thread["id"]]
            deadlines = thread["deadlines"]
            assert bool(jobs) == bool(deadlines)
            if not deadlines:
                continue
            ended = [job for job in jobs if job["finished_ns"] is not None]
            assert sum(job["finished_ns"] <= job["deadline_ns"] for job in ended) == deadlines["hit"]
            for job in jobs:
                assert job["release_ns"] < job["deadline_ns"]
                assert not job["lost"] or job["started_ns"] is None
                assert job["finished_ns"] is None or job["started_ns"] <= job["finished_ns"]


def test_what_is_missing_is_told(kept):
    assert "trace=True" in kept.missing["kernel_events"]
    assert "latencies" not in kept.missing
    assert len(kept.kernel_events) == 0 or "kernel_events" in kept.missing


def test_a_run_in_memory_is_like_one_in_a_folder():
    run = hourglass.run([{"workload": "PERIODIC 1ms 10ms"}], duration="100ms", seed=7)
    assert run.folder is None and "in memory" in repr(run)
    assert run.manifest["seed"] == 7
    assert run.manifest["duration_ns"] == 100_000_000
    assert len(run.intervals) == sum(thread["intervals"] for thread in run.threads)
    assert "latency" in run.missing["latencies"]


def test_no_folder(tmp_path):
    with pytest.raises(DataError, match="does not exist"):
        hourglass.open_run(tmp_path / "nothing")
    with pytest.raises(DataError, match="is not a run folder; make one with"):
        hourglass.open_run(tmp_path)
    file = tmp_path / "file"
    file.write_text("")
    with pytest.raises(DataError, match="is not a folder"):
        hourglass.open_run(file)


def copied(kept, tmp_path):
    folder = tmp_path / "copy"
    shutil.copytree(kept.folder, folder)
    return folder


def test_half_written(kept, tmp_path):
    folder = copied(kept, tmp_path)
    (folder / "manifest.json").unlink()
    with pytest.raises(DataError, match="half-written"):
        hourglass.open_run(folder)


def test_another_version(kept, tmp_path):
    folder = copied(kept, tmp_path)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["schema"] = "hourglass.manifest/9"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(DataError, match="hourglass.manifest/9.*use the version of Hourglass that wrote it"):
        hourglass.open_run(folder)


def test_a_truncated_trace(kept, tmp_path):
    folder = copied(kept, tmp_path)
    trace = folder / "trace.parquet"
    trace.write_bytes(trace.read_bytes()[:-20])
    with pytest.raises(DataError, match="truncated"):
        hourglass.open_run(folder)


def test_a_damaged_trace_raises_and_does_not_end_the_process(kept, tmp_path):
    """Every place of the records overwritten, one after the other; whatever comes of it, it is an `Error`."""
    folder = copied(kept, tmp_path)
    trace = folder / "trace.parquet"
    sound = trace.read_bytes()
    refused = 0
    step = max(1, len(sound) // 40)
    for at in range(0, len(sound) - 16, step):
        trace.write_bytes(sound[:at] + b"\xff" * 16 + sound[at + 16 :])
        try:
            len(hourglass.open_run(folder).intervals)
        except hourglass.Error:
            refused += 1
    assert refused > 0


def test_without_single_latencies(kept, tmp_path):
    folder = copied(kept, tmp_path)
    (folder / "latency.parquet").unlink()
    run = hourglass.open_run(folder)
    assert "histogram" in run.missing["latencies.single"]
    assert len(run.latencies) == len(kept.latencies)
    late = list(run.latencies["late_ns"])
    assert late == sorted(late)
