//! What cyclictest (rt-tests 2.4) writes: its JSON file and its histogram as text.
//!
//! Both count in whole microseconds, rounded down. Threads are numbered from 0 without holes, as
//! parsers expect; ours keep their order. What cyclictest does not do is left out: periods that
//! were lost are in our own document only.

use std::collections::BTreeMap;
use std::io::{self, BufWriter, Write};

use hourglass_documents::document::{LatencyReport, RunDocument, ThreadReport};
use serde_json::{Map, Value, json};

use super::wall_time;
use crate::run::{LatencyCounts, RunView};

/// Nanoseconds in a microsecond.
const NS_PER_US: u64 = 1_000;

/// One thread that measured latency.
struct Row<'a> {
    thread: &'a ThreadReport,
    latency: LatencyReport,
    counts: &'a LatencyCounts,
}

/// Threads that measured latency and whose counts are there, in order.
fn rows<'a>(run: &RunView<'a>) -> Vec<Row<'a>> {
    let counts_of = |id: u32| run.latencies.iter().find(|counts| counts.thread == id);
    let threads = run.document.result.threads.iter();
    threads
        .filter_map(|thread| {
            Some(Row { thread, latency: thread.latency?, counts: counts_of(thread.id)? })
        })
        .collect()
}

/// Writes the JSON file (`file_version` 1) with the keys of cyclictest 2.4, the colons in
/// `cmdline:` and `rt_test_version:` included: its readers ask for them by these names. The
/// histograms hold every latency, however late.
///
/// `nodename` is empty, because a run does not record it; `node` is 0, as on a machine without
/// NUMA; `return_code` is 1 if a gate was broken.
///
/// # Errors
/// Those of the writer beneath.
pub fn cyclictest(out: impl Write, run: &RunView<'_>) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let rows = rows(run);
    // The order of cyclictest's keys; a map of serde_json would sort them.
    writeln!(out, "{{")?;
    for (key, value) in heading(run.document) {
        writeln!(out, "  {}: {value},", json!(key))?;
    }
    writeln!(out, "  \"num_threads\": {},", rows.len())?;
    writeln!(out, "  \"resolution_in_ns\": 0,")?;
    writeln!(out, "  \"thread\": {{")?;
    for (number, row) in rows.iter().enumerate() {
        let comma = if number + 1 < rows.len() { "," } else { "" };
        writeln!(out, "    \"{number}\": {{")?;
        writeln!(out, "      \"histogram\": {},", histogram(row.counts))?;
        writeln!(out, "      \"cycles\": {},", row.latency.count)?;
        writeln!(out, "      \"min\": {},", row.latency.min_ns / NS_PER_US)?;
        writeln!(out, "      \"max\": {},", row.latency.max_ns / NS_PER_US)?;
        writeln!(out, "      \"avg\": {},", hundredths_of_us(row.latency.mean_ns))?;
        writeln!(out, "      \"cpu\": {},", cpu(row.thread))?;
        writeln!(out, "      \"node\": 0")?;
        writeln!(out, "    }}{comma}")?;
    }
    writeln!(out, "  }}\n}}")?;
    out.flush()
}

/// What stands before the threads.
fn heading(document: &RunDocument) -> Vec<(&'static str, Value)> {
    let manifest = &document.manifest;
    let host = &manifest.host;
    let end_ns = manifest.epoch.realtime_ns.saturating_add(manifest.elapsed_ns);
    let broken = document.result.gates.iter().any(|gate| !gate.passed);
    // The exit code of a run without a verdict.
    let code = if document.result.premises.is_empty() { i32::from(broken) } else { 4 };
    let machine = match manifest.clock.source.as_str() {
        "tsc" => "x86_64",
        "cntvct" => "aarch64",
        _ => "",
    };
    let sysinfo = json!({
        "sysname": "Linux",
        "nodename": "",
        "release": host.kernel,
        "version": host.kernel_build,
        "machine": machine,
        "realtime": u8::from(host.preemption.as_deref() == Some("rt")),
    });
    vec![
        ("file_version", json!(1)),
        ("cmdline:", json!(manifest.command_line.join(" "))),
        ("rt_test_version:", json!(manifest.hourglass)),
        ("start_time", json!(wall_time::mail(manifest.epoch.realtime_ns))),
        ("end_time", json!(wall_time::mail(end_ns))),
        ("return_code", json!(code)),
        ("sysinfo", sysinfo),
    ]
}

/// Microseconds to counts. Ordered as text, which no reader minds.
fn histogram(counts: &LatencyCounts) -> Value {
    let counts = counts.counts.iter().map(|(us, count)| (us.to_string(), json!(count)));
    Value::Object(counts.collect::<Map<_, _>>())
}

/// Microseconds with two decimals, rounded down.
fn hundredths_of_us(ns: u64) -> String {
    format!("{}.{:02}", ns / NS_PER_US, ns % NS_PER_US / 10)
}

/// The CPU on which the thread was measured: the first that it was seen on or allowed on.
fn cpu(thread: &ThreadReport) -> u32 {
    thread.cpus_seen.iter().chain(&thread.cpus).next().copied().unwrap_or(0)
}

/// Writes the histogram that `cyclictest -h` prints: a row for each microsecond below `limit_us`,
/// a column for each thread, then the lines of totals. `beyond` has the numbers of wake-ups that were over it, by thread,
/// as far as they are known; the rest are among the `others`.
///
/// # Errors
/// Those of the writer beneath.
pub fn cyclictest_histogram(
    out: impl Write,
    run: &RunView<'_>,
    limit_us: u64,
    beyond: &BTreeMap<u32, Vec<u64>>,
) -> io::Result<()> {
    let mut out = BufWriter::new(out);
    let rows = rows(run);
    writeln!(out, "# Histogram")?;
    let mut left: Vec<&[(u64, u64)]> =
        rows.iter().map(|row| row.counts.counts.as_slice()).collect();
    for us in 0..limit_us {
        let columns: Vec<String> = left.iter_mut().map(|left| taken(left, us)).collect();
        writeln!(out, "{us:06} {}", columns.join("\t"))?;
    }
    let line =
        |out: &mut BufWriter<_>, name: &str, width: usize, number: &dyn Fn(&Row<'_>) -> u64| {
            write!(out, "# {name}:")?;
            rows.iter().try_for_each(|row| write!(out, " {:0width$}", number(row)))?;
            writeln!(out)
        };
    line(&mut out, "Total", 9, &|row| row.counts.at_least(0) - row.counts.at_least(limit_us))?;
    line(&mut out, "Min Latencies", 5, &|row| row.latency.min_ns / NS_PER_US)?;
    line(&mut out, "Avg Latencies", 5, &|row| row.latency.mean_ns / NS_PER_US)?;
    line(&mut out, "Max Latencies", 5, &|row| row.latency.max_ns / NS_PER_US)?;
    line(&mut out, "Histogram Overflows", 5, &|row| row.counts.at_least(limit_us))?;
    writeln!(out, "# Histogram Overflow at cycle number:")?;
    for (number, row) in rows.iter().enumerate() {
        let known = beyond.get(&row.thread.id).map_or(&[][..], Vec::as_slice);
        write!(out, "# Thread {number}:")?;
        known.iter().try_for_each(|cycle| write!(out, " {cycle:05}"))?;
        match row.counts.at_least(limit_us).saturating_sub(known.len() as u64) {
            0 => writeln!(out)?,
            others => writeln!(out, " # {others:05} others")?,
        }
    }
    writeln!(out)?;
    out.flush()
}

/// The count at `us`, which is taken off the front of what is left.
fn taken(left: &mut &[(u64, u64)], us: u64) -> String {
    let count = match left.split_first() {
        Some((&(at, count), rest)) if at == us => {
            *left = rest;
            count
        }
        _ => 0,
    };
    format!("{count:06}")
}
