//! Formats of others, so that their plots and parsers read our runs.
//!
//! Owns: how a run looks in each format. Must not: read a folder, choose a file's name, or
//! compute what a format does not ask for. Each writer says what its format cannot hold.

mod csv;
mod cyclictest;
mod hdr;
mod junit;
pub(crate) mod kernel;
mod openmetrics;
mod perfetto;
mod protobuf;
pub(crate) mod wall_time;

pub use csv::{WakeUpRow, csv, csv_latency_counts, csv_sweep, csv_wake_ups};
pub use cyclictest::{cyclictest, cyclictest_histogram};
pub use hdr::{HdrError, hdr};
pub use junit::{junit_doctor, junit_run};
pub use openmetrics::{
    METRICS, MeasuredTimes, MetricDefinition, openmetrics_doctor, openmetrics_run,
    openmetrics_watch,
};
pub use perfetto::perfetto;
