//! Asking the kernel not to take the CPU for a few microseconds (rseq time-slice extension, Linux 7.0).
//!
//! A thread that has asked and is to be preempted keeps its CPU a little longer: 5 us or what the
//! administrator set, up to 50. No privilege is needed; other classes than `SCHED_OTHER` have nothing of
//! it. What was granted ends by itself, or with the next system call. Source: the kernel's
//! Documentation/userspace-api/rseq.rst.
//!
//! Owns: enabling it for the calling thread, the request. Only where the C library has registered the
//! thread's area. Must not: say when it is worth asking.

use crate::rseq::library_area;

/// `RSEQ_CS_FLAG_SLICE_EXT_AVAILABLE`, which the kernel sets in the area's flags.
const AVAILABLE: u32 = 1 << 4;
/// `RSEQ_CS_FLAG_SLICE_EXT_ENABLED`.
const ENABLED: u32 = 1 << 5;

const PR_RSEQ_SLICE_EXTENSION: libc::c_int = 79;
const SET: libc::c_ulong = 2;
const ENABLE: libc::c_ulong = 1;

/// Whether the kernel says that it has extensions.
#[must_use]
pub fn is_available() -> bool {
    library_area().is_some_and(|area| area.flags() & AVAILABLE != 0)
}

/// Lets the calling thread ask from now on; whether it may. A system call only where the kernel says that
/// it has extensions and the thread has not enabled them.
#[must_use]
pub fn enable() -> bool {
    let Some(area) = library_area() else { return false };
    match area.flags() {
        flags if flags & AVAILABLE == 0 => false,
        flags if flags & ENABLED != 0 => true,
        // SAFETY: this request takes numbers only.
        _ => unsafe { libc::prctl(PR_RSEQ_SLICE_EXTENSION, SET, ENABLE, 0, 0) == 0 },
    }
}

/// Asks for an extension of the calling thread's slice, until [`withdraw`]; nothing where it is not
/// enabled. Some nanoseconds; no system call. Not inlined: who spins has little code to spare.
#[cold]
#[inline(never)]
pub fn ask() {
    if let Some(area) = library_area().filter(|area| area.flags() & ENABLED != 0) {
        area.set_request(true);
    }
}

/// Whether the calling thread asks for an extension.
#[must_use]
pub fn is_asked() -> bool {
    let enabled = library_area().filter(|area| area.flags() & ENABLED != 0);
    enabled.is_some_and(|area| area.is_requested())
}

/// Asks no more. Whether an extension was granted meanwhile; its end is left to the kernel, since giving
/// up the CPU here would be what the caller wanted to be spared.
#[cold]
#[inline(never)]
pub fn withdraw() -> bool {
    let Some(area) = library_area().filter(|area| area.flags() & ENABLED != 0) else {
        return false;
    };
    area.set_request(false);
    area.is_granted()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where the kernel has none, asking changes nothing; where it has, a request is seen until it is
    /// withdrawn.
    #[test]
    fn a_request_is_made_only_where_it_is_enabled() {
        std::thread::spawn(|| {
            let before = library_area().map(|area| area.slice_control());
            let enabled = enable();
            ask();
            let asked = library_area().map(|area| area.slice_control());
            if enabled {
                assert_eq!(asked.map(|control| control & 1), Some(1));
            } else {
                assert_eq!(asked, before);
            }
            let _ = withdraw();
            let after = library_area().map(|area| area.slice_control() & 1);
            assert!(after.is_none_or(|request| request == 0));
            assert_eq!(enable(), enabled, "what the kernel says of a thread stays");
        })
        .join()
        .unwrap();
    }
}
