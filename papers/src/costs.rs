//! What reading several sources costs, measured in turns so that all of them meet the same
//! machine.
//!
//! The cost of a read is the time from one read to the next, as the source itself tells it, each
//! value stored. Nothing is filtered out. Sums are integers of the source's ticks.

use std::hint::black_box;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use hourglass_clock::choice::measured::needs_frequency;
use hourglass_clock::source::{
    ClockSource, Frequency, ReadCost, ReadOrder, SourceProperties, measure_frequency, read_cost,
};
use hourglass_documents::paper::Point;
use hourglass_sys::thread;
use hourglass_time::Span;

use super::downsample::Downsampler;

/// Reads of one source before the next one has its turn: a few clock ticks of the kernel fall
/// into a thousand turns, and switching between sources costs nothing that shows.
pub(super) const TURN: usize = 4_096;

/// Reads before those of a turn, which are not counted: the caches hold the source's code then.
const WARM_UP: usize = 64;

/// The frequency of a source that does not state one is measured over this; 3 ppm.
const RATE_WINDOW: Span = Span::from_millis(20);

/// Reads by which the loop's own part is found.
const OVERHEAD_READS: usize = 4_096;

#[derive(Clone, Copy, Debug)]
pub(super) struct MeasuredSource<'a> {
    pub(super) source: &'a dyn ClockSource,
    pub(super) order: ReadOrder,
}

/// When a measurement is complete: after a number of reads of every source, or when the time is up.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) reads: u64,
    pub(super) time: Duration,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) costs: Vec<ReadCosts>,
    pub(super) preempted: u64,
}

/// What reads of one source cost, ns.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ReadCosts {
    pub(super) reads: u64,
    pub(super) mean_ns: f64,
    pub(super) deviation_ns: f64,
    /// Standard deviation of the reads up to the 99th percentile.
    pub(super) calm_deviation_ns: f64,
    pub(super) median_ns: f64,
    pub(super) p99_ns: f64,
    pub(super) greatest_ns: f64,
    /// What the loop and the call take of each read.
    pub(super) loop_ns: f64,
    /// Reads that were before their predecessor; counted as no time.
    pub(super) backwards: u64,
    pub(super) points: Vec<Point>,
    /// Of how many reads each the cheapest, the dearest and one at random are points.
    pub(super) thinning: u64,
}

/// Measures all sources on the calling thread, which stays on one CPU meanwhile, where it may.
/// `None` if `stopped` said so before the limits were reached.
pub(super) fn compare(
    compared: &[MeasuredSource],
    limits: Limits,
    stopped: impl Fn() -> bool,
) -> Option<Comparison> {
    let _pinned = PinnedThread::to_last_cpu();
    let before = thread::counters().involuntary;
    let begin = Instant::now();
    let mut slots = vec![0; TURN + 1];
    let mut tallies: Vec<Tally> = compared.iter().map(|_| Tally::default()).collect();
    let mut done = 0;
    while done < limits.reads && (done == 0 || begin.elapsed() < limits.time) {
        let turn = usize::try_from(limits.reads - done).unwrap_or(TURN).min(TURN);
        for (each, tally) in compared.iter().zip(&mut tallies) {
            if stopped() {
                return None;
            }
            fill(*each, &mut slots[..WARM_UP.min(turn)]);
            fill(*each, &mut slots[..=turn]);
            tally.take(&each.source.facts(), &slots[..=turn]);
        }
        done += turn as u64;
    }
    let preempted = thread::counters().involuntary.saturating_sub(before);
    let costs = compared.iter().zip(tallies).map(|(each, tally)| tally.costs(*each)).collect();
    Some(Comparison { costs, preempted })
}

/// The CPU that measurements run on: the last that is allowed, since the first ones often serve
/// interrupts.
pub(super) fn measuring_cpu() -> Option<u32> {
    thread::affinity().ok()?.last().copied()
}

/// The same in words, if it is known: ` on CPU 3`.
pub(super) fn measured_on() -> String {
    measuring_cpu().map_or(String::new(), |cpu| format!(" on CPU {cpu}"))
}

/// The calling thread on one CPU; on drop it gets back those that it had.
pub(super) struct PinnedThread(Vec<u32>);

impl PinnedThread {
    pub(super) fn to_last_cpu() -> Option<PinnedThread> {
        let before = thread::affinity().ok()?;
        thread::set_affinity(before.last().copied()).ok()?;
        Some(PinnedThread(before))
    }
}

impl Drop for PinnedThread {
    fn drop(&mut self) {
        // If one of them has gone offline the others remain; a destructor cannot report it.
        let _ = thread::set_affinity(self.0.iter().copied());
    }
}

fn fill(each: MeasuredSource, slots: &mut [u64]) {
    let source = black_box(each.source);
    match each.order {
        ReadOrder::Unordered => slots.iter_mut().for_each(|slot| *slot = source.read()),
        ReadOrder::Ordered => slots.iter_mut().for_each(|slot| *slot = source.read_ordered()),
    }
    black_box(slots);
}

/// Costs so far, in ticks.
#[derive(Debug, Default)]
struct Tally {
    reads: u64,
    sum: u64,
    squares: u128,
    max: u64,
    backwards: u64,
    spread: Spread,
    points: Downsampler,
}

impl Tally {
    fn take(&mut self, facts: &SourceProperties, counts: &[u64]) {
        for pair in counts.windows(2) {
            let passed = facts.ticks_between(pair[0], pair[1]);
            self.backwards += u64::from(passed < 0);
            let cost = passed.max(0).unsigned_abs();
            self.reads += 1;
            self.sum = self.sum.saturating_add(cost);
            self.squares = self.squares.saturating_add(u128::from(cost) * u128::from(cost));
            self.max = self.max.max(cost);
            self.spread.record(cost);
            self.points.push(cost);
        }
    }

    fn costs(&self, of: MeasuredSource) -> ReadCosts {
        let frequency = frequency(of.source);
        let ns_per_tick = frequency.ns as f64 / frequency.ticks as f64;
        let ns = |ticks: f64| ticks * ns_per_tick;
        let overhead: ReadCost = read_cost(of.source, of.order, OVERHEAD_READS);
        ReadCosts {
            reads: self.reads,
            mean_ns: ns(self.sum as f64 / self.reads as f64),
            deviation_ns: ns(deviation(self.reads, self.sum, self.squares)),
            calm_deviation_ns: ns(self.spread.calm_deviation()),
            median_ns: ns(self.spread.quantile(0.5)),
            p99_ns: ns(self.spread.quantile(CALM)),
            greatest_ns: ns(self.max as f64),
            loop_ns: overhead.overhead_ns,
            backwards: self.backwards,
            points: self.points.drawn(ns_per_tick),
            thinning: self.points.stretch(),
        }
    }
}

/// Ticks against time: stated by definition, else measured, else what the source states.
fn frequency(source: &dyn ClockSource) -> Frequency {
    const ONE_PER_NS: Frequency =
        Frequency::from_hertz(1_000_000_000, hourglass_clock::source::FrequencyOrigin::Definition);
    let facts = source.facts();
    let measured = needs_frequency(&facts).then(|| measure_frequency(source, RATE_WINDOW));
    let measured = measured.flatten().map(|measured| measured.frequency);
    measured.or(facts.frequency).unwrap_or(ONE_PER_NS)
}

fn deviation(count: u64, sum: u64, squares: u128) -> f64 {
    // n times the squares less the squared sum is n squared times the variance, exactly.
    let (n, sum) = (u128::from(count), u128::from(sum));
    let exact = n.checked_mul(squares).zip(sum.checked_mul(sum)).map(|(a, b)| a.saturating_sub(b));
    match exact {
        _ if count == 0 => 0.0,
        Some(numerator) => (numerator as f64).sqrt() / count as f64,
        None => {
            (squares as f64 / count as f64 - (sum as f64 / count as f64).powi(2)).max(0.0).sqrt()
        }
    }
}

const CALM: f64 = 0.99;

/// How costs are spread; exact below 2048 ticks, to a thousandth above.
#[derive(Debug)]
struct Spread(Option<Histogram<u64>>);

impl Default for Spread {
    fn default() -> Spread {
        // Three digits are always accepted.
        Spread(Histogram::new(3).ok())
    }
}

impl Spread {
    #[inline]
    fn record(&mut self, cost: u64) {
        if let Some(histogram) = &mut self.0 {
            // It grows as it needs to; only a cost of centuries would be refused.
            let _ = histogram.record(cost);
        }
    }

    fn quantile(&self, quantile: f64) -> f64 {
        self.0.as_ref().map_or(0.0, |histogram| histogram.value_at_quantile(quantile) as f64)
    }

    fn calm_deviation(&self) -> f64 {
        let Some(histogram) = &self.0 else { return 0.0 };
        let limit = histogram.value_at_quantile(CALM);
        let calm = histogram.iter_recorded().take_while(|step| step.value_iterated_to() <= limit);
        let (mut count, mut sum, mut squares) = (0_u64, 0_u64, 0_u128);
        for step in calm {
            let (cost, times) = (step.value_iterated_to(), step.count_since_last_iteration());
            count += times;
            sum = sum.saturating_add(cost.saturating_mul(times));
            let square = u128::from(cost) * u128::from(cost);
            squares = squares.saturating_add(square.saturating_mul(u128::from(times)));
        }
        deviation(count, sum, squares)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use hourglass_clock::source::SimSource;
    use hourglass_clock::source::sim::SimConfig;

    use super::*;

    #[derive(Debug)]
    pub(crate) struct JitteryClock {
        sim: SimSource,
        every: u64,
        extra: Span,
        reads: AtomicU64,
    }

    impl JitteryClock {
        pub(crate) fn new(cost_ns: i64, every: u64, extra_ns: i64) -> JitteryClock {
            let read_cost = Span::from_nanos(cost_ns);
            JitteryClock {
                sim: SimSource::new(SimConfig { read_cost, ..SimConfig::default() }),
                every,
                extra: Span::from_nanos(extra_ns),
                reads: AtomicU64::new(0),
            }
        }
    }

    impl ClockSource for JitteryClock {
        fn facts(&self) -> SourceProperties {
            self.sim.facts()
        }

        fn read(&self) -> u64 {
            let number = self.reads.fetch_add(1, Ordering::Relaxed);
            if self.every > 0 && number.is_multiple_of(self.every) {
                self.sim.advance(self.extra);
            }
            self.sim.read()
        }

        fn read_ordered(&self) -> u64 {
            self.read()
        }
    }

    pub(crate) fn measured(sources: &[&dyn ClockSource], reads: u64) -> Vec<ReadCosts> {
        let order = ReadOrder::Ordered;
        let compared: Vec<MeasuredSource> =
            sources.iter().map(|&source| MeasuredSource { source, order }).collect();
        let limits = Limits { reads, time: Duration::from_secs(3_600) };
        compare(&compared, limits, || false).unwrap().costs
    }

    #[test]
    fn a_constant_cost_is_found_exactly() {
        let costs = &measured(&[&JitteryClock::new(17, 0, 0)], 10_000)[0];
        assert_eq!((costs.reads, costs.mean_ns, costs.deviation_ns), (10_000, 17.0, 0.0));
        assert_eq!((costs.median_ns, costs.p99_ns, costs.greatest_ns), (17.0, 17.0, 17.0));
        assert_eq!((costs.calm_deviation_ns, costs.backwards), (0.0, 0));
    }

    /// One read in 256 takes 2560 ns longer: mean 10 + 10, variance 2560^2 (1/256 - 1/256^2).
    #[test]
    fn rare_dear_reads_make_the_deviation() {
        let costs = &measured(&[&JitteryClock::new(10, 256, 2_560)], 256 * 16 * 4)[0];
        assert_eq!((costs.reads, costs.mean_ns), (16_384, 20.0));
        let variance = 2_560.0_f64.powi(2) * (1.0 / 256.0 - 1.0 / 65_536.0);
        assert!((costs.deviation_ns - variance.sqrt()).abs() < 1e-9, "{costs:?}");
        assert_eq!((costs.median_ns, costs.p99_ns, costs.calm_deviation_ns), (10.0, 10.0, 0.0));
        assert_eq!(costs.greatest_ns, 2_570.0);
        assert!(costs.points.iter().any(|point| point.ns == 2_570.0));
    }

    /// Ticks of 100 ns, as of an HPET of 10 MHz: costs of 250 ns are 2 or 3 ticks, the mean is
    /// exact all the same.
    #[test]
    fn coarse_ticks_keep_the_mean() {
        let config = SimConfig {
            hertz: 10_000_000,
            read_cost: Span::from_nanos(250),
            ..SimConfig::default()
        };
        let costs = &measured(&[&SimSource::new(config)], 8_192)[0];
        assert_eq!((costs.mean_ns, costs.deviation_ns), (250.0, 50.0));
    }

    #[test]
    fn sources_have_their_turns_and_equal_numbers_of_reads() {
        let (a, b) = (JitteryClock::new(5, 0, 0), JitteryClock::new(7, 0, 0));
        let costs = measured(&[&a, &b], 3 * TURN as u64 + 10);
        assert_eq!(costs[0].reads, 3 * TURN as u64 + 10);
        assert_eq!(costs[0].reads, costs[1].reads);
        assert_eq!((costs[0].mean_ns, costs[1].mean_ns), (5.0, 7.0));
    }

    #[test]
    fn the_time_ends_it_after_whole_turns_and_a_stop_leaves_nothing() {
        let source = JitteryClock::new(5, 0, 0);
        let compared = [MeasuredSource { source: &source, order: ReadOrder::Unordered }];
        let limits = Limits { reads: u64::MAX, time: Duration::ZERO };
        let costs = compare(&compared, limits, || false).unwrap().costs;
        assert_eq!(costs[0].reads, TURN as u64);
        assert_eq!(compare(&compared, limits, || true), None);
    }

    #[test]
    fn the_thread_gets_its_cpus_back() {
        let before = thread::affinity().unwrap();
        measured(&[&JitteryClock::new(5, 0, 0)], 16);
        assert_eq!(thread::affinity().unwrap(), before);
    }

    #[test]
    fn a_step_back_is_counted_and_costs_nothing() {
        let sim = SimSource::new(SimConfig::default());
        let mut tally = Tally::default();
        tally.take(&sim.facts(), &[100, 110, 90, 100]);
        assert_eq!((tally.backwards, tally.sum, tally.reads), (1, 20, 3));
    }

    #[test]
    fn the_standard_deviation_of_a_textbook() {
        let values = [2_u64, 4, 4, 4, 5, 5, 7, 9];
        let squares = values.iter().map(|value| u128::from(value * value)).sum();
        assert_eq!(deviation(8, values.iter().sum(), squares), 2.0);
        assert_eq!(deviation(0, 0, 0), 0.0);
        assert!(deviation(u64::MAX, 0, u128::MAX).is_finite());
    }
}
