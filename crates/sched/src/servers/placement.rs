//! Servers on a processor: which of them can share it, each as a task among its tasks, and whether they get their budgets.
//!
//! Owns: [`PlacedServer`]. Must not: know what a server gives its own tasks.

use crate::edf::qpa;
use crate::exact_fraction::compare_shares;
use crate::fixed_priority;
use crate::global::edf::gfb;
use crate::sections::segment_before;
use crate::sections::{Sections, TimeModel};
use crate::task::{Task, TaskSet};
use crate::verdict::Verdict;

use super::{Delivery, Server, ServerPolicy};

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
/// on `cpus` processors under global EDF, whatever else runs below them: as many processors as servers deliver at once, and else
/// the densities tell ([`gfb`]); `None` where they do not. That test compares with processors of which each has one server's rate, and there what a
/// server demands is always in time, since by its rule for waking up no more is left before a deadline than its rate gives
/// (Abeni and Buttazzo 1998). Other tests count on jobs that do not wait, which a server's do.
#[must_use]
pub fn delivery_on_several(set: &TaskSet, cpus: u64) -> Option<Delivery> {
    let (is_delivered, delivery) = match set.len() as u64 <= cpus {
        true => (set.tasks().iter().all(|task| task.cost <= task.deadline), Delivery::AtOnce),
        false => (gfb(set, cpus) == Verdict::Feasible, Delivery::ByDeadline),
    };
    is_delivered.then_some(delivery)
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
