//! What a run looks at itself: limits that end it, and limits whose excesses are counted one by one.
//!
//! Owns: the limits, their exact counts, and the hit that ended a run.
//! Must not: decide whether a run passed; `measure::gates` does.
//!
//! # How a limit ends a run
//!
//! `workload::guard` has the limits that a run watches itself. The recorder compares where a gap or a wake-up is
//! counted, which is off its loop; the first one beyond sets the stop flag and rings the bell (`notifier.rs`) on
//! which the main thread waits, also for SIGUSR1. `measure::gates` judges all limits in integers: percentiles by
//! counts of what was beyond, made sample by sample, in which a lost interval stands with the lateness at which
//! it could have been served. `latency` and `noise` are parsers (`cli::peers`, a table of letters each) that make
//! the same `RunSpec` as `run`.

use hourglass_time::Span;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    pub stop_on_gap: Option<Span>,
    pub stop_on_latency: Option<Span>,
    /// Gaps and wake-ups beyond each of these are counted, exactly.
    pub counted: Vec<Span>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HitKind {
    Gap,
    Latency,
}

/// What ended a run: the first gap or wake-up beyond a limit that ends it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitHit {
    pub kind: HitKind,
    /// CPU on which the thread ran afterwards.
    pub cpu: u32,
    /// When it was over, on the counter.
    pub end: u64,
    /// Its length or lateness, in ticks.
    pub ticks: u64,
}

/// Exact counts of what was beyond each of a few limits. Made before the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LimitCounts {
    limits: Vec<(u64, u64)>,
    period_ns: Option<u64>,
}

impl LimitCounts {
    /// Nothing yet. With `period_ns`, what is later than that stands for the periods that it
    /// cost, too: each counts with the lateness at which it could have been served.
    pub fn new(limits: &[Span], period_ns: Option<u64>) -> LimitCounts {
        let limits = limits.iter().map(|limit| (limit.nanos_or_zero(), 0)).collect();
        LimitCounts { limits, period_ns: period_ns.filter(|period| *period > 0) }
    }

    #[inline]
    pub(crate) fn record(&mut self, ns: u64) {
        for (limit, count) in &mut self.limits {
            if ns > *limit {
                let lost = self.period_ns.map_or(0, |period| (ns - *limit - 1) / period);
                *count = count.saturating_add(lost).saturating_add(1);
            }
        }
    }

    /// How many were beyond `limit`; `None` where it was not counted.
    pub fn beyond(&self, limit: Span) -> Option<u64> {
        let wanted = limit.nanos_or_zero();
        self.limits.iter().find(|(limit, _)| *limit == wanted).map(|(_, count)| *count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_at_the_limit_is_not_beyond() {
        let mut excess = LimitCounts::new(&[Span::from_nanos(100)], None);
        [99, 100, 101, 5_000].into_iter().for_each(|ns| excess.record(ns));
        assert_eq!(excess.beyond(Span::from_nanos(100)), Some(2));
        assert_eq!(excess.beyond(Span::from_nanos(99)), None);
    }

    /// Coordinated omission: against counting each period by itself.
    #[test]
    fn lost_periods_count_with_the_lateness_they_would_have_had() {
        for limit in [0, 1, 40, 99, 100, 101, 350] {
            for late in 0..1_000 {
                let mut excess = LimitCounts::new(&[Span::from_nanos(limit)], Some(100));
                excess.record(late);
                let each = (0..).map_while(|lost| late.checked_sub(lost * 100));
                let wanted = each.filter(|late| *late > limit.unsigned_abs()).count();
                let found = excess.beyond(Span::from_nanos(limit));
                assert_eq!(found, Some(wanted as u64), "{late} ns, limit {limit} ns");
            }
        }
    }
}
