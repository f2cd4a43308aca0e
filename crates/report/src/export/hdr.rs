//! Latencies as an interval log of HdrHistogram (version 2, compressed).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::V2DeflateSerializer;
use hdrhistogram::serialization::interval_log::{IntervalLogWriterBuilder, Tag};
use hourglass_documents::manifest::Manifest;
use thiserror::Error;

/// Nanoseconds in the milliseconds in which readers of such logs show the column of maxima.
const NS_PER_SHOWN: f64 = 1e6;

/// Why there is no log.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum HdrError {
    /// It could not be written.
    #[error(transparent)]
    Write(#[from] io::Error),
    /// A histogram does not go into the format.
    #[error("the histogram of thread {thread} cannot be stored in the format: {reason}")]
    Histogram {
        /// Number of the thread.
        thread: u32,
        /// Why not.
        reason: String,
    },
}

/// Writes one interval as long as the run for each thread, tagged `thread-N`. Values are in
/// nanoseconds; only the column of maxima is in milliseconds, as such logs have it.
///
/// # Errors
/// See [`HdrError`].
pub fn hdr(
    mut out: impl Write,
    manifest: &Manifest,
    latencies: &BTreeMap<u32, Histogram<u64>>,
) -> Result<(), HdrError> {
    let mut serializer = V2DeflateSerializer::new();
    let start = UNIX_EPOCH + Duration::from_nanos(manifest.epoch.realtime_ns);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Latencies of wake-ups in nanoseconds, one histogram per thread]")
        .with_start_time(start)
        .with_base_time(start)
        .with_max_value_divisor(NS_PER_SHOWN)
        .begin_log_with(&mut out, &mut serializer)?;
    for (&thread, histogram) in latencies {
        let tag = format!("thread-{thread}");
        log.write_histogram(
            histogram,
            Duration::ZERO,
            Duration::from_nanos(manifest.elapsed_ns),
            Tag::new(&tag),
        )
        .map_err(|error| HdrError::Histogram { thread, reason: error.to_string() })?;
    }
    drop(log);
    Ok(out.flush()?)
}
