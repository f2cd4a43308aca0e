//! Running the inference over planted traces, and comparing.

use std::collections::BTreeMap;
use std::convert::Infallible;

use hourglass_documents::{Cause, Policy};
use hourglass_trace::cause::{
    self, AttributedGap, AttributionCounts, Patterns, RunFacts, ThreadFacts,
};
use hourglass_trace::{Interval, KernelEvent};

use crate::generator::Planted;

/// Facts about threads that never wait, of these policies.
pub(crate) fn facts(policies: &[Policy]) -> RunFacts {
    let thread = |policy: &Policy| ThreadFacts {
        policy: Some(*policy),
        never_waits: true,
        ..ThreadFacts::default()
    };
    RunFacts {
        threads: (0..).zip(policies.iter().map(thread)).collect(),
        tick_hz: Some(250),
        virtual_machine: Some(true),
        ..RunFacts::default()
    }
}

/// The gaps with their causes, and how they were found.
pub(crate) fn attributed(
    facts: &RunFacts,
    intervals: &[Interval],
    events: &[KernelEvent],
) -> (Vec<AttributedGap>, Patterns, AttributionCounts) {
    let read = || intervals.iter().copied().map(Ok::<_, Infallible>);
    let Ok(patterns) = cause::survey(facts, read());
    let mut gaps = cause::attribute(facts, &patterns, read(), events.iter().copied().map(Ok));
    let found: Vec<AttributedGap> = gaps
        .by_ref()
        .map(|gap| {
            let Ok(gap) = gap;
            gap
        })
        .collect();
    let remarks = gaps.remarks();
    (found, patterns, remarks)
}

/// Precision and recall of a cause.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Score {
    pub(crate) precision: f64,
    pub(crate) recall: f64,
    pub(crate) planted: usize,
}

/// Compares by the start of each gap. `same` says whether a cause counts as the one asked for.
pub(crate) fn score(
    found: &[AttributedGap],
    planted: &[Planted],
    right: impl Fn(&Planted) -> bool,
    named: impl Fn(&AttributedGap) -> bool,
) -> Score {
    let truth: BTreeMap<i64, bool> = planted.iter().map(|p| (p.start, right(p))).collect();
    let mut both = 0;
    let mut claimed = 0;
    for gap in found {
        if named(gap) {
            claimed += 1;
            both += usize::from(truth.get(&gap.start_ns) == Some(&true));
        }
    }
    let there = truth.values().filter(|right| **right).count();
    let share = |part: usize, whole: usize| part as f64 / whole.max(1) as f64;
    Score { precision: share(both, claimed), recall: share(both, there), planted: there }
}

/// The score of one cause.
pub(crate) fn of(found: &[AttributedGap], planted: &[Planted], cause: Cause) -> Score {
    score(found, planted, |p| p.cause == cause, |gap| gap.cause == cause)
}
