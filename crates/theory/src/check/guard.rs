//! The analyses and the simulator held against each other before an answer leaves.
//!
//! Owns: what is simulated of a file that is called feasible, whether a written witness shows its miss, what becomes of
//! an answer that does not agree. Must not: bound anything, make scenarios.

use hourglass_documents::check::{CheckDocument, MissFacts, Verdict, WitnessFacts};
use hourglass_sim::{self as sim, FirstMiss, SimSettings};
use hourglass_tasks::{ProgramStep, Task, TaskSet};

use super::proof::time;
use crate::simulate::{self, Choices, Releases};

/// The defaults of `hourglass simulate`.
pub(super) const AS_SIMULATED: Choices = Choices {
    releases: Releases::Critical,
    late: sim::OverrunPolicy::Queue,
    throttling: None,
    follows_steps: true,
};

/// Jobs of a file that are simulated, about; fewer where they take too many events.
const JOBS: [u64; 3] = [20_000, 2_000, 200];

/// Events of one simulation, at most: some hundredths of a second.
const MOST_EVENTS: u64 = 200_000;

/// Events of a witness, at most.
const EVENTS_OF_WITNESS: u64 = 1_000_000;

/// A task that is called feasible and misses a deadline when the file is simulated becomes unknown.
pub(super) fn confirm(set: &TaskSet, document: &mut CheckDocument) {
    let is_feasible = |at: usize, document: &CheckDocument| {
        document.tasks.get(at).is_some_and(|task| task.verdict == Verdict::Feasible)
    };
    if (0..set.tasks.len()).all(|at| !is_feasible(at, document)) {
        return;
    }
    let has_jitter = set.tasks.iter().any(|task| task.jitter.is_positive());
    let nominal = has_jitter.then_some(Releases::Nominal);
    for releases in [Releases::Critical].into_iter().chain(nominal) {
        for (at, miss) in misses(set, Choices { releases, ..AS_SIMULATED }) {
            if is_feasible(at, document) {
                contradict(document, at, &set.tasks[at], miss);
            }
        }
    }
}

/// The first misses of the tasks at these positions.
fn misses(set: &TaskSet, choices: Choices) -> Vec<(usize, FirstMiss)> {
    let Ok(model) = simulate::model(set, choices) else { return Vec::new() };
    for jobs in JOBS {
        let horizon = simulate::horizon_of(set, jobs);
        let settings = SimSettings::until(horizon).with_most_events(MOST_EVENTS);
        if let Ok(outcome) = sim::run(&model.system, settings) {
            let threads = outcome.threads.iter().take(model.tasks).enumerate();
            return threads.filter_map(|(at, thread)| Some((at, thread.first_miss?))).collect();
        }
    }
    Vec::new()
}

/// Says that analysis and simulation do not agree about a task.
fn contradict(document: &mut CheckDocument, at: usize, task: &Task, miss: FirstMiss) {
    let done =
        miss.done.map_or("is not done".to_owned(), |done| format!("is done at {}", time(done)));
    let seen = format!(
        "a simulation of the same file shows that job {} of '{}', due at {}, {done}",
        miss.job.saturating_add(1),
        task.name,
        time(miss.deadline)
    );
    let why = match waits_for_others(task) {
        true => format!("{seen}: its steps take time that its figures do not say"),
        false => format!(
            "the analysis says that every deadline holds, but {seen}; one of the two is wrong, which is a \
             defect of Hourglass: please report it with the file"
        ),
    };
    let facts = &mut document.tasks[at];
    (facts.verdict, facts.reason) = (Verdict::Unknown, why.clone());
    (facts.response_time_ns, facts.response_time_from_release_ns, facts.slack_ns) =
        (None, None, None);
    let here = |cpus: &str, server: &Option<String>| facts.cpus == cpus && facts.server == *server;
    for processor in &mut document.processors {
        if here(&processor.cpus, &processor.server) {
            processor.verdict = processor.verdict.max(Verdict::Unknown);
        }
    }
    if document.verdict <= Verdict::Unknown {
        document.verdict = Verdict::Unknown;
        document.reason = Some(why);
    }
}

/// Whether the steps of a task wait for other threads, so that its wcet and suspension are not all. Locks are in
/// its critical sections.
pub(crate) fn waits_for_others(task: &Task) -> bool {
    let phases = task.program.iter().flat_map(|program| &program.phases);
    phases.flat_map(|phase| &phase.steps).any(|step| {
        matches!(
            step,
            ProgramStep::Wait { .. }
                | ProgramStep::Suspend(_)
                | ProgramStep::Barrier(_)
                | ProgramStep::Take(_)
        )
    })
}

/// Gives the document a witness whose file shows its miss; of another, nothing is left, nor of what it was for.
pub(super) fn admit(document: &mut CheckDocument, witness: WitnessFacts, else_why: &str) {
    match (&witness.scenario, &witness.miss) {
        (Some(scenario), Some(miss)) if shows(scenario, miss) => document.witness = Some(witness),
        _ => take_back(document, else_why),
    }
}

/// Whether a witness, as it is written, shows this miss to `hourglass simulate`.
fn shows(scenario: &str, miss: &MissFacts) -> bool {
    let Ok(set) = TaskSet::from_toml(scenario) else { return false };
    let Ok(model) = simulate::model(&set, AS_SIMULATED) else { return false };
    let horizon = set.horizon.map_or(0, |horizon| horizon.nanos_or_zero());
    let settings = SimSettings::until(horizon).with_most_events(EVENTS_OF_WITNESS);
    let Ok(outcome) = sim::run(&model.system, settings) else { return false };
    let at = set.tasks.iter().position(|task| task.name == miss.task);
    let seen = at.and_then(|at| outcome.threads.get(at)?.first_miss);
    seen.is_some_and(|seen| (seen.job, seen.deadline) == (miss.job, miss.due_ns))
}

/// Nothing is called late any more.
fn take_back(document: &mut CheckDocument, why: &str) {
    document.witness = None;
    for task in document.tasks.iter_mut().filter(|task| task.verdict > Verdict::Unknown) {
        (task.verdict, task.reason) = (Verdict::Unknown, why.to_owned());
    }
    for processor in &mut document.processors {
        processor.verdict = processor.verdict.min(Verdict::Unknown);
    }
    document.verdict = Verdict::Unknown;
    document.reason = Some(why.to_owned());
}

#[cfg(test)]
mod tests;
