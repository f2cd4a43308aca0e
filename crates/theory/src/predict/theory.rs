//! What an analysis and a simulation say of a set, in the few words that a prediction needs.
//!
//! Owns: the choice of both. Must not: contain either.

use hourglass_documents::predict::SimulationFacts;
use hourglass_tasks::TaskSet;
use hourglass_time::Span;

use crate::check::{self, CheckRequest};
use crate::simulate;

/// Bounds of a set.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    pub(super) analysis: String,
    /// The verdict on the set: `feasible`, `infeasible`, `no_bound`, `unknown`.
    pub(super) verdict: &'static str,
    /// The reason why it is unknown.
    pub(super) reason: Option<String>,
    /// The bounds of the tasks, in their order.
    pub(super) tasks: Vec<Bound>,
}

/// The bound of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bound {
    /// The response time from nominal arrival, ns.
    pub(super) response_ns: Option<u64>,
    pub(super) verdict: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Simulated {
    pub(super) facts: SimulationFacts,
    /// The longest response of each task, and how many jobs missed.
    pub(super) tasks: Vec<(Option<u64>, u64)>,
}

/// Bounds the response times of a set as it is on paper: by whatever timers jobs are released, it is
/// without delay.
pub(super) fn bounds_on_paper(set: &TaskSet) -> Bounds {
    let mut on_paper = set.clone();
    on_paper.tasks.iter_mut().for_each(|task| task.timer = None);
    bounds(&on_paper)
}

/// Bounds the response times of a set, the ticks of its timers counted as release jitter.
pub(super) fn bounds(set: &TaskSet) -> Bounds {
    match check::check(set, &CheckRequest::default()) {
        Ok(document) => Bounds {
            analysis: document.analysis,
            verdict: document.verdict.name(),
            reason: document.reason,
            tasks: document
                .tasks
                .iter()
                .map(|task| Bound {
                    response_ns: task.response_time_ns,
                    verdict: task.verdict.name(),
                })
                .collect(),
        },
        // This error cannot occur for a request without a named analysis.
        Err(error) => Bounds {
            analysis: String::new(),
            verdict: "unknown",
            reason: Some(error.to_string()),
            tasks: Vec::new(),
        },
    }
}

/// Simulates a set from the moment at which all bounds look.
///
/// # Errors
/// Why it cannot be, in one line.
pub(super) fn simulate(
    set: &TaskSet,
    horizon: Option<Span>,
    seed: u64,
) -> Result<Simulated, String> {
    let request = simulate::SimulationRequest {
        horizon,
        seed,
        ..simulate::SimulationRequest::new(set.clone())
    };
    let simulated = simulate::simulate(&request, &mut NullObserver)
        .map_err(|error| error.to_string())?
        .document;
    let facts = SimulationFacts { horizon_ns: simulated.simulated_ns, jobs: simulated.jobs };
    let tasks = simulated.tasks.iter().map(|task| (task.max_response_ns, task.missed + task.lost));
    Ok(Simulated { facts, tasks: tasks.collect() })
}

struct NullObserver;

impl simulate::SimulationObserver for NullObserver {
    fn reached(&mut self, _simulated: u64, _horizon: u64) {}
}
