//! A processor that leaves and comes back: before a run, and in the midst of one.

use super::expectation::Expectation::{ExitCode, Says};
use super::{TestBed, passes, step};

pub(super) const BED: TestBed = TestBed {
    name: "hotplug",
    purpose: "a CPU that goes offline and comes back, before a run and during one",
    machine: &["-smp", "3"],
    steps: &[
        step(
            "away",
            "echo 0 >/sys/devices/system/cpu/cpu1/online; hourglass noise -c 1 -D 1s",
            &[ExitCode(2)],
        ),
        step(
            "back",
            "echo 1 >/sys/devices/system/cpu/cpu1/online; \
                      hourglass noise -c 1 -D 1s --json",
            &[ExitCode(0), Says("\"cpus\": \"1\"")],
        ),
        passes(
            "trace",
            "mount -t tracefs none /sys/kernel/tracing; \
                      hourglass latency -a 1 -i 5ms -D 2s --trace",
        ),
        step(
            "during",
            "hourglass -n 1 -d 5s --cpu 1 --json & \
                      until grep -qs '^Cpus_allowed_list:.1$' /proc/$!/task/*/status; do sleep 0.1; done; sleep 1; \
                      echo 0 >/sys/devices/system/cpu/cpu1/online; wait $!; code=$?; \
                      echo 1 >/sys/devices/system/cpu/cpu1/online; exit $code",
            &[
                ExitCode(4),
                Says("\"id\": \"cpu-gone\""),
                Says("\"id\": \"pinning-lost\""),
                Says("\"id\": \"left-its-cpus\""),
            ],
        ),
        passes(
            "clocks",
            "hourglass clocks --json >/tmp/clocks & echo 0 >/sys/devices/system/cpu/cpu2/online; \
                      wait $!; code=$?; echo 1 >/sys/devices/system/cpu/cpu2/online; exit $code",
        ),
        passes(
            "reserve",
            "hourglass reserve 5ms/50ms --cpu 1 --backend user -- sh -c 'echo >begun; exec sleep 3' & \
                      until [ -e begun ]; do sleep 0.1; done; sleep 1; \
                      echo 0 >/sys/devices/system/cpu/cpu1/online; wait $!; code=$?; \
                      echo 1 >/sys/devices/system/cpu/cpu1/online; exit $code",
        ),
    ],
    ..TestBed::PLAIN
};
