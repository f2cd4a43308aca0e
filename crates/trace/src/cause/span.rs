//! One span of a program that marks its own, and why its thread was off the CPU: no trace, no neighbours, the
//! rules of the judge.
//!
//! Patterns that only many gaps show (ticks, periods) are not there. Nothing is said of what the thread's own
//! counters cannot show: a span in which no switch was counted has no cause here.

use crate::IntervalStart;
use hourglass_documents::Cause;

use super::classify::{Case, MOST_QUOTA, ThrottlePatterns};
use super::facts::{Quota, RunFacts, ThreadFacts};
use super::gap::CauseBasis;
use super::indications::{Indication, IndicationSet};
use super::throttled::OthersShare;
use super::trace_patterns::{longest_tick_ns, may_be_quota, may_be_throttling};

/// A wait was counted in a span that may wait: or it was a stop, which the thread's counters do not tell apart.
const WAITED: f64 = 0.9;
/// Confidence for a wait of which the host stole at least half, from the thread or from others while it waited.
const STOLEN: f64 = 0.5;
/// The quota's time of stops is not known, or not for all of the loss: it may be the quota, or not.
const QUOTA_UNKNOWN: f64 = 0.5;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpanSeen {
    pub lost_ns: u64,
    pub involuntary: u64,
    pub voluntary: u64,
    /// Major page faults: the kernel counts a fault so that had to wait and was tried again. The others keep the CPU.
    pub major_faults: u64,
    pub cpu_changed: bool,
    /// Whether the kernel cleared the critical section; `None` without one.
    pub cleared: Option<bool>,
    /// How long quotas stopped its control groups meanwhile, ns; `None` without a quota.
    pub throttled_ns: Option<u64>,
    /// Whether the thread was under other quotas for a part of it, so that not all that stopped it is counted.
    pub other_quotas: bool,
    /// What a host stole meanwhile, as far as the kernel counted it, ns: from a thread that has its CPU it looks like a wait.
    pub stolen_ns: u64,
}

/// Why, how that is known, and what speaks for it: by the rules that gaps of a run are judged by.
///
/// `facts` may name a limit of real-time threads and a quota; of `thread` the policy counts, and whether it
/// waits by itself within the span (`waits_unseen`).
pub fn judge_span(
    facts: &RunFacts,
    thread: &ThreadFacts,
    seen: &SpanSeen,
) -> (Cause, CauseBasis, IndicationSet) {
    let signs = signs(seen);
    if !signs.prove_a_switch() {
        return (Cause::Unknown, CauseBasis::Inferred { confidence: 0.0 }, signs);
    }
    let case = Case {
        facts,
        thread: Some(thread),
        onset: IntervalStart::Gap,
        length: seen.lost_ns,
        kernel_evidence: None,
        switched: None,
        successor: None,
        cpu_changed: seen.cpu_changed,
        highest: false,
        stops: stops(facts, thread, seen),
        tick: None,
        tick_due: false,
        ticks_known: false,
        periodic: false,
        too_short: false,
        ticks_missing: false,
        quiet: false,
        interrupts_share: None,
        signs,
    };
    let verdict = case.classify();
    let at_most = match verdict.cause {
        Cause::ContextSwitchVoluntary | Cause::Stopped if is_stolen(seen) => STOLEN,
        Cause::ContextSwitchVoluntary if thread.waits_unseen => WAITED,
        Cause::ContextSwitchInvoluntary | Cause::CgroupQuota if is_quota_unknown(thread, seen) => {
            QUOTA_UNKNOWN
        }
        _ => 1.0,
    };
    let basis = match verdict.basis.confidence() > at_most {
        true => CauseBasis::Inferred { confidence: at_most },
        false => verdict.basis,
    };
    // A thread that does not wait had its CPU but for the stop.
    let below = verdict.cause == Cause::Stopped && is_stolen(seen);
    (if below { Cause::BelowKernel } else { verdict.cause }, basis, verdict.signs)
}

/// Whether a host may have had most of the time of a wait.
fn is_stolen(seen: &SpanSeen) -> bool {
    seen.involuntary == 0 && seen.stolen_ns > 0 && seen.stolen_ns >= seen.lost_ns / 2
}

fn signs(seen: &SpanSeen) -> IndicationSet {
    let mut signs = IndicationSet::NONE;
    for (sign, holds) in [
        (Indication::Cleared, seen.cleared == Some(true)),
        (Indication::CountedInvoluntary, seen.involuntary > 0),
        (Indication::CountedVoluntary, seen.voluntary > 0),
        (Indication::NoneCounted, seen.involuntary == 0 && seen.voluntary == 0),
        (Indication::CountedFault, seen.major_faults > 0),
        (Indication::CpuChanged, seen.cpu_changed),
        (Indication::VirtualMachine, seen.stolen_ns > 0),
    ] {
        if holds {
            signs.insert(sign);
        }
    }
    signs
}

/// Whether the counts may lack stops of a quota with the length of the gap.
fn is_quota_unknown(thread: &ThreadFacts, seen: &SpanSeen) -> bool {
    // The period is not known, so that a loss of any length may be a stop.
    let any = Quota { period_ns: u64::MAX, throttled: 1, throttled_ns: None };
    seen.other_quotas && seen.involuntary > 0 && may_be_quota(Some(thread), seen.lost_ns, any)
}

/// Throttling and quotas force switches: of a loss by waits alone they are not the cause.
fn stops(facts: &RunFacts, thread: &ThreadFacts, seen: &SpanSeen) -> ThrottlePatterns {
    if seen.involuntary == 0 {
        return ThrottlePatterns::default();
    }
    let limit = facts.rt_limit.filter(|limit| {
        may_be_throttling(thread.policy, *limit, seen.lost_ns, longest_tick_ns(facts))
            && limit.part_of_others(seen.lost_ns) != OthersShare::All
    });
    let quota = facts
        .quota
        .filter(|quota| may_be_quota(Some(thread), seen.lost_ns, *quota))
        .and(seen.throttled_ns)
        .filter(|ns| *ns > 0 && *ns >= seen.lost_ns / 2);
    let (throttled, quota) = (limit.map(|_| false), quota.map(|_| MOST_QUOTA));
    ThrottlePatterns { throttled, quota, ..ThrottlePatterns::default() }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::Policy;

    use super::super::facts::RtLimit;
    use super::*;

    const MS: u64 = 1_000_000;

    fn thread(policy: Policy, waits: bool) -> ThreadFacts {
        ThreadFacts {
            policy: Some(policy),
            never_waits: !waits,
            waits_unseen: waits,
            ..ThreadFacts::default()
        }
    }

    fn seen(lost_ns: u64, involuntary: u64, voluntary: u64) -> SpanSeen {
        SpanSeen { lost_ns, involuntary, voluntary, cleared: Some(true), ..SpanSeen::default() }
    }

    fn facts() -> RunFacts {
        let rt_limit =
            Some(RtLimit { runtime_ns: 950 * MS, period_ns: 1_000 * MS, ..RtLimit::default() });
        let quota = Some(Quota { period_ns: 100 * MS, throttled: 1, throttled_ns: None });
        RunFacts { rt_limit, quota, ..RunFacts::default() }
    }

    /// The rules of runs: a forced switch is one, a wait of a thread that never waits is a stop, 50 ms of a
    /// real-time thread are throttling's, and what the quota's own count covers is the quota's.
    #[test]
    fn spans_are_judged_as_gaps_are() {
        let other = thread(Policy::Other(0), true);
        let busy = thread(Policy::Other(0), false);
        let fifo = thread(Policy::Fifo(10), false);
        let cause = |thread: &ThreadFacts, seen: SpanSeen| {
            let (cause, basis, _) = judge_span(&facts(), thread, &seen);
            (cause, basis.confidence())
        };
        assert_eq!(cause(&other, seen(4 * MS, 1, 0)), (Cause::ContextSwitchInvoluntary, 1.0));
        assert_eq!(cause(&other, seen(4 * MS, 0, 1)), (Cause::ContextSwitchVoluntary, WAITED));
        assert_eq!(cause(&busy, seen(4 * MS, 0, 1)).0, Cause::Stopped);
        let read = SpanSeen { major_faults: 1, ..seen(4 * MS, 0, 1) };
        assert_eq!(cause(&busy, read).0, Cause::PageFault);
        assert_eq!(cause(&fifo, seen(50 * MS, 1, 0)), (Cause::RtThrottling, 0.27));
        assert_eq!(cause(&fifo, seen(20 * MS, 1, 0)).0, Cause::ContextSwitchInvoluntary);
        let stopped = |ns| SpanSeen { throttled_ns: Some(ns), ..seen(60 * MS, 1, 0) };
        assert_eq!(cause(&other, stopped(58 * MS)), (Cause::CgroupQuota, MOST_QUOTA));
        assert_eq!(cause(&other, stopped(20 * MS)).0, Cause::ContextSwitchInvoluntary);
        // A quota does not stop a real-time thread, and throttling lasts 50 ms and a tick at most.
        let longer = SpanSeen { throttled_ns: Some(68 * MS), ..seen(70 * MS, 1, 0) };
        assert_eq!(cause(&fifo, longer).0, Cause::ContextSwitchInvoluntary);
    }

    /// Where the counts are of other groups than those that the thread was in, neither the quota nor that it was not
    /// the quota is certain; of what no quota does nothing changes.
    #[test]
    fn counts_of_other_quotas_make_nothing_certain() {
        let (ordinary, fifo) = (thread(Policy::Other(0), true), thread(Policy::Fifo(10), true));
        let moved = |thread: &ThreadFacts, throttled_ns, lost_ns, involuntary| {
            let counts = seen(lost_ns, involuntary, 1 - involuntary);
            let seen = SpanSeen { throttled_ns, other_quotas: true, ..counts };
            let (cause, basis, _) = judge_span(&facts(), thread, &seen);
            (cause, basis.confidence())
        };
        let forced = Cause::ContextSwitchInvoluntary;
        assert_eq!(moved(&ordinary, None, 60 * MS, 1), (forced, QUOTA_UNKNOWN));
        assert_eq!(moved(&ordinary, Some(0), 60 * MS, 1), (forced, QUOTA_UNKNOWN));
        let quota = (Cause::CgroupQuota, QUOTA_UNKNOWN);
        assert_eq!(moved(&ordinary, Some(60 * MS), 60 * MS, 1), quota);
        assert_eq!(moved(&ordinary, Some(0), 20_000, 1), (forced, 1.0), "shorter than a stop");
        assert_eq!(moved(&fifo, None, 20 * MS, 1), (forced, 1.0));
        let waited = (Cause::ContextSwitchVoluntary, WAITED);
        assert_eq!(moved(&ordinary, Some(0), 60 * MS, 0), waited);
    }

    /// Time that a host steals from a running thread looks like its wait: the evidence says so.
    #[test]
    fn a_wait_within_stolen_time_is_not_certain() {
        let of = |waits, voluntary, stolen_ns| {
            let seen = SpanSeen { stolen_ns, ..seen(23 * MS, 1 - voluntary, voluntary) };
            let (cause, basis, signs) =
                judge_span(&facts(), &thread(Policy::Other(0), waits), &seen);
            assert_eq!(signs.contains(Indication::VirtualMachine), stolen_ns > 0);
            (cause, basis.confidence())
        };
        assert_eq!(of(true, 1, 0), (Cause::ContextSwitchVoluntary, WAITED));
        assert_eq!(of(true, 1, 30 * MS), (Cause::ContextSwitchVoluntary, STOLEN));
        assert_eq!(of(false, 1, 30 * MS), (Cause::BelowKernel, STOLEN));
        assert_eq!(of(false, 1, 0).0, Cause::Stopped);
        assert_eq!(of(true, 0, 30 * MS), (Cause::ContextSwitchInvoluntary, 1.0));
    }

    #[test]
    fn without_a_counted_switch_nothing_is_said() {
        let (cause, basis, signs) =
            judge_span(&facts(), &thread(Policy::Other(0), true), &seen(50 * MS, 0, 0));
        assert_eq!((cause, basis.confidence()), (Cause::Unknown, 0.0));
        assert!(signs.contains(Indication::NoneCounted));
    }
}
