//! Tables with a row for each thread.

use hourglass_documents::document::ThreadReport;

use super::table::{Cell, HtmlTable, bad_if_any, begin_section, count, text};
use crate::clean::ranges;
use crate::run::label;
use crate::units::UnitScale;

/// What stands where there is nothing to show.
const NOTHING: &str = "–";

/// Writes the section; nothing without threads.
pub(super) fn write(out: &mut String, threads: &[ThreadReport]) {
    if threads.is_empty() {
        return;
    }
    begin_section(out, "threads", "Threads");
    out.push_str("<div class=\"stack\">\n");
    received(threads).write(out);
    if threads.iter().any(|thread| thread.deadlines.is_some()) {
        deadlines(threads).write(out);
    }
    if threads.iter().any(|thread| thread.latency.is_none()) {
        gaps(threads).write(out);
    }
    if threads.iter().any(|thread| thread.latency.is_some()) {
        latency(threads).write(out);
    }
    out.push_str("</div>\n</section>\n");
}

fn received(threads: &[ThreadReport]) -> HtmlTable {
    let mut table = HtmlTable::new("What each received")
        .numbers(["thread"])
        .texts(["workload", "policy", "CPUs"])
        .numbers(["CPU share", "intervals", "migrations"]);
    for thread in threads {
        let workload = match &thread.name {
            Some(name) => format!("{name}: {}", thread.workload),
            None => thread.workload.clone(),
        };
        table.row([
            count(thread.id.into()),
            text(workload),
            text(thread.policy.clone()),
            text(cpus(thread)),
            text(share(thread.cpu_time_ns, thread.wall_ns)),
            count(thread.intervals),
            count(thread.migrations),
        ]);
    }
    table
}

/// The CPUs on which a thread was seen; without samples, those on which it might run.
fn cpus(thread: &ThreadReport) -> String {
    let seen = if thread.cpus_seen.is_empty() { &thread.cpus } else { &thread.cpus_seen };
    let mut cpus = seen.clone();
    cpus.sort_unstable();
    cpus.dedup();
    if cpus.is_empty() { NOTHING.to_owned() } else { ranges(&cpus) }
}

/// `part` of `whole` in per cent with one decimal.
pub(super) fn share(part: u64, whole: u64) -> String {
    if whole == 0 {
        return NOTHING.to_owned();
    }
    let per_mille = (u128::from(part) * 1000 + u128::from(whole) / 2) / u128::from(whole);
    format!("{}.{} %", per_mille / 10, per_mille % 10)
}

fn deadlines(threads: &[ThreadReport]) -> HtmlTable {
    let mut table = HtmlTable::new("Deadlines, in periods")
        .numbers(["thread"])
        .texts(["name"])
        .numbers(["hit", "missed", "lost"]);
    for thread in threads {
        let Some(periods) = thread.deadlines else { continue };
        table.row([
            count(thread.id.into()),
            text(label(thread)),
            count(periods.hit),
            bad_if_any(periods.missed),
            bad_if_any(periods.lost),
        ]);
    }
    table
}

fn gaps(threads: &[ThreadReport]) -> HtmlTable {
    let scale = UnitScale::for_block(threads.iter().map(|thread| thread.gaps.p50_ns));
    let mut table = percentile_table(format!("Gaps, in {}", scale.name()));
    for thread in threads.iter().filter(|thread| thread.latency.is_none()) {
        let gaps = &thread.gaps;
        let times = [gaps.p50_ns, gaps.p99_ns, gaps.p999_ns, gaps.max_ns];
        table.row(percentiles(thread, gaps.count, times, scale));
    }
    table
}

fn latency(threads: &[ThreadReport]) -> HtmlTable {
    let medians = threads.iter().filter_map(|thread| Some(thread.latency?.p50_ns));
    let scale = UnitScale::for_block(medians);
    let caption = format!("Latency of wake-ups, in {}", scale.name());
    let mut table = percentile_table(caption).numbers(["lost"]);
    for thread in threads {
        let Some(latency) = thread.latency else { continue };
        let times = [latency.p50_ns, latency.p99_ns, latency.p999_ns, latency.max_ns];
        let mut row = percentiles(thread, latency.count, times, scale);
        row.push(bad_if_any(latency.lost));
        table.row(row);
    }
    table
}

fn percentile_table(caption: String) -> HtmlTable {
    HtmlTable::new(caption)
        .numbers(["thread"])
        .texts(["name"])
        .numbers(["count", "median", "p99", "p99.9", "max"])
}

fn percentiles(thread: &ThreadReport, n: u64, times: [u64; 4], scale: UnitScale) -> Vec<Cell> {
    let mut row = vec![count(thread.id.into()), text(label(thread)), count(n)];
    let shown = |ns| if n == 0 { NOTHING.to_owned() } else { scale.text(ns) };
    row.extend(times.map(|ns| text(shown(ns))));
    row
}
