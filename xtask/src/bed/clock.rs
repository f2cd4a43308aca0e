//! A machine whose TSC the kernel has left: the OS clock must serve, and the result must say so.

use super::{TestBed, passes};

pub(super) const BED: TestBed = TestBed {
    name: "clock",
    purpose: "measuring without a trustworthy TSC",
    kernel_arguments: "tsc=unstable",
    steps: &[
        passes(
            "no-tsc",
            "! grep -x tsc /sys/devices/system/clocksource/clocksource0/current_clocksource",
        ),
        passes("os-clock", "hourglass -n 1 -d 1s --json | grep '\"source\": \"monotonic\"'"),
        passes("says-so", "hourglass -n 1 -d 1s --json | grep '\"id\": \"os-clock\"'"),
        passes("periodic", "hourglass -n 2 -d 1s -w PERIODIC 2ms 20ms | grep 'thread 1: missed'"),
    ],
    ..TestBed::PLAIN
};
