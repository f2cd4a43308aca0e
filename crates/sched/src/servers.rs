//! Servers: what each kind takes from others, and what it gives to its own tasks.
//!
//! Owns: [`Server`]; its interference as a task (Sprunt, Sha and Lehoczky, RTS 1989; Strosnider,
//! Lehoczky and Sha, IEEE TC 1995; Abeni and Buttazzo, RTSS 1998) and its supply (Shin and Lee, RTSS
//! 2003; Davis and Burns, RTSS 2005). Must not: be a simulator; see [`crate::cbs`].
//!
//! A server delivers its budget within its deadline of each replenishment, if there is work for it.
//! Under fixed priorities, that is the server's own response time, under EDF its relative deadline.
//! The caller that uses a supply must check this with [`is_delivered`].

mod placement;

use crate::edf::qpa::Feasibility;
use crate::effort::StepLimit;
use crate::supply::{self, Supply, SupplyError};
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::{Analysis, Refusal, ResponseBound, ResponseTime, TaskResult, Verdict, Window};

pub use placement::{
    DEADLINE_CLASS, PlacedServer, UnsupportedServer, among_deadlines, among_priorities,
    delivery_on_several, is_delivered, is_delivered_by_deadline,
};

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

/// How a server that has work gets its budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Delivery {
    /// At any time before its deadline.
    ByDeadline,
    /// At once: nothing is ever before it, as where as many processors as servers are.
    AtOnce,
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
    delivery: Delivery,
}

impl Server {
    /// A server whose budget is delivered within its period.
    ///
    /// # Errors
    /// A budget of 0 or over the period.
    pub fn new(kind: ServerPolicy, period: u64, budget: u64) -> Result<Server, SupplyError> {
        Server::with_deadline(kind, period, budget, period)
    }

    /// A server whose budget is delivered within `deadline` of each replenishment. A soft server is not held to less than its
    /// period, whatever is said here.
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
        let deadline = if kind == ServerPolicy::SoftBandwidth { period } else { deadline };
        Ok(Server { kind, period, budget, deadline, delivery: Delivery::ByDeadline })
    }

    /// The same server where its budget is delivered so.
    #[must_use]
    pub fn with_delivery(self, delivery: Delivery) -> Server {
        Server { delivery, ..self }
    }

    /// How its budget is delivered.
    #[must_use]
    pub fn delivery(&self) -> Delivery {
        self.delivery
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
    ///
    /// Hard bandwidth, whenever the server began: let its last period have begun at s, and u of that budget be gone when the
    /// window begins, at a. Then s + u <= a: the budget was used since s, or is cut to (s + D - a) Q / D at a wake-up, which
    /// leaves u = (a - s) Q / D, or is all taken at one after s + D, and Q <= D. While a job is there, each budget is had by
    /// its deadline whatever follows, so that its first u' units are by s + k P + D - (Q - u'). The first unit of the window
    /// is so had by s + D - Q + u, if u < Q, or else by s + P + D - Q, at most P + D - 2 Q after a.
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
        self.response_times_by(set, &mut StepLimit::default())
    }

    /// The same, which takes what it needs from an effort for several analyses.
    #[must_use]
    pub fn response_times_by(&self, set: &TaskSet, effort: &mut StepLimit) -> Option<Analysis> {
        Some(supply::fixed_priority_by(&self.counted(set), &self.supply()?, effort))
    }

    /// The bound of the only task of a hard constant-bandwidth server whose jobs take n budgets each and arrive at least n
    /// periods apart, and which uses nothing of the server before its first job. A job that finds the server's deadline past
    /// gets a new one, and is done n periods later; one that finds it ahead, since jitter delayed the job before, goes on
    /// with that deadline and needs at most n periods more. By induction the server's deadline at the end of a job is at
    /// most jitter and n periods after its arrival, and deadlines are kept (Abeni and Buttazzo 1998, where n is 1 and there
    /// is no jitter). `None` of all others, and where the supply bounds it better.
    ///
    /// Where the budget is delivered at once, the last one ends earlier. Whatever is left before the deadline that a job
    /// finds, at most jitter after its arrival, the n-th budget begins at most n - 1 periods later, and n - 1 are used up
    /// by then.
    ///
    /// What was used before the first job, as in a server that begins in the middle of one, may leave its deadline ahead of
    /// all later jobs: then only the supply bounds them, which see. So it is with every deadline before the period,
    /// wherever the server began: a job that finds this deadline ahead gets a part of a budget
    /// (`update_dl_revised_wakeup`), and one that finds it past waits for the next period (`dl_check_constrained_dl`), and
    /// so does the next job, if it comes a period later.
    #[must_use]
    pub fn whole_budgets(&self, set: &TaskSet) -> Option<Analysis> {
        self.whole_budgets_by(set, &mut StepLimit::default())
    }

    /// The same, which takes what it needs from an effort for several analyses.
    #[must_use]
    pub fn whole_budgets_by(&self, set: &TaskSet, effort: &mut StepLimit) -> Option<Analysis> {
        let [task] = set.tasks() else { return None };
        let waits = task.suspension() > 0 || task.blocking() > 0 || task.curve().is_some();
        let periods = task.cost().div_ceil(self.budget).checked_mul(self.period)?;
        let finds_it_idle = task.period().checked_sub(task.jitter()) >= Some(periods);
        let fits = periods <= task.period() && self.deadline == self.period;
        let is_hard = matches!(self.kind, ServerPolicy::HardBandwidth | ServerPolicy::Reclaiming);
        if !is_hard || waits || !fits {
            return None;
        }
        let served = match self.delivery {
            Delivery::AtOnce => (task.cost().div_ceil(self.budget) - 1)
                .checked_mul(self.period - self.budget)?
                .checked_add(task.cost())?,
            Delivery::ByDeadline => periods,
        };
        let from_arrival = served.checked_add(task.jitter())?;
        let from_release = if finds_it_idle { served } else { from_arrival };
        let supplied = self.response_times_by(set, effort)?.from_arrival();
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
        self.demand_by(set, &mut StepLimit::default())
    }

    /// The same, which takes what it needs from an effort for several tests.
    #[must_use]
    pub fn demand_by(&self, set: &TaskSet, effort: &mut StepLimit) -> Option<Feasibility> {
        Some(supply::edf::feasible_by(set, &self.supply()?, effort)).filter(|_| !self.is_soft())
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
