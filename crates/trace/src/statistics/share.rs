//! How often something happens, of all times that it might have.

use super::Estimate;
use super::quantiles::normal;

/// The share of `hits` in `all`, from 0 to 1, with the score interval (E. B. Wilson, *Journal of the
/// American Statistical Association* 22, 1927), which is sound for rare events too: none seen in a
/// thousand still leaves up to 0.38 % possible. `None` where `all` is 0.
pub fn share(hits: u64, all: u64, confidence: f64) -> Option<Estimate> {
    if all == 0 {
        return None;
    }
    let (n, p) = (all as f64, hits.min(all) as f64 / all as f64);
    let z = normal(confidence);
    let z2 = z * z;
    let middle = (p + z2 / (2.0 * n)) / (1.0 + z2 / n);
    let reach = z / (1.0 + z2 / n) * (p * (1.0 - p) / n + z2 / (4.0 * n * n)).sqrt();
    let lo = if hits == 0 { 0.0 } else { (middle - reach).max(0.0) };
    let hi = if hits >= all { 1.0 } else { (middle + reach).min(1.0) };
    Some(Estimate { value: p, lo, hi, count: all })
}

#[cfg(test)]
mod tests {
    use super::super::USUAL;
    use super::*;

    /// R. G. Newcombe, *Statistics in Medicine* 17 (1998), table I, score method without continuity
    /// correction: 81/263, 15/148, 0/20, 1/29.
    #[test]
    fn newcombes_table() {
        for (hits, all, lo, hi) in [
            (81, 263, 0.2553, 0.3662),
            (15, 148, 0.0624, 0.1605),
            (0, 20, 0.0, 0.1611),
            (1, 29, 0.0061, 0.1718),
        ] {
            let found = share(hits, all, USUAL).unwrap();
            assert!((found.lo - lo).abs() < 6e-5 && (found.hi - hi).abs() < 6e-5, "{found:?}");
        }
        assert_eq!(share(3, 0, USUAL), None);
        assert_eq!(share(4, 4, USUAL).unwrap().hi, 1.0);
    }
}
