//! Intervals and kernel events merged into gaps with causes.

use std::iter::Peekable;

use crate::{Interval, KernelEvent};

use super::attribution::{Attribution, AttributionCounts, RanByCause};
use super::facts::RunFacts;
use super::gap::AttributedGap;
use super::trace_patterns::{Patterns, TracePatterns};

/// Reads a trace once and gives what its gaps have in common.
///
/// # Errors
/// The first of `intervals` that cannot be read.
pub fn survey<E>(
    facts: &RunFacts,
    intervals: impl IntoIterator<Item = Result<Interval, E>>,
) -> Result<Patterns, E> {
    let mut survey = TracePatterns::new(facts);
    for interval in intervals {
        survey.push(&interval?);
    }
    Ok(survey.finish())
}

/// Gives each gap of a trace its cause: `intervals` in order of start, `events` in order of time
/// (none where the kernel was not traced), `patterns` from [`survey`] of the same trace.
pub fn attribute<'a, I, K, E>(
    facts: &'a RunFacts,
    patterns: &'a Patterns,
    intervals: I,
    events: K,
) -> AttributedGaps<'a, I::IntoIter, K::IntoIter>
where
    I: IntoIterator<Item = Result<Interval, E>>,
    K: IntoIterator<Item = Result<KernelEvent, E>>,
{
    AttributedGaps {
        attribution: Attribution::new(facts, patterns),
        intervals: intervals.into_iter(),
        events: events.into_iter().peekable(),
        pending: None,
    }
}

/// The gaps of a trace with their causes, in order of their ends.
///
/// An interval that cannot be read is given as an error and ends the gaps. An event that cannot be
/// read is given as an error too; the gaps that follow get their causes without events.
pub struct AttributedGaps<'a, I, K: Iterator> {
    attribution: Attribution<'a>,
    intervals: I,
    events: Peekable<K>,
    pending: Option<AttributedGap>,
}

impl<I, K: Iterator> AttributedGaps<'_, I, K> {
    pub fn remarks(&self) -> AttributionCounts {
        self.attribution.remarks()
    }

    pub fn ran(&self) -> &RanByCause {
        self.attribution.ran()
    }
}

impl<I, K, E> AttributedGaps<'_, I, K>
where
    K: Iterator<Item = Result<KernelEvent, E>>,
{
    /// Gives the attribution all events that it wants before `interval`.
    fn catch_up(&mut self, interval: &Interval) -> Option<E> {
        let to = self.attribution.wants_events_to(interval);
        let due = |event: &Result<KernelEvent, E>| event.as_ref().map_or(true, |e| e.ns <= to);
        while let Some(event) = self.events.next_if(due) {
            match event {
                Ok(event) => self.attribution.event(&event),
                Err(error) => {
                    self.attribution.lose_events();
                    return Some(error);
                }
            }
        }
        None
    }
}

impl<I, K, E> Iterator for AttributedGaps<'_, I, K>
where
    I: Iterator<Item = Result<Interval, E>>,
    K: Iterator<Item = Result<KernelEvent, E>>,
{
    type Item = Result<AttributedGap, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(gap) = self.pending.take() {
            return Some(Ok(gap));
        }
        loop {
            let interval = match self.intervals.next()? {
                Ok(interval) => interval,
                Err(error) => return Some(Err(error)),
            };
            let failed = self.catch_up(&interval);
            let gap = self.attribution.push(&interval);
            if let Some(error) = failed {
                self.pending = gap;
                return Some(Err(error));
            }
            if let Some(gap) = gap {
                return Some(Ok(gap));
            }
        }
    }
}
