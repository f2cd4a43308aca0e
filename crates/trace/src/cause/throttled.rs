//! Which long gaps of a real-time thread may be throttlings.
//!
//! The kernel throttles once in a period, for the period less the runtime. Gaps of that length that come more often
//! are the turns of a competitor; of these only such are throttlings as lie whole periods apart.

use crate::KernelEvent;
use hourglass_documents::Policy;

use super::classify::is_real_time;
use super::facts::{RtLimit, RunFacts, ThreadFacts};
use super::gap::Successor;
use super::grid::periods_apart;
use super::kernel::KernelEvidence;

/// Throttlings are a period apart within one part in this number (measured: 1.000 to 1.004 s).
const PARTS: u64 = 50;
/// Gaps of that length that are kept of a thread: three hours of throttlings.
const MOST: usize = 10_000;
/// At least this many a period apart are not chance among others that come more often.
const FEWEST: usize = 3;

/// The gaps of a thread that are as long as throttling makes them, by their starts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Candidates {
    starts: Vec<i64>,
    lost_ns: u64,
}

/// Gaps that may be throttlings, by their starts, ascending.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Throttlings {
    periodic: Vec<i64>,
    single: Vec<i64>,
}

impl Candidates {
    pub(super) fn push(&mut self, start: i64, length_ns: u64) {
        if self.starts.len() < MOST {
            self.starts.push(start);
            self.lost_ns = self.lost_ns.saturating_add(length_ns);
        }
    }

    /// `slack_ns` is the largest delay of a throttling: the kernel checks at each tick.
    pub(super) fn finish(self, limit: RtLimit, slack_ns: u64) -> Throttlings {
        let apart = |a: i64, b: i64| periods_apart(a, b, limit.period_ns, PARTS);
        let least = limit.period_ns.saturating_sub(limit.period_ns / PARTS);
        let least = least.saturating_sub(slack_ns);
        let crowded =
            |starts: &[i64]| starts.windows(2).any(|pair| pair[0].abs_diff(pair[1]) < least);
        // A throttling three periods on is among the next ones, unless they are crowded.
        let chained = |at: usize| {
            let start = self.starts[at];
            let near = |other: &&i64| start.abs_diff(**other) <= limit.period_ns.saturating_mul(4);
            let before = self.starts[..at].iter().rev().take_while(near);
            let behind = self.starts[at..].iter().skip(1).take_while(near);
            before.map(|b| (*b, start)).chain(behind.map(|b| (start, *b))).any(|(a, b)| apart(a, b))
        };
        let (periodic, single): (Vec<usize>, Vec<usize>) =
            (0..self.starts.len()).partition(|at| chained(*at));
        let starts = |places: Vec<usize>| -> Vec<i64> {
            places.into_iter().map(|at| self.starts[at]).collect()
        };
        let (periodic, single) = (starts(periodic), starts(single));
        match limit.part_of_others(self.lost_ns) {
            OthersShare::All => return Throttlings::default(),
            // Turns once in a period look as throttlings do.
            OthersShare::Some => return Throttlings { periodic: Vec::new(), single: self.starts },
            OthersShare::None => {}
        }
        match (crowded(&self.starts), crowded(&periodic)) {
            (false, _) => Throttlings { periodic, single },
            (true, false) if periodic.len() >= FEWEST => {
                Throttlings { periodic, single: Vec::new() }
            }
            _ => Throttlings::default(),
        }
    }
}

/// How much of what a thread lost other real-time threads may have had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OthersShare {
    None,
    Some,
    All,
}

impl RtLimit {
    /// Nine tenths are all: the kernel counts their time, and gaps are a little longer.
    pub(super) fn part_of_others(self, lost_ns: u64) -> OthersShare {
        match self.others_ns {
            others if others < lost_ns / 10 || others == 0 => match self.others_ended {
                true => OthersShare::Some,
                false => OthersShare::None,
            },
            others if others >= lost_ns / 10 * 9 && !self.logged => OthersShare::All,
            _ => OthersShare::Some,
        }
    }
}

/// A gap that may hold a part of a throttling is not shorter, ns: the kernel stops threads at its tick.
pub(super) const PART_NS: u64 = 1_000_000;
/// The time of two switches besides the turn of a competitor, ns.
const SWITCHES_NS: u64 = 20_000;
/// Confidence that a long gap is not a throttling, where others had the time that the thread lost.
const COVERED: f64 = 0.8;

/// What a thread lost in gaps in which it may have been switched out or stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LostTime {
    ns: u64,
    gaps: u64,
}

impl LostTime {
    pub(super) fn push(&mut self, length_ns: u64) {
        self.ns = self.ns.saturating_add(length_ns);
        self.gaps = self.gaps.saturating_add(1);
    }

    /// How sure it is that a gap of this length had no throttling in it; `None` for sure.
    pub(super) fn without_stop(self, limit: RtLimit, length_ns: u64) -> Option<f64> {
        let stop = limit.period_ns.saturating_sub(limit.runtime_ns);
        let switches = self.gaps.saturating_mul(SWITCHES_NS);
        let slack = switches.saturating_add(limit.others_ns / PARTS);
        let uncovered = self.ns.saturating_sub(limit.others_ns);
        let uncovered = if uncovered <= slack { 0 } else { uncovered };
        let held = if uncovered == 0 { stop } else { stop.min(uncovered) };
        let long = length_ns >= held.saturating_sub(held / 5);
        let part = |of: u64, all: u64| 1.0 - of.min(all) as f64 / (all.max(1) as f64);
        match (uncovered, long) {
            _ if stop == 0 || length_ns < PART_NS => None,
            (0, false) => None,
            (0, true) => Some(COVERED),
            (_, true) => Some(part(held, length_ns)),
            (_, false) => Some(part(uncovered, self.ns)),
        }
    }
}

/// Whether a real-time thread waited for time-sharing ones, as only the kernel's limit has it do.
pub(super) fn gave_way(
    facts: &RunFacts,
    thread: Option<&ThreadFacts>,
    evidence: &KernelEvidence,
) -> bool {
    let policy = thread.and_then(|thread| thread.policy);
    let limited = matches!(policy, Some(Policy::Fifo(_) | Policy::RoundRobin(_)));
    let limited = limited && facts.rt_limit.is_some();
    let Some(others) = facts.real_time.as_ref().filter(|_| limited) else { return false };
    let time_sharing = |who: Successor| match who {
        Successor::Kernel(0 | KernelEvent::UNTOLD) => false,
        Successor::Kernel(number) => !others.contains(&number),
        Successor::OfRun(thread) => {
            let known = facts.threads.get(&thread).and_then(|thread| thread.policy);
            known.is_some_and(|policy| !is_real_time(policy))
        }
    };
    let shares = evidence.occupants.iter().filter(|share| time_sharing(share.who));
    let ns = shares.map(|share| share.ns).fold(0, u64::saturating_add);
    ns > evidence.composition.switched_ns / 2 && ns >= PART_NS
}

impl Throttlings {
    /// Whether the gap that begins at `start` may be one, and if so, whether it is whole periods from another.
    pub(super) fn of(&self, start: i64) -> Option<bool> {
        let among = |starts: &[i64]| starts.binary_search(&start).is_ok();
        match () {
            () if among(&self.periodic) => Some(true),
            () => among(&self.single).then_some(false),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: i64 = 1_000_000;
    const LIMIT: RtLimit = RtLimit {
        runtime_ns: 950_000_000,
        period_ns: 1_000_000_000,
        logged: false,
        others_ns: 0,
        others_ended: false,
    };

    fn found(starts_ms: &[i64]) -> (usize, usize) {
        beside(LIMIT, starts_ms)
    }

    fn beside(limit: RtLimit, starts_ms: &[i64]) -> (usize, usize) {
        let mut candidates = Candidates::default();
        starts_ms.iter().for_each(|ms| candidates.push(ms * MS, 50_000_000));
        let found = candidates.finish(limit, 4_000_000);
        (found.periodic.len(), found.single.len())
    }

    /// Seen: a thread of FIFO 50 that ran for 48 ms in each second was called throttling, 0.97.
    #[test]
    fn what_another_real_time_thread_had_is_no_throttling() {
        let starts = [950, 1_951, 2_955, 3_956];
        for (others_ms, logged, expected) in [
            (4 * 48, false, (0, 0)),
            (4 * 48, true, (0, 4)),
            (4 * 20, false, (0, 4)),
            (19, false, (4, 0)),
        ] {
            let limit = RtLimit { logged, others_ns: others_ms * 1_000_000, ..LIMIT };
            assert_eq!(beside(limit, &starts), expected, "{others_ms} ms, logged {logged}");
        }
        let ended = RtLimit { others_ended: true, ..LIMIT };
        assert_eq!(beside(ended, &starts), (0, 4), "one that ended may have had them");
    }

    /// Seen: of a gap of 35 ms a competitor had 8, and it was an involuntary switch for sure.
    #[test]
    fn what_others_do_not_cover_may_be_a_stop() {
        let ms = |ms: u64| ms * 1_000_000;
        let sure = |others_ms: u64, length_ms: u64, turns: u64| {
            let mut lost = LostTime::default();
            (0..turns).for_each(|_| lost.push(ms(2)));
            lost.push(ms(length_ms));
            let limit = RtLimit { others_ns: ms(others_ms), ..LIMIT };
            (lost.without_stop(limit, ms(length_ms)), lost.without_stop(limit, ms(2)))
        };
        assert_eq!(sure(408, 8, 200), (None, None), "covered");
        let (long, short) = sure(408, 60, 200);
        assert!(long.unwrap() < 0.5 && (0.8..0.95).contains(&short.unwrap()), "{long:?} {short:?}");
        assert!(sure(408, 35, 200).0.unwrap() < 0.5);
        assert_eq!(sure(460, 60, 200), (Some(COVERED), None), "long enough");
        assert_eq!(sure(0, 5, 3).0, Some(0.0), "no other thread is known to have run");
        assert_eq!(LostTime::default().without_stop(LIMIT, PART_NS - 1), None);
    }

    #[test]
    fn one_in_a_period_at_most() {
        assert_eq!(found(&[950, 1_951, 2_955, 3_956]), (4, 0));
        assert_eq!(found(&[950, 3_954]), (2, 0), "two between were overwritten");
        assert_eq!(found(&[950]), (0, 1));
        assert_eq!(found(&[950, 3_300]), (0, 2));
        // Turns of a competitor, at a distance that no period is a multiple of, and at one that it is.
        let turns =
            |every: i64, till: i64| -> Vec<i64> { (0..till / every).map(|k| k * every).collect() };
        assert_eq!(found(&turns(144, 1_300)), (0, 0));
        assert_eq!(found(&turns(200, 9_000)), (0, 0));
        // Throttlings among the turns of a competitor, which do not keep to the period.
        assert_eq!(found(&[100, 950, 1_340, 1_951, 2_655, 2_953]), (3, 0));
        assert_eq!(found(&[]), (0, 0));
    }
}
