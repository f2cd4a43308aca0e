#!/usr/bin/env python3
"""Causes that a trace without root infers by a rule, beside what those who caused them wrote down.

python3 bench/limits.py HOURGLASS > FILE, as root, with two CPUs. Stops: the times of SIGSTOP and SIGCONT. Quotas: the
kernel's `throttled_time` of the group, read all the time. Limits of real-time threads and budgets: the turns of a
program of ordinary priority on the same CPU, which has none otherwise; a real-time competitor writes down its own.
A gap is right where it holds such a span, for half a millisecond at least, and 'mostly' where they cover half of it: whoever
was stopped may wait for the CPU afterwards. 'named' is the share of the spans' time in gaps of that cause.
"""

import csv, io, json, multiprocessing as mp, os, pathlib, random, signal, subprocess, sys, tempfile, time

CPU, OTHER = 1, 0
now = time.monotonic_ns
GROUP = pathlib.Path("/sys/fs/cgroup/cpu/hourglass-limits")


def turns(stop, out, cpu, fifo, work_ns, rest_s, nice):
    """Computes and writes down when it had the CPU."""
    os.sched_setaffinity(0, {cpu})
    if fifo:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(fifo))
    else:
        os.nice(nice)
    found, begin = [], now()
    last = begin
    while not stop.is_set() if fifo else not stop.value:
        until = now() + work_ns
        while (t := now()) < until:
            if t - last > 300_000:
                found.append((begin, last))
                begin = t
            last = t
        if rest_s:
            time.sleep(rest_s)
    found.append((begin, last))
    out.put([(a, b) for a, b in found if b - a > 1_000_000])


class Beside:
    def __init__(self, cpu, fifo=0, work_ns=20_000_000, rest_s=0.0, nice=0):
        self.out, self.stop = mp.Queue(), mp.Event() if fifo else mp.Value("b", 0)
        self.one = mp.Process(target=turns, args=(self.stop, self.out, cpu, fifo, work_ns, rest_s, nice))
        self.one.start()

    def end(self):
        if hasattr(self.stop, "set"):
            self.stop.set()
        else:
            self.stop.value = 1
        found = self.out.get(timeout=10)
        self.one.join(5)
        return found


def stops(run):
    found = []
    time.sleep(0.5)
    while run.poll() is None:
        begin = now()
        os.kill(run.pid, signal.SIGSTOP)
        time.sleep(random.uniform(0.002, 0.03))
        os.kill(run.pid, signal.SIGCONT)
        found.append((begin, now()))
        time.sleep(random.uniform(0.02, 0.1))
    return found


def throttled(run):
    found, last = [], None
    while run.poll() is None:
        stat = dict(line.split() for line in (GROUP / "cpu.stat").read_text().splitlines())
        t, total = now(), int(stat["throttled_time"])
        if last is not None and total > last:
            found.append((t - (total - last), t))
        last = total
        time.sleep(0.0003)
    return found


def wait(run):
    run.wait()
    return []


def measure(binary, words, watch, in_group=False):
    with tempfile.TemporaryDirectory() as place:
        folder = f"{place}/run"
        enter = (lambda: (GROUP / "tasks").write_text("0")) if in_group else None
        line = ["timeout", "--foreground", "20", binary, "-q", "-n", "1", *words, "-o", folder]
        if enter is None:
            line = line[3:]
        run = subprocess.Popen(line, stdout=subprocess.DEVNULL, preexec_fn=enter)
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(20))
        truth = watch(run)
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))
        run.wait()
        manifest = json.load(open(f"{folder}/manifest.json"))
        text = subprocess.run([binary, "export", folder, "--csv", "-"], capture_output=True, text=True, check=True).stdout
    zero, gaps, last = manifest["epoch"]["monotonic_ns"], [], None
    for row in csv.DictReader(io.StringIO(text)):
        if last is not None and row["cause"]:
            gaps.append((zero + last, zero + int(row["start_ns"]), row["cause"], float(row["confidence"])))
        last = int(row["end_ns"])
    end = zero + manifest["elapsed_ns"]
    return gaps, [(max(a, zero), min(b, end)) for a, b in truth if b > zero and a < end]


def overlap(a, b, spans):
    return sum(max(0, min(b, y) - max(a, x)) for x, y in spans)


def judge(cause, gaps, truth):
    mine = [gap for gap in gaps if gap[2] == cause]
    right = sum(overlap(a, b, truth) >= min(500_000, (b - a) // 2) for a, b, _, _ in mine)
    mostly = sum(2 * overlap(a, b, truth) >= b - a for a, b, _, _ in mine)
    named = sum(overlap(a, b, truth) for a, b, _, _ in mine)
    stated = sum(gap[3] for gap in mine)
    return len(mine), right, mostly, stated, named, sum(b - a for a, b in truth)


def case(name, cause, binary, words, runs, watch=wait, quota=None, beside=(), truth_of=None):
    sums = [0, 0, 0, 0.0, 0, 0]
    for _ in range(runs):
        if quota:
            GROUP.mkdir(exist_ok=True)
            (GROUP / "cpu.cfs_period_us").write_text(str(quota[1]))
            (GROUP / "cpu.cfs_quota_us").write_text(str(quota[0]))
        others = [Beside(*args) for args in beside]
        try:
            gaps, truth = measure(binary, words, watch, bool(quota))
        finally:
            written = [other.end() for other in others]
            if quota:
                GROUP.rmdir()
        if truth_of is not None:
            zero = min((gap[0] for gap in gaps), default=0)
            end = max((gap[1] for gap in gaps), default=0)
            # All but the competitor's turns, or the turns of the others.
            edges = [zero, *(edge for turn in written[0] for edge in turn), end]
            of = zip(edges[::2], edges[1::2]) if truth_of < 0 else written[truth_of]
            truth = [(a, b) for a, b in of if a >= zero and b <= end and a < b]
        sums = [x + y for x, y in zip(sums, judge(cause, gaps, truth))]
    count, right, mostly, stated, named, whole = sums
    row = lambda what, value, unit: {"case": f"calibration/{cause}", "subject": f"hourglass/{name}/{what}", "value": value,
                                     "unit": unit, "ratio_to": {}}
    rows = [row("gaps", float(count), "gaps")]
    if count:
        rows += [row("right", right / count, "share"), row("mostly", mostly / count, "share"), row("stated", stated / count, "share")]
    if whole and truth_of != -1:
        rows += [row("named", named / whole, "share"), row("time", float(whole), "ns")]
    print(name, cause, sums, file=sys.stderr)
    return rows


def main():
    binary, wanted = sys.argv[1], sys.argv[2:]
    os.sched_setaffinity(0, {OTHER})
    on = lambda *words: [*words, "--cpu", str(CPU)]
    hog, fifo = (CPU,), (CPU, 50, 48_000_000, 0.952)
    cases = [
        ("alone", "stopped", on("-d", "4s"), 3, dict(watch=stops)),
        ("busy", "stopped", on("-d", "4s"), 3, dict(watch=stops, beside=[hog])),
        ("30ms-of-100ms", "cgroup_quota", on("-d", "4s"), 2, dict(watch=throttled, quota=(30_000, 100_000))),
        ("30ms-of-100ms-busy", "cgroup_quota", on("-d", "4s"), 2, dict(watch=throttled, quota=(30_000, 100_000), beside=[hog])),
        ("2ms-of-50ms-busy", "cgroup_quota", on("-d", "4s"), 2, dict(watch=throttled, quota=(2_000, 50_000), beside=[hog])),
        ("limit", "rt_throttling", on("-p", "FIFO:10", "-d", "4s"), 3, dict(beside=[(CPU, 0, 20_000_000, 0.0, -5)], truth_of=0)),
        ("rival-48ms-of-1s", "rt_throttling", on("-p", "FIFO:10", "-d", "4s"), 3, dict(beside=[fifo], truth_of=-1)),
    ]
    rows = []
    for name, cause, words, runs, more in cases:
        if not wanted or cause in wanted:
            rows += case(name, cause, binary, words, runs, **more)
    json.dump({"schema": "hourglass.bench/1", "name": "infer", "rounds": 1, "rows": rows}, sys.stdout, indent=2)


if __name__ == "__main__":
    main()
