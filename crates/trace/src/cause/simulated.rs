//! Causes of the gaps of a simulation, which are known: every interval of every thread is in the trace, and the
//! simulator says in which way a thread left its CPU.

use std::collections::BTreeMap;

use hourglass_documents::Cause;

use super::gap::{AttributedGap, CauseBasis, GapOccupants, OccupantShare, Successor, length_ns};
use super::indications::{Indication, IndicationSet};
use crate::Interval;

/// The gaps of a simulated trace that have a cause, in order of thread and then of end. `is_reserved` says whether a
/// thread runs within a budget.
///
/// The simulator counts an involuntary switch where another thread preempted, a voluntary one where the thread waited,
/// and none where a budget or the limit on real-time threads took the CPU from it. Traces of earlier versions count nothing.
pub fn attribute_simulated(
    intervals: &[Interval],
    is_reserved: impl Fn(u32) -> bool,
) -> Vec<AttributedGap> {
    let mut cpus: BTreeMap<u32, Vec<&Interval>> = BTreeMap::new();
    for interval in intervals {
        cpus.entry(interval.cpu).or_default().push(interval);
    }
    let mut last: BTreeMap<u32, &Interval> = BTreeMap::new();
    let mut gaps = Vec::new();
    for interval in intervals {
        let Some(before) = last.insert(interval.thread, interval) else { continue };
        if !interval.onset.is_gap() {
            continue;
        }
        let ran = cpus.get(&before.cpu).map_or(&[][..], Vec::as_slice);
        let occupants = occupants(ran, before, interval);
        let known = cause(before, interval, is_reserved(interval.thread), &occupants);
        let Some((cause, mut evidence)) = known else { continue };
        if occupants.longest().is_some() {
            evidence.insert(Indication::OtherThreadSeen);
        }
        if before.cpu != interval.cpu {
            evidence.insert(Indication::CpuChanged);
        }
        gaps.push(AttributedGap {
            thread: interval.thread,
            cpu_before: before.cpu,
            cpu_after: interval.cpu,
            start_ns: before.end_ns,
            end_ns: interval.start_ns,
            cause,
            basis: CauseBasis::Seen,
            evidence,
            to_thread: occupants.longest().map(|share| share.who),
            occupants,
            composition: None,
        });
    }
    gaps.sort_by_key(|gap| (gap.thread, gap.end_ns));
    gaps
}

fn cause(
    before: &Interval,
    interval: &Interval,
    reserved: bool,
    occupants: &GapOccupants,
) -> Option<(Cause, IndicationSet)> {
    let none = IndicationSet::NONE;
    let counted = interval.evidence.counted;
    match counted.map(|counted| (counted.involuntary > 0, counted.voluntary > 0)) {
        Some((_, true)) => Some((Cause::ContextSwitchVoluntary, none)),
        Some((false, false)) if reserved => Some((Cause::DeadlineBudget, none)),
        Some((false, false)) => Some((Cause::RtThrottling, none)),
        _ if occupants.longest().is_some() => Some(match counted {
            Some(_) => (Cause::ContextSwitchInvoluntary, none),
            None => (Cause::ContextSwitch, none),
        }),
        _ if before.cpu != interval.cpu => Some((Cause::Migration, none)),
        // What a switch or a tick costs is not in the trace.
        _ => None,
    }
}

/// Who of `ran`, the intervals of the CPU in order, had it in the gap.
fn occupants(ran: &[&Interval], before: &Interval, interval: &Interval) -> GapOccupants {
    let (from, to) = (before.end_ns, interval.start_ns);
    let first = ran.partition_point(|other| other.end_ns <= from);
    let mut times: BTreeMap<u32, u64> = BTreeMap::new();
    for other in ran.iter().skip(first).take_while(|other| other.start_ns < to) {
        let ns = length_ns(other.start_ns.max(from), other.end_ns.min(to));
        let sum = times.entry(other.thread).or_default();
        *sum = sum.saturating_add(ns);
    }
    let share = |(thread, ns)| OccupantShare { who: Successor::OfRun(thread), ns };
    GapOccupants::from_shares(times.into_iter().filter(|(_, ns)| *ns > 0).map(share))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{CounterDeltas, Evidence, IntervalStart};

    fn gap(from: i64, to: i64, counted: Option<(u8, u8)>) -> Interval {
        let counted = counted.map(|(involuntary, voluntary)| CounterDeltas {
            involuntary,
            voluntary,
            faults: 0,
        });
        let evidence = Evidence { cleared: None, counted };
        Interval { evidence, ..Interval::new(0, 0, from, to, IntervalStart::Gap) }
    }

    fn other(thread: u32, from: i64, to: i64) -> Interval {
        Interval::new(thread, 0, from, to, IntervalStart::Wait)
    }

    /// "3.00 ms, short, or no cause known", twenty times, of a trace that has every interval of every task.
    #[test]
    fn who_took_the_cpu_is_named() {
        let trace = [
            other(0, 0, 10),
            other(1, 10, 13),
            other(2, 13, 20),
            gap(20, 25, Some((1, 0))),
            other(1, 25, 30),
            gap(30, 40, Some((0, 1))),
            gap(50, 60, Some((0, 0))),
            other(1, 60, 65),
            gap(65, 70, None),
            gap(71, 72, Some((1, 0))),
        ];
        let gaps = attribute_simulated(&trace, |thread| thread == 0);
        let found: Vec<_> = gaps.iter().map(|gap| (gap.end_ns, gap.cause)).collect();
        let wanted = [
            (20, Cause::ContextSwitchInvoluntary),
            (30, Cause::ContextSwitchVoluntary),
            (50, Cause::DeadlineBudget),
            (65, Cause::ContextSwitch),
        ];
        assert_eq!(found, wanted);
        let ran: Vec<_> = gaps[0].occupants.iter().map(|share| (share.who, share.ns)).collect();
        assert_eq!(ran, [(Successor::OfRun(2), 7), (Successor::OfRun(1), 3)]);
        assert!(gaps.iter().all(|gap| gap.confidence() == 1.0));
        let throttled = attribute_simulated(&trace, |_| false);
        assert!(throttled.iter().any(|gap| gap.cause == Cause::RtThrottling));
    }
}
