//! Other kernels than the newest stable one: PREEMPT_RT, the oldest that Debian keeps up, and Ubuntu's.

use super::debian::Package;
use super::expectation::Expectation::{ExitCode, Says, Shows, Values};
use super::{Kernel, Step, TestBed, passes, step};

const NAME_OF_KERNEL: Step = step("kernel", "uname -srv", &[ExitCode(0), Shows("Linux ")]);

pub(super) const CLOCKS: Step =
    step("clocks", "hourglass clocks", &[ExitCode(0), Shows("by policy strict:")]);

/// Of two hundred wake-ups; 63 were seen on a host with five runnable threads for each processor.
pub(super) const LATENCY: Step = step(
    "latency",
    "hourglass -d 1s -n 1 -t 0 -p RTHIGH -w LAT 5ms -i SLEEPER",
    &[ExitCode(0), Values { tag: "latlate:", at_least: 10, none_below: 0.0 }],
);

const RUN: Step =
    step("run", "hourglass -n 2 -d 1s -w PERIODIC 2ms 20ms", &[ExitCode(0), Says("thread 1:")]);

const SWITCHES: Step = step(
    "switches",
    "mount -t tracefs none /sys/kernel/tracing; switches --nocapture --test-threads 1",
    &[ExitCode(0), Shows("critical section: Ok("), Says("2 passed; 0 failed")],
);

pub(super) const RESERVE: Step =
    passes("reserve", "hourglass reserve 5ms/50ms --backend user -- true");

/// A kernel whose spin locks sleep and whose interrupts are threads.
pub(super) const PREEMPT_RT: TestBed = TestBed {
    name: "preempt-rt",
    purpose: "PREEMPT_RT: clocks, latency, a run, a reservation",
    kernel: Kernel::Debian(Package {
        name: "linux-image-rt-amd64",
        suite: Some("trixie-backports"),
    }),
    tests: &["switches"],
    steps: &[
        step("kernel", "uname -srv", &[ExitCode(0), Shows("PREEMPT_RT")]),
        CLOCKS,
        LATENCY,
        RUN,
        RESERVE,
        SWITCHES,
    ],
    ..TestBed::PLAIN
};

pub(super) const LINUX_5_10: TestBed = TestBed {
    name: "linux5.10",
    purpose: "Linux 5.10: clocks, latency, a run, a reservation",
    kernel: Kernel::Debian(Package { name: "linux-image-cloud-amd64", suite: Some("bullseye") }),
    tests: &["switches"],
    steps: &[NAME_OF_KERNEL, CLOCKS, LATENCY, RUN, RESERVE, SWITCHES],
    ..TestBed::PLAIN
};

pub(super) const DEBIAN_13: TestBed = TestBed {
    name: "debian13",
    purpose: "Debian 13's kernel: clocks, latency, a run, a reservation",
    kernel: Kernel::Debian(Package { name: "linux-image-cloud-amd64", suite: Some("trixie") }),
    ..LINUX_5_10
};

pub(super) const UBUNTU: TestBed = TestBed {
    name: "ubuntu26.04",
    purpose: "Ubuntu 26.04's kernel: clocks, latency, a run, a reservation",
    kernel: Kernel::Debian(Package { name: "linux-image-virtual", suite: Some("resolute") }),
    ..LINUX_5_10
};

/// More CPUs than a word of a mask has bits, and two nodes of memory.
pub(super) const MANY_CPUS: TestBed = TestBed {
    name: "many-cpus",
    purpose: "64 CPUs on two NUMA nodes: choosing the clock, placing threads",
    #[rustfmt::skip]
    machine: &[
        "-smp", "64,sockets=2,cores=32,threads=1", "-m", "1024",
        "-object", "memory-backend-ram,id=m0,size=512M", "-numa", "node,nodeid=0,cpus=0-31,memdev=m0",
        "-object", "memory-backend-ram,id=m1,size=512M", "-numa", "node,nodeid=1,cpus=32-63,memdev=m1",
    ],
    steps: &[
        step(
            "machine",
            "cat /sys/devices/system/cpu/online; cat /sys/devices/system/node/node1/cpulist",
            &[ExitCode(0), Says("0-63"), Says("32-63")],
        ),
        CLOCKS,
        step(
            "last-cpu",
            "hourglass -n 1 -d 500ms --cpu 63 --json",
            &[ExitCode(0), Says("\"cpus\": \"63\"")],
        ),
        step(
            "last-two-cpus",
            "hourglass noise -c 62-63 -D 500ms --json",
            &[ExitCode(0), Says("\"cpus\": \"62\""), Says("\"cpus\": \"63\"")],
        ),
    ],
    ..TestBed::PLAIN
};
