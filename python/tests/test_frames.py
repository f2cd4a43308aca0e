"""Records as columns: compared with the manifest, and with the packages that take them."""

import array
import builtins

import pytest

import hourglass
from hourglass import Frame
from hourglass.errors import InvalidError, PermissionDeniedError

numbers = pytest.mark.parametrize("name", ["intervals", "gaps", "latencies"])


def of_thread(frame, thread, column):
    return [value for number, value in zip(frame["thread"], frame[column]) if number == thread]


def test_intervals_add_up_to_the_manifest(kept):
    intervals = kept.intervals
    assert kept.document["threads"]
    for thread in kept.threads:
        assert thread["records_dropped"] == 0
        if thread["latency"]:
            assert thread["id"] not in set(intervals["thread"]) and "intervals.latency" in kept.missing
            continue
        begun = of_thread(intervals, thread["id"], "start_ns")
        ended = of_thread(intervals, thread["id"], "end_ns")
        assert len(begun) == thread["intervals"]
        # Each is rounded by itself: at most a nanosecond off on either side.
        received = sum(ended) - sum(begun)
        assert abs(received - thread["cpu_time_ns"]) <= 2 * len(begun)
        assert all(a <= b for a, b in zip(begun, ended))
    begun = list(intervals["start_ns"])
    assert begun == sorted(begun)
    assert max(intervals["end_ns"]) <= kept.manifest["elapsed_ns"] + 1


def test_gaps_add_up_to_causes(kept):
    gaps = kept.gaps
    words = gaps.values("cause")
    for cause in kept.causes:
        lengths = [length for word, length in zip(words, gaps["length_ns"]) if word == cause["cause"]]
        assert len(lengths) == cause["count"]
        assert sum(lengths) == cause["total_ns"]
        assert max(lengths) == cause["max_ns"]
    assert len(gaps) == sum(cause["count"] for cause in kept.causes) > 0
    assert all(
        length == end - start
        for length, start, end in zip(gaps["length_ns"], gaps["start_ns"], gaps["end_ns"])
    )
    assert all(0.0 <= sure <= 1.0 for sure in gaps["confidence"])


# Gaps up to a microsecond have no cause of their own.
LEAST_NS = 1_000


def test_gaps_lie_between_intervals(kept):
    """Those of the trace, found by hand; together with the short ones they are what the manifest counts."""
    for thread in kept.threads:
        if thread["latency"]:
            continue
        rows = [row for row in kept.intervals if row["thread"] == thread["id"]]
        found = [
            (before["end_ns"], after["start_ns"])
            for before, after in zip(rows, rows[1:])
            if after["onset"] in ("gap", "yield", "migration")
        ]
        lengths = [end - start for start, end in found]
        # A gap in which the thread's time ends is counted, and has no interval behind it.
        assert thread["gaps"]["count"] - len(found) in (0, 1)
        assert sum(lengths) <= thread["gaps"]["total_ns"] + 2 * len(lengths)
        assert max(lengths, default=0) <= thread["gaps"]["max_ns"] + 2
        begun, ended = (
            of_thread(kept.gaps, thread["id"], "start_ns"),
            of_thread(kept.gaps, thread["id"], "end_ns"),
        )
        assert list(zip(begun, ended)) == [(start, end) for start, end in found if end - start > LEAST_NS]


def test_latencies_are_those_of_the_manifest(kept):
    measured = [thread for thread in kept.threads if thread["latency"]]
    assert len(measured) == 1
    latency = measured[0]["latency"]
    late = of_thread(kept.latencies, measured[0]["id"], "late_ns")
    assert len(late) == len(kept.latencies) == latency["count"]
    assert (min(late), max(late)) == (latency["min_ns"], latency["max_ns"])
    assert abs(sum(late) / len(late) - latency["mean_ns"]) <= 2
    woke = of_thread(kept.latencies, measured[0]["id"], "woke_ns")
    assert woke == sorted(woke) and woke[0] >= 0
    assert all(ps // 1_000 == ns for ps, ns in zip(kept.latencies["late_ps"], late))


@numbers
def test_columns_are_arrays_of_numbers_without_a_copy(kept, name):
    frame = getattr(kept, name)
    assert len(frame) > 0
    for column in frame.columns:
        values = frame[column]
        assert isinstance(values, memoryview) and values.readonly
        assert values.format in "qQd" and values.itemsize == 8 and len(values) == len(frame)
        copied = array.array(values.format)
        copied.frombytes(values.cast("B"))
        assert copied.tolist() == values.tolist()


@numbers
def test_rows_have_words_and_none(kept, name):
    frame = getattr(kept, name)
    row = next(iter(frame))
    assert tuple(row) == frame.columns
    for column, words in frame.labels.items():
        assert row[column] in words
    for column in frame.unknown:
        assert row[column] is None or row[column] >= 0


PARTS = ("switched_ns", "tick_ns", "irq_ns", "softirq_ns", "fault_ns", "signal_ns", "silent_ns")


def test_what_the_kernel_told():
    """Its events are counted in the manifest; where they cover a gap, its parts add up to its length."""
    try:
        run = hourglass.run([{"workload": "PERIODIC 1ms 5ms"}], duration="200ms", trace=True)
    except PermissionDeniedError as refused:
        pytest.skip(f"{refused} [lacks: test -w /sys/kernel/tracing/instances]")
    kernel, events = run.manifest["kernel"], run.kernel_events
    assert len(events) > 0
    if not sum(cpu["lost"] + cpu["damaged"] for cpu in kernel["cpus"]):
        assert len(events) == sum(cpu["events"] for cpu in kernel["cpus"])
    assert set(events["cpu"]) <= {cpu["cpu"] for cpu in kernel["cpus"]}
    assert list(events["ticks"]) == sorted(events["ticks"])
    assert "kernel_events" not in run.missing
    told = [row for row in run.gaps if row["switched_ns"] is not None]
    assert all(sum(row[part] for part in PARTS) == row["length_ns"] for row in told)


def test_a_frame_says_what_it_is():
    frame = Frame({"a": [1, 2], "b": ["x", None]})
    assert len(frame) == 2 and frame.columns == ("a", "b") and "a" in frame and "c" not in frame
    assert list(frame) == [{"a": 1, "b": "x"}, {"a": 2, "b": None}]
    assert repr(frame) == "<Frame of 2 rows: a, b>"
    with pytest.raises(KeyError, match="no column 'c'; there are a, b"):
        frame["c"]
    with pytest.raises(InvalidError, match="different lengths"):
        Frame({"a": [1], "b": []})


@numbers
def test_numpy(kept, name):
    numpy = pytest.importorskip("numpy")
    frame = getattr(kept, name)
    for column, values in frame.to_numpy().items():
        assert values.shape == (len(frame),)
        assert not values.flags.owndata and not values.flags.writeable
        assert numpy.array_equal(values, frame[column].tolist())


@numbers
def test_pandas(kept, name):
    pandas = pytest.importorskip("pandas")
    frame = getattr(kept, name)
    data = frame.to_pandas()
    assert list(data.columns) == list(frame.columns) and len(data) == len(frame)
    for column in frame.columns:
        told = [None if pandas.isna(value) else value for value in data[column]]
        assert told == frame.values(column), column


def test_pandas_groups_by_cause(kept):
    pytest.importorskip("pandas")
    totals = kept.gaps.to_pandas().groupby("cause", observed=True).length_ns.sum()
    assert {cause["cause"]: cause["total_ns"] for cause in kept.causes} == totals.to_dict()


@numbers
def test_polars(kept, name):
    pytest.importorskip("polars")
    frame = getattr(kept, name)
    data = frame.to_polars()
    assert data.columns == list(frame.columns) and data.height == len(frame)
    for column in frame.columns:
        assert data[column].to_list() == frame.values(column), column


def test_the_summary_as_a_data_frame(kept):
    pytest.importorskip("pandas")
    data = kept.summary.to_pandas()
    assert data["cpu_time_ns"].sum() == sum(thread["cpu_time_ns"] for thread in kept.threads)


@pytest.mark.parametrize(
    "package, call", [("numpy", "to_numpy"), ("pandas", "to_pandas"), ("polars", "to_polars")]
)
def test_what_is_not_installed_is_told_with_the_line_that_installs_it(monkeypatch, package, call):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == package:
            raise ImportError(f"No module named {name!r}", name=name)
        return real(name, *args, **kwargs)

    monkeypatch.setattr("importlib.import_module", lambda name: without(name))
    with pytest.raises(ImportError, match=f"needs {package}: pip install"):
        getattr(Frame({"a": [1]}), call)()
