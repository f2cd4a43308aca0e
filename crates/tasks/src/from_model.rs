//! The threads of a program as tasks, and the file of these.
//!
//! Owns: what a model says in the language of tasks, and the comments that say how well it fits. Must not: make the model
//! (`trace` does).

use std::fmt::{self, Write};

use hourglass_documents::CpuSet;
use hourglass_documents::task_model::{ActivationClass, ModelDocument, ThreadModel, WakerModel};
use hourglass_time::Span;

use super::error::{Location, TaskSetError};
use super::from_run::RecordedTaskSet;
use super::{Activation, Background, Phase, Program, ProgramStep, Task, TaskSet};

/// Wakers that a comment names.
const WAKERS: usize = 3;

pub(super) fn span(ns: u64) -> Span {
    Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
}

/// A task by its law of arrivals and its times.
pub(super) fn task(name: &str, seen: &ThreadModel) -> Task {
    let law = &seen.activation;
    Task {
        activation: match law.class {
            ActivationClass::Periodic => Activation::Periodic,
            _ => Activation::Sporadic,
        },
        jitter: span(law.jitter_ns),
        arrivals: law.arrivals_ns.iter().copied().map(span).collect(),
        bcet: Some(span(seen.execution.min_ns)).filter(|time| time.is_positive()),
        suspension: seen.suspension.as_ref().map_or(Span::ZERO, |waits| span(waits.max_ns)),
        ..Task::new(name, span(seen.execution.max_ns), span(law.period_ns))
    }
}

impl TaskSet {
    /// The threads of a model as tasks; those that are none as background threads, above which nothing is known of others.
    ///
    /// # Errors
    /// No thread is a task, or what is said of one cannot be meant.
    pub fn from_model(model: &ModelDocument) -> Result<RecordedTaskSet, TaskSetError> {
        let mut recorded = RecordedTaskSet { set: TaskSet::default(), notes: Vec::new() };
        for thread in &model.threads {
            if let Some(why) = &thread.unmodelled {
                recorded.add_background(thread)?;
                recorded
                    .notes
                    .push(format!("{}: no task, but a background thread: {why}", thread.name));
                continue;
            }
            let policy = match &thread.reservation {
                Some(times) => format!("DEADLINE:{times}"),
                None => thread.policy.clone(),
            };
            let (policy, cpus) = recorded.scheduling(&thread.name, &policy, &thread.cpus)?;
            let own = task(&thread.name, thread);
            let first = first_of_chain(model, thread);
            recorded.set.tasks.push(Task {
                policy: Some(policy),
                cpus: Some(cpus),
                after: thread.after.iter().cloned().collect(),
                ..match first {
                    // What arrives at the first is what arrives here.
                    Some(first) => Task {
                        jitter: Span::ZERO,
                        arrivals: Vec::new(),
                        ..Task {
                            wcet: own.wcet,
                            bcet: own.bcet,
                            suspension: own.suspension,
                            ..task(&thread.name, first)
                        }
                    },
                    None => own,
                }
            });
        }
        if recorded.set.tasks.is_empty() {
            let message = "no thread of it is a task; record for longer, or a program that waits between its jobs";
            return Err(Location::part("the record").contradiction(message));
        }
        let mut all = CpuSet::default();
        let cpus = recorded.set.tasks.iter().filter_map(|task| task.cpus.as_ref());
        cpus.flat_map(CpuSet::iter).for_each(|cpu| all.insert(cpu));
        recorded.set.machine.cpus = Some(all);
        recorded.set.check()?;
        Ok(recorded)
    }
}

/// The thread that begins the chain of `thread`; `None` where that is itself.
fn first_of_chain<'a>(model: &'a ModelDocument, thread: &ThreadModel) -> Option<&'a ThreadModel> {
    let named = |name: &String| model.threads.iter().find(|thread| thread.name == *name);
    let mut first = named(thread.after.as_ref()?)?;
    // A chain is not longer than there are threads.
    for _ in &model.threads {
        let Some(before) = first.after.as_ref().and_then(named) else { break };
        first = before;
    }
    Some(first)
}

/// The file of tasks of a model, with what each figure was seen on as comments.
///
/// # Errors
/// As [`TaskSet::from_model`].
pub fn model_toml(model: &ModelDocument) -> Result<String, TaskSetError> {
    let text = TaskSet::from_model(model)?.set.to_toml();
    let mut tasks = model.threads.iter().filter(|thread| thread.unmodelled.is_none());
    let mut others = model.threads.iter().filter(|thread| thread.unmodelled.is_some());
    let mut out = String::new();
    // Writing into a String does not fail.
    let _ = heading(&mut out, model);
    for line in text.lines() {
        let thread = match line {
            "[[task]]" => tasks.next(),
            "[[background]]" => others.next(),
            _ => None,
        };
        let _ = thread.map_or(Ok(()), |thread| comments(&mut out, thread));
        out.push_str(line);
        out.push('\n');
    }
    Ok(out)
}

fn heading(out: &mut String, model: &ModelDocument) -> fmt::Result {
    writeln!(out, "# Threads of a program as tasks, from a record of {}.", span(model.elapsed_ns))?;
    writeln!(
        out,
        "# What was seen is no bound: a longer or an earlier job may come. Deadlines are the"
    )?;
    writeln!(out, "# periods, as none can be seen: state those that hold.")?;
    if model.events_lost > 0 {
        writeln!(out, "# The kernel lost {} events.", model.events_lost)?;
    }
    if !model.never_ran.is_empty() {
        writeln!(
            out,
            "# Threads that did not run, and are not here: {}.",
            model.never_ran.join(", ")
        )?;
    }
    Ok(())
}

fn comments(out: &mut String, thread: &ThreadModel) -> fmt::Result {
    for line in explained(thread) {
        writeln!(out, "# {line}")?;
    }
    Ok(())
}

/// What the figures of a thread were seen on, one sentence each.
fn explained(thread: &ThreadModel) -> Vec<String> {
    let (law, fit) = (&thread.activation, &thread.fit);
    let mut lines = Vec::new();
    let tid = thread.tid.map_or(String::new(), |tid| format!(" (thread {tid})"));
    let cut = format!("{} cut off, {} holes in the record", fit.cut_off, fit.holes);
    lines.push(format!("{} jobs seen{tid}, {} explained; {cut}", fit.jobs, fit.explained));
    if let Some(why) = &thread.unmodelled {
        lines.push(format!("No task: {why}. Less urgent tasks have no verdict."));
        return lines;
    }
    lines.push(match law.class {
        ActivationClass::Periodic => {
            let (late, unseen, skipped) = (law.late, law.unseen, law.skipped);
            let (all, usual) = (span(law.jitter_ns), span(law.usual_jitter_ns));
            let near = match late {
                0 => format!("all releases within {all} of a grid"),
                _ => format!("{late} releases within {all} of a grid, all others within {usual}"),
            };
            let while_running = match unseen {
                0 => String::new(),
                _ => format!("; {unseen} not seen, as the job before still ran"),
            };
            format!("periodic: {near}{while_running}; {skipped} periods without a job")
        }
        ActivationClass::ArrivalCurve => {
            "no period: the shortest times of bursts, and the rate beyond".to_owned()
        }
        _ => "no period: the shortest distance of two jobs".to_owned(),
    });
    if let Some(waits) = &thread.suspension {
        lines.push(format!("{} waits in a job, told by {}", waits.waits, waits.basis));
    }
    let sums: Vec<String> =
        thread.execution.successive_ns.iter().map(|ns| span(*ns).to_string()).collect();
    lines.push(format!("execution time of 1, 2, ... jobs in a row at most: {}", sums.join(", ")));
    let waker = |waker: &WakerModel| format!("{} ({} jobs)", waker.name, waker.jobs);
    let wakers: Vec<String> = thread.woken_by.iter().take(WAKERS).map(waker).collect();
    lines.push(format!("woken by {}", wakers.join(", ")));
    // A name may have any character, and a comment ends with its line.
    lines.iter().map(|line| line.replace(char::is_control, "?")).collect()
}

impl RecordedTaskSet {
    /// A thread that is no task runs when it likes: nothing is known of those below it.
    fn add_background(&mut self, thread: &ThreadModel) -> Result<(), TaskSetError> {
        let (policy, cpus) = self.scheduling(&thread.name, &thread.policy, &thread.cpus)?;
        // Nothing says what wakes it: it waits for what a simulation does not have, and `check` bounds nothing below it.
        let run = ProgramStep::Run(span(thread.execution.max_ns.max(1)));
        let steps = vec![ProgramStep::Suspend(thread.name.clone()), run];
        let phase = Phase { name: String::new(), loops: None, policy: None, cpus: None, steps };
        self.set.background.push(Background {
            name: thread.name.clone(),
            policy: Some(policy),
            cpus: Some(cpus),
            program: Program { loops: None, phases: vec![phase] },
        });
        Ok(())
    }
}
