//! Who sleeps.

use std::time::Duration;

use hourglass_clock::process;
use hourglass_sys::wait;
use hourglass_timer::sleep::{HzProbe, Policy, Settings, Sleeper};
use spin_sleep::{SpinSleeper, SpinStrategy};

/// The slack that a thread has by default, ns.
const DEFAULT_SLACK_NS: u64 = 50_000;

/// One way to sleep for a number of nanoseconds.
pub(super) struct Subject {
    pub(super) name: &'static str,
    /// The timer slack that its thread has, ns.
    pub(super) slack_ns: u64,
    /// Whether it may spin through whole sleeps.
    pub(super) may_spin_all: bool,
    /// Sleeps so many nanoseconds, so often; gives the misses, ns. The loop is compiled for each, so
    /// that all return straight into it.
    pub(super) sleep: Box<dyn FnMut(u64, usize) -> Vec<f64>>,
}

impl Subject {
    fn new(name: &'static str, mut sleep: impl FnMut(u64) + 'static) -> Subject {
        let sleep = Box::new(move |length_ns, times| misses_ns(&mut sleep, length_ns, times));
        Subject { name, slack_ns: DEFAULT_SLACK_NS, may_spin_all: false, sleep }
    }
}

/// How late each of so many sleeps of one length ended, ns.
#[inline(always)]
fn misses_ns(mut sleep: impl FnMut(u64), length_ns: u64, times: usize) -> Vec<f64> {
    let clock = process::clock();
    let mut misses_ns = Vec::with_capacity(times);
    for _ in 0..times {
        let deadline = clock.now_ordered() + length_ns;
        sleep(length_ns);
        misses_ns.push(clock.now_ordered() as f64 - deadline as f64);
    }
    misses_ns
}

/// Ours, its variants, and the peers. Each begins without having learnt anything.
pub(super) fn all() -> Vec<Subject> {
    let ours = |policy| {
        let mut sleeper = Sleeper::with(Settings::with_policy(policy));
        move |ns| {
            let _ = sleeper.sleep_ns(ns);
        }
    };
    let default = SpinSleeper::default();
    // Long enough for this kernel's wake-ups without slack, and without yielding.
    let tuned = SpinSleeper::new(100_000).with_spin_strategy(SpinStrategy::SpinLoopHint);
    let thesis = HzProbe::run(&process::clock()).policy();
    vec![
        Subject::new("hourglass", ours(Policy::Learned)),
        Subject::new("hourglass/kernel-only", ours(Policy::KernelOnly)),
        Subject::new("clock_nanosleep", |ns| {
            let deadline = process::clock().now_ordered() + ns;
            while wait::nanosleep_until(deadline).is_err() {}
        }),
        Subject {
            slack_ns: 1,
            ..Subject::new("clock_nanosleep/slack-1ns", |ns| {
                let deadline = process::clock().now_ordered() + ns;
                while wait::nanosleep_until(deadline).is_err() {}
            })
        },
        Subject::new("std::thread::sleep", |ns| std::thread::sleep(Duration::from_nanos(ns))),
        Subject::new("spin_sleep", move |ns| default.sleep_ns(ns)),
        Subject { slack_ns: 1, ..Subject::new("spin_sleep/tuned", move |ns| tuned.sleep_ns(ns)) },
        Subject { may_spin_all: true, ..Subject::new("thesis", ours(thesis)) },
    ]
}
