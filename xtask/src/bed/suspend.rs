//! Time that jumps: the wall clock set back and forth during a run, and a machine that sleeps in the midst of one.

use super::expectation::Expectation::{ExitCode, Says, Values};
use super::{TestBed, passes, step};

/// The machine sleeps for some seconds while a command runs; the kernel's log says so.
macro_rules! sleeping {
    ($command:literal) => {
        concat!(
            $command,
            " & sleep 1; dmesg -c >/dev/null; echo 0 >/sys/class/rtc/rtc0/wakealarm; \
             echo +3 >/sys/class/rtc/rtc0/wakealarm; echo mem >/sys/power/state; wait $!; code=$?; dmesg; exit $code"
        )
    };
}

pub(super) const BED: TestBed = TestBed {
    name: "suspend",
    purpose: "the wall clock set back and forth, and a machine that sleeps, during runs and reservations",
    steps: &[
        // Two hundred and more of three hundred: no sleep waits for the wall clock.
        step(
            "set-back-and-forth",
            "hourglass -n 1 -d 3s -t 0 -p RTHIGH -w LAT 10ms -i SLEEPER & sleep 1; date -s 1999-12-31; sleep 1; \
                      date -s 2037-01-20; wait $!",
            &[ExitCode(0), Values { tag: "latlate:", at_least: 150, none_below: 0.0 }],
        ),
        step(
            "states",
            "cat /sys/power/state && date -u +%s >/tmp/before",
            &[ExitCode(0), Says("mem")],
        ),
        // Before the kernel's clock stops and after it goes on, seconds may pass on a slow machine.
        step(
            "run",
            sleeping!("hourglass -n 1 -d 8s -t 0 -p RTHIGH -w LAT 10ms -i SLEEPER"),
            &[
                ExitCode(0),
                Says("PM: suspend exit"),
                Values { tag: "latlate:", at_least: 150, none_below: 0.0 },
            ],
        ),
        step(
            "reserve",
            sleeping!("hourglass reserve 5ms/50ms --backend user --json -- sleep 3"),
            &[ExitCode(0), Says("PM: suspend exit")],
        ),
        step(
            "clocks",
            sleeping!("hourglass clocks"),
            &[ExitCode(0), Says("PM: suspend exit"), Says("by policy strict:")],
        ),
        passes("afterwards", "hourglass clocks --json >/dev/null && hourglass -n 1 -d 500ms"),
    ],
    ..TestBed::PLAIN
};
