//! The first reading of a trace: what its gaps have in common.
//!
//! Grids and periods can only be seen in many gaps together, so a trace is read twice: once to
//! learn them here, once to give each gap its cause.

use std::collections::BTreeMap;

use crate::{Interval, IntervalStart};
use hourglass_documents::Policy;

use super::facts::{Quota, RtLimit, RunFacts, ThreadFacts};
use super::gap::length_ns;
use super::grid::{GapGrid, GridFinder};
use super::log2_buckets::Sizes;
use super::periodic_gaps::{RepeatFinder, Repeats};
use super::quota::{QuotaFinder, QuotaPeriods};
use super::throttled::{Candidates, LostTime, PART_NS, Throttlings};
use super::tick::TickGaps;

/// Ticks per second that kernels are built with.
const TICK_RATES: [u32; 4] = [1_000, 300, 250, 100];
/// Of the ticks to expect one in this number must be seen where the rate is known, and where not.
const TICKS_KNOWN: u64 = 4;
const TICKS_GUESSED: u64 = 2;
/// Of the ends of a thread's long gaps one in this number must be a replenishment.
const REPLENISHED_ONE_IN: u64 = 3;
/// A gap for a budget or a quota is not shorter, ns.
const STOPPED_NS: u64 = 100_000;

/// Learns what the gaps of a trace have in common.
///
/// Memory: some tens of kilobytes for each CPU and thread.
#[derive(Clone, Debug)]
pub struct TracePatterns<'a> {
    facts: &'a RunFacts,
    threads: BTreeMap<u32, Thread>,
    cpus: BTreeMap<u32, Cpu>,
    quota: Option<QuotaFinder>,
}

#[derive(Clone, Debug)]
struct Thread {
    cpu: u32,
    end_ns: i64,
    /// Whether it was seen to run before the gap, or only that the gap was there.
    watched: bool,
    succeeded: bool,
    throttled: Candidates,
    lost: LostTime,
    replenished: Option<GridFinder>,
}

#[derive(Clone, Debug)]
struct Cpu {
    occupant: Option<u32>,
    clocked: Option<TickGaps>,
    /// Searches for the tick, if they are not known.
    ticks: Vec<GridFinder>,
    kept: Sizes,
    repeats: RepeatFinder,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Patterns {
    pub(super) ticks: BTreeMap<u32, Ticks>,
    pub(super) repeats: BTreeMap<u32, Repeats>,
    /// Gaps that were no switch and no tick.
    pub(super) kept: BTreeMap<u32, Sizes>,
    pub(super) throttlings: BTreeMap<u32, Throttlings>,
    /// The losses of threads that the real-time limit may have stopped.
    pub(super) lost: BTreeMap<u32, LostTime>,
    pub(super) replenished: BTreeMap<u32, GapGrid>,
    pub(super) quota: Option<QuotaPeriods>,
    /// Which part of the gaps that may be a quota's are so at most, from 0 to 1.
    pub(super) quota_most: Option<f64>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ticks {
    Clocked(Box<TickGaps>),
    Found(GapGrid),
}

impl Ticks {
    pub(super) fn point(&self, start: i64, end: i64) -> Option<i64> {
        match self {
            Ticks::Clocked(gaps) => gaps.grid().point(start, end),
            Ticks::Found(grid) => grid.point(start),
        }
    }

    pub(super) fn show(&self) -> bool {
        match self {
            Ticks::Clocked(gaps) => gaps.shows(),
            Ticks::Found(_) => true,
        }
    }

    /// How sure it is that a gap of this length at a tick's moment is the tick, where ticks do not show; `counted` are the
    /// timer's interrupts.
    pub(super) fn among_others(&self, length: u64, counted: u64) -> Option<f64> {
        match self {
            Ticks::Clocked(gaps) => gaps.among_others(length, counted),
            Ticks::Found(_) => None,
        }
    }

    pub(super) fn contradict(&self, counted: u64) -> bool {
        matches!(self, Ticks::Clocked(gaps) if gaps.contradict(counted))
    }

    /// A gap shorter than this, ns, is no interrupt.
    pub(super) fn too_short_ns(&self) -> Option<u64> {
        match self {
            Ticks::Clocked(gaps) => gaps.too_short_ns(),
            Ticks::Found(_) => None,
        }
    }

    /// Whether its moments are known, and did not have to be found.
    pub(super) fn is_clocked(&self) -> bool {
        matches!(self, Ticks::Clocked(_))
    }

    /// How sure that is, from 0 to 1.
    pub(super) fn confidence(&self) -> f64 {
        match self {
            Ticks::Clocked(gaps) => gaps.confidence(),
            Ticks::Found(grid) => grid.confidence(),
        }
    }
}

/// The timer tick of a CPU as its gaps show it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TickFound {
    pub cpu: u32,
    pub period_ns: u64,
    /// Share of the ticks to expect that were seen, per mille.
    pub seen_per_mille: u64,
    /// The confidence that a gap on the grid is a tick, from 0 to 1.
    pub confidence: f64,
}

/// Gaps of about one size that come back at a fixed distance, and are no ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepeatFound {
    pub cpu: u32,
    pub from_ns: u64,
    pub to_ns: u64,
    pub period_ns: u64,
}

impl<'a> TracePatterns<'a> {
    pub fn new(facts: &'a RunFacts) -> TracePatterns<'a> {
        let throttling = facts.quota.filter(|quota| quota.throttled > 0);
        let quota = throttling.and_then(|quota| QuotaFinder::new(quota.period_ns, quota.throttled));
        TracePatterns { facts, threads: BTreeMap::new(), cpus: BTreeMap::new(), quota }
    }

    /// Takes the next interval, in order of start.
    pub fn push(&mut self, interval: &Interval) {
        let facts = self.facts;
        let number = interval.cpu;
        let cpu = self.cpus.entry(number).or_insert_with(|| Cpu::new(facts, number));
        cpu.pass(length_ns(interval.start_ns, interval.end_ns));
        let before = cpu.occupant.replace(interval.thread);
        if let Some(other) = before.filter(|other| *other != interval.thread)
            && let Some(other) = self.threads.get_mut(&other)
        {
            other.succeeded = true;
        }
        match self.threads.get_mut(&interval.thread) {
            None => {
                let thread = Thread::new(interval, facts);
                self.threads.insert(interval.thread, thread);
            }
            Some(_) => self.gap(interval),
        }
    }

    fn gap(&mut self, interval: &Interval) {
        let Some(thread) = self.threads.get_mut(&interval.thread) else { return };
        let length = length_ns(thread.end_ns, interval.start_ns);
        if interval.onset.is_gap() && length > self.facts.reported_ns {
            let gap = Gap {
                start: thread.end_ns,
                end: interval.start_ns,
                length,
                switched: thread.succeeded || switched(interval),
            };
            let known = self.facts.threads.get(&interval.thread);
            if length >= PART_NS && !thread.succeeded && not_kept(interval) {
                thread.lost.push(length);
            }
            thread.add_gap(&gap, known, self.facts);
            if let Some(finder) = &mut self.quota
                && gap.may_be_quota(known, self.facts.quota, interval)
            {
                finder.push(gap.start, gap.end);
            }
            let stayed = thread.cpu == interval.cpu && interval.onset == IntervalStart::Gap;
            // Where only long gaps are known, what is to be expected of ticks is not.
            if stayed
                && thread.watched
                && !gap.switched
                && let Some(cpu) = self.cpus.get_mut(&interval.cpu)
            {
                cpu.add_gap(&gap, interval.evidence.cleared);
            }
        }
        thread.cpu = interval.cpu;
        thread.end_ns = interval.end_ns;
        thread.watched = is_watched(interval);
        thread.succeeded = false;
    }

    pub fn finish(self) -> Patterns {
        let mut patterns = Patterns {
            quota_most: self.quota.as_ref().map(QuotaFinder::most),
            ..Patterns::default()
        };
        patterns.quota = self.quota.and_then(QuotaFinder::finish);
        for (number, cpu) in self.cpus {
            // Ticks of a slow rate lie on the grid of a fast one, seldom: the fastest rate whose
            // points mostly have a gap is the right one.
            let found = cpu.ticks.into_iter().filter_map(GridFinder::finish).next();
            let tick = match cpu.clocked {
                Some(gaps) => Some(Ticks::Clocked(Box::new(gaps))),
                None => found.map(Ticks::Found),
            };
            patterns.repeats.insert(number, cpu.repeats.finish());
            patterns.kept.insert(number, cpu.kept);
            if let Some(tick) = tick {
                patterns.ticks.insert(number, tick);
            }
        }
        for (number, thread) in self.threads {
            if let Some(limit) = self.facts.rt_limit {
                let found = thread.throttled.finish(limit, longest_tick_ns(self.facts));
                patterns.throttlings.insert(number, found);
                patterns.lost.insert(number, thread.lost);
            }
            if let Some(grid) = thread.replenished.and_then(GridFinder::finish) {
                patterns.replenished.insert(number, grid);
            }
        }
        patterns
    }
}

impl Patterns {
    pub fn ticks(&self) -> impl Iterator<Item = TickFound> + '_ {
        self.ticks.iter().filter(|(_, ticks)| ticks.show()).map(|(cpu, ticks)| {
            let (period_ns, seen_per_mille) = match ticks {
                Ticks::Clocked(gaps) => (gaps.period_ns(), gaps.share_per_mille()),
                Ticks::Found(grid) => (grid.period_ns.unsigned_abs(), grid.share_per_mille()),
            };
            TickFound { cpu: *cpu, period_ns, seen_per_mille, confidence: ticks.confidence() }
        })
    }

    /// Gaps that are no ticks and come back at a fixed distance.
    pub fn repeats(&self) -> impl Iterator<Item = RepeatFound> + '_ {
        self.repeats.iter().flat_map(|(cpu, repeats)| {
            let found =
                |(from_ns, to_ns, period_ns)| RepeatFound { cpu: *cpu, from_ns, to_ns, period_ns };
            repeats.iter().map(found)
        })
    }
}

struct Gap {
    start: i64,
    end: i64,
    length: u64,
    switched: bool,
}

impl Gap {
    fn may_be_quota(
        &self,
        thread: Option<&ThreadFacts>,
        quota: Option<Quota>,
        interval: &Interval,
    ) -> bool {
        quota.is_some_and(|quota| may_be_quota(thread, self.length, quota)) && not_kept(interval)
    }
}

pub(super) fn may_be_quota(thread: Option<&ThreadFacts>, length: u64, quota: Quota) -> bool {
    let ordinary = thread
        .and_then(|thread| thread.policy)
        .is_none_or(|policy| matches!(policy, Policy::Other(_) | Policy::Batch | Policy::Idle));
    // A thread that also waits for a competitor may come back a period later.
    let periods = (length / quota.period_ns.max(1)).saturating_sub(1);
    ordinary && length >= STOPPED_NS && periods <= quota.throttled
}

pub(super) fn may_be_budget(reservation: (u64, u64), length: u64) -> bool {
    let (budget, period) = reservation;
    // The budget is taken at the tick, so that much may be overdrawn and paid back later.
    length >= (period.saturating_sub(budget) / 4).max(STOPPED_NS)
        && length <= period.saturating_mul(2)
}

/// Whether a gap of this length may be a throttling: it is not longer than what the kernel keeps from
/// real-time threads, but that the kernel looks at each tick.
pub(super) fn may_be_throttling(
    policy: Option<Policy>,
    limit: RtLimit,
    length: u64,
    tick_ns: u64,
) -> bool {
    let stop = limit.period_ns.saturating_sub(limit.runtime_ns);
    let real_time = matches!(policy, Some(Policy::Fifo(_) | Policy::RoundRobin(_)));
    let most = stop.saturating_add(tick_ns).saturating_add(stop / LATE_PARTS);
    real_time && stop > 0 && length >= stop.saturating_sub(stop / SHORT_PARTS) && length <= most
}

/// A throttling is shorter by at most one part in the first number, and later by one in the second.
const SHORT_PARTS: u64 = 5;
const LATE_PARTS: u64 = 50;
const MOST_TICK_NS: u64 = 10_000_000;

/// The distance of the kernel's ticks, or the longest that there is.
pub(super) fn longest_tick_ns(facts: &RunFacts) -> u64 {
    let known = facts.tick_clock.map(|clock| clock.period_ns);
    known.or(facts.tick_hz.map(tick_ns)).unwrap_or(MOST_TICK_NS)
}

/// Whether the thread itself found out that it had been off the CPU.
fn switched(interval: &Interval) -> bool {
    interval
        .evidence
        .counted
        .is_some_and(|counted| counted.involuntary > 0 || counted.voluntary > 0)
}

/// Whether the thread was watched while it ran: intervals of no length are the edges of gaps of which
/// nothing else is known.
fn is_watched(interval: &Interval) -> bool {
    interval.start_ns < interval.end_ns
}

fn not_kept(interval: &Interval) -> bool {
    interval.evidence.cleared != Some(false)
}

impl Thread {
    fn new(interval: &Interval, facts: &RunFacts) -> Thread {
        let reservation = facts.threads.get(&interval.thread).and_then(|thread| thread.reservation);
        Thread {
            cpu: interval.cpu,
            end_ns: interval.end_ns,
            watched: is_watched(interval),
            succeeded: false,
            throttled: Candidates::default(),
            lost: LostTime::default(),
            replenished: reservation
                .and_then(|(_, period)| GridFinder::new(period, REPLENISHED_ONE_IN)),
        }
    }

    fn add_gap(&mut self, gap: &Gap, known: Option<&ThreadFacts>, facts: &RunFacts) {
        if let Some(finder) = &mut self.replenished
            && known.and_then(|k| k.reservation).is_some_and(|r| may_be_budget(r, gap.length))
        {
            finder.push_expected(gap.end);
        }
        let policy = known.and_then(|known| known.policy);
        let tick_ns = longest_tick_ns(facts);
        let may_be = |limit| may_be_throttling(policy, limit, gap.length, tick_ns);
        if facts.rt_limit.is_some_and(may_be) {
            self.throttled.push(gap.start, gap.length);
        }
    }
}

impl Cpu {
    fn new(facts: &RunFacts, cpu: u32) -> Cpu {
        let clocked = facts.tick_clock.and_then(|clock| TickGaps::new(clock, cpu));
        let finders = |rates: &[u32], one_in: u64| -> Vec<GridFinder> {
            let finder = |hz: &u32| GridFinder::new(tick_ns(*hz), one_in);
            rates.iter().filter_map(finder).collect()
        };
        let ticks = match facts.tick_hz {
            _ if clocked.is_some() => Vec::new(),
            Some(hz) => finders(&[hz], TICKS_KNOWN),
            None => finders(&TICK_RATES, TICKS_GUESSED),
        };
        Cpu {
            occupant: None,
            clocked,
            ticks,
            kept: Sizes::default(),
            repeats: RepeatFinder::default(),
        }
    }

    fn pass(&mut self, ns: u64) {
        self.ticks.iter_mut().for_each(|finder| finder.pass(ns));
        self.clocked.iter_mut().for_each(|gaps| gaps.pass(ns));
    }

    fn add_gap(&mut self, gap: &Gap, cleared: Option<bool>) {
        let mut on_grid = self.clocked.as_mut().is_some_and(|gaps| gaps.push(gap.start, gap.end));
        for finder in &mut self.ticks {
            finder.push(gap.start);
            on_grid |= finder.holds(gap.start);
        }
        if !on_grid && cleared != Some(true) {
            self.kept.push(gap.length);
            self.repeats.push(gap.start, gap.length);
        }
    }
}

/// Distance of ticks at this rate, ns, rounded as the kernel does.
pub(super) fn tick_ns(hz: u32) -> u64 {
    let hz = u64::from(hz.max(1));
    (1_000_000_000 + hz / 2) / hz
}
