//! Dispatch latency: from when a thread becomes ready to when it runs (section 5.3, Table 1).

use crate::statistics::{Estimate, USUAL, percentile, share};

/// The limits of the paper's Table 1, ns.
pub const LATER_THAN_NS: [u64; 4] = [1_000_000, 5_000_000, 10_000_000, 50_000_000];

const PS_PER_NS: f64 = 1e-3;

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TailShare {
    pub than_ns: u64,
    pub samples: u64,
    /// The share of these records, from 0 to 1, with its 95 % interval.
    pub share: Estimate,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Dispatch {
    pub count: u64,
    /// Median, 99th and 99.9th percentile with their 95 % intervals, ns.
    pub p50: Estimate,
    /// See `p50`.
    pub p99: Estimate,
    /// See `p50`.
    pub p999: Estimate,
    pub max_ns: f64,
    /// One for each limit of [`LATER_THAN_NS`].
    pub later: Vec<TailShare>,
}

/// Sums up latencies, in picoseconds. `None` without one.
pub fn dispatch(latencies_ps: impl IntoIterator<Item = u64>) -> Option<Dispatch> {
    let mut sorted: Vec<u64> = latencies_ps.into_iter().collect();
    sorted.sort_unstable();
    let count = sorted.len() as u64;
    let at = |quantile| Some(percentile(&sorted, quantile, USUAL)?.scaled(PS_PER_NS));
    let later = |than_ns: u64| {
        let than_ps = than_ns.saturating_mul(1_000);
        let samples = count - sorted.partition_point(|ps| *ps <= than_ps) as u64;
        Some(TailShare { than_ns, samples, share: share(samples, count, USUAL)? })
    };
    Some(Dispatch {
        count,
        p50: at(0.5)?,
        p99: at(0.99)?,
        p999: at(0.999)?,
        max_ns: *sorted.last()? as f64 * PS_PER_NS,
        later: LATER_THAN_NS.into_iter().filter_map(later).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 1, Linux 2.4.17 plain: of about 65,000 samples 284, 56, 45 and 1 are later than 1, 5,
    /// 10 and 50 ms.
    #[test]
    fn a_line_of_table_1() {
        const MS: u64 = 1_000_000_000;
        let groups = [(1, 51 * MS), (44, 11 * MS), (11, 6 * MS), (228, 2 * MS)];
        let rare = groups.iter().flat_map(|(times, ps)| std::iter::repeat_n(*ps, *times));
        let found = dispatch(rare.chain(std::iter::repeat_n(70_000_000, 64_716))).unwrap();
        let samples: Vec<u64> = found.later.iter().map(|later| later.samples).collect();
        assert_eq!(samples, [284, 56, 45, 1]);
        assert_eq!((found.count, found.p50.value, found.max_ns), (65_000, 70_000.0, 51e6));
        assert_eq!(found.p999.value, 2e6, "65 of 65,000 may be later, and 56 are later than 2 ms");
        assert!(found.later[0].share.holds(284.0 / 65_000.0));
        // A sample at the limit is not later than it.
        assert_eq!(dispatch([MS]).unwrap().later[0].samples, 0);
        assert_eq!(dispatch([]), None);
    }
}
