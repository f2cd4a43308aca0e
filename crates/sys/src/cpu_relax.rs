//! Passing a short time in user mode at low power: what a spinning thread does between two looks.
//!
//! x86-64: TPAUSE where CPUID states WAITPKG, else `pause`. aarch64: WFET where the kernel states
//! FEAT_WFxT, else the hint of the standard library (`isb`). Plain WFE waits for an event that on
//! Linux may only come every 100 us, so that it is not used.

/// Whether [`tpause`] exists (CPUID 7.0, ECX bit 5). A hypervisor that hides it says so there, and
/// the instruction then raises SIGILL. Asks CPUID: not for a hot path.
#[cfg(target_arch = "x86_64")]
#[must_use]
pub fn has_tpause() -> bool {
    crate::cpuid::leaf(7, 0).is_some_and(|leaf| leaf.ecx & (1 << 5) != 0)
}

/// Waits in the light sleep state C0.1 until the TSC is at `until` or beyond. Ends earlier by an
/// interrupt and by the limit that the kernel sets (100,000 ticks by default), so that callers look
/// at the time again.
///
/// Only meaningful if [`has_tpause`]; elsewhere the instruction does not exist.
#[cfg(target_arch = "x86_64")]
#[inline]
pub fn tpause(until: u64) {
    /// Faster to leave than C0.2.
    const C01: u32 = 1;
    let (low, high) = (until as u32, (until >> 32) as u32);
    // SAFETY: `tpause ecx` touches no memory and writes nothing but flags; a processor without it
    // raises SIGILL, which ends the process without memory unsafety.
    unsafe {
        core::arch::asm!(
            ".byte 0x66, 0x0f, 0xae, 0xf1",
            in("ecx") C01,
            in("eax") low,
            in("edx") high,
            options(nomem, nostack),
        );
    }
}

/// Whether [`wfet`] exists (`HWCAP2_WFXT`).
#[cfg(target_arch = "aarch64")]
#[must_use]
pub fn has_wfet() -> bool {
    const HWCAP2_WFXT: u64 = 1 << 31;
    // SAFETY: takes and returns numbers; an unknown type answers 0.
    let found = unsafe { libc::getauxval(libc::AT_HWCAP2) };
    found & HWCAP2_WFXT != 0
}

/// Waits at low power for an event, until CNTVCT is at `until` at the latest. May end at any time
/// before, so that callers look at the time again.
///
/// Only meaningful if [`has_wfet`]; elsewhere the instruction does not exist.
#[cfg(target_arch = "aarch64")]
#[inline]
pub fn wfet(until: u64) {
    // SAFETY: `wfet x0` touches neither memory nor registers; a processor without it raises
    // SIGILL, which ends the process without memory unsafety.
    unsafe {
        core::arch::asm!(
            ".inst 0xd5031000",
            in("x0") until,
            options(nomem, nostack, preserves_flags),
        );
    }
}

#[cfg(test)]
mod tests {
    use hourglass_skip::{Requirement, skip};

    /// The kernel's list of flags is made from the same CPUID leaf; it may hide what the processor
    /// has, but not the other way round.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn the_kernel_names_waitpkg_only_where_cpuid_does() {
        let flags = std::fs::read_to_string("/proc/cpuinfo").unwrap();
        let named = flags.split_whitespace().any(|flag| flag == "waitpkg");
        assert!(!named || super::has_tpause());
    }

    /// Where it exists it ends, by the kernel's limit if by nothing else, and a past time at once.
    #[cfg(target_arch = "x86_64")]
    #[test]
    fn tpause_ends() {
        if !super::has_tpause() {
            return skip(Requirement::processor("waitpkg"), "the processor has no WAITPKG");
        }
        let begun = crate::counter::tsc();
        super::tpause(begun);
        super::tpause(begun + 10_000);
        assert!(crate::counter::tsc() > begun);
    }

    #[cfg(target_arch = "aarch64")]
    #[test]
    fn wfet_ends() {
        if !super::has_wfet() {
            return skip(Requirement::processor("wfxt"), "the processor has no FEAT_WFxT");
        }
        let begun = crate::counter::cntvct();
        super::wfet(begun);
        super::wfet(begun + crate::counter::cntfrq() / 1_000);
        assert!(crate::counter::cntvct() >= begun);
    }
}
