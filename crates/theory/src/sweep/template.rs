//! One set of tasks whose execution times are scaled to a utilisation: how far it is from missing.
//!
//! Owns: which sets can be scaled, and scaling them. Must not: judge them, read files.

use hourglass_sched::Task;
use hourglass_tasks::generate::{Millionths, scaled_costs};
use hourglass_tasks::{Assignment, Preemption, Task as ModelTask, TaskSet};
use thiserror::Error;

/// A set that cannot be scaled; nothing in it is left out silently.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum TemplateError {
    /// A property of a task that the compared analyses do not support.
    #[error("task '{task}' has {what}, which sweep does not use; remove it, or use check")]
    Unheard { task: String, what: &'static str },
    /// A property of the set that the compared analyses do not support.
    #[error("the set has {0}, which sweep does not use; remove it, or use check")]
    UnheardOfSet(&'static str),
    /// A task would need more than a processor.
    #[error(
        "at utilisation {utilisation} task '{task}' needs more than a processor; let the sweep end \
         earlier"
    )]
    OverProcessor { task: String, utilisation: Millionths },
    /// More than all processors have, or nothing.
    #[error(
        "utilisation {utilisation} is not above 0 and up to the number of processors, {processors}; \
         take another one, or more processors"
    )]
    OutOfRange { utilisation: Millionths, processors: u32 },
    /// A nanosecond each is too much.
    #[error("at utilisation {0} not every task has a nanosecond; take a larger one")]
    TooSmall(Millionths),
    /// A task that no analysis takes.
    #[error("task '{task}': {reason}")]
    Task { task: String, reason: String },
}

/// A set of tasks with only the properties that the analyses support.
#[derive(Clone, Debug)]
pub struct Template {
    names: Vec<String>,
    tasks: Vec<Task>,
    given: bool,
    processors: u32,
    text: String,
}

impl Template {
    /// Takes the set.
    ///
    /// # Errors
    /// It has something that the analyses compared here do not look at.
    pub fn new(set: &TaskSet) -> Result<Template, TemplateError> {
        let of_set = [
            ("servers", !set.servers.is_empty()),
            ("resources", !set.resources.is_empty()),
            ("background threads", !set.background.is_empty()),
            ("interference", !set.interference.is_empty()),
            ("overheads", set.machine.overheads != Default::default()),
        ];
        if let Some((what, _)) = of_set.iter().find(|(_, there)| *there) {
            return Err(TemplateError::UnheardOfSet(what));
        }
        let given = set.assignment() == Assignment::Given;
        let priorities = set.priorities();
        let made = set.tasks.iter().zip(priorities).map(|(task, priority)| plain(task, priority));
        Ok(Template {
            names: set.tasks.iter().map(|task| task.name.clone()).collect(),
            tasks: made.collect::<Result<_, _>>()?,
            given,
            processors: u32::try_from(set.cpus().len()).unwrap_or(u32::MAX).max(1),
            text: set.to_toml(),
        })
    }

    /// How many processors the set's machine has.
    #[must_use]
    pub fn processors(&self) -> u32 {
        self.processors
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Whether the template has no task.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.tasks.is_empty()
    }

    /// Whether the tasks have priorities.
    #[must_use]
    pub fn has_priorities(&self) -> bool {
        self.given
    }

    /// The set as a task file.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The set with execution times so that it uses at most this.
    pub(super) fn at(
        &self,
        utilisation: Millionths,
        processors: u32,
    ) -> Result<ScaledTaskSet, TemplateError> {
        if utilisation == Millionths::ZERO || utilisation > Millionths::whole(processors.into()) {
            return Err(TemplateError::OutOfRange { utilisation, processors });
        }
        let pairs: Vec<(u64, u64)> =
            self.tasks.iter().map(|task| (task.cost(), task.period())).collect();
        let costs =
            scaled_costs(&pairs, utilisation).ok_or(TemplateError::TooSmall(utilisation))?;
        let mut tasks = Vec::with_capacity(costs.len());
        for ((task, name), cost) in self.tasks.iter().zip(&self.names).zip(costs) {
            if cost > task.period() {
                return Err(TemplateError::OverProcessor { task: name.clone(), utilisation });
            }
            let made = Task::new(cost, task.period(), task.deadline()).map_err(|error| {
                TemplateError::Task { task: name.clone(), reason: error.to_string() }
            })?;
            let made = made.with_jitter(task.jitter()).with_blocking(task.blocking());
            tasks.push(made.with_suspension(task.suspension()).with_priority(task.priority()));
        }
        Ok(ScaledTaskSet { tasks })
    }
}

/// The set at one point.
#[derive(Clone, Debug)]
pub(super) struct ScaledTaskSet {
    tasks: Vec<Task>,
}

impl ScaledTaskSet {
    pub(super) fn tasks(&self) -> &[Task] {
        &self.tasks
    }
}

/// The task as the analyses see it, if they see all of it. An offset is left out: any phase is
/// possible then, which is no better a case.
fn plain(task: &ModelTask, priority: Option<u32>) -> Result<Task, TemplateError> {
    let unheard = [
        ("non-preemptive sections or a threshold", task.preemption != Preemption::Full),
        ("bursts of arrivals", !task.arrivals.is_empty()),
        ("tasks that it comes after", !task.after.is_empty()),
        ("critical sections", !task.critical_sections.is_empty()),
        ("CPUs of its own", task.cpus.is_some()),
        ("a policy without priorities", !task.has_fixed_priority()),
        ("a timer bound to ticks", task.tick().is_some()),
    ];
    if let Some((what, _)) = unheard.iter().find(|(_, there)| *there) {
        return Err(TemplateError::Unheard { task: task.name.clone(), what });
    }
    let made = Task::new(
        task.wcet.nanos_or_zero(),
        task.period.nanos_or_zero(),
        task.deadline().nanos_or_zero(),
    );
    let made = made.map_err(|error| TemplateError::Task {
        task: task.name.clone(),
        reason: error.to_string(),
    })?;
    Ok(made
        .with_jitter(task.jitter.nanos_or_zero())
        .with_blocking(task.blocking.nanos_or_zero())
        .with_suspension(task.suspension.nanos_or_zero())
        .with_priority(priority.unwrap_or(0)))
}
