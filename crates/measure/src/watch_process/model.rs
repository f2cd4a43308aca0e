//! What the kernel's counts of watched threads say of their activations, as a model of which no thread is a task.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use hourglass_documents::task_model::{
    CountModel, MODEL_SCHEMA, ModelDocument, ModelSource, ThreadModel,
};
use hourglass_documents::watched::{WatchedReport, WatchedThread};
use hourglass_runs::task_model::task_name;

use super::thread_totals::ThreadTotals;

const NO_TASK: &str = "counts show how often it was woken, not when: no period, no shortest distance and no job is known";

pub(super) fn of(threads: &BTreeMap<u32, ThreadTotals>, report: &WatchedReport) -> ModelDocument {
    let mut model = ModelDocument {
        schema: MODEL_SCHEMA.to_owned(),
        source: ModelSource::Counts,
        elapsed_ns: report.elapsed_ns,
        warnings: report.warnings.clone(),
        premises: report.premises.clone(),
        ..ModelDocument::default()
    };
    let names: Vec<&str> = report.threads.iter().map(|thread| thread.name.as_str()).collect();
    for thread in &report.threads {
        let reckoning = threads.get(&thread.tid).and_then(|totals| totals.reckoning.as_ref());
        let Some(counts) = reckoning.map(|reckoning| reckoning.result()) else { continue };
        let name = task_name(Some(&thread.name), thread.tid, &names);
        if never_ran(thread, &counts) {
            model.never_ran.push(name);
            continue;
        }
        let cpus = threads.get(&thread.tid).map(ThreadTotals::cpus).filter(|cpus| !cpus.is_empty());
        // A kernel that does not say: it could run where it ran.
        let cpus = cpus.cloned().unwrap_or_else(|| thread.cpu.into_iter().collect());
        model.threads.push(ThreadModel {
            name,
            tid: Some(thread.tid),
            policy: thread.policy.clone().unwrap_or_default(),
            reservation: thread.reservation.clone(),
            cpus: cpus.to_string(),
            unmodelled: Some(NO_TASK.to_owned()),
            counts: Some(CountModel {
                since_ns: thread.since_ns,
                ended: thread.ended,
                wait_ns: thread.wait_ns,
                ..counts
            }),
            ..ThreadModel::default()
        });
    }
    let run_ns = |thread: &ThreadModel| thread.counts.as_ref().and_then(|counts| counts.run_ns);
    model.threads.sort_by_key(|thread| (Reverse(run_ns(thread)), thread.tid));
    model
}

/// Whether it stood still from its first look to its last one. The time of one that runs may not be counted yet.
fn never_ran(thread: &WatchedThread, counts: &CountModel) -> bool {
    let switches = counts.activations.map(|activations| activations.ended);
    counts.run_ns == Some(0)
        && switches == Some(0)
        && counts.longest_activation.at_least_ns == 0
        && thread.state != "R"
}
