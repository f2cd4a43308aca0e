//! Threads of other processes that `watch` looked at.

use hourglass_documents::document::OccupantReport;
use hourglass_documents::watched::{WatchedReport, WatchedThread};

use super::table::{Cell, HtmlTable, begin_section, count, text};
use crate::text::who;
use crate::units::rounded;

/// What stands where the kernel does not tell.
const UNKNOWN: &str = "–";

/// Writes the section.
pub(super) fn write(out: &mut String, report: &WatchedReport) {
    let traced = report.how == "trace";
    begin_section(out, "watched", "Watched from outside");
    out.push_str("<div class=\"stack\">\n");
    let how = if traced { "the kernel's events" } else { "the kernel's counts" };
    let mut table = HtmlTable::new(format!("Run-queue delay, by {how}"))
        .numbers(["thread"])
        .texts(["name"])
        .numbers(["process"])
        .texts(["policy"])
        .numbers([
            "ran",
            "waited",
            "worst",
            "stopped",
            "own waits",
            "preempted",
            "moved",
            "faults",
        ]);
    for thread in &report.threads {
        table.row_above(row(thread), &had_its_cpu(thread, traced));
    }
    table.write(out);
    let mut quotas = HtmlTable::new("Stopped by a quota")
        .numbers(["process"])
        .texts(["name"])
        .numbers(["periods", "for"]);
    let mut any = false;
    for process in &report.processes {
        let Some(periods) = process.quota_throttled.filter(|periods| *periods > 0) else {
            continue;
        };
        any = true;
        quotas.row([
            text(process.pid.to_string()),
            text(process.name.clone()),
            count(periods),
            time(process.quota_throttled_ns),
        ]);
    }
    if any {
        quotas.write(out);
    }
    out.push_str("</div>\n</section>\n");
}

fn row(thread: &WatchedThread) -> Vec<Cell> {
    let number = |n: Option<u64>| n.map_or_else(|| text(UNKNOWN), count);
    let faults = thread.minor_faults.zip(thread.major_faults);
    let delays = thread.delays.as_ref();
    let worst = delays.map(|delays| delays.max_ns);
    vec![
        text(thread.tid.to_string()),
        text(thread.name.clone()),
        text(thread.pid.to_string()),
        text(thread.policy.as_deref().unwrap_or(UNKNOWN)),
        time(thread.run_ns),
        time(delays.map(|delays| delays.total_ns).or(thread.wait_ns)),
        time(worst.or_else(|| thread.worst_interval.map(|worst| worst.wait_ns))),
        time(thread.stopped_ns),
        number(thread.voluntary_switches),
        number(thread.involuntary_switches),
        number(thread.migrations),
        number(faults.map(|(minor, major)| minor.saturating_add(major))),
    ]
}

fn time(ns: Option<u64>) -> Cell {
    text(ns.map_or_else(|| UNKNOWN.to_owned(), rounded))
}

/// The occupants of its CPU while it waited, in a sentence; empty if no occupant is known.
fn had_its_cpu(thread: &WatchedThread, traced: bool) -> String {
    let all = |ran: &[OccupantReport]| {
        let of = |ran: &OccupantReport| format!("{} {}", who(ran), rounded(ran.total_ns));
        ran.iter().map(of).collect::<Vec<String>>().join(", ")
    };
    if thread.ran.is_empty() {
        return String::new();
    }
    let had = if traced { "had its CPU" } else { "had its CPU at most" };
    let mut said = format!("While it waited, {had}: {}.", all(&thread.ran));
    if let Some(worst) = thread.delays.as_ref().and_then(|delays| delays.worst.as_ref()) {
        let at = u64::try_from(worst.at_ns).unwrap_or(0);
        said.push_str(&format!(
            " Worst: {} at {} on CPU {}: {}.",
            rounded(worst.delay_ns),
            rounded(at),
            worst.cpu,
            all(&worst.ran)
        ));
    }
    said
}
