//! Quantiles of Student's t and of the normal distribution.
//!
//! Owns: what is asked of the library, and its limits. Must not: hold tables.

use statrs::distribution::{ContinuousCDF, Normal, StudentsT};

/// From this number of degrees of freedom on, t differs from the normal distribution by less than one in
/// ten thousand, and the library's series for it converges slowly.
const NORMAL_FROM: f64 = 20_000.0;

/// The value that a standard normal quantity exceeds in absolute value with probability
/// `1 - confidence`: 1.959964 for 0.95.
pub(super) fn normal(confidence: f64) -> f64 {
    Normal::standard().inverse_cdf(upper(confidence))
}

/// The probability that a standard normal quantity lies below `z`.
pub(super) fn normal_below(z: f64) -> f64 {
    Normal::standard().cdf(z)
}

/// The quantile as [`normal`], for Student's t with `freedom` degrees of freedom; infinite at 0.
pub(super) fn students_t(confidence: f64, freedom: f64) -> f64 {
    if freedom >= NORMAL_FROM {
        return normal(confidence);
    }
    StudentsT::new(0.0, 1.0, freedom).map_or(f64::INFINITY, |t| refined(&t, upper(confidence)))
}

/// The library's quantile, made exact to the last digits by Newton's method on its distribution
/// function.
fn refined(t: &StudentsT, below: f64) -> f64 {
    use statrs::distribution::Continuous;
    let mut at = t.inverse_cdf(below);
    for _ in 0..4 {
        let step = (t.cdf(at) - below) / t.pdf(at);
        if !step.is_finite() {
            break;
        }
        at -= step;
    }
    at
}

/// The part of the distribution below the upper end of a two-sided interval.
fn upper(confidence: f64) -> f64 {
    0.5 + confidence.clamp(0.0, 1.0) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table of two-sided quantiles in R. Jain, *The Art of Computer Systems Performance Analysis*
    /// (1991), appendix A.4, which the paper uses (section 5.2); to its three digits. The further
    /// digits are those of the closed forms for 1, 2 and 4 degrees of freedom.
    #[test]
    fn the_table_of_students_t() {
        let table = [
            (1.0, 0.90, 6.314),
            (1.0, 0.95, 12.706),
            (2.0, 0.95, 4.303),
            (3.0, 0.95, 3.182),
            (4.0, 0.95, 2.776),
            (5.0, 0.99, 4.032),
            (9.0, 0.95, 2.262),
            (14.0, 0.95, 2.145),
            (14.0, 0.99, 2.977),
            (29.0, 0.95, 2.045),
            (60.0, 0.95, 2.000),
            (120.0, 0.95, 1.980),
        ];
        for (freedom, confidence, value) in table {
            let found = students_t(confidence, freedom);
            assert!((found - value).abs() < 0.0006, "{freedom} {confidence}: {found}");
        }
        let p: f64 = 0.975;
        let one = ((p - 0.5) * std::f64::consts::PI).tan();
        assert!((students_t(0.95, 1.0) / one - 1.0).abs() < 1e-9);
        let two = (2.0 * p - 1.0) * (2.0 / (4.0 * p * (1.0 - p))).sqrt();
        assert!((students_t(0.95, 2.0) / two - 1.0).abs() < 1e-9);
        let alpha = (4.0 * p * (1.0 - p)).sqrt();
        let q = (alpha.acos() / 3.0).cos() / alpha;
        assert!((students_t(0.95, 4.0) / (2.0 * (q - 1.0).sqrt()) - 1.0).abs() < 1e-9);
    }

    /// With freedom it goes down to the normal quantile, also where the branches meet.
    #[test]
    fn t_becomes_normal() {
        assert!((normal(0.95) - 1.959_963_984_540_054).abs() < 1e-9);
        assert!((normal(0.99) - 2.575_829_303_548_901).abs() < 1e-9);
        assert!((normal_below(1.959_963_984_540_054) - 0.975).abs() < 1e-9);
        let mut last = f64::INFINITY;
        for freedom in [1.0, 2.0, 5.0, 30.0, 300.0, 3_000.0, 19_999.0, 20_000.0, 1e7] {
            let found = students_t(0.95, freedom);
            assert!(found <= last, "{freedom}: {found} after {last}");
            last = found;
        }
        assert!((students_t(0.95, 19_999.0) / normal(0.95) - 1.0).abs() < 1e-4);
        assert_eq!(students_t(0.95, 0.0), f64::INFINITY);
    }
}
