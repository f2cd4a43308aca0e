//! Servers, and the order of priorities among them, the tasks and the ceilings.
//!
//! Owns: [`Ranks`]. Must not: find priorities by analysis.

use hourglass_sim::{self as sim, ServerRank};
use hourglass_tasks::{
    Assignment, Protocol, Resource, Scheduler, Server, ServerKind, Task, TaskSet,
};

use super::SimulationFailure;
use super::system::{Warnings, ns, warn};

/// The priority of a server that comes before all tasks, servers and ceilings with one; none of those is as high.
const BEFORE_ALL: u32 = u32::MAX;

/// The order of urgency among tasks and servers.
#[derive(Debug)]
pub(super) struct Ranks {
    tasks: Vec<u32>,
    /// By what a priority of the set is multiplied, to make room for servers between tasks.
    scale: u32,
    assignment: Assignment,
    keys: Vec<u64>,
    by_deadline: bool,
    /// Whether a server without a priority comes before all priorities, as it does for `check`; else it stands among
    /// assigned ones, which name no server.
    is_before_all: bool,
}

impl Ranks {
    pub(super) fn of(set: &TaskSet, warnings: &mut Warnings) -> Result<Ranks, SimulationFailure> {
        let assignment = set.assignment();
        if assignment == Assignment::Optimal && set.scheduler == Scheduler::FixedPriority {
            return Err(SimulationFailure::NoPriorities);
        }
        let between =
            |server: &Server| server.priority.is_none() && !server.kind.is_constant_bandwidth();
        let scale = match assignment {
            Assignment::Given => 1,
            _ if set.servers.iter().any(between) => 2,
            _ => 1,
        };
        let by_deadline = set.scheduler == Scheduler::Edf;
        let with =
            |server: &Server| server.priority.is_some() && !server.kind.is_constant_bandwidth();
        let has_ranked = set.servers.iter().any(with);
        let is_before_all = assignment == Assignment::Given || has_ranked;
        if is_before_all && !by_deadline {
            let others = if has_ranked { "tasks and servers with one" } else { "tasks" };
            for server in set.servers.iter().filter(|server| between(server)) {
                let text =
                    format!("server '{}': above all {others}, as it has no priority", server.name);
                warn(warnings, "server-priority", text, "give it a priority");
            }
        }
        let key = |task: &Task| match assignment {
            Assignment::RateMonotonic => ns(task.period),
            _ => ns(task.deadline()),
        };
        let tasks: Vec<u32> = set.priorities().into_iter().map(Option::unwrap_or_default).collect();
        let tasks = tasks.into_iter().map(|priority| scaled(priority, scale)).collect();
        let keys = set.tasks.iter().map(key).collect();
        Ok(Ranks { tasks, scale, assignment, keys, by_deadline, is_before_all })
    }

    /// The priority of the task at this position; 0 without one.
    pub(super) fn priority(&self, task: usize) -> u32 {
        self.tasks.get(task).copied().unwrap_or(0)
    }

    /// A server as the simulator has it.
    pub(super) fn server(&self, server: &Server, warnings: &mut Warnings) -> sim::SimServer {
        let kind = match server.kind {
            ServerKind::Polling => sim::ServerKind::Polling,
            ServerKind::Deferrable => sim::ServerKind::Deferrable,
            ServerKind::Sporadic => sim::ServerKind::Sporadic,
            ServerKind::CbsHard | ServerKind::CbsReclaim => sim::ServerKind::CbsHard,
            ServerKind::CbsSoft => sim::ServerKind::CbsSoft,
            ServerKind::PeriodicResource | ServerKind::ExplicitDeadline => {
                let text = format!(
                    "server '{}': simulated as a hard reserve, which delivers as soon as it can; \
                     its model allows any delivery within the deadline",
                    server.name
                );
                warn(warnings, "server-supply", text, "");
                sim::ServerKind::ReserveHard
            }
        };
        if server.kind.is_constant_bandwidth() && server.deadline() < server.period {
            let text = format!(
                "server '{}': simulated as beginning with its first job; a reservation that begins earlier may hold up each \
                 job until its next period, which the bounds of check count",
                server.name
            );
            warn(warnings, "server-begin", text, "a deadline of the period");
        }
        let simulated = sim::SimServer::new(kind, ns(server.budget), ns(server.period))
            .with_deadline(ns(server.deadline()))
            .with_rank(self.rank(server));
        match server.kind {
            ServerKind::CbsReclaim => simulated.reclaiming(),
            _ => simulated,
        }
    }

    fn rank(&self, server: &Server) -> ServerRank {
        if server.kind.is_constant_bandwidth() {
            return ServerRank::Deadline;
        }
        if let Some(priority) = server.priority {
            return ServerRank::Priority(scaled(priority, self.scale));
        }
        if self.by_deadline {
            return ServerRank::Deadline;
        }
        if self.is_before_all {
            return ServerRank::Priority(BEFORE_ALL);
        }
        // Above the tasks that come less often: their numbers are even, so that this one is free.
        let key = match self.assignment {
            Assignment::RateMonotonic => ns(server.period),
            _ => ns(server.deadline()),
        };
        let slower = self.tasks.iter().zip(&self.keys).filter(|(_, of)| **of >= key);
        let below = slower.map(|(priority, _)| *priority).max().unwrap_or(0);
        ServerRank::Priority(below.saturating_add(1))
    }

    /// The ceiling of a resource as a protocol.
    pub(super) fn ceiling(
        &self,
        set: &TaskSet,
        resource: &Resource,
        warnings: &mut Warnings,
    ) -> sim::SimLockProtocol {
        debug_assert_eq!(resource.protocol, Protocol::Ceiling);
        if let Some(floor) = deadline_floor(set, resource) {
            if resource.ceiling.is_some() {
                warn(warnings, "ceiling", resource.ceiling_passed_over(), "leave it out");
            }
            return sim::SimLockProtocol::DeadlineFloor(floor);
        }
        let (_, scheduler) = users_of(set, resource).unwrap_or((None, set.scheduler));
        if scheduler != Scheduler::FixedPriority {
            let text = format!(
                "resource '{}': ceilings are priorities or deadlines, which not all of its users have; \
                 simulated with inheritance",
                resource.name
            );
            warn(warnings, "ceiling", text, "");
            return sim::SimLockProtocol::Inheritance;
        }
        let ceiling = set.ceiling(resource).unwrap_or(0);
        sim::SimLockProtocol::Ceiling(scaled(ceiling, self.scale))
    }
}

/// A priority of the set with room for servers between tasks, and below a server before all.
fn scaled(priority: u32, scale: u32) -> u32 {
    priority.saturating_mul(scale).min(BEFORE_ALL - 1)
}

/// The server that all users of a lock are in, if in one, and what orders them; `None` where they are apart, or there is none.
fn users_of<'a>(set: &'a TaskSet, resource: &Resource) -> Option<(Option<&'a Server>, Scheduler)> {
    let uses = |task: &&Task| task.critical_sections.iter().any(|s| s.resource == resource.name);
    let mut places = set.tasks.iter().filter(uses).map(|task| set.server_of(&task.name));
    let first = places.next()?;
    let name = |server: Option<&'a Server>| server.map(|server| server.name.as_str());
    let are_together = places.all(|place| name(place) == name(first));
    are_together.then(|| (first, first.map_or(set.scheduler, |server| server.scheduler)))
}

/// The ceiling of a lock as a deadline, ns: the least of its users, each less what may pass between arrival and release,
/// as preemption levels of the stack resource policy. `None` unless all of them are scheduled by deadlines of their own, in
/// one server or in none, and that is known.
fn deadline_floor(set: &TaskSet, resource: &Resource) -> Option<u64> {
    let uses = |task: &&Task| task.critical_sections.iter().any(|s| s.resource == resource.name);
    let users = set.tasks.iter().filter(uses);
    let (_, scheduler) = users_of(set, resource)?;
    let timer = set.machine.overheads.timer_granularity.map_or(0, ns);
    let level = |task: &Task| {
        let by_deadline = scheduler == Scheduler::Edf && task.policy.is_none();
        let alone = by_deadline && task.after.is_empty();
        let before = [ns(task.jitter), ns(task.tick_delay()), timer].into_iter();
        let deadline = ns(task.deadline());
        alone.then(|| before.fold(deadline, u64::saturating_sub))
    };
    users.map(level).try_fold(u64::MAX, |least, level| Some(least.min(level?)))
}
