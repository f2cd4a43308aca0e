//! Servers: what each kind takes from others, and what it gives to its own tasks.
//!
//! Owns: [`Server`]; its interference as a task (Sprunt, Sha and Lehoczky, RTS 1989; Strosnider,
//! Lehoczky and Sha, IEEE TC 1995; Abeni and Buttazzo, RTSS 1998) and its supply (Shin and Lee, RTSS
//! 2003; Davis and Burns, RTSS 2005); [`PlacedServer`], servers among the tasks of a processor. Must not: be
//! a simulator; see [`crate::cbs`].
//!
//! A server delivers its budget within its deadline of each replenishment, if there is work for it.
//! Under fixed priorities, that is the server's own response time, under EDF its relative deadline.
//! The caller that uses a supply must check this with [`is_delivered`].

use crate::edf::qpa::{self, Feasibility};
use crate::exact_fraction::compare_shares;
use crate::fixed_priority;
use crate::global::edf::gfb;
use crate::sections::segment_before;
use crate::sections::{Sections, TimeModel};
use crate::supply::{self, Supply, SupplyError};
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::{Analysis, Refusal, ResponseBound, ResponseTime, TaskResult, Verdict, Window};

/// The rules of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ServerPolicy {
    /// Budget that is not used when the period begins is lost.
    Polling,
    /// The budget stays until the period ends.
    Deferrable,
    /// Used budget comes back a period after its use began.
    Sporadic,
    /// A constant-bandwidth server that waits for its next period when the budget is spent.
    HardBandwidth,
    /// A constant-bandwidth server that goes on at once with a later deadline.
    SoftBandwidth,
    /// A hard constant-bandwidth server that takes what others leave besides its budget (GRUB: Lipari and Baruah,
    /// ECRTS 2000). Its budget lasts at least as long as it would without, so that it gives no less.
    Reclaiming,
    /// Budget at any time of the period.
    Periodic,
}

/// All kinds.
pub const KINDS: [ServerPolicy; 7] = [
    ServerPolicy::Polling,
    ServerPolicy::Deferrable,
    ServerPolicy::Sporadic,
    ServerPolicy::HardBandwidth,
    ServerPolicy::SoftBandwidth,
    ServerPolicy::Reclaiming,
    ServerPolicy::Periodic,
];

/// A scheduler among the tasks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalScheduler {
    /// Preemptive fixed priorities.
    FixedPriority,
    /// Earliest deadline first.
    Edf,
}

/// A budget in every period.
///
/// Invariant: 0 < budget <= deadline <= period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Server {
    kind: ServerPolicy,
    period: u64,
    budget: u64,
    deadline: u64,
}

impl Server {
    /// A server whose budget is delivered within its period.
    ///
    /// # Errors
    /// A budget of 0 or over the period.
    pub fn new(kind: ServerPolicy, period: u64, budget: u64) -> Result<Server, SupplyError> {
        Server::with_deadline(kind, period, budget, period)
    }

    /// A server whose budget is delivered within `deadline` of each replenishment. A soft or
    /// reclaiming server is not held to less than its period, whatever is said here.
    ///
    /// # Errors
    /// A budget of 0 or over the deadline, a deadline over the period.
    pub fn with_deadline(
        kind: ServerPolicy,
        period: u64,
        budget: u64,
        deadline: u64,
    ) -> Result<Server, SupplyError> {
        Supply::with_deadline(period, budget, deadline)?;
        let by_period = matches!(kind, ServerPolicy::SoftBandwidth | ServerPolicy::Reclaiming);
        let deadline = if by_period { period } else { deadline };
        Ok(Server { kind, period, budget, deadline })
    }

    /// The rules of the server.
    #[must_use]
    pub fn kind(&self) -> ServerPolicy {
        self.kind
    }

    /// Processor time of a period.
    #[must_use]
    pub fn budget(&self) -> u64 {
        self.budget
    }

    /// The time between two replenishments.
    #[must_use]
    pub fn period(&self) -> u64 {
        self.period
    }

    /// The time from a replenishment within which the budget is delivered.
    #[must_use]
    pub fn deadline(&self) -> u64 {
        self.deadline
    }

    /// What the server is to tasks of lower fixed priority: a task with its budget as cost. `None` if
    /// nothing bounds what it takes: a soft server goes on when its budget is spent, a reclaiming one takes what is left.
    ///
    /// A deferrable or periodic server may spend a budget at the end of a period and the next at once,
    /// as if released with a jitter of P - Q. A constant-bandwidth server may trickle away its rate with
    /// a full budget left at any time, and then spend two; 2 (P - Q) cover that.
    #[must_use]
    pub fn above_priorities(&self) -> Option<Task> {
        let room = self.period - self.budget;
        let late = match self.kind {
            ServerPolicy::Polling | ServerPolicy::Sporadic => 0,
            ServerPolicy::Deferrable | ServerPolicy::Periodic => room,
            ServerPolicy::HardBandwidth => room.saturating_mul(2),
            ServerPolicy::SoftBandwidth | ServerPolicy::Reclaiming => return None,
        };
        Some(self.as_task().ok()?.with_jitter(late))
    }

    /// The budget as cost, within the deadline, in every period: what a constant-bandwidth server
    /// demands among others of its kind (Abeni and Buttazzo 1998).
    fn as_task(&self) -> Result<Task, TaskError> {
        Task::new(self.budget, self.period, self.deadline)
    }

    /// Whether it is a constant-bandwidth server with a deadline of its period, of which any number may
    /// share a processor by their deadlines.
    fn is_constant(&self) -> bool {
        let constant = matches!(
            self.kind,
            ServerPolicy::HardBandwidth | ServerPolicy::SoftBandwidth | ServerPolicy::Reclaiming
        );
        constant && self.deadline == self.period
    }

    /// The least that the server gives its tasks in any window that begins when one of them, or one
    /// of those that count, is released.
    ///
    /// Polling: the window begins just after a budget was lost, a whole period before the next
    /// one. Soft bandwidth: the window begins with a fresh deadline; all tasks of the server count,
    /// since what any of them used postpones the deadline of the others.
    #[must_use]
    pub fn supply(&self) -> Option<Supply> {
        let supply = Supply::with_deadline(self.period, self.budget, self.deadline).ok()?;
        Some(match self.kind {
            ServerPolicy::Polling => supply.with_wait(self.period),
            ServerPolicy::SoftBandwidth => supply.with_wait(0),
            ServerPolicy::Deferrable
            | ServerPolicy::Sporadic
            | ServerPolicy::HardBandwidth
            | ServerPolicy::Reclaiming
            | ServerPolicy::Periodic => supply,
        })
    }

    /// Bounds response times of the server's tasks under preemptive fixed priorities; in a soft
    /// server, in whatever order they are served. `None` cannot happen of a server that could be
    /// made.
    #[must_use]
    pub fn response_times(&self, set: &TaskSet) -> Option<Analysis> {
        Some(supply::fixed_priority(&self.counted(set), &self.supply()?))
    }

    /// The bound of the only task of a hard constant-bandwidth server whose jobs take n budgets each and arrive at least n
    /// periods apart. A job that finds the server's deadline past gets a new one, and is done n periods later; one that
    /// finds it ahead, since jitter delayed the job before, goes on with that deadline and needs at most n periods more.
    /// By induction the server's deadline at the end of a job is at most jitter and n periods after its arrival, and
    /// deadlines are kept (Abeni and Buttazzo 1998, where n is 1 and there is no jitter). `None` of all others, and
    /// where the supply bounds it better.
    #[must_use]
    pub fn whole_budgets(&self, set: &TaskSet) -> Option<Analysis> {
        let [task] = set.tasks() else { return None };
        let waits = task.suspension() > 0 || task.blocking() > 0 || task.curve().is_some();
        let periods = task.cost().div_ceil(self.budget).checked_mul(self.period)?;
        let finds_it_idle = task.period().checked_sub(task.jitter()) >= Some(periods);
        // A deadline before the period is another after a wait (`update_dl_revised_wakeup`), and after a budget was used
        // up, which comes back while no job is there (`replenish_dl_entity`).
        let is_fresh = finds_it_idle && task.cost() < self.budget;
        let fits = periods <= task.period() && (is_fresh || self.deadline == self.period);
        let is_hard = matches!(self.kind, ServerPolicy::HardBandwidth | ServerPolicy::Reclaiming);
        if !is_hard || waits || !fits {
            return None;
        }
        let served = periods.checked_sub(self.period - self.deadline)?;
        let from_arrival = served.checked_add(task.jitter())?;
        let from_release = if finds_it_idle { served } else { from_arrival };
        let supplied = self.response_times(set)?.from_arrival();
        if supplied.first().copied().flatten().is_some_and(|bound| bound <= from_arrival) {
            return None;
        }
        let verdict = match from_arrival <= task.deadline() {
            true => Verdict::Feasible,
            false => Verdict::Unknown(Refusal::NotExact),
        };
        let outcome = ResponseBound::Bounded(ResponseTime { from_arrival, from_release });
        let task = TaskResult { outcome, verdict, window: Window::Closed, points: 0..0 };
        Some(Analysis { tasks: vec![task], points: Vec::new() })
    }

    /// Checks the points of [`Server::response_times`] by substitution.
    #[must_use]
    pub fn holds(&self, set: &TaskSet, analysis: &Analysis) -> bool {
        self.supply().is_some_and(|supply| supply::holds(&self.counted(set), &supply, analysis))
    }

    /// Whether the server's tasks are feasible under EDF; `None` of a soft server, for which see
    /// [`Server::response_times`].
    #[must_use]
    pub fn demand(&self, set: &TaskSet) -> Option<Feasibility> {
        Some(supply::edf::feasible(set, &self.supply()?)).filter(|_| !self.is_soft())
    }

    /// Whether the server's tasks make all their deadlines.
    #[must_use]
    pub fn verdict(&self, set: &TaskSet, inside: LocalScheduler) -> Verdict {
        let times = || self.response_times(set).map(|analysis| analysis.verdict());
        let verdict = match inside {
            LocalScheduler::FixedPriority => times(),
            LocalScheduler::Edf => self.demand(set).map(|found| found.verdict).or_else(times),
        };
        verdict.unwrap_or(Verdict::NoBound)
    }

    /// Whether the server goes on at once when its budget is spent.
    #[must_use]
    pub fn is_soft(&self) -> bool {
        self.kind == ServerPolicy::SoftBandwidth
    }

    /// The tasks with the priorities that count.
    fn counted(&self, set: &TaskSet) -> TaskSet {
        if self.is_soft() {
            TaskSet::new(set.tasks().iter().map(|task| task.with_priority(0)).collect())
        } else {
            set.clone()
        }
    }
}

/// A server and how it competes on its processor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlacedServer {
    /// The server.
    pub server: Server,
    /// Its fixed priority; `None` for the deadline class, where servers are chosen by their deadlines,
    /// and before every fixed priority.
    pub priority: Option<u32>,
}

/// The priority of the deadline class among fixed priorities.
pub const DEADLINE_CLASS: u32 = u32::MAX - 1;

/// The part of a processor that the kernel gives to its deadline class unless told otherwise
/// (`Documentation/scheduler/sched-deadline.rst`, section 4). Reclaiming servers leave the rest, which is more than what
/// the kernel's bandwidths of 20 binary digits are wrong by.
const RECLAIMABLE: (u64, u64) = (19, 20);

/// Servers that no analysis of Hourglass has on such a processor, each by its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UnsupportedServer {
    /// Tasks beside servers under EDF.
    #[error(
        "work may come to a server when its deadline is near, which delays other tasks on its CPU"
    )]
    TasksByDeadline,
    /// Servers chosen by deadlines, one of which demands more than its rate.
    #[error("server {0} shares its processor by deadlines, and is not of constant bandwidth")]
    NotConstant(usize),
    /// A server of a kind for fixed priorities under EDF.
    #[error("server {0} is of a kind for fixed priorities")]
    ForPriorities(usize),
    /// A soft server before tasks or servers of fixed priority.
    #[error("server {0} goes on when its budget is spent, before every fixed priority")]
    GoesOn(usize),
    /// A reclaiming server before tasks or servers of fixed priority.
    #[error("server {0} may take all that other reservations leave, before every fixed priority")]
    Reclaims(usize),
    /// Reclaiming among servers of more than 95 % of the processor.
    #[error("servers that reclaim share a processor of which reservations have more than 95 %")]
    NotAdmitted,
    /// A short deadline before tasks.
    #[error("server {0} has a deadline before its period, and fixed priorities below")]
    ShortDeadline(usize),
    /// A budget that is no task.
    #[error("server {0} needs a budget, a period and a deadline above 0")]
    NoTask(usize),
}

/// The servers of a processor under fixed priorities, each as a task; `tasks` tells whether other
/// tasks run on it, which are below the deadline class as servers with a priority are.
///
/// # Errors
/// A server that no analysis of Hourglass has there.
pub fn among_priorities(
    servers: &[PlacedServer],
    tasks: bool,
) -> Result<Vec<Task>, UnsupportedServer> {
    let first: Vec<usize> =
        (0..servers.len()).filter(|at| servers[*at].priority.is_none()).collect();
    all_constant(servers, &first)?;
    let below = tasks || first.len() < servers.len();
    let each = servers.iter().enumerate().map(|(at, placed)| {
        let is_first = placed.priority.is_none();
        if is_first && below && placed.server.kind == ServerPolicy::SoftBandwidth {
            return Err(UnsupportedServer::GoesOn(at));
        }
        if is_first && below && placed.server.kind == ServerPolicy::Reclaiming {
            return Err(UnsupportedServer::Reclaims(at));
        }
        if is_first && below && placed.server.deadline != placed.server.period {
            return Err(UnsupportedServer::ShortDeadline(at));
        }
        // No task is below a soft server that remains.
        let task = placed.server.above_priorities().or_else(|| placed.server.as_task().ok());
        let task = task.ok_or(UnsupportedServer::NoTask(at))?;
        Ok(task.with_priority(placed.priority.unwrap_or(DEADLINE_CLASS)))
    });
    each.collect()
}

/// The servers of a processor under EDF, each as a task. Work may come late to a budget, so that its
/// deadline is near and more of it falls into a window than of a task. With its rule for waking up, a
/// constant-bandwidth server never demands more than its rate (Abeni and Buttazzo 1998), which is
/// enough among servers whose deadlines are their periods, but not for tasks beside it.
///
/// # Errors
/// A server that no analysis of Hourglass has there.
pub fn among_deadlines(
    servers: &[PlacedServer],
    tasks: bool,
) -> Result<Vec<Task>, UnsupportedServer> {
    if tasks && !servers.is_empty() {
        return Err(UnsupportedServer::TasksByDeadline);
    }
    all_constant(servers, &(0..servers.len()).collect::<Vec<_>>())?;
    let each = servers.iter().enumerate().map(|(at, placed)| {
        if matches!(
            placed.server.kind,
            ServerPolicy::Polling | ServerPolicy::Deferrable | ServerPolicy::Sporadic
        ) {
            return Err(UnsupportedServer::ForPriorities(at));
        }
        placed.server.as_task().map_err(|_| UnsupportedServer::NoTask(at))
    });
    each.collect()
}

fn all_constant(servers: &[PlacedServer], ordered: &[usize]) -> Result<(), UnsupportedServer> {
    let all = ordered.iter().map(|at| servers[*at].server);
    let share = |server: Server| (server.budget, server.period);
    if all.clone().any(|server| server.kind == ServerPolicy::Reclaiming)
        && compare_shares(all.map(share), RECLAIMABLE).is_gt()
    {
        return Err(UnsupportedServer::NotAdmitted);
    }
    match ordered.iter().find(|at| !servers[**at].server.is_constant()) {
        Some(at) if ordered.len() > 1 => Err(UnsupportedServer::NotConstant(*at)),
        _ => Ok(()),
    }
}

/// Whether the server at `position` of a processor's set gets its budget within its deadline: under
/// fixed priorities as a task without jitter, which it is while it has work; in the deadline class by
/// the demand of all servers of that class, each held up by what less urgent tasks have begun.
///
/// The set has tasks and servers as [`among_priorities`] makes them, with the blocking by locks.
#[must_use]
pub fn is_delivered(set: &TaskSet, sections: Sections, position: usize) -> bool {
    let time = TimeModel::Continuous;
    let mut tasks = set.tasks().to_vec();
    let Some(own) = tasks.get(position) else { return false };
    if own.priority != DEADLINE_CLASS {
        tasks[position] = own.with_jitter(0);
        let set = TaskSet::new(tasks);
        let found = fixed_priority::verdict_of(&set, position, sections, time);
        return found == Verdict::Feasible;
    }
    let below = tasks.iter().filter(|task| task.priority < DEADLINE_CLASS);
    let begun = below.map(|task| segment_before(task, sections, time)).max().unwrap_or(0);
    let first = tasks.iter().filter(|task| task.priority == DEADLINE_CLASS);
    let blocked =
        |task: &Task| Some(task.with_jitter(0).with_blocking(task.blocking.checked_add(begun)?));
    let above = tasks.iter().any(|task| task.priority > DEADLINE_CLASS);
    let first: Option<Vec<Task>> = first.map(blocked).collect();
    // The demand of tasks does not contain what comes before deadlines.
    first.filter(|_| !above).is_some_and(|first| is_delivered_by_deadline(&first.into()))
}

/// Whether every server of a processor under EDF gets its budget within its deadline, as
/// [`among_deadlines`] makes tasks of them.
#[must_use]
pub fn is_delivered_by_deadline(set: &TaskSet) -> bool {
    let found = qpa::feasible(set, Sections::Preemptive, TimeModel::Continuous);
    found.verdict == Verdict::Feasible
}

/// Whether each of these constant-bandwidth servers, whose deadlines are their periods, gets its budget within its period
/// on `cpus` processors under global EDF, whatever else runs below them: as many processors as servers are enough, and else
/// the densities ([`gfb`]). That test compares with processors of which each has one server's rate, and there what a
/// server demands is always in time, since by its rule for waking up no more is left before a deadline than its rate gives
/// (Abeni and Buttazzo 1998). Other tests count on jobs that do not wait, which a server's do.
#[must_use]
pub fn are_delivered_globally(set: &TaskSet, cpus: u64) -> bool {
    match set.len() as u64 <= cpus {
        true => set.tasks().iter().all(|task| task.cost <= task.deadline),
        false => gfb(set, cpus) == Verdict::Feasible,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::cbs;
    use crate::effort::StepLimit;
    use crate::fixed_priority::{self, Sections, TimeModel};

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(400))]

        /// A polling server that always gets its budget as late as it may, and a window that begins
        /// at any time: in steps of one unit the supply is a unit earlier than in the limit.
        #[test]
        fn polling_supplies_the_least(
            period in 1..12u64, a in 0..12u64, b in 0..12u64, window in 0..50u64
        ) {
            let budget = 1 + a % period;
            let deadline = budget + b % (period - budget + 1);
            let server = Server::with_deadline(ServerPolicy::Polling, period, budget, deadline).unwrap();
            let given = |from: u64| (from..from + window).filter(|t| {
                let (begin, into) = (t / period * period, t % period);
                begin >= from && (deadline - budget..deadline).contains(&into)
            }).count() as u64;
            let least = (0..period).map(given).min().unwrap();
            let supply = server.supply().unwrap();
            prop_assert!(supply.least_in(window) <= least);
            prop_assert_eq!(supply.least_in(window + 1), least);
        }

        /// A soft server among periodic tasks under EDF that use all the rest, event by event: no job
        /// takes longer than its bound, though the server often runs ahead of its deadlines.
        #[test]
        fn soft_servers_keep_their_bounds(
            period in 2..9u64, budget in 1..8u64, parts in proptest::collection::vec(2..9u64, 0..3),
            tasks in proptest::collection::vec((1..4u64, 4..30u64), 1..4),
            delays in proptest::collection::vec(0..9u64, 60),
        ) {
            let Ok(server) = Server::new(ServerPolicy::SoftBandwidth, period, budget) else { return Ok(()) };
            let (mut free, mut others) = (period - budget, Vec::new());
            for part in parts {
                let cost = free.min(part);
                if cost > 0 {
                    others.push(Task::new(cost, period, period).unwrap());
                    free -= cost;
                }
            }
            let set: Vec<Task> = tasks.iter().map(|(c, t)| Task::new(*c, *t, *t).unwrap()).collect();
            let set = TaskSet::in_order(set);
            let bounds = server.response_times(&set).unwrap().from_arrival();
            let mut jobs = Vec::new();
            for (task, (cost, period)) in tasks.iter().enumerate() {
                let mut at = delays[task];
                for job in 0..6 {
                    jobs.push((at, *cost, task));
                    at += period + delays[task * 7 + job + 3];
                }
            }
            jobs.sort_by_key(|job| job.0);
            let list = jobs.iter().map(|(at, cost, _)| (*at, *cost)).collect();
            let traced = cbs::CbsServer { budget, period, jobs: list };
            let trace = cbs::run(&others, &[traced], 2_000, StepLimit::default()).unwrap();
            for ((at, _, task), finish) in jobs.iter().zip(&trace.server_finish[0]) {
                let bound = bounds[*task];
                prop_assert!(bound.is_none_or(|bound| finish - at <= bound), "{:?} {:?}", set, server);
            }
        }

        /// More budget never supplies less, whatever the kind.
        #[test]
        fn supply_grows_with_the_budget(period in 2..30u64, a in 0..30u64, window in 0..200u64) {
            let budget = 1 + a % (period - 1);
            for kind in KINDS {
                let of = |budget| Server::new(kind, period, budget).unwrap().supply().unwrap();
                prop_assert!(of(budget).least_in(window) <= of(budget + 1).least_in(window));
            }
        }
    }

    /// A deferrable server of 2 every 5 delays 3 by 2 and 2 back to back, the others by 2.
    #[test]
    fn a_deferrable_server_strikes_twice() {
        let below = |kind| {
            let server = Server::new(kind, 5, 2).unwrap().above_priorities().unwrap();
            let set = TaskSet::in_order(vec![server, Task::new(3, 50, 50).unwrap()]);
            let found = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
            found.from_arrival()[1]
        };
        assert_eq!(below(ServerPolicy::Deferrable), Some(7));
        assert_eq!(below(ServerPolicy::Sporadic), Some(5));
        assert_eq!(below(ServerPolicy::Polling), Some(5));
    }

    /// Alone and above all, a deferrable server delivers its budget at once; above it, 4 of 5 leave
    /// no 2.
    #[test]
    fn a_budget_is_delivered_from_its_replenishment() {
        let server = Server::new(ServerPolicy::Deferrable, 5, 2).unwrap();
        let placed = PlacedServer { server, priority: Some(1) };
        let own = among_priorities(&[placed], true).unwrap().remove(0);
        let delivered = |tasks: Vec<Task>| is_delivered(&tasks.into(), Sections::Preemptive, 0);
        assert!(delivered(vec![own.clone()]));
        let above = |cost| Task::new(cost, 5, 5).unwrap().with_priority(2);
        assert!(delivered(vec![own.clone(), above(3)]) && !delivered(vec![own, above(4)]));
    }

    /// In the deadline class, what tasks below have begun counts, and what is above the class is not known.
    #[test]
    fn sections_below_hold_up_the_deadline_class() {
        let server = Server::new(ServerPolicy::HardBandwidth, 5, 2).unwrap();
        let placed = PlacedServer { server, priority: None };
        let own = among_priorities(&[placed], true).unwrap().remove(0);
        let long = |cost| Task::new(cost, 100, 100).unwrap().with_segments(cost, cost).unwrap();
        let delivered =
            |task: Task| is_delivered(&vec![own.clone(), task].into(), Sections::Limited, 0);
        assert!(delivered(long(3)) && !delivered(long(4)));
        assert!(!delivered(long(3).with_priority(u32::MAX)));
    }

    #[test]
    fn what_is_not_analysed_is_refused() {
        let placed = |kind, deadline, priority| {
            let server = Server::with_deadline(kind, 8, 2, deadline).unwrap();
            PlacedServer { server, priority }
        };
        let (hard, soft) = (ServerPolicy::HardBandwidth, ServerPolicy::SoftBandwidth);
        let two = [placed(hard, 8, None), placed(ServerPolicy::Periodic, 8, None)];
        assert_eq!(among_priorities(&two, false), Err(UnsupportedServer::NotConstant(1)));
        assert_eq!(among_deadlines(&two, false), Err(UnsupportedServer::NotConstant(1)));
        assert_eq!(among_deadlines(&two[..1], true), Err(UnsupportedServer::TasksByDeadline));
        assert_eq!(
            among_priorities(&[placed(soft, 8, None)], true),
            Err(UnsupportedServer::GoesOn(0))
        );
        assert_eq!(
            among_priorities(&[placed(hard, 7, None)], true),
            Err(UnsupportedServer::ShortDeadline(0))
        );
        // Servers with priorities are below, too.
        let below = |kind, deadline| {
            [placed(kind, deadline, None), placed(ServerPolicy::Polling, 8, Some(1))]
        };
        assert_eq!(among_priorities(&below(soft, 8), false), Err(UnsupportedServer::GoesOn(0)));
        assert_eq!(
            among_priorities(&below(hard, 7), false),
            Err(UnsupportedServer::ShortDeadline(0))
        );
        assert!(among_priorities(&below(hard, 8), false).is_ok());
        let polling = [placed(ServerPolicy::Polling, 8, None)];
        assert_eq!(among_deadlines(&polling, false), Err(UnsupportedServer::ForPriorities(0)));
    }

    /// Hourglass paper, section 5.6: work of 3 every 8 in a hard reservation of 3 every 8 just fits
    /// only if both begin together; in general 3 every 8 must wait for 2 (8 - 3) at worst.
    #[test]
    fn reservations_of_the_paper() {
        let set = TaskSet::in_order(vec![Task::new(3, 8, 8).unwrap()]);
        let times = |kind| Server::new(kind, 8, 3).unwrap().response_times(&set).unwrap();
        assert_eq!(times(ServerPolicy::HardBandwidth).tasks[0].verdict, {
            Verdict::Unknown(crate::verdict::Refusal::NotExact)
        });
        assert_eq!(times(ServerPolicy::HardBandwidth).points(0)[0].finish, 13);
        assert_eq!(times(ServerPolicy::SoftBandwidth).from_arrival(), [Some(8)]);
    }
}
