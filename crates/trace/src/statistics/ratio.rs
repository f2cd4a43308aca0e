//! The ratio of two quantities, measured in pairs.

use super::{Estimate, mean};

/// The ratio `b / a` of pairs measured next to each other: the geometric mean of the single ratios,
/// with the interval of Student's t on their logarithms. Drift that both of a pair share drops out.
///
/// `None` without a pair, or if a measurement is not above zero.
pub fn paired_ratio(pairs: &[(f64, f64)], confidence: f64) -> Option<Estimate> {
    if pairs.iter().any(|(a, b)| !(*a > 0.0 && *b > 0.0)) {
        return None;
    }
    let logs: Vec<f64> = pairs.iter().map(|(a, b)| (b / a).ln()).collect();
    let found = mean(&logs, confidence)?;
    let (value, lo, hi) = (found.value.exp(), found.lo.exp(), found.hi.exp());
    Some(Estimate { value, lo, hi, count: found.count })
}

#[cfg(test)]
mod tests {
    use super::super::USUAL;
    use super::*;

    /// A machine that becomes slower and slower moves both, and the ratio stays.
    #[test]
    fn common_drift_drops_out() {
        let pairs: Vec<(f64, f64)> = (1..=8).map(|n| (f64::from(n), 1.5 * f64::from(n))).collect();
        let found = paired_ratio(&pairs, USUAL).unwrap();
        assert!((found.value - 1.5).abs() < 1e-12 && found.hi - found.lo < 1e-9, "{found:?}");
    }

    #[test]
    fn twice_and_half_make_one() {
        let found = paired_ratio(&[(1.0, 2.0), (2.0, 1.0)], USUAL).unwrap();
        assert!((found.value - 1.0).abs() < 1e-12 && found.lo < 0.01 && found.hi > 100.0);
        assert_eq!(paired_ratio(&[(0.0, 1.0)], USUAL), None);
        assert_eq!(paired_ratio(&[(1.0, f64::NAN)], USUAL), None);
        assert_eq!(paired_ratio(&[], USUAL), None);
    }
}
