"""Commands under a reservation. What needs a privilege is skipped without it."""

import os
import random
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from conftest import URGENT
from hourglass import reserved
from hourglass.errors import InvalidError, SystemRefusedError

KEYS = {
    "backend",
    "guarantee",
    "budget_ns",
    "period_ns",
    "periods",
    "delivered_p50_ns",
    "delivered_min_ns",
    "missed",
    "overruns",
    "smt",
}


@pytest.fixture
def granted():
    """Skips where this machine or user gets no reservation."""
    document = reserved.check("1ms/20ms", backend="user")
    if document["backend"] is None:
        remedies = "; ".join(refusal["remedy"] for refusal in document["refusals"])
        pytest.skip(f"{remedies} [lacks: chrt --fifo 1 true]")


def test_check_has_the_keys_of_the_contract():
    document = reserved.check("3.1ms/8ms", soft=True)
    assert document["schema"] == "hourglass.reserve/1"
    assert KEYS <= set(document)
    assert (document["budget_ns"], document["period_ns"], document["soft"]) == (3_100_000, 8_000_000, True)
    assert document["exit_code"] is None


def test_a_command_runs_and_is_accounted_for(granted):
    code = "import time\nend = time.monotonic() + 0.5\nwhile time.monotonic() < end: pass"
    document = reserved.command([sys.executable, "-c", code], (2_000_000, "20ms"), soft=True, backend="user")
    assert KEYS <= set(document)
    assert document["exit_code"] == 0 and document["backend"] == "user"
    # Which periods count depends on how busy the machine is; that it was watched does not.
    assert document["periods"] + document["overruns"] >= 5
    assert not document["interrupted"]


def test_what_the_command_prints_and_how_it_ends(granted, tmp_path):
    with open(tmp_path / "out", "w+") as out:
        document = reserved.command(
            ["sh", "-c", "echo $WORD; pwd; exit 7"],
            "1ms/20ms",
            backend="user",
            stdout=out,
            cwd=tmp_path,
            env={"WORD": "heard", "PATH": os.environ["PATH"]},
        )
        out.seek(0)
        assert out.read().split() == ["heard", str(tmp_path)]
    assert document["exit_code"] == 7


def test_a_program_with_threads_may_call_it(granted):
    """And they get the signals that are theirs, while the command gets its own."""
    documents = []
    threads = [
        threading.Thread(
            target=lambda: documents.append(reserved.command(["sleep", "0.3"], "1ms/20ms", backend="user"))
        )
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [document["exit_code"] for document in documents] == [0, 0]


@pytest.mark.parametrize(
    "words, amount, options, text",
    [
        (["true"], "3ms", {}, "budget and period are wanted"),
        (["true"], ("3ms",), {}, "budget and period are wanted"),
        (["true"], "9ms/8ms", {}, "9ms/8ms"),
        (["true"], "1ms/8ms", {"backend": "magic"}, "backend: there are auto, deadline, user and quota"),
        (["true"], "1ms/8ms", {"smt": "magic"}, "smt: there are monitor, disable and ignore"),
        (["true"], "1ms/8ms", {"smt": "monitor", "alpha": "2"}, "alpha: a decimal from 0"),
        (["true"], "1ms/8ms", {"deadline": "9ms"}, "deadline 9ms|deadline: 9ms"),
        (["no-such-program-here"], "1ms/20ms", {"backend": "user"}, "no such program in PATH"),
        ("true", "1ms/8ms", {}, "as a list"),
        ([], "1ms/8ms", {}, "as a list"),
    ],
)
def test_wrong_words(words, amount, options, text):
    with pytest.raises(InvalidError, match=text):
        reserved.command(words, amount, **options)


@pytest.mark.parametrize(
    "amount, options, error, text",
    [
        (5, {}, TypeError, "budget and period are wanted, .* not int"),
        ("1ms/8ms", {"cpu": -1}, OverflowError, "^cpu: "),
        ("1ms/8ms", {"cpu": 2**40}, OverflowError, "^cpu: "),
        ((1.5, "8ms"), {}, TypeError, "not float"),
    ],
)
def test_wrong_types_and_numbers_without_a_counter(amount, options, error, text):
    with pytest.raises(error, match=text):
        reserved.command(["true"], amount, **options)


def test_more_than_there_is_is_refused_with_all_reasons():
    much = {"amount": "99999us/100ms", "cpu": 0, "backend": "deadline"}
    if reserved.check(**much)["backend"] is not None:
        pytest.skip("the deadline class has no limit here [lacks: test $(cat /proc/sys/kernel/sched_rt_runtime_us) -gt 0]")
    with pytest.raises(reserved.Refused) as raised:
        reserved.command(["true"], **much)
    document = raised.value.document
    assert document["refusals"] and str(raised.value)
    assert raised.value.kind == "refused"


# Whoever started the tests may have Ctrl-C ignored, as shells do for what runs in the background.
CALLER = URGENT + """
import signal, sys, time
signal.signal(signal.SIGINT, signal.default_int_handler)
from hourglass import reserved
try:
    print("ready", flush=True)
    reserved.command(["sh", "-c", "echo $$; exec sleep 60"], "1ms/20ms", backend="user")
except KeyboardInterrupt:
    print("raised", time.monotonic_ns(), flush=True)
"""


def call(**options):
    caller = subprocess.Popen(
        [sys.executable, "-c", CALLER], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options
    )
    assert caller.stdout.readline() == "ready\n"
    return caller


def begin():
    caller = call()
    pid = int(caller.stdout.readline())
    return caller, pid


def gone(pid, within=10.0):
    end = time.monotonic() + within
    while time.monotonic() < end:
        if not os.path.exists(f"/proc/{pid}"):
            return True
        time.sleep(0.005)
    return False


def raised_after_ns(caller, ask):
    """Asks the caller to end: it raises, says nothing else, and the command is gone. How long that took."""
    sent = time.monotonic_ns()
    ask()
    # Its output ends when the command, the process between and the guardian have ended, too.
    out, told = caller.communicate(timeout=30)
    said = [line.split() for line in out.splitlines()]
    assert [words[0] for words in said[-1:]] == ["raised"], (out, told)
    assert (caller.returncode, told) == (0, "")
    assert all(gone(int(words[0])) for words in said[:-1])
    return int(said[-1][1]) - sent


def test_ctrl_c_ends_the_command_and_comes_through(granted):
    """At whatever moment it comes: before there is a process, while that starts, when the command runs."""
    seed = random.randrange(2**32)
    print("seed", seed)
    moments = random.Random(seed)
    took = []
    for number in range(12):
        caller = call()
        time.sleep(moments.uniform(0, 0.15) if number % 3 else 0)
        took.append(raised_after_ns(caller, lambda: caller.send_signal(signal.SIGINT)))
    running = []
    while not running or (min(running) > 50_000_000 and len(running) < 20):
        caller, _pid = begin()
        running.append(raised_after_ns(caller, lambda: caller.send_signal(signal.SIGINT)))
    assert min(running) <= 50_000_000, (took, running)


def test_ctrl_c_at_a_terminal_is_for_the_command_too(granted):
    """There each process of the group gets SIGINT, also the one between, which may not have begun yet."""
    for wait in (0, 0.01, 0.03, 0.1):
        caller = call(start_new_session=True)
        time.sleep(wait)
        raised_after_ns(caller, lambda: os.killpg(caller.pid, signal.SIGINT))


def test_half_an_answer_is_none():
    """Who kept the reservation was killed while it answered."""
    for told in ("", '["document", "{', '{"command": []}', "null"):
        with pytest.raises(SystemRefusedError, match="by signal 9"):
            reserved._understood(told, -9)


def test_killing_the_program_ends_the_command_and_undoes_the_reservation(granted):
    caller, pid = begin()
    caller.kill()
    caller.wait(10)
    assert gone(pid), "the command goes on without its reservation"


def children(pid):
    """By their parents' numbers, since not every kernel lists them."""
    found = []
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat") as file:
                parent = file.read().rpartition(")")[2].split()[1]
        except OSError:
            continue
        if int(parent) == pid:
            found.append(int(name))
    return found


def urgent(pid):
    """Whether it runs as its reservation had it; one that has ended does not."""
    try:
        return os.sched_getscheduler(pid) != os.SCHED_OTHER
    except ProcessLookupError:
        return False


def test_killing_the_process_between_undoes_the_reservation(granted):
    """The guardian puts the command back to timesharing, or it ends with its parent."""
    caller, pid = begin()
    (between,) = children(caller.pid)
    os.kill(between, signal.SIGKILL)
    end = time.monotonic() + 10
    while time.monotonic() < end and urgent(pid):
        time.sleep(0.01)
    try:
        assert not urgent(pid)
    finally:
        if os.path.exists(f"/proc/{pid}"):
            os.kill(pid, signal.SIGKILL)
    assert caller.wait(10) == 1


def test_nothing_is_imported_into_the_process_between():
    """It has one thread: the extension module alone starts none."""
    code = textwrap.dedent(
        """
        import importlib.machinery, importlib.util, os, sys
        loader = importlib.machinery.ExtensionFileLoader("hourglass._hourglass", sys.argv[1])
        spec = importlib.util.spec_from_loader("hourglass._hourglass", loader)
        loader.exec_module(importlib.util.module_from_spec(spec))
        print(len(os.listdir("/proc/self/task")), "hourglass" in sys.modules)
        """
    )
    from hourglass import _hourglass

    told = subprocess.run(
        [sys.executable, "-I", "-S", "-c", code, _hourglass.__file__], capture_output=True, text=True
    )
    assert told.stdout == "1 False\n", told.stderr
