//! Exact response times under EDF.
//!
//! Owns: the deadline busy period (Spuri, INRIA RR-2772, 1996; Guan and Yi, RTSS 2014 look at the
//! same cases). A job of the task arrives `a` after the window begins; of the others, jobs count that
//! are released before it is done and are due no later. Segments follow George, Rivierre and
//! Spuri, INRIA RR-2966, 1996, and Bozhko and Brandenburg, ECRTS 2020. Must not: assume that the
//! first job is the worst.

use std::cmp::Ordering;

use super::length::is_overload;
use crate::checker::segment_before;
use crate::effort::Effort;
use crate::exact::compare_shares;
use crate::fixed_priority::{Sections, TimeModel, judge_by, overloaded, refused, tail_of};
use crate::recurrence::{Interference, Stream};
use crate::task::{Task, TaskSet};
use crate::verdict::{Analysis, Point, Refusal, ResponseTime, TaskResult, Window};

/// Bounds the response times of a set under EDF. A task that suspends itself counts as busy
/// meanwhile.
#[must_use]
pub fn response_times(set: &TaskSet, sections: Sections, time: TimeModel) -> Analysis {
    response_times_within(set, sections, time, Effort::default())
}

/// The same with a stated effort.
#[must_use]
pub fn response_times_within(
    set: &TaskSet,
    sections: Sections,
    time: TimeModel,
    effort: Effort,
) -> Analysis {
    let mut effort = effort;
    let mut points = Vec::new();
    let length = busy_period(set, sections, &mut effort);
    let mut tasks = Vec::with_capacity(set.len());
    for position in 0..set.len() {
        let from = points.len();
        let found = match length {
            Ok(Some(length)) => {
                let level = Level::new(set, position, sections, time);
                level.solve(length, &mut effort, &mut points).map(|()| length)
            }
            Ok(None) => {
                tasks.push(overloaded(from));
                continue;
            }
            Err(why) => Err(why),
        };
        tasks.push(match found {
            Ok(length) => judge(set, position, &points, from, length),
            Err(why) => {
                points.truncate(from);
                refused(why, from)
            }
        });
    }
    let analysis = Analysis { tasks, points };
    debug_assert_eq!(crate::checker::edf(set, sections, time, &analysis), Ok(()));
    #[cfg(debug_assertions)]
    crate::twin::assert_edf(set, sections, &analysis);
    analysis
}

/// The longest time for which the processor is busy without end; `None` if it is for ever.
fn busy_period(
    set: &TaskSet,
    sections: Sections,
    effort: &mut Effort,
) -> Result<Option<u64>, Refusal> {
    if sections != Sections::Preemptive && set.tasks().iter().any(|t| t.suspension > 0) {
        return Err(Refusal::SuspensionInSegments);
    }
    let stream = |t: &Task| {
        let cost = t.cost.checked_add(t.suspension)?;
        Some(Stream { cost, ..Stream::of(t) })
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
    Interference::of(streams).least(blocking, first, effort).map(Some)
}

/// Jobs of another task that may count.
struct Other {
    stream: Stream,
    /// Its deadline less its jitter, less ours with ours: jobs count from this offset on.
    begins: i128,
}

/// Everything that decides when jobs of one task are done.
struct Level<'a> {
    task: &'a Task,
    others: Vec<Other>,
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
            let stream = Stream { cost, ..Stream::of(other) };
            others.push(Other { stream, begins: theirs - ours });
            let segment = segment_before(other, sections, time);
            if segment > 0 {
                segments.push((segment, theirs - ours));
            }
        }
        segments.sort_unstable_by(|a, b| b.cmp(a));
        let rest = tail_of(task, sections).saturating_sub(1);
        Level { task, others, segments, rest, cost: task.cost.saturating_add(task.suspension) }
    }

    /// All points of a window that is at most `length` long.
    fn solve(
        &self,
        length: u64,
        effort: &mut Effort,
        points: &mut Vec<Point>,
    ) -> Result<(), Refusal> {
        let end = length.checked_add(self.task.jitter).ok_or(Refusal::Overflow)?;
        for offset in self.offsets(end, effort)? {
            let jobs = offset / self.task.period + 1;
            let x = self.finish(offset, jobs, effort)?;
            let finish = x.checked_add(self.rest).ok_or(Refusal::Overflow)?;
            points.push(Point { offset, jobs, finish });
        }
        Ok(())
    }

    /// Offsets below `end` at which one job more counts, ascending.
    fn offsets(&self, end: u64, effort: &mut Effort) -> Result<Vec<u64>, Refusal> {
        let mut offsets = Vec::new();
        let begins = self.others.iter().map(|other| (other.begins, other.stream.period));
        for (begins, period) in std::iter::once((0, self.task.period)).chain(begins) {
            let first = if begins >= 0 {
                u64::try_from(begins).ok()
            } else {
                // The first step that is not before 0.
                u64::try_from(begins.rem_euclid(i128::from(period))).ok()
            };
            let mut next = first;
            while let Some(offset) = next.filter(|offset| *offset < end) {
                effort.step()?;
                offsets.push(offset);
                next = offset.checked_add(period);
            }
        }
        offsets.sort_unstable();
        offsets.dedup();
        Ok(offsets)
    }

    /// How long the window may be delayed by a job that is due later than one with this offset.
    fn blocking(&self, offset: u64) -> u64 {
        let later = |(_, below): &&(u64, i128)| i128::from(offset) < *below;
        let segment = self.segments.iter().find(later).map_or(0, |(segment, _)| *segment);
        self.task.blocking.saturating_add(segment)
    }

    /// When the job with this offset can be preempted no longer.
    fn finish(&self, offset: u64, jobs: u64, effort: &mut Effort) -> Result<u64, Refusal> {
        let own =
            jobs.checked_mul(self.cost).and_then(|own| own.checked_add(self.blocking(offset)));
        let base = own.ok_or(Refusal::Overflow)? - self.rest;
        let due = |other: &Other| {
            let after = u128::try_from(i128::from(offset) - other.begins).ok()?;
            let jobs = after / u128::from(other.stream.period) + 1;
            Some((other.stream, u64::try_from(jobs).unwrap_or(u64::MAX)))
        };
        let due: Vec<(Stream, u64)> = self.others.iter().filter_map(due).collect();
        let mut x = base;
        loop {
            effort.step()?;
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
}

/// The bounds by a point: its job arrived a jitter before its offset, or later.
pub(crate) fn response(point: &Point, jitter: u64) -> Option<ResponseTime> {
    Some(ResponseTime {
        from_arrival: point.finish.checked_add(jitter)?.saturating_sub(point.offset),
        from_release: point.finish.saturating_sub(point.offset.saturating_sub(jitter)),
    })
}

fn judge(set: &TaskSet, position: usize, points: &[Point], from: usize, length: u64) -> TaskResult {
    let jitter = set.tasks()[position].jitter;
    let exact = set.tasks().iter().all(|t| t.blocking == 0 && t.suspension == 0);
    let (range, window) = (from..points.len(), Window::Length(length));
    judge_by(set, position, points, range, window, exact, |point| response(point, jitter))
}
