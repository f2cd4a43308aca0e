//! Results as metrics in the text of OpenMetrics, for Prometheus by node_exporter's textfile collector.
//!
//! The textfile collector reads the older text format of Prometheus. The text here is both: the two name a counter in
//! different ways, so that there is no counter (a file holds one run, whose counts are gauges), no `info`, no
//! `stateset`; `# UNIT` and `# EOF` are comments in the older format. Histograms have buckets: text holds no native ones.
//!
//! Owns: the table of the metrics, and how they are written. Must not: open a file, compute a result.

mod doctor;
mod run;
#[cfg(test)]
mod tests;
mod watch;

use std::fmt::{Display, Write as _};

pub use doctor::openmetrics_doctor;
pub use run::{MeasuredTimes, openmetrics_run};
pub use watch::openmetrics_watch;

use crate::units::seconds;

/// A metric, as `# TYPE`, `# UNIT` and `# HELP` describe it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricDefinition {
    pub name: &'static str,
    /// `gauge` or `histogram`.
    pub kind: &'static str,
    /// The base unit, which the name ends with; empty for a count or a state.
    pub unit: &'static str,
    pub help: &'static str,
}

macro_rules! metrics {
    ($($Metric:ident $kind:ident $name:literal $unit:literal $help:literal;)+) => {
        #[derive(Clone, Copy, Debug)]
        enum Metric {
            $($Metric),+
        }

        /// All metrics, in the order in which they are written.
        pub const METRICS: &[MetricDefinition] = &[
            $(MetricDefinition { name: $name, kind: stringify!($kind), unit: $unit, help: $help }),+
        ];
    };
}

metrics! {
    RunInfo gauge "hourglass_run_info" ""
        "Always 1: the version of Hourglass, the kernel and the clock of the newest run.";
    RunStart gauge "hourglass_run_start_timestamp_seconds" "seconds" "Start of the run, since 1970.";
    RunDuration gauge "hourglass_run_duration_seconds" "seconds" "Duration of the run.";
    RunInterrupted gauge "hourglass_run_interrupted" "" "Whether a signal ended the run early.";
    RunWarnings gauge "hourglass_run_warnings" "" "Number of warnings.";
    RunPremises gauge "hourglass_run_premises_broken" "" "Premises that broke during the run: it has no verdict.";
    ThreadInfo gauge "hourglass_thread_info" "" "Always 1: the workload and the policy of a thread.";
    ThreadWall gauge "hourglass_thread_wall_time_seconds" "seconds" "From the start of the thread to its end.";
    ThreadCpu gauge "hourglass_thread_cpu_time_seconds" "seconds" "Time that the thread received.";
    Latency histogram "hourglass_latency_seconds" "seconds"
        "Latency of wake-ups, to three digits. Lost ones are not in it.";
    LatencyMax gauge "hourglass_latency_max_seconds" "seconds" "The maximum latency, exactly.";
    LatencyPercentile gauge "hourglass_latency_percentile_seconds" "seconds"
        "Percentiles of latency, lost wake-ups included.";
    WakeUpsLost gauge "hourglass_wake_ups_lost" ""
        "Wake-ups that were lost because an earlier one was too late.";
    Gap histogram "hourglass_gap_seconds" "seconds" "Gaps: times without the CPU, to three digits.";
    GapMax gauge "hourglass_gap_max_seconds" "seconds" "The longest gap, exactly.";
    LostCpu gauge "hourglass_lost_cpu_time_seconds" "seconds" "CPU time that the thread lost: the sum of its gaps.";
    CauseGaps gauge "hourglass_cause_gaps" "" "Gaps of this cause.";
    CauseTime gauge "hourglass_cause_time_seconds" "seconds" "Time lost to this cause.";
    CauseMax gauge "hourglass_cause_max_seconds" "seconds" "The longest gap of this cause.";
    Periods gauge "hourglass_periods" "" "Periods that were hit, missed or lost.";
    GateMet gauge "hourglass_gate_met" "" "Whether the limit was kept: 1, or 0 if it was broken.";
    GateValue gauge "hourglass_gate_value_seconds" "seconds" "The measured time where the limit is a time.";
    GateLimit gauge "hourglass_gate_limit_seconds" "seconds" "The limit where it is a time.";
    GateMisses gauge "hourglass_gate_misses" "" "Missed and lost periods where they are limited.";
    GateMissesLimit gauge "hourglass_gate_misses_limit" "" "How many missed and lost periods are allowed.";
    DoctorCheck gauge "hourglass_doctor_check" "" "1 at the status of the check, 0 at its other statuses.";
    DoctorChecks gauge "hourglass_doctor_checks" "" "Number of checks with this status.";
    WatchDuration gauge "hourglass_watch_duration_seconds" "seconds" "How long the threads have been watched.";
    WatchSamples gauge "hourglass_watch_samples" "" "Number of samples of the counts of the kernel.";
    WatchPremises gauge "hourglass_watch_premises_broken" "" "Premises that broke: there is no verdict.";
    WatchCpu gauge "hourglass_watch_cpu_time_seconds" "seconds" "Time of the watched thread on a CPU.";
    WatchWait gauge "hourglass_watch_run_queue_delay_seconds" "seconds"
        "Time in which the watched thread could have run and had no CPU.";
    WatchWorst gauge "hourglass_watch_delay_max_seconds" "seconds"
        "The longest delay by the kernel's events, else the maximum delay between two samples.";
    WatchStopped gauge "hourglass_watch_stopped_time_seconds" "seconds" "Time in which the thread was stopped.";
    WatchSwitches gauge "hourglass_watch_switches" "" "Context switches of the watched thread.";
    WatchMigrations gauge "hourglass_watch_migrations" "" "Moves of the watched thread to another CPU.";
    WatchFaults gauge "hourglass_watch_page_faults" "" "Page faults of the watched thread.";
    WatchThrottled gauge "hourglass_watch_quota_throttled_seconds" "seconds"
        "Time for which the quota of a control group stopped the process, summed over CPUs.";
}

/// Samples by metric, in the order in which they were added.
#[derive(Debug)]
struct MetricText<'a> {
    samples: Vec<String>,
    /// The label of every sample, so that node_exporter can read the files of two commands.
    common: Option<(&'a str, &'a str)>,
}

type Labels<'a> = &'a [(&'a str, &'a str)];

impl<'a> MetricText<'a> {
    fn new(common: Option<(&'a str, &'a str)>) -> MetricText<'a> {
        MetricText { samples: vec![String::new(); METRICS.len()], common }
    }

    fn add(&mut self, metric: Metric, labels: Labels<'_>, value: impl Display) {
        self.sample(metric, "", labels, value);
    }

    fn add_time(&mut self, metric: Metric, labels: Labels<'_>, ns: u64) {
        self.sample(metric, "", labels, seconds(ns));
    }

    fn add_flag(&mut self, metric: Metric, labels: Labels<'_>, is: bool) {
        self.sample(metric, "", labels, u8::from(is));
    }

    fn sample(&mut self, metric: Metric, suffix: &str, labels: Labels<'_>, value: impl Display) {
        let at = metric as usize;
        let (Some(definition), Some(out)) = (METRICS.get(at), self.samples.get_mut(at)) else {
            return;
        };
        out.push_str(definition.name);
        out.push_str(suffix);
        for (number, (name, text)) in self.common.iter().chain(labels).enumerate() {
            out.push(if number == 0 { '{' } else { ',' });
            out.push_str(name);
            out.push_str("=\"");
            escape(out, text);
            out.push('"');
        }
        if self.common.is_some() || !labels.is_empty() {
            out.push('}');
        }
        // Text into a string does not fail.
        let _ = writeln!(out, " {value}");
    }

    /// The whole text. A metric without a sample is not named.
    fn finish(self) -> String {
        let mut out = String::new();
        for (metric, samples) in METRICS.iter().zip(&self.samples) {
            if samples.is_empty() {
                continue;
            }
            let MetricDefinition { name, kind, unit, help } = metric;
            let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
            if !unit.is_empty() {
                let _ = writeln!(out, "# UNIT {name} {unit}");
            }
            out.push_str(samples);
        }
        out.push_str("# EOF\n");
        out
    }
}

/// The value of a label: three characters are escaped, in both formats alike. What no terminal should obey is left out.
fn escape(out: &mut String, text: &str) {
    for c in crate::clean::for_terminal(text).chars() {
        if matches!(c, '\\' | '"') {
            out.push('\\');
        }
        out.push(c);
    }
}
