//! Response times with preemption thresholds.
//!
//! Owns: the busy window in which a job that has begun is preempted only by
//! priorities above its threshold (Wang and Saksena, RTCSA 1999; corrected by Regehr, RTSS 2002, and
//! Keskin, Bril and Lukkien, ETFA 2010: all jobs of the window are looked at, and what counts before
//! a start does not count again after it). A threshold that is the own priority gives the preemptive
//! analysis, the highest one the non-preemptive. Equal priorities are served first come, first
//! served. A task without a threshold ([`Task::with_threshold`]) has its own priority as one. Must not: choose
//! thresholds.

use std::cmp::Ordering;

use crate::effort::StepLimit;
use crate::exact_fraction::compare_shares;
use crate::fixed_priority::{TimeModel, outside, overloaded, refused, task_result};
use crate::recurrence::{InterferenceTerms, Stream, offsets_among_equals};
use crate::task::{Task, TaskFeature, TaskSet};
use crate::verdict::{Analysis, Point, Refusal, Window};

/// Only priorities above this preempt a job of the task that has begun.
fn threshold(task: &Task) -> u32 {
    task.threshold().unwrap_or(task.priority)
}

/// By how much a job of lower priority that has begun delays the task: the longest of those whose
/// threshold is not below its priority.
pub(crate) fn segment_before(set: &TaskSet, task: usize, time: TimeModel) -> u64 {
    let own = set.tasks()[task].priority;
    let blocks = set.tasks().iter().filter(|o| o.priority < own && threshold(o) >= own);
    let longest = blocks.map(|other| other.cost).max().unwrap_or(0);
    if time == TimeModel::Discrete { longest.saturating_sub(1) } else { longest }
}

/// The answer: the points of [`Analysis`], and the start of the job of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ThresholdAnalysis {
    /// Bounds, verdicts and points.
    pub analysis: Analysis,
    /// Of each point, in the order of all points, when its job has begun at the latest.
    starts: Vec<u64>,
}

impl ThresholdAnalysis {
    /// The starts of the jobs of [`Analysis::points`], in their order.
    #[must_use]
    pub fn starts(&self, position: usize) -> &[u64] {
        let range = self.analysis.tasks.get(position).map(|task| task.points.clone());
        range.and_then(|range| self.starts.get(range)).unwrap_or_default()
    }
}

/// Bounds the response times of a set with thresholds.
#[must_use]
pub fn analyse(set: &TaskSet, time: TimeModel) -> ThresholdAnalysis {
    analyse_by(set, time, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several analyses.
#[must_use]
pub fn analyse_by(set: &TaskSet, time: TimeModel, effort: &mut StepLimit) -> ThresholdAnalysis {
    if !set.is_plain_but(TaskFeature::Threshold) {
        return ThresholdAnalysis { analysis: outside(set), starts: Vec::new() };
    }
    let (mut points, mut starts, mut tasks) = (Vec::new(), Vec::new(), Vec::new());
    for position in 0..set.len() {
        let from = points.len();
        let solved = Level::new(set, position, time)
            .and_then(|level| level.solve(effort, &mut points, &mut starts));
        tasks.push(match solved {
            Ok(Some(length)) => {
                let exact = set.tasks()[position].blocking == 0;
                let (range, window) = (from..points.len(), Window::Length(length));
                task_result(set, position, &points, range, window, exact)
            }
            Ok(None) => overloaded(from),
            Err(why) => {
                points.truncate(from);
                starts.truncate(from);
                refused(why, from)
            }
        });
    }
    let answer = ThresholdAnalysis { analysis: Analysis { tasks, points }, starts };
    debug_assert_eq!(crate::checker::thresholds(set, time, &answer), Ok(()));
    #[cfg(debug_assertions)]
    crate::reference::assert_thresholds(
        set,
        &set.tasks().iter().map(threshold).collect::<Vec<u32>>(),
        &answer.analysis,
    );
    answer
}

/// Everything that decides when jobs of one task begin and are done.
struct Level {
    task: Stream,
    equals: Vec<Stream>,
    /// Streams of higher priority, which come before a start.
    higher: Vec<Stream>,
    /// Above the threshold: these come also after it.
    above: Vec<Stream>,
    blocking: u64,
}

impl Level {
    fn new(set: &TaskSet, position: usize, time: TimeModel) -> Result<Level, Refusal> {
        if set.tasks().iter().any(|task| task.suspension > 0) {
            return Err(Refusal::SuspensionInSegments);
        }
        let task = &set.tasks()[position];
        let threshold = threshold(task);
        let segment = segment_before(set, position, time);
        let blocking = task.blocking.checked_add(segment).ok_or(Refusal::Overflow)?;
        let (equals, higher, above) = (Vec::new(), Vec::new(), Vec::new());
        let mut level = Level { task: Stream::from_task(task), equals, higher, above, blocking };
        for (_, other) in set.tasks().iter().enumerate().filter(|(at, _)| *at != position) {
            match other.priority.cmp(&task.priority) {
                Ordering::Greater => level.higher.push(Stream::from_task(other)),
                Ordering::Equal => level.equals.push(Stream::from_task(other)),
                Ordering::Less => {}
            }
            if other.priority > threshold {
                level.above.push(Stream::from_task(other));
            }
        }
        Ok(level)
    }

    /// All points of the window, whose length is given; `None` if more is demanded than there is.
    fn solve(
        &self,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
        starts: &mut Vec<u64>,
    ) -> Result<Option<u64>, Refusal> {
        let all = [&[self.task], self.equals.as_slice(), self.higher.as_slice()].concat();
        let at_rest = self.blocking == 0 && all.iter().all(|s| s.jitter == 0);
        match compare_shares(all.iter().map(Stream::share), (1, 1)) {
            Ordering::Greater => return Ok(None),
            Ordering::Equal if !at_rest => return Err(Refusal::Endless),
            Ordering::Equal | Ordering::Less => {}
        }
        let first = all.iter().try_fold(self.blocking, |sum, s| sum.checked_add(s.cost));
        let first = first.ok_or(Refusal::Overflow)?;
        let length =
            InterferenceTerms::from_task(all).least_fixed_point(self.blocking, first, effort)?;
        let end = length.checked_add(self.task.jitter).ok_or(Refusal::Overflow)?;
        let mut from = 0;
        for jobs in 1..=end.div_ceil(self.task.period) {
            let mut first = None;
            effort.charge(1)?;
            for offset in offsets_among_equals(self.task, &self.equals, jobs, length, effort)? {
                let start = self.start(jobs, offset, from, effort)?;
                first = first.or(Some(start));
                points.push(Point { offset, jobs, finish: self.finish_time(start, effort)? });
                starts.push(start);
            }
            from = first.unwrap_or(from);
        }
        Ok(Some(length))
    }

    /// When a job begins: everything of higher priority that is released by then is done. Not
    /// before `from`.
    fn start(
        &self,
        jobs: u64,
        offset: u64,
        from: u64,
        effort: &mut StepLimit,
    ) -> Result<u64, Refusal> {
        let own = (jobs - 1).checked_mul(self.task.cost).ok_or(Refusal::Overflow)?;
        let base = self.equals.iter().try_fold(own, |sum, e| sum.checked_add(e.work_by(offset)?));
        let base =
            base.and_then(|base| base.checked_add(self.blocking)).ok_or(Refusal::Overflow)?;
        let mut start = base.max(from);
        loop {
            effort.charge(self.higher.len())?;
            let add = |sum: u64, stream: &Stream| sum.checked_add(stream.work_by(start)?);
            let next = self.higher.iter().try_fold(base, add).ok_or(Refusal::Overflow)?;
            if next <= start {
                return Ok(next);
            }
            start = next;
        }
    }

    /// When a job that begins at `start` is done: what is released later and above the threshold
    /// preempts it.
    fn finish_time(&self, start: u64, effort: &mut StepLimit) -> Result<u64, Refusal> {
        let base = start.checked_add(self.task.cost).ok_or(Refusal::Overflow)?;
        let mut finish = base;
        loop {
            effort.charge(self.above.len())?;
            let add = |sum: u64, stream: &Stream| {
                let since = stream.work_before(finish)?.checked_sub(stream.work_by(start)?)?;
                sum.checked_add(since)
            };
            let next = self.above.iter().try_fold(base, add).ok_or(Refusal::Overflow)?;
            if next <= finish {
                return Ok(next);
            }
            finish = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::fixed_priority::{self, Sections};
    use crate::reference::worst_with_thresholds;
    use crate::task::TaskError;
    use crate::verdict::{ResponseBound, Verdict};

    fn numbers() -> impl Strategy<Value = Vec<(u64, u64, u64, u64, u32)>> {
        proptest::collection::vec((3..24u64, 1..8u64, 1..40u64, 0..9u64, 0..5u32), 1..5)
    }

    fn set_of(numbers: &[(u64, u64, u64, u64, u32)]) -> TaskSet {
        let task =
            |(at, (period, tenths, deadline, jitter, _)): (usize, &(u64, u64, u64, u64, u32))| {
                let made = Task::new((period * tenths / 16).max(1), *period, *deadline).unwrap();
                made.with_jitter(jitter.saturating_sub(5)).with_priority(10 - at as u32)
            };
        TaskSet::new(numbers.iter().enumerate().map(task).collect())
    }

    fn with(set: &TaskSet, above: impl Fn(usize) -> u32) -> TaskSet {
        let tasks = set.tasks().iter().enumerate().map(|(at, task)| {
            task.with_threshold(task.priority().saturating_add(above(at))).unwrap()
        });
        TaskSet::new(tasks.collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// The simulated worst case is the bound.
        #[test]
        fn bounds_are_reached(numbers in numbers(), equal in any::<bool>()) {
            let mut set = set_of(&numbers);
            if equal {
                let halved = set.tasks().iter().map(|t| t.with_priority(t.priority() / 2));
                set = TaskSet::new(halved.collect());
            }
            let set = with(&set, |at| numbers[at].4);
            let thresholds: Vec<u32> = set.tasks().iter().map(threshold).collect();
            let found = analyse(&set, TimeModel::Discrete).analysis;
            for (position, result) in found.tasks.iter().enumerate() {
                let Some(bound) = result.outcome.response() else { continue };
                if let Some(worst) = worst_with_thresholds(&set, &thresholds, position, &found) {
                    prop_assert_eq!(worst, bound, "task {} of {:?}", position, &set);
                }
            }
        }

        /// The own priority as threshold means full preemption, the highest means no preemption.
        #[test]
        fn the_extremes_are_known(numbers in numbers(), continuous in any::<bool>()) {
            let set = set_of(&numbers);
            let time = if continuous { TimeModel::Continuous } else { TimeModel::Discrete };
            for (above, sections) in [(0, Sections::Preemptive), (u32::MAX, Sections::NonPreemptive)] {
                let found = analyse(&with(&set, |_| above), time).analysis;
                let known = fixed_priority::analyse(&set, sections, time);
                for (found, known) in found.tasks.iter().zip(&known.tasks) {
                    if found.outcome != ResponseBound::Unknown(Refusal::Endless) {
                        prop_assert_eq!(found.outcome, known.outcome);
                        prop_assert_eq!(found.verdict, known.verdict);
                    }
                }
            }
        }
    }

    /// The example of Wang and Saksena 1999: C = 20, 20, 35; T = 70, 80, 200; D = 50, 80, 100.
    /// Neither preemption everywhere nor nowhere is feasible, thresholds are.
    #[test]
    fn thresholds_are_feasible_where_neither_extreme_is() {
        let tasks = [(20, 70, 50, 3), (20, 80, 80, 2), (35, 200, 100, 1)];
        let tasks = tasks.map(|(c, t, d, p)| Task::new(c, t, d).unwrap().with_priority(p));
        let set = TaskSet::new(tasks.to_vec());
        let verdict = |thresholds: [u32; 3]| {
            let tasks = set.tasks().iter().zip(thresholds);
            let tasks = tasks.map(|(task, threshold)| task.with_threshold(threshold).unwrap());
            analyse(&TaskSet::new(tasks.collect()), TimeModel::Continuous).analysis
        };
        let preemptive = verdict([3, 2, 1]).from_arrival();
        assert_eq!(preemptive, [Some(20), Some(40), Some(115)]);
        let none = verdict([3, 3, 3]).from_arrival();
        assert_eq!(none, [Some(55), Some(75), Some(75)]);
        let both = verdict([3, 3, 2]);
        assert_eq!(both.from_arrival(), [Some(40), Some(75), Some(95)]);
        assert_eq!(both.verdict(), Verdict::Feasible);
    }

    /// Nor does a higher priority leave the threshold below it.
    #[test]
    fn thresholds_below_priorities_are_refused() {
        let task = Task::new(1, 2, 2).unwrap().with_priority(3);
        let why = TaskError::LowThreshold { threshold: 2, priority: 3 };
        assert_eq!(task.with_threshold(2), Err(why));
        assert_eq!(task.with_threshold(3).unwrap().with_priority(4).threshold(), Some(4));
    }
}
