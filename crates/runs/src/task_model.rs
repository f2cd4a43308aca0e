//! The threads of a kept run as tasks.

use std::collections::BTreeMap;

use hourglass_documents::document::{RunDocument, ThreadReport};
use hourglass_documents::task_model::{MODEL_SCHEMA, ModelDocument, ModelSource, ThreadModel};
use hourglass_documents::{CpuSet, Policy, thread_name};
use hourglass_time::Span;
use hourglass_trace::model::{self, Activity, Budget, FollowedThread};

use crate::OpenRun;
use crate::store::TraceError;

/// Models the threads of a run: from the kernel's events where they were recorded, else from its intervals, in which the
/// start of a thread's time on a CPU stands for its waking.
///
/// # Errors
/// The folder cannot be read, or nothing in it says when threads ran.
pub fn of_run(run: &OpenRun) -> Result<ModelDocument, TraceError> {
    let document = &run.document;
    let tids: BTreeMap<u32, u32> = document
        .result
        .threads
        .iter()
        .filter_map(|thread| Some((thread.id, thread.tid?)))
        .collect();
    let kernel = document.manifest.kernel.as_ref().filter(|_| !tids.is_empty());
    let mut activities = match kernel {
        Some(_) => {
            let mut by_tid = model::of_events(followed(document, &tids), run.kernel_events()?)?;
            let by_id = tids.iter().filter_map(|(id, tid)| Some((*id, by_tid.remove(tid)?)));
            by_id.collect()
        }
        None => match run.intervals()?.collect::<Result<Vec<_>, _>>()? {
            none if none.is_empty() => {
                return Err(TraceError::NoSwitches(run.folder.path().to_path_buf()));
            }
            intervals => model::of_intervals(&intervals),
        },
    };
    let mut model = ModelDocument {
        schema: MODEL_SCHEMA.to_owned(),
        source: match kernel {
            Some(_) => ModelSource::Events,
            None => ModelSource::Intervals,
        },
        elapsed_ns: document.manifest.elapsed_ns,
        events_lost: kernel.map_or(0, |facts| facts.lost()),
        ..ModelDocument::default()
    };
    activities.retain(|_, activity| !activity.bursts.is_empty() || activity.unwoken > 0);
    let reports = document.result.threads.iter();
    let all: Vec<&str> = reports.clone().filter_map(|thread| thread.name.as_deref()).collect();
    let ran = reports.clone().filter(|thread| activities.contains_key(&thread.id));
    let ran: Vec<&str> = ran.filter_map(|thread| thread.name.as_deref()).collect();
    let mut threads: Vec<(ThreadModel, Activity)> = Vec::new();
    for thread in reports {
        let Some(mut activity) = activities.remove(&thread.id) else {
            model.never_ran.push(name_among(thread, &all));
            continue;
        };
        let facts = facts(document, thread, name_among(thread, &ran));
        let from_ns = facts.settled_ns.and_then(|ns| i64::try_from(ns).ok());
        activity.bursts.retain(|burst| from_ns.is_none_or(|from_ns| burst.at_ns >= from_ns));
        threads.push((facts, activity));
    }
    model.threads = model::infer(threads);
    name_lone_tasks(&mut model.threads);
    model.premises =
        document.result.watched.as_ref().map_or(Vec::new(), |watched| watched.premises.clone());
    if let Some(kernel) = kernel {
        model.name_wakers(&kernel.names);
    } else {
        // Where a job began to run is not where it arrived.
        model.threads.iter_mut().for_each(|thread| thread.response = None);
    }
    Ok(model)
}

/// The name of the task that a thread is: its own, with its number where several have it, or its number alone if it is blank.
#[must_use]
pub fn task_name(name: Option<&str>, number: u32, all: &[&str]) -> String {
    let known = name.map(thread_name).filter(|name| !name.is_empty());
    match known {
        Some(name) if all.iter().filter(|other| thread_name(other) == name).count() < 2 => name,
        Some(name) => format!("{name}-{number}"),
        None => format!("thread-{number}"),
    }
}

/// [`task_name`] of a thread of a run.
fn name_among(thread: &ThreadReport, all: &[&str]) -> String {
    let number = thread.tid.filter(|_| thread.name.is_some()).unwrap_or(thread.id);
    task_name(thread.name.as_deref(), number, all)
}

/// The only task among the threads of one name has that name alone: programs that name no threads have many of one name, and
/// another record of the program has other numbers.
fn name_lone_tasks(threads: &mut [ThreadModel]) {
    let mut tasks: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (place, thread) in threads.iter().enumerate() {
        if thread.unmodelled.is_none() && thread.plain_name() != thread.name {
            tasks.entry(thread.plain_name().to_owned()).or_default().push(place);
        }
    }
    for (plain, places) in tasks {
        let is_taken = threads.iter().any(|thread| thread.name == plain);
        let [place] = places[..] else { continue };
        if is_taken {
            continue;
        }
        let numbered = std::mem::replace(&mut threads[place].name, plain.clone());
        let behind = threads.iter_mut().filter_map(|thread| thread.after.as_mut());
        behind.filter(|before| **before == numbered).for_each(|before| before.clone_from(&plain));
    }
}

/// What is known of a thread besides its activity.
fn facts(document: &RunDocument, thread: &ThreadReport, name: String) -> ThreadModel {
    let setup = document.manifest.threads.iter().find(|facts| facts.id == thread.id);
    ThreadModel {
        name,
        tid: thread.tid,
        policy: thread.policy.clone(),
        reservation: setup.and_then(|facts| facts.reservation.clone()),
        settled_ns: setup.and_then(|facts| facts.settled_ns),
        cpus: allowed(setup.map_or("", |facts| &facts.cpus), &thread.cpus),
        ..ThreadModel::default()
    }
}

/// The threads with these numbers, with the budgets of those that the deadline class has.
fn followed<'a>(
    document: &'a RunDocument,
    tids: &'a BTreeMap<u32, u32>,
) -> impl Iterator<Item = FollowedThread> + 'a {
    let budget = |id: u32| {
        let facts = document.manifest.threads.iter().find(|facts| facts.id == id)?;
        let reserved = facts.reservation.as_deref().filter(|_| facts.policy == "DEADLINE")?;
        budget_of(reserved)
    };
    let facts = |id: u32| document.manifest.threads.iter().find(move |facts| facts.id == id);
    let cpus = |id: u32| facts(id).and_then(|facts| facts.cpus.parse::<CpuSet>().ok());
    let groups = groups(tids.keys().map(|id| (*id, cpus(*id).unwrap_or_default())));
    let urgency = move |id: u32| match facts(id).and_then(|facts| facts.policy.parse().ok()) {
        Some(Policy::Deadline) => u8::MAX,
        Some(Policy::Fifo(priority) | Policy::RoundRobin(priority)) => priority,
        _ => 0,
    };
    tids.iter().map(move |(id, tid)| FollowedThread {
        tid: *tid,
        budget: budget(*id),
        urgency: urgency(*id),
        group: groups.get(id).copied().unwrap_or(0),
    })
}

/// Threads that share a CPU with others have one number, also where others are between them; no CPU is any.
fn groups(threads: impl Iterator<Item = (u32, CpuSet)>) -> BTreeMap<u32, u32> {
    let mut found: Vec<(CpuSet, Vec<u32>)> = Vec::new();
    let mut anywhere = Vec::new();
    for (id, cpus) in threads {
        if cpus.is_empty() {
            anywhere.push(id);
            continue;
        }
        let meets = |(other, _): &(CpuSet, Vec<u32>)| !other.intersection(&cpus).is_empty();
        let (mut cpus, mut ids) = (cpus.clone(), vec![id]);
        let (met, rest): (Vec<_>, Vec<_>) = found.into_iter().partition(meets);
        for (other, others) in met {
            cpus = cpus.union(&other);
            ids.extend(others);
        }
        found = rest;
        found.push((cpus, ids));
    }
    if !anywhere.is_empty() {
        let ids = found.into_iter().flat_map(|(_, ids)| ids).chain(anywhere);
        return ids.map(|id| (id, 0)).collect();
    }
    let numbered = (0..).zip(found);
    numbered.flat_map(|(group, (_, ids))| ids.into_iter().map(move |id| (id, group))).collect()
}

/// As `2.5ms/10ms`; a deadline or a `+` behind them changes neither.
fn budget_of(reservation: &str) -> Option<Budget> {
    let mut times = reservation.trim_end_matches('+').splitn(3, '/');
    let (budget, period) = times.next().zip(times.next())?;
    let ns = |text: &str| u64::try_from(text.parse::<Span>().ok()?.nanos()).ok();
    Some(Budget { budget_ns: ns(budget)?, period_ns: ns(period)? })
}

/// The CPUs of a thread; one that had ended before it was asked could run where it ran.
fn allowed(cpus: &str, seen: &[u32]) -> String {
    match cpus {
        "" => seen.iter().copied().collect::<CpuSet>().to_string(),
        _ => cpus.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A thread that ended while it was recorded had no CPUs in the manifest, and its record made no file of tasks.
    #[test]
    fn a_thread_that_ended_could_run_where_it_ran() {
        assert_eq!(allowed("", &[3, 1]), "1,3");
        assert_eq!(allowed("0-3", &[3, 1]), "0-3");
    }

    /// A program of which no thread has a name of its own: `tfd` and a helper that is no task, or did not run.
    #[test]
    fn a_name_has_a_number_only_where_two_tasks_have_it() {
        let thread = |(tid, is_task): (u32, bool)| ThreadModel {
            name: format!("tfd-{tid}"),
            tid: Some(tid),
            unmodelled: (!is_task).then(|| "too few".to_owned()),
            ..ThreadModel::default()
        };
        for (rows, names) in [
            ([(7, true), (8, false)], ["tfd", "tfd-8"]),
            ([(7, true), (8, true)], ["tfd-7", "tfd-8"]),
            ([(7, false), (8, false)], ["tfd-7", "tfd-8"]),
        ] {
            let mut threads: Vec<ThreadModel> = rows.into_iter().map(thread).collect();
            let next = |name: &str| ThreadModel { name: name.to_owned(), ..thread((9, true)) };
            threads.push(ThreadModel { after: Some("tfd-7".to_owned()), ..next("next") });
            name_lone_tasks(&mut threads);
            let found: Vec<&str> = threads.iter().map(|thread| thread.name.as_str()).collect();
            assert_eq!(found, [names[0], names[1], "next"]);
            assert_eq!(threads[2].after.as_deref(), Some(names[0]));
        }
        let named = |name: &str| ThreadReport {
            id: 0,
            tid: Some(7),
            name: Some(name.to_owned()),
            ..ThreadReport::default()
        };
        assert_eq!(name_among(&named("tfd"), &["tfd"]), "tfd");
        assert_eq!(name_among(&named("tfd"), &["tfd", "tfd"]), "tfd-7");
    }

    #[test]
    fn threads_that_never_meet_are_of_different_groups() {
        for (cpus, expected) in [
            (["0", "1", "0"], [0, 1, 0]),
            (["0", "1", "0-1"], [0, 0, 0]),
            (["0-1", "2-3", "1-2"], [0, 0, 0]),
            (["0", "1", ""], [0, 0, 0]),
        ] {
            let found = groups((0..).zip(cpus.map(|cpus| cpus.parse().unwrap_or_default())));
            let same = |a: usize, b: usize| found[&(a as u32)] == found[&(b as u32)];
            for (a, b) in [(0, 1), (1, 2), (0, 2)] {
                assert_eq!(same(a, b), expected[a] == expected[b], "{cpus:?}: {found:?}");
            }
        }
    }
}
