//! The PC's real-time clock as a timer (`-i RTC`, Hourglass paper, sections 3.3 and 5.3), which
//! cloud machines lack.

use super::debian::CLOUD_KERNEL;
use super::expectation::Expectation::{ExitCode, Says, Values};
use super::{Kernel, Step, TestBed};

/// Three seconds of 5.3 ms are 566 wake-ups; half of them leave room for a slow host.
const LATENCIES: usize = 300;

pub(super) const BED: TestBed = TestBed {
    name: "rtc",
    purpose: "timers on the PC's real-time clock",
    // Its driver for the real-time clock is built in: no module is needed.
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-smp", "2"],
    kernel_arguments: "",
    tests: &["ordinary"],
    steps: &[
        Step { name: "device", command: "ls -l /dev/rtc0", expect: &[ExitCode(0)] },
        Step {
            name: "clock-device",
            command: "hourglass clocks --devices --resolution 1ms --skew 24us",
            expect: &[ExitCode(0), Says("rtc 122.1 500000 976.6 23.4")],
        },
        // As a device, as a clock device, below a timer service.
        Step {
            name: "device-tests",
            command: "HOURGLASS_TEST_RTC_REQUIRED=1 ordinary rtc_device:: --test-threads 1",
            expect: &[ExitCode(0), Says("test result: ok. 4 passed")],
        },
        Step {
            name: "latency",
            command: "hourglass -d 3s -n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i RTC",
            expect: &[
                ExitCode(0),
                Values { tag: "latlate:", at_least: LATENCIES, none_below: 0.0 },
            ],
        },
        Step {
            name: "periodic",
            command: "hourglass -d 2s -n 1 -t 0 -p RTHIGH -w PERIODIC 4ms 8ms -i RTC",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "no-device",
            command: "rm /dev/rtc*; hourglass run -n 1 -d 1s -w LAT 5ms -i RTC",
            expect: &[ExitCode(3)],
        },
        Step {
            name: "no-device-best-effort",
            command: "hourglass run --best-effort -n 1 -d 1s -w LAT 5ms -i RTC",
            expect: &[ExitCode(0)],
        },
    ],
};
