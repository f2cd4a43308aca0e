//! How far the counts of two CPUs are apart, as an interval.
//!
//! One thread on each CPU; they throw a count back and forth. A count cannot arrive before it was
//! sent, so every round bounds the offset from both sides, and the intersection over all rounds
//! holds it. The width that stays is the time that the messages need: it says nothing about where
//! in the interval the offset lies.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread::set_affinity;
use hourglass_time::Span;

use crate::Rate;
use crate::source::ClockSource;

/// How far the count on CPU `b` is ahead of that on CPU `a` at the same moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CrossCpu {
    /// A CPU.
    pub a: u32,
    /// Another one.
    pub b: u32,
    /// Lower bound on the offset between the counters, ns, rounded down.
    pub offset_lo_ns: i64,
    /// Upper bound on the offset, ns, rounded up. Below [`CrossCpu::offset_lo_ns`] if the rounds
    /// contradict each other: then the offset changed during the measurement.
    pub offset_hi_ns: i64,
    /// Rounds measured.
    pub rounds: u32,
}

impl CrossCpu {
    /// Whether the counts may agree: only then no message was seen to arrive before it was sent.
    #[must_use]
    pub fn may_agree(&self) -> bool {
        self.offset_lo_ns <= 0 && self.offset_hi_ns >= 0
    }
}

/// The pairs of CPUs to measure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairs {
    /// None.
    None,
    /// The first CPU allowed with every other one; the intervals of other pairs follow, wider.
    FromFirst,
    /// Every pair.
    All,
}

impl Pairs {
    /// The pairs of `cpus`.
    #[must_use]
    pub fn select(self, cpus: &[u32]) -> Vec<(u32, u32)> {
        let heads = match self {
            Pairs::None => 0,
            Pairs::FromFirst => 1,
            Pairs::All => cpus.len(),
        };
        let tails = |head: usize| cpus[head + 1..].iter().map(move |b| (cpus[head], *b));
        (0..heads.min(cpus.len())).flat_map(tails).collect()
    }
}

/// The offset of `b` against `a`, in ticks, as far as the rounds so far tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Bounds {
    lo: i64,
    hi: i64,
    rounds: u32,
}

impl Bounds {
    const NOTHING_KNOWN: Bounds = Bounds { lo: i64::MIN, hi: i64::MAX, rounds: 0 };

    /// A round: sent at some count of `a`, received and answered at one of `b`, back at one of
    /// `a`; the differences are `b - sent` and `b - back`.
    fn narrow(&mut self, since_sent: i64, until_back: i64) {
        self.hi = self.hi.min(since_sent);
        self.lo = self.lo.max(until_back);
        self.rounds = self.rounds.saturating_add(1);
    }
}

/// A message, on a cache line of its own (two, since some processors fetch pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line {
    round: AtomicU32,
    ticks: AtomicU64,
}

/// Tells the answering thread to end.
const LAST_ROUND: u32 = u32::MAX;

/// How long one thread waits for the other before it gives up, ns: several time slices.
const PATIENCE_NS: u64 = 100_000_000;

/// State that both threads share.
#[derive(Debug, Default)]
struct PingPong {
    question: Line,
    answer: Line,
    /// Threads that stand on their CPU, and those that may not.
    placed: AtomicU32,
    refused: AtomicU32,
}

/// Measures one pair for about `budget`, in threads of its own; `rate` turns ticks into
/// nanoseconds. `None` if a CPU is not allowed or offline, or if the other thread did not run.
///
/// Waits for a CPU that real-time threads of others keep busy.
#[must_use]
pub fn measure(
    source: &dyn ClockSource,
    rate: Rate,
    (a, b): (u32, u32),
    budget: Span,
) -> Option<CrossCpu> {
    let court = PingPong::default();
    let found = std::thread::scope(|scope| {
        let answering = std::thread::Builder::new().name(format!("cross-cpu-{b}"));
        let asking = std::thread::Builder::new().name(format!("cross-cpu-{a}"));
        answering.spawn_scoped(scope, || answer(source, &court, b)).ok()?;
        let asked = asking.spawn_scoped(scope, || exchange(source, &court, a, budget));
        if asked.is_err() {
            court.question.round.store(LAST_ROUND, Ordering::Release);
        }
        asked.ok()?.join().ok()
    })?;
    (found.rounds > 0).then(|| CrossCpu {
        a,
        b,
        offset_lo_ns: ns_floor(rate, found.lo),
        offset_hi_ns: ns_floor(rate, found.hi.saturating_neg()).saturating_neg(),
        rounds: found.rounds,
    })
}

/// Takes its place and waits for the other one.
fn take_place(court: &PingPong, cpu: u32) -> bool {
    let counter = if set_affinity([cpu]).is_ok() { &court.placed } else { &court.refused };
    counter.fetch_add(1, Ordering::AcqRel);
    let give_up = now_ns(ClockId::Monotonic).saturating_add(PATIENCE_NS);
    while court.placed.load(Ordering::Acquire) < 2 {
        let refused = court.refused.load(Ordering::Acquire) > 0;
        if refused || now_ns(ClockId::Monotonic) > give_up {
            return false;
        }
        std::thread::yield_now();
    }
    true
}

fn exchange(source: &dyn ClockSource, court: &PingPong, cpu: u32, budget: Span) -> Bounds {
    let mut bounds = Bounds::NOTHING_KNOWN;
    if take_place(court, cpu) {
        let facts = source.facts();
        let end = now_ns(ClockId::Monotonic).saturating_add(budget.nanos_or_zero());
        for round in 1..LAST_ROUND {
            let sent = source.read_ordered();
            // The count is stored too, so that no processor reads it after the round is seen.
            court.question.ticks.store(sent, Ordering::Relaxed);
            court.question.round.store(round, Ordering::Release);
            if !wait_for(&court.answer, |seen| seen == round) {
                break;
            }
            let back = source.read_ordered();
            let there = court.answer.ticks.load(Ordering::Relaxed);
            bounds.narrow(facts.ticks_between(sent, there), facts.ticks_between(back, there));
            if now_ns(ClockId::Monotonic) >= end {
                break;
            }
        }
    }
    court.question.round.store(LAST_ROUND, Ordering::Release);
    bounds
}

fn answer(source: &dyn ClockSource, court: &PingPong, cpu: u32) {
    if !take_place(court, cpu) {
        return;
    }
    let mut done = 0;
    while wait_for(&court.question, |seen| seen != done) {
        done = court.question.round.load(Ordering::Acquire);
        if done == LAST_ROUND {
            return;
        }
        let ticks = source.read_ordered();
        court.answer.ticks.store(ticks, Ordering::Relaxed);
        court.answer.round.store(done, Ordering::Release);
    }
}

/// Spins until the round is the one wanted; false after [`PATIENCE_NS`]. Without `pause`, which
/// would widen the interval by its length.
fn wait_for(line: &Line, wanted: impl Fn(u32) -> bool) -> bool {
    const LOADS_BETWEEN_LOOKS: u32 = 100_000;
    let mut give_up = None;
    loop {
        for _ in 0..LOADS_BETWEEN_LOOKS {
            if wanted(line.round.load(Ordering::Acquire)) {
                return true;
            }
        }
        let now = now_ns(ClockId::Monotonic);
        if now > *give_up.get_or_insert(now.saturating_add(PATIENCE_NS)) {
            return false;
        }
    }
}

/// Signed ticks in nanoseconds, rounded down.
fn ns_floor(rate: Rate, ticks: i64) -> i64 {
    let ns = rate.ns_floor(ticks.unsigned_abs());
    if ticks < 0 { ns.saturating_neg().saturating_sub(1) } else { ns }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SimSource, SourceName, probe};

    /// Plays rounds between two CPUs of a simulated clock; `ways` holds the duration of each way, ns.
    fn play(sim: &SimSource, ways: &[(i64, i64)]) -> Bounds {
        let mut bounds = Bounds::NOTHING_KNOWN;
        for (there, back) in ways {
            let sent = sim.read_on(0);
            sim.advance(Span::from_nanos(*there));
            let received = sim.read_on(1);
            sim.advance(Span::from_nanos(*back));
            let facts = sim.facts();
            bounds.narrow(
                facts.ticks_between(sent, received),
                facts.ticks_between(sim.read_on(0), received),
            );
        }
        bounds
    }

    /// RFC 5905, section 8: theta lies within delta / 2 of the midpoint; here the two bounds are
    /// kept apart, so that the best way of each direction counts.
    #[test]
    fn the_interval_holds_the_offset_and_takes_the_best_of_all_rounds() {
        for offset in [-1_000, -50, 0, 50, 1_000] {
            let sim = SimSource::default();
            sim.advance(Span::from_secs(1));
            sim.set_cpu_offset(1, Span::from_nanos(offset));
            let bounds = play(&sim, &[(100, 900), (70, 500), (400, 60), (4_000_000, 80)]);
            assert_eq!((bounds.lo, bounds.hi, bounds.rounds), (offset - 60, offset + 70, 4));
        }
    }

    #[test]
    fn an_offset_that_exceeds_the_way_is_proven() {
        let pair = |lo, hi| CrossCpu { a: 0, b: 1, offset_lo_ns: lo, offset_hi_ns: hi, rounds: 9 };
        assert!(pair(-73, 172).may_agree() && pair(0, 0).may_agree());
        assert!(!pair(1, 172).may_agree() && !pair(-73, -1).may_agree());
        // Contradicting rounds: it moved.
        assert!(!pair(5, -5).may_agree());
    }

    #[test]
    fn rounding_is_outwards() {
        let rate = Rate::from_ratio(1_000_000_000, 2_300_000_000).unwrap();
        // 10.43 ns.
        assert_eq!((ns_floor(rate, 24), ns_floor(rate, -24)), (10, -11));
        assert_eq!(ns_floor(Rate::NANOSECONDS, i64::MIN), i64::MIN);
    }

    #[test]
    fn pairs() {
        assert_eq!(Pairs::All.select(&[0, 2, 5]), [(0, 2), (0, 5), (2, 5)]);
        assert_eq!(Pairs::FromFirst.select(&[0, 2, 5]), [(0, 2), (0, 5)]);
        assert_eq!(Pairs::FromFirst.select(&[]), []);
        assert_eq!(Pairs::All.select(&[3]), []);
        assert_eq!(Pairs::None.select(&[0, 1]), []);
    }

    /// `CLOCK_MONOTONIC` agrees with itself on all CPUs, so its interval holds zero.
    #[test]
    fn the_monotonic_clock_agrees_with_itself() {
        let source = probe(SourceName::MONOTONIC).unwrap();
        let before = hourglass_sys::thread::affinity().unwrap();
        let budget = Span::from_millis(1);
        for pair in Pairs::FromFirst.select(&before) {
            let found = measure(source.as_ref(), Rate::NANOSECONDS, pair, budget);
            assert!(found.is_none_or(|found| found.may_agree()), "{found:?}");
        }
        assert_eq!(hourglass_sys::thread::affinity().unwrap(), before);
    }

    #[test]
    fn a_cpu_that_is_not_there_is_left_out() {
        let source = probe(SourceName::MONOTONIC).unwrap();
        let found = measure(source.as_ref(), Rate::NANOSECONDS, (0, 1_023), Span::ZERO);
        assert_eq!(found, None);
    }
}
