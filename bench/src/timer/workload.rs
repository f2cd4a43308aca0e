//! What is done to every structure, and what it costs.
//!
//! Owns: the four measurements, and the clocks they are taken with.
//! Must not: favour: nothing here knows whose structure it drives.
//!
//! - insert, cancel: batches of a tenth of the timers (64 to 10,000) on top of those outstanding,
//!   cancelled in shuffled order; wall clock, median over the batches.
//! - `arm_cancel`: a timeout of 5 s is armed and cancelled at once; ns a pair.
//! - rearm: from expiry to expiry, each timer that fires is armed again at random; thread CPU time, so
//!   that preemption by other work is not charged.
//! - `worst_poll`: the longest of those polls alone, in thread CPU time; arming is not in it. On
//!   virtual machines its floor is some tens of microseconds, since interrupts are charged to the
//!   thread they hit; therefore also the 99.9th percentile.

use std::hint::black_box;
use std::time::Instant;

use hourglass_sys::clock::{ClockId, now_ns};

use super::dice::Dice;
use crate::paired::median;

/// The timeout of the pairs.
const TIMEOUT: u64 = 5_000_000_000;

const BATCHED: usize = 200_000;

const PAIRS: u64 = 200_000;

/// Timers that fire and are armed again, at least and at most.
const REARMED: (usize, usize) = (20_000, 1_000_000);

/// Timers that fire while each poll is timed, at least.
const POLLED: usize = 100_000;

/// A structure of timers under test. Times are ns from its zero; ids are small numbers, each that
/// of one timer at a time.
pub(crate) trait TimerBackend {
    /// As in the document's `subject`.
    const NAME: &'static str;

    /// What a poll hands out of a timer, by which it is armed again.
    type Fired: Copy;

    fn with_room(ids: usize) -> Self;

    fn insert(&mut self, id: u32, now: u64, deadline: u64);

    fn cancel(&mut self, id: u32);

    fn rearm(&mut self, fired: Self::Fired, now: u64, deadline: u64);

    fn arm_and_cancel(&mut self, id: u32, now: u64, deadline: u64) {
        self.insert(id, now, deadline);
        self.cancel(id);
    }

    fn next(&mut self) -> Option<u64>;

    /// Takes out what fires at `now`, or part of it if it says so in [`next`](TimerBackend::next).
    fn poll(&mut self, now: u64, fired: &mut Vec<Self::Fired>);

    /// From expiry to expiry until `fires` timers have fired, each armed again.
    fn hold(&mut self, now: &mut u64, fires: usize, dice: &mut Dice, watch: &mut PollTimer) {
        let mut fired = Vec::with_capacity(4_096);
        let mut left = fires;
        while left > 0 {
            watch.begin();
            let next = self.next().unwrap_or(*now);
            *now = next.max(*now);
            self.poll(*now, &mut fired);
            watch.end();
            left = left.saturating_sub(fired.len());
            for timer in fired.drain(..) {
                let deadline = *now + dice.delay();
                self.rearm(timer, *now, deadline);
            }
        }
    }
}

pub(crate) struct PollTimer {
    on: bool,
    begun: u64,
    /// Less what reading the clock costs.
    polls: Vec<f64>,
    cost: u64,
}

impl PollTimer {
    fn off() -> PollTimer {
        PollTimer { on: false, begun: 0, polls: Vec::new(), cost: 0 }
    }

    fn on() -> PollTimer {
        let reads: Vec<u64> = (0..1_000).map(|_| cpu_ns()).collect();
        let mut costs: Vec<f64> = reads.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
        let cost = median(&mut costs) as u64;
        PollTimer { on: true, begun: 0, polls: Vec::with_capacity(4 * POLLED), cost }
    }

    #[inline]
    pub(crate) fn begin(&mut self) {
        if self.on {
            self.begun = cpu_ns();
        }
    }

    #[inline]
    pub(crate) fn end(&mut self) {
        if self.on {
            self.polls.push(cpu_ns().saturating_sub(self.begun + self.cost) as f64);
        }
    }
}

/// What a structure cost in a round: ns a timer, us a poll.
#[derive(Clone, Debug)]
pub(crate) struct Figures {
    pub(crate) insert: f64,
    pub(crate) cancel: f64,
    pub(crate) arm_cancel: f64,
    pub(crate) rearm: f64,
    pub(crate) worst_poll: f64,
    pub(crate) p999_poll: f64,
}

fn cpu_ns() -> u64 {
    now_ns(ClockId::ThreadCpu)
}

pub(crate) fn run<T: TimerBackend>(outstanding: usize, round: u32) -> Figures {
    let batch = (outstanding / 10).clamp(64, 10_000);
    let mut dice = Dice::new(round);
    let mut timers = T::with_room(outstanding + batch);
    let mut now = 0;
    for id in 0..outstanding as u32 {
        timers.insert(id, now, now + dice.delay());
    }
    let ids = outstanding as u32..(outstanding + batch) as u32;
    let (insert, cancel) = insert_and_cancel(&mut timers, ids.clone().collect(), &mut dice);
    let arm_cancel = arm_and_cancel(&mut timers, ids.start);

    let fires = outstanding.clamp(REARMED.0, REARMED.1);
    let begun = cpu_ns();
    timers.hold(&mut now, fires, &mut dice, &mut PollTimer::off());
    let rearm = (cpu_ns() - begun) as f64 / fires as f64;

    let mut watch = PollTimer::on();
    timers.hold(&mut now, outstanding.max(POLLED), &mut dice, &mut watch);
    watch.polls.sort_by(f64::total_cmp);
    let at = |permille: usize| {
        let place = watch.polls.len() * permille / 1_000;
        watch.polls.get(place.min(watch.polls.len() - 1)).copied().unwrap_or(0.0) / 1_000.0
    };
    black_box(&timers);
    let (p999_poll, worst_poll) = (at(999), at(1_000));
    Figures { insert, cancel, arm_cancel, rearm, worst_poll, p999_poll }
}

/// Batches on top of those outstanding; ns of inserting one, and of cancelling one.
fn insert_and_cancel<T: TimerBackend>(
    timers: &mut T,
    mut ids: Vec<u32>,
    dice: &mut Dice,
) -> (f64, f64) {
    let batch = ids.len() as f64;
    let (mut inserts, mut cancels) = (Vec::new(), Vec::new());
    for _ in 0..(BATCHED / ids.len()).max(1) {
        let deadlines: Vec<u64> = ids.iter().map(|_| dice.delay()).collect();
        let begun = Instant::now();
        for (id, deadline) in ids.iter().zip(&deadlines) {
            timers.insert(*id, 0, *deadline);
        }
        inserts.push(begun.elapsed().as_nanos() as f64 / batch);
        dice.shuffle(&mut ids);
        let begun = Instant::now();
        for id in &ids {
            timers.cancel(*id);
        }
        cancels.push(begun.elapsed().as_nanos() as f64 / batch);
    }
    (median(&mut inserts), median(&mut cancels))
}

/// ns of a pair; in thread CPU time.
fn arm_and_cancel<T: TimerBackend>(timers: &mut T, id: u32) -> f64 {
    let begun = cpu_ns();
    for _ in 0..PAIRS {
        timers.arm_and_cancel(id, 0, black_box(TIMEOUT));
    }
    (cpu_ns() - begun) as f64 / PAIRS as f64
}
