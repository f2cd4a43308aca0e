//! This machine's counter and the kernel's clocks. On other systems than Linux: their clocks only.

use std::path::Path;

use hourglass_sys::clock::{ClockId, now_ns};
#[cfg(target_os = "linux")]
use hourglass_sys::{adjtimex, counter};

#[cfg(target_os = "linux")]
use super::inline_string::InlineString;
#[cfg(target_os = "linux")]
use super::reference_rate::ReferenceRate;
use super::settings::FrequencyHint;
#[cfg(target_os = "linux")]
use super::timebase::Leap;
use super::timebase::{Discipline, ReferenceClock, SourceId, Timebase};
#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
use crate::source::{Frequency, FrequencyOrigin};

/// The processor's counter and the clocks of the kernel it runs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Native;

#[cfg(target_os = "linux")]
impl From<adjtimex::Leap> for Leap {
    fn from(leap: adjtimex::Leap) -> Leap {
        match leap {
            adjtimex::Leap::None => Leap::None,
            adjtimex::Leap::Announced => Leap::Announced,
            adjtimex::Leap::Running => Leap::Running,
        }
    }
}

impl Timebase for Native {
    #[inline(always)]
    fn ticks(&self, source: SourceId) -> u64 {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if source == SourceId::TSC {
            return counter::tsc();
        }
        #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
        if source == SourceId::CNTVCT {
            return counter::cntvct();
        }
        os_ticks(source)
    }

    #[inline(always)]
    fn ticks_ordered(&self, source: SourceId) -> u64 {
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        if source == SourceId::TSC {
            return counter::tsc_after_earlier();
        }
        #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
        if source == SourceId::CNTVCT {
            return counter::cntvct_after_earlier();
        }
        os_ticks(source)
    }

    #[inline]
    fn ticks_enclosing(&self, source: SourceId) -> u64 {
        let ticks = self.ticks_ordered(source);
        #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
        counter::fence_instructions();
        // A second ordered read holds later instructions back; its value is not wanted.
        #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
        let _ = counter::cntvct_after_earlier();
        ticks
    }

    #[inline]
    fn reference_ns(&self, scale: ReferenceClock) -> u64 {
        now_ns(match scale {
            ReferenceClock::Monotonic => ClockId::Monotonic,
            ReferenceClock::Raw => ClockId::MonotonicRaw,
            ReferenceClock::Realtime => ClockId::Realtime,
            ReferenceClock::Tai => ClockId::Tai,
            ReferenceClock::Boottime => ClockId::Boottime,
        })
    }

    #[inline]
    fn supports(&self, source: SourceId) -> bool {
        match source {
            SourceId::OS => true,
            #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
            SourceId::TSC => counter::has_tsc_with_cpu(),
            #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
            SourceId::CNTVCT => true,
            _ => false,
        }
    }

    #[cfg(not(target_os = "linux"))]
    fn choose(&self, _root: &Path) -> SourceId {
        SourceId::OS
    }

    #[cfg(target_os = "linux")]
    fn choose(&self, root: &Path) -> SourceId {
        let Some((source, name)) = processor_counter() else { return SourceId::OS };
        let kernel = super::machine_watch::kernel_clocksource(root);
        let is_kernels = kernel.is_some_and(|kernel| kernel.as_str() == name);
        if is_kernels && !is_emulated(source) { source } else { SourceId::OS }
    }

    #[cfg(target_os = "linux")]
    fn examine(&self, source: SourceId, root: &Path) -> Option<InlineString<48>> {
        use crate::choice::{MeasurementLimits, SelectionPolicy, select};
        let effort = MeasurementLimits { root: root.to_owned(), ..MeasurementLimits::default() };
        let found = select(SelectionPolicy::Strict, &effort).ok()?;
        let report =
            found.sources.iter().find(|report| SourceId::from_name(report.name) == Some(source))?;
        (!report.trust.trusted).then(|| InlineString::new(&report.trust.reason))
    }

    #[cfg(not(target_os = "linux"))]
    fn discipline(&self) -> Option<Discipline> {
        None
    }

    #[cfg(target_os = "linux")]
    fn discipline(&self) -> Option<Discipline> {
        /// Length of an uncorrected tick, us.
        const TICK_US: i64 = 10_000;
        let found = adjtimex::discipline().ok()?;
        // Frequency in 2^-16 ppm, tick in units of 100 ppm; both to 2^-32.
        let by_frequency = found.frequency.saturating_mul(1 << 16) / 1_000_000;
        let by_tick = (found.tick_us - TICK_US).saturating_mul(1 << 32) / TICK_US;
        Some(Discipline {
            synchronised: found.synchronised,
            max_error_ns: found.max_error_us.saturating_mul(1_000),
            correction: by_frequency.saturating_add(by_tick),
            slewing: found.slewing,
            leap: found.leap.into(),
        })
    }

    #[cfg(target_os = "linux")]
    #[inline(always)]
    fn generation(&self) -> u32 {
        super::kernel_page::generation()
    }

    #[cfg(target_os = "linux")]
    fn steering(&self, source: SourceId) -> ReferenceRate {
        super::kernel_page::steering(source)
    }

    #[cfg(target_os = "linux")]
    fn generation_address(&self) -> u64 {
        hourglass_sys::vvar::watched_address()
    }

    fn stated(&self, source: SourceId) -> Option<FrequencyHint> {
        stated(source)
    }
}

/// The processor's counter and what the kernel calls it, if nothing that can be asked in
/// microseconds speaks against it. Allocates nothing.
#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
fn processor_counter() -> Option<(SourceId, &'static str)> {
    let cpuid = crate::source::cpuid::Cpuid::of_this_processor()?;
    let unstable = cpuid.hypervisor.is_some_and(|found| found.kvm_stable == Some(false));
    let fit = counter::has_tsc_with_cpu() && cpuid.invariant_tsc && !unstable;
    fit.then_some((SourceId::TSC, "tsc"))
}

#[cfg(all(target_os = "linux", target_arch = "aarch64"))]
fn processor_counter() -> Option<(SourceId, &'static str)> {
    Some((SourceId::CNTVCT, "arch_sys_counter"))
}

#[cfg(all(target_os = "linux", not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn processor_counter() -> Option<(SourceId, &'static str)> {
    None
}

/// Whether each read of a counter takes longer than the hardware needs, so that software emulates it; 3 us if not.
#[cfg(target_os = "linux")]
fn is_emulated(source: SourceId) -> bool {
    const ROUNDS: u32 = 8;
    const READS: u64 = 16;
    let round = |_| {
        let before = now_ns(ClockId::Monotonic);
        for _ in 0..READS {
            std::hint::black_box(Native.ticks(source));
        }
        now_ns(ClockId::Monotonic).saturating_sub(before) / READS
    };
    let limit_ns = crate::choice::verdicts::TRAP_NS as u64;
    (0..ROUNDS).map(round).min().is_none_or(|ns| ns > limit_ns)
}

/// The frequency that the processor, or the hypervisor in its place, states.
#[cfg(target_os = "linux")]
fn stated(source: SourceId) -> Option<FrequencyHint> {
    match source {
        #[cfg(target_arch = "x86_64")]
        SourceId::TSC => FrequencyHint::from_frequency(
            crate::source::cpuid::Cpuid::of_this_processor()?.tsc_frequency()?,
        ),
        #[cfg(target_arch = "aarch64")]
        SourceId::CNTVCT => FrequencyHint::from_frequency(Frequency::from_hertz(
            counter::cntfrq(),
            FrequencyOrigin::Register,
        )),
        _ => None,
    }
}

#[cfg(not(target_os = "linux"))]
fn stated(_source: SourceId) -> Option<FrequencyHint> {
    None
}

/// `CLOCK_MONOTONIC` as a counter; kept out of the way of the counters that are faster.
#[cold]
#[inline(never)]
fn os_ticks(_source: SourceId) -> u64 {
    now_ns(ClockId::Monotonic)
}
