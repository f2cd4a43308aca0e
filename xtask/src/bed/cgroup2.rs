//! Control groups of version 2, with the controllers of a host: a quota seen from inside, from outside and as it changes,
//! reservations that make groups of their own, and a `cpuset`.

use super::expectation::Expectation::{ExitCode, Says};
use super::{TestBed, passes, step};

macro_rules! in_group {
    ($group:literal, $command:literal) => {
        concat!("sh -c 'echo $$ >/sys/fs/cgroup/", $group, "/cgroup.procs && ", $command, "'")
    };
}

/// A process of the group with the quota that never sleeps, watched while the rest happens.
macro_rules! watched {
    ($meanwhile:literal) => {
        concat!(
            in_group!("a", "exec sh -c \"while :; do :; done\""),
            " & p=$!; (",
            $meanwhile,
            ") & hourglass watch $p -d 12s --json; code=$?; kill $p; exit $code"
        )
    };
}

pub(super) const BED: TestBed = TestBed {
    name: "cgroup2",
    purpose: "control groups of version 2: quotas, watching, reservations, cpuset",
    steps: &[
        passes(
            "groups",
            "mount -t cgroup2 none /sys/fs/cgroup && echo '+cpu +cpuset' >/sys/fs/cgroup/cgroup.subtree_control && \
                      mkdir /sys/fs/cgroup/a /sys/fs/cgroup/b && echo '20000 100000' >/sys/fs/cgroup/a/cpu.max && \
                      echo 1 >/sys/fs/cgroup/b/cpuset.cpus",
        ),
        step(
            "quota",
            in_group!("a", "hourglass -n 1 -d 2s --json"),
            &[ExitCode(0), Says("cgroup_quota")],
        ),
        step(
            "doctor",
            in_group!("a", "hourglass doctor"),
            &[ExitCode(1), Says("/sys/fs/cgroup/a/cpu.max grants 20 % of a")],
        ),
        step("watch", watched!("true"), &[ExitCode(0), Says("\"quota_throttled\": ")]),
        step(
            "quota-changes",
            watched!(
                "until pidof hourglass; do sleep 0.2; done; sleep 5; echo max >/sys/fs/cgroup/a/cpu.max"
            ),
            &[ExitCode(4), Says("\"id\": \"quota-changed\"")],
        ),
        // A limit, and a guarantee: no group stays of either.
        passes("reserve-quota", "hourglass reserve 20ms/100ms --backend quota -- sleep 1"),
        passes("reserve-user", "hourglass reserve 5ms/50ms --backend user -- sleep 1"),
        passes("left", "test $(ls -d /sys/fs/cgroup/*/ | wc -l) = 2"),
        step(
            "noise",
            in_group!("b", "hourglass noise -D 1s --json"),
            &[ExitCode(0), Says("\"cpus\": \"1\"")],
        ),
        step(
            "outside",
            in_group!("b", "hourglass noise -c 0 -D 1s"),
            &[ExitCode(2), Says("not in the cpuset of this process; use some of 1")],
        ),
    ],
    ..TestBed::PLAIN
};
