//! The result in cyclictest's form, with what it does not have in comment lines.

use std::fmt::Write;
use std::io::{self, BufWriter, IsTerminal};

use anyhow::{Context, Result};
use hourglass_documents::document::{LatencyReport, RunDocument};
use hourglass_documents::wakeup::{WakeUpReport, WakeUpStage};
use hourglass_report::text::{
    CyclicSteps, CyclicThread, CyclicUnit, cyclic_histogram, cyclic_row, cyclic_sample,
    cyclic_status, summary,
};

use super::parse::View;
use super::status::unit;
use crate::atomic_file::{self, WholeFile};
use crate::lab::Finished;
use crate::output;

/// Prints the result.
///
/// # Errors
/// Writing fails.
pub(super) fn result(
    finished: &Finished,
    view: &View,
    quiet: bool,
    idle_refused: bool,
    histogram_file: Option<WholeFile>,
) -> Result<()> {
    let document = &finished.document;
    let (unit, threads) = (unit(view), threads(finished, view));
    if view.samples {
        samples(finished, unit)?;
    }
    let mut out = String::new();
    // Text into a string does not fail; here and below.
    match document.manifest.dma_latency_us {
        Some(us) => {
            let _ = writeln!(out, "# /dev/cpu_dma_latency set to {us}us");
        }
        None if idle_refused => out.push_str(
            "# /dev/cpu_dma_latency not held: it may not be written (sudo chmod a+w it, or run as root)\n",
        ),
        None => {}
    }
    let histogram = view.histogram.then(|| {
        let empty = CyclicSteps { counts: &[], beyond: 0, beyond_at: &[] };
        let of = |thread: &CyclicThread| {
            finished.buckets(thread.id).map_or(empty, |found| CyclicSteps {
                counts: found.counts(),
                beyond: found.beyond(),
                beyond_at: found.beyond_at(),
            })
        };
        let steps: Vec<CyclicSteps<'_>> = threads.iter().map(of).collect();
        cyclic_histogram(&threads, &steps, unit, view.sums)
    });
    if !(quiet && view.histogram) {
        for thread in &threads {
            let _ = writeln!(out, "{}", cyclic_status(thread, unit));
        }
    }
    match (histogram, histogram_file) {
        (Some(text), Some(file)) => {
            let name = file.name().to_path_buf();
            file.write(text.as_bytes())
                .map_err(|error| atomic_file::refused("--histfile", &name, &error))?;
        }
        (Some(text), None) => out.push_str(&text),
        (None, _) => {}
    }
    out.push_str(&beside(document, &threads, unit));
    out.push_str(&crate::compat::load(document));
    out.push_str(&crate::compat::worst(document));
    let to_terminal = io::stdout().is_terminal();
    let mut out = crate::compat::fitted(&out, to_terminal);
    if !quiet && to_terminal {
        out.push('\n');
        out.push_str(&summary(document, output::style()));
    }
    output::text(&out)
}

fn threads(finished: &Finished, view: &View) -> Vec<CyclicThread> {
    let reports = finished.document.result.threads.iter().zip(&view.threads);
    reports
        .map(|(report, (_, interval_us))| {
            let latency = report.latency.unwrap_or_default();
            CyclicThread {
                id: report.id,
                tid: finished.tid(report.id).unwrap_or(0),
                priority: priority_in_force(&report.policy),
                interval_us: *interval_us,
                count: latency.count,
                min_ns: latency.min_ns,
                last_ns: finished.last_latency_ns(report.id).unwrap_or(0),
                mean_ns: latency.mean_ns,
                max_ns: latency.max_ns,
            }
        })
        .collect()
}

/// The real-time priority of a policy; 0 for others, as where the machine refused one (--best-effort).
fn priority_in_force(policy: &str) -> u8 {
    let priority = policy.strip_prefix("FIFO:").or_else(|| policy.strip_prefix("RR:"));
    priority.and_then(|priority| priority.parse().ok()).unwrap_or(0)
}

/// What cyclictest does not say, and what ended the run.
fn beside(document: &RunDocument, threads: &[CyclicThread], unit: CyclicUnit) -> String {
    let latencies: Vec<LatencyReport> =
        document.result.threads.iter().filter_map(|thread| thread.latency).collect();
    let row = |label: &str, of: &dyn Fn(&LatencyReport) -> u64| {
        cyclic_row(label, latencies.iter().map(|latency| unit.of(of(latency))))
    };
    let mut out = cyclic_row("Lost Intervals", latencies.iter().map(|latency| latency.lost));
    out.push_str(&row("P50 Latencies", &|latency| latency.p50_ns));
    out.push_str(&row("P99 Latencies", &|latency| latency.p99_ns));
    out.push_str(&row("P99.9 Latencies", &|latency| latency.p999_ns));
    for report in &document.result.wakeups {
        report.stages.iter().for_each(|of| out.push_str(&stage(report, of)));
    }
    if let Some(hit) = &document.result.hit {
        let ids = threads.iter().map(|thread| format!(" {}", thread.tid)).collect::<String>();
        let own = threads.iter().find(|thread| thread.id == hit.thread);
        let _ = writeln!(out, "# Thread Ids:{ids}");
        let _ = writeln!(out, "# Break Thread: {}", own.map_or(0, |thread| thread.tid));
        let _ = writeln!(out, "# Break Value: {}", unit.of(hit.value_ns));
    }
    out.push_str(&crate::compat::limits(document, "intervals"));
    out
}

/// A stage of the wake-ups of a thread, as the kernel's events tell it.
fn stage(report: &WakeUpReport, stage: &WakeUpStage) -> String {
    let us = |ns: i64| {
        let sign = if ns < 0 { "-" } else { "" };
        let ns = ns.unsigned_abs();
        format!("{sign}{}.{:03}", ns / 1_000, ns % 1_000)
    };
    format!(
        "# Thread {} {}: P50 {} P99 {} Max {} us, {} of {} wake-ups\n",
        report.thread,
        stage.stage.replace('_', " "),
        us(stage.p50_ns),
        us(stage.p99_ns),
        us(stage.max_ns),
        report.joined,
        report.joined.saturating_add(report.unjoined)
    )
}

fn samples(finished: &Finished, unit: CyclicUnit) -> Result<()> {
    use std::io::Write as _;
    let mut out = BufWriter::new(io::stdout().lock());
    for thread in &finished.document.result.threads {
        for (number, ps) in (0u64..).zip(finished.latencies_ps(thread.id)) {
            out.write_all(cyclic_sample(thread.id, number, ps / 1_000, unit).as_bytes())
                .context("cannot write to stdout")?;
        }
    }
    out.flush().context("cannot write to stdout")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_priority_is_that_in_force() {
        for (policy, priority) in [("FIFO:80", 80), ("RR:1", 1), ("OTHER:0", 0), ("BATCH", 0)] {
            assert_eq!(priority_in_force(policy), priority, "{policy}");
        }
    }

    /// The medians of rt-tools 4.4; an interrupt that is being served already finds the timer expired.
    #[test]
    fn a_stage_is_one_line() {
        let report = WakeUpReport { thread: 1, joined: 4_993, unjoined: 7, stages: Vec::new() };
        let times = WakeUpStage {
            stage: "expiry_to_interrupt".to_owned(),
            min_ns: -4_600,
            p50_ns: 19_300,
            p99_ns: 39_000,
            p999_ns: 40_000,
            max_ns: -999,
        };
        assert_eq!(
            stage(&report, &times),
            "# Thread 1 expiry to interrupt: P50 19.300 P99 39.000 Max -0.999 us, 4993 of 5000 \
             wake-ups\n"
        );
    }
}
