//! Asking for memory in huge pages, where it is looked at in no order.

/// Bytes of a huge page of x86-64, and of AArch64 with pages of 4 KiB.
const HUGE: usize = 2 << 20;

/// Asks the kernel to back the room of `values` with huge pages (`madvise(2)`, `MADV_HUGEPAGE`), so that a look at a
/// random place takes one miss where it takes several: those of the page tables, up to twice the number in a virtual
/// machine. It is called before the room is first used.
///
/// A hint: it changes nothing but time, and is nothing for less than 2 MiB, where the kernel has no transparent huge
/// pages or is set not to use them, and on other systems than Linux. The first use of each 2 MiB then takes the time to
/// clear them all, some 100 us, instead of 512 shorter times.
pub fn ask_for<T>(values: &Vec<T>) {
    let begin = values.as_ptr() as usize;
    let end = begin.saturating_add(values.capacity().saturating_mul(size_of::<T>()));
    let (first, past) = (begin.next_multiple_of(HUGE), end / HUGE * HUGE);
    if first < past {
        hint(first, past - first);
    }
}

#[cfg(target_os = "linux")]
fn hint(address: usize, bytes: usize) {
    // SAFETY: the range lies in an allocation of the caller; this advice changes no content, and is refused where it is
    // not known.
    let _ = unsafe { libc::madvise(address as *mut libc::c_void, bytes, libc::MADV_HUGEPAGE) };
}

#[cfg(not(target_os = "linux"))]
fn hint(_address: usize, _bytes: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    /// Any length, also none, before and after it is filled; what is in it stays.
    #[test]
    fn nothing_changes() {
        ask_for::<u64>(&Vec::new());
        ask_for(&vec![(); 10]);
        for bytes in [1, HUGE - 1, HUGE, 3 * HUGE + 5] {
            let mut values: Vec<u8> = Vec::with_capacity(bytes);
            ask_for(&values);
            values.extend((0..bytes).map(|at| at as u8));
            ask_for(&values);
            assert!(values.iter().enumerate().all(|(at, value)| *value == at as u8));
        }
    }

    /// The kernel notes it (`hg` in `VmFlags`), for pages within the room alone. Its source:
    /// Documentation/filesystems/proc.rst.
    #[test]
    #[cfg(target_os = "linux")]
    fn the_kernel_notes_it() {
        if !std::path::Path::new("/sys/kernel/mm/transparent_hugepage").exists() {
            return;
        }
        let values: Vec<u64> = Vec::with_capacity(HUGE);
        ask_for(&values);
        let inside = values.as_ptr() as usize + 4 * HUGE;
        let maps = std::fs::read_to_string("/proc/self/smaps").unwrap();
        let mut within = false;
        for line in maps.lines() {
            let range = line.split(' ').next().and_then(|range| range.split_once('-'));
            let range =
                range.map(|(a, b)| (usize::from_str_radix(a, 16), usize::from_str_radix(b, 16)));
            if let Some((Ok(from), Ok(to))) = range {
                within = (from..to).contains(&inside);
            } else if let Some(flags) = line.strip_prefix("VmFlags:").filter(|_| within) {
                assert!(flags.split_whitespace().any(|flag| flag == "hg"), "{flags}");
                return;
            }
        }
        panic!("no mapping has the room");
    }
}
