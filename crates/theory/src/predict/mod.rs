//! What theory says of a set of tasks, what a simulation shows, and what happens: `hourglass
//! predict`.
//!
//! Owns: the order of these steps, what its jobs did where an
//! analysis assumes something (`terms`, and job by job `seen`), the explanation of a difference
//! (`explain`): by the assumptions that fail in the busy window of the worst job (`window`), or as
//! section 5.5 of the Hourglass paper has it: timer granularity as release jitter, busy waiting as
//! execution time, what others take as a task of the highest priority.
//! Must not: analyse or simulate itself, draw, parse arguments.

mod against;
mod explain;
mod noise;
mod observed;
#[cfg(test)]
mod recorded_tests;
mod terms;
#[cfg(test)]
mod tests;
mod theory;
mod thread_of_task;
mod window;

use std::collections::BTreeSet;

use hourglass_documents::manifest::ThreadFacts;
use hourglass_documents::predict::{
    MeasurementFacts, PREDICT_SCHEMA, PredictDocument, PredictedTask,
};
use hourglass_measure::experiment::{self, ExperimentObserver, Finished, RunFailure};
use hourglass_measure::task_threads::{TaskRunPlan, plan};
use hourglass_runs::store::WriteError;
use hourglass_tasks::{Task, TaskSet};
use hourglass_time::Span;

pub use against::hold_against;
pub use hourglass_measure::task_threads::{PlanError, RunRequest};

use observed::ObservedRun;

/// The default length of a run: as long as in the paper.
pub const DEFAULT_DURATION: Span = Span::from_secs(10);

/// A set of tasks, and what to do with it.
#[derive(Clone, Debug)]
pub struct PredictRequest {
    pub set: TaskSet,
    /// The name of a set without one.
    pub name: String,
    /// The parts of the file that were left out, one sentence each.
    pub notes: Vec<String>,
    /// How to run them; without it, they are not run.
    pub run: Option<RunRequest>,
    /// Start of all random sequences.
    pub seed: u64,
    /// How far to simulate; without it, as far as a simulation goes by itself.
    pub horizon: Option<Span>,
}

#[derive(Debug)]
pub struct PredictionResult {
    pub document: PredictDocument,
    /// The reason why the run was not stored, if it should have been.
    pub not_kept: Option<String>,
    /// The signal that ended the measurement, if one did.
    pub signal: Option<i32>,
    /// Whether no deadline is missed with the execution times that are known to be needed, where a `wcet` is an upper bound alone.
    may_hold: bool,
}

impl PredictionResult {
    /// Whether every deadline held in the run and in the simulation, and the analysis agrees.
    #[must_use]
    pub fn holds(&self) -> bool {
        let simulated = |task: &PredictedTask| task.simulated_missed.unwrap_or(0) == 0;
        self.document.verdict == "feasible"
            && self.held()
            && self.document.tasks.iter().all(simulated)
    }

    /// Whether it does not hold only because a `wcet` is an upper bound alone.
    #[must_use]
    pub fn is_undecided(&self) -> bool {
        self.may_hold && self.held() && self.document.verdict == "unknown"
    }

    fn held(&self) -> bool {
        let each =
            |task: &PredictedTask| task.missed.unwrap_or(0) == 0 && task.lost.unwrap_or(0) == 0;
        self.document.tasks.iter().all(each)
    }
}

/// The reason why there is no prediction. The text is one line.
#[derive(Debug, thiserror::Error)]
pub enum PredictError {
    /// The set cannot be run as it is.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// The machine cannot, or something is wrong with the run.
    #[error(transparent)]
    Run(#[from] RunFailure),
}

/// Analyses, simulates and runs a set. If the run contradicts the analysis, it also measures for
/// one to five seconds, on each CPU of the set in turn, what takes that CPU from the most urgent
/// thread.
///
/// # Errors
/// The set cannot be run, or the machine refuses what its run needs; then nothing was measured.
pub fn predict(
    request: PredictRequest,
    watch: &mut dyn ExperimentObserver,
) -> Result<PredictionResult, PredictError> {
    let PredictRequest { set, name, notes, run, seed, horizon } = request;
    // Errors in the request of a run are reported before anything is computed.
    let plan = run.as_ref().map(|wish| plan(&set, wish, seed)).transpose()?;
    let bounds = theory::bounds_on_paper(&set);
    let simulated = theory::simulate(&set, horizon, seed);
    let least = set.tasks.iter().any(Task::has_upper_bound).then(|| set.at_least());
    let may_hold = least.is_some_and(|least| {
        let simulated = least.map(|least| theory::simulate(&least, horizon, seed));
        simulated.is_none_or(|found| {
            found.is_ok_and(|found| found.tasks.iter().all(|(_, missed)| *missed == 0))
        })
    });
    let mut document = initial_document(&set, name, notes, &bounds, simulated);
    let (mut not_kept, mut signal) = (None, None);
    explain::explain_simulation(&set, &mut document);
    if let Some((wish, plan)) = run.zip(plan) {
        document.notes.extend(plan.notes.iter().cloned());
        let finished = experiment::run(plan.request(&wish), watch)?;
        signal = finished.signal();
        document.interrupted = signal.is_some();
        not_kept = tell_run(&mut document, &plan, &finished);
        let found = terms::found(&set, &plan, &finished);
        for (task, found) in document.tasks.iter_mut().zip(&found) {
            found.tell(task);
        }
        let seen = ObservedRun::of(&set, &plan, &finished);
        match &seen {
            Some(seen) => document.assumptions = seen.table(&set),
            None => document.notes.push(
                "the trace has gaps, so that the assumptions were not tested; use a shorter \
                 --duration"
                    .to_owned(),
            ),
        }
        if !document.interrupted {
            signal = explain::explain(&set, &plan, &found, seen.as_ref(), &mut document);
            document.interrupted = signal.is_some();
        }
    }
    Ok(PredictionResult { document, not_kept, signal, may_hold })
}

/// The document as far as theory and simulation go.
fn initial_document(
    set: &TaskSet,
    name: String,
    notes: Vec<String>,
    bounds: &theory::Bounds,
    simulated: Result<theory::Simulated, String>,
) -> PredictDocument {
    let tasks = set.tasks.iter().enumerate().map(|(position, task)| {
        let bound = bounds.tasks.get(position).copied();
        PredictedTask {
            name: task.name.clone(),
            deadline_ns: task.deadline().nanos_or_zero(),
            bound_ns: bound.and_then(|bound| bound.response_ns),
            verdict: bound.map_or("unknown", |bound| bound.verdict).to_owned(),
            ..PredictedTask::default()
        }
    });
    let mut document = PredictDocument {
        schema: PREDICT_SCHEMA.to_owned(),
        name: if set.name.is_empty() { name } else { set.name.clone() },
        analysis: bounds.analysis.clone(),
        verdict: bounds.verdict.to_owned(),
        not_analysed: bounds.reason.clone(),
        simulation: None,
        not_simulated: None,
        run: None,
        noise: None,
        tasks: tasks.collect(),
        assumptions: Vec::new(),
        notes,
        interrupted: false,
        against: None,
    };
    match simulated {
        Ok(simulated) => {
            for (task, (longest, missed)) in document.tasks.iter_mut().zip(simulated.tasks) {
                task.simulated_ns = longest;
                task.simulated_missed = Some(missed);
            }
            document.simulation = Some(simulated.facts);
        }
        Err(reason) => document.not_simulated = Some(reason),
    }
    document
}

/// Says what the run was. Comes back with why it was not kept, if it should have been.
fn tell_run(
    document: &mut PredictDocument,
    plan: &TaskRunPlan,
    finished: &Finished,
) -> Option<String> {
    let result = &finished.document.result;
    let mut warnings: Vec<String> =
        result.warnings.iter().map(|w| format!("{}; {}", w.text, w.remedy)).collect();
    let (folder, not_kept) = match &finished.folder {
        Some(Ok(path)) => (Some(path.display().to_string()), None),
        Some(Err(error @ WriteError::Whole { path, .. })) => {
            warnings.push(error.to_string());
            (Some(path.display().to_string()), None)
        }
        Some(Err(error)) => (None, Some(error.said_of("the run"))),
        None => (None, None),
    };
    document.notes.extend(kept_from_user_space(&finished.document.manifest.threads));
    document.run = Some(MeasurementFacts {
        duration_ns: plan.spec.duration.nanos_or_zero(),
        elapsed_ns: finished.document.manifest.elapsed_ns,
        seed: plan.spec.seed,
        folder,
        warnings,
    });
    not_kept
}

/// That reservations were no threads of the deadline class, whose rules the bounds are about, and why; one sentence a reason.
fn kept_from_user_space(threads: &[ThreadFacts]) -> Vec<String> {
    let kept = threads.iter().filter_map(|thread| thread.reserved.as_ref());
    let kept = kept.filter(|reserved| reserved.by == "user");
    let reasons: BTreeSet<&str> = kept.map(|reserved| reserved.reason.as_str()).collect();
    let said = |reason: &str| {
        format!(
            "threads with a reservation ran in a reserve from user space, below the deadline class and by other rules: {reason}"
        )
    };
    reasons.into_iter().map(said).collect()
}
