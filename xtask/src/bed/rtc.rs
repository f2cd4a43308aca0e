//! The PC's real-time clock as a timer (`-i RTC`, Hourglass paper, sections 3.3 and 5.3), which
//! cloud machines lack.

use super::expectation::Expectation::{ExitCode, Says, Values};
use super::{TestBed, passes, step};

/// Three seconds of 5.3 ms are 566 wake-ups; half of them leave room for a slow host.
const LATENCIES: usize = 300;

pub(super) const BED: TestBed = TestBed {
    name: "rtc",
    purpose: "timers on the PC's real-time clock",
    // Its driver for the real-time clock is built in: no module is needed.
    tests: &["ordinary"],
    steps: &[
        passes("device", "ls -l /dev/rtc0"),
        step(
            "clock-device",
            "hourglass clocks --devices --resolution 1ms --skew 24us",
            &[ExitCode(0), Says("rtc 122.1 500000 976.6 23.4")],
        ),
        // As a device, as a clock device, below a timer service.
        step(
            "device-tests",
            "HOURGLASS_TEST_RTC_REQUIRED=1 ordinary rtc_device:: --test-threads 1",
            &[ExitCode(0), Says("test result: ok. 4 passed")],
        ),
        step(
            "latency",
            "hourglass -d 3s -n 1 -t 0 -p RTHIGH -w LAT 5.3ms -i RTC",
            &[ExitCode(0), Values { tag: "latlate:", at_least: LATENCIES, none_below: 0.0 }],
        ),
        passes("periodic", "hourglass -d 2s -n 1 -t 0 -p RTHIGH -w PERIODIC 4ms 8ms -i RTC"),
        step(
            "no-device",
            "rm /dev/rtc*; hourglass run -n 1 -d 1s -w LAT 5ms -i RTC",
            &[ExitCode(3)],
        ),
        passes("no-device-best-effort", "hourglass run --best-effort -n 1 -d 1s -w LAT 5ms -i RTC"),
    ],
    ..TestBed::PLAIN
};
