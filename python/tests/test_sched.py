"""Sets of tasks: forms, analysis, simulation, prediction. Numbers are those of the papers and of hand."""

import doctest
import itertools
from datetime import timedelta
from fractions import Fraction
from pathlib import Path

import pytest

import hourglass
from hourglass import sched
from hourglass.errors import DataError, InvalidError

DATA = Path(__file__).parent / "data"

# Audsley, Burns, Richardson, Tindell and Wellings 1993, table of section 4: C, T, and R of three tasks.
TEXTBOOK = {
    "task": [
        {"name": "high", "wcet": 3_000_000, "period": 7_000_000, "priority": 3},
        {"name": "middle", "wcet": 3_000_000, "period": 12_000_000, "priority": 2},
        {"name": "low", "wcet": 5_000_000, "period": 20_000_000, "priority": 1},
    ]
}

TOML = """
[[task]]
name = "audio"
period = "8ms"
wcet = "3ms"
priority = 80
"""


def test_response_times_are_exact():
    """R of the three tasks: 3, 6 and 20 (ms): the last one has its deadline to the nanosecond."""
    assert sched.response_times(TEXTBOOK) == {"high": 3_000_000, "middle": 6_000_000, "low": 20_000_000}


def test_the_module_s_own_example():
    tried = doctest.testmod(sched)
    assert tried.attempted > 0 and tried.failed == 0


def by_hand(tasks):
    """The recurrence of Joseph and Pandya, in whole numbers."""
    found = {}
    ordered = sorted(tasks, key=lambda task: -task["priority"])
    for place, task in enumerate(ordered):
        response = task["wcet"]
        while True:
            more = task["wcet"] + sum(
                -(-response // other["period"]) * other["wcet"] for other in ordered[:place]
            )
            if more == response:
                break
            response = more
        found[task["name"]] = response
    return found


def test_response_times_are_those_of_the_recurrence():
    """Every set of three tasks out of a few odd numbers of nanoseconds that is not overloaded."""
    periods, count = (1_000_003, 2_000_029, 5_000_011), 0
    for costs in itertools.product((100_001, 300_007, 777_777), repeat=3):
        tasks = [
            {"name": f"t{place}", "wcet": cost, "period": period, "priority": 9 - place}
            for place, (cost, period) in enumerate(zip(costs, periods))
        ]
        if sum(Fraction(task["wcet"], task["period"]) for task in tasks) >= 1:
            continue
        expected = by_hand(tasks)
        if all(expected[task["name"]] <= task["period"] for task in tasks):
            assert sched.response_times({"task": tasks}) == expected, costs
            count += 1
    assert count > 10


def test_the_document_has_the_keys_of_the_contract():
    document = sched.check(TEXTBOOK, explain=True)
    assert document["schema"] == "hourglass.check/1"
    assert document["verdict"] == "feasible" and document["witness"] is None
    for task in document["tasks"]:
        assert set(task) >= {
            "name",
            "response_time_ns",
            "response_time_from_release_ns",
            "deadline_ns",
            "verdict",
            "fixed_points",
        }
    assert document["understood"]


def test_an_infeasible_set_has_a_witness():
    tight = {"task": [{**task, "wcet": task["wcet"] + 1} for task in TEXTBOOK["task"]]}
    document = sched.check(tight)
    assert document["verdict"] == "infeasible" and document["witness"]


def test_questions():
    assert sched.check(TEXTBOOK, analysis="fp-preemptive")["analysis"] == "fp-preemptive"
    assert sched.check(TEXTBOOK, sensitivity=True)["sensitivity"]
    assert sched.check(TEXTBOOK, server="5ms")["server"]
    assert "fp-preemptive" in {analysis["name"] for analysis in sched.analyses()}
    with pytest.raises(InvalidError, match="unknown 'magic'; expected one of fp-preemptive, "):
        sched.check(TEXTBOOK, analysis="magic")
    with pytest.raises(InvalidError, match="partition: unknown fit 'magic'; use one of first-fit"):
        sched.check(TEXTBOOK, partition="magic")


def test_forms_of_a_set(tmp_path):
    file = tmp_path / "tasks.toml"
    file.write_text(TOML)
    mapping = {
        "task": [{"name": "audio", "period": timedelta(milliseconds=8), "wcet": "3ms", "priority": 80}]
    }
    forms = [TOML, file, str(file), mapping, sched.TaskSet(TOML)]
    sets = [sched.TaskSet(form) for form in forms]
    assert {one.to_toml() for one in sets} == {sets[0].to_toml()}
    assert sets[0].tasks == ["audio"] and len(sets[0]) == 1
    assert sched.TaskSet(sets[0].to_dict()).to_toml() == sets[0].to_toml()
    assert sched.TaskSet(sets[0].to_toml()).to_toml() == sets[0].to_toml()


def test_rt_app_and_run_folders(kept):
    read = sched.TaskSet(DATA / "rt-app.json")
    assert len(read) > 0
    measured = sched.TaskSet(kept.folder)
    assert len(measured) >= 1 and any("not a bound" in note for note in measured.notes)


@pytest.mark.parametrize(
    "tasks, error, text",
    [
        ("no-such-file.toml", DataError, "no such file"),
        ("[[task]]\nname = 3\n", DataError, "name"),
        ({"task": [{"name": "a", "wcet": "3ms"}]}, DataError, "period"),
        ({"task": [{"name": "a", "wcet": "3ms", "period": "2ms", "colour": 1}]}, DataError, "colour"),
        ({"task": [{"name": "a", "wcet": object(), "period": 1}]}, TypeError, "object"),
    ],
)
def test_a_set_that_cannot_be_meant(tasks, error, text):
    with pytest.raises(error, match=text) as raised:
        sched.TaskSet(tasks)
    assert "\n" not in str(raised.value)


def test_a_simulation_of_the_critical_instant_meets_the_bounds():
    """All tasks released together, without jitter: the longest response is the bound."""
    simulation = sched.simulate(TEXTBOOK)
    document = simulation.document
    assert document["schema"] == "hourglass.simulate/1"
    assert {"horizon_ns", "events", "jobs", "tasks"} <= set(document)
    assert {task["name"]: task["max_response_ns"] for task in simulation.tasks} == sched.response_times(
        TEXTBOOK
    )
    # The least common multiple of 7, 12 and 20 ms.
    assert document["horizon_ns"] == 420_000_000 and simulation.failed == 0
    assert document["jobs"] == 420 // 7 + 420 // 12 + 420 // 20


def test_the_schedule_is_the_whole_of_it():
    simulation = sched.simulate(TEXTBOOK)
    schedule = simulation.schedule
    assert simulation.dropped == 0
    for task in simulation.tasks:
        received = sum(
            end - start
            for thread, start, end in zip(schedule["thread"], schedule["start_ns"], schedule["end_ns"])
            if thread == task["thread"]
        )
        assert received == task["cpu_time_ns"]
    # One processor: nobody runs while another does.
    times = sorted(zip(schedule["start_ns"], schedule["end_ns"]))
    assert all(before[1] <= after[0] for before, after in zip(times, times[1:]))
    assert (times[0], schedule.values("onset")[0]) == ((0, 3_000_000), "start")


def test_a_schedule_has_only_so_much_room():
    simulation = sched.simulate(TEXTBOOK, records=10)
    whole = len(sched.simulate(TEXTBOOK).schedule)
    assert len(simulation.schedule) == 10 and simulation.dropped == whole - 10
    assert sched.simulate(TEXTBOOK, schedule=False).schedule is None


def test_a_simulation_is_kept_as_a_run(tmp_path):
    simulation = sched.simulate(TEXTBOOK, output=tmp_path / "kept")
    run = hourglass.open_run(simulation.folder)
    assert run.manifest["clock"]["source"] == "sim"
    assert run.intervals["start_ns"].tolist() == simulation.schedule["start_ns"].tolist()
    assert "gaps" not in run.missing and all(sure == 1 for sure in run.gaps["confidence"].tolist())
    with pytest.raises(InvalidError, match="exists already"):
        sched.simulate(TEXTBOOK, output=tmp_path / "kept")


def test_a_seed_repeats_what_is_drawn():
    drawn = {"task": [{"name": "a", "wcet": "2ms", "period": "9ms", "jitter": "3ms", "priority": 1}]}
    one, same, other = (
        sched.simulate(drawn, horizon="1s", releases="random", seed=seed).schedule["start_ns"].tolist()
        for seed in (1, 1, 2)
    )
    assert one == same != other


@pytest.mark.parametrize(
    "options, text",
    [
        ({"horizon": 0}, "horizon: invalid horizon 0s"),
        ({"releases": "never"}, "releases: use critical, nominal or random"),
        ({"late": "never"}, "late: use queue or skip"),
        ({"alpha": "1/2"}, 'alpha: it belongs to smt="slack"'),
        ({"smt": "slack", "alpha": "3/2"}, "alpha:"),
        ({"smt": "magic"}, "smt: use unaware, disabling or slack"),
        ({"rt_throttling": ("1ms", 0)}, "rt_throttling: it must be above zero"),
    ],
)
def test_wrong_questions_of_a_simulation(options, text):
    with pytest.raises(InvalidError, match=text):
        sched.simulate(TEXTBOOK, **options)


def test_prediction_without_a_run():
    document = sched.predict(TEXTBOOK, run=False)
    assert document["schema"] == "hourglass.predict/1" and document["run"] is None
    for task in document["tasks"]:
        assert set(task) >= {"name", "bound_ns", "simulated_ns", "measured_ns", "deadline_ns", "missed"}
        assert task["bound_ns"] == task["simulated_ns"]


def test_prediction_with_a_run(tmp_path):
    tasks = {"task": [{"name": "slow", "wcet": "1ms", "period": "20ms", "priority": 1}]}
    document = sched.predict(tasks, duration="500ms", best_effort=True, output=tmp_path / "run")
    assert document["tasks"][0]["measured_ns"] >= 1_000_000
    assert hourglass.open_run(tmp_path / "run").manifest["elapsed_ns"] > 0
    with pytest.raises(InvalidError, match="cpus: CPU 4000 does not exist"):
        sched.predict(tasks, cpus="4000")


def test_a_list_of_tasks_is_a_set():
    tasks = [{"name": "a", "wcet": "1ms", "period": "5ms", "priority": 1}]
    assert sched.response_times(tasks) == {"a": 1_000_000}
    assert sched.TaskSet(tasks).tasks == ["a"]


@pytest.mark.parametrize(
    ("tasks", "says"),
    [
        ([{"name": "a", "wcet": float("nan"), "period": "5ms"}], "task 'a': wcet: nan is no number"),
        ({"task": [{"name": "a", "wcet": 1, "period": float("inf")}]}, "task 'a': period: inf is no number"),
        ([{"wcet": 10**30, "period": "5ms"}], "task 1: wcet: too large"),
        ([{"name": "a", "wcet": [1, -(2**70)], "period": "5ms"}], "task 'a': wcet 2: too large"),
        ([{5: 6}], "the key 5 is no text"),
    ],
)
def test_numbers_that_cannot_be_meant_are_named(tasks, says):
    with pytest.raises(InvalidError, match=says):
        sched.check(tasks)


@pytest.mark.parametrize("tasks", [5, None, 1.5, b"tasks", [5], ["a"]])
def test_what_is_no_set_of_tasks_is_a_type_error(tasks):
    with pytest.raises(TypeError, match="a set of tasks is a path"):
        sched.check(tasks)


EXPERIMENT = {"utilisations": [0.7, 0.9], "sets": 20, "tasks": 4, "analyses": ["rm", "edf-preemptive"]}


def test_sweep_of_drawn_sets(tmp_path):
    """EDF is optimal on one CPU (Liu and Layland 1973, theorem 7); a folder answers without drawing again."""
    document = sched.sweep(EXPERIMENT, seed=3, output=tmp_path / "sweep")
    assert document["schema"] == "hourglass.sweep/1" and document["experiment"]["seed"] == 3
    assert [point["sets"] for point in document["points"]] == [20, 20]
    assert all(point["accepted"]["rm"] <= point["accepted"]["edf-preemptive"] == 20 for point in document["points"])
    assert sched.sweep(**EXPERIMENT, seed=3, threads=1, output=tmp_path / "sweep") == document
    drawn = {"experiment": "utilisations = [0.7, 0.9]\nsets = 20", "tasks": 4, "seed": 3}
    assert sched.sweep(**drawn, analyses="rm,edf-preemptive") == document
    # Who asks by an older word finds the answer by that word too.
    older = sched.sweep(**drawn, analyses="rm,edf")
    assert all(point["accepted"]["edf"] == point["accepted"]["edf-preemptive"] for point in older["points"])


def test_sweep_of_one_set():
    document = sched.sweep(TEXTBOOK, utilisations="0.5,1", analyses="rm")
    assert document["experiment"]["generator"] == "scaled"
    assert [point["accepted"]["rm"] for point in document["points"]][0] == 1


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"analyses": "no-such"}, "no-such"),
        ({"threads": 0}, "threads: 0 is out of range"),
        ({"experiment": {"nonsense": 1}}, "nonsense"),
        ({"experiment": TEXTBOOK, "periods": "uniform:1ms,2ms"}, "periods"),
    ],
)
def test_wrong_experiments(asked, says):
    with pytest.raises(InvalidError, match=says):
        sched.sweep(**asked)
