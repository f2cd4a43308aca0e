//! A kernel of the new rules for restartable sequences (6.19 and later; Debian's backports have 7.x): a switch inside a
//! system call keeps a critical section. Both versions of the ABI: without the C library's area Hourglass
//! registers one of 32 bytes, as a static program does; the C library of Debian 13 registers a longer one.
//!
//! Time-slice extensions are an option of the kernel that Debian leaves out as of 7.3: there is nothing to ask for then, and
//! sleeps must be right without.

use super::debian::Package;
use super::expectation::Expectation::{ExitCode, Says, Shows, Values};
use super::kernels::{CLOCKS, LATENCY, RESERVE};
use super::{Kernel, TestBed, passes, step};

/// In the second root, where the C library is Debian 13's.
macro_rules! in_libc {
    ($command:literal) => {
        concat!("chroot /libc /bin/sh -c '", $command, "'")
    };
}

const KERNEL: Kernel =
    Kernel::Debian(Package { name: "linux-image-cloud-amd64", suite: Some("trixie-backports") });

/// The command as a static binary: musl registers no area.
pub(super) const STATIC: TestBed = TestBed {
    name: "linux7-static",
    purpose: "Linux 7 and the command as a static binary: runs, latency, a reservation",
    kernel: KERNEL,
    steps: &[
        step(
            "run",
            "hourglass -n 2 -d 1s --json",
            &[
                ExitCode(0),
                // The guest's clock is the kernel's, so that the loop makes system calls: known by a test of the area.
                Says("keeps a critical section when it switches a thread inside a system call"),
            ],
        ),
        LATENCY,
        passes("noise", "hourglass noise -D 1s"),
        RESERVE,
        CLOCKS,
    ],
    ..TestBed::PLAIN
};

pub(super) const BED: TestBed = TestBed {
    name: "linux7",
    purpose: "Linux 7: both versions of rseq's ABI, time-slice extensions, the command",
    kernel: KERNEL,
    libc: Some(Package { name: "libc6", suite: Some("trixie") }),
    tests: &["ordinary", "switches", "witnessed"],
    steps: &[
        step(
            "root",
            "mount -t tracefs none /sys/kernel/tracing; for f in bin dev proc sys tmp; do \
                      mkdir -p /libc/$f && mount --rbind /$f /libc/$f || exit 1; done; \
                      uname -sr",
            &[ExitCode(0), Shows("Linux ")],
        ),
        step(
            "switches-own-area",
            "GLIBC_TUNABLES=glibc.pthread.rseq=0 switches --nocapture --test-threads 1",
            &[
                ExitCode(0),
                Shows("area: one of our own; critical section: Ok("),
                Says("2 passed; 0 failed"),
            ],
        ),
        step(
            "switches-libc",
            in_libc!("switches --nocapture --test-threads 1"),
            &[
                ExitCode(0),
                Shows("bytes, version 2; critical section: Ok("),
                Says("2 passed; 0 failed"),
            ],
        ),
        step(
            "time-slice",
            in_libc!("ordinary time_slice:: --nocapture"),
            &[ExitCode(0), Shows("time-slice extension:"), Says("1 passed; 0 failed")],
        ),
        step(
            "spans",
            in_libc!("witnessed spans:: --test-threads 1"),
            &[ExitCode(0), Says("0 failed")],
        ),
        step(
            "spans-own-area",
            "GLIBC_TUNABLES=glibc.pthread.rseq=0 witnessed spans:: --test-threads 1",
            &[ExitCode(0), Says("0 failed")],
        ),
        step(
            "latency",
            in_libc!("hourglass -d 1s -n 1 -t 0 -p RTHIGH -w LAT 5ms -i SLEEPER"),
            &[ExitCode(0), Values { tag: "latlate:", at_least: 10, none_below: 0.0 }],
        ),
        passes("run", in_libc!("hourglass -n 2 -d 1s -w PERIODIC 2ms 20ms")),
        step("clocks", in_libc!("hourglass clocks"), &[ExitCode(0), Shows("by policy strict:")]),
        passes("noise", in_libc!("hourglass noise -D 1s")),
        step("doctor", in_libc!("hourglass doctor"), &[Shows(" checks: ")]),
    ],
    ..TestBed::PLAIN
};
