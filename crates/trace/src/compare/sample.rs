//! What a comparison needs of a run: gaps and wake-ups with the part of the run they fell into, and
//! counts.

use std::collections::BTreeMap;

use crate::Interval;
use hourglass_documents::document::{CauseReport, ThreadReport};

use super::quantity::{Quantity, Value};
use crate::statistics::quantile_of;

/// Into how many parts of equal length a run is cut. Parts must be longer than what makes
/// neighbours alike, and enough of them that their spread is known (batch means, Jain 1991,
/// section 25.5.2).
pub const PARTS: usize = 20;
const NS_PER_S: f64 = 1e9;
const PER_CENT: f64 = 100.0;
const PS_PER_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MeasuredValue {
    pub(super) ns: u64,
    pub(super) part: u8,
}

/// Periods and passes of a run, which have no time of their own.
#[derive(Clone, Debug, Default, PartialEq)]
struct RunTotals {
    periods: Option<(u64, u64)>,
    work: Option<u64>,
    wall_ns: u64,
    causes: BTreeMap<String, u64>,
}

#[derive(Clone, Debug)]
pub struct RunSample {
    elapsed_ns: u64,
    last_end: BTreeMap<u32, i64>,
    /// Lengths of gaps in the order in which they were found.
    pub(super) gaps: Vec<MeasuredValue>,
    /// Time of each part in which a thread ran or wanted to, summed over threads.
    pub(super) watched_ns: [u64; PARTS],
    pub(super) latencies: Vec<MeasuredValue>,
    /// Whether the parts of `latencies` mean anything.
    pub(super) latencies_in_order: bool,
    counts: RunTotals,
}

impl RunSample {
    /// A sample of a run of `elapsed_ns`, without measurements yet.
    pub fn new(elapsed_ns: u64) -> RunSample {
        RunSample {
            elapsed_ns: elapsed_ns.max(PARTS as u64),
            last_end: BTreeMap::new(),
            gaps: Vec::new(),
            watched_ns: [0; PARTS],
            latencies: Vec::new(),
            latencies_in_order: true,
            counts: RunTotals::default(),
        }
    }

    /// Takes the next interval. Those of a thread must come in their order.
    pub fn push(&mut self, interval: &Interval) {
        let before = self.last_end.insert(interval.thread, interval.end_ns);
        if let Some(end) = before.filter(|_| interval.onset.is_gap()) {
            let ns = interval.start_ns.saturating_sub(end).max(0).unsigned_abs();
            self.gaps.push(MeasuredValue { ns, part: self.part_at(end) as u8 });
            self.watch(end, interval.start_ns);
        }
        self.watch(interval.start_ns, interval.end_ns);
    }

    /// Takes the lateness of a thread's wake-ups, in picoseconds and in the order of waking. They
    /// are as far apart as periods are, so that equal numbers of them fill equal parts.
    pub fn push_latencies(&mut self, ps: &[u64]) {
        let part = |at: usize| (at * PARTS / ps.len().max(1)) as u8;
        let late = ps.iter().enumerate();
        self.latencies
            .extend(late.map(|(at, ps)| MeasuredValue { ns: ps / PS_PER_NS, part: part(at) }));
    }

    /// Takes the lateness of a thread's wake-ups where their order is not known. One run then gives
    /// them no interval.
    pub fn push_latencies_without_order(&mut self, ps: &[u64]) {
        self.push_latencies(ps);
        self.latencies_in_order = false;
    }

    /// Takes what is only counted: periods, work.
    pub fn push_thread(&mut self, thread: &ThreadReport) {
        let counts = &mut self.counts;
        counts.wall_ns = counts.wall_ns.max(thread.wall_ns);
        if let Some(found) = &thread.deadlines {
            let failed = found.missed.saturating_add(found.lost);
            let (sum, all) = counts.periods.unwrap_or_default();
            let all = all.saturating_add(failed).saturating_add(found.hit);
            counts.periods = Some((sum.saturating_add(failed), all));
        }
        if let Some(work) = thread.work {
            counts.work = Some(counts.work.unwrap_or(0).saturating_add(work));
        }
    }

    pub fn push_causes(&mut self, causes: &[CauseReport]) {
        for cause in causes {
            let sum = self.counts.causes.entry(cause.cause.clone()).or_default();
            *sum = sum.saturating_add(cause.total_ns);
        }
    }

    /// Leaves out gaps that are not longer than `ns`: two runs have the same gaps only above the
    /// larger of their thresholds.
    pub fn drop_gaps_to(&mut self, ns: u64) {
        self.gaps.retain(|gap| gap.ns > ns);
    }

    /// Lengths of gaps (ns, ascending), and how often each was found.
    pub fn gap_counts(&self) -> BTreeMap<u64, u64> {
        counted(&self.gaps)
    }

    /// Latencies (ns, ascending), and how often each was found.
    pub fn latency_counts(&self) -> BTreeMap<u64, u64> {
        counted(&self.latencies)
    }

    /// Periods not finished in time, and all.
    pub(super) fn periods(&self) -> Option<(u64, u64)> {
        self.counts.periods
    }

    pub fn values(&self) -> Vec<Value> {
        let watched = self.watched_ns.iter().sum::<u64>() as f64;
        let mut values = Vec::new();
        let mut add = |quantity, value: Option<f64>, count| {
            let value = value.filter(|value| value.is_finite());
            values.push(Value { quantity, value, count });
        };
        if watched > 0.0 {
            let sorted = sorted(&self.gaps);
            let count = sorted.len() as u64;
            for quantity in &Quantity::PLAIN[..4] {
                add(quantity.clone(), percentile(&sorted, quantity), count);
            }
            let lost: f64 = sorted.iter().map(|ns| *ns as f64).sum();
            add(Quantity::GapRate, Some(count as f64 * NS_PER_S / watched), count);
            add(Quantity::GapLost, Some(lost * PER_CENT / watched), count);
        }
        if !self.latencies.is_empty() {
            let sorted = sorted(&self.latencies);
            for quantity in &Quantity::PLAIN[6..10] {
                add(quantity.clone(), percentile(&sorted, quantity), sorted.len() as u64);
            }
        }
        if let Some((failed, all)) = self.counts.periods {
            add(Quantity::DeadlinesFailed, Some(failed as f64 * PER_CENT / all as f64), all);
        }
        if let Some(work) = self.counts.work {
            let rate = work as f64 * NS_PER_S / self.counts.wall_ns as f64;
            add(Quantity::Work, Some(rate), work);
        }
        for (cause, lost) in &self.counts.causes {
            let share = *lost as f64 * PER_CENT / watched;
            add(Quantity::CauseLost(cause.clone()), Some(share), 0);
        }
        values
    }

    fn part_at(&self, ns: i64) -> usize {
        let at = u128::from(ns.max(0).unsigned_abs()) * PARTS as u128;
        usize::try_from(at / u128::from(self.elapsed_ns)).unwrap_or(PARTS).min(PARTS - 1)
    }

    fn start_of(&self, part: usize) -> i64 {
        let at = u128::from(self.elapsed_ns) * part as u128;
        i64::try_from(at.div_ceil(PARTS as u128)).unwrap_or(i64::MAX)
    }

    /// Adds a stretch of time to the parts that it covers.
    fn watch(&mut self, from: i64, to: i64) {
        let mut from = from.max(0);
        while from < to {
            let part = self.part_at(from);
            let end = if part + 1 == PARTS { to } else { self.start_of(part + 1).min(to) };
            let end = end.max(from.saturating_add(1));
            let sum = &mut self.watched_ns[part];
            *sum = sum.saturating_add(end.saturating_sub(from).unsigned_abs());
            from = end;
        }
    }
}

fn counted(measured: &[MeasuredValue]) -> BTreeMap<u64, u64> {
    let mut counts = BTreeMap::new();
    for one in measured {
        *counts.entry(one.ns).or_default() += 1;
    }
    counts
}

fn sorted(measured: &[MeasuredValue]) -> Vec<u64> {
    let mut sorted: Vec<u64> = measured.iter().map(|one| one.ns).collect();
    sorted.sort_unstable();
    sorted
}

/// A percentile, or the maximum for other quantities.
fn percentile(sorted: &[u64], quantity: &Quantity) -> Option<f64> {
    quantile_of(sorted, quantity.percentile().unwrap_or(1.0)).map(|ns| ns as f64)
}
