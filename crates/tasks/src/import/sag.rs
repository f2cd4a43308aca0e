//! Job sets of schedule-abstraction graphs (`np-schedulability-analysis`, CSV): the jobs of one hyperperiod.
//!
//! Owns: finding the periodic tasks whose jobs they are, and tasks that stand for other jobs. Must not: judge.
//!
//! Jobs of a periodic task are a period apart, with the same jitter, execution times and relative deadline. All tasks
//! together cover one hyperperiod, so that a task with a single job comes once in it.

use std::collections::BTreeMap;

use hourglass_time::Span;

use super::decimal::{Decimal, Round};
use super::{Import, ImportNotes, ImportedTaskSet};
use crate::error::{Location, TaskSetError};
use crate::{Assignment, Format, Preemption, Scheduler, Task, TaskSet};

/// The file has no unit.
const UNIT_NS: u128 = 1_000;

/// The columns, by what they are called in messages.
const COLUMNS: [&str; 8] = [
    "Task ID",
    "Job ID",
    "Arrival min",
    "Arrival max",
    "Cost min",
    "Cost max",
    "Deadline",
    "Priority",
];

/// The CSV format of that tool, by the first lines of the text.
pub(crate) fn looks_like(text: &str) -> Option<Format> {
    let mut lines = text.trim_start_matches('\u{feff}').lines().map(str::trim);
    let first = lines.find(|line| !line.is_empty())?;
    let cells: Vec<&str> = first.split(',').map(str::trim).collect();
    let is_number = |cell: &&str| Decimal::read(cell).is_some();
    let head = first.to_ascii_lowercase();
    match cells.len() {
        8 if cells.iter().all(is_number) => Some(Format::Sag),
        8 if head.contains("jid") || head.contains("job id") => Some(Format::Sag),
        4 if head.starts_with("predecessor") => Some(Format::Unread(
            "precedence constraints of np-schedulability-analysis; name the job set, and say with 'after' which task \
             follows which",
        )),
        6 if head.starts_with("predecessor") => Some(Format::Unread(
            "suspensions between jobs of SAG; name the job set, and say with 'after' which task follows which",
        )),
        3.. if head.starts_with("job a tid") => {
            Some(Format::Unread("exclusions of SAG; name the job set, without them"))
        }
        3 if head.starts_with("taskid") && head.contains("window") => {
            Some(Format::Unread("weakly-hard constraints of SAG; name the job set, without them"))
        }
        2.. if head.starts_with("n_cores") => Some(Format::Unread(
            "a platform of SAG; name the job set, and write the CPUs as cpus in [machine]",
        )),
        6 if head.starts_with("tid") && head.contains("tmin") => Some(Format::Unread(
            "abort actions of np-schedulability-analysis; name the job set, without them",
        )),
        _ => None,
    }
}

#[derive(Clone, Debug)]
struct SagRow {
    line: usize,
    id: String,
    release: i64,
    jitter: i64,
    shortest: i64,
    longest: i64,
    /// The deadline, from the release on.
    deadline: i64,
    due: i64,
    priority: i128,
}

pub(super) fn read(text: &str) -> Import<ImportedTaskSet> {
    let mut tasks: Vec<(String, Vec<SagRow>)> = Vec::new();
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut lines: BTreeMap<(String, String), usize> = BTreeMap::new();
    let lines_with_text = text.trim_start_matches('\u{feff}').lines().enumerate();
    let lines_with_text = lines_with_text.filter(|(_, line)| !line.trim().is_empty());
    for (count, (position, line)) in lines_with_text.enumerate() {
        let cells: Vec<&str> = line.split(',').map(str::trim).collect();
        // A line without a number names the columns; a task may be called by a word.
        if count == 0 && cells.iter().all(|cell| Decimal::read(cell).is_none()) {
            continue;
        }
        let (task, job) = row(position + 1, &cells)?;
        if let Some(before) = lines.insert((task.clone(), job.id.clone()), job.line) {
            let text = format!("job {} of task {task} is on line {before} already", job.id);
            return Err(wrong(job.line, text));
        }
        let place = *places.entry(task.clone()).or_insert_with(|| {
            tasks.push((task, Vec::new()));
            tasks.len() - 1
        });
        tasks[place].1.push(job);
    }
    for (_, jobs) in &mut tasks {
        jobs.sort_by_key(|job| job.release);
    }
    let (set, notes) = match periodic(&tasks) {
        Ok(found) => found,
        Err(why) => job_set(&tasks, &why)?,
    };
    Ok(ImportedTaskSet { set, notes: notes.sentences() })
}

/// Jobs of periodic tasks.
fn periodic(tasks: &[(String, Vec<SagRow>)]) -> Import<(TaskSet, ImportNotes)> {
    let Some(hyperperiod) = hyperperiod(tasks)? else {
        let message = "no task has two jobs, so that nothing says how often they come";
        return Err(Location::file().contradiction(message));
    };
    // The file has these jobs alone: that they come again must change nothing for them.
    if let Some(job) = tasks.iter().flat_map(|(_, jobs)| jobs).find(|job| job.due > hyperperiod) {
        let end = Span::from_nanos(hyperperiod);
        return Err(wrong(job.line, format!("it is due behind {end}, when they would come again")));
    }
    let mut set = TaskSet::default();
    for (name, jobs) in tasks {
        set.tasks.push(task(name, jobs, hyperperiod)?);
    }
    let notes = order(&mut set, tasks)?;
    Ok((set, notes))
}

/// Any other jobs: each is a task that comes again only when all of them are done, so that no two rounds meet.
fn job_set(tasks: &[(String, Vec<SagRow>)], why: &TaskSetError) -> Import<(TaskSet, ImportNotes)> {
    let jobs = || tasks.iter().flat_map(|(_, jobs)| jobs);
    let latest = jobs().map(|job| job.release.saturating_add(job.jitter)).max().unwrap_or(0);
    let done = jobs().fold(latest, |sum, job| sum.saturating_add(job.longest));
    let round = jobs().map(|job| job.due).max().unwrap_or(0).max(done);
    if round == i64::MAX {
        let line = jobs().next().map_or(0, |job| job.line);
        return Err(wrong(line, "times too long"));
    }
    let each = tasks.iter().flat_map(|(name, jobs)| {
        jobs.iter().map(move |job| (format!("{name}J{}", job.id), vec![job.clone()]))
    });
    let each: Vec<(String, Vec<SagRow>)> = each.collect();
    let mut set = TaskSet::default();
    for (name, job) in &each {
        set.tasks.push(task(name, job, round)?);
    }
    let mut notes = order(&mut set, &each)?;
    notes.file(&format!(
        "the jobs are not those of periodic tasks ({why}): each is a task that comes again after {}, when all are done",
        Span::from_nanos(round)
    ));
    Ok((set, notes))
}

fn place(line: usize) -> Location {
    Location::part(&format!("line {line}"))
}

fn wrong(line: usize, message: impl Into<String>) -> TaskSetError {
    place(line).contradiction(message)
}

fn row(line: usize, cells: &[&str]) -> Import<(String, SagRow)> {
    if cells.len() != COLUMNS.len() {
        let text = format!("{} columns where a job has 8: {}", cells.len(), COLUMNS.join(", "));
        return Err(wrong(line, text));
    }
    let bad = |column: usize, reason: &str| place(line).bad(COLUMNS[column], cells[column], reason);
    if let Some(column) = (0..2).find(|column| cells[*column].chars().any(char::is_control)) {
        return Err(bad(column, "it has a control character"));
    }
    let time = |column: usize| -> Import<i64> {
        let number = Decimal::read(cells[column]).ok_or_else(|| bad(column, "give a number"))?;
        match number.span(UNIT_NS, 1, Round::Up) {
            Some((span, true)) if !span.is_negative() => Ok(span.nanos()),
            Some((_, true)) => Err(bad(column, "it must not be negative")),
            Some((_, false)) => Err(bad(column, "finer than a thousandth; scale all times up")),
            None => Err(bad(column, "longer than 292 years in microseconds; scale all times down")),
        }
    };
    let (release, latest) = (time(2)?, time(3)?);
    let (shortest, longest, due) = (time(4)?, time(5)?, time(6)?);
    let priority = Decimal::read(cells[7]).and_then(|n| n.scaled(UNIT_NS, 1, Round::Up));
    let priority = priority.filter(|(_, exact)| *exact).ok_or_else(|| bad(7, "give a number"))?.0;
    if latest < release || longest < shortest {
        return Err(wrong(line, "a maximum is below its minimum"));
    }
    if due <= release || longest == 0 {
        return Err(wrong(line, "the deadline must be after the arrival, and Cost max above 0"));
    }
    let job = SagRow {
        line,
        id: cells[1].to_owned(),
        release,
        jitter: latest - release,
        shortest,
        longest,
        deadline: due - release,
        due,
        priority,
    };
    Ok((cells[0].to_owned(), job))
}

/// The time that the jobs of each task cover: the same for all that have several.
fn hyperperiod(tasks: &[(String, Vec<SagRow>)]) -> Import<Option<i64>> {
    let mut found: Option<(i64, &str)> = None;
    for (name, jobs) in tasks {
        let [first, second, ..] = &jobs[..] else { continue };
        let period = second.release - first.release;
        let covered = i64::try_from(jobs.len()).ok().and_then(|count| period.checked_mul(count));
        let covered = covered.ok_or_else(|| wrong(first.line, "times too long"))?;
        match found {
            Some((known, other)) if known != covered => {
                let text = format!(
                    "the jobs of task {name} cover {covered} ns and those of task {other} {known} ns: this is no \
                     hyperperiod"
                );
                return Err(wrong(first.line, text));
            }
            _ => found = Some((covered, name)),
        }
    }
    Ok(found.map(|(covered, _)| covered))
}

fn task(name: &str, jobs: &[SagRow], hyperperiod: i64) -> Import<Task> {
    let first = &jobs[0];
    let period = match jobs {
        [one, two, ..] => two.release - one.release,
        _ => hyperperiod,
    };
    for (position, job) in jobs.iter().enumerate() {
        let nominal = i64::try_from(position).ok().and_then(|n| period.checked_mul(n));
        let nominal = nominal.and_then(|since| first.release.checked_add(since));
        let same = |job: &SagRow| (job.jitter, job.shortest, job.longest, job.deadline);
        if nominal != Some(job.release) || same(job) != same(first) || period <= 0 {
            let text = format!("this job of task {name} is not like its others, a period apart");
            return Err(wrong(job.line, text));
        }
    }
    let span = Span::from_nanos;
    Ok(Task {
        bcet: Some(span(first.shortest)).filter(|bcet| bcet.is_positive()),
        deadline: Some(span(first.deadline)),
        jitter: span(first.jitter),
        offset: Some(span(first.release)),
        preemption: Preemption::None,
        ..Task::new(&format!("T{name}"), span(first.longest), span(period))
    })
}

/// Priorities that are deadlines are EDF's; else each task has its own, the smaller the more urgent.
fn order(set: &mut TaskSet, tasks: &[(String, Vec<SagRow>)]) -> Import<ImportNotes> {
    let mut notes = ImportNotes::default();
    notes.file("the file has no unit; its times are taken as microseconds");
    notes.file("jobs run without preemption, on one CPU");
    let lone = tasks.iter().find(|(_, jobs)| jobs.len() == 1);
    let is_periodic = tasks.iter().any(|(_, jobs)| jobs.len() > 1);
    if let Some((name, _)) = lone.filter(|_| is_periodic) {
        notes.about(&format!("task 'T{name}'"), "its only job is taken to come once a hyperperiod");
    }
    let mut jobs = tasks.iter().flat_map(|(_, jobs)| jobs);
    if jobs.all(|job| job.priority == i128::from(job.due)) {
        set.scheduler = Scheduler::Edf;
        return Ok(notes);
    }
    let mut levels: Vec<i128> = tasks.iter().map(|(_, jobs)| jobs[0].priority).collect();
    levels.sort_unstable();
    levels.dedup();
    levels.reverse();
    set.assignment = Some(Assignment::Given);
    for (task, (name, jobs)) in set.tasks.iter_mut().zip(tasks) {
        let own = jobs[0].priority;
        if let Some(job) = jobs.iter().find(|job| job.priority != own) {
            let text = format!(
                "the priority differs from that of other jobs of task {name}, and not all priorities are deadlines"
            );
            return Err(wrong(job.line, text));
        }
        let level = levels.iter().position(|level| *level == own).unwrap_or(0);
        task.priority = u32::try_from(level + 1).ok();
    }
    Ok(notes)
}
