//! Response times of tasks whose phases are known.
//!
//! Owns: the busy windows that known phases ([`Task::with_phase`]) leave possible, under preemptive fixed
//! priorities. Every window has a job that is released as late as it may when the window begins
//! (Palencia and Gonzalez Harbour, RTSS 1998, theorem 1); with phases, these instants repeat after
//! the least common multiple of the periods (Leung and Merrill, IPL 1980), and all of them are
//! looked at. Must not: be used for sporadic tasks as if they had phases; these have none.
//!
//! Exact, if no task states blocking or suspension, and priorities differ. Blocking counts in every
//! window, and equal priorities count as higher, so that then a bound is only sufficient. Where
//! the search is given up, or a task suspends itself, the bound is that without phases, which always
//! holds.

use std::cmp::Ordering;

use crate::effort::StepLimit;
use crate::exact_fraction::{compare_shares, hyperperiod};
use crate::fixed_priority::{self, NO_RESPONSE, Sections, TimeModel, larger};
use crate::task::{Task, TaskFeature, TaskSet};
use crate::verdict::{Analysis, Point, Refusal, ResponseBound, ResponseTime, TaskResult, Verdict};
use crate::verdict::{Window, Witness};

/// Looks for the search, fewer than elsewhere, since each step may leave a point.
pub const DEFAULT_LOOKS: u64 = 25_000_000;

/// The answer: the points of [`Analysis`], and the start of the window of each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OffsetAnalysis {
    /// Bounds, verdicts and points; offsets and completions count from the beginning of a window.
    pub analysis: Analysis,
    /// The start of the window of each point, in the order of all points.
    starts: Vec<u64>,
    /// Whether the bound of each task comes from known phases.
    phased: Vec<bool>,
}

impl OffsetAnalysis {
    /// When the windows of [`Analysis::points`] begin, in the same order; none where the bound is
    /// that without phases.
    #[must_use]
    pub fn starts(&self, position: usize) -> &[u64] {
        let range = self.analysis.tasks.get(position).map(|task| task.points.clone());
        let range = range.filter(|_| self.uses_phases(position));
        range.and_then(|range| self.starts.get(range)).unwrap_or_default()
    }

    /// Whether the bound of a task comes from known phases, and not from the analysis without.
    #[must_use]
    pub fn uses_phases(&self, position: usize) -> bool {
        self.phased.get(position).copied().unwrap_or(false)
    }
}

/// Bounds response times under preemptive fixed priorities.
#[must_use]
pub fn fixed_priority(set: &TaskSet) -> OffsetAnalysis {
    fixed_priority_within(set, StepLimit::with_steps(DEFAULT_LOOKS))
}

/// The same with a stated effort.
#[must_use]
pub fn fixed_priority_within(set: &TaskSet, effort: StepLimit) -> OffsetAnalysis {
    if !set.is_plain_but(TaskFeature::Phase) {
        let analysis = fixed_priority::outside(set);
        return OffsetAnalysis { analysis, starts: Vec::new(), phased: Vec::new() };
    }
    let mut effort = effort;
    let without = fixed_priority::analyse(&set.plain(), Sections::Preemptive, TimeModel::Discrete);
    let analysis = Analysis { tasks: Vec::new(), points: Vec::new() };
    let mut answer = OffsetAnalysis { analysis, starts: Vec::new(), phased: Vec::new() };
    for position in 0..set.len() {
        let from = answer.analysis.points.len();
        let found = Level::new(set, position).and_then(|level| {
            level.solve(&mut effort, &mut answer.analysis.points, &mut answer.starts)
        });
        let result = match found {
            Ok((bound, worst, repeats)) => {
                Some(task_result(set, position, bound, worst, from, repeats, &answer))
            }
            Err(_) => None,
        };
        let known = &without.tasks[position];
        let better =
            result.filter(|r| r.verdict == Verdict::Feasible || known.verdict != Verdict::Feasible);
        answer.phased.push(better.is_some());
        let result = better.unwrap_or_else(|| {
            answer.analysis.points.truncate(from);
            answer.analysis.points.extend(without.points(position));
            let own = set.tasks()[position].priority;
            let mut tasks = set.tasks().iter();
            let known_phases = tasks.any(|t| t.priority >= own && t.phase().is_some());
            let verdict = match known.verdict {
                // This miss may not occur in the known phases.
                Verdict::Infeasible(_) if known_phases => Verdict::Unknown(Refusal::NotExact),
                other => other,
            };
            let points = from..answer.analysis.points.len();
            TaskResult { points, verdict, ..known.clone() }
        });
        answer.starts.resize(answer.analysis.points.len(), 0);
        answer.analysis.tasks.push(result);
    }
    debug_assert_eq!(crate::checker::phases(set, &answer), Ok(()));
    #[cfg(debug_assertions)]
    crate::reference::assert_phases(set, &answer.analysis);
    answer
}

/// The result of a task; `worst` is the position of its worst point.
fn task_result(
    set: &TaskSet,
    position: usize,
    bound: ResponseTime,
    worst: usize,
    from: usize,
    repeats: u64,
    answer: &OffsetAnalysis,
) -> TaskResult {
    let tasks = set.tasks();
    let task = &tasks[position];
    let alone = tasks.iter().filter(|t| t.priority == task.priority).count() == 1;
    let exact = alone && task.blocking == 0;
    let verdict = if bound.from_arrival <= task.deadline {
        Verdict::Feasible
    } else if exact {
        let job = answer.analysis.points.get(worst).map_or(1, |point| point.jobs);
        let (response, deadline) = (bound.from_arrival, task.deadline);
        Verdict::Infeasible(Witness::Response { task: position, job, response, deadline })
    } else {
        Verdict::Unknown(Refusal::NotExact)
    };
    let points = from..answer.analysis.points.len();
    TaskResult {
        outcome: ResponseBound::Bounded(bound),
        verdict,
        window: Window::Repeats(repeats),
        points,
    }
}

/// A task as seen from the beginning of a window.
#[derive(Clone, Copy, Debug)]
struct Member {
    cost: u64,
    period: u64,
    jitter: u64,
    offset: Option<u64>,
}

impl Member {
    /// The first job, from 0, that may be released at `start` or later.
    fn first(&self, start: u64) -> u64 {
        let latest = self.offset.and_then(|offset| offset.checked_add(self.jitter));
        latest.map_or(0, |latest| start.saturating_sub(latest).div_ceil(self.period))
    }

    /// Jobs released in a window of this length from `start` on, all that may at its beginning.
    fn jobs(&self, start: u64, window: u64) -> Option<u64> {
        match self.offset {
            None => Some(window.checked_add(self.jitter)?.div_ceil(self.period)),
            Some(offset) => {
                let end = start.checked_add(window)?;
                let by = end.saturating_sub(offset).div_ceil(self.period);
                Some(by.saturating_sub(self.first(start)))
            }
        }
    }

    /// When a job, counted from 0 in the window, arrives: from the beginning of the window, which
    /// may be later.
    fn arrival(&self, start: u64, job: u64) -> Option<i128> {
        let number = self.first(start).checked_add(job)?;
        let after = i128::from(number.checked_mul(self.period)?);
        Some(match self.offset {
            None => after - i128::from(self.jitter),
            Some(offset) => i128::from(offset) + after - i128::from(start),
        })
    }
}

/// Everything that decides when jobs of one task are done.
struct Level {
    task: Member,
    others: Vec<Member>,
    blocking: u64,
    /// All windows that begin earlier are analysed; later ones repeat.
    end: u64,
    repeats: u64,
    /// Nothing jitters, and all phases are known: there is one schedule.
    fixed: bool,
    full: bool,
}

impl Level {
    fn new(set: &TaskSet, position: usize) -> Result<Level, Refusal> {
        let tasks = set.tasks();
        let own = &tasks[position];
        if tasks.iter().any(|task| task.suspension > 0) {
            return Err(Refusal::Suspension);
        }
        let counts = |at: &usize| *at == position || tasks[*at].priority >= own.priority;
        let counted: Vec<usize> = (0..tasks.len()).filter(counts).collect();
        let known = |at: &&usize| tasks[**at].phase().is_some();
        let of_known = counted.iter().filter(known).map(|at| &tasks[*at]);
        let repeats = hyperperiod(of_known).ok_or(Refusal::Overflow)?;
        let shares = counted.iter().map(|at| (tasks[*at].cost, tasks[*at].period));
        let load = compare_shares(shares, (1, 1));
        let member = |at: usize| {
            let Task { cost, period, jitter, .. } = tasks[at];
            Member { cost, period, jitter, offset: tasks[at].phase() }
        };
        let begun = counted
            .iter()
            .filter(known)
            .map(|at| tasks[*at].phase().unwrap_or(0).checked_add(tasks[*at].jitter));
        let begun = begun.max().flatten().ok_or(Refusal::Overflow)?;
        let fixed = counted.iter().all(|at| known(&at) && tasks[*at].jitter == 0);
        let fixed = fixed && own.blocking == 0;
        if load == Ordering::Greater || (load == Ordering::Equal && !fixed) {
            return Err(Refusal::Endless);
        }
        Ok(Level {
            task: member(position),
            others: counted.iter().filter(|at| **at != position).map(|at| member(*at)).collect(),
            blocking: own.blocking,
            end: begun.checked_add(repeats).ok_or(Refusal::Overflow)?,
            repeats,
            fixed,
            full: load == Ordering::Equal,
        })
    }

    /// The bound, the position of its point, and after how long windows repeat.
    fn solve(
        &self,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
        starts: &mut Vec<u64>,
    ) -> Result<(ResponseTime, usize, u64), Refusal> {
        let (mut bound, mut worst) = (NO_RESPONSE, points.len());
        let mut over = 0;
        for start in self.starts(effort)? {
            if self.fixed && start < over {
                continue;
            }
            let from = points.len();
            over = self.window(start, effort, points)?;
            starts.resize(points.len(), start);
            for (at, point) in points.iter().enumerate().skip(from) {
                let found = self.response(start, point).ok_or(Refusal::Overflow)?;
                if found.from_arrival > bound.from_arrival {
                    worst = at;
                }
                bound = larger(bound, found);
            }
        }
        Ok((bound, worst, self.repeats))
    }

    /// When windows may begin, ascending: when a job of known phase is released as late as it may.
    fn starts(&self, effort: &mut StepLimit) -> Result<Vec<u64>, Refusal> {
        let mut starts = Vec::new();
        for member in self.others.iter().chain([&self.task]) {
            let Some(offset) = member.offset else { continue };
            let mut next = offset.checked_add(member.jitter);
            while let Some(start) = next.filter(|start| *start < self.end) {
                effort.charge(1)?;
                starts.push(start);
                next = start.checked_add(member.period);
            }
        }
        starts.sort_unstable();
        starts.dedup();
        Ok(starts)
    }

    /// The bounds by a point of the window that begins at `start`.
    fn response(&self, start: u64, point: &Point) -> Option<ResponseTime> {
        let arrival = self.task.arrival(start, point.jobs - 1)?;
        let from_arrival = u64::try_from(i128::from(point.finish) - arrival).ok()?;
        Some(ResponseTime { from_arrival, from_release: point.finish - point.offset })
    }

    /// The points of the window that begins at `start`, and when it is over.
    fn window(
        &self,
        start: u64,
        effort: &mut StepLimit,
        points: &mut Vec<Point>,
    ) -> Result<u64, Refusal> {
        // At full utilisation a window need not end, but repeats.
        let last = self.end.max(start).checked_add(self.repeats).ok_or(Refusal::Overflow)?;
        let mut x = 1;
        for job in 0.. {
            let arrival = self.task.arrival(start, job).ok_or(Refusal::Overflow)?;
            let offset = u64::try_from(arrival.max(0)).map_err(|_| Refusal::Overflow)?;
            let before = job.checked_mul(self.task.cost).ok_or(Refusal::Overflow)?;
            let before = before.checked_add(self.blocking).ok_or(Refusal::Overflow)?;
            if offset > 0 {
                let idle = self.least_fixed_point(start, before, x, effort)?;
                if idle <= offset {
                    return start.checked_add(idle).ok_or(Refusal::Overflow);
                }
                x = idle;
            }
            let at = start.checked_add(offset).ok_or(Refusal::Overflow)?;
            if self.full && at >= last {
                return Ok(u64::MAX);
            }
            let base = before.checked_add(self.task.cost).ok_or(Refusal::Overflow)?;
            x = self.least_fixed_point(start, base, x.max(base), effort)?;
            points.push(Point { offset, jobs: job + 1, finish: x });
        }
        Err(Refusal::TooLong)
    }

    /// The least `x` above 0 with `x = base + work(x)`, given that it is not below `from`.
    fn least_fixed_point(
        &self,
        start: u64,
        base: u64,
        from: u64,
        effort: &mut StepLimit,
    ) -> Result<u64, Refusal> {
        let mut x = from.max(1);
        loop {
            effort.charge(self.others.len())?;
            let add = |sum: u64, other: &Member| {
                sum.checked_add(other.jobs(start, x)?.checked_mul(other.cost)?)
            };
            let next = self.others.iter().try_fold(base, add).ok_or(Refusal::Overflow)?;
            if next <= x {
                return Ok(next.max(1));
            }
            x = next;
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reference::worst_with_phases;

    const PERIODS: [u64; 6] = [4, 5, 6, 8, 10, 12];

    type Numbers = (usize, u64, u64, u64, u64);

    fn numbers() -> impl Strategy<Value = Vec<Numbers>> {
        proptest::collection::vec((0..6usize, 1..7u64, 1..30u64, 0..16u64, 0..12u64), 1..5)
    }

    fn phased(numbers: &[Numbers], jitters: bool) -> TaskSet {
        let task = |(period, tenths, deadline, phase, jitter): &Numbers| {
            let period = PERIODS[*period];
            let made = Task::new((period * tenths / 14).max(1), period, *deadline).unwrap();
            let made = made.with_jitter(if jitters { jitter.saturating_sub(5) } else { 0 });
            made.with_phase(Some(*phase))
        };
        TaskSet::in_order(numbers.iter().map(task).collect())
    }

    /// The tasks of `set` in these phases.
    fn in_phases(set: &TaskSet, phases: &[Option<u64>]) -> TaskSet {
        let tasks = set.tasks().iter().zip(phases);
        TaskSet::new(tasks.map(|(task, phase)| task.with_phase(*phase)).collect())
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(500))]

        /// Without jitter there is one schedule, and its worst response is the bound.
        #[test]
        fn the_schedule_is_the_bound(numbers in numbers()) {
            let of = phased(&numbers, false);
            let found = fixed_priority(&of);
            if let Some(worst) = worst_with_phases(&of, |_, _, _| 0) {
                for (task, worst) in worst.iter().enumerate() {
                    if found.uses_phases(task) {
                        let bound = found.analysis.tasks[task].outcome.response();
                        prop_assert_eq!(bound, Some(*worst), "task {} of {:?}", task, &of);
                    }
                }
            }
        }

        /// Whatever each job's jitter is, it is done within the bound, which is never above that
        /// without phases.
        #[test]
        fn no_jitter_exceeds_the_bound(numbers in numbers(), late in proptest::collection::vec(0..9u64, 97)) {
            let of = phased(&numbers, true);
            let found = fixed_priority(&of).analysis;
            let delay = |task: usize, job: u64, _| late[(task as u64 * 31 + job) as usize % 97];
            if let Some(worst) = worst_with_phases(&of, delay) {
                for (task, worst) in worst.iter().enumerate() {
                    if let Some(bound) = found.tasks[task].outcome.response() {
                        prop_assert!(worst.from_arrival <= bound.from_arrival, "{:?}", &of);
                        prop_assert!(worst.from_release <= bound.from_release, "{:?}", &of);
                    }
                }
            }
            let without =
                fixed_priority::analyse(&of.plain(), Sections::Preemptive, TimeModel::Discrete);
            for (with, without) in found.from_arrival().iter().zip(without.from_arrival()) {
                prop_assert!(without.is_none_or(|without| with.is_some_and(|w| w <= without)));
            }
        }

        /// All phases unknown: the analysis without; one unknown: no better than any phase of it.
        #[test]
        fn any_phase_is_the_worst_phase(numbers in numbers(), which in 0..5usize, offset in 0..12u64) {
            let of = phased(&numbers, true);
            let none = of.plain();
            let without =
                fixed_priority::analyse(&of.plain(), Sections::Preemptive, TimeModel::Discrete);
            prop_assert_eq!(fixed_priority(&none).analysis.from_arrival(), without.from_arrival());
            let mut offsets: Vec<Option<u64>> = of.tasks().iter().map(Task::phase).collect();
            let which = which % offsets.len();
            offsets[which] = None;
            let any = fixed_priority(&in_phases(&of, &offsets)).analysis;
            offsets[which] = Some(offset);
            let one = fixed_priority(&in_phases(&of, &offsets)).analysis;
            for (one, any) in one.from_arrival().iter().zip(any.from_arrival()) {
                prop_assert!(any.is_none_or(|any| one.is_some_and(|one| one <= any)));
            }
        }

        /// For all numbers the analysis soon gives an answer.
        #[test]
        fn no_numbers_make_it_fail(numbers in proptest::collection::vec(
            (any::<u64>(), any::<u64>(), any::<u64>(), any::<u64>(), 0..64u32), 1..4)
        ) {
            let task = |(c, t, d, j, shift): &(u64, u64, u64, u64, u32)| {
                let made = Task::new((c >> shift).max(1), (t >> (shift / 2)).max(1), (*d).max(1));
                made.unwrap().with_jitter(j >> shift)
            };
            let set = TaskSet::in_order(numbers.iter().map(task).collect());
            let offsets: Vec<Option<u64>> = numbers.iter().map(|n| Some(n.2 >> n.4)).collect();
            let found = fixed_priority_within(&in_phases(&set, &offsets), StepLimit::with_steps(125_000));
            prop_assert_eq!(found.analysis.tasks.len(), numbers.len());
        }
    }

    /// Two tasks of 2 every 4 that never meet: at full utilisation both respond in 2.
    #[test]
    fn phases_keep_tasks_apart() {
        let set = TaskSet::in_order(vec![Task::new(2, 4, 2).unwrap(); 2]);
        let apart = fixed_priority(&in_phases(&set, &[Some(0), Some(2)])).analysis;
        assert_eq!(apart.from_arrival(), [Some(2), Some(2)]);
        assert_eq!(apart.verdict(), Verdict::Feasible);
        let together = fixed_priority(&in_phases(&set, &[Some(0), Some(0)])).analysis;
        assert!(matches!(together.verdict(), Verdict::Infeasible(_)));
    }

    /// The common multiple of these periods is too long: the bound is that without phases.
    #[test]
    fn what_takes_too_long_is_bounded_without_phases() {
        let tasks = [(1, 999_983), (1, 1_000_003), (1, 1_000_033)];
        let tasks = tasks.map(|(c, t)| Task::new(c, t, t).unwrap());
        let set = TaskSet::in_order(tasks.to_vec());
        let found = fixed_priority(&in_phases(&set, &[Some(0), Some(9), Some(18)]));
        assert_eq!(found.analysis.from_arrival(), [Some(1), Some(2), Some(3)]);
        assert!(found.uses_phases(0) && !found.uses_phases(2));
        assert_eq!(found.analysis.verdict(), Verdict::Feasible);
    }
}
