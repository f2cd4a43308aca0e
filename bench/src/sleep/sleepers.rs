//! Who sleeps.

use std::time::Duration;

use hourglass_clock::process;
use hourglass_sys::wait;
use hourglass_time::Span;
use hourglass_timer::periodic::{LoopStep, Parameters, PeriodicLoop};
use hourglass_timer::sleep::{Budget, HzProbe, SleepPolicy, Sleeper, SleeperSettings};
use spin_sleep::{SpinSleeper, SpinStrategy};

/// The slack that a thread has by default, ns.
const DEFAULT_SLACK_NS: u64 = 50_000;

/// A way to sleep. Implementations are inlined, so that each returns straight into the loop that
/// looks at the clock.
trait Sleeps {
    /// Sleeps until that time, or who only knows lengths, for that length, ns.
    fn sleep(&mut self, deadline_ns: u64, length_ns: u64);
}

pub(super) struct SleepCase {
    pub(super) name: &'static str,
    pub(super) slack_ns: u64,
    /// Whether it may spin through whole sleeps.
    pub(super) may_spin_all: bool,
    /// Sleeps for a length in ns, a number of times; returns the misses, ns.
    pub(super) sleep: Box<dyn FnMut(u64, usize) -> Vec<f64>>,
}

impl SleepCase {
    fn new(name: &'static str, mut sleeps: impl Sleeps + 'static) -> SleepCase {
        let sleep = Box::new(move |length_ns, times| misses_ns(&mut sleeps, length_ns, times));
        SleepCase { name, slack_ns: DEFAULT_SLACK_NS, may_spin_all: false, sleep }
    }

    fn without_slack(self) -> SleepCase {
        SleepCase { slack_ns: 1, ..self }
    }
}

fn misses_ns(sleeps: &mut impl Sleeps, length_ns: u64, times: usize) -> Vec<f64> {
    let clock = process::clock();
    let mut misses_ns = Vec::with_capacity(times);
    for _ in 0..times {
        let deadline = clock.now_ordered() + length_ns;
        sleeps.sleep(deadline, length_ns);
        misses_ns.push(clock.now_ordered() as f64 - deadline as f64);
    }
    misses_ns
}

/// Ours, its variants, and the peers. Each begins without having learnt anything.
pub(super) fn all() -> Vec<SleepCase> {
    let by = |policy| Sleeper::with(SleeperSettings::with_policy(policy));
    // Long enough for this kernel's wake-ups without slack, and without yielding.
    let tuned = SpinSleeper::new(100_000).with_spin_strategy(SpinStrategy::SpinLoopHint);
    let thesis = HzProbe::run(process::clock()).policy();
    vec![
        SleepCase::new("hourglass", Sleeper::new()),
        SleepCase::new("hourglass/budget-0", budget(0)),
        SleepCase::new("hourglass/frugal", Sleeper::with(SleeperSettings::FRUGAL)),
        SleepCase::new("hourglass/budget-50", budget(500_000)),
        SleepCase::new("hourglass/budget-200", budget(2_000_000)),
        SleepCase::new("hourglass/precise", Sleeper::with(SleeperSettings::PRECISE)),
        SleepCase::new("hourglass/kernel-only", by(SleepPolicy::KernelOnly)),
        SleepCase {
            sleep: Box::new(releases_ns),
            ..SleepCase::new("hourglass/periodic", Nanosleep)
        },
        SleepCase::new("clock_nanosleep", Nanosleep),
        SleepCase::new("clock_nanosleep/slack-1ns", Nanosleep).without_slack(),
        SleepCase::new("std::thread::sleep", Std),
        SleepCase::new("spin_sleep", SpinSleeper::default()),
        SleepCase::new("spin_sleep/tuned", tuned).without_slack(),
        SleepCase { may_spin_all: true, ..SleepCase::new("thesis", by(thesis)) },
    ]
}

/// A sleeper that may spin for at most this part of the kernel's wait.
fn budget(of_wait_ppm: u32) -> Sleeper {
    let budget = Budget { per_sleep_ns: 0, of_wait_ppm, share_ppm: 0 };
    Sleeper::with(SleeperSettings { budget, ..SleeperSettings::DEFAULT })
}

/// How late each of `times` jobs of a periodic task begins that waits by the default way, ns.
fn releases_ns(period_ns: u64, times: usize) -> Vec<f64> {
    let parameters = Parameters::every(Span::from_nanos(period_ns as i64)).check();
    let mut sleeper = Sleeper::with(SleeperSettings::with_policy(SleepPolicy::KernelOnly));
    // As the thread of a task does.
    sleeper.take_slack();
    let Ok(parameters) = parameters else { return Vec::new() };
    let mut task = PeriodicLoop::new(sleeper, &parameters);
    let mut misses_ns = Vec::with_capacity(times);
    for _ in 0..times {
        let LoopStep::Ran { job, .. } = task.step(&mut |_: &mut _| ()) else { break };
        misses_ns.push(job.started_ns as f64 - job.release_ns as f64);
    }
    misses_ns
}

impl Sleeps for Sleeper {
    #[inline(always)]
    fn sleep(&mut self, deadline_ns: u64, _length_ns: u64) {
        let _ = self.sleep_until_ns(deadline_ns);
    }
}

struct Nanosleep;

impl Sleeps for Nanosleep {
    #[inline(always)]
    fn sleep(&mut self, deadline_ns: u64, _length_ns: u64) {
        while wait::nanosleep_until(deadline_ns).is_err() {}
    }
}

struct Std;

impl Sleeps for Std {
    #[inline(always)]
    fn sleep(&mut self, _deadline_ns: u64, length_ns: u64) {
        std::thread::sleep(Duration::from_nanos(length_ns));
    }
}

impl Sleeps for SpinSleeper {
    #[inline(always)]
    fn sleep(&mut self, _deadline_ns: u64, length_ns: u64) {
        SpinSleeper::sleep_ns(*self, length_ns);
    }
}
