"""Reservations, policies and progress of the program itself.

    with reserve.Reservation("2ms", "10ms") as held:      # 2 ms of processor time in every 10 ms
        ...
        print(held.supply())

    with reserve.Scheduled("FIFO:50", cpus=1):
        ...

Both put back what the thread had before. What is refused names what is in the way and has the line that grants it in
`remedy`; `Reservation.check()` asks without changing anything.

    document = reserve.command(["make", "-j2"], "3ms/8ms", soft=True)   # `hourglass reserve --json -- make -j2`

`command` gives a reservation to another program and says what was delivered; `reserve.check` only asks.

`progress(done, total)` tells a monitor (`hourglass reserve --smt`) how far the program's job is.
"""

from __future__ import annotations

from ._hourglass import Progress, Reservation, Scheduled, Supply, progress
from .reserved import Refused, check, command

__all__ = ["Progress", "Refused", "Reservation", "Scheduled", "Supply", "check", "command", "progress"]
