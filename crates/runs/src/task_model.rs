//! The threads of a kept run as tasks.

use std::collections::BTreeMap;

use hourglass_documents::document::RunDocument;
use hourglass_documents::task_model::{MODEL_SCHEMA, ModelDocument, ThreadModel};
use hourglass_trace::model::{self, Activity};

use crate::OpenRun;
use crate::store::TraceError;

/// Models the threads of a run: from the kernel's events where they were recorded, else from its intervals, in which the
/// start of a thread's time on a CPU stands for its waking.
///
/// # Errors
/// The folder cannot be read.
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
            let mut by_tid = model::of_events(tids.values().copied(), run.kernel_events()?)?;
            let by_id = tids.iter().filter_map(|(id, tid)| Some((*id, by_tid.remove(tid)?)));
            by_id.collect()
        }
        None => model::of_intervals(&run.intervals()?.collect::<Result<Vec<_>, _>>()?),
    };
    let mut model = ModelDocument {
        schema: MODEL_SCHEMA.to_owned(),
        elapsed_ns: document.manifest.elapsed_ns,
        events_lost: kernel.map_or(0, |facts| facts.lost()),
        ..ModelDocument::default()
    };
    let mut threads: Vec<(ThreadModel, Activity)> = Vec::new();
    for facts in facts(document) {
        let (id, facts) = facts;
        let activity: Activity = activities.remove(&id).unwrap_or_default();
        match activity.bursts.is_empty() && activity.unwoken == 0 {
            true => model.never_ran.push(facts.name),
            false => threads.push((facts, activity)),
        }
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

/// What is known of each thread besides its activity, under a name of its own.
fn facts(document: &RunDocument) -> Vec<(u32, ThreadModel)> {
    let names = || document.result.threads.iter().filter_map(|thread| thread.name.as_ref());
    let each = document.result.threads.iter().map(|thread| {
        let setup = document.manifest.threads.iter().find(|facts| facts.id == thread.id);
        let known = thread.name.as_ref().map(|name| name.trim()).filter(|name| !name.is_empty());
        let number = thread.tid.unwrap_or(thread.id);
        let name = match known {
            Some(name) if names().filter(|other| other.trim() == name).count() < 2 => {
                name.to_owned()
            }
            Some(name) => format!("{name}-{number}"),
            None => format!("thread-{}", thread.id),
        };
        let facts = ThreadModel {
            name: name.chars().map(|c| if c.is_control() { '?' } else { c }).collect(),
            tid: thread.tid,
            policy: thread.policy.clone(),
            reservation: setup.and_then(|facts| facts.reservation.clone()),
            cpus: setup.map(|facts| facts.cpus.clone()).unwrap_or_default(),
            ..ThreadModel::default()
        };
        (thread.id, facts)
    });
    each.collect()
}
