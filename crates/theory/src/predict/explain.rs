//! Why a run and an analysis differ (Hourglass paper, section 5.5): the analysis is asked again
//! with what was measured in the place of what was assumed.
//!
//! Owns: the choice of what is corrected, and the sentence. Must not: analyse.

use hourglass_documents::Policy;
use hourglass_documents::predict::{Assumption, MeasuredTerms, PredictDocument, PredictedTask};
use hourglass_tasks::{Assignment, Preemption, Protocol, Scheduler, Task, TaskSet};
use hourglass_time::Span;

use super::noise::{self, Noise};
use super::observed::ObservedRun;
use super::terms::TaskMeasurement;
use super::theory;
use super::window::Window;
use crate::check::waits_for_others;
use hourglass_measure::task_threads::TaskRunPlan;

/// Lengths of time over which noise is averaged, in ms; each gives a bound, and the least counts.
const WINDOWS_MS: [i64; 12] = [1, 2, 4, 5, 8, 10, 16, 20, 33, 50, 100, 200];

/// Failed assumptions that a sentence names at most.
const MOST_FAILURES: usize = 4;

/// What is less than this does not stand in a sentence, where something else does.
const TRIFLE_NS: u64 = 10_000;

/// Explains each task whose simulation is over its bound: it simulates ticks, which an ideal
/// machine lacks, and steps that wait for others, which no bound counts.
pub(super) fn explain_simulation(set: &TaskSet, document: &mut PredictDocument) {
    let with_ticks = theory::bounds(set);
    if with_ticks.verdict != document.verdict {
        // A user who compares the two verdicts needs the reason of the difference.
        let then = match with_ticks.verdict {
            "infeasible" => "deadlines are missed",
            "no_bound" => "nothing bounds the response times",
            _ => "the analysis does not decide",
        };
        document.notes.push(format!(
            "the bounds are of jobs that are released without delay; with the ticks of their timers, as \
             'hourglass check' counts them, {then}"
        ));
    }
    let over =
        |task: &PredictedTask| task.simulated_ns.zip(task.bound_ns).is_some_and(|(s, b)| s > b);
    if !document.tasks.iter().any(over) {
        return;
    }
    let has_ticks = set.tasks.iter().any(|task| task.tick().is_some());
    let waits = set.tasks.iter().any(waits_for_others);
    for (position, task) in document.tasks.iter_mut().enumerate() {
        if !over(task) {
            continue;
        }
        let simulated = nearly(task.simulated_ns.unwrap_or(0));
        let bound = with_ticks.tasks.get(position).and_then(|bound| bound.response_ns);
        if !has_ticks || bound == task.bound_ns {
            task.explained = Some(waits);
            let why = match waits {
                true => {
                    "steps of tasks wait for other threads, which wcet and suspension leave out"
                }
                false => {
                    "nothing in the file says why, which is a defect of Hourglass: please report it with the file"
                }
            };
            task.explanation = Some(format!("the simulated {simulated} is over the bound: {why}"));
            continue;
        }
        task.corrected_bound_ns = bound;
        task.explained = Some(reaches(task.simulated_ns, bound));
        task.explanation = Some(match bound {
            Some(bound) => format!(
                "the simulated {simulated} comes with the ticks of its timers, which the bound leaves out: \
                 with them it is {}",
                about(bound)
            ),
            None => format!("nothing bounds it with the ticks that lead to {simulated}"),
        });
    }
}

/// Explains each task whose run contradicts its bound, by what was measured in the busy window of its worst job where
/// the trace shows it, else by what was measured in the run. Comes back with the signal that ended the measurement of
/// noise, if one did.
pub(super) fn explain(
    set: &TaskSet,
    plan: &TaskRunPlan,
    found: &[TaskMeasurement],
    seen: Option<&ObservedRun>,
    document: &mut PredictDocument,
) -> Option<i32> {
    let differ: Vec<usize> = (0..document.tasks.len())
        .filter(|position| contradicts(&document.tasks[*position]))
        .collect();
    if differ.is_empty() {
        return None;
    }
    let corrected = corrected(set, found);
    let bounds = theory::bounds_on_paper(&corrected);
    let bound_of = |position: usize| bounds.tasks.get(position).and_then(|b| b.response_ns);
    let (mut open, mut unnamed) = (Vec::new(), Vec::new());
    for position in differ {
        let (task, found) = (&mut document.tasks[position], &found[position]);
        task.corrected_bound_ns = bound_of(position);
        let reaches = reaches(task.measured_ns, task.corrected_bound_ns);
        task.explained = Some(reaches);
        task.explanation = Some(sentence(task, &found.terms, None));
        let of_job = seen.is_some_and(|seen| by_window(set, seen, position, task));
        if !of_job {
            unnamed.push(position);
        }
        if !reaches && !of_job && task.corrected_bound_ns.is_some() {
            open.push(position);
        }
    }
    let mut signal = None;
    if !open.is_empty() {
        let noises;
        (noises, signal) = watch_others(set, plan, document);
        for position in open {
            let (task, found) = (&mut document.tasks[position], &found[position]);
            with_noise(&corrected, &noises, position, task, found);
        }
    }
    for position in unnamed {
        let task = &mut document.tasks[position];
        if let Some(text) = task.explanation.as_mut().filter(|_| !task.failed.is_empty()) {
            text.push_str("; at the worst job: ");
            text.push_str(&failures(&task.failed).join(", "));
        }
    }
    signal
}

/// Says which assumptions failed in the busy window of the worst job, and explains by them if the bound with what was
/// measured there is one, and no looser than that of the whole run. Comes back with whether it explains.
pub(super) fn by_window(
    set: &TaskSet,
    seen: &ObservedRun,
    position: usize,
    task: &mut PredictedTask,
) -> bool {
    let Some(window) = Window::of_worst(seen, set, position) else { return false };
    // A job that the end cut off is not among those that ended.
    if task.measured_ns != Some(window.response_ns()) {
        return false;
    }
    task.failed = window.failed(seen, set);
    let bounds = theory::bounds_on_paper(&window.corrected(seen, set));
    let bound = bounds.tasks.get(position).and_then(|bound| bound.response_ns);
    let tighter = |bound: &u64| {
        reaches(task.measured_ns, Some(*bound))
            && (task.explained != Some(true) || task.corrected_bound_ns.is_none_or(|b| *bound <= b))
    };
    let Some(bound) = bound.filter(tighter) else { return false };
    task.corrected_bound_ns = Some(bound);
    task.explained = Some(true);
    let failed = failures(&task.failed);
    task.explanation = Some(match failed.is_empty() {
        true => format!("with what its worst job received the bound is {}", about(bound)),
        false => format!("{}: with this the bound is {}", failed.join(", "), about(bound)),
    });
    true
}

/// The failures that count, in words: all but trifles, or the largest.
fn failures(failed: &[Assumption]) -> Vec<String> {
    let large = failed.iter().filter(|row| row.excess_ns >= TRIFLE_NS).count();
    failed.iter().take(large.clamp(1, MOST_FAILURES)).map(failure).collect()
}

fn failure(row: &Assumption) -> String {
    let (task, excess) = (format!("'{}'", row.task.escape_debug()), about(row.excess_ns));
    let what = match row.assumption.as_str() {
        "arrivals" => format!("a job of {task} arrives {excess} too early"),
        "release" => format!("{task} is released {excess} late"),
        "cost" => format!("{task} executes {excess} longer than its wcet"),
        "work-conserving" => format!("{task} waits {excess} within a job"),
        "priority" => format!("less urgent threads run for {excess} while {task} is ready"),
        _ => format!("others take {excess} from {task}"),
    };
    match row.at_ns {
        Some(at) => format!("{what} (job at {})", nearly(at.max(0).unsigned_abs())),
        None => what,
    }
}

/// Measures noise where an analysis can make something of it. What the run has shown stands also
/// without it.
fn watch_others(
    set: &TaskSet,
    plan: &TaskRunPlan,
    document: &mut PredictDocument,
) -> (Vec<Noise>, Option<i32>) {
    if !plan.watches_others || !preempts_everywhere(set) {
        return (Vec::new(), None);
    }
    match noise::measure(plan) {
        Ok((noises, signal)) => {
            document.noise = (!noises.is_empty()).then(|| noise::facts(&noises));
            (noises, signal)
        }
        Err(failure) => {
            document.notes.push(format!("what others take was not measured: {failure}"));
            (Vec::new(), None)
        }
    }
}

/// Whether the run shows what the analysis excludes.
fn contradicts(task: &PredictedTask) -> bool {
    let late = task.missed.unwrap_or(0) + task.lost.unwrap_or(0) > 0;
    let over = task.measured_ns.zip(task.bound_ns).is_some_and(|(ran, bound)| ran > bound);
    over || (late && task.verdict == "feasible")
}

fn reaches(measured: Option<u64>, bound: Option<u64>) -> bool {
    measured.zip(bound).is_some_and(|(measured, bound)| measured <= bound)
}

/// The set with what was measured where that is more than what it says.
pub(super) fn corrected(set: &TaskSet, found: &[TaskMeasurement]) -> TaskSet {
    let mut corrected = set.clone();
    for (task, found) in corrected.tasks.iter_mut().zip(found) {
        let terms = found.terms;
        let mut late = Span::saturating_from_nanos(terms.jitter_ns);
        if let Some(tick) = task.tick()
            && late.is_positive()
        {
            // The measured delay takes the place of a whole tick.
            let waits = late.min(tick).max(task.tick_jitter.unwrap_or_default());
            task.tick_jitter = Some(waits);
            late = late.saturating_sub(waits);
        }
        task.jitter = task.jitter.max(late);
        let executes =
            Span::saturating_from_nanos(terms.execution_ns.saturating_add(terms.busy_wait_ns));
        task.wcet = task.wcet.max(executes);
    }
    corrected
}

/// The set with one more task on each CPU, more urgent than all others, that demands in each
/// `window` the most that noise took of any time of that length. Time of any length is covered by
/// whole windows, so that no more noise falls into it than this task demands.
///
/// `None` where an analysis would not let that task preempt at any time: then it bounds nothing.
pub(super) fn beside_noise(set: &TaskSet, noises: &[Noise], window: Span) -> Option<TaskSet> {
    if !preempts_everywhere(set) {
        return None;
    }
    let mut beside = set.clone();
    let priorities: Option<Vec<u32>> = set.priorities().into_iter().collect();
    let priorities = priorities?;
    let top = priorities.iter().max()?.checked_add(1)?;
    beside.assignment = Some(Assignment::Given);
    for (task, priority) in beside.tasks.iter_mut().zip(priorities) {
        task.policy = task.policy.filter(|policy| matches!(policy, Policy::Deadline));
        task.priority = Some(priority);
    }
    for noise in noises {
        let taken = Span::saturating_from_nanos(noise.most_in(window.nanos_or_zero()));
        if taken.is_positive() {
            beside.tasks.push(Task {
                priority: Some(top),
                cpus: Some([noise.cpu].into_iter().collect()),
                ..Task::new(&format!("others on CPU {}", noise.cpu), taken, window)
            });
        }
    }
    Some(beside)
}

/// Whether the most urgent task gets the CPU whenever it wants it, in the eyes of an analysis.
fn preempts_everywhere(set: &TaskSet) -> bool {
    set.scheduler == Scheduler::FixedPriority
        && set.servers.is_empty()
        && set.tasks.iter().all(|task| task.preemption == Preemption::Full)
        && set.resources.iter().all(|resource| resource.protocol != Protocol::Spin)
}

/// Includes the noise, which was not known before.
fn with_noise(
    corrected: &TaskSet,
    noises: &[Noise],
    position: usize,
    task: &mut PredictedTask,
    found: &TaskMeasurement,
) {
    let Some(measured) = task.measured_ns else { return };
    let own = [Span::saturating_from_nanos(measured)];
    let windows = WINDOWS_MS.into_iter().map(Span::from_millis).chain(own);
    let bound_in = |window: Span| {
        let beside = beside_noise(corrected, noises, window)?;
        Some((theory::bounds_on_paper(&beside).tasks.get(position)?.response_ns?, window))
    };
    let best = windows.filter_map(bound_in).min();
    if let Some((bound, window)) = best {
        let most = noises.iter().map(|noise| noise.most_in(window.nanos_or_zero())).max();
        task.corrected_bound_ns = Some(bound);
        task.explained = Some(measured <= bound);
        let taken = Some((most.unwrap_or(0), window.nanos_or_zero()));
        task.explanation = Some(sentence(task, &found.terms, taken));
    }
}

/// What was measured and what bound follows. `taken`: time that others used, and the window, ns.
fn sentence(task: &PredictedTask, terms: &MeasuredTerms, taken: Option<(u64, u64)>) -> String {
    let mut clauses = clauses(terms);
    if let Some((most, window)) = taken {
        clauses.push(format!("others take up to {} in {}", about(most), nearly(window)));
    }
    let all = clauses.join(", ");
    let measured = task.measured_ns.map_or_else(|| "nothing".to_owned(), nearly);
    match (task.corrected_bound_ns, task.explained) {
        (Some(bound), Some(true)) => format!("{all}: with this the bound is {}", about(bound)),
        (Some(bound), _) => {
            format!(
                "{all}: with this the bound is {}, and {measured} is not explained",
                about(bound)
            )
        }
        (None, _) => format!("{all}: with this, no bound exists"),
    }
}

/// The measurements, in words.
fn clauses(terms: &MeasuredTerms) -> Vec<String> {
    let mut clauses = Vec::new();
    if terms.jitter_ns >= TRIFLE_NS {
        clauses.push(format!("its timer releases it up to {} late", about(terms.jitter_ns)));
    }
    if terms.busy_wait_ns >= TRIFLE_NS {
        clauses.push(format!("it keeps the CPU for up to {} to wait", about(terms.busy_wait_ns)));
    }
    if terms.execution_ns > 0 {
        clauses.push(format!("it executes for up to {}", about(terms.execution_ns)));
    }
    clauses
}

/// A bound for people, in hundredths of its unit, rounded up.
pub(super) fn about(ns: u64) -> String {
    in_words(ns, |ns, step| ns.div_ceil(step))
}

/// A measured time for people: rounded to the nearest, as tables do.
pub(super) fn nearly(ns: u64) -> String {
    in_words(ns, |ns, step| ns.saturating_add(step / 2) / step)
}

fn in_words(ns: u64, hundredths: fn(u64, u64) -> u64) -> String {
    let (unit, name) = match ns {
        0..1_000 => return format!("{ns} ns"),
        1_000..1_000_000 => (1_000, "us"),
        1_000_000..1_000_000_000 => (1_000_000, "ms"),
        _ => (1_000_000_000, "s"),
    };
    let hundredths = hundredths(ns, unit / 100);
    let (whole, part) = (hundredths / 100, hundredths % 100);
    match part {
        0 => format!("{whole} {name}"),
        part if part % 10 == 0 => format!("{whole}.{} {name}", part / 10),
        part => format!("{whole}.{part:02} {name}"),
    }
}
