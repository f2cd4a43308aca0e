//! Asking for memory before it is needed.

/// Asks the processor to bring `slice[index]` near, for reading; the caller goes on at once.
///
/// A hint: it changes nothing but time, and is nothing where the index is out of range or the
/// processor is not x86-64 or AArch64. Of an element longer than a cache line (64 bytes) only the
/// first line is asked for.
#[inline(always)]
pub fn prefetch<T>(slice: &[T], index: usize) {
    if let Some(element) = slice.get(index) {
        hint(core::ptr::from_ref(element).cast());
    }
}

#[cfg(target_arch = "x86_64")]
#[inline(always)]
fn hint(address: *const i8) {
    use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a prefetch dereferences nothing and never faults; it belongs to SSE, which x86-64
    // always has.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(address) };
}

#[cfg(target_arch = "aarch64")]
#[inline(always)]
fn hint(address: *const i8) {
    // SAFETY: a prefetch dereferences nothing and never faults.
    unsafe {
        core::arch::asm!(
            "prfm pldl1keep, [{address}]",
            address = in(reg) address,
            options(nostack, preserves_flags, readonly)
        );
    };
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
#[inline(always)]
fn hint(_address: *const i8) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// It promises nothing but to be harmless.
    #[test]
    fn nothing_changes_and_no_index_is_refused() {
        let values = [1u64, 2, 3];
        prefetch(&values, 0);
        prefetch(&values, 3);
        prefetch(&values, usize::MAX);
        prefetch::<u64>(&[], 0);
        assert_eq!(values, [1, 2, 3]);
    }
}
