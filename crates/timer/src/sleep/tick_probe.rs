//! The thesis' way to find the rate of the scheduler's tick (section 5.3.1).

use std::fmt;

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;
use hourglass_sys::thread;

use super::settings::SleepPolicy;

/// How long the probe keeps the CPU busy, ns: "trade-off value of sleep time - 14500 microseconds".
const BUSY_NS: u64 = 14_500_000;
/// How often; the most frequent answer counts.
const TRIES: usize = 5;
/// What the published program takes where it finds nothing.
const FALLBACK_HZ: u32 = 250;
/// Two times as the thesis prints them are the same up to this, ns.
const SAME_NS: u64 = 250_000;

/// Table 5.3 and the text above it: HZ, and the CPU time counted in 14.5 ms of busy waiting, ns; the
/// usual one and the "unlikely" one. 16 ms stand for both 250 and 300; the former is meant first.
const TABLE_5_3: [(u32, [u64; 2]); 4] = [
    (100, [10_000_000, 20_000_000]),
    (250, [16_000_000, 12_000_000]),
    (300, [13_333_333, 16_000_000]),
    (1_000, [14_000_000, 15_000_000]),
];

/// What the thesis' probe for HZ found: 14.5 ms of busy waiting, and how much CPU time the kernel
/// counts for it.
///
/// It rests on kernels that count CPU time in whole ticks (`CONFIG_TICK_CPU_ACCOUNTING` before the
/// precise counters were used for threads). Others count 14.5 ms, which stands in no row of the
/// table, so that nothing is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HzProbe {
    /// The rate to go by, ticks a second: the one found, else 250 as in the published program.
    pub hz: u32,
    /// The rate that most tries spoke for, if any did.
    pub found: Option<u32>,
    /// How many tries spoke for it.
    pub votes: u32,
    /// CPU time counted in each try, ns.
    pub counted_ns: [u64; TRIES],
}

impl HzProbe {
    /// Keeps this thread busy for 73 ms and looks.
    #[must_use]
    pub fn run<B: Timebase>(clock: &Clock<B>) -> HzProbe {
        HzProbe::with(|| {
            let before = thread::rusage_time_ns();
            let begun = clock.now_ordered();
            while clock.now_ordered().saturating_sub(begun) < BUSY_NS {
                std::hint::spin_loop();
            }
            thread::rusage_time_ns().saturating_sub(before)
        })
    }

    /// A probe with another way to be busy for 14.5 ms and return the CPU time counted, ns.
    #[must_use]
    pub fn with(mut busy: impl FnMut() -> u64) -> HzProbe {
        let counted_ns = std::array::from_fn(|_| busy());
        let votes_for = |hz| counted_ns.iter().filter(|ns| meaning(**ns) == Some(hz)).count();
        let most = TABLE_5_3.iter().map(|(hz, _)| (votes_for(*hz), *hz)).max_by_key(|(n, _)| *n);
        let (votes, found) = match most {
            Some((votes, hz)) if votes > 0 => (votes, Some(hz)),
            _ => (0, None),
        };
        let votes = u32::try_from(votes).unwrap_or(u32::MAX);
        HzProbe { hz: found.unwrap_or(FALLBACK_HZ), found, votes, counted_ns }
    }

    /// The thesis' policy with that rate.
    #[must_use]
    pub const fn policy(self) -> SleepPolicy {
        SleepPolicy::Thesis { hz: self.hz }
    }
}

/// What a CPU time counted says of HZ.
fn meaning(counted_ns: u64) -> Option<u32> {
    let row = |usual: usize| {
        TABLE_5_3.iter().find(|(_, times)| times[usual].abs_diff(counted_ns) <= SAME_NS)
    };
    row(0).or_else(|| row(1)).map(|(hz, _)| *hz)
}

impl fmt::Display for HzProbe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.found {
            Some(hz) => write!(f, "HZ {hz} ({} of {TRIES} tries; unreliable)", self.votes),
            None => write!(f, "HZ not found, {FALLBACK_HZ} taken (unreliable)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A kernel that counts in whole ticks, as those of Figure 5.4 did: how often the tick hits a
    /// thread that is busy for 14.5 ms depends on when the thread begins.
    fn counting_in_ticks(tick_ns: u64) -> impl FnMut() -> u64 {
        let mut begin = 0;
        move || {
            begin += 14_500_000 + 7_654_321;
            ((begin + BUSY_NS) / tick_ns - begin / tick_ns) * tick_ns
        }
    }

    #[test]
    fn kernels_that_count_in_ticks_are_recognized() {
        for hz in [100, 250, 1_000] {
            let probe = HzProbe::with(counting_in_ticks(1_000_000_000 / u64::from(hz)));
            assert_eq!((probe.hz, probe.found), (hz, Some(hz)), "{probe} {probe:?}");
        }
        assert_eq!(HzProbe::with(|| 13_333_000).hz, 300);
        assert_eq!(HzProbe::with(|| 16_000_000).hz, 250);
    }

    /// What kernels of today count; the published program then takes 250.
    #[test]
    fn precise_counting_tells_nothing() {
        let probe = HzProbe::with(|| 14_500_000);
        assert_eq!((probe.hz, probe.found, probe.votes), (250, None, 0));
        assert_eq!(probe.to_string(), "HZ not found, 250 taken (unreliable)");
        assert!(!probe.policy().is_reliable());
    }
}
