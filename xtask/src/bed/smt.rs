//! Two cores of two hardware threads each, for topology and stoppers (Inoue et al., section 3), on a
//! kernel with both versions of control groups. No kernel of Debian has core scheduling, as of 6.1,
//! 6.12 and 7.3: that cookies are refused with the reason is all that can be seen of them here. On one
//! that has it, the step's command tests them.
//!
//! The emulated processors take turns of 100 ms, so that nothing here says how fast anything stops;
//! and a victim counts as stopped only after all of them have had their turn.

use super::debian::CLOUD_KERNEL;
use super::expectation::Expectation::{ExitCode, Says};
use super::{Kernel, Step, TestBed};

pub(super) const BED: TestBed = TestBed {
    name: "smt",
    purpose: "hardware threads: who shares a core, and stopping who does",
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-smp", "4,sockets=1,cores=2,threads=2"],
    kernel_arguments: "",
    tests: &["stoppers"],
    steps: &[
        Step {
            name: "groups",
            command: "mkdir -p /tmp/freezer && mount -t cgroup2 none /sys/fs/cgroup \
                      && mount -t cgroup -o freezer none /tmp/freezer",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "topology",
            command: "HOURGLASS_TEST_SIBLINGS_REQUIRED=1 stoppers --nocapture --test-threads 1 \
                      siblings::siblings_share",
            expect: &[ExitCode(0), Says("siblings of CPU 0: 0-1 by"), Says("1 passed; 0 failed")],
        },
        Step {
            name: "stoppers",
            command: "HOURGLASS_TEST_STOPPERS_REQUIRED=cgroup2_freeze,sigstop,cgroup1_freezer \
                      HOURGLASS_TEST_SILENCE_MS=600 stoppers --nocapture --test-threads 1 \
                      --skip siblings:: --skip measurements --skip killed",
            expect: &[ExitCode(0), Says("7 passed; 0 failed")],
        },
        Step {
            name: "killed",
            command: "HOURGLASS_TEST_STOPPERS_REQUIRED=cgroup2_freeze,sigstop,cgroup1_freezer \
                      stoppers --nocapture --test-threads 1 who_is_stopped_by_a_killed",
            expect: &[ExitCode(0), Says("1 passed; 0 failed")],
        },
        Step {
            name: "cookies",
            command: "HOURGLASS_TEST_SIBLINGS_REQUIRED=1 HOURGLASS_TEST_SILENCE_MS=600 \
                      stoppers --nocapture --test-threads 1 siblings::a_cookie",
            expect: &[
                ExitCode(0),
                Says("2 passed; 0 failed"),
                Says("this kernel has no core scheduling (EINVAL from PR_SCHED_CORE)"),
            ],
        },
        Step {
            name: "offline",
            command: "echo 0 >/sys/devices/system/cpu/cpu1/online; \
                      HOURGLASS_TEST_ALONE=0 stoppers --nocapture siblings::a_cpu_whose",
            expect: &[ExitCode(0), Says("1 passed; 0 failed")],
        },
    ],
};
