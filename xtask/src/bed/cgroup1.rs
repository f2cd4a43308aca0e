//! Control groups of version 1, as older distributions have them: a quota of `cpu`, and a `cpuset`, which keeps the
//! deadline class out.

use super::expectation::Expectation::{ExitCode, Says};
use super::{TestBed, passes, step};

macro_rules! in_group {
    ($controller:literal, $command:literal) => {
        concat!("sh -c 'echo $$ >/tmp/", $controller, "/a/tasks && ", $command, "'")
    };
}

pub(super) const BED: TestBed = TestBed {
    name: "cgroup1",
    purpose: "control groups of version 1: cpu and cpuset",
    steps: &[
        passes(
            "groups",
            "mkdir -p /tmp/cpu /tmp/cpuset; mount -t cgroup -o cpu none /tmp/cpu && \
                      mount -t cgroup -o cpuset none /tmp/cpuset && mkdir /tmp/cpu/a /tmp/cpuset/a && \
                      echo 0 >/tmp/cpuset/a/cpuset.mems && echo 1 >/tmp/cpuset/a/cpuset.cpus && \
                      echo 20000 >/tmp/cpu/a/cpu.cfs_quota_us",
        ),
        step(
            "quota",
            in_group!("cpu", "hourglass -n 1 -d 2s --json"),
            &[ExitCode(0), Says("cgroup_quota")],
        ),
        step(
            "doctor",
            in_group!("cpu", "hourglass doctor"),
            &[ExitCode(1), Says("cpu.cfs_quota_us grants 20 % of a")],
        ),
        passes("real-time", in_group!("cpu", "hourglass -n 1 -d 1s -p RTHIGH -w LAT 5ms")),
        step(
            "deadline-class",
            in_group!("cpuset", "hourglass reserve 5ms/50ms --backend deadline -- true"),
            &[
                ExitCode(125),
                Says("the deadline class wants all of its root domain, CPUs 0-1"),
                Says("echo 1 > /tmp/cpuset/a/cpuset.cpu_exclusive"),
            ],
        ),
        step(
            "user-reserve",
            in_group!("cpuset", "hourglass reserve 5ms/50ms --backend user -- taskset -p $$"),
            &[ExitCode(0), Says("affinity mask: 2")],
        ),
        step(
            "noise",
            in_group!("cpuset", "hourglass noise -D 1s --json"),
            &[ExitCode(0), Says("\"cpus\": \"1\"")],
        ),
        step(
            "outside",
            in_group!("cpuset", "hourglass noise -c 0 -D 1s"),
            &[ExitCode(2), Says("not in the cpuset of this process; use some of 1")],
        ),
    ],
    ..TestBed::PLAIN
};
