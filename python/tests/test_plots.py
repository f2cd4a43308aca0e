"""Plots: what is drawn, by the numbers in the axes. How it looks was looked at."""

import sys

import pytest

import hourglass
from hourglass import plots, sched
from hourglass.errors import InvalidError

TASKS = {
    "task": [
        {"name": "audio", "wcet": "3ms", "period": "8ms", "priority": 80},
        {"name": "video", "wcet": "17ms", "period": "33ms", "priority": 40},
    ]
}


@pytest.fixture(autouse=True)
def canvas():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    yield
    from matplotlib import pyplot

    pyplot.close("all")


def test_nothing_of_matplotlib_is_imported_before_a_plot():
    import subprocess

    code = "import sys, hourglass; hourglass.plots.timeline; print('matplotlib' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert told.stdout == "False\n", told.stderr


def test_every_plot_takes_and_returns_axes_and_can_be_saved(kept, tmp_path):
    from matplotlib import pyplot

    simulation = sched.simulate(TASKS)
    draw = {
        "histogram": lambda ax: plots.latency_histogram(kept, ax=ax),
        "distribution": lambda ax: plots.distribution(kept, ax=ax),
        "gaps": lambda ax: plots.distribution(kept, what="gaps", ax=ax),
        "causes": lambda ax: plots.gap_causes(kept, ax=ax),
        "timeline": lambda ax: plots.timeline(kept, ax=ax),
        "schedule": lambda ax: plots.schedule(simulation, ax=ax),
        "responses": lambda ax: plots.responses(sched.check(TASKS), ax=ax),
    }
    for name, plot in draw.items():
        _figure, given = pyplot.subplots()
        assert plot(given) is given, name
        made = plot(None)
        assert made is not given
        assert made.get_xlabel(), name
        made.figure.savefig(tmp_path / f"{name}.png")
        assert (tmp_path / f"{name}.png").stat().st_size > 1_000


def test_a_histogram_has_every_wake_up(kept):
    ax = plots.latency_histogram(kept, step_ns=10_000)
    stairs = [patch for patch in ax.patches if hasattr(patch, "get_data")]
    values, edges, _baseline = stairs[0].get_data()
    assert sum(values) == len(kept.latencies)
    late = kept.latencies["late_ns"]
    assert edges[0] * 1_000 <= min(late) and max(late) < edges[-1] * 1_000
    assert ax.get_yscale() == "log" and "µs" in ax.get_xlabel()


def test_a_distribution_goes_from_all_to_one(kept):
    (line,) = [line for line in plots.distribution(kept).lines if len(line.get_xdata()) > 2]
    shares = line.get_ydata()
    assert shares[0] == 100.0 and shares[-1] == pytest.approx(100.0 / len(kept.latencies))


def test_bars_of_causes_are_the_document_s(kept):
    ax = plots.gap_causes(kept)
    shares = sorted(bar.get_width() for bar in ax.patches)
    totals = sorted(cause["total_ns"] for cause in kept.causes)
    assert [width / shares[-1] for width in shares] == pytest.approx([total / totals[-1] for total in totals])


def test_a_schedule_has_the_processor_time_of_each_task():
    simulation = sched.simulate(TASKS)
    ax = plots.schedule(simulation, end_ns=33_000_000)
    ms = 0.0
    for collection in ax.collections:
        for path in collection.get_paths():
            xs = path.vertices[:, 0]
            ms += xs.max() - xs.min()
    # Four jobs of audio and the one of video, whose last 3 ms end at 29 ms; audio's fifth begins at 32 ms.
    assert ms == pytest.approx(4 * 3 + 17 + 1)
    assert [label.get_text() for label in ax.get_yticklabels()] == ["audio", "video"]


def test_a_timeline_shows_only_its_window(kept):
    ax = plots.timeline(kept, start_ns=100_000_000, end_ns=200_000_000)
    left, right = ax.get_xlim()
    assert (left, right) == (100.0, 200.0) and "(ms)" in ax.get_xlabel()


def test_responses_say_what_is_late():
    late = {"task": [{"name": "a", "wcet": "3ms", "period": "8ms", "deadline": "2ms", "priority": 1}]}
    ax = plots.responses(sched.check(late))
    assert any("late" in text.get_text() for text in ax.texts)
    assert len(plots.responses(sched.predict(TASKS, run=False)).patches) == 4
    assert len(plots.responses(sched.simulate(TASKS)).patches) == 2


def test_what_cannot_be_drawn(kept):
    run = hourglass.run([{"workload": "PERIODIC 1ms 10ms"}], duration="50ms")
    with pytest.raises(InvalidError, match="no thread measured latency"):
        plots.latency_histogram(run)
    with pytest.raises(InvalidError, match="no wake-ups"):
        plots.distribution(run)
    with pytest.raises(InvalidError, match="no thread ran"):
        plots.timeline(run, start_ns=10**12)
    with pytest.raises(InvalidError, match="no schedule"):
        plots.schedule(sched.simulate(TASKS, schedule=False))
    with pytest.raises(InvalidError, match="give the document"):
        plots.responses({"schema": "hourglass.doctor/1"})
    with pytest.raises(InvalidError, match="step_ns"):
        plots.latency_histogram(kept, step_ns=0)


def test_without_matplotlib(monkeypatch, kept):
    def without(name):
        raise ImportError(name)

    monkeypatch.setattr("importlib.import_module", without)
    with pytest.raises(ImportError, match="a plot needs matplotlib: pip install"):
        plots.gap_causes(kept)
