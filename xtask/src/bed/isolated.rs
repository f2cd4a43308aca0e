//! A CPU that the kernel keeps for programs that name it: `isolcpus`, without a tick (`nohz_full`) and without
//! the kernel's callbacks (`rcu_nocbs`). Processes start with a mask that leaves it out, so a command that took its
//! own mask for what is allowed would refuse the very CPU that it is for.

use super::debian::CLOUD_KERNEL;
use super::expectation::Expectation::{ExitCode, Says};
use super::{Kernel, Step, TestBed};

pub(super) const BED: TestBed = TestBed {
    name: "isolated",
    purpose: "a CPU outside the inherited mask: isolcpus, nohz_full, rcu_nocbs",
    kernel: Kernel::Debian(CLOUD_KERNEL),
    libc: None,
    machine: &["-smp", "3"],
    kernel_arguments: "isolcpus=2 nohz_full=2 rcu_nocbs=2",
    tests: &[],
    steps: &[
        Step {
            name: "isolated",
            command: "grep -x 2 /sys/devices/system/cpu/isolated && taskset -p $$",
            expect: &[ExitCode(0), Says("affinity mask: 3")],
        },
        Step {
            name: "noise",
            command: "hourglass noise -c 2 -D 1s --json",
            expect: &[ExitCode(0), Says("\"cpus\": \"2\"")],
        },
        Step {
            name: "noise-from-one-cpu",
            command: "taskset 1 hourglass noise -c 2 -D 1s --json",
            expect: &[ExitCode(0), Says("\"cpus\": \"2\"")],
        },
        Step {
            name: "latency",
            command: "hourglass latency -a 2 -i 2ms -D 1s --json",
            expect: &[ExitCode(0), Says("\"cpus\": \"2\"")],
        },
        Step {
            name: "run",
            command: "taskset 1 hourglass -n 1 -d 500ms --cpu 2 --json",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "reserve",
            command: "hourglass reserve 5ms/50ms --cpu 2 --backend user -- sh -c 'taskset -p $$'",
            expect: &[ExitCode(0), Says("affinity mask: 4")],
        },
        Step { name: "no-such-cpu", command: "hourglass noise -c 3 -D 1s", expect: &[ExitCode(2)] },
    ],
};
