//! Global fixed priorities.
//!
//! Owns: response times by Bertogna and Cirinei (RTSS 2007), by Guan, Stigge, Yi and Yu (RTSS
//! 2009), and the tests that do not depend on the order of higher priorities, for which an
//! assignment can be searched (Davis and Burns, RTSJ 2011). Tasks of equal priority are taken to
//! delay each other, in any order of service.
//!
//! A task's deadline may be longer than its period, but a response must not be: nothing is said of
//! tasks whose jobs may overlap. Jitter counts into the response, within which a job is done after its nominal
//! arrival; a task's own suspension delays it as execution would. Tasks of [`DEADLINE_CLASS`] are the budgets of servers
//! that are delivered in time ([`crate::servers::delivery_on_several`]), of whose own responses nothing is said. Must
//! not: order tasks; see [`super::assign`].

use std::cmp::Ordering;

use crate::effort::StepLimit;
use crate::exact_fraction::compare_shares;
use crate::servers::DEADLINE_CLASS;
use crate::task::{Task, TaskSet};
use crate::verdict::{
    Analysis, Point, Refusal, ResponseBound, ResponseTime, TaskResult, Verdict, Window,
};

use super::miss;
use super::schedule::GlobalPolicy;
use super::window::{WindowJob, WindowWork};
use super::{accepted, late, outside, with_largest, without_bound};

/// How response times are bounded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Bound {
    /// Bertogna and Cirinei: all tasks of higher priority carry work in.
    BertognaCirinei {
        /// Whether the bounds of higher priorities are used, or only their deadlines.
        slack: bool,
        /// Whether no task is counted beyond R - C + 1, which is what it can delay. The paper does
        /// so (its equation 7); SchedCAT does not.
        clamp: bool,
    },
    /// Guan et al.: at most m - 1 tasks carry work in.
    LimitedCarryIn,
}

/// The analysis of the paper of Bertogna and Cirinei, theorem 7.
pub const AS_PUBLISHED: Bound = Bound::BertognaCirinei { slack: true, clamp: true };

/// A test of one task that depends on which tasks are of higher priority, but not on their order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpaTest {
    /// Deadline analysis (Bertogna, Cirinei and Lipari, TPDS 2009).
    Deadline,
    /// The bound where at most m - 1 tasks carry work in (Davis and Burns, RTSJ 2011).
    LimitedCarryIn,
}

/// Bounds the response times of a set under global fixed priorities.
#[must_use]
pub fn analyse(set: &TaskSet, cpus: u64, bound: Bound) -> Analysis {
    analyse_by(set, cpus, bound, &mut StepLimit::default())
}

/// The same, which takes what it needs from an effort for several analyses: a step looks once at the work of all tasks in a
/// window.
#[must_use]
pub fn analyse_by(set: &TaskSet, cpus: u64, bound: Bound, effort: &mut StepLimit) -> Analysis {
    let mut points = Vec::with_capacity(set.len());
    let mut tasks: Vec<TaskResult> = Vec::with_capacity(set.len());
    tasks.resize_with(set.len(), || without_bound(Verdict::Unknown(Refusal::NotExact), 0));
    if let Some(why) = outside(set, true) {
        tasks.iter_mut().for_each(|task| *task = without_bound(Verdict::Unknown(why), 0));
        return Analysis { tasks, points };
    }
    let order = set.by_priority();
    let mut rank = 0;
    while rank < order.len() {
        let priority = set.tasks()[order[rank]].priority;
        let same = |p: &&usize| set.tasks()[**p].priority == priority;
        let class = &order[rank..rank + order[rank..].iter().take_while(same).count()];
        bound_class(set, cpus, bound, class, &mut tasks, &mut points, effort);
        rank += class.len();
    }
    let analysis = Analysis { tasks, points };
    debug_assert_eq!(crate::checker::global_fixed_priority(set, cpus, bound, &analysis), Ok(()));
    analysis
}

/// The verdict by the analysis; if it does not accept, a simulation may show a miss.
#[must_use]
pub fn verdict(set: &TaskSet, cpus: u64, bound: Bound) -> Verdict {
    let found = analyse(set, cpus, bound).verdict();
    if !matches!(found, Verdict::Unknown(Refusal::NotExact | Refusal::TooLong)) {
        return found;
    }
    miss::first(set, cpus, GlobalPolicy::FixedPriority).map_or(found, Verdict::Infeasible)
}

/// The tasks of one priority: each bounded on the assumption that the others keep their deadlines,
/// so that either all of the bounds hold or none.
fn bound_class(
    set: &TaskSet,
    cpus: u64,
    bound: Bound,
    class: &[usize],
    tasks: &mut [TaskResult],
    points: &mut Vec<Point>,
    effort: &mut StepLimit,
) {
    let response = |k: &usize| response(set, cpus, bound, *k, tasks, effort);
    let found: Vec<Result<u64, Verdict>> = class.iter().map(response).collect();
    let holds = found.iter().all(Result::is_ok);
    for (k, found) in class.iter().zip(found) {
        let finish = match found {
            Ok(finish) if holds => finish,
            Ok(_) => continue,
            Err(verdict) => {
                tasks[*k] = without_bound(verdict, points.len());
                continue;
            }
        };
        points.push(Point { offset: 0, jobs: 1, finish });
        let from_arrival = finish + set.tasks()[*k].jitter;
        let response = ResponseTime { from_arrival, from_release: finish };
        tasks[*k] = TaskResult {
            outcome: ResponseBound::Bounded(response),
            verdict: accepted(true),
            window: Window::Closed,
            points: points.len() - 1..points.len(),
        };
    }
}

/// The longest response from its nominal arrival that the analysis accepts of a task.
fn limit(task: &Task) -> u64 {
    task.deadline.min(task.period)
}

/// What a job waits for besides others, and the longest window from its release; `None` if that is too short.
fn own_job(task: &Task, cpus: u64) -> Result<Option<WindowJob>, Refusal> {
    let own = task.cost.checked_add(task.blocking).and_then(|own| own.checked_add(task.suspension));
    let own = own.ok_or(Refusal::Overflow)?;
    let limit = limit(task).checked_sub(task.jitter).filter(|limit| own <= *limit);
    Ok(limit.map(|limit| WindowJob { own, limit, cpus }))
}

/// A task that may delay another one.
#[derive(Clone, Copy, Debug)]
struct Rival<'a> {
    task: &'a Task,
    /// A job is done within it after its nominal arrival. Of a budget, which may last with twice what a period leaves
    /// besides it, it is what bounds its work ([`crate::servers::Server::above_priorities`]).
    response: u64,
}

impl<'a> Rival<'a> {
    fn new(task: &'a Task, response: u64) -> Rival<'a> {
        match task.priority {
            DEADLINE_CLASS => Rival { task, response: task.cost.saturating_add(task.jitter) },
            _ => Rival { task, response },
        }
    }

    /// Most work in any window.
    fn at_most(&self, window: u64) -> WindowWork {
        WindowWork::with_carry_in(self.task, window, self.response)
    }

    /// Most work in a window that begins while no job of it is ready (Guan et al., equation 5): later jobs may have
    /// arrived before. One that suspends itself may be under way all the same.
    fn without_carry_in(&self, window: u64) -> WindowWork {
        if self.task.suspension > 0 {
            return self.at_most(window);
        }
        let delayed = self.task.cost.saturating_add(self.task.jitter).min(self.response);
        WindowWork::with_carry_in(self.task, window, delayed)
    }

    /// Most work in a window that begins while a job runs that began before (equation 6).
    fn carried_in(&self, window: u64) -> WindowWork {
        let (task, response) = (self.task, self.response);
        if task.suspension > 0 || task.priority == DEADLINE_CLASS {
            return self.at_most(window);
        }
        let Some(after) = window.checked_sub(task.cost) else {
            return WindowWork { now: task.cost.into(), grows: 0 };
        };
        let jobs = u128::from(after / task.period) + 1;
        let (rest, most) = (task.period.saturating_sub(response), u128::from(task.cost - 1));
        let late = u128::from((after % task.period).saturating_sub(rest)).min(most);
        let grows = if after % task.period < rest { 0 } else { most - late };
        WindowWork { now: jobs * u128::from(task.cost) + late, grows }
    }
}

/// The tasks that may delay the one at `k`.
fn rivals<'a>(
    set: &'a TaskSet,
    k: usize,
    slack: bool,
    done: &[TaskResult],
) -> Result<Vec<Rival<'a>>, Refusal> {
    let own = set.tasks()[k].priority;
    let mut found = Vec::new();
    for (i, task) in set.tasks().iter().enumerate() {
        if i == k || task.priority < own {
            continue;
        }
        let assumed = match done[i].outcome {
            ResponseBound::Bounded(bound) if slack && task.priority > own => bound.from_arrival,
            ResponseBound::Bounded(_) => limit(task),
            _ if task.priority == own || task.priority == DEADLINE_CLASS => limit(task),
            _ => return Err(Refusal::NotExact),
        };
        found.push(Rival::new(task, assumed));
    }
    Ok(found)
}

fn response(
    set: &TaskSet,
    cpus: u64,
    bound: Bound,
    k: usize,
    done: &[TaskResult],
    effort: &mut StepLimit,
) -> Result<u64, Verdict> {
    let task = &set.tasks()[k];
    if task.priority == DEADLINE_CLASS {
        return Err(Verdict::Unknown(Refusal::OutsideModel));
    }
    if let Some(late) = late(k, task) {
        return Err(late);
    }
    let slack = bound != (Bound::BertognaCirinei { slack: false, clamp: true })
        && bound != (Bound::BertognaCirinei { slack: false, clamp: false });
    let rivals = rivals(set, k, slack, done).map_err(Verdict::Unknown)?;
    if starves(task, &rivals, cpus) {
        return Err(Verdict::NoBound);
    }
    let job = own_job(task, cpus).map_err(Verdict::Unknown)?;
    let job = job.ok_or(Verdict::Unknown(Refusal::NotExact))?;
    let works = |window: u64, works: &mut Vec<WindowWork>| match bound {
        // Fewer rivals than processors never keep all of them busy.
        _ if (rivals.len() as u64) < cpus => {}
        Bound::BertognaCirinei { clamp, .. } => {
            let most = if clamp { u128::from(window - job.own) + 1 } else { u128::MAX };
            let of = |rival: &Rival| rival.at_most(window).at_most_growing(most);
            works.extend(rivals.iter().map(of));
        }
        Bound::LimitedCarryIn => limited(&rivals, job, window, works),
    };
    let found = job.shortest(effort, works).map_err(Verdict::Unknown)?;
    found.ok_or(Verdict::Unknown(Refusal::NotExact))
}

/// Whether a task and the rivals that are known to get all they need together need more than there
/// is.
fn starves(task: &Task, rivals: &[Rival], cpus: u64) -> bool {
    let all = rivals.iter().map(|rival| rival.task).chain(std::iter::once(task));
    let shares = all.map(|t| (t.cost, t.period));
    task.cost > task.period || compare_shares(shares, (cpus, 1)) == Ordering::Greater
}

/// Works of rivals of which at most m - 1 carry work in, those whose work it makes the largest
/// (Guan et al., equations 5 to 9).
fn limited(rivals: &[Rival], job: WindowJob, window: u64, works: &mut Vec<WindowWork>) {
    let most = u128::from(window - job.own) + 1;
    let mut both: Vec<(u128, WindowWork, WindowWork)> = Vec::with_capacity(rivals.len());
    for rival in rivals {
        let without = rival.without_carry_in(window).at_most_growing(most);
        let with = rival.carried_in(window).at_most_growing(most);
        both.push((with.now.saturating_sub(without.now), with, without));
    }
    both.sort_unstable_by_key(|(more, ..)| std::cmp::Reverse(*more));
    for (rank, (more, with, without)) in both.into_iter().enumerate() {
        let carries = more > 0 && (rank as u64) < job.cpus - 1;
        works.push(if carries { with } else { without });
    }
}

/// Whether the task at `k` keeps its deadline whatever the order of `higher` is, if those keep
/// theirs. Blocking is added to the cost. For [`super::assign::audsley`].
#[must_use]
pub fn keeps_deadline(
    tasks: &[Task],
    higher: &[usize],
    k: usize,
    cpus: u64,
    test: OpaTest,
) -> bool {
    let Ok(Some(WindowJob { own, limit: window, .. })) = own_job(&tasks[k], cpus) else {
        return false;
    };
    if (higher.len() as u64) < cpus {
        return true;
    }
    let most = u128::from(window - own) + 1;
    let (mut sum, mut more) = (0u128, Vec::with_capacity(higher.len()));
    for other in higher.iter().map(|i| Rival::new(&tasks[*i], limit(&tasks[*i]))) {
        let with = other.at_most(window).now.min(most);
        match test {
            OpaTest::Deadline => sum += with,
            OpaTest::LimitedCarryIn => {
                let without = other.without_carry_in(window).now.min(most);
                sum += without;
                more.push(with.saturating_sub(without));
            }
        }
    }
    with_largest(sum, more, cpus.saturating_sub(1)) / u128::from(cpus) <= u128::from(window - own)
}
