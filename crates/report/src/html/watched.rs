//! Threads of other processes that `watch` looked at.

use hourglass_documents::Cause;
use hourglass_documents::watched::{WatchedProcess, WatchedReport, WatchedThread};

use super::table::{HtmlTable, begin_section};
use crate::text::ran;
use crate::units::rounded;

/// Writes the section.
pub(super) fn write(out: &mut String, report: &WatchedReport) {
    let traced = report.how == "trace";
    begin_section(out, "watched", "Watched from outside");
    out.push_str("<div class=\"stack\">\n");
    let how = if traced { "the kernel's events" } else { "the kernel's counts" };
    HtmlTable::of(format!("Run-queue delay, by {how}"), &report.threads)
        .number("thread", |thread| thread.tid.to_string())
        .text("name", |thread| thread.name.as_str())
        .number("process", |thread| thread.pid.to_string())
        .text("policy", |thread| thread.policy.as_deref())
        .number("ran", |thread| thread.run_ns.map(rounded))
        .number("waited", |thread| {
            thread.delays.as_ref().map(|delays| delays.total_ns).or(thread.wait_ns).map(rounded)
        })
        .number("worst", |thread| {
            let worst = thread.delays.as_ref().map(|delays| delays.max_ns);
            worst.or(thread.worst_interval.map(|worst| worst.wait_ns)).map(rounded)
        })
        .number("stopped", |thread| thread.stopped_ns.map(rounded))
        .number("own waits", |thread| thread.voluntary_switches)
        .number("preempted", |thread| thread.involuntary_switches)
        .number("moved", |thread| thread.migrations)
        .number("faults", |thread| Some(thread.minor_faults?.saturating_add(thread.major_faults?)))
        .below(|thread| had_its_cpu(thread, traced))
        .write(out);
    let throttled = |process: &&WatchedProcess| process.quota_throttled.is_some_and(|n| n > 0);
    let quotas: Vec<&WatchedProcess> = report.processes.iter().filter(throttled).collect();
    if !quotas.is_empty() {
        HtmlTable::of("Stopped by a quota", &quotas)
            .number("process", |process| process.pid.to_string())
            .text("name", |process| process.name.as_str())
            .number("periods", |process| process.quota_throttled)
            .number("for", |process| process.quota_throttled_ns.map(rounded))
            .write(out);
    }
    out.push_str("</div>\n</section>\n");
}

/// The occupants of its CPU while it waited, in a sentence; empty if no occupant is known.
fn had_its_cpu(thread: &WatchedThread, traced: bool) -> String {
    if thread.ran.is_empty() {
        return String::new();
    }
    let had = if traced { "had its CPU" } else { "had its CPU at most" };
    let mut said = format!("While it waited, {had}: {}.", ran(&thread.ran));
    let ends = thread.delays.as_ref().and_then(|delays| delays.deadline_budget);
    if let Some(ends) = ends.filter(|ends| ends.count > 0) {
        said.push_str(&format!(
            " Budget used up ({}): {} times, {} without a CPU, {} at most.",
            Cause::DeadlineBudget.name(),
            ends.count,
            rounded(ends.total_ns),
            rounded(ends.max_ns)
        ));
    }
    if let Some(worst) = thread.delays.as_ref().and_then(|delays| delays.worst.as_ref()) {
        let at = u64::try_from(worst.at_ns).unwrap_or(0);
        said.push_str(&format!(
            " Worst: {} at {} on CPU {}: {}.",
            rounded(worst.delay_ns),
            rounded(at),
            worst.cpu,
            ran(&worst.ran)
        ));
    }
    said
}
