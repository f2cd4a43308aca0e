"""Commands that run under a reservation. Offered as `hourglass.reserve.command` and `.check`.

Each command gets a process of its own that makes the reservation, observes it and undoes it: a program with
several threads cannot do that itself, since the threads would take the signals that are to be passed on. The
process is a Python without this program's modules, and has one thread.

Every change is undone in all cases, also after SIGKILL: if the command ends, if this
program ends (the command then gets SIGTERM), if the process between them is killed (its guardian
undoes it).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import IO, TYPE_CHECKING, Any, Mapping, Optional, Sequence, Union

from . import _hourglass
from .errors import InvalidError, SystemRefusedError, UnsupportedError, _of_kind
from .keeper import Keeper

if TYPE_CHECKING:
    from ._hourglass import SpanLike

__all__ = ["Refused", "check", "command"]

_File = Union[None, int, IO[Any]]


class Refused(SystemRefusedError):
    """The reservation was refused, and nothing was started; `document` has all reasons."""

    kind = "refused"
    document: dict[str, Any]


# Loads the extension module alone, by its path: nothing that it imports may start a thread. Question and
# answer go through a file in memory that no other process has. Python ignores two signals that the command must not.
_CHILD = """
import importlib.machinery, importlib.util, json, os, signal, sys
for ignored in (signal.SIGPIPE, signal.SIGXFSZ):
    signal.signal(ignored, signal.SIG_DFL)
path, name, talk, parent = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.set_inheritable(talk, False)
loader = importlib.machinery.ExtensionFileLoader(name, path)
module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
loader.exec_module(module)
with open(talk, "r+", encoding="ascii") as file:
    asked = json.load(file)
    answer = module.reserve_command(asked, parent)
    file.seek(0)
    file.truncate()
    json.dump(answer, file)
"""


def command(
    words: Sequence[Union[str, "os.PathLike[str]"]],
    amount: Union[str, tuple[SpanLike, SpanLike]],
    *,
    soft: bool = False,
    deadline: Optional[SpanLike] = None,
    cpu: Optional[int] = None,
    backend: str = "auto",
    smt: Optional[str] = None,
    interferes: str = "siblings",
    stop: Sequence[str] = (),
    stopper: str = "auto",
    slow_first: bool = False,
    alpha: str = "0",
    stdin: _File = None,
    stdout: _File = None,
    stderr: _File = None,
    cwd: Union[None, str, "os.PathLike[str]"] = None,
    env: Optional[Mapping[str, str]] = None,
) -> dict[str, Any]:
    """Runs a command with reserved processor time; waits for its end.

    `amount` is budget and period, `"3.1ms/8ms"` or a pair. Returns the document `hourglass.reserve/1`, as
    `hourglass reserve --json -- COMMAND` prints it: what was delivered, and with `"exit_code"` how the
    command ended (128+n for signal n). `stdin` to `env` are those of `subprocess`.

    Ctrl-C, or any exception that is raised while this waits, sends SIGTERM to the command, waits for
    its end and undoes the reservation before the exception propagates.

    Raises `Refused` where no backend would grant the reservation, with each one's reason and remedy;
    `hourglass.errors.InvalidError` for invalid arguments or where there is no such program.
    """
    if isinstance(words, (str, bytes)) or not words:
        raise InvalidError("command: give the program and its words as a list, as in ['make', '-j2']")
    asked = _asked([os.fsdecode(word) for word in words], amount, locals())
    _hourglass.reserve_words(asked)
    if not sys.executable:
        raise UnsupportedError("there is no Python to start a process with (sys.executable is empty)")
    with open(os.memfd_create("hourglass-reserve"), "w+", encoding="ascii") as talk:
        json.dump(asked, talk)
        talk.flush()
        talk.seek(0)
        code = Keeper(
            lambda: subprocess.Popen(
                _arguments(talk.fileno()),
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=cwd,
                env=env,
                pass_fds=[talk.fileno()],
            )
        ).run()
        talk.seek(0)
        return _understood(talk.read(), code)


def check(
    amount: Union[str, tuple[SpanLike, SpanLike]],
    *,
    soft: bool = False,
    deadline: Optional[SpanLike] = None,
    cpu: Optional[int] = None,
    backend: str = "auto",
) -> dict[str, Any]:
    """Says whether a reservation would be granted, as `hourglass reserve --check --json` does.

    Nothing is started, changed or asked of the kernel's scheduler. `document["backend"]` is None for no;
    `document["refusals"]` has the reasons and what mends them.
    """
    found: dict[str, Any] = json.loads(_hourglass.reserve_check(_asked([], amount, locals())))
    return found


def _asked(words: list[str], amount: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The request for the extension module, in plain values; times in whole nanoseconds."""
    parts = amount.split("/") if isinstance(amount, str) else amount
    if not isinstance(parts, (list, tuple)):
        raise TypeError(
            f"amount: budget and period are wanted, such as '3.1ms/8ms' or a pair, not {type(amount).__name__}"
        )
    if len(parts) != 2:
        raise InvalidError(f"amount: {amount!r}: budget and period are wanted, such as 3.1ms/8ms")
    budget, period = parts
    deadline = given["deadline"]
    return {
        "command": words,
        "budget": _hourglass.span_ns(budget),
        "period": _hourglass.span_ns(period),
        "soft": bool(given["soft"]),
        "deadline": None if deadline is None else _hourglass.span_ns(deadline),
        "cpu": given["cpu"],
        "backend": given["backend"],
        "smt": given.get("smt"),
        "interferes": given.get("interferes", "siblings"),
        "stop": [str(whom) for whom in given.get("stop", ())],
        "stopper": given.get("stopper", "auto"),
        "slow_first": bool(given.get("slow_first", False)),
        "alpha": str(given.get("alpha", "0")),
    }


def _arguments(talk: int) -> list[str]:
    module = os.path.abspath(str(_hourglass.__file__))
    return [
        sys.executable,
        "-I",
        "-S",
        "-c",
        _CHILD,
        module,
        _hourglass.__name__,
        str(talk),
        str(os.getpid()),
    ]


def _understood(text: str, code: int) -> dict[str, Any]:
    """The answer of the process between; if it was ended, its request or half an answer."""
    try:
        answer = json.loads(text)
    except ValueError:
        answer = None
    if not isinstance(answer, list):
        how = f"by signal {-code}" if code < 0 else f"with code {code}"
        raise SystemRefusedError(
            f"the process that enforced the reservation was ended {how}; its guardian has undone its changes"
        )
    kind, text = answer
    if kind not in ("document", "refused"):
        raise _of_kind(kind, text, None, None)
    document: dict[str, Any] = json.loads(text)
    if kind == "document":
        return document
    lines = [f"{r['backend']}: {r['cause']}; {r['remedy']}" for r in document["refusals"]]
    refused = Refused("; ".join(lines) or "nothing here enforces it")
    refused.document = document
    raise refused
