//! What a sleep asks of the kernel besides its wait: each is a system call.

use std::sync::atomic::AtomicU32;

use super::*;
use crate::sleep::{SchedClass, SleepPolicy, WakeReason};

struct CountedMachine {
    machine: SimMachine,
    waits: u32,
    others: u32,
}

impl CountedMachine {
    fn other<T>(&mut self, ask: impl FnOnce(&mut SimMachine) -> T) -> T {
        self.others += 1;
        ask(&mut self.machine)
    }
}

impl Mechanism for CountedMachine {
    fn wait_until(&mut self, word: &AtomicU32, expected: u32, deadline_ns: u64) -> WakeReason {
        self.waits += 1;
        self.machine.wait_until(word, expected, deadline_ns)
    }

    fn wait_for(&mut self, word: &AtomicU32, expected: u32, length_ns: u64) -> WakeReason {
        self.waits += 1;
        self.machine.wait_for(word, expected, length_ns)
    }

    fn relax(&mut self, left_ns: u64) {
        self.machine.relax(left_ns);
    }

    /// The C library knows it without asking.
    fn cpu(&mut self) -> u32 {
        self.machine.cpu()
    }

    fn class(&mut self) -> SchedClass {
        self.other(SimMachine::class)
    }

    fn preemptions(&mut self) -> u64 {
        self.other(SimMachine::preemptions)
    }

    fn cpu_time_ns(&mut self) -> u64 {
        self.other(SimMachine::cpu_time_ns)
    }

    fn slack_ns(&mut self) -> Option<u64> {
        self.other(SimMachine::slack_ns)
    }

    fn set_slack_ns(&mut self, slack_ns: u64) {
        self.other(|machine| machine.set_slack_ns(slack_ns));
    }
}

fn asked(policy: SleepPolicy, takes_slack: bool) -> (u32, u32) {
    let time = Arc::new(SimSource::new(SimConfig::default()));
    let clock_settings = ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT };
    let clock = Arc::new(Clock::on(Arc::clone(&time), clock_settings));
    let machine = SimMachine::new(time, seed(), Load::idle());
    let asked = CountedMachine { machine, waits: 0, others: 0 };
    let mut sleeper = Sleeper::on(clock, asked, SleeperSettings::with_policy(policy));
    if takes_slack {
        sleeper.take_slack();
    }
    let before = (sleeper.mechanism().waits, sleeper.mechanism().others);
    for _ in 0..100 {
        assert!(sleeper.sleep_ns(1_000_000).reached());
    }
    (sleeper.mechanism().waits - before.0, sleeper.mechanism().others - before.1)
}

/// The default of periodic threads took seven system calls a period, of which two are the job's CPU time.
#[test]
fn a_kernel_only_sleep_is_its_wait() {
    assert_eq!(asked(SleepPolicy::KernelOnly, true), (100, 0));
    // The thread's slack is asked for, taken away and given back.
    assert_eq!(asked(SleepPolicy::KernelOnly, false), (100, 300));
}

/// Class and preemptions, and the cost of every eighth wait; some sleeps end late.
#[test]
fn a_learning_sleep_asks_little() {
    let (waits, others) = asked(SleepPolicy::Learned, true);
    assert_eq!(waits, 100);
    assert!(others <= 260, "{others}");
}
