//! Servers: what each kind takes from others, and what it gives to its own tasks.
//!
//! Owns: [`Server`]; its interference as a task (Sprunt, Sha and Lehoczky, RTS 1989; Strosnider,
//! Lehoczky and Sha, IEEE TC 1995; Abeni and Buttazzo, RTSS 1998) and its supply (Shin and Lee, RTSS
//! 2003; Davis and Burns, RTSS 2005). Must not: be a simulator; see [`crate::cbs`].
//!
//! A server delivers its budget within its deadline of each replenishment, if there is work for it.
//! Under fixed priorities, that is the server's own response time, under EDF its relative deadline.
//! Whoever uses a supply has made sure of that: the server as a task among its neighbours must be
//! feasible.

use crate::edf::qpa::Feasibility;
use crate::supply::{self, Supply, SupplyError};
use crate::task::{Task, TaskError, TaskSet};
use crate::verdict::{Analysis, Outcome, Verdict};

/// The rules of a budget.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// What is not used when the period begins is lost.
    Polling,
    /// The budget stays until the period ends.
    Deferrable,
    /// What was used comes back a period after its use began.
    Sporadic,
    /// A constant-bandwidth server that waits for its next period when the budget is spent.
    HardBandwidth,
    /// A constant-bandwidth server that goes on at once with a later deadline.
    SoftBandwidth,
    /// Budget at any time of the period.
    Periodic,
}

/// All kinds.
pub const KINDS: [Kind; 6] = [
    Kind::Polling,
    Kind::Deferrable,
    Kind::Sporadic,
    Kind::HardBandwidth,
    Kind::SoftBandwidth,
    Kind::Periodic,
];

/// A scheduler among the tasks of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Inside {
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
    kind: Kind,
    period: u64,
    budget: u64,
    deadline: u64,
}

impl Server {
    /// A server whose budget is delivered within its period.
    ///
    /// # Errors
    /// A budget of 0 or over the period.
    pub fn new(kind: Kind, period: u64, budget: u64) -> Result<Server, SupplyError> {
        Server::with_deadline(kind, period, budget, period)
    }

    /// A server whose budget is delivered within `deadline` of each replenishment. A soft server
    /// is not held to less than its period, whatever is said here.
    ///
    /// # Errors
    /// A budget of 0 or over the deadline, a deadline over the period.
    pub fn with_deadline(
        kind: Kind,
        period: u64,
        budget: u64,
        deadline: u64,
    ) -> Result<Server, SupplyError> {
        Supply::with_deadline(period, budget, deadline)?;
        let deadline = if kind == Kind::SoftBandwidth { period } else { deadline };
        Ok(Server { kind, period, budget, deadline })
    }

    /// Its rules.
    #[must_use]
    pub fn kind(&self) -> Kind {
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

    /// What the server is to others: a task with its budget as cost. A deferrable server may spend a
    /// budget at the end of a period and the next at once, as if released with a jitter of P - Q.
    /// Under fixed priorities, whether it is itself in time is [`Server::response`].
    ///
    /// # Errors
    /// None of a server that could be made.
    pub fn as_task(&self) -> Result<Task, TaskError> {
        let task = Task::new(self.budget, self.period, self.deadline)?;
        let late = if self.kind == Kind::Deferrable { self.period - self.budget } else { 0 };
        Ok(task.with_jitter(late))
    }

    /// In an answer of [`crate::fixed_priority::analyse`] for a set with [`Server::as_task`] at
    /// `position`: the time from a replenishment within which the budget is delivered. `None` if that
    /// is not within the period.
    #[must_use]
    pub fn response(&self, analysis: &Analysis, position: usize) -> Option<u64> {
        match analysis.tasks.get(position)?.outcome {
            Outcome::Bounded(bound) => {
                Some(bound.from_release).filter(|response| *response <= self.period)
            }
            Outcome::Unbounded | Outcome::Unknown(_) => None,
        }
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
            Kind::Polling => supply.with_wait(self.period),
            Kind::SoftBandwidth => supply.with_wait(0),
            Kind::Deferrable | Kind::Sporadic | Kind::HardBandwidth | Kind::Periodic => supply,
        })
    }

    /// Bounds response times of the server's tasks under preemptive fixed priorities; in a soft
    /// server, in whatever order they are served. `None` cannot happen of a server that could be
    /// made.
    #[must_use]
    pub fn response_times(&self, set: &TaskSet) -> Option<Analysis> {
        Some(supply::fixed_priority(&self.counted(set), &self.supply()?))
    }

    /// Whether the server's tasks are feasible under EDF; for a soft server see
    /// [`Server::response_times`].
    #[must_use]
    pub fn demand(&self, set: &TaskSet) -> Option<Feasibility> {
        Some(supply::edf::feasible(set, &self.supply()?)).filter(|_| !self.is_soft())
    }

    /// Whether the server's tasks make all their deadlines.
    #[must_use]
    pub fn verdict(&self, set: &TaskSet, inside: Inside) -> Verdict {
        let times = || self.response_times(set).map(|analysis| analysis.verdict());
        let verdict = match inside {
            Inside::FixedPriority => times(),
            Inside::Edf => self.demand(set).map(|found| found.verdict).or_else(times),
        };
        verdict.unwrap_or(Verdict::NoBound)
    }

    fn is_soft(&self) -> bool {
        self.kind == Kind::SoftBandwidth
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
    use crate::effort::Effort;
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
            let server = Server::with_deadline(Kind::Polling, period, budget, deadline).unwrap();
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
            let Ok(server) = Server::new(Kind::SoftBandwidth, period, budget) else { return Ok(()) };
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
            let traced = cbs::Server { budget, period, jobs: list };
            let trace = cbs::run(&others, &[traced], 2_000, Effort::default()).unwrap();
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
            let server = Server::new(kind, 5, 2).unwrap().as_task().unwrap();
            let set = TaskSet::in_order(vec![server, Task::new(3, 50, 50).unwrap()]);
            let found = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
            found.from_arrival()[1]
        };
        assert_eq!(below(Kind::Deferrable), Some(7));
        assert_eq!(below(Kind::Sporadic), Some(5));
        assert_eq!(below(Kind::Polling), Some(5));
    }

    /// Alone and above all, a deferrable server delivers its budget at once.
    #[test]
    fn the_response_of_a_server_is_from_its_replenishment() {
        let server = Server::new(Kind::Deferrable, 5, 2).unwrap();
        let set = TaskSet::in_order(vec![server.as_task().unwrap()]);
        let found = fixed_priority::analyse(&set, Sections::Preemptive, TimeModel::Discrete);
        assert_eq!(server.response(&found, 0), Some(2));
    }

    /// Hourglass paper, section 5.6: work of 3 every 8 in a hard reservation of as much just fits
    /// only if both begin together; in general 3 every 8 must wait for 2 (8 - 3) at worst.
    #[test]
    fn reservations_of_the_paper() {
        let set = TaskSet::in_order(vec![Task::new(3, 8, 8).unwrap()]);
        let times = |kind| Server::new(kind, 8, 3).unwrap().response_times(&set).unwrap();
        assert_eq!(times(Kind::HardBandwidth).tasks[0].verdict, {
            Verdict::Unknown(crate::verdict::Refusal::NotExact)
        });
        assert_eq!(times(Kind::HardBandwidth).points(0)[0].finish, 13);
        assert_eq!(times(Kind::SoftBandwidth).from_arrival(), [Some(8)]);
    }
}
