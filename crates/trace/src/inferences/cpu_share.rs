//! How much of the time each thread ran (section 3.1).

use std::collections::BTreeMap;

use crate::Interval;

use super::ThreadFact;
use crate::statistics::{Estimate, USUAL, Windows};

/// Sums up what each thread received, in parts of its time.
#[derive(Clone, Debug, Default)]
pub struct CpuShares(BTreeMap<u32, (Windows, u64)>);

impl CpuShares {
    pub fn of(threads: &[ThreadFact]) -> CpuShares {
        let windows = |fact: &ThreadFact| {
            let windows = Windows::between(fact.start_ns, fact.finish_ns)?;
            Some((fact.thread, (windows, 0)))
        };
        CpuShares(threads.iter().filter_map(windows).collect())
    }

    pub fn push(&mut self, interval: &Interval) {
        if let Some((windows, count)) = self.0.get_mut(&interval.thread) {
            windows.stretch(interval.start_ns, interval.end_ns);
            *count += 1;
        }
    }

    /// The share of each thread that has a record, from 0 to 1, with its 95 % interval.
    pub fn finish(self) -> Vec<(u32, Estimate)> {
        let share = |(thread, (windows, count)): (u32, (Windows, u64))| {
            let rate = windows.rate(USUAL).filter(|_| count > 0)?;
            Some((thread, Estimate { hi: rate.hi.min(1.0), count, ..rate }))
        };
        self.0.into_iter().filter_map(share).collect()
    }
}

/// The share of the CPU that each thread had; see [`CpuShares`].
pub fn cpu_shares(
    trace: impl IntoIterator<Item = Interval>,
    threads: &[ThreadFact],
) -> Vec<(u32, Estimate)> {
    let mut shares = CpuShares::of(threads);
    trace.into_iter().for_each(|interval| shares.push(&interval));
    shares.finish()
}

#[cfg(test)]
mod tests {
    use crate::IntervalStart;

    use super::*;

    /// PERIODIC 3ms 8ms has three eighths.
    #[test]
    fn a_periodic_thread_has_its_share() {
        const MS: i64 = 1_000_000;
        let fact = ThreadFact {
            thread: 4,
            start_ns: 0,
            finish_ns: 800 * MS,
            never_blocks: false,
            highest: false,
        };
        let records = (0..100)
            .map(|n| Interval::new(4, 0, n * 8 * MS, (n * 8 + 3) * MS, IntervalStart::Wait));
        let found = cpu_shares(records, &[fact]);
        let [(4, share)] = found[..] else { panic!("{found:?}") };
        assert!((share.value - 0.375).abs() < 1e-9 && share.half_width() < 1e-9, "{share:?}");
        assert!(cpu_shares([], &[fact]).is_empty(), "a thread without a record has no share");
    }
}
