//! The mean of repeated measurements.

use super::Estimate;
use super::quantiles::students_t;

/// Mean of `samples` with the interval of Student's t (Jain, *The Art of Computer Systems
/// Performance Analysis*, 1991, section 13.2; used by the paper in section 5.2).
///
/// `None` without a measurement, or if one is not finite. The interval of one measurement is
/// unbounded.
pub fn mean(samples: &[f64], confidence: f64) -> Option<Estimate> {
    if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
        return None;
    }
    let count = samples.len() as f64;
    let mean = samples.iter().sum::<f64>() / count;
    let count_all = samples.len() as u64;
    if samples.len() < 2 {
        let (lo, hi) = (f64::NEG_INFINITY, f64::INFINITY);
        return Some(Estimate { value: mean, lo, hi, count: count_all });
    }
    let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
    let error = (squares / (count - 1.0) / count).sqrt();
    let half = students_t(confidence, count - 1.0) * error;
    Some(Estimate { value: mean, lo: mean - half, hi: mean + half, count: count_all })
}

#[cfg(test)]
mod tests {
    use super::super::USUAL;
    use super::*;

    /// Jain (1991), example 13.4: two systems on six workloads. The differences have mean -0.32 and
    /// variance 81.62; with a quantile of 2.015, the 90 % interval is (-7.75, 7.11).
    #[test]
    fn an_example_of_jains() {
        let differences: Vec<f64> =
            [(5.4, 19.1), (16.6, 3.5), (0.6, 3.4), (1.4, 2.5), (0.6, 3.6), (7.3, 1.7)]
                .iter()
                .map(|(a, b)| a - b)
                .collect();
        let found = mean(&differences, 0.90).unwrap();
        assert!((found.value + 0.32).abs() < 0.01, "{found:?}");
        assert!((found.lo + 7.75).abs() < 0.05 && (found.hi - 7.11).abs() < 0.05, "{found:?}");
    }

    #[test]
    fn few_and_none() {
        assert_eq!(mean(&[], USUAL), None);
        assert_eq!(mean(&[1.0, f64::NAN], USUAL), None);
        let one = mean(&[5.0], USUAL).unwrap();
        assert_eq!((one.value, one.hi), (5.0, f64::INFINITY));
        let same = mean(&[3.0; 4], USUAL).unwrap();
        assert_eq!((same.lo, same.hi, same.count), (3.0, 3.0, 4));
    }
}
