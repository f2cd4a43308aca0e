//! Code that will soon be run, brought near before it is.
//!
//! A thread that waited finds its way out driven out of the caches by whoever ran meanwhile. These
//! are hints: nothing depends on them, and no address makes them fail.

/// Length of a cache line on the processors known here, bytes.
const LINE: usize = 64;

/// The address of the code that follows, in the function that this is inlined into.
#[inline(always)]
#[must_use]
pub fn here() -> usize {
    let address: usize;
    // SAFETY: reads the program counter into a register and does nothing else.
    #[cfg(target_arch = "x86_64")]
    unsafe {
        core::arch::asm!("lea {}, [rip]", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    // SAFETY: computes an address from the program counter and does nothing else.
    #[cfg(target_arch = "aarch64")]
    unsafe {
        core::arch::asm!("adr {}, .", out(reg) address, options(nomem, nostack, preserves_flags));
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        address = 0;
    }
    address
}

/// Asks for so many cache lines from `address` on.
#[inline(always)]
pub fn prefetch(address: usize, lines: usize) {
    for line in 0..lines {
        prefetch_line(address.wrapping_add(line * LINE));
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn prefetch_line(address: usize) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch gives the program nothing and never faults, whatever the address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(std::ptr::without_provenance(address)) };
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn prefetch_line(address: usize) {
    // SAFETY: a prefetch gives the program nothing and never faults, whatever the address.
    unsafe {
        core::arch::asm!("prfm pldl1keep, [{}]", in(reg) address, options(nostack, preserves_flags));
    }
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn prefetch_line(_address: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_address_is_bad() {
        for address in [0, 1, here(), usize::MAX] {
            prefetch(address, 4);
        }
    }

    /// Inlined into two functions it is in two places.
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    #[test]
    fn here_is_in_the_caller() {
        #[inline(never)]
        fn first() -> usize {
            here()
        }
        #[inline(never)]
        fn second() -> usize {
            here().wrapping_add(std::hint::black_box(0))
        }
        let near = |a: usize, b: usize| a.abs_diff(b) < 64;
        assert!(near(first(), first as *const () as usize));
        assert!(near(second(), second as *const () as usize));
    }
}
