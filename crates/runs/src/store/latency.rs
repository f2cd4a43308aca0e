//! `latency.hlog`: HdrHistogram's interval log, one histogram for each thread.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{BufWriter, Read, Write};
use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use hourglass_documents::manifest::Epoch;

use crate::store::LATENCY_FILE;
use crate::store::error::{LatencyError, WriteError};
use crate::store::guard::guarded;
use crate::store::partial::PartialFile;

const TAG_PREFIX: &str = "thread-";

/// First word of a compressed histogram of version 2.
const COMPRESSED_COOKIE: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();

/// Bytes before the counts of a histogram of version 2.
const HEADER_BYTES: usize = 40;

/// No histogram is larger than this: 6.2 million counts of at most 9 bytes (5 digits, `u64`).
/// A damaged length must not ask for the machine's memory.
const LARGEST_HISTOGRAM_BYTES: u64 = 64 << 20;

/// The counts of all threads take no more memory than this: twice what the most threads of a run, 1,024 with
/// histograms of an hour and three digits, need.
const LARGEST_LOG_BYTES: u64 = 512 << 20;

/// The counts of all entries that are added up, at most: some seconds. A day of one entry a second has fewer.
const MOST_COUNTS: u64 = 1 << 32;

/// Writes the log into `folder` under a temporary name and renames it.
pub(crate) fn write(
    folder: &Path,
    epoch: &Epoch,
    elapsed_ns: u64,
    threads: &[(u32, &Histogram<u64>)],
) -> Result<(), WriteError> {
    let path = folder.join(LATENCY_FILE);
    let failed = |error| WriteError::file(&path, error);
    let partial = PartialFile::create(folder, LATENCY_FILE).map_err(failed)?;
    let mut file = BufWriter::new(partial.file());
    let mut serializer = V2DeflateSerializer::new();
    let start = UNIX_EPOCH + Duration::from_nanos(epoch.realtime_ns);
    let mut log = IntervalLogWriterBuilder::new()
        .add_comment("[Latencies of a run of Hourglass in nanoseconds, one histogram per thread]")
        .with_start_time(start)
        .with_base_time(start)
        .begin_log_with(&mut file, &mut serializer)
        .map_err(failed)?;
    for (thread, histogram) in threads {
        let tag = format!("{TAG_PREFIX}{thread}");
        log.write_histogram(
            histogram,
            Duration::ZERO,
            Duration::from_nanos(elapsed_ns),
            Tag::new(&tag),
        )
        .map_err(|error| WriteError::file(&path, error.to_string()))?;
    }
    drop(log);
    file.flush().map_err(failed)?;
    drop(file);
    partial.commit().map_err(failed)
}

/// Reads the log `text` that was found at `path`, of a run with these threads. Several histograms of a
/// thread, as other writers of interval logs make them, are added up; entries with other tags are left out.
pub(crate) fn read(
    path: &Path,
    text: &[u8],
    known: &BTreeSet<u32>,
) -> Result<BTreeMap<u32, Histogram<u64>>, LatencyError> {
    guarded(|| decode(text, known, LARGEST_LOG_BYTES), |reason| reason)
        .map_err(|reason| LatencyError::Damaged { path: path.to_path_buf(), reason })
}

/// The histograms of the threads in `known`, if they take at most `most` bytes of memory together.
fn decode(
    text: &[u8],
    known: &BTreeSet<u32>,
    most: u64,
) -> Result<BTreeMap<u32, Histogram<u64>>, String> {
    let mut threads: BTreeMap<u32, Histogram<u64>> = BTreeMap::new();
    let (mut kept, mut counts) = (0u64, 0u64);
    for entry in IntervalLogIterator::new(text) {
        let entry = match entry {
            Ok(LogEntry::Interval(entry)) => entry,
            Ok(_) => continue,
            Err(error) => return Err(format!("it is not an interval log ({error:?})")),
        };
        let thread = entry
            .tag()
            .and_then(|tag| tag.as_str().strip_prefix(TAG_PREFIX))
            .and_then(|number| number.parse::<u32>().ok());
        let Some(thread) = thread else { continue };
        if !known.contains(&thread) {
            return Err(format!(
                "it has latencies of thread {thread}, which the manifest does not have"
            ));
        }
        let histogram = decode_histogram(entry.encoded_histogram())
            .map_err(|reason| format!("the histogram of thread {thread} {reason}"))?;
        let places = histogram.distinct_values() as u64;
        counts = counts.saturating_add(places);
        if !threads.contains_key(&thread) {
            kept = kept.saturating_add(places.saturating_mul(size_of::<u64>() as u64));
        }
        if kept > most || counts > MOST_COUNTS {
            return Err(format!(
                "its histograms up to that of thread {thread} take {} MiB of memory and {counts} counts to \
                 add up, and at most {} MiB and {MOST_COUNTS} are read; write them with fewer digits",
                kept >> 20,
                most >> 20
            ));
        }
        match threads.get_mut(&thread) {
            Some(sum) => sum
                .add(&histogram)
                .map_err(|error| format!("thread {thread} has two that differ: {error}"))?,
            None => {
                threads.insert(thread, histogram);
            }
        }
    }
    Ok(threads)
}

/// The histogram written as `text`: base64 of either form of version 2.
fn decode_histogram(text: &str) -> Result<Histogram<u64>, String> {
    let bytes = STANDARD.decode(text).map_err(|error| format!("is not base64: {error}"))?;
    let plain = match bytes.strip_prefix(&COMPRESSED_COOKIE) {
        None => bytes,
        Some(rest) => {
            // Four bytes of length stand before the compressed part; zlib knows its own end.
            let compressed = rest.get(4..).ok_or("is cut short")?;
            let mut plain = Vec::new();
            ZlibDecoder::new(compressed)
                .take(LARGEST_HISTOGRAM_BYTES)
                .read_to_end(&mut plain)
                .map_err(|error| format!("cannot be inflated: {error}"))?;
            plain
        }
    };
    // The decoder makes room for as many bytes as the length claims before it reads them.
    let claimed = plain.get(4..8).and_then(|length| length.try_into().ok());
    let claimed = claimed.map(u32::from_be_bytes).ok_or("is cut short")?;
    if plain.len().saturating_sub(HEADER_BYTES) < claimed as usize {
        return Err("is cut short".to_owned());
    }
    Deserializer::new()
        .deserialize(&mut plain.as_slice())
        .map_err(|error| format!("cannot be decoded: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log of histograms of five digits, of which each takes 50 MB in memory and 95 bytes in the file.
    fn log(threads: u32) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let histogram = Histogram::<u64>::new_with_bounds(1, u64::MAX / 2, 5).unwrap();
        let all: Vec<(u32, &Histogram<u64>)> = (0..threads).map(|id| (id, &histogram)).collect();
        write(folder.path(), &Epoch::default(), 1, &all).unwrap();
        std::fs::read(folder.path().join(LATENCY_FILE)).unwrap()
    }

    /// A file of 38 KB with 400 tags took 8 GB.
    #[test]
    fn the_sum_of_all_histograms_is_bounded() {
        let text = log(4);
        assert!(text.len() < 2_000);
        let known: BTreeSet<u32> = (0..4).collect();
        assert_eq!(decode(&text, &known, LARGEST_LOG_BYTES).unwrap().len(), 4);
        let message = decode(&text, &known, 100 << 20).unwrap_err();
        assert!(message.contains("at most 100 MiB"), "{message}");
        // What the manifest does not tell of is not even decoded.
        let known: BTreeSet<u32> = (0..3).collect();
        let message = decode(&text, &known, LARGEST_LOG_BYTES).unwrap_err();
        assert_eq!(message, "it has latencies of thread 3, which the manifest does not have");
    }
}
