//! A benchmark beside a neighbour on the same CPU: what its mean and its longest sample say, and what they say
//! without the samples in which the neighbour had the CPU.
//!
//! `cargo run --release -p hourglass-witness --example benchmark_that_lies`

use std::hint::{black_box, spin_loop};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use hourglass_sys::thread::{affinity, set_affinity};
use hourglass_witness::{BenchmarkSample, Samples, Summary, WitnessError};

const SAMPLES: usize = 500;
const ITERATIONS: u64 = 2_000;

fn checksum(bytes: &[u8]) -> u32 {
    bytes.iter().fold(1, |sum, byte| sum.wrapping_mul(31).wrapping_add(u32::from(*byte)))
}

/// Of one iteration, ns; `None` without a sample.
fn mean_ns<'a>(samples: impl Iterator<Item = &'a BenchmarkSample>) -> Option<f64> {
    let (count, ns) = samples.fold((0, 0), |(count, ns), sample| {
        (count + sample.iterations, ns + sample.elapsed.as_nanos())
    });
    (count > 0).then(|| ns as f64 / count as f64)
}

/// The samples that were taken while a neighbour computes.
fn measured() -> Result<Vec<BenchmarkSample>, WitnessError> {
    let cpu = affinity().ok().and_then(|cpus| cpus.last().copied()).unwrap_or(0);
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let _ = set_affinity([cpu]);
            while !over.load(Ordering::Relaxed) {
                spin_loop();
            }
        });
        let taken = scope.spawn(|| {
            let _ = set_affinity([cpu]);
            let mut samples = Samples::new()?;
            let text = [42; 64];
            for _ in 0..SAMPLES {
                samples.time(ITERATIONS, || checksum(black_box(&text)));
            }
            Ok(samples.samples().to_vec())
        });
        let taken = taken.join().expect("a benchmark does not panic");
        over.store(true, Ordering::Relaxed);
        taken
    })
}

fn main() -> Result<(), WitnessError> {
    let samples = measured()?;
    let clean = samples.iter().filter(|sample| sample.loss.is_none());
    if let (Some(all), Some(clean)) = (mean_ns(samples.iter()), mean_ns(clean)) {
        println!("mean of all samples    {all:7.1} ns");
        println!("mean of clean samples  {clean:7.1} ns");
    }
    if let Some(summary) = Summary::from_samples(&samples) {
        println!("{summary}");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A neighbour on the same CPU gets half of it: over half a second of both, it has it within some sample.
    #[test]
    fn some_samples_are_disturbed_and_left_out() {
        let samples = measured().unwrap();
        let summary = Summary::from_samples(&samples).unwrap();
        assert_eq!(summary.samples, SAMPLES);
        assert!(summary.disturbed > 0, "{summary}");
        let clean = summary.clean.expect("a sample takes less than the scheduler's slice");
        assert!(clean.longest_ns <= summary.all.longest_ns, "{summary}");
        let shortest = samples.iter().map(|sample| sample.elapsed).min().unwrap();
        assert!(clean.median_ns >= shortest.as_nanos() as f64 / ITERATIONS as f64, "{summary}");
    }
}
