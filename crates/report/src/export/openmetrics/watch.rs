//! The metrics of watched threads.

use hourglass_documents::watched::{WatchedReport, WatchedThread};

use super::{Metric, MetricText};

/// The text of what was found so far.
#[must_use]
pub fn openmetrics_watch(found: &WatchedReport) -> String {
    let mut text = MetricText::new(None);
    text.add_time(Metric::WatchDuration, &[], found.elapsed_ns);
    text.add(Metric::WatchSamples, &[], found.looks);
    text.add(Metric::WatchPremises, &[], found.premises.len());
    found.threads.iter().for_each(|thread| one_thread(&mut text, thread));
    for process in &found.processes {
        if let Some(ns) = process.quota_throttled_ns {
            let pid = process.pid.to_string();
            let labels = [("pid", pid.as_str()), ("name", process.name.as_str())];
            text.add_time(Metric::WatchThrottled, &labels, ns);
        }
    }
    text.finish()
}

fn one_thread(text: &mut MetricText<'_>, thread: &WatchedThread) {
    let (pid, tid) = (thread.pid.to_string(), thread.tid.to_string());
    let labels = [("pid", pid.as_str()), ("tid", tid.as_str()), ("name", thread.name.as_str())];
    let worst = thread.delays.as_ref().map(|delays| delays.max_ns);
    let worst = worst.or(thread.worst_interval.map(|interval| interval.wait_ns));
    for (metric, ns) in [
        (Metric::WatchCpu, thread.run_ns),
        (Metric::WatchWait, thread.wait_ns),
        (Metric::WatchWorst, worst),
        (Metric::WatchStopped, thread.stopped_ns),
    ] {
        if let Some(ns) = ns {
            text.add_time(metric, &labels, ns);
        }
    }
    let [pid, tid, name] = labels;
    for (metric, kind, count) in [
        (Metric::WatchSwitches, Some("voluntary"), thread.voluntary_switches),
        (Metric::WatchSwitches, Some("involuntary"), thread.involuntary_switches),
        (Metric::WatchMigrations, None, thread.migrations),
        (Metric::WatchFaults, Some("minor"), thread.minor_faults),
        (Metric::WatchFaults, Some("major"), thread.major_faults),
    ] {
        match (kind, count) {
            (Some(kind), Some(count)) => text.add(metric, &[pid, tid, name, ("kind", kind)], count),
            (None, Some(count)) => text.add(metric, &labels, count),
            (_, None) => {}
        }
    }
}
