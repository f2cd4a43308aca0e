//! The threads of a kept run as tasks.

use std::collections::BTreeMap;

use hourglass_documents::document::RunDocument;
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
    let mut threads: Vec<(ThreadModel, Activity)> = Vec::new();
    for facts in facts(document) {
        let (id, facts) = facts;
        let mut activity: Activity = activities.remove(&id).unwrap_or_default();
        if activity.bursts.is_empty() && activity.unwoken == 0 {
            model.never_ran.push(facts.name);
            continue;
        }
        let from_ns = facts.settled_ns.and_then(|ns| i64::try_from(ns).ok());
        activity.bursts.retain(|burst| from_ns.is_none_or(|from_ns| burst.at_ns >= from_ns));
        threads.push((facts, activity));
    }
    model.threads = model::infer(threads);
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

/// What is known of each thread besides its activity, under a name of its own.
fn facts(document: &RunDocument) -> Vec<(u32, ThreadModel)> {
    let names = document.result.threads.iter().filter_map(|thread| thread.name.as_deref());
    let names: Vec<&str> = names.collect();
    let each = document.result.threads.iter().map(|thread| {
        let setup = document.manifest.threads.iter().find(|facts| facts.id == thread.id);
        let facts = ThreadModel {
            name: match thread.name.as_deref() {
                Some(name) => task_name(Some(name), thread.tid.unwrap_or(thread.id), &names),
                None => task_name(None, thread.id, &names),
            },
            tid: thread.tid,
            policy: thread.policy.clone(),
            reservation: setup.and_then(|facts| facts.reservation.clone()),
            settled_ns: setup.and_then(|facts| facts.settled_ns),
            cpus: allowed(setup.map_or("", |facts| &facts.cpus), &thread.cpus),
            ..ThreadModel::default()
        };
        (thread.id, facts)
    });
    each.collect()
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

/// As `2.5ms/10ms`.
fn budget_of(reservation: &str) -> Option<Budget> {
    let (budget, period) = reservation.split_once('/')?;
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
