//! Tables with a row for each thread.

use hourglass_documents::document::ThreadReport;

use super::table::{HtmlTable, bad_if_any, begin_section};
use crate::clean::ranges;
use crate::run::{cpus_of, label};
use crate::units::{UnitScale, share};

/// Writes the section; nothing without threads.
pub(super) fn write(out: &mut String, threads: &[ThreadReport]) {
    if threads.is_empty() {
        return;
    }
    begin_section(out, "threads", "Threads");
    out.push_str("<div class=\"stack\">\n");
    received(out, threads);
    deadlines(out, threads);
    gaps(out, threads);
    latency(out, threads);
    out.push_str("</div>\n</section>\n");
}

fn received(out: &mut String, threads: &[ThreadReport]) {
    HtmlTable::of("What each received", threads)
        .number("thread", |thread| thread.id)
        .text("workload", |thread| match &thread.name {
            Some(name) => format!("{name}: {}", thread.workload),
            None => thread.workload.clone(),
        })
        .text("policy", |thread| thread.policy.as_str())
        .text("CPUs", |thread| Some(ranges(&cpus_of(thread))).filter(|cpus| !cpus.is_empty()))
        .number("CPU share", |thread| share(thread.cpu_time_ns, thread.wall_ns))
        .number("intervals", |thread| thread.intervals)
        .number("migrations", |thread| thread.migrations)
        .write(out);
}

fn deadlines(out: &mut String, threads: &[ThreadReport]) {
    let with: Vec<_> = threads.iter().filter_map(|t| Some((t, t.deadlines?))).collect();
    if with.is_empty() {
        return;
    }
    HtmlTable::of("Deadlines, in periods", &with)
        .number("thread", |(thread, _)| thread.id)
        .text("name", |(thread, _)| label(thread))
        .number("hit", |(_, periods)| periods.hit)
        .number("missed", |(_, periods)| bad_if_any(periods.missed))
        .number("lost", |(_, periods)| bad_if_any(periods.lost))
        .write(out);
}

fn gaps(out: &mut String, threads: &[ThreadReport]) {
    let scale = UnitScale::for_block(threads.iter().map(|thread| thread.gaps.p50_ns));
    let without = threads.iter().filter(|thread| thread.latency.is_none());
    let rows: Vec<Percentiles> = without
        .map(|thread| {
            let gaps = &thread.gaps;
            let times = [gaps.p50_ns, gaps.p99_ns, gaps.p999_ns, gaps.max_ns];
            Percentiles { thread, count: gaps.count, times, lost: 0 }
        })
        .collect();
    if !rows.is_empty() {
        percentiles(format!("Gaps, in {}", scale.name()), &rows, scale).write(out);
    }
}

fn latency(out: &mut String, threads: &[ThreadReport]) {
    let with = threads.iter().filter_map(|thread| Some((thread, thread.latency?)));
    let rows: Vec<Percentiles> = with
        .map(|(thread, l)| {
            let times = [l.p50_ns, l.p99_ns, l.p999_ns, l.max_ns];
            Percentiles { thread, count: l.count, times, lost: l.lost }
        })
        .collect();
    if rows.is_empty() {
        return;
    }
    let scale = UnitScale::for_block(rows.iter().map(|row| row.times[0]));
    percentiles(format!("Latency of wake-ups, in {}", scale.name()), &rows, scale)
        .number("lost", |row| bad_if_any(row.lost))
        .write(out);
}

/// What was counted of a thread: median, p99, p99.9 and maximum, ns.
struct Percentiles<'a> {
    thread: &'a ThreadReport,
    count: u64,
    times: [u64; 4],
    lost: u64,
}

fn percentiles<'a>(
    caption: String,
    rows: &'a [Percentiles<'a>],
    scale: UnitScale,
) -> HtmlTable<'a, Percentiles<'a>> {
    let time =
        |at: usize| move |row: &Percentiles| (row.count > 0).then(|| scale.text(row.times[at]));
    HtmlTable::of(caption, rows)
        .number("thread", |row| row.thread.id)
        .text("name", |row| label(row.thread))
        .number("count", |row| row.count)
        .number("median", time(0))
        .number("p99", time(1))
        .number("p99.9", time(2))
        .number("max", time(3))
}
