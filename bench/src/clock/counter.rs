//! The processor's counter, bare: what our reads are compared with.
//!
//! Single instructions, inlined always, so that a loop over them holds nothing else.

use hourglass_clock::SourceName;
use hourglass_clock::timekeeping::{Native, SourceId, Timebase};

pub(super) use native::{NAME, ORDERED, PLAIN, SOURCE, ordered, plain};

/// Whether the counter can be read here without being killed.
pub(super) fn is_readable() -> bool {
    Native.supports(SOURCE)
}

#[cfg(target_arch = "x86_64")]
mod native {
    pub(in super::super) use hourglass_sys::counter::{tsc as plain, tsc_after_earlier as ordered};

    pub(in super::super) const SOURCE: super::SourceId = super::SourceId::TSC;
    pub(in super::super) const NAME: super::SourceName = super::SourceName::Tsc;
    pub(in super::super) const PLAIN: &str = "rdtsc";
    pub(in super::super) const ORDERED: &str = "rdtscp";
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub(super) fn fenced() -> u64 {
    hourglass_sys::counter::fence_instructions();
    plain()
}

#[cfg(target_arch = "aarch64")]
mod native {
    pub(in super::super) use hourglass_sys::counter::{
        cntvct as plain, cntvct_after_earlier as ordered,
    };

    pub(in super::super) const SOURCE: super::SourceId = super::SourceId::CNTVCT;
    pub(in super::super) const NAME: super::SourceName = super::SourceName::Cntvct;
    pub(in super::super) const PLAIN: &str = "cntvct";
    pub(in super::super) const ORDERED: &str = "isb;cntvct";
}

/// Elsewhere no counter is read directly, and the kernel's coarse clock is what is cheapest.
#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
mod native {
    use hourglass_sys::clock::{ClockId, now_ns};

    pub(in super::super) const SOURCE: super::SourceId = super::SourceId::OS;
    pub(in super::super) const NAME: super::SourceName = super::SourceName::MONOTONIC;
    pub(in super::super) const PLAIN: &str = "monotonic_coarse";
    pub(in super::super) const ORDERED: &str = "monotonic_raw";

    pub(in super::super) fn plain() -> u64 {
        now_ns(ClockId::MonotonicCoarse)
    }

    pub(in super::super) fn ordered() -> u64 {
        now_ns(ClockId::MonotonicRaw)
    }
}
