//! A machine whose TSC the kernel has left: the OS clock must serve, and the result must say so.

use super::debian::CLOUD_KERNEL;
use super::expectation::Expectation::ExitCode;
use super::{Kernel, Step, TestBed};

pub(super) const BED: TestBed = TestBed {
    name: "clock",
    purpose: "measuring without a trustworthy TSC",
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-smp", "2"],
    kernel_arguments: "tsc=unstable",
    tests: &[],
    steps: &[
        Step {
            name: "no-tsc",
            command: "! grep -x tsc /sys/devices/system/clocksource/clocksource0/current_clocksource",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "os-clock",
            command: "hourglass -n 1 -d 1s --json | grep '\"source\": \"monotonic\"'",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "says-so",
            command: "hourglass -n 1 -d 1s --json | grep '\"id\": \"os-clock\"'",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "periodic",
            command: "hourglass -n 2 -d 1s -w PERIODIC 2ms 20ms | grep 'thread 1: missed'",
            expect: &[ExitCode(0)],
        },
    ],
};
