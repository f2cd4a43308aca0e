//! The time that a read of a source takes.

use std::hint::black_box;

use hourglass_sys::clock::{ClockId, now_ns};

use super::ClockSource;

/// The kind of read that is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadOrder {
    /// [`ClockSource::read`].
    Unordered,
    /// [`ClockSource::read_ordered`].
    Ordered,
}

/// The cost of a read, over many. The loop's own part is stated, not taken off: 1 to 2 ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReadCost {
    /// Reads measured.
    pub reads: usize,
    /// Mean, ns; from the time that all took on `CLOCK_MONOTONIC`.
    pub mean_ns: f64,
    /// Standard deviation of one read, ns (of a batch's mean: [`ReadCost::batch`]).
    pub stddev_ns: f64,
    /// Median, ns.
    pub p50_ns: f64,
    /// 99th percentile, ns.
    pub p99_ns: f64,
    /// The part of the time that the loop and the call through the trait take, ns.
    pub overhead_ns: f64,
    /// Reads that were timed together: 1 if the source is fine enough to time its own reads, by
    /// the differences between neighbours, as in the thesis; else a batch, by `CLOCK_MONOTONIC`.
    pub batch: usize,
}

/// Reads timed together where the source itself is too coarse.
const BATCH: usize = 64;

/// Measures `reads` consecutive reads on whatever CPU the caller runs, after a sixteenth as many
/// to warm up. Outliers (interrupts) are part of it, as in the thesis. Allocates 8 bytes a read;
/// `reads` is taken to be at least 256.
#[must_use]
pub fn read_cost(source: &dyn ClockSource, order: ReadOrder, reads: usize) -> ReadCost {
    const FEWEST: usize = 256;
    let reads = reads.max(FEWEST);
    let mut counts = vec![0; reads + 1];
    fill(source, order, &mut counts[..reads / 16]);
    let (total_ns, overhead_ns) = (fill(source, order, &mut counts), loop_overhead_ns(reads));
    let mean_ns = total_ns as f64 / counts.len() as f64;
    let facts = source.facts();
    let pass = |pair: &[u64]| facts.ticks_between(pair[0], pair[1]).max(0) as f64;
    let mut passed: Vec<f64> = counts.windows(2).map(pass).collect();
    let ticks: f64 = passed.iter().sum();
    let ns_per_tick = total_ns as f64 / ticks;
    // A source that moves at fewer than half of its reads cannot time them.
    let moving = passed.iter().filter(|ticks| **ticks > 0.0).count();
    let batch = if moving * 2 > reads && ns_per_tick.is_finite() {
        passed.iter_mut().for_each(|ticks| *ticks *= ns_per_tick);
        1
    } else {
        passed = batches(source, order, &mut counts);
        BATCH
    };
    passed.sort_by(f64::total_cmp);
    let stddev_ns = standard_deviation(&passed);
    let quantile = |q: f64| passed[((passed.len() - 1) as f64 * q).round() as usize];
    let (p50_ns, p99_ns) = (quantile(0.5), quantile(0.99));
    ReadCost { reads, mean_ns, stddev_ns, p50_ns, p99_ns, overhead_ns, batch }
}

/// Reads into every slot; returns the time it took, ns.
fn fill(source: &dyn ClockSource, order: ReadOrder, slots: &mut [u64]) -> u64 {
    let source = black_box(source);
    let begin = now_ns(ClockId::Monotonic);
    match order {
        ReadOrder::Unordered => slots.iter_mut().for_each(|slot| *slot = source.read()),
        ReadOrder::Ordered => slots.iter_mut().for_each(|slot| *slot = source.read_ordered()),
    }
    black_box(slots);
    now_ns(ClockId::Monotonic).saturating_sub(begin)
}

/// The mean cost of a read in each batch, ns.
fn batches(source: &dyn ClockSource, order: ReadOrder, slots: &mut [u64]) -> Vec<f64> {
    slots
        .chunks_mut(BATCH)
        .map(|batch| {
            let reads = batch.len() as f64;
            fill(source, order, batch) as f64 / reads
        })
        .collect()
}

/// What the loop of [`fill`] takes for a source that gives a constant, ns a read.
fn loop_overhead_ns(reads: usize) -> f64 {
    #[derive(Debug)]
    struct NullSource;
    impl ClockSource for NullSource {
        fn facts(&self) -> super::SourceProperties {
            super::SimSource::default().facts()
        }
        fn read(&self) -> u64 {
            0
        }
        fn read_ordered(&self) -> u64 {
            0
        }
    }
    let mut slots = vec![0; reads];
    fill(&NullSource, ReadOrder::Unordered, &mut slots);
    fill(&NullSource, ReadOrder::Unordered, &mut slots) as f64 / reads as f64
}

fn standard_deviation(values: &[f64]) -> f64 {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    (values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{SimSource, SourceName, probe};

    fn cost(name: &str) -> ReadCost {
        let name: SourceName = name.parse().unwrap();
        read_cost(probe(name).unwrap().as_ref(), ReadOrder::Unordered, 4_096)
    }

    /// One-sided: a read costs something, and not more than an emulated trap does.
    #[test]
    fn costs_are_plausible() {
        for name in ["monotonic", "monotonic_raw", "thread_cpu"] {
            let cost = cost(name);
            assert!(cost.p50_ns > 0.5 && cost.mean_ns < 100_000.0, "{name}: {cost:?}");
            assert!(cost.p50_ns <= cost.p99_ns && cost.batch == 1, "{name}: {cost:?}");
            assert!(cost.overhead_ns < cost.p99_ns.max(10.0), "{name}: {cost:?}");
        }
    }

    #[test]
    fn a_clock_too_coarse_for_itself_is_timed_in_batches() {
        let coarse = cost("monotonic_coarse");
        assert_eq!(coarse.batch, BATCH);
        assert!(coarse.p50_ns > 0.0 && coarse.p50_ns < 1_000.0, "{coarse:?}");
        let still = read_cost(&SimSource::default(), ReadOrder::Ordered, 0);
        assert_eq!((still.batch, still.reads), (BATCH, 256));
    }

    #[test]
    fn the_standard_deviation_of_a_textbook() {
        assert_eq!(standard_deviation(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]), 2.0);
    }
}
