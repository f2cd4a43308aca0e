//! The checks: each is a name, what real-time work wants and why, and a function of the evidence.

use super::input::DoctorInput;
use super::verdict::{CheckVerdict, unread};
use super::{
    build, clock, environment, interrupts, isolation, limits, memory, noise, power, scheduler,
};

/// One condition of a machine.
pub(super) struct Check {
    /// Its name, as in documents and behind `--check`; that of the warning of a run where one
    /// tells the same.
    pub(super) id: &'static str,
    /// What real-time work wants, and why.
    pub(super) wanted: &'static str,
    /// What it costs where that was measured or is documented: ns, and the words with the source.
    pub(super) effect: Option<(u64, &'static str)>,
    judge: fn(&DoctorInput) -> CheckVerdict,
    /// Whether it asks what happens on the CPUs of the work.
    of_cpus: bool,
}

impl Check {
    pub(super) fn evaluate(&self, e: &DoctorInput) -> CheckVerdict {
        if self.of_cpus && e.judged().0.is_empty() {
            return unread(e, "/sys/devices/system/cpu/online");
        }
        (self.judge)(e)
    }

    /// `ns` is the greatest of the source's figures.
    const fn costs(self, ns: u64, words: &'static str) -> Check {
        Check { effect: Some((ns, words)), ..self }
    }
}

const fn check(
    id: &'static str,
    judge: fn(&DoctorInput) -> CheckVerdict,
    wanted: &'static str,
) -> Check {
    Check { id, wanted, effect: None, judge, of_cpus: false }
}

const fn of_cpus(
    id: &'static str,
    judge: fn(&DoctorInput) -> CheckVerdict,
    wanted: &'static str,
) -> Check {
    Check { of_cpus: true, ..check(id, judge, wanted) }
}

/// All checks, in the order of documents.
#[rustfmt::skip]
pub(super) const CHECKS: [Check; 49] = [
    check("clock-source", clock::source, "the processor's counter: other clocks are slower, or not the machine's own")
        .costs(700, "140 to 700ns for each reading of the HPET, 25 of the counter; measured in KVM guests"),
    check("clock-choice", clock::choice, "a counter that all evidence speaks for: it is read in tens of nanoseconds, without the kernel"),
    check("tsc", clock::tsc, "a counter of constant rate in all power states (constant_tsc, nonstop_tsc)"),
    check("timer-resolution", clock::resolution, "timers to the nanosecond: else wake-ups wait for the next tick")
        .costs(10_000_000, "up to a tick, 10ms at 100 Hz; known from the definition of the tick"),
    check("rtprio", limits::real_time_priority, "real-time priorities above interrupt threads: ordinary threads wait for each other")
        .costs(204_000_000, "at worst 9 to 204ms late, time-sharing threads beside others; measured in a KVM guest of 2 CPUs"),
    check("deadline-class", limits::deadline_class, "leave to reserve a budget in every period, which the kernel then guarantees"),
    check("rt-group", scheduler::group_budget, "real-time time for the control group: without it no real-time thread may run"),
    check("memlock", limits::locked_memory, "leave to lock all memory: a page fault may wait for a disk"),
    check("nice", limits::nice, "nice values below 0 for the ordinary threads that real-time ones wait for"),
    check("autogroup", scheduler::autogroup, "no autogroups: with them nice values mean nothing between sessions"),
    check("rt-time-limit", limits::real_time_limit, "no limit on time without a wait: threads that spin are killed at it"),
    check("timer-slack", limits::timer_slack, "small timer slack: time-sharing threads wake up to that late; real-time threads have none"),
    check("cgroup-quota", environment::quota, "no quota (cpu.max): a group that has spent it is stopped until the next period"),
    check("cpuset", environment::cpuset, "the CPUs of the work within reach, and all others for the rest of it"),
    check("rt-throttling", scheduler::throttling, "no limit on real-time threads that compute: they are stopped in the middle of it"),
    of_cpus("fair-server", scheduler::fair_server, "no time kept for ordinary threads on CPUs of real-time threads that compute"),
    check("preemption", scheduler::preemption, "PREEMPT_RT: everything but short sections of the kernel gives way to real-time threads"),
    check("threaded-irqs", scheduler::threaded_interrupts, "interrupt handlers as threads, so that a priority can be above them"),
    of_cpus("isolation", isolation::isolation, "CPUs isolated from the scheduler: what does not run there does not disturb"),
    of_cpus("smt", isolation::smt, "a core for each thread of the work: a neighbour on it slows it down by half, unforeseeably"),
    of_cpus("irq-affinity", interrupts::affinity, "interrupts on other CPUs than the work: each costs it microseconds"),
    of_cpus("irqbalance", interrupts::balancer, "no irqbalance that moves interrupts to the CPUs of the work"),
    of_cpus("workqueues", isolation::workqueues, "the kernel's unbound workers on other CPUs than the work"),
    of_cpus("tick", noise::tick, "no tick on CPUs of work that computes (nohz_full): each one costs microseconds")
        .costs(64_000, "16 to 64us each; measured in a KVM guest of 2 CPUs"),
    of_cpus("timer-migration", noise::timer_migration, "timers of other CPUs stay there: each that expires here interrupts the work"),
    of_cpus("skew-tick", noise::skewed_ticks, "ticks of the CPUs at different moments: at one moment they wait for each other"),
    of_cpus("rcu-callbacks", noise::rcu_callbacks, "RCU callbacks done by threads on other CPUs (rcu_nocbs)"),
    check("rcu-expedited", noise::expedited_rcu, "normal grace periods: hurried ones interrupt all CPUs"),
    of_cpus("watchdog", noise::watchdog, "no lockup detectors on CPUs of the work: they run above every priority"),
    check("machine-check", noise::machine_check, "no polling for corrected errors: it interrupts every CPU"),
    of_cpus("governor", power::governor, "a fixed frequency, the highest: work that begins at a low one is slow until it has risen"),
    check("turbo", power::turbo, "one speed: with turbo a job takes longer when the machine is warm or busy"),
    of_cpus("idle-states", power::idle_states, "no state that takes more than 10 us to leave: a wake-up waits for it"),
    check("cpu-dma-latency", power::idle_latency, "leave to hold the CPUs out of deep idle states while the work runs"),
    check("thermal", power::heat, "no thermal throttling: nothing in software delays more"),
    check("pcie-power", power::links, "links to devices that stay awake: waking one takes tens of microseconds")
        .costs(64_000, "up to 64us and more to leave L1; known from the exit latencies of PCI Express"),
    check("transparent-huge-pages", memory::huge_pages, "madvise or never: merging pages stops the threads that use them"),
    check("swap", memory::swap, "no swap, or locked memory: a page that was swapped out takes milliseconds to come back"),
    check("ksm", memory::merging, "no merging of equal pages: writing to a merged one has to copy it"),
    check("compaction", memory::compaction, "locked memory left in its place: else it faults although it is locked"),
    check("numa-balancing", memory::numa_balancing, "pages that stay: each that is taken away faults at the next access"),
    check("vm-statistics", memory::statistics, "memory statistics rarely brought up to date: a worker runs on each CPU for it"),
    check("kernel-debugging", build::debugging, "a kernel without lock checkers and the like: they lengthen every section without preemption"),
    check("firmware", build::firmware, "no calls into the firmware: interrupts may wait until it is done"),
    check("tracing", noise::tracing, "no tracer left on: each event costs time")
        .costs(500, "0.1 to 0.5us each event; known from the handbook's BIAS"),
    check("mitigations", build::mitigations, "for information: each costs a little on every entry into the kernel"),
    check("virtual-machine", environment::virtual_machine, "bare metal, or virtual CPUs with processors of their own: a host stops its guests")
        .costs(16_000_000, "gaps of 8 to 16ms of a real-time thread; measured in a KVM guest of 2 CPUs, the host as their cause is inferred"),
    check("steal-time", environment::stolen_time, "none: it is time in which nothing here ran"),
    of_cpus("load", environment::load, "no other load on the CPUs, caches and memory of the work")
        .costs(9_100_000, "at worst 0.07ms late when idle, 9.1ms at load 2.6, at FIFO 80; measured in a KVM guest of 2 CPUs"),
];
