//! The High Precision Event Timer (thesis, section 2.2), which virtual machines lack, on a machine
//! whose TSC is not trustworthy: the case for which the thesis compares HPET and OS clock.
//!
//! QEMU's HPET has 64 bits, 100 MHz and three comparators; one with 32 bits is only made up, in the
//! tests of `hourglass-clock`. QEMU's plain `max` is an AMD of family 0Fh, model 6Bh: an Athlon 64
//! X2, as in the thesis' tables 2.3 and 3.2. With two of them the kernel finds the TSCs unsynchronised.

use super::debian::CLOUD_KERNEL;
use super::expectation::Expectation::{ExitCode, Says, Values};
use super::{Kernel, Step, TestBed};

/// An HPET that may be mapped, and what can be in the way of that while the machine runs.
pub(super) const BED: TestBed = TestBed {
    name: "hpet",
    purpose: "a machine with an HPET, and without a trustworthy TSC",
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-cpu", "max", "-smp", "2"],
    kernel_arguments: "",
    tests: &["hpet_device"],
    steps: &[
        Step {
            name: "strict",
            command: "hourglass clocks --evidence",
            expect: &[
                ExitCode(0),
                Says("monotonic by policy strict:"),
                Says("bad kernel_clocksource hpet"),
                Says("bad invariant_tsc no"),
                Says("good width 64 bits"),
                Says("neutral stated_frequency 100.000000 MHz, by its register"),
            ],
        },
        Step {
            name: "thesis",
            command: "hourglass clocks --policy thesis --evidence",
            expect: &[
                ExitCode(0),
                // A system call to the kernel's HPET costs more than the HPET.
                Says("hpet by policy thesis: the means are"),
                Says("so the smaller mean decides"),
                Says("tsc: neither invariant nor on the thesis' list"),
                Says("neutral family_list family 0x0f, model 0x6b, not listed"),
                Says("neutral thesis_cost mean"),
            ],
        },
        Step {
            name: "permissive",
            command: "hourglass clocks --policy permissive --json",
            expect: &[ExitCode(0), Says("\"selected\": \"monotonic\"")],
        },
        Step {
            name: "read-cost",
            command: "hourglass clocks --policy forced:hpet --json \
                      | awk '/\"name\":/ { hpet = /hpet/ } hpet && /read_p50_ns/ { print }'",
            // Nothing that leaves the processor is read in less.
            expect: &[
                ExitCode(0),
                Values { tag: "      \"read_p50_ns\":", at_least: 1, none_below: 20.0 },
            ],
        },
        Step {
            name: "library",
            command: "HOURGLASS_TEST_HPET_REQUIRED=1 hpet_device --nocapture --test-threads 1",
            expect: &[ExitCode(0), Says("2 passed; 0 failed")],
        },
        Step {
            name: "in-use",
            command: "sleep 100 </dev/hpet & hourglass clocks --policy forced:hpet; \
                      code=$?; kill $!; exit $code",
            expect: &[ExitCode(3), Says("/dev/hpet is in use"), Says("fuser -v /dev/hpet")],
        },
        Step {
            name: "not-permitted",
            command: "mkdir -p /etc; echo 'user:x:1000:1000::/:/bin/sh' >/etc/passwd; \
                      su user -c 'hourglass clocks --policy forced:hpet'",
            expect: &[ExitCode(3), Says("may not be read"), Says("chmod a+r /dev/hpet")],
        },
        Step {
            name: "absent",
            command: "rm /dev/hpet; hourglass clocks --policy forced:hpet",
            expect: &[ExitCode(3), Says("/dev/hpet does not exist"), Says("CONFIG_HPET")],
        },
        Step {
            name: "thesis-without",
            command: "hourglass clocks --policy thesis",
            expect: &[
                ExitCode(0),
                Says("monotonic by policy thesis:"),
                Says("the TSC is not stable, and there is no HPET"),
            ],
        },
    ],
};

/// A kernel that does not let programs map it.
pub(super) const REFUSED: TestBed = TestBed {
    name: "hpet-refused",
    purpose: "an HPET that the kernel does not let programs map",
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-cpu", "max", "-smp", "2"],
    kernel_arguments: "hpet_mmap=0",
    tests: &[],
    steps: &[
        Step {
            name: "forced",
            command: "hourglass clocks --policy forced:hpet",
            expect: &[
                ExitCode(3),
                Says("the kernel refuses to map the HPET"),
                Says("boot the kernel with hpet_mmap=1"),
            ],
        },
        Step {
            name: "thesis",
            command: "hourglass clocks --policy thesis",
            expect: &[ExitCode(0), Says("monotonic by policy thesis:")],
        },
    ],
};

/// No HPET at all: the kernel's driver makes the device, and has no timer behind it.
pub(super) const OFF: TestBed = TestBed {
    name: "hpet-off",
    purpose: "a machine without an HPET",
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-M", "q35,hpet=off", "-cpu", "max", "-smp", "2"],
    kernel_arguments: "",
    tests: &[],
    steps: &[
        Step {
            name: "forced",
            command: "hourglass clocks --policy forced:hpet",
            expect: &[ExitCode(3), Says("the machine has no HPET")],
        },
        Step {
            name: "strict",
            command: "hourglass clocks",
            expect: &[ExitCode(0), Says("monotonic by policy strict:")],
        },
    ],
};
