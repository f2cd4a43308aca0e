//! What takes a CPU from the most urgent thread of a set: the kernel, a hypervisor, another program.
//!
//! Owns: measuring it ([`measure`]), and how much of it falls into any time of some length. Must
//! not: name who it was.

use hourglass_documents::predict::NoiseFacts;
use hourglass_documents::{CpuSet, Policy};
use hourglass_measure::experiment::{self, RunFailure};
use hourglass_time::Span;
use hourglass_trace::{Interval, IntervalStart};
use hourglass_workload::{RunSpec, ThreadSpec, models};

use hourglass_measure::task_threads::TaskRunPlan;

/// What the measuring thread does: it watches a CPU for four fifths of the time, which leaves room
/// for others and for the kernel's limit on real-time threads.
const WATCHING: [&str; 3] = ["PERIODIC", "8ms", "10ms"];

/// A CPU is watched for a fifth as long as the set ran, but not for less or more than this.
const SHORTEST: Span = Span::SECOND;
const LONGEST: Span = Span::from_secs(5);

/// Gaps of one CPU, in time that was watched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Noise {
    pub(super) cpu: u32,
    /// When each began, in watched time, and how long it was; in order.
    gaps: Vec<(u64, u64)>,
    watched_ns: u64,
}

impl Noise {
    /// The gaps between intervals of one thread, in their order.
    pub(super) fn between(cpu: u32, intervals: impl IntoIterator<Item = Interval>) -> Noise {
        let mut noise = Noise { cpu, ..Noise::default() };
        let mut last_end: Option<i64> = None;
        for interval in intervals {
            let was_taken = interval.onset.is_gap() && interval.onset != IntervalStart::Yield;
            if let Some(end) = last_end.filter(|_| was_taken) {
                let length = interval.start_ns.saturating_sub(end).max(0).unsigned_abs();
                noise.gaps.push((noise.watched_ns, length));
                noise.watched_ns += length;
            }
            let ran = interval.end_ns.saturating_sub(interval.start_ns).max(0);
            noise.watched_ns += ran.unsigned_abs();
            last_end = Some(interval.end_ns);
        }
        noise
    }

    /// The most that gaps take of any `window` ns. The worst window begins with a gap.
    pub(super) fn most_in(&self, window: u64) -> u64 {
        if window == 0 {
            return 0;
        }
        let (mut most, mut sum, mut next) = (0, 0, 0);
        for (first, (begin, length)) in self.gaps.iter().enumerate() {
            let end = begin.saturating_add(window);
            while let Some((_, length)) = self.gaps.get(next).filter(|(at, _)| *at < end) {
                sum += length;
                next += 1;
            }
            let (last_at, last_length) =
                self.gaps.get(next.max(first + 1) - 1).copied().unwrap_or((0, 0));
            let beyond = last_at.saturating_add(last_length).saturating_sub(end);
            most = most.max(sum.saturating_sub(beyond));
            sum -= length;
        }
        most
    }
}

/// The noise measured on some CPUs.
pub(super) fn facts(noises: &[Noise]) -> NoiseFacts {
    let gaps = || noises.iter().flat_map(|noise| &noise.gaps).map(|(_, length)| *length);
    NoiseFacts {
        watched_ns: noises.iter().map(|noise| noise.watched_ns).sum(),
        longest_ns: gaps().max().unwrap_or(0),
        total_ns: gaps().sum(),
        gaps: gaps().count() as u64,
    }
}

/// Watches each CPU that threads of the plan are bound to, one after the other, by a thread as
/// urgent as the most urgent of them. Comes back also with the signal that ended it, if one did.
///
/// # Errors
/// The machine refuses it.
pub(super) fn measure(plan: &TaskRunPlan) -> Result<(Vec<Noise>, Option<i32>), RunFailure> {
    let mut cpus = CpuSet::default();
    plan.spec.threads.iter().filter_map(|t| t.cpus.as_ref()).for_each(|some| {
        some.iter().for_each(|cpu| cpus.insert(cpu));
    });
    let most_urgent = plan.spec.threads.iter().max_by_key(|thread| urgency(thread));
    let Some(policy) = most_urgent.map(|thread| thread.policy) else {
        return Ok((Vec::new(), None));
    };
    let fifth = Span::from_nanos(plan.spec.duration.nanos() / 5);
    let duration = fifth.max(SHORTEST).min(LONGEST);
    let (mut noises, mut signal) = (Vec::new(), None);
    for cpu in cpus.iter() {
        let model =
            models::parse(&WATCHING).map_err(|error| RunFailure::Other(error.to_string()))?;
        let wake = hourglass_workload::wake::parse("HR")
            .map_err(|error| RunFailure::Other(error.to_string()))?;
        let thread = ThreadSpec {
            model,
            wake,
            policy,
            policy_is_named: policy == Policy::Other(0),
            cpus: Some([cpu].into_iter().collect()),
            ..ThreadSpec::default()
        };
        let spec =
            RunSpec { duration, best_effort: plan.spec.best_effort, ..RunSpec::new(vec![thread]) };
        let finished = experiment::run(experiment::RunOptions::new(spec), &mut ())?;
        noises.push(Noise::between(cpu, finished.intervals()));
        signal = finished.signal();
        if signal.is_some() {
            break;
        }
    }
    Ok((noises, signal))
}

/// The kernel's order of classes; within the real-time ones by priority.
fn urgency(thread: &ThreadSpec) -> u8 {
    match thread.policy {
        Policy::Fifo(priority) | Policy::RoundRobin(priority) => priority,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noise(gaps: &[(u64, u64)]) -> Noise {
        Noise { cpu: 0, gaps: gaps.to_vec(), watched_ns: 1_000 }
    }

    /// Against the obvious way: every window that begins at any ns.
    #[test]
    fn the_most_in_a_window_is_that_of_the_worst_window() {
        for gaps in [
            vec![(0, 5), (10, 3), (20, 9), (31, 1), (40, 4)],
            vec![(7, 2), (9, 2), (11, 20), (60, 1)],
            vec![],
        ] {
            let all = noise(&gaps);
            let taken =
                |at: u64| gaps.iter().any(|(begin, length)| (*begin..begin + length).contains(&at));
            for window in 0..80 {
                let slow =
                    (0..100).map(|from| (from..from + window).filter(|at| taken(*at)).count());
                assert_eq!(
                    all.most_in(window),
                    slow.max().unwrap_or(0) as u64,
                    "{gaps:?} {window}"
                );
            }
        }
    }

    #[test]
    fn waits_are_not_watched_and_gaps_are() {
        let interval = |start_ns, end_ns, onset| Interval {
            thread: 0,
            cpu: 3,
            start_ns,
            end_ns,
            start_ticks: 0,
            end_ticks: 0,
            onset,
            evidence: Default::default(),
        };
        let noise = Noise::between(
            3,
            [
                interval(0, 10, IntervalStart::Start),
                interval(12, 20, IntervalStart::Gap),
                interval(100, 110, IntervalStart::Wait),
                interval(111, 115, IntervalStart::Migration),
            ],
        );
        assert_eq!(noise.gaps, [(10, 2), (30, 1)]);
        assert_eq!(noise.watched_ns, 35);
        assert_eq!(facts(&[noise]).total_ns, 3);
    }
}
