//! What an analysis and a simulation say of a set, in the few words that a prediction needs.
//!
//! Owns: the choice of both. Must not: contain either.

use hourglass_model::predict::SimulationFacts;
use hourglass_model::tasks::{Preemption, Scheduler, TaskSet};
use hourglass_sched::fixed_priority::{self, Sections, TimeModel};
use hourglass_sched::{Task, TaskSet as Plain, Verdict};
use hourglass_time::Span;

/// Bounds of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// What gave them.
    pub(super) analysis: String,
    /// Of the set: `feasible`, `infeasible`, `no_bound`, `unknown`.
    pub(super) verdict: &'static str,
    /// Why it is unknown.
    pub(super) reason: Option<String>,
    /// By task.
    pub(super) tasks: Vec<Bound>,
}

/// The bound of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// From nominal arrival.
    pub(super) response_ns: Option<u64>,
    pub(super) verdict: &'static str,
}

/// What a simulation showed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Simulated {
    pub(super) facts: SimulationFacts,
    /// The longest response of each task, and how many jobs missed.
    pub(super) tasks: Vec<(Option<u64>, u64)>,
}

/// Bounds the response times of a set.
pub(super) fn bounds(set: &TaskSet) -> Bounds {
    match plain(set) {
        Ok(tasks) => {
            let tasks = Plain::new(tasks);
            let analysis =
                fixed_priority::analyse(&tasks, Sections::Preemptive, TimeModel::Continuous);
            let bound = |result: &hourglass_sched::TaskResult| Bound {
                response_ns: result.outcome.response().map(|response| response.from_arrival),
                verdict: name(&result.verdict),
            };
            Bounds {
                analysis: "fixed priorities, preemptive".to_owned(),
                verdict: name(&analysis.verdict()),
                reason: None,
                tasks: analysis.tasks.iter().map(bound).collect(),
            }
        }
        Err(reason) => Bounds {
            analysis: "none".to_owned(),
            verdict: "unknown",
            reason: Some(reason),
            tasks: set
                .tasks
                .iter()
                .map(|_| Bound { response_ns: None, verdict: "unknown" })
                .collect(),
        },
    }
}

fn name(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Feasible => "feasible",
        Verdict::Infeasible(_) => "infeasible",
        Verdict::NoBound => "no_bound",
        Verdict::Unknown(_) => "unknown",
    }
}

/// The tasks of a set that is no more than tasks by fixed priorities on one CPU.
fn plain(set: &TaskSet) -> Result<Vec<Task>, String> {
    let is_plain = set.scheduler == Scheduler::FixedPriority
        && set.servers.is_empty()
        && set.cpus().len() == 1
        && set.tasks.iter().all(|task| {
            task.critical_sections.is_empty()
                && task.after.is_empty()
                && task.arrivals.is_empty()
                && task.preemption == Preemption::Full
        });
    if !is_plain {
        return Err("more than fixed priorities on one CPU is not analysed here".to_owned());
    }
    let task = |(task, priority): (&hourglass_model::tasks::Task, Option<u32>)| {
        let ns = Span::nanos_or_zero;
        let plain = Task::new(ns(task.wcet), ns(task.period), ns(task.deadline()));
        let plain = plain.map_err(|error| error.to_string())?;
        let plain = plain.with_jitter(ns(task.jitter)).with_blocking(ns(task.blocking));
        let priority = priority.ok_or_else(|| format!("task '{}' has no priority", task.name))?;
        Ok(plain.with_suspension(ns(task.suspension)).with_priority(priority))
    };
    set.tasks.iter().zip(set.priorities()).map(task).collect()
}

/// Simulates a set.
pub(super) fn simulate(
    _set: &TaskSet,
    _horizon: Option<Span>,
    _seed: u64,
) -> Result<Simulated, String> {
    Err("there is no simulator".to_owned())
}
