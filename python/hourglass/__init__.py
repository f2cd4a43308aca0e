"""Time and real-time scheduling on Linux.

`clock` gives the time with its error, `sleep`, `periodic` and `timers` wake a program on time, `deadlines` reports missed deadlines,
`Recorder` shows what the scheduler did to a loop and `witness` what it did to any span of a program, `lab` measures and `runs` reads
run folders, `sched` has schedulability analysis and simulation, `reserve` reserves the CPU.

    >>> import hourglass
    >>> for tick in hourglass.periodic("1ms", count=3):
    ...     print(tick.number, tick.lateness_ns)  # doctest: +SKIP

Times are whole nanoseconds (`int`), or lengths as the command `hourglass` takes them (`"1.5ms"`), or
`datetime.timedelta`; never `float`. What is refused raises `hourglass.Error`.

Nothing is calibrated and no thread is started by importing this package. Modules are imported when they
are first used.
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING, Any

from ._hourglass import __version__
from .errors import Error

if TYPE_CHECKING:
    from . import clock as clock
    from . import deadlines as deadlines
    from . import errors as errors
    from . import fleet as fleet
    from . import frames as frames
    from . import lab as lab
    from . import loops as loops
    from . import plots as plots
    from . import recording as recording
    from . import reserve as reserve
    from . import runs as runs
    from . import sched as sched
    from . import shards as shards
    from . import sleep as sleep
    from . import timers as timers
    from . import witness as witness
    from .frames import Frame as Frame
    from .lab import compare as compare
    from .lab import diff as diff
    from .lab import run as run
    from .loops import Periodic as Periodic
    from .loops import Tick as Tick
    from .loops import periodic as periodic
    from .recording import Recorder as Recorder
    from .runs import Run as Run
    from .runs import open_run as open_run
    from .sleep import Interrupt as Interrupt
    from .sleep import Sleeper as Sleeper
    from .timers import Timer as Timer

# Modules, and names that are offered here and the module that has them. One line each.
_MODULES = frozenset(
    {
        "clock",
        "deadlines",
        "errors",
        "fleet",
        "frames",
        "lab",
        "loops",
        "plots",
        "recording",
        "reserve",
        "runs",
        "sched",
        "shards",
        "sleep",
        "timers",
        "witness",
    }
)
_NAMES = {
    "Frame": "frames",
    "Interrupt": "sleep",
    "Periodic": "loops",
    "Recorder": "recording",
    "Run": "runs",
    "Sleeper": "sleep",
    "Tick": "loops",
    "Timer": "timers",
    "compare": "lab",
    "diff": "lab",
    "open_run": "runs",
    "periodic": "loops",
    "run": "lab",
}

__all__ = ["Error", "__version__", *sorted(_MODULES), *sorted(_NAMES)]


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return _importlib.import_module(f".{name}", __name__)
    home = _NAMES.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(_importlib.import_module(f".{home}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
