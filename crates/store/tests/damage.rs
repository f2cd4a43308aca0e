//! No damage to a file makes a reader panic, ask for absurd amounts of memory, or go on for ever.
//! A panic of ours, or one that was not caught, fails the test by itself.

mod common;

use std::fs;
use std::path::Path;

use common::{intervals, manifest, read_all, trace_bytes};
use hourglass_model::Interval;
use hourglass_store::{LATENCY_FILE, RunFolder, TraceError};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

const ROWS: u64 = 60;

/// Writes a new file in the place of an old one. Cutting the old one to nothing and filling it
/// again would make ext4 bring each to the disk, and the tests wait for it.
fn replace(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

/// Reads damaged traces, one after the other, from the same place.
struct Bench {
    folder: TempDir,
}

impl Bench {
    fn new() -> Bench {
        Bench { folder: tempfile::tempdir().unwrap() }
    }

    /// Reads `bytes` as a trace to its end. Damage inside the values may go unseen.
    fn read(&self, bytes: &[u8]) -> Result<Vec<Interval>, TraceError> {
        let path = self.folder.path().join("trace.parquet");
        replace(&path, bytes);
        read_all(&path)
    }
}

#[test]
fn every_bit_of_a_trace() {
    let good = trace_bytes(ROWS);
    let bench = Bench::new();
    assert_eq!(bench.read(&good).unwrap(), intervals(ROWS));
    let mut seen = 0;
    for bit in 0..good.len() * 8 {
        let mut bytes = good.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        seen += usize::from(bench.read(&bytes).is_err());
    }
    // The values have no checksum, and statistics are not read; but were nothing seen, nothing
    // would be tested.
    assert!(seen > good.len(), "{seen} of {}", good.len() * 8);
}

#[test]
fn every_length_of_a_trace() {
    let good = trace_bytes(ROWS);
    let bench = Bench::new();
    for length in 0..good.len() {
        let cut = bench.read(&good[..length]);
        assert!(matches!(cut, Err(TraceError::Truncated(_))), "{length}: {cut:?}");
        // The middle gone, the end in place: as if a copy had been resumed at the wrong place.
        let mut spliced = good[..length / 2].to_vec();
        spliced.extend_from_slice(&good[good.len() - length / 2..]);
        let _ = bench.read(&spliced);
    }
}

/// Numbers of several bytes are as good as endless when their bytes are all ones.
#[test]
fn runs_of_ones_and_zeros_in_a_trace() {
    let good = trace_bytes(ROWS);
    let bench = Bench::new();
    for value in [0x00, 0x80, 0xff] {
        for length in [1, 4, 9] {
            for start in 0..good.len() - length {
                let mut bytes = good.clone();
                bytes[start..start + length].fill(value);
                let _ = bench.read(&bytes);
            }
        }
    }
}

type Changes = Vec<(prop::sample::Index, u8)>;

#[test]
fn several_bytes_of_a_trace() {
    let good = trace_bytes(ROWS);
    let bench = Bench::new();
    let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12);
    TestRunner::new(ProptestConfig::with_cases(500))
        .run(&changes, |changes: Changes| {
            let mut bytes = good.clone();
            for (place, value) in changes {
                bytes[place.index(good.len())] = value;
            }
            let _ = bench.read(&bytes);
            Ok(())
        })
        .unwrap();
}

#[test]
fn anything_between_the_marks() {
    let bench = Bench::new();
    TestRunner::new(ProptestConfig::with_cases(500))
        .run(&prop::collection::vec(any::<u8>(), 0..300), |middle| {
            let mut bytes = b"PAR1".to_vec();
            bytes.extend_from_slice(&middle);
            let length = u32::try_from(middle.len()).unwrap();
            bytes.extend_from_slice(&length.to_le_bytes());
            bytes.extend_from_slice(b"PAR1");
            let _ = bench.read(&bytes);
            Ok(())
        })
        .unwrap();
}

#[test]
fn every_byte_of_a_log() {
    let parent = tempfile::tempdir().unwrap();
    let mut folder = RunFolder::create(parent.path().join("run")).unwrap();
    folder.trace().unwrap().finish().unwrap();
    let mut histogram = hdrhistogram::Histogram::<u64>::new(1).unwrap();
    for latency in [3, 90, 90, 5_000] {
        histogram.record(latency).unwrap();
    }
    let manifest = manifest();
    folder.write_latencies(&manifest.epoch, 1_000, &[(0, &histogram), (1, &histogram)]).unwrap();
    let folder = folder.finish(&manifest).unwrap();
    let log = folder.path().join(LATENCY_FILE);
    let good = fs::read(&log).unwrap();
    for place in 0..good.len() {
        for value in [b'\n', b'/', b'A', b'9', 0xff] {
            let mut bytes = good.clone();
            bytes[place] = value;
            replace(&log, &bytes);
            let _ = folder.latencies();
        }
        replace(&log, &good[..place]);
        let _ = folder.latencies();
    }
}
