//! Whether the counter kept its rate over a run: the calibration at the start against that over the whole run.
//!
//! Owns: what follows for the trace, and what must be said. Must not: read a clock; mend a trace.
//!
//! The calibration over the whole run converts the trace. If both hold and differ by more than their
//! bounds, the rate changed meanwhile: lengths are off by no more than the difference, but a moment may
//! be off by that share of all that passed, against clocks that kept their rate.

use hourglass_documents::document::Warning;
use hourglass_documents::manifest::{CalibrationFacts, EvidenceFacts, Manifest};
use hourglass_time::Span;

pub const ID: &str = "clock-drift";

/// Events of another clock that may be off by more than this cannot be put beside the trace, ns.
pub const MOST_NS: u64 = 50_000;

/// Frequencies that are written in hertz are compared in units of 1/1000 Hz.
const MILLIHERTZ: f64 = 1e3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drift {
    /// By how much it was faster over the whole run than at its start, parts per billion.
    pub ppb: i64,
    /// By how much two sound calibrations may differ, parts per billion.
    pub bound_ppb: u64,
    /// By how much a moment of the trace may be off.
    pub moment_ns: u64,
}

/// What the calibrations of a run say; `None` where they agree, or one of them is missing.
pub fn from_manifest(manifest: &Manifest) -> Option<Drift> {
    let clock = &manifest.clock;
    let (start, end) = (&clock.calibration_start, &clock.calibration_end);
    let (from, to) = (millihertz(start)?, millihertz(end)?);
    let ppb = (to - from).checked_mul(1_000_000_000)? / from;
    let bound_ppb = start.rate_error_ppb.saturating_add(end.rate_error_ppb);
    if ppb.unsigned_abs() <= u128::from(bound_ppb) {
        return None;
    }
    let off = ppb.unsigned_abs().saturating_mul(u128::from(manifest.elapsed_ns)) / 1_000_000_000;
    Some(Drift {
        ppb: i64::try_from(ppb).unwrap_or(if ppb < 0 { i64::MIN } else { i64::MAX }),
        bound_ppb,
        moment_ns: u64::try_from(off).unwrap_or(u64::MAX),
    })
}

/// A calibration's frequency; `None` for a value that is no frequency.
fn millihertz(calibration: &CalibrationFacts) -> Option<i128> {
    let frequency = (calibration.frequency_hz * MILLIHERTZ).round();
    let is_one = calibration.window_ns > 0 && frequency.is_finite() && frequency >= 1.0;
    is_one.then_some(frequency as i128)
}

/// What a reader must know of it.
pub fn warning(manifest: &Manifest) -> Option<Warning> {
    let drift = from_manifest(manifest)?;
    let ppm = |ppb: u64| {
        let tenths = ppb.saturating_add(50) / 100;
        format!("{}.{} ppm", tenths / 10, tenths % 10)
    };
    let perf = |facts: &EvidenceFacts| facts.source == EvidenceFacts::PERF && facts.used;
    let other_clock = match &manifest.kernel {
        Some(kernel) => !kernel.same_counter,
        None => manifest.evidence.iter().any(perf),
    };
    let missing = match other_clock && drift.moment_ns > MOST_NS {
        true => "; the kernel's events, which are on another clock, are left out of the causes",
        false => "",
    };
    Some(Warning {
        id: ID.to_owned(),
        text: format!(
            "the counter did not keep its rate: over the run it was {} {} than at the start, where {} \
             are explained. Lengths are off by that share at most, moments by up to {} against \
             other clocks{missing}",
            ppm(drift.ppb.unsigned_abs()),
            if drift.ppb < 0 { "slower" } else { "faster" },
            ppm(drift.bound_ppb),
            Span::saturating_from_nanos(drift.moment_ns),
        ),
        remedy:
            "see `hourglass clocks --watch`; let nothing set the clock (NTP) while measuring, and \
                 do not suspend or migrate the machine"
                .to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use hourglass_documents::kernel::KernelFacts;
    use hourglass_documents::manifest::{ClockFacts, Manifest};

    use super::*;

    /// A run of 100 s on a counter of 2.3 GHz that was `ppb` faster than at the start, where both are known to
    /// 6 and 0.1 ppm.
    fn drifted(ppb: f64) -> Manifest {
        let calibration = |frequency_hz, window_ns, rate_error_ppb| CalibrationFacts {
            frequency_hz,
            window_ns,
            rate_error_ppb,
            bracket_ns: 60,
        };
        let clock = ClockFacts {
            source: "tsc".to_owned(),
            trusted: true,
            reason: String::new(),
            frequency_hz: 2.3e9,
            calibration_start: calibration(2.3e9, 20_000_000, 6_000),
            calibration_end: calibration(2.3e9 * (1.0 + ppb / 1e9), 100_000_000_000, 100),
        };
        Manifest {
            duration_ns: 100_000_000_000,
            elapsed_ns: 100_000_000_000,
            clock,
            ..Manifest::default()
        }
    }

    #[test]
    fn within_the_bounds_nothing_is_said() {
        for ppb in [0.0, 6_090.0, -6_090.0] {
            assert_eq!(from_manifest(&drifted(ppb)), None, "{ppb}");
        }
        let found = from_manifest(&drifted(-7_000.0)).unwrap();
        assert!((-7_001..=-6_999).contains(&found.ppb), "{found:?}");
        assert_eq!(found.bound_ppb, 6_100);
    }

    /// Issue 6, bad input: what is sound is read, what is missing is said.
    #[test]
    fn a_drift_is_said_with_what_it_means() {
        let mut manifest = drifted(200_000.0);
        let warning = warning(&manifest).unwrap();
        assert_eq!(warning.id, ID);
        for part in ["200.0 ppm faster", "6.1 ppm", "up to 20"] {
            assert!(warning.text.contains(part), "{part}: {}", warning.text);
        }
        assert!(!warning.text.contains("left out"));
        manifest.kernel = Some(KernelFacts { same_counter: false, ..KernelFacts::default() });
        assert!(super::warning(&manifest).unwrap().text.contains("left out"));
    }

    #[test]
    fn what_is_no_calibration_says_nothing() {
        for (start, end) in [(0.0, 1e9), (f64::NAN, 1e9), (1e9, f64::INFINITY), (-1e9, 1e9)] {
            let mut manifest = drifted(0.0);
            manifest.clock.calibration_start.frequency_hz = start;
            manifest.clock.calibration_end.frequency_hz = end;
            assert_eq!(from_manifest(&manifest), None, "{start} {end}");
        }
        let mut absurd = drifted(0.0);
        (absurd.clock.calibration_end.frequency_hz, absurd.elapsed_ns) = (1e300, u64::MAX);
        assert!(
            warning(&absurd).is_none()
                || from_manifest(&absurd).is_some_and(|d| d.moment_ns == u64::MAX)
        );
    }
}
