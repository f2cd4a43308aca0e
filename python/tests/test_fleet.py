"""Fleets: each node once, a lost one missing, the loaded one found; the statistics against fleets that are made."""

import concurrent.futures as futures
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hourglass import fleet
from hourglass.errors import DataError, InvalidError
from hourglass.fleet import clocks, node as on_node, prediction, statistics
from hourglass.fleet.engines import Callables, Local, Ray

ARGUMENTS = ["noise", "-D500ms", "--warm-up=50ms", "-f10", "--best-effort", "--gap=1us", "-q"]

# In the place of the command: beside the node called `loaded` something runs on the measured CPU half of the time,
# and the one called `killed` says by a file that it is being measured.
WRAPPER = """#!{python}
import os, subprocess, sys
name, command = os.environ.get("HOURGLASS_NODE"), {command!r}
BURN = '''
import os, sys, time
os.sched_setaffinity(0, [int(sys.argv[1])])
try:
    os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
except OSError:
    pass
until = time.monotonic() + 60
os.write(1, b"x")
while time.monotonic() < until and os.getppid() == int(sys.argv[2]):
    stop = time.monotonic() + 0.001
    while time.monotonic() < stop:
        pass
    time.sleep(0.001)
'''
if name == "loaded":
    cpu = sys.argv[sys.argv.index("-c") + 1].partition(",")[0]
    # By the name of its file it is one of the engine's own.
    burner = subprocess.Popen([{raylet!r}, "-c", BURN, cpu, str(os.getpid())], stdout=subprocess.PIPE)
    burner.stdout.read(1)
if name == "killed":
    with open({mark!r}, "w") as mark:
        mark.write(str(os.getpid()))
    sys.argv = [word.replace("-D500ms", "-D90s") for word in sys.argv]
os.execv(command, [command, *sys.argv[1:]])
"""


@pytest.fixture(scope="module")
def command():
    found = os.environ.get("HOURGLASS") or shutil.which("hourglass")
    if not found:
        pytest.skip("no command hourglass [lacks: test -x \"$HOURGLASS\" || command -v hourglass]")
    return found


@pytest.fixture
def wrapper(command, tmp_path):
    """A command that loads one node, and the file by which another says that it is measured."""
    if len(os.sched_getaffinity(0)) < 2:
        pytest.skip("an engine that is kept off needs a second CPU [lacks: test $(nproc) -gt 1]")
    file, mark = tmp_path / "wrapper", tmp_path / "mark"
    raylet = tmp_path / "raylet"
    raylet.symlink_to(os.path.realpath(sys.executable))
    file.write_text(WRAPPER.format(python=sys.executable, command=command, mark=str(mark), raylet=str(raylet)))
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return str(file), mark


def needs_real_time():
    """Threads of ordinary users have what else runs here beside them on every node alike."""
    if subprocess.run(["chrt", "--fifo", "1", "true"], check=False, capture_output=True).returncode != 0:
        pytest.skip("a load without a real-time priority does not stand out [lacks: chrt --fifo 1 true]")


@pytest.fixture(scope="module")
def measured(command, tmp_path_factory):
    """Three nodes, all this machine."""
    folder = tmp_path_factory.mktemp("fleets") / "three"
    return fleet.measure(ARGUMENTS, engine=Local(["a", "b", "c/3"]), hourglass=command, output=folder)


def gone(pid, seconds=10):
    """Whether a process ends within so long."""
    for _ in range(20 * seconds + 1):
        try:
            if Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
                return True
        except OSError:
            return True
        time.sleep(0.05)
    return False


def test_each_node_is_there_and_opened_again(measured):
    assert sorted(measured.nodes) == ["a", "b", "c/3"] and not measured.missing
    for name in measured.nodes:
        about = measured.about[name]
        if not any("no CPU is left" in note for note in about["notes"]):
            assert not set(about["cpus"]) & set(about["engine_cpus"])
            assert {cpu for one in measured.run(name).threads for cpu in one["cpus_seen"]} <= set(about["cpus"])
    again = fleet.open_fleet(measured.folder)
    assert again.nodes == measured.nodes and again.about == measured.about
    with pytest.raises(InvalidError, match="node 'd': there is no such node"):
        again.run("d")


def test_verdict_counts_missing_nodes_as_not_passed(measured, tmp_path):
    worst = max(measured.digest(name).max_gap_ns for name in measured.nodes)
    assert measured.verdict(max_gap=worst).passed
    tight = measured.verdict(max_gap=worst - 1)
    assert not tight and len(tight.failed) >= 1 and "us" in next(iter(tight.failed.values()))
    copy = tmp_path / "copy"
    shutil.copytree(measured.folder, copy)
    half = next(entry for entry in copy.iterdir() if entry.is_dir())
    (half / "trace.parquet").write_bytes((half / "trace.parquet").read_bytes()[:100])
    name = json.loads((half / "node.json").read_text())["node"]
    (half / "manifest.json").unlink()
    again = fleet.open_fleet(copy)
    verdict = again.verdict(max_gap="1h")
    assert list(again.missing) == [name] and not verdict.passed and len(verdict.kept) == 2
    with pytest.raises(InvalidError, match="give max_gap or max_latency"):
        measured.verdict()
    assert len(measured.verdict(max_latency="1s").missing) == 3


def test_a_node_that_answers_twice_is_refused(measured, tmp_path):
    copy = tmp_path / "copy"
    shutil.copytree(measured.folder, copy)
    shutil.copytree(copy / "a", copy / "again")
    with pytest.raises(DataError, match="node 'a' answered twice"):
        fleet.open_fleet(copy)


def _boots(boot):
    """Reaches a node that says it is another machine."""

    def reach(work, request):
        answer = work(request)
        answer["about"]["boot_id"] = boot
        return answer

    return reach


def test_of_one_machine_the_first_answer_is_kept(command, tmp_path):
    """Unless the engine says that they are, for trials. What others answer later is kept, too."""
    reaches = {name: _boots(boot) for name, boot in [("a", "one"), ("b", "one"), ("c", "one"), ("d", "two")]}
    found = fleet.measure(ARGUMENTS, engine=reaches, hourglass=command, output=tmp_path / "out", at_once=1)
    for kept in (found, fleet.open_fleet(tmp_path / "out")):
        assert kept.nodes == ["a", "d"] and list(kept.missing) == ["b", "c"]
        assert all("are one machine" in reason and "which answered twice" in reason for reason in kept.missing.values())
        notes = [note for note in kept.about["a"]["notes"] if "same machine" in note]
        assert len(notes) == 2 and "'b'" in notes[0] and "'c'" in notes[1]
        assert not any("same machine" in note for note in kept.about["d"]["notes"])
        assert not kept.verdict(max_gap="1h").passed


def test_two_nodes_of_one_machine_are_refused_before_they_are_measured(tmp_path):
    """Where the engine knows it, as Ray does of raylets on one host."""

    class Knows(Callables):
        def machine(self, node):
            return "10.0.0.1" if node in "ab" else node

    asked = tmp_path / "asked"
    asked.mkdir()

    def reach(work, request):
        (asked / request["node"]).touch()

    with pytest.raises(InvalidError, match=r"'a' and 'b' are one machine \(10.0.0.1\).*same_machine=True"):
        fleet.measure(ARGUMENTS, engine=Knows(dict.fromkeys("abc", reach)), output=tmp_path / "out")
    assert not list(asked.iterdir())
    fleet.measure(ARGUMENTS, engine=Knows(dict.fromkeys("abc", reach)), nodes=["b", "c"], output=tmp_path / "two")
    assert sorted(file.name for file in asked.iterdir()) == ["b", "c"]
    trial = Knows(dict.fromkeys("abc", reach), same_machine=True)
    fleet.measure(ARGUMENTS, engine=trial, output=tmp_path / "trial")
    assert sorted(file.name for file in asked.iterdir()) == ["a", "b", "c"]


def test_ray_names_the_machine_of_a_raylet():
    engine = object.__new__(Ray)
    engine.same_machine, engine._ids, engine._addresses = False, {}, {}

    class Two:
        @staticmethod
        def nodes():
            row = {"Alive": True, "NodeManagerHostname": "vm", "NodeManagerAddress": "10.0.0.1"}
            return [{**row, "NodeID": "1" * 16}, {**row, "NodeID": "2" * 16}]

    engine._ray = Two
    names = engine.nodes(None)
    assert len(names) == 2 and {engine.machine(name) for name in names} == {"10.0.0.1"}


def test_a_lost_node_is_missing_and_never_zero(command):
    def dies(work, request):
        raise ConnectionError("the node went away")

    def lies(work, request):
        return {"node": "other", "nonce": 5}

    def sleeps(work, request):
        time.sleep(3)

    good = Local(["good"])
    nodes = {"dead": dies, "liar": lies, "slow": sleeps, "good": lambda work, request: work(request)}
    seen = {}
    arguments = [word.replace("500ms", "300ms") for word in ARGUMENTS]
    found = fleet.measure(
        arguments, engine=Callables(nodes, same_machine=True), hourglass=command, progress=seen.__setitem__, at_once=4,
        timeout="20s",
    )  # fmt: skip
    assert good.nodes(None) == ["good"] and found.nodes == ["good"]
    assert found.missing["dead"] == "lost: ConnectionError: the node went away"
    assert found.missing["liar"] == found.missing["slow"] == "what came back is no answer to this question"
    assert seen == {**found.missing, "good": None}
    assert not found.verdict(max_gap="1h").passed


def test_a_node_without_the_command_says_so(tmp_path):
    found = fleet.measure(ARGUMENTS, engine=Local(["a"]), hourglass=str(tmp_path / "none"))
    assert found.nodes == [] and "No such file" in found.missing["a"]
    with pytest.raises(InvalidError, match="no node was measured"):
        found.predict(nodes=2, sync="1ms")


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"arguments": []}, "arguments: a command such as"),
        ({"arguments": ["noise", "-o", "x"]}, "arguments: a command such as"),
        ({"nodes": ["x"]}, "nodes: 'x' is not among them; the engine has a, b"),
        ({"nodes": ["a", "a"]}, "nodes: 'a' is named twice"),
        ({"where": {"pool": "rt"}}, "where: these nodes have no labels"),
        ({"engine": "slurm"}, "engine: unknown 'slurm'"),
        ({"output": Path(__file__).parent}, "is not an empty folder"),
    ],
)
def test_wrong_wishes(asked, says):
    with pytest.raises(InvalidError, match=says):
        fleet.measure(**{"engine": Local(["a", "b"]), **asked})


def test_the_loaded_node_is_found_and_the_killed_one_missing(wrapper, tmp_path):
    """Without an engine: nodes are pools of one process each. The process of one is killed as it measures."""
    command, mark = wrapper
    nodes = {name: futures.ProcessPoolExecutor(1) for name in ("one", "two", "loaded", "killed")}
    pid = nodes["killed"].submit(os.getpid).result()

    def kills():
        while not mark.exists():
            time.sleep(0.01)
        time.sleep(0.1)
        os.kill(pid, signal.SIGKILL)

    killer = threading.Thread(target=kills)
    killer.start()
    engine = Callables(nodes, same_machine=True)
    found = fleet.measure(ARGUMENTS, engine=engine, hourglass=command, output=tmp_path / "out", timeout="30s")
    killer.join()
    for pool in nodes.values():
        pool.shutdown(wait=False)
    assert sorted(found.nodes) == ["loaded", "one", "two"]
    assert list(found.missing) == ["killed"] and "BrokenProcessPool" in found.missing["killed"]
    assert gone(int(mark.read_text())), "the command of a worker that died goes on"
    page = found.report(tmp_path / "page.html", max_gap="50us").read_text()
    assert "http" not in page and "<script" not in page
    needs_real_time()
    outliers = found.outliers()
    # What else went on here while the others were measured may be named too, but after it.
    assert outliers and outliers[0].node == "loaded", outliers
    assert any(outlier.cause.startswith("context_switch") for outlier in outliers if outlier.node == "loaded"), outliers
    named = [outlier for outlier in outliers if outlier.node == "loaded" and outlier.gap.engine]
    assert named and named[0].gap.engine == ("raylet",) and "the engine's own: raylet" in str(named[0]), outliers
    gap = outliers[0].gap
    assert gap.end_ns > gap.start_ns and gap.cpu in found.about["loaded"]["cpus"]
    assert page.index(">killed<") < page.index(">loaded<") < page.index(">one<")


def test_ctrl_c_keeps_what_came(command, tmp_path, alarm):
    one = alarm()

    def waits(work, request):
        one.after(0.05)
        time.sleep(1)

    nodes = {"first": lambda work, request: work(request), "second": waits, "third": waits}
    with pytest.raises(KeyboardInterrupt):
        fleet.measure(
            ARGUMENTS, engine=Callables(nodes), nodes=["first", "second", "third"], hourglass=command, at_once=1,
            output=tmp_path / "out",
        )  # fmt: skip
    found = fleet.open_fleet(tmp_path / "out")
    assert found.nodes == ["first"] and sorted(found.missing) == ["second", "third"]


def test_without_privileges_it_is_measured_and_said(command, tmp_path):
    """A command that is refused a privilege (exit code 3) is tried once more with --best-effort."""
    poor = tmp_path / "poor"
    poor.write_text(
        f"#!/bin/sh\ncase \"$*\" in *--best-effort*) exec {command} \"$@\";; esac\n"
        "echo 'hourglass: error: SCHED_FIFO is refused' >&2; exit 3\n"
    )
    poor.chmod(0o755)
    words = [word for word in ARGUMENTS if word != "--best-effort"]
    found = fleet.measure(words, engine=Local(["a"]), hourglass=str(poor))
    assert found.nodes == ["a"]
    assert "a: without privileges: SCHED_FIFO is refused; measured with --best-effort" in found.notes


def test_sql(measured):
    pytest.importorskip("duckdb")
    rows = measured.sql("SELECT node, max_gap_ns FROM everyone ORDER BY node").fetchall()
    assert rows == [(name, measured.digest(name).max_gap_ns) for name in sorted(measured.nodes)]
    for view in ("shares", "worst", "histogram"):
        measured.sql(f"SELECT * FROM {view}").fetchall()
    counted = measured.sql("SELECT sum(count) FROM histogram").fetchall()
    assert counted[0][0] == sum(len(measured.run(name).gaps) for name in measured.nodes)


def test_coincidence_needs_clocks_that_allow_it(measured, tmp_path):
    """On one machine the monotonic clock is one; runs one after the other are never together."""
    together, unknown = measured.coincidences(longer_than="1us")
    assert together == [] and unknown == {}
    copy = tmp_path / "copy"
    shutil.copytree(measured.folder, copy)
    for name in ("a", "b"):
        manifest = json.loads((copy / name / "manifest.json").read_text())
        before, after = manifest.pop("utc")
        manifest.pop("crc32")
        assert 0 < before["monotonic_ns"] < after["monotonic_ns"] and before["source"]
        (copy / name / "manifest.json").write_text(json.dumps(manifest))
    assert "no bound on UTC" in fleet.open_fleet(copy).coincidences()[1]["a"]


def test_a_clock_is_related_only_where_the_kernel_vouches_for_it():
    one = {"monotonic_ns": 1_000, "realtime_ns": 10**18, "bracket_ns": 100, "max_error_ns": 5_000}
    other = {**one, "monotonic_ns": 2_000, "realtime_ns": 10**18 + 1_600}
    found = clocks.relation([one, other])
    # Between the readings UTC won 600 ns on the monotonic clock: half of them to either side.
    assert (found.offset_ns, found.bound_ns) == (10**18 - 1_000 + 300, 5_100 + 300)
    assert clocks.relation([one, {**other, "max_error_ns": None}]) is None and clocks.relation(None) is None
    # As systemd-timesyncd leaves it, three seconds later.
    whole = {**other, "max_error_ns": 1_500_000}
    assert clocks.relation([one, whole]) is None
    assert clocks.relation([one, {**whole, "source": "chronyd"}]) is not None
    # Ten seconds later: in between the bound may have grown by 500 ppm from either end.
    later = {**one, "monotonic_ns": 1_000 + 10**10, "realtime_ns": 10**18 + 10**10}
    assert clocks.relation([one, later]).bound_ns == (5_100 * 2 + 5_000_000 + 1) // 2


def test_engines_are_named():
    assert on_node.engine_process("raylet") and on_node.engine_process("ray::IDLE") and on_node.engine_process("gcs_server")
    assert not on_node.engine_process("python") and not on_node.engine_process("kworker/0:1")


# The statistics.


def fleet_of(random, nodes, windows=20, between=0.3, within=0.4, rare=0.02):
    """Shares of time of healthy nodes: each with its own level, its own weather, and now and then something large."""
    level = 1e-3 * random.lognormal(0, between, (nodes, 1))
    table = level * random.lognormal(0, within, (nodes, windows))
    table += (random.random((nodes, windows)) < rare) * random.pareto(1.5, (nodes, windows)) * 1e-3
    return {f"n{number}": list(row) for number, row in enumerate(table)}


@pytest.mark.parametrize("nodes", [4, 23, 24, 40, 200])
def test_healthy_fleets_have_no_outliers(nodes):
    """At alpha 5 %, of 100 made fleets at most 12 may have one (a binomial with 5 % has more in 2 of 1,000)."""
    np = pytest.importorskip("numpy")
    seed = 20_261_123 + nodes
    random = np.random.default_rng(seed)
    alarms = sum(bool(statistics.odd_ones(fleet_of(random, nodes), nodes, 0.05, 1e-5)) for _ in range(100))
    assert alarms <= 12, (seed, alarms)


def test_rare_events_of_healthy_nodes_are_no_outliers():
    """Most nodes have none of a cause: where it falls is chance."""
    np = pytest.importorskip("numpy")
    random = np.random.default_rng(7)
    alarms = 0
    for _ in range(100):
        table = (random.random((100, 20)) < 0.01) * 1e-2
        alarms += bool(statistics.odd_ones({str(at): list(row) for at, row in enumerate(table)}, 100, 0.05, 1e-5))
    assert alarms <= 12


@pytest.mark.parametrize(("nodes", "times"), [(3, 6), (4, 6), (22, 6), (40, 8), (400, 8)])
def test_a_bad_node_is_found(nodes, times):
    np = pytest.importorskip("numpy")
    random = np.random.default_rng(nodes)
    found = 0
    for _ in range(20):
        values = fleet_of(random, nodes, rare=0)
        middle = sorted(sum(row) / 20 for row in values.values())[nodes // 2]
        values["bad"] = [middle * times * random.lognormal(0, 0.4) for _ in range(20)]
        odd = statistics.odd_ones(values, nodes + 1, 0.01, 1e-5)
        found += [one.node for one in odd] == ["bad"]
    assert found >= 18, found


def test_students_tail():
    """Table values: t(0.025; 3) = 3.1824, t(0.005; 10) = 3.1693, t(0.05; 30) = 1.6973; normal in the limit."""
    tail = statistics._student_tail
    for t, freedom, p in ((3.18245, 3, 0.025), (3.16927, 10, 0.005), (1.69726, 30, 0.05), (1.959964, 1e7, 0.025), (0, 5, 0.5)):
        assert tail(t, freedom) == pytest.approx(p, rel=1e-4)
    assert tail(-1, 5) == pytest.approx(1 - tail(1, 5))


def test_delays_of_steps_by_hand():
    """One gap from 100 to 150: steps of 20 that begin before it, that end as it begins, within it, and after it."""
    np = pytest.importorskip("numpy")
    starts, ends = np.array([100, 200]), np.array([150, 260])
    begins = np.array([0, 79, 80, 81, 99, 100, 149, 150, 185])
    late = prediction.delays(starts, ends, begins, 20)
    assert late.tolist() == [0, 0, 0, 50, 50, 50, 1, 0, 60]
    # A step that is long enough for both.
    assert prediction.delays(starts, ends, np.array([90]), 100).tolist() == [110]


def noise_of(random, elapsed, every, mean):
    """The gaps of a thread, a Poisson process of exponential lengths."""
    starts, at = [], 0.0
    ends = []
    while True:
        at += random.exponential(every)
        length = 1_000 + random.exponential(mean)
        if at + length >= elapsed:
            break
        starts.append(int(at))
        ends.append(int(at + length))
        at += length
    import numpy as np

    return np.array(starts, dtype=np.int64), np.array(ends, dtype=np.int64)


def simulated(np, random, timelines, nodes, work, steps):
    """The slow-down of a job that does the steps one after the other, each node at a phase of its own of its record."""
    of = [timelines[node % len(timelines)] for node in range(nodes)]
    offsets = np.array([random.integers(0, elapsed) for _, elapsed in of])
    at = 0
    for _ in range(steps):
        worst = 0
        for (threads, elapsed), offset in zip(of, offsets):
            begin = np.array([(at + offset) % (elapsed - 20 * work)])
            worst = max(worst, max(int(prediction.delays(s, e, begin, work)[0]) for s, e in threads))
        at += work + worst
    return at / (work * steps) - 1


@pytest.mark.parametrize(
    ("seed", "worse", "over"), [(1, (2e6, 1e5), 1.1), (2, (1e7, 3e5), 1.15), (3, (3e7, 3e6), 2)]
)
def test_prediction_against_a_simulation_of_the_synchronisation(seed, worse, over):
    """32 nodes like four that were measured, of which one is worse: 30 %, 40 %, and 3 times slower. Where steps take
    several times as long, the prediction is on the safe side."""
    np = pytest.importorskip("numpy")
    random = np.random.default_rng(seed)
    elapsed, work = 2_000_000_000, 1_000_000
    kinds = [(4e6, 2e4), (4e6, 2e4), (1e7, 5e4), worse]
    timelines = [([noise_of(random, elapsed, *kind) for _ in range(2)], elapsed) for kind in kinds]
    told = prediction.predict(32, work, timelines, confidence=0.95, seed=seed, resamples=50)
    done = simulated(np, random, timelines, 32, work, 600)
    assert 0.9 * done <= told.slowdown <= over * done, (seed, told, done)
    assert told.low <= told.slowdown <= told.high and told.at_least <= told.slowdown
    assert told.measured_nodes == 4 and told.measured_steps == 8_000


@pytest.mark.parametrize(
    "slowdown, low, high, known, high_side",
    [
        (0.05, 0.0, 0.2, True, False),
        (0.0, 0.0, 0.0, True, False),
        (2.0, 1.8, 2.5, True, True),
        (0.4, 0.1, 3.0, False, False),
        # Three nodes, one of which is loaded: the estimate stood at the end of its own interval.
        (405.1967, 6.106, 405.2083, False, True),
    ],
)
def test_a_prediction_says_what_it_does_not_know(slowdown, low, high, known, high_side):
    told = prediction.Prediction(3, 10**6, slowdown, low, high, 0.95, low, 3, 9000)
    text = str(told)
    assert told.known is known and (f"{100 * slowdown:.2f} % slower" in text) is known
    assert ("not known" in text) is not known
    assert told.may_be_high is high_side and ("up to a factor of two" in text) is high_side
    assert f"{100 * low:.2f} to {100 * high:.2f} %" in text


def test_prediction_on_recorded_noise_against_the_simulation(measured):
    np = pytest.importorskip("numpy")
    told = measured.predict(nodes=16, sync="1ms")
    done = [
        simulated(np, np.random.default_rng(seed), list(measured._timelines()), 16, 1_000_000, 200) for seed in range(4)
    ]
    # Half a second of record has few large gaps: each phase meets some of them, or none.
    assert min(done) * 0.6 - 0.02 <= told.slowdown <= max(done) * 2.5 + 0.02, (told, done)
    assert measured.predict(nodes=1024, sync="1ms").slowdown >= told.slowdown
    assert measured.predict(nodes=16, sync="1ms") == told


def test_a_quiet_fleet_slows_nothing_and_more_nodes_are_slower():
    np = pytest.importorskip("numpy")
    none = np.array([], dtype=np.int64)
    quiet = prediction.predict(4096, 10**6, [([(none, none)], 10**9)], confidence=0.95, seed=1, resamples=20)
    assert (quiet.slowdown, quiet.low, quiet.high) == (0, 0, 0)
    one = [([(np.array([5 * 10**8]), np.array([5 * 10**8 + 10**5]))], 10**9)]
    few, many = (prediction.predict(n, 10**6, one, confidence=0.95, seed=1, resamples=20).slowdown for n in (1, 100_000))
    # Of a thousand steps one is met, by 100 us of each millisecond; of 100,000 nodes one always is.
    assert few == pytest.approx(1e-4, rel=0.2) and many == pytest.approx(0.1, rel=0.02)


@pytest.mark.parametrize(
    ("asked", "says"),
    [
        ({"nodes": 0, "sync": "1ms"}, "nodes: 0 is below 1"),
        ({"nodes": 2, "sync": "10ns"}, "sync: 10 ns is below a microsecond"),
        ({"nodes": 2, "sync": "1s"}, "sync: 1000000000 ns is too long for runs of"),
        ({"nodes": 2, "sync": "1ms", "confidence": 1.0}, "confidence: 1.0 is not from"),
    ],
)
def test_wrong_predictions(measured, asked, says):
    pytest.importorskip("numpy")
    with pytest.raises(InvalidError, match=says):
        measured.predict(**asked)


def test_importing_the_fleet_imports_no_engine():
    program = """
import sys
import hourglass.fleet, hourglass.shards
assert not {"ray", "distributed", "dask", "duckdb", "numpy"} & set(sys.modules), set(sys.modules)
"""
    subprocess.run([sys.executable, "-I", "-c", program], check=True)


def test_folders_that_are_no_fleet(tmp_path):
    with pytest.raises(DataError, match="no such folder"):
        fleet.open_fleet(tmp_path / "none")
    with pytest.raises(DataError, match="no run folders are in it"):
        fleet.open_fleet(tmp_path)
