"""A process that is started, waited for and ended, whatever signal comes meanwhile. For `hourglass.reserved`.

A signal's handler may raise between any two steps of the main thread: also within `subprocess.Popen`, when the
process exists without an owner, or just before a wait, which would then go on. So a thread of its own, in
which no handler ever runs, starts the process and waits for its end; the caller checks at short intervals
whether it has ended, and after an exception the process still has an owner.
"""

from __future__ import annotations

import _thread
import os
import signal
import subprocess
import threading
from typing import Any, Callable, Optional

# Time between two checks for signals, s: 50 ms are promised.
_SLICE = 0.02

# What the process passes on to its command. Until it reads them, they are kept for it: Ctrl-C at a terminal, which
# asks all its processes, would end it with a traceback. SIGTERM may end it; it has started nothing then.
_PASSED = (
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGQUIT,
    signal.SIGUSR1,
    signal.SIGUSR2,
    signal.SIGWINCH,
)


class Keeper:
    """One process. `start` makes it, in another thread; signals that it passes on are blocked in it at first."""

    def __init__(self, start: Callable[[], subprocess.Popen[Any]]) -> None:
        self._start = start
        # The process that takes it first decides whether the process is started at all.
        self._turn = threading.Lock()
        # Plain locks and flags: an exception in the midst of an Event leaves that unusable.
        self._over = threading.Lock()
        self._over.acquire()
        self._reaping = threading.Lock()
        self._child: Optional[subprocess.Popen[Any]] = None
        self._failed: Optional[BaseException] = None
        self._ended = False

    def run(self) -> int:
        """Starts it and waits for its end; its return code. Whatever is raised meanwhile ends it first (SIGTERM).

        Raises what `start` raised.
        """
        try:
            # It is started or it is not: nothing is raised in between.
            _thread.start_new_thread(self._keep, ())
            self._wait()
        except BaseException:
            self._end()
            raise
        if self._failed is not None:
            raise self._failed
        assert self._child is not None
        return int(self._child.returncode)

    def _keep(self) -> None:
        """The other thread."""
        try:
            # It starts the process with its own mask; and the signals of this program go to other threads.
            signal.pthread_sigmask(signal.SIG_BLOCK, _PASSED)
            if self._turn.acquire(blocking=False):
                self._child = self._start()
                self._await_end(self._child)
        except BaseException as error:
            self._failed = error
        finally:
            self._ended = True
            self._over.release()

    def _await_end(self, child: subprocess.Popen[Any]) -> None:
        try:
            # Its number stays its own until it is waited for.
            os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        except ChildProcessError:
            # Somebody else here waits for all children.
            pass
        with self._reaping:
            child.wait()

    def _wait(self) -> None:
        while not self._ended:
            self._over.acquire(timeout=_SLICE)

    def _end(self) -> None:
        """Has it ended, and waits for that."""
        if self._turn.acquire(blocking=False):
            return
        while self._child is None and not self._ended:
            self._over.acquire(timeout=_SLICE / 10)
        with self._reaping:
            if self._child is not None and self._child.returncode is None:
                os.kill(self._child.pid, signal.SIGTERM)
        self._wait()
