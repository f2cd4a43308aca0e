"""What happens on a node: one measurement, in a process of its own, on CPUs that the engine is kept off.

`measure` is called by the engine on the node. It starts this module as a process, whose standard input is its lifeline:
when the engine's worker dies, the process ends the command and gives the engine its CPUs back. Nothing here imports an
engine.
"""

from __future__ import annotations

import contextlib
import ctypes
import fcntl
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Iterator, Mapping, Optional, Sequence


__all__ = ["ENGINES", "engine_process", "measure"]

ENGINES = (
    "raylet", "gcs_server", "ray::", "log_monitor", "dashboard", "runtime_env", "dask", "slurmd", "slurmstepd",
    "kubelet", "containerd", "dockerd", "crio", "conmon", "pbs_mom", "sge_execd", "parsl", "process_worker",
)  # fmt: skip
"""How the names of engines' processes begin (`/proc/PID/comm`)."""

Answer = dict[str, Any]
"""What a node answers: `node`, `reason` (None where it was measured), `files`, `about`."""

TAKES_CPUS = {"noise": ("-c", "--cpu-list", "--cores")}
"""Commands with an option for the CPUs that they measure."""

_PR_SET_PDEATHSIG = 1

GRACE_S = 10
"""How long a command that is asked to end has for it."""


def engine_process(name: str) -> bool:
    """Whether a process of this name is an engine's."""
    return name.startswith(ENGINES)


def measure(request: Mapping[str, Any]) -> Answer:
    """Measures this node. `request` has `node`, `arguments`, `hourglass`, `engine_cpus`, `timeout_s`."""
    answer: Answer = {"node": request["node"], "nonce": request["nonce"], "reason": None, "files": {}, "about": {}}
    try:
        with tempfile.TemporaryDirectory(prefix="hourglass-node-") as room:
            _child({**request, "folder": str(Path(room) / "run")}, answer)
    except OSError as error:
        answer["reason"] = f"{error.filename or 'the node'}: {error.strerror or error}"
    return answer


def _child(request: Mapping[str, Any], answer: Answer) -> None:
    command = [sys.executable, "-m", "hourglass.fleet.node"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as child:
        assert child.stdin is not None and child.stdout is not None and child.stderr is not None
        try:
            child.stdin.write(json.dumps({**request, "worker": os.getpid()}).encode() + b"\n")
            child.stdin.flush()
            # Its input stays open: that is how it knows that its caller waits.
            said = child.stdout.read()
            complaint = child.stderr.read().decode(errors="replace").strip()
        finally:
            child.stdin.close()
        child.wait()
    try:
        found = json.loads(said)
    except ValueError:
        last = complaint.splitlines()[-1] if complaint else f"exit status {child.returncode}"
        answer["reason"] = f"the measuring process ended: {last}"
        return
    answer["about"], answer["reason"] = found["about"], found["reason"]
    folder = Path(request["folder"])
    if answer["reason"] is None:
        answer["files"] = {file.name: file.read_bytes() for file in sorted(folder.iterdir()) if file.is_file()}


def _serve() -> int:
    """The process: one request on standard input, one answer on standard output."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    request = json.loads(sys.stdin.buffer.readline())
    notes: list[str] = []
    about: dict[str, Any] = {"node": request["node"], "notes": notes}
    with _alone(notes):
        # Those of the worker: this process may have begun while another measurement here held the engine aside.
        allowed = os.sched_getaffinity(request["worker"])
        cpus, aside = _cpus(allowed, request.get("engine_cpus"), notes)
        about.update(_identity(), cpus=sorted(cpus), engine_cpus=sorted(aside))
        engine = {} if aside & cpus else _engine(request["worker"])
        about["engine"] = sorted({name for name, _ in engine.values()})
        os.sched_setaffinity(0, aside)
        with _confined(engine, aside, notes):
            reason = _command(request, cpus, aside, notes)
    json.dump({"about": about, "reason": reason}, sys.stdout)
    return 0


def _identity() -> dict[str, Any]:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return {"host": os.uname().nodename, "kernel": os.uname().release, "boot_id": boot}


@contextlib.contextmanager
def _alone(notes: list[str]) -> Iterator[None]:
    """No other node of a fleet is measured on this machine meanwhile: they would measure each other."""
    path = Path(tempfile.gettempdir()) / "hourglass-fleet.lock"
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
    except OSError as error:
        notes.append(f"{path}: {error.strerror}: another fleet may have measured here at the same time")
        yield
        return
    begun = time.monotonic()
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if time.monotonic() - begun > 1:
            notes.append(f"waited {time.monotonic() - begun:.0f} s for another measurement on this machine")
        yield
    finally:
        os.close(descriptor)


def _cpus(allowed: set[int], asked: Optional[Sequence[int]], notes: list[str]) -> tuple[set[int], set[int]]:
    """The CPUs to measure, and those for the engine."""
    aside = set(asked) & allowed if asked is not None else {min(allowed)}
    if asked is not None and not aside:
        notes.append(f"engine_cpus: none of {sorted(asked)} is allowed here; CPU {min(allowed)} was taken")
        aside = {min(allowed)}
    if allowed - aside:
        return allowed - aside, aside
    notes.append("no CPU is left for the engine, so that it ran on those that were measured")
    return allowed, allowed


def _engine(worker: int) -> dict[int, tuple[str, set[int]]]:
    """The threads of the engine on this machine, by number: what each is called, and its CPUs."""
    found: dict[int, tuple[str, set[int]]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit() or int(entry) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            name = Path(f"/proc/{entry}/comm").read_text().strip()
            if engine_process(name) or int(entry) == worker:
                for thread in os.listdir(f"/proc/{entry}/task"):
                    found[int(thread)] = (name, os.sched_getaffinity(int(thread)))
    return found


@contextlib.contextmanager
def _confined(engine: Mapping[int, tuple[str, set[int]]], aside: set[int], notes: list[str]) -> Iterator[None]:
    """The engine's threads run on `aside` only, and then where they ran before."""
    moved: dict[int, set[int]] = {}
    stayed: set[str] = set()
    try:
        for thread, (name, before) in engine.items():
            try:
                os.sched_setaffinity(thread, aside)
                moved[thread] = before
            except PermissionError:
                stayed.add(name)
            except OSError:
                pass  # It has ended, or is bound by its cgroup.
        if stayed:
            notes.append(f"of another user, and so not kept off the measured CPUs: {', '.join(sorted(stayed))}")
        yield
    finally:
        for thread, before in moved.items():
            with contextlib.suppress(OSError):
                if os.sched_getaffinity(thread) == aside:
                    os.sched_setaffinity(thread, before)
        if moved:
            _free_newcomers(moved, aside)


def _free_newcomers(moved: Mapping[int, set[int]], aside: set[int]) -> None:
    """What an engine started while it was confined runs where the process that started it runs again.

    A process is known by its parent, for a worker that has just begun has no name of its own yet.
    """
    engine = set(moved)
    for process in sorted(int(entry) for entry in os.listdir("/proc") if entry.isdigit()):
        with contextlib.suppress(OSError):
            parent = int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
            model = process if process in moved else parent
            if model not in engine or process == os.getpid():
                continue
            engine.add(process)
            for thread in map(int, os.listdir(f"/proc/{process}/task")):
                if thread not in moved and os.sched_getaffinity(thread) == aside:
                    os.sched_setaffinity(thread, os.sched_getaffinity(model))


def _command(request: Mapping[str, Any], cpus: set[int], aside: set[int], notes: list[str]) -> Optional[str]:
    """Runs it; None, or why there is no measurement."""
    program = request.get("hourglass") or os.environ.get("HOURGLASS") or shutil.which("hourglass")
    if not program:
        return "the command hourglass is not in PATH (or in $HOURGLASS) on this node"
    arguments = list(request["arguments"])
    options = TAKES_CPUS.get(arguments[0])
    if options and not any(word.startswith(options) for word in arguments[1:]):
        arguments += ["-c", ",".join(map(str, sorted(cpus)))]
        if aside.isdisjoint(cpus) and not any(word.startswith("-C") for word in arguments):
            arguments += ["-C", str(min(aside))]
    arguments += ["-o", request["folder"]]
    status, complaint = _run([program, *arguments], cpus, request)
    if status == 3 and "--best-effort" not in arguments:
        notes.append(f"without privileges: {complaint}; measured with --best-effort")
        shutil.rmtree(request["folder"], ignore_errors=True)
        status, complaint = _run([program, *arguments, "--best-effort"], cpus, request)
    if status in (0, 1) and (Path(request["folder"]) / "manifest.json").exists():
        return None
    return complaint or f"{Path(program).name} {arguments[0]} ended with status {status}"


def _run(command: Sequence[str], cpus: set[int], request: Mapping[str, Any]) -> tuple[int, str]:
    """Its exit status, and what it complained of last. It ends with who asked for it."""
    environment = {**os.environ, "HOURGLASS_NODE": request["node"]}
    libc, starter = ctypes.CDLL(None), os.getpid()
    with tempfile.TemporaryFile() as errors:
        try:
            child = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                env=environment,
                # Its main thread, too, belongs to what is measured only where it says so.
                preexec_fn=lambda: _as_measured(libc, cpus, starter),
            )
        except OSError as error:
            return 3, f"{command[0]}: {error.strerror}"
        late = _wait(child, request["timeout_s"])
        errors.seek(0)
        lines = errors.read().decode(errors="replace").strip().splitlines()
    said = [line.removeprefix("hourglass: ") for line in lines if ": warning: " not in line]
    if late:
        return -1, late
    return child.returncode, (said or [""])[-1].removeprefix("error: ")


def _as_measured(libc: ctypes.CDLL, cpus: set[int], starter: int) -> None:
    """In the command's process, before it begins: it may run on the measured CPUs, and ends if who started it is killed."""
    os.sched_setaffinity(0, os.sched_getaffinity(0) | cpus)
    libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != starter:
        os._exit(1)


def _wait(child: subprocess.Popen[bytes], timeout_s: float) -> Optional[str]:
    """Waits without waking up meanwhile; None, or why the command was ended."""
    descriptor = os.pidfd_open(child.pid)
    try:
        ready, _, _ = select.select([descriptor, sys.stdin.buffer], [], [], timeout_s)
    except BaseException:
        _end(child)
        raise
    finally:
        os.close(descriptor)
    if not ready or descriptor not in ready:
        _end(child)
        return "who asked for it is gone" if ready else f"not done after {timeout_s:.0f} s"
    child.wait()
    return None


def _end(child: subprocess.Popen[bytes]) -> None:
    child.terminate()
    try:
        child.wait(GRACE_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()


def _main() -> int:
    """An engine that ends a worker kills the worker's children (Ray does), by which the engine's CPUs would stay what they are.
    A child's child is left, sees that its input ends, and tidies up."""
    child = os.fork()
    if not child:
        return _serve()
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    sys.exit(_main())
