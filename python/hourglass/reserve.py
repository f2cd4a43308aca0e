"""Reservations, policies and progress of the program itself.

    with reserve.Reservation("2ms", "10ms") as held:      # 2 ms of processor time in every 10 ms
        ...
        print(held.supply())

    with reserve.Scheduled("FIFO:50", cpus=1):
        ...

Both put back what the thread had before. What is refused names what is in the way and has the line that grants it in
`remedy`; `Reservation.check()` asks without changing anything.

`progress(done, total)` tells a monitor (`hourglass reserve --smt`) how far the program's job is.
"""

from __future__ import annotations

from ._hourglass import Progress, Reservation, Scheduled, Supply, progress

__all__ = ["Progress", "Reservation", "Scheduled", "Supply", "progress"]
