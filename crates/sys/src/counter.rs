//! The processor's own counter, read together with the number of the CPU it was read on.

/// A counter value and the CPU on which it was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
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
pub fn tsc_with_cpu() -> Reading {
    let mut aux = 0u32;
    // SAFETY: `rdtscp` only writes the local `aux`; callers check for it with `has_tsc_with_cpu`,
    // and a processor without it raises SIGILL, which ends the process without memory unsafety.
    let ticks = unsafe { core::arch::x86_64::__rdtscp(&raw mut aux) };
    Reading { ticks, cpu: aux & 0xfff }
}

/// Whether the processor has `rdtscp`, and the TSC may be read in user mode.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn has_tsc_with_cpu() -> bool {
    const EXTENDED_FEATURES: u32 = 0x8000_0001;
    const RDTSCP: u32 = 1 << 27;
    extended_leaf(EXTENDED_FEATURES).is_some_and(|edx| edx & RDTSCP != 0) && tsc_readable()
}

/// Whether the processor says that its TSC keeps one rate in all power states (CPUID
/// 8000_0007h, EDX bit 8).
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn tsc_is_invariant() -> bool {
    const POWER_MANAGEMENT: u32 = 0x8000_0007;
    const INVARIANT_TSC: u32 = 1 << 8;
    extended_leaf(POWER_MANAGEMENT).is_some_and(|edx| edx & INVARIANT_TSC != 0)
}

/// EDX of an extended CPUID leaf, if the processor has it.
#[cfg(target_arch = "x86_64")]
fn extended_leaf(leaf: u32) -> Option<u32> {
    let highest = core::arch::x86_64::__cpuid(0x8000_0000).eax;
    (highest >= leaf).then(|| core::arch::x86_64::__cpuid(leaf).edx)
}

/// Whether `prctl(PR_SET_TSC)` leaves the TSC readable for this thread.
#[cfg(target_arch = "x86_64")]
fn tsc_readable() -> bool {
    let mut mode: libc::c_int = 0;
    // SAFETY: PR_GET_TSC writes one int to the address given, which is a live local.
    let answer = unsafe { libc::prctl(libc::PR_GET_TSC, &raw mut mode) };
    answer == -1 || mode == libc::PR_TSC_ENABLE
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
