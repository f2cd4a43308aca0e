//! The measurements that a choice of sources needs.

use std::path::{Path, PathBuf};
use std::time::Duration;

use hourglass_time::Span;

use super::cross_cpu::{self, CrossCpu, Pairs};
use super::kernel_clocksource;
use super::monotonicity::{self, Monotonicity};
use crate::Pair;
use crate::source::frequency::{SourceCounter, between};
use crate::source::{
    ClockSource, CounterMeaning, Frequency, MeasuredFrequency, ProbeResult, ReadCost, ReadOrder,
    SourceName, SourceProperties, read_cost,
};

/// How much is measured. All the times are spent one after the other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MeasurementLimits {
    /// The root of the file system; `/` but in tests.
    pub root: PathBuf,
    /// Reads of which the cost is measured, of every source.
    pub reads: usize,
    /// The frequency is measured over two of these, the drift between them; the caller sleeps.
    pub window: Span,
    /// Pairs of CPUs whose offset is measured.
    pub pairs: Pairs,
    /// Time for each pair.
    pub pair_budget: Span,
    /// How long all CPUs read at once.
    pub monotonicity: Span,
}

impl Default for MeasurementLimits {
    /// About 0.1 s on a small machine, and 1 ms for every CPU.
    fn default() -> MeasurementLimits {
        MeasurementLimits {
            root: PathBuf::from("/"),
            reads: 4_096,
            window: Span::from_millis(20),
            pairs: Pairs::FromFirst,
            pair_budget: Span::from_millis(1),
            monotonicity: Span::from_millis(2),
        }
    }
}

impl MeasurementLimits {
    /// Limits for `hourglass clocks --verify`: every pair of CPUs, in seconds.
    #[must_use]
    pub fn thorough() -> MeasurementLimits {
        MeasurementLimits {
            reads: 65_536,
            window: Span::from_secs(1),
            pairs: Pairs::All,
            pair_budget: Span::from_millis(10),
            monotonicity: Span::from_millis(500),
            ..MeasurementLimits::default()
        }
    }
}

/// How much a rate changed between two windows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RateChange {
    /// Parts per million; positive if it became faster.
    pub ppm: f64,
    /// How far that may be off.
    pub error_ppm: f64,
}

/// The measurements of one source.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SourceMeasurement {
    /// The cost of a read.
    pub cost: Option<ReadCost>,
    /// Its frequency; `None` for a source that counts nanoseconds by definition, or that did not
    /// go forward.
    pub frequency: Option<MeasuredFrequency>,
    /// The change of its rate.
    pub drift: Option<RateChange>,
    /// The offsets between CPUs; for the processor's counter only.
    pub cross_cpu: Vec<CrossCpu>,
    /// Pairs that were to be measured.
    pub pairs: usize,
    /// Whether it went forward on all CPUs; for the processor's counter only.
    pub monotonicity: Option<Monotonicity>,
    /// The kernel's clock source after all measurements.
    pub clocksource_after: Option<String>,
}

/// Whether a source's frequency must be measured to be known, or to be believed.
#[must_use]
pub fn needs_frequency(facts: &SourceProperties) -> bool {
    facts.counts == CounterMeaning::Oscillator
}

/// Measures every source; in the order given.
pub(crate) fn measure_all(
    probed: &[ProbeResult],
    effort: &MeasurementLimits,
) -> Vec<SourceMeasurement> {
    let sources: Vec<Option<&dyn ClockSource>> =
        probed.iter().map(|p| p.source.as_deref().ok()).collect();
    let cost = |source: &dyn ClockSource| read_cost(source, ReadOrder::Unordered, effort.reads);
    let rates = measure_rates(&sources, effort.window);
    let mut all: Vec<SourceMeasurement> = sources
        .iter()
        .zip(rates)
        .map(|(source, (frequency, drift))| SourceMeasurement {
            cost: source.map(cost),
            frequency,
            drift,
            ..SourceMeasurement::default()
        })
        .collect();
    for ((source, found), name) in sources.iter().zip(&mut all).zip(probed.iter().map(|p| p.name)) {
        let is_processors = matches!(name, SourceName::Tsc | SourceName::Cntvct);
        if let (Some(source), true) = (source, is_processors) {
            measure_between_cpus(*source, effort, found);
        }
    }
    let after = kernel_clocksource(Path::new(&effort.root));
    all.iter_mut().for_each(|found| found.clocksource_after.clone_from(&after));
    all
}

type RateFound = (Option<MeasuredFrequency>, Option<RateChange>);

/// Rates and drifts of all sources over the same two windows.
fn measure_rates(sources: &[Option<&dyn ClockSource>], window: Span) -> Vec<RateFound> {
    let wanted: Vec<Option<&dyn ClockSource>> = sources
        .iter()
        .map(|source| source.filter(|source| needs_frequency(&source.facts())))
        .collect();
    let pairs = || -> Vec<Option<Pair>> {
        wanted
            .iter()
            .map(|source| source.map(|source| Pair::read(&SourceCounter(source))))
            .collect()
    };
    if wanted.iter().all(Option::is_none) {
        return vec![(None, None); sources.len()];
    }
    let wait = || std::thread::sleep(Duration::from_nanos(window.nanos_or_zero()));
    let first = pairs();
    wait();
    let second = pairs();
    wait();
    let third = pairs();
    wanted
        .iter()
        .zip(first.into_iter().zip(second).zip(third))
        .map(|(source, ((first, second), third))| match (source, first, second, third) {
            (Some(source), Some(first), Some(second), Some(third)) => {
                rate_found(*source, first, second, third)
            }
            _ => (None, None),
        })
        .collect()
}

fn rate_found(source: &dyn ClockSource, first: Pair, second: Pair, third: Pair) -> RateFound {
    let (early, late) = (between(source, first, second), between(source, second, third));
    let drift = early.zip(late).map(|(early, late)| RateChange {
        ppm: late.frequency.ppm_above(&early.frequency),
        error_ppm: early.error_ppm + late.error_ppm,
    });
    // A step back in either window leaves no frequency at all.
    let frequency = drift.and_then(|_| between(source, first, third));
    (frequency, drift)
}

fn measure_between_cpus(
    source: &dyn ClockSource,
    effort: &MeasurementLimits,
    found: &mut SourceMeasurement,
) {
    let Ok(cpus) = hourglass_sys::thread::affinity() else { return };
    let frequency: Option<Frequency> =
        found.frequency.map(|f| f.frequency).or(source.facts().frequency);
    let pairs = effort.pairs.select(&cpus);
    found.pairs = pairs.len();
    if let Some(rate) = frequency.and_then(|f| f.rate()) {
        let offset = |pair| cross_cpu::measure(source, rate, pair, effort.pair_budget);
        found.cross_cpu = pairs.into_iter().filter_map(offset).collect();
    }
    if !effort.monotonicity.is_zero() {
        found.monotonicity = Some(monotonicity::check(source, &cpus, effort.monotonicity));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sim::{Drift, SimConfig, SimSource};

    /// Pairs of a simulated clock with true time, two windows of 1 s.
    fn pairs(config: SimConfig, fault: impl Fn(&SimSource)) -> RateFound {
        let sim = SimSource::new(config);
        let pair = || Pair {
            ticks: sim.read(),
            monotonic_ns: sim.true_time().nanos_or_zero(),
            half_width_ticks: 20,
        };
        let first = pair();
        sim.advance(Span::from_secs(1));
        let second = pair();
        sim.advance(Span::from_secs(1));
        fault(&sim);
        rate_found(&sim, first, second, pair())
    }

    #[test]
    fn a_steady_clock_does_not_drift() {
        let config =
            SimConfig { drifts: vec![Drift::Constant { ppb: 70_000 }], ..SimConfig::default() };
        let (frequency, drift) = pairs(config, |_| ());
        let found = frequency.unwrap();
        assert!((found.frequency.hertz() - 1_000_070_000.0).abs() < 100.0, "{found:?}");
        let drift = drift.unwrap();
        assert!(drift.ppm.abs() <= drift.error_ppm, "{drift:?}");
    }

    #[test]
    fn a_rate_that_grows_is_a_drift() {
        let drifts = vec![Drift::Linear { ppb_per_s: 300_000, limit_ppb: 10_000_000 }];
        let (_, drift) = pairs(SimConfig { drifts, ..SimConfig::default() }, |_| ());
        let drift = drift.unwrap();
        assert!((drift.ppm - 300.0).abs() < 1.0 + drift.error_ppm, "{drift:?}");
    }

    #[test]
    fn a_clock_that_steps_back_has_no_frequency() {
        let stepped = |sim: &SimSource| sim.step(Span::from_millis(-1_500));
        assert_eq!(pairs(SimConfig::default(), stepped), (None, None));
    }
}
