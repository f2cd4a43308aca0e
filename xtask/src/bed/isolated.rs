//! A CPU that the kernel keeps for programs that name it: `isolcpus`, without a tick (`nohz_full`) and without
//! the kernel's callbacks (`rcu_nocbs`). Processes start with a mask that leaves it out, so a command that took its
//! own mask for what is allowed would refuse the very CPU that it is for.

use super::expectation::Expectation::{ExitCode, Says};
use super::{TestBed, passes, step};

pub(super) const BED: TestBed = TestBed {
    name: "isolated",
    purpose: "a CPU outside the inherited mask: isolcpus, nohz_full, rcu_nocbs",
    machine: &["-smp", "3"],
    kernel_arguments: "isolcpus=2 nohz_full=2 rcu_nocbs=2",
    steps: &[
        step(
            "isolated",
            "grep -x 2 /sys/devices/system/cpu/isolated && taskset -p $$",
            &[ExitCode(0), Says("affinity mask: 3")],
        ),
        step("noise", "hourglass noise -c 2 -D 1s --json", &[ExitCode(0), Says("\"cpus\": \"2\"")]),
        step(
            "noise-from-one-cpu",
            "taskset 1 hourglass noise -c 2 -D 1s --json",
            &[ExitCode(0), Says("\"cpus\": \"2\"")],
        ),
        step(
            "latency",
            "hourglass latency -a 2 -i 2ms -D 1s --json",
            &[ExitCode(0), Says("\"cpus\": \"2\"")],
        ),
        passes("run", "taskset 1 hourglass -n 1 -d 500ms --cpu 2 --json"),
        step(
            "reserve",
            "hourglass reserve 5ms/50ms --cpu 2 --backend user -- sh -c 'taskset -p $$'",
            &[ExitCode(0), Says("affinity mask: 4")],
        ),
        step("no-such-cpu", "hourglass noise -c 3 -D 1s", &[ExitCode(2)]),
    ],
    ..TestBed::PLAIN
};
