//! Time that jumps: the wall clock set back and forth during a run, and a machine that sleeps in the midst of one.

use super::debian::CLOUD_KERNEL;
use super::expectation::Expectation::{ExitCode, Says, Values};
use super::{Kernel, Step, TestBed};

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
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-smp", "2"],
    kernel_arguments: "",
    tests: &[],
    steps: &[
        Step {
            name: "set-back-and-forth",
            command: "hourglass -n 1 -d 3s -t 0 -p RTHIGH -w LAT 10ms -i SLEEPER & sleep 1; date -s 1999-12-31; sleep 1; \
                      date -s 2037-01-20; wait $!",
            // Two hundred and more of three hundred: no sleep waits for the wall clock.
            expect: &[ExitCode(0), Values { tag: "latlate:", at_least: 150, none_below: 0.0 }],
        },
        Step {
            name: "states",
            command: "cat /sys/power/state && date -u +%s >/tmp/before",
            expect: &[ExitCode(0), Says("mem")],
        },
        Step {
            name: "run",
            command: sleeping!("hourglass -n 1 -d 4s -t 0 -p RTHIGH -w LAT 10ms -i SLEEPER"),
            expect: &[
                ExitCode(0),
                Says("PM: suspend exit"),
                Values { tag: "latlate:", at_least: 150, none_below: 0.0 },
            ],
        },
        Step {
            name: "reserve",
            command: sleeping!("hourglass reserve 5ms/50ms --backend user --json -- sleep 3"),
            expect: &[ExitCode(0), Says("PM: suspend exit")],
        },
        Step {
            name: "clocks",
            command: sleeping!("hourglass clocks"),
            expect: &[ExitCode(0), Says("PM: suspend exit"), Says("by policy strict:")],
        },
        Step {
            name: "afterwards",
            command: "hourglass clocks --json >/dev/null && hourglass -n 1 -d 500ms",
            expect: &[ExitCode(0)],
        },
    ],
};
