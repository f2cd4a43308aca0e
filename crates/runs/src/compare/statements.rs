//! What only two runs together say (Hourglass paper, section 4, last two items): this load causes the gaps;
//! this timer is inaccurate.
//!
//! Owns: which threads of the two sides are put beside each other, and the sentence. Must not: hold the
//! statistics (`hourglass_trace::two_runs` does).

use std::collections::BTreeMap;

use hourglass_documents::diff::Statement;
use hourglass_documents::document::RunDocument;
use hourglass_documents::manifest::ThreadFacts;
use hourglass_time::Span;
use hourglass_trace::Interval;
use hourglass_trace::cause::REPORTED_NS;
use hourglass_trace::run_comparison::{
    ComparisonOutcome, GapCounter, GapRate, load_causes_gaps, timer_by_counts,
};
use hourglass_trace::statistics::Estimate;

use super::side::ComparedRun;
use crate::inferences::never_blocks;

/// What may count as late: 100 us, and the columns of the paper's Table 1.
const LATE_NS: [u64; 5] = [100_000, 1_000_000, 5_000_000, 10_000_000, 50_000_000];

/// A wake-up is late beyond this multiple of the median, or beyond the next of [`LATE_NS`] above it.
const MEDIANS: u64 = 2;
const PS_PER_NS: u64 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pairing {
    /// Those of threads that are on both sides the same: all else is load.
    Same,
    /// Those of all threads that never wait: one side is an idle control.
    NeverWaiting,
}

#[derive(Clone, Debug, Default)]
pub(super) struct RunObservation {
    gaps: BTreeMap<u32, GapCounter>,
    late: BTreeMap<u32, LateWakeUps>,
    longest_gap_ns: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
struct LateWakeUps {
    all: u64,
    p50_ns: u64,
    beyond: [u64; LATE_NS.len()],
}

impl RunObservation {
    pub(super) fn of(document: &RunDocument) -> RunObservation {
        let RunDocument { manifest, result, .. } = document;
        let least_ns = least_ns(manifest.threads.iter().map(|thread| thread.gap_ns).max());
        let counter =
            |thread: &ThreadFacts| (thread.id, GapCounter::new(manifest.elapsed_ns, least_ns));
        let watching = result.threads.iter().filter(|thread| never_blocks(&thread.workload));
        RunObservation {
            gaps: manifest.threads.iter().map(counter).collect(),
            late: BTreeMap::new(),
            longest_gap_ns: watching.map(|thread| thread.gaps.max_ns).max(),
        }
    }

    pub(super) fn push(&mut self, interval: &Interval) {
        if let Some(counter) = self.gaps.get_mut(&interval.thread) {
            counter.push(interval);
        }
    }

    /// Takes the lateness of a thread's wake-ups, and their median, which may be of more of them.
    pub(super) fn push_latencies(&mut self, thread: u32, p50_ns: u64, ps: &[u64]) {
        let late = self.late.entry(thread).or_default();
        late.p50_ns = p50_ns;
        late.all = late.all.saturating_add(ps.len() as u64);
        for (limit, count) in LATE_NS.iter().zip(&mut late.beyond) {
            let beyond = ps.iter().filter(|ps| **ps > limit * PS_PER_NS).count();
            *count = count.saturating_add(beyond as u64);
        }
    }
}

fn least_ns(gap_ns: Option<u64>) -> u64 {
    gap_ns.unwrap_or(0).max(REPORTED_NS)
}

pub(super) fn of(a: &[ComparedRun], b: &[ComparedRun], pairing: Pairing) -> Vec<Statement> {
    let load = load(a, b, pairing);
    let timer = if pairing == Pairing::Same { timer(a, b) } else { None };
    load.into_iter().chain(timer).collect()
}

/// Whether what one side does more causes gaps.
fn load(a: &[ComparedRun], b: &[ComparedRun], pairing: Pairing) -> Option<Statement> {
    let threads = |run: &ComparedRun, other: &ComparedRun| -> Vec<u32> {
        let own = run.manifest.threads.iter().filter(|thread| match pairing {
            Pairing::NeverWaiting => never_blocks(&thread.workload),
            Pairing::Same => other.manifest.threads.iter().any(|other| is_same(thread, other)),
        });
        own.filter(|thread| run.observed.gaps.contains_key(&thread.id)).map(|t| t.id).collect()
    };
    let (first, second) = (a.first()?, b.first()?);
    let rates = [rate(a, &threads(first, second))?, rate(b, &threads(second, first))?];
    let least = |runs: &[ComparedRun]| runs.iter().map(|run| least_ns(Some(run.gap_ns()))).max();
    let least_ns = least(a).filter(|ns| Some(*ns) == least(b))?;
    if a.iter().chain(b).any(|run| run.dropped > 0) {
        return Some(unknown(
            Statement::LOAD,
            "a trace lacks records, so its gaps cannot be counted to the end".to_owned(),
        ));
    }
    let names = match pairing {
        Pairing::Same => ["A", "B"],
        Pairing::NeverWaiting => CONTROLLED,
    };
    Some(load_of(&rates, names, least_ns))
}

/// Whether the load of a run causes gaps that the control beside it has not, where both never wait.
pub fn beside(
    document: &RunDocument,
    intervals: impl Iterator<Item = Interval>,
    control: u32,
) -> Option<Statement> {
    let mut observed = RunObservation::of(document);
    intervals.for_each(|interval| observed.push(&interval));
    let (mut of_control, mut of_load): (Option<GapRate>, Option<GapRate>) = (None, None);
    for thread in document.result.threads.iter().filter(|thread| never_blocks(&thread.workload)) {
        let Some(counter) = observed.gaps.remove(&thread.id) else { continue };
        let side = if thread.id == control { &mut of_control } else { &mut of_load };
        match side {
            Some(rate) => rate.extend(&counter.finish()),
            None => *side = Some(counter.finish()),
        }
    }
    let whole = document.result.threads.iter().all(|thread| thread.records_dropped == 0);
    let least_ns = least_ns(document.manifest.threads.iter().map(|thread| thread.gap_ns).max());
    Some(load_of(&[of_control.filter(|_| whole)?, of_load?], CONTROLLED, least_ns))
}

const CONTROLLED: [&str; 2] = ["the control", "the load"];

/// Gaps of the first side and of the second, which are called by these names.
fn load_of(rates: &[GapRate; 2], names: [&str; 2], least_ns: u64) -> Statement {
    let [without, with] = rates;
    // A control does nothing that could cause gaps; of two other runs either may.
    let second_has_more = names == CONTROLLED || with.per_second() >= without.per_second();
    let (found, subject, other, side) = match second_has_more {
        true => (load_causes_gaps(with, without), names[1], names[0], "b"),
        false => (load_causes_gaps(without, with), names[0], names[1], "a"),
    };
    let rates = format!(
        "{:.1} gaps a second longer than {} in {subject}, {:.1} in {other}",
        found.with_per_second,
        Span::saturating_from_nanos(least_ns),
        found.without_per_second
    );
    if found.with_per_second <= 0.0 && found.without_per_second <= 0.0 {
        let text =
            format!("no gap longer than {} on either side", Span::saturating_from_nanos(least_ns));
        return unknown(Statement::LOAD, text);
    }
    match found.answer {
        ComparisonOutcome::TooLittle => {
            unknown(Statement::LOAD, format!("{rates}: too little was measured"))
        }
        ComparisonOutcome::No => answer(
            Statement::LOAD,
            side,
            (false, found.confidence),
            match names {
                CONTROLLED => {
                    format!("{rates}: the load does not cause gaps that there are not without it")
                }
                _ => format!("{rates}: neither side causes gaps that the other has not"),
            },
        ),
        ComparisonOutcome::Yes => {
            let caused = found.caused * 100.0;
            let text = format!(
                "{rates}: what {subject} does and {other} does not causes {caused:.0} % of them"
            );
            answer(Statement::LOAD, side, (true, found.confidence), text)
        }
    }
}

/// The same thread on both sides, whatever runs beside it.
fn is_same(thread: &ThreadFacts, other: &ThreadFacts) -> bool {
    let of = |thread: &ThreadFacts| {
        (thread.id, thread.workload.clone(), thread.policy.clone(), thread.cpus.clone())
    };
    of(thread) == of(other)
}

fn rate(runs: &[ComparedRun], threads: &[u32]) -> Option<GapRate> {
    let mut counters = runs.iter().flat_map(|run| {
        threads.iter().filter_map(|thread| Some(run.observed.gaps.get(thread)?.clone().finish()))
    });
    let mut rate = counters.next()?;
    counters.for_each(|other| rate.extend(&other));
    Some(rate)
}

/// Whether one of two timers is inaccurate, where threads wait by different ones.
fn timer(a: &[ComparedRun], b: &[ComparedRun]) -> Option<Statement> {
    let (first, second) = (a.first()?, b.first()?);
    let pair = first.manifest.threads.iter().find_map(|thread| {
        let other = second.manifest.threads.iter().find(|other| other.id == thread.id)?;
        let other_timer = thread.workload == other.workload && thread.wake_up != other.wake_up;
        other_timer.then_some((thread, other))
    });
    let (thread, other) = pair?;
    let late = |runs: &[ComparedRun]| {
        let mut all = LateWakeUps::default();
        let found = runs.iter().filter_map(|run| run.observed.late.get(&thread.id));
        for late in found {
            all.all += late.all;
            // The largest: a limit above it holds for every round.
            all.p50_ns = all.p50_ns.max(late.p50_ns);
            all.beyond.iter_mut().zip(late.beyond).for_each(|(sum, n)| *sum += n);
        }
        all
    };
    let (of_a, of_b) = (late(a), late(b));
    let usual = MEDIANS.saturating_mul(of_a.p50_ns.min(of_b.p50_ns));
    let column = LATE_NS.iter().position(|limit| *limit >= usual)?;
    let limit = LATE_NS[column];
    let of = |late: &LateWakeUps| (late.beyond[column], late.all);
    let longest = a.iter().chain(b).filter_map(|run| run.observed.longest_gap_ns).max();
    let has_long_gaps = longest.is_some_and(|longest| longest >= limit);
    // The one with the larger share of late wake-ups is the suspect.
    let ((late_a, all_a), (late_b, all_b)) = (of(&of_a), of(&of_b));
    let b_is_later =
        u128::from(late_b) * u128::from(all_a) >= u128::from(late_a) * u128::from(all_b);
    let (subject, suspect, than, found) = match b_is_later {
        true => ("b", other, thread, timer_by_counts(of(&of_b), of(&of_a), has_long_gaps)),
        false => ("a", thread, other, timer_by_counts(of(&of_a), of(&of_b), has_long_gaps)),
    };
    let shares = format!(
        "{} of the wake-ups by {} are later than {}, {} of those by {}",
        percent(found.late),
        suspect.wake_up,
        Span::saturating_from_nanos(limit),
        percent(found.late_other),
        than.wake_up
    );
    let long = match has_long_gaps {
        true => "; gaps as long as that may be to blame instead",
        false => "",
    };
    Some(match found.answer {
        ComparisonOutcome::TooLittle => {
            unknown(Statement::TIMER, format!("{shares}: too few wake-ups"))
        }
        ComparisonOutcome::No => answer(
            Statement::TIMER,
            subject,
            (false, found.confidence),
            format!("{shares}: neither is less accurate than the other"),
        ),
        ComparisonOutcome::Yes => answer(
            Statement::TIMER,
            subject,
            (true, found.confidence),
            format!("{shares}: {} is inaccurate{long}", suspect.wake_up),
        ),
    })
}

fn percent(share: Option<Estimate>) -> String {
    share.map_or_else(|| "none".to_owned(), |share| format!("{:.2} %", share.value * 100.0))
}

fn unknown(name: &str, text: String) -> Statement {
    let (answer, name) = ("unknown".to_owned(), name.to_owned());
    Statement { name, answer, text, ..Statement::default() }
}

fn answer(name: &str, subject: &str, (yes, confidence): (bool, f64), text: String) -> Statement {
    Statement {
        name: name.to_owned(),
        subject: subject.to_owned(),
        answer: if yes { "yes" } else { "no" }.to_owned(),
        confidence: (confidence.clamp(0.0, 1.0) * 1e4).round() / 1e4,
        text,
    }
}

#[cfg(test)]
mod tests {
    use hourglass_trace::{Evidence, IntervalStart};

    use super::*;

    fn rate(every_us: i64) -> GapRate {
        let mut counter = GapCounter::new(4_000_000_000, 1_000);
        let every = every_us * 1_000;
        for k in 0..4_000_000_000 / every {
            // Not quite regular, so that slices differ.
            let start_ns = k * every + (k * k * 7_919) % (every / 2);
            let (end_ns, onset) = (start_ns + every / 3, IntervalStart::Gap);
            let (thread, cpu, start_ticks, end_ticks) = (0, 0, 0, 0);
            let evidence = Evidence::NONE;
            counter.push(&Interval {
                thread,
                cpu,
                start_ns,
                end_ns,
                start_ticks,
                end_ticks,
                onset,
                evidence,
            });
        }
        counter.finish()
    }

    /// Two runs of wake-ups without a gap: nothing is said with a confidence of one half.
    #[test]
    fn without_any_gap_nothing_is_compared() {
        let none = || GapCounter::new(4_000_000_000, 1_000).finish();
        let found = load_of(&[none(), none()], ["A", "B"], 1_000);
        assert_eq!(found.answer, "unknown");
        assert_eq!(found.text, "no gap longer than 1us on either side");
    }

    /// An idle control is never what causes gaps; of two other runs either may be.
    #[test]
    fn a_control_is_not_blamed() {
        let noisier = [rate(2_000), rate(4_000)];
        let found = load_of(&noisier, CONTROLLED, 1_000);
        assert_eq!((found.answer.as_str(), found.subject.as_str()), ("no", "b"), "{found:?}");
        assert!(found.text.contains("the load does not cause"), "{found:?}");
        let found = load_of(&noisier, ["A", "B"], 1_000);
        assert_eq!((found.answer.as_str(), found.subject.as_str()), ("yes", "a"), "{found:?}");
        let found = load_of(&[rate(4_000), rate(2_000)], CONTROLLED, 1_000);
        assert!(found.answer == "yes" && found.text.contains("what the load does"), "{found:?}");
    }
}
