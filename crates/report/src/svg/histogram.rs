//! Histograms of times in bins of equal ratios, and the lines of steps that show them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::chart::Axes;

/// Bins in a decade of latencies; their numbers have three digits, so that bins are filled evenly.
pub(crate) const BINS_A_DECADE: u32 = 20;

/// The bin that holds a time, with `a_decade` bins in each decade; times below a nanosecond are in the first.
pub(crate) fn bin_of(ns: u64, a_decade: u32) -> u32 {
    ((ns.max(1) as f64).log10() * f64::from(a_decade) + 1e-9).floor() as u32
}

/// The lower edge of a bin, ns.
pub(crate) fn power(bin: u32, a_decade: u32) -> f64 {
    10f64.powf(f64::from(bin) / f64::from(a_decade))
}

/// How often each bin was met, of times (ns) with their counts.
pub(crate) fn bins(counts: impl Iterator<Item = (u64, u64)>, a_decade: u32) -> BTreeMap<u32, u64> {
    let mut bins: BTreeMap<u32, u64> = BTreeMap::new();
    for (ns, count) in counts {
        let sum = bins.entry(bin_of(ns, a_decade)).or_default();
        *sum = sum.saturating_add(count);
    }
    bins
}

/// Each bin from its lower to its upper edge.
pub(crate) fn steps(bins: &BTreeMap<u32, u64>, a_decade: u32) -> Vec<(f64, f64, f64)> {
    let step =
        |(bin, n): (&u32, &u64)| (power(*bin, a_decade), power(bin + 1, a_decade), *n as f64);
    bins.iter().map(step).collect()
}

/// The line of steps; steps that touch are joined, and where nothing was counted it is on the ground.
pub(crate) fn path(steps: &[(f64, f64, f64)], axes: &Axes) -> String {
    let ground = axes.area.bottom;
    let x = |at| axes.x(at).unwrap_or_default();
    let mut d = String::new();
    let mut end: Option<f64> = None;
    for &(from, to, height) in steps {
        let Some(y) = axes.y(height) else { continue };
        let touches = end.is_some_and(|end| (end - from).abs() <= from.abs() * 1e-9);
        if !touches {
            if end.is_some() {
                let _ = write!(d, "V{ground}");
            }
            let _ = write!(d, "M{:.1} {ground}", x(from));
        }
        let _ = write!(d, "V{y:.1}H{:.1}", x(to));
        end = Some(to);
    }
    if end.is_some() {
        let _ = write!(d, "V{ground}");
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_within_its_bin() {
        for ns in [1, 9, 10, 11, 999, 1_000, 123_456_789, u64::MAX] {
            for a_decade in [10, BINS_A_DECADE] {
                let bin = bin_of(ns, a_decade);
                assert!(power(bin, a_decade) <= ns as f64 * 1.000_001, "{ns}");
                assert!(power(bin + 1, a_decade) > ns as f64 * 0.999_999, "{ns}");
            }
        }
        assert_eq!((bin_of(0, 10), bin_of(1_000, 10)), (0, 30));
    }
}
