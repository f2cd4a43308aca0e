//! One task at a time: equal priorities, blocking, segments, suspension, windows that never end.
//!
//! Owns: what delays a task in its busy window, and the points of that window. Must not: know how
//! least fixed points are found.
//!
//! Among equal priorities, cases are looked at from the last one down, and those are skipped that cannot
//! end later than the bound so far ([`crate::pruning`]).
//!
//! With `tail` units of a job being non-preemptive at its end, the last of them begins at
//! x = B + q C - tail + 1 + ..., where releases before x count, and the job is done tail - 1 later.
//! With a tail of 1 or 0, that is the usual equation.

use std::cmp::Ordering;

use crate::effort::StepLimit;
use crate::exact_fraction::{compare_shares, greatest_common_divisor};
use crate::pruning::{Steps, settled};
use crate::recurrence::{InterferenceTerms, Stream, offsets_among_equals};
use crate::sections::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::{
    Analysis, Point, Refusal, ResponseBound, ResponseTime, TaskResult, Verdict, Window,
};

use super::result::{NO_RESPONSE, larger, overloaded, refused, response, task_result};

/// Everything that decides when jobs of one task are done.
struct Level {
    task: Stream,
    /// Tasks of equal priority: their jobs count if they were released first.
    equals: Vec<Stream>,
    /// The staircases of the task and its equals, if there are equals.
    steps: Vec<Steps>,
    /// Tasks of higher priority: their jobs count until the job is done.
    higher: InterferenceTerms,
    all: Vec<Stream>,
    /// The delay of the window by lower priorities.
    blocking: u64,
    /// How much of a job runs after the instant at which it can be preempted no longer.
    tail: u64,
    /// The deadline of the task.
    due: u64,
    /// The deadline to test; jobs after the first that misses it are then not analysed.
    deadline: Option<u64>,
}

pub(super) fn analyse(
    set: &TaskSet,
    order: &[usize],
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Analysis {
    let mut points = Vec::new();
    let mut tasks: Vec<TaskResult> = Vec::new();
    tasks.resize_with(set.len(), || overloaded(0));
    for position in order {
        let from = points.len();
        let result = match level_of(set, *position, sections, time, &tasks) {
            Ok(level) => {
                let task = &set.tasks()[*position];
                let exact = task.blocking == 0 && set.tasks().iter().all(|t| t.suspension == 0);
                match level.solve(effort, &mut points) {
                    Ok(Some(window)) => {
                        task_result(set, *position, &points, from..points.len(), window, exact)
                    }
                    Ok(None) => without_end(set, task.priority, from),
                    Err(why) => {
                        points.truncate(from);
                        refused(why, from)
                    }
                }
            }
            Err(why) => refused(why, from),
        };
        tasks[*position] = result;
    }
    Analysis { tasks, points }
}

/// The result of a task whose busy window never ends: only if execution alone is too much do responses
/// grow without bound.
fn without_end(set: &TaskSet, priority: u32, from: usize) -> TaskResult {
    let counts = set.tasks().iter().filter(|task| task.priority >= priority);
    match compare_shares(counts.map(|task| (task.cost, task.period)), (1, 1)) {
        Ordering::Greater => overloaded(from),
        Ordering::Equal | Ordering::Less => refused(Refusal::SuspensionAsExecution, from),
    }
}

/// The verdict on one task of a set without suspension. No job after the first late one is looked
/// at: near full utilisation a busy window may have billions of them.
pub(super) fn analyse_task(
    set: &TaskSet,
    position: usize,
    sections: Sections,
    time: TimeModel,
    effort: &mut StepLimit,
) -> Verdict {
    if set.tasks().iter().any(|task| task.suspension > 0) {
        return Verdict::Unknown(Refusal::Suspension);
    }
    let mut points = Vec::new();
    let exact = set.tasks()[position].blocking == 0;
    let deadline = Some(set.tasks()[position].deadline);
    let solved = level_of(set, position, sections, time, &[])
        .and_then(|level| Level { deadline, ..level }.solve(effort, &mut points));
    match solved {
        Ok(Some(window)) => {
            task_result(set, position, &points, 0..points.len(), window, exact).verdict
        }
        Ok(None) => Verdict::NoBound,
        Err(why) => Verdict::Unknown(why),
    }
}

/// The result of one preemptive task whose window repeats: all of the processor is used, and
/// releases jitter. The tasks before `rank` in the order are of higher priority.
pub(super) fn repeating(
    set: &TaskSet,
    order: &[usize],
    rank: usize,
    effort: &mut StepLimit,
    points: &mut Vec<Point>,
) -> TaskResult {
    let from = points.len();
    let position = order[rank];
    let higher = order[..rank].iter().map(|p| Stream::from_task(&set.tasks()[*p])).collect();
    let task = &set.tasks()[position];
    let level = Level::new(Stream::from_task(task), task.deadline, Vec::new(), higher, 0, 0);
    match level.solve(effort, points) {
        Ok(Some(window)) => task_result(set, position, points, from..points.len(), window, true),
        Ok(None) => overloaded(from),
        Err(why) => {
            points.truncate(from);
            refused(why, from)
        }
    }
}

/// The level of a task; `done` has the results of all tasks of higher priority.
fn level_of(
    set: &TaskSet,
    position: usize,
    sections: Sections,
    time: TimeModel,
    done: &[TaskResult],
) -> Result<Level, Refusal> {
    let task = &set.tasks()[position];
    let others = || set.tasks().iter().enumerate().filter(|(other, _)| *other != position);
    let suspends = |t: &Task| t.suspension > 0;
    if sections != Sections::Preemptive && set.tasks().iter().any(suspends) {
        return Err(Refusal::SuspensionInSegments);
    }
    let mut higher = Vec::new();
    for (other, t) in others().filter(|(_, t)| t.priority > task.priority) {
        let jitter = effective_jitter(t, done.get(other))?;
        higher.push(Stream { jitter, ..Stream::from_task(t) });
    }
    let equals: Vec<&Task> =
        others().map(|(_, t)| t).filter(|t| t.priority == task.priority).collect();
    let mixed = equals.iter().any(|t| suspends(t) || suspends(task));
    if mixed {
        return Err(Refusal::Suspension);
    }
    let lower = others().map(|(_, t)| t).filter(|t| t.priority < task.priority);
    let segment = lower.map(|t| segment_of(t, sections, time)).max().unwrap_or(0);
    let blocking = task.blocking.checked_add(segment).ok_or(Refusal::Overflow)?;
    let cost = task.cost.checked_add(task.suspension).ok_or(Refusal::Overflow)?;
    let own = Stream { cost, ..Stream::from_task(task) };
    let equals = equals.into_iter().map(Stream::from_task).collect();
    let rest = tail_of(task, sections).saturating_sub(1);
    Ok(Level::new(own, task.deadline, equals, higher, blocking, rest))
}

/// The jitter by which a task's work may come early: a suspending task's work may be as late as its
/// response time allows, and then be followed by the next job at once (Chen et al., RTSJ 2019,
/// section 4.2: R - C). That holds if its jobs do not overlap.
fn effective_jitter(task: &Task, result: Option<&TaskResult>) -> Result<u64, Refusal> {
    if task.suspension == 0 {
        return Ok(task.jitter);
    }
    match result.map(|result| result.outcome) {
        Some(ResponseBound::Bounded(bound)) if bound.from_arrival <= task.period => {
            Ok(bound.from_arrival - task.cost)
        }
        _ => Err(Refusal::Suspension),
    }
}

/// The delay of other tasks by a task of lower priority.
fn segment_of(task: &Task, sections: Sections, time: TimeModel) -> u64 {
    let length = match sections {
        Sections::Preemptive => 0,
        Sections::NonPreemptive => task.cost,
        Sections::Limited | Sections::Floating => task.np,
    };
    match time {
        TimeModel::Discrete => length.saturating_sub(1),
        TimeModel::Continuous => length,
    }
}

/// How long the end of a job is that cannot be preempted.
pub(crate) fn tail_of(task: &Task, sections: Sections) -> u64 {
    match sections {
        Sections::Preemptive | Sections::Floating => 0,
        Sections::NonPreemptive => task.cost,
        Sections::Limited => task.last,
    }
}

impl Level {
    fn new(
        own: Stream,
        due: u64,
        equals: Vec<Stream>,
        higher: Vec<Stream>,
        blocking: u64,
        rest: u64,
    ) -> Level {
        let all = [&[own], equals.as_slice(), higher.as_slice()].concat();
        let staircase = |s: &Stream| Steps::new(-i128::from(s.jitter), s.period, s.cost);
        let together = if equals.is_empty() { &[] } else { &all[..=equals.len()] };
        let steps = together.iter().map(staircase).collect();
        let higher = InterferenceTerms::from_task(higher);
        Level { task: own, equals, steps, higher, all, blocking, tail: rest, due, deadline: None }
    }

    /// Whether one of these points settles that the deadline, if there is one to be kept, is not.
    fn is_late(&self, points: &[Point]) -> bool {
        let found = |point: &Point| response(point, self.task.period, self.task.jitter);
        let late = |deadline: u64| {
            points.iter().filter_map(found).any(|found| found.from_arrival > deadline)
        };
        self.deadline.is_some_and(late)
    }

    /// All points of the window; `None` if more is demanded than there is.
    fn solve(
        &self,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
    ) -> Result<Option<Window>, Refusal> {
        let at_rest = self.blocking == 0 && self.all.iter().all(|s| s.jitter == 0);
        match compare_shares(self.all.iter().map(Stream::share), (1, 1)) {
            Ordering::Greater => return Ok(None),
            Ordering::Equal if !at_rest => return self.repeating(effort, points).map(Some),
            Ordering::Equal | Ordering::Less => {}
        }
        if self.tail == 0 && self.equals.is_empty() {
            self.closing(effort, points)?;
            return Ok(Some(Window::Closed));
        }
        let first = self.all.iter().try_fold(self.blocking, |sum, s| sum.checked_add(s.cost));
        let first = first.ok_or(Refusal::Overflow)?;
        let length = InterferenceTerms::from_task(self.all.clone()).least_fixed_point(
            self.blocking,
            first,
            effort,
        )?;
        let end = length.checked_add(self.task.jitter).ok_or(Refusal::Overflow)?;
        if !self.equals.is_empty() && self.deadline.is_none() {
            self.among_equals(length, effort, points)?;
            return Ok(Some(Window::Length(length)));
        }
        let mut x = 0;
        for jobs in 1..=end.div_ceil(self.task.period) {
            let before = points.len();
            x = self.jobs(jobs, length, x, effort, points)?;
            if self.is_late(&points[before..]) {
                break;
            }
        }
        Ok(Some(Window::Length(length)))
    }

    /// Preemptive and without equals: the window ends with a job that is done before the next.
    fn closing(&self, effort: &mut StepLimit, points: &mut Vec<Point>) -> Result<(), Refusal> {
        let (mut x, mut offset) = (0, 0);
        for jobs in 1..u64::MAX {
            x = self.finish_time(jobs, 0, x, effort)?;
            let point = Point { offset, jobs, finish: x };
            points.push(point);
            if self.is_late(&[point]) {
                return Ok(());
            }
            let next = jobs.checked_mul(self.task.period).ok_or(Refusal::Overflow)?;
            offset = next.saturating_sub(self.task.jitter);
            if x <= offset {
                return Ok(());
            }
        }
        Err(Refusal::TooLong)
    }

    /// At full utilisation, x(q + H/T) = x(q) + H with the hyperperiod H: all jobs of one
    /// hyperperiod, after those that jitter may bring to the beginning, are all cases there are.
    fn repeating(
        &self,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
    ) -> Result<Window, Refusal> {
        let multiple = self.all.iter().try_fold(1u64, |multiple, s| {
            (multiple / greatest_common_divisor(multiple, s.period)).checked_mul(s.period)
        });
        let multiple = multiple.ok_or(Refusal::Endless)?;
        let end = multiple.checked_add(self.task.jitter).ok_or(Refusal::Overflow)?;
        let mut x = 0;
        for jobs in 1..=end / self.task.period + 1 {
            let before = points.len();
            x = self.jobs(jobs, u64::MAX, x, effort, points)?;
            if self.is_late(&points[before..]) {
                break;
            }
        }
        Ok(Window::Repeats(multiple))
    }

    /// The points of the job with the number `jobs`: released as early as can be, and, if others
    /// have the same priority, wherever one of them comes before it. Offsets are below `limit`.
    /// `from` is a time before which it is not done; gives one for the next job.
    fn jobs(
        &self,
        jobs: u64,
        limit: u64,
        from: u64,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
    ) -> Result<u64, Refusal> {
        let mut x = from;
        let mut least = None;
        for offset in offsets_among_equals(self.task, &self.equals, jobs, limit, effort)? {
            x = self.finish_time(jobs, self.first(offset, effort)?, x, effort)?;
            least = least.or(Some(x));
            let finish = x.checked_add(self.tail).ok_or(Refusal::Overflow)?;
            points.push(Point { offset, jobs, finish });
        }
        Ok(least.unwrap_or(from))
    }

    /// Work of equal priority that is released up to and at an offset.
    fn first(&self, offset: u64, effort: &mut StepLimit) -> Result<u64, Refusal> {
        effort.charge(self.equals.len())?;
        let add = |sum: u64, equal: &Stream| sum.checked_add(equal.work_by(offset)?);
        self.equals.iter().try_fold(0, add).ok_or(Refusal::Overflow)
    }

    /// Points of a window that is at most `length` long where others have the same priority, ascending:
    /// those that decide the bound, and those that show of all others that they do not.
    fn among_equals(
        &self,
        length: u64,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
    ) -> Result<(), Refusal> {
        let end = length.checked_add(self.task.jitter).ok_or(Refusal::Overflow)?;
        let from = points.len();
        let first = self.point(1, 0, effort)?;
        let mut bound = self.with(NO_RESPONSE, &first)?;
        points.push(first);
        // From an offset down to another no response is over the bound, of this job or one before it.
        let top = length.saturating_sub(1);
        let mut settled = vec![(top, self.settled(top, None, bound, effort)?)];
        for jobs in (1..=end.div_ceil(self.task.period)).rev() {
            effort.charge(1)?;
            let nominal = (jobs - 1).checked_mul(self.task.period).ok_or(Refusal::Overflow)?;
            let start = nominal.saturating_sub(self.task.jitter);
            let mut below = nominal.saturating_add(self.task.period).min(length).max(start + 1);
            loop {
                let known = settled.iter().rev().find(|(offset, _)| *offset >= below - 1);
                below = known.map_or(below, |(_, down_to)| below.min(*down_to));
                if below <= start {
                    break;
                }
                effort.charge(self.equals.len())?;
                let offset = self.case_before(below, start, nominal);
                if offset == 0 && jobs == 1 {
                    break;
                }
                let point = self.point(jobs, offset, effort)?;
                bound = self.with(bound, &point)?;
                points.push(point);
                settled.push((offset, self.settled(offset, Some(point.finish), bound, effort)?));
                if offset == start {
                    break;
                }
                below = offset;
            }
        }
        points[from + 1..].reverse();
        Ok(())
    }

    fn with(&self, bound: ResponseTime, point: &Point) -> Result<ResponseTime, Refusal> {
        let found = response(point, self.task.period, self.task.jitter);
        Ok(larger(bound, found.ok_or(Refusal::Overflow)?))
    }

    /// The last offset below `below` and from `start` on at which a job of equal priority more counts, or
    /// the job of the task is in its nominal place.
    fn case_before(&self, below: u64, start: u64, nominal: u64) -> u64 {
        let equals = self.steps.iter().skip(1);
        let last = equals.filter_map(|steps| steps.last_before(below)).max().unwrap_or(0);
        let nominal = if nominal < below { nominal } else { 0 };
        last.max(nominal).max(start)
    }

    /// The least offset from which up to `offset` no response of this job or one before it is over the
    /// bound. `finish` is the end of the case there, if it is known. Where the deadline is missed, equal
    /// responses are not settled: the first of them is the witness.
    fn settled(
        &self,
        offset: u64,
        finish: Option<u64>,
        bound: ResponseTime,
        effort: &mut StepLimit,
    ) -> Result<u64, Refusal> {
        effort.charge(self.equals.len() + 1)?;
        let tie = i128::from(bound.from_arrival > self.due);
        let arrival = i128::from(bound.from_arrival) - i128::from(self.task.jitter);
        let room = arrival.min(bound.from_release.into()) - tie;
        let by_end = finish.map(|finish| (i128::from(finish) - room).max(0));
        let by_end = by_end.and_then(|end| u64::try_from(end).ok()).unwrap_or(u64::MAX);
        if !self.higher.is_empty() {
            return Ok(by_end);
        }
        Ok(by_end.min(settled(self.steps.iter().copied(), self.blocking, offset, room)))
    }

    fn point(&self, jobs: u64, offset: u64, effort: &mut StepLimit) -> Result<Point, Refusal> {
        let x = self.finish_time(jobs, self.first(offset, effort)?, 0, effort)?;
        let finish = x.checked_add(self.tail).ok_or(Refusal::Overflow)?;
        Ok(Point { offset, jobs, finish })
    }

    /// When a job with `jobs - 1` of its task and the work `first` before it can be preempted no
    /// longer; not before `from`.
    fn finish_time(
        &self,
        jobs: u64,
        first: u64,
        from: u64,
        effort: &mut StepLimit,
    ) -> Result<u64, Refusal> {
        let own = jobs.checked_mul(self.task.cost).ok_or(Refusal::Overflow)?;
        let base = self.blocking.checked_add(own).and_then(|base| base.checked_add(first));
        let base = base.ok_or(Refusal::Overflow)? - self.tail;
        self.higher.least_fixed_point(base, from.max(base), effort)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(1_000))]

        /// Cases skipped among equals do not change the bound: with a deadline that no task misses,
        /// every case is tried, in the order of the window.
        #[test]
        fn skipped_cases_decide_nothing(
            numbers in proptest::collection::vec(
                (2..30u64, 1..20u64, 1..60u64, 0..20u64, 0..6u64, 0..3u32), 2..6),
            all in any::<bool>(), np in any::<bool>(),
            scale in prop_oneof![Just(1u64), 1..1u64 << 40],
        ) {
            let count = numbers.len() as u64;
            let task = |(period, part, d, j, blocking, rank): &(u64, u64, u64, u64, u64, u32)| {
                let cost = (period * part / (16 * count)).max(1) * scale;
                let made = Task::new(cost, period * scale, d * scale).unwrap();
                let made = made.with_jitter(j.saturating_sub(9) * scale);
                let made = made.with_blocking(blocking.saturating_sub(4) * scale);
                made.with_priority(if all { 0 } else { *rank })
            };
            let set = TaskSet::new(numbers.iter().map(task).collect());
            let sections = if np { Sections::NonPreemptive } else { Sections::Preemptive };
            let time = TimeModel::Continuous;
            let found = super::super::analyse(&set, sections, time);
            prop_assert_eq!(crate::checker::fixed_priority(&set, sections, time, &found), Ok(()));
            for (position, result) in found.tasks.iter().enumerate() {
                let Window::Length(_) = result.window else { continue };
                let level = level_of(&set, position, sections, time, &found.tasks).unwrap();
                let mut every = Vec::new();
                let level = Level { deadline: Some(u64::MAX), ..level };
                let window = level.solve(&mut StepLimit::default(), &mut every).unwrap().unwrap();
                let exact = set.tasks()[position].blocking == 0;
                let all = task_result(&set, position, &every, 0..every.len(), window, exact);
                prop_assert_eq!((result.outcome, result.verdict), (all.outcome, all.verdict));
                prop_assert!(found.points(position).iter().all(|point| every.contains(point)));
            }
        }
    }
}
