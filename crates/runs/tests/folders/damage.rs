//! No damage to a file makes a reader panic, ask for absurd amounts of memory, or go on for ever.
//! A panic of ours, or one that was not caught, fails the test by itself.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{folder_without_records, intervals, late, manifest, read_all, read_samples};
use hourglass_documents::kernel::KernelFacts;
use hourglass_documents::manifest::Manifest;
use hourglass_runs::store::{
    JOBS_FILE, KERNEL_FILE, LATENCY_FILE, LatencyError, RunFolder, SAMPLES_FILE, TRACE_FILE,
    TraceError,
};
use hourglass_trace::{JobRecord, KernelEvent, KernelEventKind};
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use tempfile::TempDir;

const ROWS: u64 = 60;
const CHECKSUMS: &[u8] = b"hourglass.crc32";

/// Writes a new file in the place of an old one. Cutting the old one to nothing and filling it
/// again would make ext4 bring each to the disk, and the tests wait for it.
fn replace(path: &Path, bytes: &[u8]) {
    let _ = fs::remove_file(path);
    fs::write(path, bytes).unwrap();
}

fn kernel_events() -> impl Iterator<Item = KernelEvent> {
    (0..ROWS).map(|row| {
        let (kind, ticks) = (KernelEventKind::Switch, row * 3);
        let (a, b) = (row as u32, 7);
        KernelEvent { ns: -5, ticks, value: row << 40, cpu: 1, a, b, kind }
    })
}

fn jobs() -> impl Iterator<Item = JobRecord> {
    (0..ROWS as i64).map(|row| JobRecord {
        thread: row as u32 / 20,
        release_ns: row * 100,
        deadline_ns: row * 100 + 70,
        started_ns: (row % 3 > 0).then_some(row * 100 + 5),
        finished_ns: (row % 3 > 1).then_some(row * 100 + 90),
        lost: row % 3 == 0,
    })
}

/// A table of a run folder, and what a reader makes of it when it is damaged.
struct Bench {
    _home: TempDir,
    path: PathBuf,
    written: Vec<u8>,
    /// The same without checksums, as of an earlier version, so that damage gets to the decoders.
    good: Vec<u8>,
    read: Box<dyn Fn() -> Result<(), TraceError>>,
}

impl Bench {
    /// The bench `make`s of a complete folder the reader of its file `name`.
    fn new<R>(name: &str, make: impl FnOnce(RunFolder) -> R) -> Bench
    where
        R: Fn() -> Result<(), TraceError> + 'static,
    {
        let home = tempfile::tempdir().unwrap();
        let mut folder = RunFolder::create(home.path().join("run")).unwrap();
        let mut trace = folder.trace().unwrap();
        for interval in intervals(ROWS) {
            trace.write(&interval).unwrap();
        }
        trace.finish().unwrap();
        folder.write_samples((0..3).map(|thread| (thread, late(&samples(thread))))).unwrap();
        folder.write_kernel_events(kernel_events()).unwrap();
        folder.write_jobs(jobs()).unwrap();
        let traced = Manifest { kernel: Some(KernelFacts::default()), ..manifest() };
        let folder = folder.finish(&traced).unwrap();
        let path = folder.path().join(name);
        let written = fs::read(&path).unwrap();
        let mut good = written.clone();
        let key = good.windows(CHECKSUMS.len()).position(|bytes| bytes == CHECKSUMS).unwrap();
        good[key] ^= 0x20;
        Bench { _home: home, path, written, good, read: Box::new(make(folder)) }
    }

    fn all() -> [Bench; 4] {
        let of_trace = |folder: RunFolder| {
            let path = folder.path().join(TRACE_FILE);
            move || read_all(&path).map(drop)
        };
        let of_samples = |folder: RunFolder| {
            move || {
                (0..3).try_for_each(|thread| match read_samples(&folder, thread) {
                    Err(LatencyError::Samples(error)) => Err(error),
                    Err(other) => panic!("{other}"),
                    Ok(samples) => {
                        assert!(samples.is_some());
                        Ok(())
                    }
                })
            }
        };
        let of_events = |folder: RunFolder| {
            move || match folder.kernel_events()? {
                Some(mut events) => events.try_for_each(|event| event.map(drop)),
                None => panic!("the manifest tells of no events, and there are some"),
            }
        };
        let of_jobs = |folder: RunFolder| {
            move || folder.jobs()?.into_iter().flatten().try_for_each(|job| job.map(drop))
        };
        [
            Bench::new(JOBS_FILE, of_jobs),
            Bench::new(TRACE_FILE, of_trace),
            Bench::new(SAMPLES_FILE, of_samples),
            Bench::new(KERNEL_FILE, of_events),
        ]
    }

    /// Reads `bytes` in the place of the file to its end. Damage inside the values may go unseen.
    fn read(&self, bytes: &[u8]) -> Result<(), TraceError> {
        replace(&self.path, bytes);
        (self.read)()
    }
}

/// Samples of all sizes, in no order.
fn samples(thread: u32) -> Vec<u64> {
    (0..ROWS / 3).map(|n| u64::from(thread + 1).rotate_right(7 * n as u32)).collect()
}

#[test]
fn every_bit_of_a_table() {
    for bench in Bench::all() {
        bench.read(&bench.good).unwrap();
        let mut seen = 0;
        for bit in 0..bench.good.len() * 8 {
            let mut bytes = bench.good.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            seen += usize::from(bench.read(&bytes).is_err());
        }
        // Statistics are not read; but were nothing seen, nothing would be tested.
        assert!(seen > bench.good.len(), "{seen} of {}", bench.good.len() * 8);
    }
}

/// One bit of `kernel.parquet` made another model of it, without a word, in 40 of 120 tries.
#[test]
fn no_bit_of_the_rows_changes_unseen() {
    for bench in Bench::all() {
        bench.read(&bench.written).unwrap();
        // `crc32@end`: behind the rows is what describes them.
        let text = String::from_utf8_lossy(&bench.written);
        let end = text.rsplit_once('@').unwrap().1.split(|c: char| !c.is_ascii_digit()).next();
        let end: usize = end.unwrap().parse().unwrap();
        assert!(end * 4 > bench.written.len(), "{end}");
        for bit in 0..end * 8 {
            let mut bytes = bench.written.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            let read = bench.read(&bytes);
            let Err(error @ TraceError::Damaged { .. }) = read else {
                panic!("bit {bit}: {read:?}");
            };
            assert!(error.to_string().contains("damaged: row group"), "bit {bit}: {error}");
        }
    }
}

#[test]
fn every_length_of_a_table() {
    for bench in Bench::all() {
        let good = &bench.good;
        for length in 0..good.len() {
            let cut = bench.read(&good[..length]);
            assert!(matches!(cut, Err(TraceError::Truncated(_))), "{length}: {cut:?}");
            // The middle gone, the end in place: as if a copy had been resumed at the wrong
            // place.
            let mut spliced = good[..length / 2].to_vec();
            spliced.extend_from_slice(&good[good.len() - length / 2..]);
            let _ = bench.read(&spliced);
        }
    }
}

/// Numbers of several bytes are as good as endless when their bytes are all ones.
#[test]
fn runs_of_ones_and_zeros_in_a_table() {
    for bench in Bench::all() {
        for value in [0x00, 0x80, 0xff] {
            for length in [1, 4, 9] {
                for start in 0..bench.good.len() - length {
                    let mut bytes = bench.good.clone();
                    bytes[start..start + length].fill(value);
                    let _ = bench.read(&bytes);
                }
            }
        }
    }
}

type Changes = Vec<(prop::sample::Index, u8)>;

#[test]
fn several_bytes_of_a_table() {
    for bench in Bench::all() {
        let changes = prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..12);
        TestRunner::new(ProptestConfig::with_cases(500))
            .run(&changes, |changes: Changes| {
                let mut bytes = bench.good.clone();
                for (place, value) in changes {
                    bytes[place.index(bench.good.len())] = value;
                }
                let _ = bench.read(&bytes);
                Ok(())
            })
            .unwrap();
    }
}

#[test]
fn anything_between_the_marks() {
    for bench in Bench::all() {
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
}

#[test]
fn every_byte_of_a_log() {
    let (_parent, mut folder) = folder_without_records();
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
