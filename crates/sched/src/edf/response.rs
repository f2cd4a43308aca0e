//! Exact response times under EDF.
//!
//! Owns: the deadline busy period (Spuri, INRIA RR-2772, 1996; Guan and Yi, RTSS 2014 look at the
//! same cases). A job of the task arrives `a` after the window begins; of the others, jobs count that
//! are released before it is done and are due no later. Segments follow George, Rivierre and
//! Spuri, INRIA RR-2966, 1996, and Bozhko and Brandenburg, ECRTS 2020. Cases are looked at from the last
//! one down, and those are skipped that cannot end later than the bound so far ([`crate::pruning`]).
//! Must not: assume that the first job is the worst.

use std::cmp::Ordering;

use super::analysis_length::is_overload;
use crate::effort::StepLimit;
use crate::exact_fraction::compare_shares;
use crate::fixed_priority::{NO_RESPONSE, Sections, TimeModel, larger};
use crate::fixed_priority::{judge_by, overloaded, refused, tail_of};
use crate::pruning::{Steps, settled};
use crate::recurrence::{InterferenceTerms, Stream};
use crate::sections::segment_before;
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Point, Refusal, ResponseTime, TaskResult, Window};

/// Bounds the response times of a set under EDF. A task that suspends itself counts as busy
/// meanwhile.
#[must_use]
pub fn response_times(set: &TaskSet, sections: Sections, time: TimeModel) -> Analysis {
    response_times_within(set, sections, time, StepLimit::default())
}

/// The same with a stated effort.
#[must_use]
pub fn response_times_within(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    mut effort: StepLimit,
) -> Analysis {
    response_times_by(set, sections, time, &mut effort)
}

/// The same, which takes what it needs from an effort for several tests.
#[must_use]
pub fn response_times_by(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Analysis {
    let mut points = Vec::new();
    let length = busy_period(set, sections, effort);
    let mut tasks = Vec::with_capacity(set.len());
    for position in 0..set.len() {
        let from = points.len();
        let found = match length {
            Ok(Some(length)) => {
                let level = Level::new(set, position, sections, time);
                level.solve(length, effort, &mut points).map(|()| length)
            }
            Ok(None) => {
                tasks.push(overloaded(from));
                continue;
            }
            Err(why) => Err(why),
        };
        tasks.push(match found {
            Ok(length) => task_result(set, position, &points, from, length),
            Err(why) => {
                points.truncate(from);
                refused(why, from)
            }
        });
    }
    let analysis = Analysis { tasks, points };
    debug_assert_eq!(crate::checker::edf(set, sections, time, &analysis), Ok(()));
    #[cfg(debug_assertions)]
    crate::reference::assert_edf(set, sections, &analysis);
    analysis
}

/// The longest time for which the processor is busy without end; `None` if it is for ever.
fn busy_period(
    set: &TaskSet,
    sections: Sections,
    effort: &mut StepLimit,
) -> Result<Option<u64>, Refusal> {
    if !set.is_plain() {
        return Err(Refusal::OutsideModel);
    }
    if sections != Sections::Preemptive && set.tasks().iter().any(|t| t.suspension > 0) {
        return Err(Refusal::SuspensionInSegments);
    }
    let stream = |t: &Task| {
        let cost = t.cost.checked_add(t.suspension)?;
        Some(Stream { cost, ..Stream::from_task(t) })
    };
    let streams = set.tasks().iter().map(stream).collect::<Option<Vec<_>>>();
    let streams = streams.ok_or(Refusal::Overflow)?;
    match compare_shares(streams.iter().map(Stream::share), (1, 1)) {
        Ordering::Greater if is_overload(set) => return Ok(None),
        Ordering::Greater => return Err(Refusal::SuspensionAsExecution),
        Ordering::Equal if set.tasks().iter().any(|t| t.jitter > 0) => {
            return Err(Refusal::Endless);
        }
        Ordering::Equal | Ordering::Less => {}
    }
    let blocking = set.tasks().iter().map(|t| t.blocking).max().unwrap_or(0);
    if blocking > 0 && compare_shares(streams.iter().map(Stream::share), (1, 1)).is_eq() {
        return Err(Refusal::Endless);
    }
    let first = streams.iter().try_fold(blocking, |sum, s| sum.checked_add(s.cost));
    let first = first.ok_or(Refusal::Overflow)?;
    InterferenceTerms::from_task(streams).least_fixed_point(blocking, first, effort).map(Some)
}

/// Jobs of another task that may count.
struct InterferingTask {
    stream: Stream,
    /// Jobs count from its deadline less its jitter on, less ours with ours.
    steps: Steps,
}

/// Everything that decides when jobs of one task are done.
struct Level<'a> {
    task: &'a Task,
    task_steps: Steps,
    others: Vec<InterferingTask>,
    /// What delays the window, each as long as no job of its task counts; the longest first.
    segments: Vec<(u64, i128)>,
    rest: u64,
    cost: u64,
}

impl<'a> Level<'a> {
    fn new(set: &'a TaskSet, position: usize, sections: Sections, time: TimeModel) -> Level<'a> {
        let task = &set.tasks()[position];
        let ours = i128::from(task.deadline) - i128::from(task.jitter);
        let mut others = Vec::new();
        let mut segments = Vec::new();
        let others_of = set.tasks().iter().enumerate().filter(|(at, _)| *at != position);
        for (_, other) in others_of {
            let theirs = i128::from(other.deadline) - i128::from(other.jitter);
            let cost = other.cost.saturating_add(other.suspension);
            let stream = Stream { cost, ..Stream::from_task(other) };
            let steps = Steps::new(theirs - ours, stream.period, stream.cost);
            others.push(InterferingTask { stream, steps });
            let segment = segment_before(other, sections, time);
            if segment > 0 {
                segments.push((segment, theirs - ours));
            }
        }
        segments.sort_unstable_by(|a, b| b.cmp(a));
        let rest = tail_of(task, sections).saturating_sub(1);
        let cost = task.cost.saturating_add(task.suspension);
        let own = Steps::new(0, task.period, cost);
        Level { task, task_steps: own, others, segments, rest, cost }
    }

    /// Points of a window that is at most `length` long, ascending: those that decide the bound, and
    /// those that show of all others that they do not.
    fn solve(
        &self,
        length: u64,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
    ) -> Result<(), Refusal> {
        let end = length.checked_add(self.task.jitter).ok_or(Refusal::Overflow)?;
        let jitter = self.task.jitter;
        let from = points.len();
        let first = self.point(0, effort)?;
        let mut bound = larger(NO_RESPONSE, response(&first, jitter).ok_or(Refusal::Overflow)?);
        points.push(first);
        let mut below = self.settled(end.saturating_sub(1), None, bound, effort)?.min(end);
        while let Some(offset) = self.last_before(below).filter(|offset| *offset > 0) {
            effort.charge(self.others.len() + 1)?;
            let point = self.point(offset, effort)?;
            bound = larger(bound, response(&point, jitter).ok_or(Refusal::Overflow)?);
            points.push(point);
            below = self.settled(offset, Some(point.finish), bound, effort)?.min(offset);
        }
        points[from + 1..].reverse();
        Ok(())
    }

    fn point(&self, offset: u64, effort: &mut StepLimit) -> Result<Point, Refusal> {
        let jobs = offset / self.task.period + 1;
        let x = self.finish_time(offset, jobs, effort)?;
        let finish = x.checked_add(self.rest).ok_or(Refusal::Overflow)?;
        Ok(Point { offset, jobs, finish })
    }

    fn steps(&self) -> impl Iterator<Item = Steps> + Clone {
        std::iter::once(self.task_steps).chain(self.others.iter().map(|other| other.steps))
    }

    /// The last offset below `end` at which one job more counts.
    fn last_before(&self, end: u64) -> Option<u64> {
        self.steps().filter_map(|steps| steps.last_before(end)).max()
    }

    /// The least offset from which up to `offset` no response is over the bound. `finish` is the end of the
    /// case there, if it is known. Where the deadline is missed, equal responses are not settled: the first
    /// of them is the witness.
    fn settled(
        &self,
        offset: u64,
        finish: Option<u64>,
        bound: ResponseTime,
        effort: &mut StepLimit,
    ) -> Result<u64, Refusal> {
        effort.charge(self.others.len() + 1)?;
        let tie = i128::from(bound.from_arrival > self.task.deadline);
        let room = i128::from(bound.from_release) - i128::from(self.task.jitter) - tie;
        let (blocking, since) = self.blocking(offset);
        let by_work = settled(self.steps(), blocking, offset, room);
        let by_end = finish.map(|finish| (i128::from(finish) - room).max(0));
        let by_end = by_end.and_then(|end| u64::try_from(end).ok()).unwrap_or(u64::MAX);
        Ok(by_work.min(by_end).max(since))
    }

    /// How long the window may be delayed by a job that is due later than one with this offset, and the
    /// least offset for which that is the same.
    fn blocking(&self, offset: u64) -> (u64, u64) {
        let mut since = 0;
        for (segment, below) in &self.segments {
            if i128::from(offset) < *below {
                return (self.task.blocking.saturating_add(*segment), since);
            }
            since = since.max(u64::try_from(*below).unwrap_or(0));
        }
        (self.task.blocking, since)
    }

    /// When the job with this offset can be preempted no longer.
    fn finish_time(&self, offset: u64, jobs: u64, effort: &mut StepLimit) -> Result<u64, Refusal> {
        let own =
            jobs.checked_mul(self.cost).and_then(|own| own.checked_add(self.blocking(offset).0));
        let base = own.ok_or(Refusal::Overflow)? - self.rest;
        let due = |other: &InterferingTask| {
            Some((other.stream, other.steps.jobs(offset))).filter(|d| d.1 > 0)
        };
        let due: Vec<(Stream, u64)> = self.others.iter().filter_map(due).collect();
        let mut x = base;
        loop {
            effort.charge(due.len())?;
            let add = |sum: u64, (stream, due): &(Stream, u64)| {
                let released = x.checked_add(stream.jitter)?.div_ceil(stream.period);
                sum.checked_add(released.min(*due).checked_mul(stream.cost)?)
            };
            let next = due.iter().try_fold(base, add).ok_or(Refusal::Overflow)?;
            if next == x {
                return Ok(x);
            }
            x = next;
        }
    }

    /// Points of all cases, for comparison.
    #[cfg(test)]
    fn every_case(&self, length: u64) -> Result<Vec<Point>, Refusal> {
        let mut effort = StepLimit::default();
        let mut below = length + self.task.jitter;
        let mut points = Vec::new();
        while let Some(offset) = self.last_before(below) {
            points.push(self.point(offset, &mut effort)?);
            below = offset;
        }
        points.reverse();
        Ok(points)
    }
}

/// The bounds by a point: its job arrived a jitter before its offset, or later.
pub(crate) fn response(point: &Point, jitter: u64) -> Option<ResponseTime> {
    Some(ResponseTime {
        from_arrival: point.finish.checked_add(jitter)?.saturating_sub(point.offset),
        from_release: point.finish.saturating_sub(point.offset.saturating_sub(jitter)),
    })
}

fn task_result(
    set: &TaskSet,
    position: usize,
    points: &[Point],
    from: usize,
    length: u64,
) -> TaskResult {
    let jitter = set.tasks()[position].jitter;
    let exact = set.tasks().iter().all(|t| t.blocking == 0 && t.suspension == 0);
    let (range, window) = (from..points.len(), Window::Length(length));
    judge_by(set, position, points, range, window, exact, |point| response(point, jitter))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// What is skipped decides nothing: the bounds and the first job that reaches them are those of all
        /// cases, also where times are large, nearly all of the processor is used, and releases jitter.
        #[test]
        fn skipped_cases_decide_nothing(
            numbers in proptest::collection::vec(
                (2..30u64, 1..20u64, 1..60u64, 0..20u64, 0..6u64, 0..5u64), 1..6),
            kind in 0..4usize, scale in prop_oneof![Just(1u64), 1..1u64 << 40],
        ) {
            let count = numbers.len() as u64;
            let task = |(period, part, d, j, blocking, np): &(u64, u64, u64, u64, u64, u64)| {
                let cost = (period * part / (16 * count)).max(1) * scale;
                let made = Task::new(cost, period * scale, d * scale).unwrap();
                let made = made.with_jitter(j.saturating_sub(9) * scale);
                let made = made.with_blocking(blocking.saturating_sub(4) * scale);
                made.with_segments((np * scale).min(cost), np.min(&cost).min(&1).to_owned()).unwrap()
            };
            let set = TaskSet::in_order(numbers.iter().map(task).collect());
            let time = TimeModel::Continuous;
            let found = response_times(&set, Sections::ALL[kind], time);
            for (position, result) in found.tasks.iter().enumerate() {
                let Window::Length(length) = result.window else { continue };
                let level = Level::new(&set, position, Sections::ALL[kind], time);
                // Nearly all of the processor: more cases than can be tried one by one.
                let every = match level.every_case(length) {
                    Err(Refusal::TooLong) => continue,
                    every => every.unwrap(),
                };
                let all = task_result(&set, position, &every, 0, length);
                prop_assert_eq!((result.outcome, result.verdict), (all.outcome, all.verdict));
                prop_assert!(found.points(position).iter().all(|point| every.contains(point)));
            }
            prop_assert_eq!(crate::checker::edf(&set, Sections::ALL[kind], time, &found), Ok(()));
        }
    }
}
