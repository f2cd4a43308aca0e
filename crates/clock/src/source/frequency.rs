//! How fast a source counts, measured against `CLOCK_MONOTONIC`.

use hourglass_sys::clock::current_cpu;
use hourglass_sys::counter::CounterReading;
use hourglass_time::Span;

use super::{ClockSource, Frequency, FrequencyOrigin};
use crate::{Calibration, Counter, Pair};

/// A frequency with a bound on its error.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeasuredFrequency {
    /// The frequency.
    pub frequency: Frequency,
    /// How far it may be off `CLOCK_MONOTONIC`'s, parts per million, rounded up.
    pub error_ppm: f64,
    /// How far a pair of counts and times may be off, ns: half the narrowest bracket, and a tick.
    pub bracket_ns: f64,
}

/// A source as what pairs are read from.
pub(crate) struct SourceCounter<'a>(pub(crate) &'a dyn ClockSource);

impl Counter for SourceCounter<'_> {
    const NAME: &'static str = "source";

    #[inline]
    fn read(&self) -> CounterReading {
        let mut before = current_cpu();
        loop {
            let ticks = self.0.read_ordered();
            let after = current_cpu();
            if before == after {
                return CounterReading { ticks, cpu: after };
            }
            before = after;
        }
    }
}

/// Measures the frequency over `window`, during which the caller sleeps; 20 ms give about 3 ppm.
///
/// `None` for a source that did not move forward, or wrapped more than its width tells.
#[must_use]
pub fn measure_frequency(source: &dyn ClockSource, window: Span) -> Option<MeasuredFrequency> {
    let counter = SourceCounter(source);
    let first = Pair::read(&counter);
    std::thread::sleep(std::time::Duration::from_nanos(window.nanos_or_zero()));
    between(source, first, Pair::read(&counter))
}

/// The frequency between two pairs of the same source.
pub(crate) fn between(
    source: &dyn ClockSource,
    first: Pair,
    second: Pair,
) -> Option<MeasuredFrequency> {
    let passed = source.facts().ticks_between(first.ticks, second.ticks);
    let passed = u64::try_from(passed).ok().filter(|passed| *passed > 0)?;
    // Unwrapped, so that the calibration need not know the width.
    let second = Pair { ticks: first.ticks.checked_add(passed)?, ..second };
    let calibration = Calibration::between(first, second)?;
    let ns = calibration.window_ns;
    let frequency = Frequency { ticks: passed, ns, origin: FrequencyOrigin::Measured };
    Some(MeasuredFrequency {
        frequency,
        error_ppm: calibration.rate_error_ppb as f64 / 1e3,
        bracket_ns: calibration.bracket_ns as f64 + 1e9 / frequency.hertz(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sim::SimConfig;
    use crate::source::{SimSource, SourceName, probe};

    #[test]
    fn the_raw_clock_counts_nanoseconds() {
        let source = probe("monotonic_raw".parse().unwrap()).unwrap();
        let found = measure_frequency(source.as_ref(), Span::from_millis(20)).unwrap();
        let stated = source.facts().frequency.unwrap();
        // NTP steers MONOTONIC by at most 500 ppm.
        assert!(found.frequency.ppm_above(&stated).abs() <= 500.0 + found.error_ppm, "{found:?}");
    }

    #[test]
    fn a_clock_that_stands_still_has_no_frequency() {
        assert_eq!(measure_frequency(&SimSource::default(), Span::from_millis(1)), None);
        assert!(
            measure_frequency(probe(SourceName::MONOTONIC).unwrap().as_ref(), Span::MIN).is_some()
        );
    }

    #[test]
    fn a_wrap_between_the_pairs_is_undone() {
        let config = SimConfig { width_bits: 32, ..SimConfig::default() };
        let source = SimSource::new(config);
        let pair = |ticks, monotonic_ns| Pair { ticks, monotonic_ns, half_width_ticks: 2 };
        let first = pair(0xffff_ff00, 0);
        let found = between(&source, first, pair(0x0000_0300, 512)).unwrap();
        assert_eq!(found.frequency.hertz(), 2e9);
    }
}
