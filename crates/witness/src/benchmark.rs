//! Samples of a benchmark: which ones the scheduler disturbed, and what the others say.

use std::fmt;
use std::hint::black_box;
use std::time::{Duration, Instant};

use hourglass_documents::Cause;

use crate::{Loss, Witness, WitnessError};

/// How often a sample is taken again that was disturbed. A routine that waits by itself is disturbed each time.
const TRIES: u32 = 10;

/// One sample.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BenchmarkSample {
    /// Of all its iterations together.
    pub elapsed: Duration,
    /// At least 1.
    pub iterations: u64,
    /// What the scheduler took from it; `None` for a clean sample.
    pub loss: Option<Loss>,
}

/// The samples of a benchmark. For harnesses that let a program time itself, as criterion does:
///
/// ```ignore
/// let mut samples = hourglass_witness::Samples::new()?;
/// criterion.bench_function("parse", |b| {
///     b.iter_custom(|iterations| samples.time_clean(iterations, || parse(black_box(TEXT))))
/// });
/// if let Some(summary) = samples.summary() {
///     eprintln!("parse: {summary}");
/// }
/// ```
///
/// With [`Samples::time_clean`] the harness's own statistics are those of clean samples; with [`Samples::time`] they
/// are of all samples, and the [`Summary`] shows both.
#[derive(Clone, Debug)]
pub struct Samples {
    witness: Witness,
    kept: Vec<BenchmarkSample>,
}

/// Times of one iteration, ns, over some samples.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Figures {
    /// Half of the samples took less.
    pub median_ns: f64,
    /// Of the longest sample.
    pub longest_ns: f64,
}

/// Times of a set of samples, with and without the disturbed ones.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Number of samples; at least one.
    pub samples: usize,
    /// Number of samples in which the scheduler took the CPU from the thread.
    pub disturbed: usize,
    /// Upper bound of the time off the CPU, summed over the disturbed samples.
    pub off_cpu: Duration,
    /// The most frequent cause among the disturbed samples.
    pub mostly: Option<Cause>,
    /// Times over all samples.
    pub all: Figures,
    /// Times over the clean samples; `None` if every sample was disturbed.
    pub clean: Option<Figures>,
}

impl Samples {
    /// An empty list of samples for the calling thread.
    ///
    /// # Errors
    /// As [`Witness::new`].
    pub fn new() -> Result<Samples, WitnessError> {
        Ok(Samples { witness: Witness::new()?, kept: Vec::new() })
    }

    /// Runs a routine `iterations` times and stores the sample. Returns the time of all iterations together.
    /// Nothing is stored for 0 iterations.
    pub fn time<T>(&mut self, iterations: u64, mut routine: impl FnMut() -> T) -> Duration {
        self.take(iterations, &mut routine).elapsed
    }

    /// Like [`Samples::time`], but repeats while the sample is disturbed, up to ten times in total. Stores each
    /// sample and returns the time of the last one.
    pub fn time_clean<T>(&mut self, iterations: u64, mut routine: impl FnMut() -> T) -> Duration {
        let mut sample = self.take(iterations, &mut routine);
        for _ in 1..TRIES {
            if sample.loss.is_none() {
                break;
            }
            sample = self.take(iterations, &mut routine);
        }
        sample.elapsed
    }

    fn take<T>(&mut self, iterations: u64, routine: &mut impl FnMut() -> T) -> BenchmarkSample {
        let span = self.witness.begin();
        let begun = Instant::now();
        for _ in 0..iterations {
            black_box(routine());
        }
        let elapsed = begun.elapsed();
        let sample = BenchmarkSample { elapsed, iterations, loss: self.witness.end(span) };
        if iterations > 0 {
            self.kept.push(sample);
        }
        sample
    }

    /// The stored samples, in order. A harness takes samples to warm up before those that it reports.
    #[must_use]
    pub fn samples(&self) -> &[BenchmarkSample] {
        &self.kept
    }

    /// Removes the stored samples.
    pub fn clear(&mut self) {
        self.kept.clear();
    }

    /// The summary of the stored samples; `None` without a sample.
    #[must_use]
    pub fn summary(&self) -> Option<Summary> {
        Summary::from_samples(&self.kept)
    }
}

impl Summary {
    /// The summary of `samples`; `None` if the slice is empty.
    #[must_use]
    pub fn from_samples(samples: &[BenchmarkSample]) -> Option<Summary> {
        let losses = || samples.iter().filter_map(|sample| sample.loss.as_ref());
        let off_cpu_ns = losses().map(|loss| loss.off_cpu.latest().nanos().unsigned_abs());
        Some(Summary {
            samples: samples.len(),
            disturbed: losses().count(),
            off_cpu: Duration::from_nanos(off_cpu_ns.fold(0, u64::saturating_add)),
            mostly: most_frequent(losses().map(|loss| loss.cause)),
            all: Figures::from_samples(samples.iter())?,
            clean: Figures::from_samples(samples.iter().filter(|sample| sample.loss.is_none())),
        })
    }
}

/// Of two that are as frequent, the one that came first.
fn most_frequent(causes: impl Iterator<Item = Cause>) -> Option<Cause> {
    let mut counts: Vec<(Cause, usize)> = Vec::new();
    for cause in causes {
        match counts.iter_mut().find(|(known, _)| *known == cause) {
            Some((_, count)) => *count += 1,
            None => counts.push((cause, 1)),
        }
    }
    counts.iter().rev().max_by_key(|(_, count)| *count).map(|(cause, _)| *cause)
}

impl Figures {
    fn from_samples<'a>(samples: impl Iterator<Item = &'a BenchmarkSample>) -> Option<Figures> {
        let each = |sample: &BenchmarkSample| {
            sample.elapsed.as_nanos() as f64 / sample.iterations.max(1) as f64
        };
        let mut ns: Vec<f64> = samples.map(each).collect();
        ns.sort_by(f64::total_cmp);
        Some(Figures { median_ns: *ns.get(ns.len() / 2)?, longest_ns: *ns.last()? })
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {} samples disturbed", self.disturbed, self.samples)?;
        if let Some(cause) = self.mostly {
            write!(f, ", {:.1?} off the CPU, mostly {cause}", self.off_cpu)?;
        }
        let Figures { median_ns, longest_ns } = self.all;
        write!(f, "; median {median_ns:.1} ns, longest {longest_ns:.1} ns")?;
        match self.clean {
            _ if self.disturbed == 0 => Ok(()),
            None => write!(f, "; no clean sample"),
            Some(Figures { median_ns, longest_ns }) => {
                write!(
                    f,
                    "; clean samples only: median {median_ns:.1} ns, longest {longest_ns:.1} ns"
                )
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_leaves_out_what_was_disturbed() {
        let witness = Witness::new().unwrap();
        let span = witness.begin();
        std::thread::sleep(Duration::from_millis(1));
        let loss = witness.end(span);
        let off_cpu = Duration::from_nanos(loss.unwrap().off_cpu.latest().nanos().unsigned_abs());
        let cause = loss.unwrap().cause;
        let sample = |us: u64, loss: Option<Loss>| BenchmarkSample {
            elapsed: Duration::from_micros(us),
            iterations: 10,
            loss,
        };
        let said =
            |samples: &[BenchmarkSample]| Summary::from_samples(samples).unwrap().to_string();

        assert_eq!(Summary::from_samples(&[]), None);
        assert_eq!(
            said(&[sample(3, None), sample(1, None), sample(2, None)]),
            "0 of 3 samples disturbed; median 200.0 ns, longest 300.0 ns"
        );
        assert_eq!(
            said(&[sample(1, None), sample(900, loss), sample(2, None)]),
            format!(
                "1 of 3 samples disturbed, {off_cpu:.1?} off the CPU, mostly {cause}; \
                 median 200.0 ns, longest 90000.0 ns; \
                 clean samples only: median 200.0 ns, longest 200.0 ns"
            )
        );
        assert_eq!(Summary::from_samples(&[sample(900, loss)]).unwrap().clean, None);
        assert!(said(&[sample(900, loss)]).ends_with("; no clean sample"));
    }
}
