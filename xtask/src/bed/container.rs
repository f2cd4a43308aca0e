//! What a container gives a program: a user namespace whose root has no rights outside, 64 KiB of locked memory, no
//! real-time priority, and a share of a CPU (`cpu.max`) that ends in the midst of a period.

use super::expectation::Expectation::{ExitCode, Says};
use super::{TestBed, passes, step};

pub(super) const BED: TestBed = TestBed {
    name: "container",
    purpose: "an unprivileged container: user namespace, 64 KiB locked, no real time, cpu.max",
    steps: &[
        step(
            "container",
            "mkdir -p /etc; echo 'user:x:1000:1000::/tmp:/bin/sh' >/etc/passwd; \
                      echo user:x:1000: >/etc/group; mount -t cgroup2 none /sys/fs/cgroup; chmod 1777 /tmp; \
                      echo +cpu >/sys/fs/cgroup/cgroup.subtree_control; mkdir /sys/fs/cgroup/box; \
                      echo '20000 100000' >/sys/fs/cgroup/box/cpu.max; \
                      printf '#!/bin/sh\\necho $$ >/sys/fs/cgroup/box/cgroup.procs; ulimit -l 64; ulimit -r 0; \
                      exec su user -c \"unshare -Ur $*\"\\n' >/bin/box; chmod a+x /bin/box; \
                      echo 'id -u; ulimit -l; cat /proc/self/uid_map /proc/self/cgroup' >/tmp/who; box sh /tmp/who",
            &[ExitCode(0), Says("64"), Says("0 1000 1"), Says("/box")],
        ),
        step(
            "doctor",
            "box hourglass doctor",
            &[
                ExitCode(1),
                Says("SCHED_FIFO is refused: CAP_SYS_NICE counts only"),
                Says("/sys/fs/cgroup/box/cpu.max grants 20 % of a"),
                Says("at most 65536 bytes (RLIMIT_MEMLOCK)"),
            ],
        ),
        step("clocks", "box hourglass clocks", &[ExitCode(0), Says("by policy strict:")]),
        step(
            "real-time",
            "box hourglass -n 1 -d 1s -p RTHIGH -w LAT 5ms",
            &[
                ExitCode(3),
                Says("policy FIFO:80: CAP_SYS_NICE counts only inside this user namespace"),
                Says("run it outside of the user namespace"),
            ],
        ),
        step(
            "best-effort",
            "box hourglass run --best-effort -n 1 -d 1s -p RTHIGH -w LAT 5ms",
            &[
                ExitCode(0),
                Says("policy FIFO:80 was refused, and the run went on without"),
                Says("not locked into memory"),
            ],
        ),
        // A fifth of a CPU: the group is stopped for 80 ms in each 100 ms.
        step("quota", "box hourglass -n 1 -d 2s --json", &[ExitCode(0), Says("cgroup_quota")]),
        step(
            "reserve",
            "box hourglass reserve 5ms/50ms -- touch /tmp/ran; code=$?; ls /tmp/ran; exit $code",
            &[
                ExitCode(125),
                Says("deadline: CAP_SYS_NICE counts only inside this user namespace"),
                Says("user: CAP_SYS_NICE is missing, or counts only inside a user namespace"),
                Says("/tmp/ran: No such file"),
            ],
        ),
        step(
            "trace",
            "box hourglass -n 1 -d 1s --trace -o /tmp/kept; code=$?; ls /tmp/kept; exit $code",
            &[
                ExitCode(3),
                Says("--trace: tracefs is not mounted"),
                Says("/tmp/kept: No such file"),
            ],
        ),
        step(
            "latency",
            "box hourglass latency -i 5ms -D 1s",
            &[ExitCode(0), Says("RLIMIT_MEMLOCK is 65536 bytes")],
        ),
        passes("noise", "box hourglass noise -D 1s"),
    ],
    ..TestBed::PLAIN
};
