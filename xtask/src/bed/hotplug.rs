//! A processor that leaves and comes back: before a run, and in the midst of one.

use super::debian::CLOUD_KERNEL;
use super::expectation::Expectation::{ExitCode, Says};
use super::{Kernel, Step, TestBed};

pub(super) const BED: TestBed = TestBed {
    name: "hotplug",
    purpose: "a CPU that goes offline and comes back, before a run and during one",
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-smp", "3"],
    kernel_arguments: "",
    tests: &[],
    steps: &[
        Step {
            name: "away",
            command: "echo 0 >/sys/devices/system/cpu/cpu1/online; hourglass noise -c 1 -D 1s",
            expect: &[ExitCode(2)],
        },
        Step {
            name: "back",
            command: "echo 1 >/sys/devices/system/cpu/cpu1/online; \
                      hourglass noise -c 1 -D 1s --json",
            expect: &[ExitCode(0), Says("\"cpus\": \"1\"")],
        },
        Step {
            name: "trace",
            command: "mount -t tracefs none /sys/kernel/tracing; \
                      hourglass latency -a 1 -i 5ms -D 2s --trace",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "during",
            command: "hourglass -n 1 -d 3s --cpu 1 --json & sleep 2; \
                      echo 0 >/sys/devices/system/cpu/cpu1/online; wait $!; code=$?; \
                      echo 1 >/sys/devices/system/cpu/cpu1/online; exit $code",
            expect: &[
                ExitCode(4),
                Says("\"id\": \"pinning-lost\""),
                Says("\"id\": \"left-its-cpus\""),
            ],
        },
        Step {
            name: "clocks",
            command: "hourglass clocks --json >/tmp/clocks & echo 0 >/sys/devices/system/cpu/cpu2/online; \
                      wait $!; code=$?; echo 1 >/sys/devices/system/cpu/cpu2/online; exit $code",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "reserve",
            command: "hourglass reserve 5ms/50ms --cpu 1 --backend user -- sleep 3 & sleep 2; \
                      echo 0 >/sys/devices/system/cpu/cpu1/online; wait $!; code=$?; \
                      echo 1 >/sys/devices/system/cpu/cpu1/online; exit $code",
            expect: &[ExitCode(0)],
        },
    ],
};
