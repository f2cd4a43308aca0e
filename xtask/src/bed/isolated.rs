//! A CPU that the kernel keeps for whoever asks for it by name: `isolcpus`, without a tick (`nohz_full`) and without
//! the kernel's callbacks (`rcu_nocbs`). Processes start with a mask that leaves it out, so a command that took its
//! own mask for what is allowed would refuse the very CPU that it is for.

use super::expect::Expect::{ExitCode, Says};
use super::{Bed, Step};

pub(super) const BED: Bed = Bed {
    name: "isolated",
    purpose: "a CPU outside the inherited mask: isolcpus, nohz_full, rcu_nocbs",
    kernel: "linux-image-cloud-amd64",
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
            command: "hourglass noise -c 2 -d 500ms --json",
            expect: &[ExitCode(0), Says("\"cpu\": 2")],
        },
        Step {
            name: "noise-from-one-cpu",
            command: "taskset 1 hourglass noise -c 2 -d 500ms --json",
            expect: &[ExitCode(0), Says("\"cpu\": 2")],
        },
        Step {
            name: "latency",
            command: "hourglass latency -a 2 -i 2ms -D 1s --json",
            expect: &[ExitCode(0), Says("\"cpu\": 2")],
        },
        Step {
            name: "run",
            command: "hourglass -n 1 -d 500ms -c 2 --json",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "reserve",
            command: "hourglass reserve 5ms/50ms --cpu 2 --backend user -- taskset -p 0",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "doctor",
            command: "hourglass doctor; true",
            expect: &[ExitCode(0)],
        },
        Step {
            name: "no-such-cpu",
            command: "hourglass noise -c 3 -d 500ms",
            expect: &[ExitCode(2)],
        },
    ],
};
