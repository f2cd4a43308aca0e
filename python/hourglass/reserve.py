"""Reservations, policies and progress of the program itself.

    with reserve.Reservation("2ms", "10ms") as held:      # 2 ms of processor time in every 10 ms
        ...
        print(held.supply())

    with reserve.Scheduled("FIFO:50", cpus=1):
        ...

Both restore what the thread had before. A refusal names the obstacle and has the command that grants it in
`remedy`; `Reservation.check()` tests admission without changing anything.

    document = reserve.command(["make", "-j2"], "3ms/8ms", soft=True)   # `hourglass reserve --json -- make -j2`

`command` gives a reservation to another program and returns what was delivered; `reserve.check` only tests admission.

`progress(done, total)` reports the progress of the program's job to a monitor (`hourglass reserve --smt`).
"""

from __future__ import annotations

from ._hourglass import Progress, Reservation, Scheduled, Supply, progress
from .reserved import Refused, check, command

__all__ = ["Progress", "Refused", "Reservation", "Scheduled", "Supply", "check", "command", "progress"]
