//! Properties that the processor, or a hypervisor in its place, reports (`cpuid`).
//!
//! In a virtual machine every `cpuid` leaves the guest (7 us were seen): never on a hot path.

/// Where the extended leaves begin.
const EXTENDED: u32 = 0x8000_0000;

/// Where a hypervisor's leaves begin.
const HYPERVISOR: u32 = 0x4000_0000;

/// Four registers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leaf {
    pub eax: u32,
    pub ebx: u32,
    pub ecx: u32,
    pub edx: u32,
}

/// The answer for `leaf` and `subleaf`; `None` beyond the highest leaf of its range, where Intel
/// processors would give the answer of another one.
#[must_use]
pub fn leaf(leaf: u32, subleaf: u32) -> Option<Leaf> {
    let range = match leaf {
        HYPERVISOR..EXTENDED => HYPERVISOR,
        EXTENDED.. => EXTENDED,
        _ => 0,
    };
    if range == HYPERVISOR && !under_hypervisor() {
        return None;
    }
    (ask(range, 0).eax >= leaf).then(|| ask(leaf, subleaf))
}

/// Whether a hypervisor is reported (leaf 1, ECX bit 31); without it its leaves mean nothing.
#[must_use]
pub fn under_hypervisor() -> bool {
    ask(1, 0).ecx & (1 << 31) != 0
}

/// Whether `cpuid` raises SIGSEGV in the calling thread (`arch_prctl(ARCH_GET_CPUID)`); a handler may answer anything.
/// `None` if the kernel does not say.
#[must_use]
pub fn faults() -> Option<bool> {
    const ARCH_GET_CPUID: libc::c_int = 0x1011;
    // SAFETY: this request takes no memory; it answers 0 or 1.
    match unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_GET_CPUID, 0) } {
        0 => Some(true),
        1 => Some(false),
        _ => None,
    }
}

/// Asks the processor, or the hypervisor or handler that answers in its place.
#[allow(unused_unsafe, reason = "the function is safe since Rust 1.94")]
pub(crate) fn ask(leaf: u32, subleaf: u32) -> Leaf {
    // SAFETY: every x86-64 processor has CPUID; it touches nothing but the registers returned.
    let found = unsafe { core::arch::x86_64::__cpuid_count(leaf, subleaf) };
    Leaf { eax: found.eax, ebx: found.ebx, ecx: found.ecx, edx: found.edx }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn leaves_beyond_the_highest_are_absent() {
        assert!(leaf(0, 0).is_some());
        assert_eq!(leaf(0x3fff_ffff, 0), None);
        assert_eq!(leaf(u32::MAX, 0), None);
        assert_eq!(leaf(HYPERVISOR, 0).is_some(), under_hypervisor());
    }
}
