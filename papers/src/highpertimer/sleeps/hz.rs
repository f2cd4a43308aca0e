//! The thesis' probe for HZ (section 5.3.1): what CPU time is counted for being busy, here and by a
//! kernel that counts in ticks.

use hourglass_clock::process;
use hourglass_sys::thread;

/// The busy time of the probe, ns.
pub(crate) const BUSY_NS: u64 = 14_500_000;

pub(crate) const RATES: [u32; 4] = [100, 250, 300, 1_000];

/// Keeps this thread busy and tells what `getrusage` counts, ns.
pub(crate) fn counted_here(busy_ns: u64) -> u64 {
    let clock = process::clock();
    let before = thread::rusage_time_ns();
    let begun = clock.now_ordered();
    while clock.now_ordered().saturating_sub(begun) < busy_ns {
        std::hint::spin_loop();
    }
    thread::rusage_time_ns().saturating_sub(before)
}

/// A kernel that counts CPU time in whole ticks, and a thread that is busy again and again, each
/// time from another moment between two ticks on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TickKernel {
    hz: u64,
    now_ns: u64,
}

impl TickKernel {
    pub(crate) fn new(hz: u32) -> TickKernel {
        TickKernel { hz: u64::from(hz.max(1)), now_ns: 0 }
    }

    /// What it counts, ns: each tick that finds the thread busy charges a whole tick.
    pub(crate) fn counted(&mut self, busy_ns: u64) -> u64 {
        /// Between two tries, and in no simple ratio to any tick.
        const PAUSE_NS: u64 = 7_654_321;
        const SECOND_NS: u64 = 1_000_000_000;
        let ticks = |ns: u64| ns.saturating_mul(self.hz) / SECOND_NS;
        let hits = ticks(self.now_ns + busy_ns) - ticks(self.now_ns);
        self.now_ns += busy_ns + PAUSE_NS;
        hits * SECOND_NS / self.hz
    }
}

/// The most frequent of some values to a tenth of a millisecond, ns, and how often it is there.
pub(crate) fn most_frequent(values: &[u64]) -> Option<(u64, usize)> {
    const SAME_NS: u64 = 100_000;
    let rounded = |ns: u64| (ns + SAME_NS / 2) / SAME_NS * SAME_NS;
    let votes = |ns: u64| values.iter().filter(|value| rounded(**value) == ns).count();
    let candidates = values.iter().map(|ns| (votes(rounded(*ns)), rounded(*ns)));
    candidates.max().map(|(votes, ns)| (ns, votes))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Table 5.3: 10, 16, 13.3 ms are the most frequent for HZ 100, 250, 300; for 1000 both 14 and
    /// 15 ms are as frequent, since 14.5 ms lie in the middle.
    #[test]
    fn ticks_count_as_in_table_5_3() {
        let found = |hz| {
            let mut kernel = TickKernel::new(hz);
            let counted: Vec<u64> = (0..500).map(|_| kernel.counted(BUSY_NS)).collect();
            most_frequent(&counted).unwrap()
        };
        let usual = [100, 250, 300].map(|hz| found(hz).0);
        assert_eq!(usual, [10_000_000, 16_000_000, 13_300_000]);
        let (counted, votes) = found(1_000);
        assert!(counted == 14_000_000 || counted == 15_000_000, "{counted}");
        assert!(votes < 300, "{votes}");
        assert_eq!(most_frequent(&[]), None);
    }

    #[test]
    fn being_busy_is_counted() {
        let best = (0..5).map(|_| counted_here(2_000_000)).max();
        assert!(best.is_some_and(|ns| ns > 0));
    }
}
