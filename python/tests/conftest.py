"""What the tests share: signals that arrive, a run that was kept, and what a machine may not have."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import time
from typing import Callable, Iterator

import pytest

import hourglass


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """A skipped test is counted with those in Rust: `cargo xtask test` prints them all at its end.

    `pytest.skip("why [lacks: COMMAND]")` names a line for the shell that succeeds where the test can run.
    """
    path = os.environ.get("HOURGLASS_SKIPPED")
    if path and report.skipped and isinstance(report.longrepr, tuple):
        why = " ".join(report.longrepr[2].split()).removeprefix("Skipped: ")
        why, _, check = why.removesuffix("]").partition(" [lacks: ")
        if missing := re.match(r"could not import '(\w+)'", why):
            check = f"{sys.executable} -c 'import {missing[1]}'"
        name = report.nodeid.rpartition("::")[2] or report.nodeid
        need = check.split()[0] if check else "chance"
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{name}\t{need}\t{check}\t{why}\t\t\n")


URGENT = """
import os, pathlib
for urgent in (
    os.setsid,
    lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),
    lambda: pathlib.Path("/proc/self/autogroup").write_text("-20"),
):
    try:
        urgent()
    except OSError:
        pass
"""
"""Puts a program before what else wants the CPU, where that is allowed: what is bounded then is its own time. Nice values
count within a session, and a session has one of its own (sched(7))."""


class Alarm:
    """Sends this process a signal, once, and knows when."""

    def __init__(self) -> None:
        self.sent_ns = 0
        self._thread: threading.Thread | None = None

    def after(self, seconds: float, number: int = signal.SIGINT) -> None:
        def send() -> None:
            time.sleep(seconds)
            self.sent_ns = time.monotonic_ns()
            os.kill(os.getpid(), number)

        self._thread = threading.Thread(target=send)
        self._thread.start()

    def join(self) -> None:
        if self._thread is not None:
            self._thread.join()


@pytest.fixture
def alarm() -> Iterator[Callable[[], Alarm]]:
    """Makes alarms; Ctrl-C raises `KeyboardInterrupt` meanwhile, whatever started the tests."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    made: list[Alarm] = []

    def make() -> Alarm:
        made.append(Alarm())
        return made[-1]

    try:
        yield make
    finally:
        for one in made:
            one.join()
        signal.signal(signal.SIGINT, before)


def interrupted_within_ms(alarm: Callable[[], Alarm], waits: Callable[[], object]) -> float:
    """How long after SIGINT `waits` raised `KeyboardInterrupt`: the best of five, ms."""
    best = float("inf")
    for _ in range(5):
        one = alarm()
        with pytest.raises(KeyboardInterrupt):
            one.after(0.06)
            waits()
        best = min(best, (time.monotonic_ns() - one.sent_ns) / 1e6)
        one.join()
    return best


@pytest.fixture(scope="session")
def kept(tmp_path_factory: pytest.TempPathFactory) -> hourglass.Run:
    """A run of a second that was kept: a periodic thread, one that measures latency, one that spins."""
    folder = tmp_path_factory.mktemp("runs") / "kept"
    threads = [
        {"name": "periodic", "workload": "PERIODIC 1ms 10ms"},
        {"name": "waker", "workload": "LAT 2ms"},
        {"name": "load", "workload": "CPU", "finish": "200ms"},
    ]
    return hourglass.run(threads, duration="1s", output=folder, seed=1)
