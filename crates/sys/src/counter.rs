//! The processor's own counter: alone, ordered, or together with the number of the CPU.

#[cfg(target_arch = "x86_64")]
use crate::cpuid;

/// A counter value and the CPU on which it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CounterReading {
    /// Raw counter.
    pub ticks: u64,
    /// CPU number.
    pub cpu: u32,
}

/// Reads TSC and CPU number in one instruction (`rdtscp`).
///
/// Earlier instructions have finished; later ones may have begun. Linux keeps the CPU number in
/// the low 12 bits of `TSC_AUX` and the NUMA node above them.
///
/// Only meaningful if [`has_tsc_with_cpu`]; elsewhere the instruction does not exist.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[must_use]
pub fn tsc_with_cpu() -> CounterReading {
    let (ticks, aux) = tsc_and_aux();
    CounterReading { ticks, cpu: aux & 0xfff }
}

/// `TSC_AUX` of the CPU that the caller runs on.
#[cfg(target_arch = "x86_64")]
pub(crate) fn tsc_aux() -> u32 {
    tsc_and_aux().1
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn tsc_and_aux() -> (u64, u32) {
    let mut aux = 0u32;
    // SAFETY: `rdtscp` only writes the local `aux`; callers check for it with `has_tsc_with_cpu`,
    // and a processor without it raises SIGILL, which ends the process without memory unsafety.
    let ticks = unsafe { core::arch::x86_64::__rdtscp(&raw mut aux) };
    (ticks, aux)
}

/// Reads the TSC (`rdtsc`), unordered: it may be sampled before earlier instructions have
/// finished and after later ones have begun.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[must_use]
pub fn tsc() -> u64 {
    // SAFETY: `rdtsc` touches no memory; where the TSC is disabled for the thread it raises
    // SIGSEGV, which ends the process without memory unsafety.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// Reads the TSC (`rdtscp`) after all earlier instructions; later ones may have begun.
///
/// Only meaningful if [`has_rdtscp`]; elsewhere the instruction does not exist.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
#[must_use]
pub fn tsc_after_earlier() -> u64 {
    tsc_with_cpu().ticks
}

/// Holds later instructions back until earlier ones have finished (`lfence`).
///
/// On AMD it does so only where the kernel has set it up, as Linux does.
#[cfg(target_arch = "x86_64")]
#[inline(always)]
pub fn fence_instructions() {
    // SAFETY: `lfence` touches no memory and belongs to SSE2, which x86-64 always has.
    unsafe { core::arch::asm!("lfence", options(nostack, preserves_flags)) };
}

/// Whether the processor has a TSC at all (CPUID 1, EDX bit 4).
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn has_tsc() -> bool {
    cpuid::leaf(1, 0).is_some_and(|leaf| leaf.edx & (1 << 4) != 0)
}

/// Whether the processor has `rdtscp` (CPUID 8000_0001h, EDX bit 27).
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn has_rdtscp() -> bool {
    cpuid::leaf(0x8000_0001, 0).is_some_and(|leaf| leaf.edx & (1 << 27) != 0)
}

/// Whether the processor has `rdtscp`, and the TSC may be read in user mode.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn has_tsc_with_cpu() -> bool {
    has_rdtscp() && tsc_mode() != Some(TscMode::Fault)
}

/// Whether the processor says that its TSC keeps one rate in all power states (CPUID
/// 8000_0007h, EDX bit 8).
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn tsc_is_invariant() -> bool {
    cpuid::leaf(0x8000_0007, 0).is_some_and(|leaf| leaf.edx & (1 << 8) != 0)
}

/// The effect of reading the TSC in the calling thread (`prctl(PR_GET_TSC)`); new threads inherit it.
#[cfg(target_arch = "x86_64")]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TscMode {
    Enabled,
    /// It raises SIGSEGV; a handler may put any number in its place.
    Fault,
}

/// The effect of reading the TSC in the calling thread; `None` if the kernel does not report it.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn tsc_mode() -> Option<TscMode> {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the address given, which is a live local.
    let answer = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    match (answer, mode) {
        (0, libc::PR_TSC_ENABLE) => Some(TscMode::Enabled),
        (0, libc::PR_TSC_SIGSEGV) => Some(TscMode::Fault),
        _ => None,
    }
}

/// Sets what reading the TSC does in the calling thread (`prctl(PR_SET_TSC)`). With [`TscMode::Fault`] the next read
/// ends the process unless a handler catches SIGSEGV; the C library's `clock_gettime` reads it too.
///
/// # Errors
/// EINVAL on a kernel without it.
#[cfg(target_arch = "x86_64")]
pub fn set_tsc_mode(mode: TscMode) -> std::io::Result<()> {
    let mode = match mode {
        TscMode::Enabled => libc::PR_TSC_ENABLE,
        TscMode::Fault => libc::PR_TSC_SIGSEGV,
    };
    // SAFETY: takes its argument by value.
    crate::checked(unsafe { libc::prctl(libc::PR_SET_TSC, libc::c_long::from(mode)) }).map(|_| ())
}

/// Reads the generic timer's virtual count, unordered with respect to other instructions.
#[cfg(target_arch = "aarch64")]
#[inline(always)]
#[must_use]
pub fn cntvct() -> u64 {
    let ticks: u64;
    // SAFETY: reading CNTVCT_EL0 has no effect but on the output register; Linux allows it in
    // user mode on every core (where an erratum forbids it, the kernel emulates the read).
    unsafe {
        core::arch::asm!("mrs {}, cntvct_el0", out(reg) ticks, options(nomem, nostack, preserves_flags));
    }
    ticks
}

/// Reads the virtual count after all earlier instructions (`isb` before it).
#[cfg(target_arch = "aarch64")]
#[inline(always)]
#[must_use]
pub fn cntvct_after_earlier() -> u64 {
    let ticks: u64;
    // SAFETY: `isb` and reading CNTVCT_EL0 have no effect but on the pipeline and the output
    // register; without `nomem` the compiler keeps memory accesses on their side.
    unsafe {
        core::arch::asm!("isb", "mrs {}, cntvct_el0", out(reg) ticks, options(nostack, preserves_flags));
    }
    ticks
}

/// The frequency that the firmware states for the generic timer, in hertz.
#[cfg(target_arch = "aarch64")]
#[must_use]
pub fn cntfrq() -> u64 {
    let hertz: u64;
    // SAFETY: reading CNTFRQ_EL0 has no effect but on the output register.
    unsafe {
        core::arch::asm!("mrs {}, cntfrq_el0", out(reg) hertz, options(nomem, nostack, preserves_flags));
    }
    hertz
}
