//! How a sleeper is to sleep.

use std::fmt;

/// How the time until the deadline is spent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SleepPolicy {
    /// In the kernel until a learnt margin before the deadline, then spinning.
    #[default]
    Learned,
    /// As the thesis does it (section 5.3.2, listing 5.3): a relative kernel wait for all but one
    /// tick of the scheduler, with the thread's own timer slack, then spinning. Kept for comparison;
    /// see [`SleepPolicy::is_reliable`].
    Thesis {
        /// Ticks a second, 1 to 10,000 (beyond that taken as that); what [`super::HzProbe`] finds.
        hz: u32,
    },
    /// In the kernel until the deadline. Costs least, and is late by the kernel's wake-up.
    KernelOnly,
    /// Spinning all the time. A whole CPU; real-time threads that do it for long are throttled.
    SpinOnly,
}

const HIGHEST_HZ: u32 = 10_000;

impl SleepPolicy {
    /// Whether the policy does on every machine what it is for. The thesis' does not: a tick (its
    /// 1/HZ) is not what a sleep is late by since timers are not bound to ticks, so that it spins
    /// up to a tick of each sleep; its relative wait adds whatever happens before the kernel is
    /// entered; and its probe for HZ needs a kernel that counts CPU time in ticks.
    #[must_use]
    pub const fn is_reliable(self) -> bool {
        !matches!(self, SleepPolicy::Thesis { .. })
    }

    /// The thesis' tick, ns; `None` for the other policies.
    #[must_use]
    pub fn tick_ns(self) -> Option<u64> {
        match self {
            SleepPolicy::Thesis { hz } => Some(1_000_000_000 / u64::from(hz.clamp(1, HIGHEST_HZ))),
            _ => None,
        }
    }
}

impl fmt::Display for SleepPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SleepPolicy::Learned => f.write_str("learned"),
            SleepPolicy::Thesis { hz } => write!(f, "thesis (HZ {hz}, unreliable)"),
            SleepPolicy::KernelOnly => f.write_str("kernel only"),
            SleepPolicy::SpinOnly => f.write_str("spin only"),
        }
    }
}

/// What a sleep may spin.
///
/// By default spinning takes no more of a CPU than the kernel's wait does, so that a sleep costs at
/// most twice a plain one; where that does not cover two of three wake-ups, half a percent of the
/// time slept may be spun besides to cover those two.
///
/// What a wait takes is measured while sleeping, and what the sleeper itself takes counts as spinning. Kept on average: what a sleep spins too much is taken
/// from the next ones, up to 16 sleeps' worth. A sleep no longer than a wait and what may be spun may be
/// spun as a whole. Whatever is allowed, no more is spun than the wanted quantile asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budget {
    /// What may be spun in a sleep, however short, ns.
    pub per_sleep_ns: u64,
    /// And this share of what the kernel's wait takes of the CPU, parts per million; more than a
    /// million is allowed.
    pub of_wait_ppm: u32,
    /// And this share of the time slept, parts per million, to cover two of three wake-ups and no more.
    pub share_ppm: u32,
}

impl Budget {
    /// The cost of the kernel's wait, and half a percent of the time slept for two of three wake-ups.
    pub const DEFAULT: Budget =
        Budget { per_sleep_ns: 0, of_wait_ppm: 1_000_000, share_ppm: 5_000 };

    /// The cost of the kernel's wait, and a two-thousandth of the time slept for two of three wake-ups.
    pub const FRUGAL: Budget = Budget { share_ppm: 500, ..Budget::DEFAULT };

    /// Whatever the wanted quantile needs.
    pub const UNLIMITED: Budget = Budget { per_sleep_ns: u64::MAX, ..Budget::DEFAULT };
}

impl Default for Budget {
    fn default() -> Self {
        Budget::DEFAULT
    }
}

/// Which reading of the clock ends a sleep.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SleepEnd {
    /// `now_ordered` is at the deadline. Another reader of `CLOCK_MONOTONIC` may see it up to the
    /// clock's bound later (some 100 ns; usually some ns).
    #[default]
    Reached,
    /// The earliest time that `now_bounded` allows for is at the deadline: `CLOCK_MONOTONIC` has
    /// surely reached it. Later by the bound.
    SurelyReached,
}

/// How a sleeper is to sleep: [`SleeperSettings::DEFAULT`] unless something is known, and
/// [`SleeperSettings::FRUGAL`] or [`SleeperSettings::PRECISE`] where CPU time or misses count for more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SleeperSettings {
    /// Whether a sleep waits, spins or does both.
    pub policy: SleepPolicy,
    /// What a sleep may spin, with [`SleepPolicy::Learned`].
    pub budget: Budget,
    /// Which share of the kernel's wake-ups the margin is to cover, parts per million, as far as
    /// the budget allows.
    pub quantile_ppm: u32,
    /// The longest margin, ns; at most 0.5 ms are ever learnt.
    pub longest_margin_ns: u64,
    /// What the kernel is thought to wake late by before it was seen to, ns.
    pub seed_ns: u64,
    /// One of this many sleeps that would only be spun waits in the kernel, to see whether it
    /// could; fewer if that made it late.
    pub sample_every: u32,
    /// Which reading of the clock ends a sleep.
    pub ends_when: SleepEnd,
}

impl SleeperSettings {
    /// Learnt margins that cover 99 % of the wake-ups within [`Budget::DEFAULT`].
    pub const DEFAULT: SleeperSettings = SleeperSettings {
        policy: SleepPolicy::Learned,
        budget: Budget::DEFAULT,
        quantile_ppm: 990_000,
        longest_margin_ns: 500_000,
        seed_ns: 60_000,
        sample_every: 32,
        ends_when: SleepEnd::Reached,
    };

    /// Little CPU: margins that cover three of four wake-ups, within [`Budget::FRUGAL`]. The median sleep is
    /// precise, one of four is late by what the kernel's wake-ups differ. A quarter of the wait as the budget
    /// left the median late by 2 to 12 us, for the CPU time at which a fixed margin is late by 0.5 to 6.
    pub const FRUGAL: SleeperSettings = SleeperSettings {
        budget: Budget::FRUGAL,
        quantile_ppm: 750_000,
        ..SleeperSettings::DEFAULT
    };

    /// Margins that cover 99.9 % of the wake-ups, whatever that costs. On a busy machine, where wake-ups
    /// are late by hundreds of microseconds, that is much of a CPU.
    pub const PRECISE: SleeperSettings = SleeperSettings {
        budget: Budget::UNLIMITED,
        quantile_ppm: 999_000,
        ..SleeperSettings::DEFAULT
    };

    /// The default with another policy.
    #[must_use]
    pub const fn with_policy(policy: SleepPolicy) -> SleeperSettings {
        SleeperSettings { policy, ..SleeperSettings::DEFAULT }
    }
}

impl Default for SleeperSettings {
    fn default() -> Self {
        SleeperSettings::DEFAULT
    }
}
