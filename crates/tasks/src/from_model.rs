//! The threads of a program as tasks, and the file of these.
//!
//! Owns: what a model says in the language of tasks, and the comments that say how well it fits. Must not: make the model
//! (`trace` does).

use std::fmt::{self, Write};

use hourglass_documents::task_model::{
    ActivationClass, ChainFitModel, CountModel, ModelDocument, ModelSource, ThreadModel, WakerModel,
};
use hourglass_documents::{CpuSet, Policy};
use hourglass_time::Span;

use super::error::{Location, TaskSetError};
use super::from_run::RecordedTaskSet;
use super::{Activation, Background, Phase, Program, ProgramStep, Task, TaskSet};

/// Name of the background thread for all that a record does not follow; longer than that of any thread.
const UNFOLLOWED: &str = "threads that were not followed";
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
        wcet_at_least: seen
            .execution
            .at_least_ns
            .map(|ns| span(ns.max(1)))
            .filter(|least| *least < span(seen.execution.max_ns)),
        bcet: Some(span(seen.execution.min_ns)).filter(|time| time.is_positive()),
        suspension: seen.suspension.as_ref().map_or(Span::ZERO, |waits| span(waits.max_ns)),
        ..Task::new(name, span(seen.execution.max_ns), span(law.period_ns))
    }
}

impl TaskSet {
    /// The threads of a model as tasks; those that are none as background threads, above which nothing is known of others.
    /// By counts all are such.
    ///
    /// # Errors
    /// No thread of a record is a task, or what is said of one cannot be meant.
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
                after: before(thread).cloned().into_iter().collect(),
                ..match first {
                    // What arrives at the first is what arrives here.
                    Some(first) => Task {
                        jitter: Span::ZERO,
                        arrivals: Vec::new(),
                        ..Task {
                            wcet: own.wcet,
                            wcet_at_least: own.wcet_at_least,
                            bcet: own.bcet,
                            suspension: own.suspension,
                            ..task(&thread.name, first)
                        }
                    },
                    None => own,
                }
            });
        }
        let by_counts = model.source == ModelSource::Counts && !recorded.set.background.is_empty();
        if recorded.set.tasks.is_empty() && !by_counts {
            let message = "no thread of it is a task; record for longer, or a program that waits between its jobs";
            return Err(Location::part("the record").contradiction(message));
        }
        let mut all = CpuSet::default();
        let cpus = recorded.set.tasks.iter().filter_map(|task| task.cpus.as_ref());
        let others = recorded.set.background.iter().filter(|_| by_counts);
        let cpus = cpus.chain(others.filter_map(|thread| thread.cpus.as_ref()));
        cpus.flat_map(CpuSet::iter).for_each(|cpu| all.insert(cpu));
        if model.has_unfollowed() {
            recorded.add_unfollowed(model, &all);
        }
        recorded.set.machine.cpus = Some(all);
        recorded.set.check()?;
        Ok(recorded)
    }
}

/// The thread whose jobs begin those of this one when they end: not one that waits for these within its own.
fn before(thread: &ThreadModel) -> Option<&String> {
    thread.after.as_ref().filter(|_| !thread.waited_for)
}

/// The thread that begins the chain of `thread`; `None` where that is itself.
fn first_of_chain<'a>(model: &'a ModelDocument, thread: &ThreadModel) -> Option<&'a ThreadModel> {
    let named = |name: &String| model.threads.iter().find(|thread| thread.name == *name);
    let mut first = named(before(thread)?)?;
    // A chain is not longer than there are threads.
    for _ in &model.threads {
        let Some(earlier) = before(first).and_then(named) else { break };
        first = earlier;
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
            "[[background]]" => match others.next() {
                None => {
                    out.push_str(ABOUT_UNFOLLOWED);
                    None
                }
                thread => thread,
            },
            _ => None,
        };
        let _ = thread.map_or(Ok(()), |thread| comments(&mut out, thread));
        out.push_str(line);
        out.push('\n');
    }
    Ok(out)
}

fn heading(out: &mut String, model: &ModelDocument) -> fmt::Result {
    let length = span(model.elapsed_ns);
    if model.source == ModelSource::Counts {
        writeln!(
            out,
            "# Threads of a program, by the kernel's counts of {length}. None is a task: counts show how"
        )?;
        writeln!(
            out,
            "# often a thread was woken, not when. State each that you know as a [[task]] with its"
        )?;
        writeln!(
            out,
            "# period and wcet; the others stay, and check has no verdict for what they may hold up."
        )?;
        writeln!(out, "# As root: hourglass watch PID --trace --tasks FILE")?;
        no_verdict(out, model)?;
        return never_ran(out, model);
    }
    writeln!(out, "# Threads of a program as tasks, from a record of {length}.")?;
    writeln!(
        out,
        "# What was seen is no bound: a longer or an earlier job may come. Deadlines are the"
    )?;
    writeln!(out, "# periods, as none can be seen: state those that hold.")?;
    no_verdict(out, model)?;
    if model.events_lost > 0 {
        writeln!(out, "# The kernel lost {} events.", model.events_lost)?;
    }
    never_ran(out, model)
}

fn no_verdict(out: &mut String, model: &ModelDocument) -> fmt::Result {
    for premise in &model.premises {
        writeln!(out, "# No verdict: {}", clean(&premise.text))?;
    }
    Ok(())
}

fn never_ran(out: &mut String, model: &ModelDocument) -> fmt::Result {
    let names = model.never_ran.join(", ");
    match model.never_ran.is_empty() {
        true => Ok(()),
        false => writeln!(out, "# Threads that did not run, and are not here: {names}."),
    }
}

/// A name may have any character, and a comment ends with its line.
fn clean(line: &str) -> String {
    line.replace(char::is_control, "?")
}

fn comments(out: &mut String, thread: &ThreadModel) -> fmt::Result {
    for line in explained(thread) {
        writeln!(out, "# {}", clean(&line))?;
    }
    Ok(())
}

/// Before the background thread that stands for what was not followed.
const ABOUT_UNFOLLOWED: &str = "\
# What the record does not follow. Nothing is known of its policies and CPUs, so that it
# may hold up every task below the deadline class, and these have no verdict. State the
# policy and the CPUs that such threads have.
";

/// What the figures of a thread were seen on, one sentence each.
fn explained(thread: &ThreadModel) -> Vec<String> {
    let (law, fit) = (&thread.activation, &thread.fit);
    if let Some(counts) = &thread.counts {
        return counted(thread, counts);
    }
    let mut lines = Vec::new();
    let tid = thread.tid.map_or(String::new(), |tid| format!(" (thread {tid})"));
    let cut = format!("{} cut off, {} holes in the record", fit.cut_off, fit.holes);
    lines.push(format!("{} jobs seen{tid}, {} explained; {cut}", fit.jobs, fit.explained));
    if let Some(from_ns) = thread.settled_ns {
        lines.push(format!(
            "its policy, CPUs or reservation changed: what it did in the first {} is left out",
            span(from_ns)
        ));
    }
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
    if let Some(before) = thread.after.as_ref().filter(|_| thread.waited_for) {
        lines.push(format!(
            "{before} wakes it and waits for it within its own job, whose suspension has its time"
        ));
    }
    if let Some((before, fit)) = before(thread).zip(thread.after_fit) {
        let ChainFitModel { jobs, own, merged } = fit;
        lines.push(format!(
            "after {before}, not exactly: {own} of its {jobs} jobs were seen to wake it, {merged} came while it still ran"
        ));
    }
    if let Some(waits) = &thread.suspension {
        lines.push(format!("{} waits in a job, told by {}", waits.waits, waits.basis));
    }
    let sums: Vec<String> =
        thread.execution.successive_ns.iter().map(|ns| span(*ns).to_string()).collect();
    lines.push(format!("execution time of 1, 2, ... jobs in a row at most: {}", sums.join(", ")));
    // Of a job without its begin, the time from the waking counts.
    let whole_ns = thread.execution.histogram.iter().map(|bucket| bucket.hi_ns).max();
    if let Some(whole_ns) = whole_ns.filter(|whole_ns| thread.execution.max_ns > *whole_ns) {
        lines.push(format!(
            "the longest was cut off and may have been shorter: all that were seen whole took less than {}",
            span(whole_ns)
        ));
    }
    let waker = |waker: &WakerModel| format!("{} ({} jobs)", waker.name, waker.jobs);
    let wakers: Vec<String> = thread.woken_by.iter().take(WAKERS).map(waker).collect();
    lines.push(format!("woken by {}", wakers.join(", ")));
    lines
}

/// What the kernel's counts say of a thread.
fn counted(thread: &ThreadModel, counts: &CountModel) -> Vec<String> {
    let mut lines = Vec::new();
    let tid = thread.tid.map_or(String::new(), |tid| format!("thread {tid}, "));
    let wait = counts.wait_ns.map_or("unknown".to_owned(), |ns| span(ns).to_string());
    let ran =
        counts.run_ns.zip(counts.utilisation_ppm).map_or("unknown".to_owned(), |(ns, ppm)| {
            format!("{} ({}.{:04} %)", span(ns), ppm / 10_000, ppm % 10_000)
        });
    let observed = span(counts.observed_ns);
    lines.push(format!("{tid}seen for {observed}: time on a CPU {ran}, waiting for one {wait}"));
    if let Some(activations) = &counts.activations {
        lines.push(format!("woken {} to {} times", activations.min, activations.max));
        if let Some((window, most)) =
            activations.most_switches.and_then(|window| Some((window, window.switches?)))
        {
            let length = span(window.to_ns.saturating_sub(window.from_ns));
            lines.push(format!("at most {most} waits began in {length}: observed, and no bound"));
        }
    }
    let longest = &counts.longest_activation;
    let at_least = span(longest.at_least_ns);
    lines.push(match (longest.at_most_ns, &longest.unbounded_because) {
        (Some(ns), _) => format!(
            "execution time from a waking to the next wait: longest from {at_least} to {}, of {} seen; where it waits \
             within a job, the job is longer",
            span(ns),
            longest.bounded
        ),
        (None, why) => format!(
            "execution time from a waking to the next wait: longest {at_least} or more, not bounded: {}",
            why.as_deref().unwrap_or("unknown")
        ),
    });
    lines
}

impl RecordedTaskSet {
    /// A thread that is no task runs when it likes: nothing is known of those below it.
    fn add_background(&mut self, thread: &ThreadModel) -> Result<(), TaskSetError> {
        let (policy, cpus) = self.scheduling(&thread.name, &thread.policy, &thread.cpus)?;
        let counted =
            thread.counts.as_ref().and_then(|counts| counts.longest_activation.at_most_ns);
        let run_ns = counted.unwrap_or(thread.execution.max_ns);
        self.set.background.push(background(&thread.name, policy, cpus, run_ns));
        Ok(())
    }

    /// One thread for all that were not followed, where such may run: none of these ran for longer than the record.
    fn add_unfollowed(&mut self, model: &ModelDocument, cpus: &CpuSet) {
        let thread = background(UNFOLLOWED, MOST_URGENT, cpus.clone(), model.elapsed_ns);
        self.set.background.push(thread);
        let premises = model.premises.iter();
        self.notes.extend(premises.map(|premise| format!("no verdict: {}", premise.text)));
    }
}

/// What is above every task but for those of the deadline class, into which no thread is created.
const MOST_URGENT: Policy = Policy::Fifo(99);

/// Nothing says what wakes it: it waits for what a simulation does not have, and `check` bounds nothing below it.
fn background(name: &str, policy: Policy, cpus: CpuSet, run_ns: u64) -> Background {
    let run = ProgramStep::Run(span(run_ns.max(1)));
    // A name with a blank is no word of a step.
    let steps = vec![ProgramStep::Suspend(name.replace(char::is_whitespace, "_")), run];
    let phase = Phase { name: String::new(), loops: None, policy: None, cpus: None, steps };
    Background {
        name: name.to_owned(),
        policy: Some(policy),
        cpus: Some(cpus),
        program: Program { loops: None, phases: vec![phase] },
    }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::document::Premise;
    use hourglass_documents::task_model::{
        ActivationModel, CountWindow, CountedActivations, ExecutionModel, LongestActivation,
    };

    use super::*;

    fn by_counts() -> ModelDocument {
        let thread = |name: &str, at_most_ns| ThreadModel {
            name: name.to_owned(),
            tid: Some(7),
            policy: "FIFO:50".to_owned(),
            cpus: "2-3".to_owned(),
            unmodelled: Some("counts".to_owned()),
            counts: Some(CountModel {
                observed_ns: 10_000_000_000,
                run_ns: Some(1_005_000_000),
                utilisation_ppm: Some(100_500),
                wait_ns: Some(2_000_000),
                activations: Some(CountedActivations {
                    min: 99,
                    max: 101,
                    most_switches: Some(CountWindow {
                        to_ns: 100_000_000,
                        switches: Some(3),
                        ..CountWindow::default()
                    }),
                    ..CountedActivations::default()
                }),
                longest_activation: LongestActivation {
                    at_least_ns: 1_000,
                    at_most_ns,
                    bounded: 99,
                    unbounded_because: at_most_ns.is_none().then(|| "it\nnever ended".to_owned()),
                    ..LongestActivation::default()
                },
                ..CountModel::default()
            }),
            ..ThreadModel::default()
        };
        ModelDocument {
            source: ModelSource::Counts,
            elapsed_ns: 10_000_000_000,
            threads: vec![thread("audio", Some(4_000_000)), thread("spin", None)],
            never_ran: vec!["idle".to_owned()],
            ..ModelDocument::default()
        }
    }

    /// Nothing of it is a task, and what a reader must know is in its comments.
    #[test]
    fn counts_make_a_file_without_tasks() {
        let text = model_toml(&by_counts()).unwrap();
        let set = TaskSet::from_toml(&text).unwrap();
        assert_eq!((set.tasks.len(), set.background.len()), (0, 2), "{text}");
        assert_eq!(set.machine.cpus, "2-3".parse().ok());
        for part in [
            "None is a task",
            "not here: idle.",
            "# thread 7, seen for 10s: time on a CPU 1.005s (10.0500 %), waiting for one 2ms\n",
            "# woken 99 to 101 times\n",
            "# at most 3 waits began in 100ms: observed, and no bound\n",
            "longest from 1us to 4ms, of 99 seen",
            "longest 1us or more, not bounded: it?never ended\n",
            "\"run 4ms\"",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// A longest time that may be of several jobs is an upper bound in the file, which says why.
    #[test]
    fn a_chain_that_is_not_exact_says_so() {
        let thread = |name: &str, after: Option<&str>| ThreadModel {
            name: name.to_owned(),
            policy: "FIFO:50".to_owned(),
            cpus: "2-3".to_owned(),
            activation: ActivationModel { period_ns: 10_000_000, ..ActivationModel::default() },
            execution: ExecutionModel {
                max_ns: 8_000_000,
                at_least_ns: Some(if after.is_some() { 4_000_000 } else { 8_000_000 }),
                ..ExecutionModel::default()
            },
            after: after.map(str::to_owned),
            after_fit: after.map(|_| ChainFitModel { jobs: 100, own: 97, merged: 3 }),
            ..ThreadModel::default()
        };
        let asked = ThreadModel { waited_for: true, ..thread("asked", Some("first")) };
        let threads = vec![thread("first", None), thread("next", Some("first")), asked];
        let model = ModelDocument { threads, never_ran: Vec::new(), ..by_counts() };
        let model = ModelDocument { source: ModelSource::Events, ..model };
        let text = model_toml(&model).unwrap();
        let set = TaskSet::from_toml(&text).unwrap();
        let bounds: Vec<bool> = set.tasks.iter().map(Task::has_upper_bound).collect();
        assert_eq!(bounds, [false, true, true], "{text}");
        let said = "# after first, not exactly: 97 of its 100 jobs were seen to wake it, 3 came while it still ran\n";
        assert!(text.contains(said) && set.tasks[1].after == ["first"], "{text}");
        let said = "# first wakes it and waits for it within its own job";
        assert!(text.contains(said) && set.tasks[2].after.is_empty(), "{text}");
    }

    /// The bug: a program that starts a thread for each job was "feasible, may grow 39x" by the thread that starts them.
    #[test]
    fn what_was_not_followed_is_in_the_file() {
        let task = ThreadModel {
            unmodelled: None,
            counts: None,
            name: "disp".to_owned(),
            policy: "FIFO:50".to_owned(),
            cpus: "1".to_owned(),
            activation: ActivationModel { period_ns: 20_000_000, ..ActivationModel::default() },
            execution: ExecutionModel { max_ns: 500_000, ..ExecutionModel::default() },
            ..ThreadModel::default()
        };
        let text = "the threads seen of disp (7) had 152 ms of its 1370 ms\nof CPU time";
        for (id, background) in
            [("threads-unseen", 1), ("processes-unseen", 1), ("quota-changed", 0)]
        {
            let premise = Premise { id: id.to_owned(), text: text.to_owned(), at_ns: 9 };
            let model = ModelDocument {
                source: ModelSource::Events,
                threads: vec![task.clone()],
                premises: vec![premise],
                ..by_counts()
            };
            let text = model_toml(&model).unwrap();
            let head = "# No verdict: the threads seen of disp (7) had 152 ms of its 1370 ms?of CPU time\n";
            assert!(text.contains(head) && !model.is_whole(), "{text}");
            let set = TaskSet::from_toml(&text).unwrap();
            assert_eq!((set.tasks.len(), set.background.len()), (1, background), "{text}");
            assert_eq!(text.contains(ABOUT_UNFOLLOWED), background == 1, "{text}");
            for thread in &set.background {
                assert_eq!((thread.policy, &thread.cpus), (Some(MOST_URGENT), &set.machine.cpus));
            }
        }
    }

    /// A record of which no thread is a task makes no file.
    #[test]
    fn a_record_without_tasks_makes_no_file() {
        let record = ModelDocument { source: ModelSource::Events, ..by_counts() };
        assert!(model_toml(&record).unwrap_err().to_string().contains("no thread of it is a task"));
        let empty = ModelDocument { threads: Vec::new(), ..by_counts() };
        assert!(model_toml(&empty).is_err());
    }
}
