//! Two cores of two hardware threads each, for topology and stoppers (Inoue et al., section 3), on a
//! kernel with both versions of control groups. No kernel of Debian has core scheduling, as of 6.1,
//! 6.12 and 7.3: that cookies are refused with the reason is all that can be seen of them here. On one
//! that has it, the step's command tests them.
//!
//! The emulated processors take turns of 100 ms, so that nothing here says how fast anything stops;
//! and a victim counts as stopped only after all of them have had their turn.

use super::expectation::Expectation::{ExitCode, Says};
use super::{TestBed, passes, step};

pub(super) const BED: TestBed = TestBed {
    name: "smt",
    purpose: "hardware threads: who shares a core, and stopping who does",
    machine: &["-smp", "4,sockets=1,cores=2,threads=2"],
    tests: &["stoppers"],
    steps: &[
        passes(
            "groups",
            "mkdir -p /tmp/freezer && mount -t cgroup2 none /sys/fs/cgroup \
                      && mount -t cgroup -o freezer none /tmp/freezer",
        ),
        step(
            "topology",
            "HOURGLASS_TEST_SIBLINGS_REQUIRED=1 stoppers --nocapture --test-threads 1 \
                      siblings::siblings_share",
            &[ExitCode(0), Says("siblings of CPU 0: 0-1 by"), Says("1 passed; 0 failed")],
        ),
        step(
            "stoppers",
            "HOURGLASS_TEST_STOPPERS_REQUIRED=cgroup2_freeze,sigstop,cgroup1_freezer \
                      HOURGLASS_TEST_SILENCE_MS=600 stoppers --nocapture --test-threads 1 \
                      --skip siblings:: --skip measurements --skip killed",
            &[ExitCode(0), Says("7 passed; 0 failed")],
        ),
        step(
            "killed",
            "HOURGLASS_TEST_STOPPERS_REQUIRED=cgroup2_freeze,sigstop,cgroup1_freezer \
                      stoppers --nocapture --test-threads 1 who_is_stopped_by_a_killed",
            &[ExitCode(0), Says("1 passed; 0 failed")],
        ),
        step(
            "cookies",
            "HOURGLASS_TEST_SIBLINGS_REQUIRED=1 HOURGLASS_TEST_SILENCE_MS=600 \
                      stoppers --nocapture --test-threads 1 siblings::a_cookie",
            &[
                ExitCode(0),
                Says("2 passed; 0 failed"),
                Says("this kernel has no core scheduling (EINVAL from PR_SCHED_CORE)"),
            ],
        ),
        step(
            "offline",
            "echo 0 >/sys/devices/system/cpu/cpu1/online; \
                      HOURGLASS_TEST_ALONE=0 stoppers --nocapture siblings::a_cpu_whose",
            &[ExitCode(0), Says("1 passed; 0 failed")],
        ),
    ],
    ..TestBed::PLAIN
};
