#!/usr/bin/env python3
"""What `watch --trace --tasks` finds of programs that others wrote, beside what these were told to do.

python3 bench/rtapp.py HOURGLASS RT-APP [CASE...] > FILE, as root, with two CPUs. Each case is a file of rt-app; the truth is that file,
and rt-app's own log of each loop: its start, the time of its `runtime` events, and how late its timer woke it. With KEEP=DIR
the records stay there, and one that is there is modelled again.
"""

import json, os, pathlib, re, subprocess, sys, tempfile, time

SECONDS, CPU, OTHER = 10, 1, 0
# rt-app's log has whole microseconds, and reads its clock after the wait.
LOG_US, JITTER_US, PERIOD_PART, EXECUTION_US = 1, 20, 1000, 2


def timer(us, mode="absolute"):
    return {"timer": {"ref": "unique", "period": us, "mode": mode}}


def periodic(run, period, **more):
    return {"loop": -1, "cpus": [CPU], **more, "runtime": run, **timer(period)}


FIFO = {"policy": "SCHED_FIFO"}
# For each thread: its period in microseconds (None: no grid), execution time, waits in a job, what it comes after.
CASES = {
    "timer-1ms": ({"t": periodic(100, 1000)}, {"t": (1000, 100, 0, None)}),
    "timer-4ms": ({"t": periodic(500, 4000)}, {"t": (4000, 500, 0, None)}),
    "timer-10ms": ({"t": periodic(2000, 10000)}, {"t": (10000, 2000, 0, None)}),
    "timer-33ms": ({"t": periodic(3000, 33333)}, {"t": (33333, 3000, 0, None)}),
    "timer-100ms": ({"t": periodic(9000, 100000)}, {"t": (100000, 9000, 0, None)}),
    # From a late job on, another grid: rt-app's own default.
    "timer-relative": (
        {"t": {"loop": -1, "cpus": [CPU], "phases": {
            "p": {"loop": 97, "runtime": 500, **timer(5000, "relative")},
            "q": {"loop": 1, "runtime": 7300, **timer(5000, "relative")}}}},
        {"t": (None, 7300, 0, None)},
    ),
    "run-sleep": ({"t": {"loop": -1, "cpus": [CPU], "runtime": 1000, "sleep": 7000}}, {"t": (None, 1000, 0, None)}),
    "run-sleep-short": ({"t": {"loop": -1, "cpus": [CPU], "runtime": 200, "sleep": 1500}}, {"t": (None, 200, 0, None)}),
    "resume-suspend": (
        {
            "a": {"loop": -1, "cpus": [CPU], "runtime": 400, "resume": "b", **timer(10000)},
            "b": {"loop": -1, "cpus": [CPU], "suspend": "b", "runtime": 600, "resume": "c"},
            "c": {"loop": -1, "cpus": [CPU], "suspend": "c", "runtime": 500},
        },
        {"a": (10000, 400, 0, None), "b": (10000, 600, None, "a"), "c": (10000, 500, None, "b")},
    ),
    "resume-early": (
        {
            "a": {"loop": -1, "cpus": [CPU], "runtime": 300, "resume": "b", "runtime1": 700, **timer(10000)},
            "b": {"loop": -1, "cpus": [CPU], "suspend": "b", "runtime": 600},
        },
        {"a": (10000, 1000, 0, None), "b": (10000, 600, None, "a")},
    ),
    "resume-early-fifo": (
        {
            "a": {"loop": -1, "cpus": [CPU], **FIFO, "priority": 40, "runtime": 300, "resume": "b", "runtime1": 700, **timer(10000)},
            "b": {"loop": -1, "cpus": [CPU], **FIFO, "priority": 60, "suspend": "b", "runtime": 600},
        },
        {"a": (10000, 1000, 0, None), "b": (10000, 600, None, "a")},
    ),
    "signal-wait": (
        {
            "a": {"loop": -1, "cpus": [CPU], "runtime": 400, "lock": "m", "signal": "q", "unlock": "m", **timer(8000)},
            "b": {"loop": -1, "cpus": [CPU], "lock": "m", "wait": {"ref": "q", "mutex": "m"}, "unlock": "m", "runtime": 700},
        },
        {"a": (8000, 400, 0, None), "b": (8000, 700, None, "a")},
    ),
    "sync": (
        {
            "a": {"loop": -1, "cpus": [CPU], "runtime": 400, "lock": "m", "sync": {"ref": "q", "mutex": "m"}, "unlock": "m", "sleep": 5000},
            "b": {"loop": -1, "cpus": [CPU], "runtime": 700, "lock": "m", "sync": {"ref": "q", "mutex": "m"}, "unlock": "m"},
        },
        {"a": (None, 400, None, None), "b": (None, 700, None, None)},
    ),
    "suspension": (
        {"t": {"loop": -1, "cpus": [CPU], "runtime": 500, "sleep": 2000, "runtime1": 800, **timer(10000)}},
        {"t": (10000, 1300, 1, None)},
    ),
    "two-suspensions": (
        {"t": {"loop": -1, "cpus": [CPU], "runtime": 300, "sleep": 1000, "runtime1": 300, "sleep1": 1500, "runtime2": 300, **timer(20000)}},
        {"t": (20000, 900, 2, None)},
    ),
    "mutex": (
        {
            "a": {"loop": -1, "cpus": [CPU], "runtime": 200, "lock": "m", "runtime1": 500, "unlock": "m", **timer(5000)},
            "b": {"loop": -1, "cpus": [CPU], "runtime": 300, "lock": "m", "runtime1": 1500, "unlock": "m", **timer(20000)},
        },
        {"a": (5000, 700, None, None), "b": (20000, 1800, None, None)},
    ),
    "mutex-fifo": (
        {
            "a": {"loop": -1, "cpus": [CPU], **FIFO, "priority": 60, "runtime": 200, "lock": "m", "runtime1": 300, "unlock": "m", **timer(5000)},
            "b": {"loop": -1, "cpus": [CPU], **FIFO, "priority": 40, "runtime": 300, "lock": "m", "runtime1": 1500, "unlock": "m", **timer(20000)},
        },
        {"a": (5000, 500, None, None), "b": (20000, 1800, None, None)},
    ),
    "fifo": (
        {
            "a": periodic(400, 4000, **FIFO, priority=60),
            "b": periodic(1500, 15000, **FIFO, priority=40),
        },
        {"a": (4000, 400, 0, None), "b": (15000, 1500, 0, None)},
    ),
    "deadline": (
        {"t": {k: v for k, v in periodic(1000, 10000, policy="SCHED_DEADLINE", **{"dl-runtime": 2000, "dl-period": 10000, "dl-deadline": 10000}).items() if k != "cpus"}},
        {"t": (10000, 1000, 0, None)},
    ),
    "overrun": ({"t": {"loop": -1, "cpus": [CPU], "phases": {
        "p": {"loop": 9, "runtime": 500, **timer(5000)},
        "q": {"loop": 1, "runtime": 6000, **timer(5000)}}}}, {"t": (5000, 6000, 0, None)}),
    "phases": ({"t": {"loop": -1, "cpus": [CPU], "phases": {
        "p": {"loop": 40, "runtime": 500, "timer": {"ref": "u1", "period": 5000, "mode": "relative"}},
        "q": {"loop": 10, "runtime": 1000, "timer": {"ref": "u2", "period": 17000, "mode": "relative"}}}}}, {"t": (None, 1000, 0, None)}),
}


for name in ("timer-1ms", "timer-10ms", "timer-100ms", "run-sleep", "resume-suspend", "signal-wait", "suspension"):
    CASES[f"{name}-other"] = CASES[name]


def loops(folder, name, index):
    """start, run, wu_lat of each loop in microseconds."""
    text = (folder / f"log-{name}-{index}.log").read_text().splitlines()
    rows = [line.split() for line in text if line and not line.startswith("#")]
    return [(int(r[4]), int(r[2]), int(r[10])) for r in rows]


def record(hourglass, rtapp, case, load, work):
    """Runs the program and records it; an error of the program."""
    tasks, _ = CASES[case]
    if case.endswith("-other"):
        tasks = {name: {**task, "policy": "SCHED_OTHER"} for name, task in tasks.items()}
    config = {
        "tasks": tasks,
        "global": {"duration": SECONDS + 3, "calibration": 30, "default_policy": "SCHED_FIFO", "pi_enabled": "fifo" in case,
                   "lock_pages": False, "logdir": str(work), "log_basename": "log", "gnuplot": False, "log_size": 4},
    }
    (work / "config.json").write_text(json.dumps(config))
    spinner = None
    if load:
        spinner = subprocess.Popen(["taskset", "-c", str(OTHER), "nice", "-n", "19", sys.executable, "-c",
                                    f"import time, zlib\nend = time.time() + {SECONDS + 3}\nb = bytes(range(256)) * 4000\nwhile time.time() < end: zlib.compress(b)"])
    program = subprocess.Popen(["timeout", str(SECONDS + 20), rtapp, work / "config.json"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    time.sleep(1)
    pid = subprocess.run(["pgrep", "-P", str(program.pid)], capture_output=True, text=True).stdout.split()
    if not pid:
        return program.communicate()[1][-300:]
    watch = subprocess.run(["timeout", "60", hourglass, "watch", pid[0], "--trace", "-d", f"{SECONDS}s", "-q", "-o", work / "record"],
                           capture_output=True, text=True)
    program.communicate()
    if spinner:
        spinner.wait()
    return watch.stderr.strip()[-200:] if watch.returncode not in (0, 4) else None


def modelled(hourglass, case, load, work):
    _, truth = CASES[case]
    (work / "out.toml").unlink(missing_ok=True)
    written = subprocess.run([hourglass, "model", work / "record", "-o", work / "out.toml"], capture_output=True, text=True)
    model = subprocess.run([hourglass, "model", work / "record", "--json"], capture_output=True, text=True)
    found = json.loads(model.stdout) if model.stdout else {"threads": []}
    row = {"case": case, "load": load, "exit": written.returncode, "threads": [], "wrong": []}
    for index, (name, (period, execution, waits, after)) in enumerate(truth.items()):
        threads = [t for t in found["threads"] if re.fullmatch(rf"{name}-{index}(-\d+)?|{name}", t["name"])]
        log = loops(work, name, index)
        one = judge(row["wrong"], name, threads, log, period, execution, waits, after)
        row["threads"].append(one)
    if not (work / "out.toml").exists():
        return row
    for verb, more in (("check", []), ("simulate", []), ("predict", ["--no-run"]), ("predict", ["--against", work / "record"])):
        done = subprocess.run(["timeout", "60", hourglass, verb, work / "out.toml", *more], capture_output=True, text=True)
        row[" ".join([verb, *map(str, more[:1])])] = done.returncode
        # 1 is a verdict; of bounds against the record they were made of, it is a wrong one.
        if done.returncode not in (0, 1, 4) or done.returncode == 1 and "--against" in more and "broke 0" not in " ".join(done.stdout.split()):
            row["wrong"].append(f"{verb}: {(done.stderr.strip() or done.stdout.strip())[-160:]}")
    return row


def judge(wrong, name, threads, log, period, execution, waits, after):
    if len(threads) != 1:
        wrong.append(f"{name}: {len(threads)} threads")
        return {"name": name}
    t = threads[0]
    law, took = t["activation"], t["execution"]["max_ns"] / 1000
    latency = max(lat for _, _, lat in log) if log else 0
    row = {"name": name, "truth": {"period_us": period, "execution_us": execution, "latency_us": latency, "waits": waits, "after": after},
           "class": law["class"], "period_us": law["period_ns"] / 1000, "jitter_us": law["jitter_ns"] / 1000,
           "usual_jitter_us": law.get("usual_jitter_ns", 0) / 1000, "late": law.get("late", 0), "unseen": law.get("unseen", 0),
           "execution_us": took, "least_us": t["execution"]["min_ns"] / 1000, "jobs": t["fit"]["jobs"], "cut_off": t["fit"]["cut_off"],
           "waits": (t.get("suspension") or {}).get("waits", 0), "after": t.get("after"),
           "unmodelled": t.get("unmodelled")}
    if t.get("unmodelled"):
        # Said to be unknown: wrong only where a law was to be found.
        if period:
            wrong.append(f"{name}: {t['unmodelled']}")
        return row
    if after:
        # In the file it has the law of the first of its chain.
        pass
    elif (law["class"] == "periodic") != (period is not None):
        wrong.append(f"{name}: class {law['class']}")
    elif period and abs(row["period_us"] - period) * PERIOD_PART > period:
        wrong.append(f"{name}: period {row['period_us']}")
    if period and not after and row["jitter_us"] > latency + JITTER_US:
        wrong.append(f"{name}: jitter {row['jitter_us']} > {latency}")
    if took < execution - EXECUTION_US:
        wrong.append(f"{name}: execution {took} < {execution}")
    if waits is not None and row["waits"] != waits:
        wrong.append(f"{name}: {row['waits']} waits")
    if (re.sub(r"-\d+", "", row["after"] or "") or None) != after:
        wrong.append(f"{name}: after {row['after']}")
    return row


def main():
    hourglass, rtapp, *only = sys.argv[1:]
    rows = []
    for case in only or CASES:
        for load in (False, True):
            with tempfile.TemporaryDirectory() as work:
                keep = os.environ.get("KEEP")
                work = pathlib.Path(keep, f"{case}{'-load' * load}") if keep else pathlib.Path(work)
                work.mkdir(parents=True, exist_ok=True)
                error = None if (work / "record").exists() else record(hourglass, rtapp, case, load, work)
                row = {"case": case, "load": load, "wrong": [error]} if error else modelled(hourglass, case, load, work)
            rows.append(row)
            print(case, "load" * load, row.get("wrong", row), file=sys.stderr, flush=True)
    json.dump(rows, sys.stdout, indent=1)


main()
