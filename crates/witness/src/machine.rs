//! What is found out once a process: which counter to read, what a critical section tells here, the limits of
//! real-time threads.

use std::path::Path;
use std::sync::OnceLock;

use hourglass_clock::CounterKind;
use hourglass_clock::choice::choose;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::rseq::{self, ClearRule, RseqUnusable};
use hourglass_trace::cause::RtLimit;

use crate::sample::HypervisorEffects;

/// Facts about the machine.
#[derive(Debug)]
pub(crate) struct HostFacts {
    pub(crate) counter: Ticks,
    /// Counter and `CLOCK_MONOTONIC` at the start, ns.
    first: (u64, u64),
    pub(crate) tested: Result<ClearRule, RseqUnusable>,
    pub(crate) rt_limit: Option<RtLimit>,
    pub(crate) hypervisor: HypervisorEffects,
}

/// The counter by which spans are timed. All threads use one counter, so that a span may be timed across them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ticks {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    Processor,
    Os,
}

/// A counter beside `CLOCK_MONOTONIC`, from its first reading to the last.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CounterRate {
    first: u64,
    first_ns: u64,
    ticks: u64,
    ns: u64,
}

impl CounterRate {
    /// Converts ticks to ns, rounded down.
    pub(crate) fn length_ns(&self, ticks: u64) -> u64 {
        let length = u128::from(ticks) * u128::from(self.ns) / u128::from(self.ticks.max(1));
        u64::try_from(length).unwrap_or(u64::MAX)
    }

    /// When the counter was there, ns of `CLOCK_MONOTONIC`.
    pub(crate) fn at_ns(&self, ticks: u64) -> u64 {
        match ticks.checked_sub(self.first) {
            Some(since) => self.first_ns.saturating_add(self.length_ns(since)),
            None => self.first_ns.saturating_sub(self.length_ns(self.first - ticks)),
        }
    }
}

impl HostFacts {
    /// This machine's. The first call tests the kernel for some milliseconds.
    pub(crate) fn here() -> &'static HostFacts {
        static HERE: OnceLock<HostFacts> = OnceLock::new();
        HERE.get_or_init(|| {
            let counter = Ticks::of(choose(Path::new("/")).kind);
            // The first, so that the test below is between it and any other.
            let first = counter.with_clock();
            let (tested, rt_limit) = (rseq::self_test(), rt_limit());
            HostFacts { counter, first, tested, rt_limit, hypervisor: hypervisor_effects() }
        })
    }

    /// How ticks become nanoseconds, as it is found now.
    pub(crate) fn rate(&self) -> CounterRate {
        let (now, now_ns) = self.counter.with_clock();
        let (first, first_ns) = self.first;
        let ticks = now.saturating_sub(first).max(1);
        CounterRate { first, first_ns, ticks, ns: now_ns.saturating_sub(first_ns) }
    }

    /// Converts ticks to ns, rounded up, with the error of the samples added.
    pub(crate) fn length_ns(&self, ticks: u64) -> u64 {
        /// Distance of the samples of counter and clock, unless the thread is off the CPU between the two.
        const APART_NS: u64 = 1_000;
        let (now, now_ns) = self.counter.with_clock();
        let (first, first_ns) = self.first;
        let passed = u128::from(now.saturating_sub(first)).max(1);
        let ns = u128::from(now_ns.saturating_sub(first_ns));
        let length = (u128::from(ticks) * ns).div_ceil(passed);
        u64::try_from(length).unwrap_or(u64::MAX).saturating_add(APART_NS)
    }
}

impl Ticks {
    fn of(kind: CounterKind) -> Ticks {
        match kind {
            CounterKind::OsMonotonic => Ticks::Os,
            #[allow(unreachable_patterns)] // on processors without a counter of their own
            _ => Ticks::processor(),
        }
    }

    /// The processor's own, if it has one.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[inline(always)]
    pub(crate) fn processor() -> Ticks {
        Ticks::Processor
    }

    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub(crate) fn processor() -> Ticks {
        Ticks::Os
    }

    /// It and `CLOCK_MONOTONIC` at the same time, but for an interruption: the closest of a few pairs.
    fn with_clock(self) -> (u64, u64) {
        const PAIRS: u32 = 3;
        let pair = |_| {
            let before = self.read();
            let ns = now_ns(ClockId::Monotonic);
            (self.read().saturating_sub(before), before, ns)
        };
        (0..PAIRS).map(pair).min().map_or((0, 0), |(_, ticks, ns)| (ticks, ns))
    }

    #[inline(always)]
    pub(crate) fn read(self) -> u64 {
        match self {
            #[cfg(target_arch = "x86_64")]
            Ticks::Processor => hourglass_sys::counter::tsc(),
            #[cfg(target_arch = "aarch64")]
            Ticks::Processor => hourglass_sys::counter::cntvct(),
            Ticks::Os => now_ns(ClockId::Monotonic),
        }
    }
}

/// A processor receives the interrupt of a switch within microseconds, and its kernel has all of the time. In a virtual
/// machine the host delivers interrupts and time: fewer than one loss in a thousand exceeded these bounds
/// (`hourglass-bench witness --only truth`, KVM).
fn hypervisor_effects() -> HypervisorEffects {
    const OF_A_HOST: HypervisorEffects =
        HypervisorEffects { preempt_delay_ns: 250_000, woken_ns: 1_000_000, stolen_ns: 5_000_000 };
    if may_be_virtual() { OF_A_HOST } else { HypervisorEffects::default() }
}

#[cfg(target_arch = "x86_64")]
fn may_be_virtual() -> bool {
    use hourglass_sys::cpuid;
    cpuid::faults() == Some(true) || cpuid::under_hypervisor()
}

#[cfg(not(target_arch = "x86_64"))]
fn may_be_virtual() -> bool {
    true
}

fn rt_limit() -> Option<RtLimit> {
    let us = |path: &str| {
        let text = std::fs::read_to_string(path).ok()?;
        // No limit is -1.
        text.trim().parse::<u64>().ok()?.checked_mul(1_000)
    };
    let runtime_ns = us("/proc/sys/kernel/sched_rt_runtime_us")?;
    let period_ns = us("/proc/sys/kernel/sched_rt_period_us")?;
    (runtime_ns < period_ns).then_some(RtLimit {
        runtime_ns,
        period_ns,
        logged: false,
        others_ns: 0,
        others_ended: false,
    })
}
