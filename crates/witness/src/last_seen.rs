//! Which witnessed thread of this process was seen on which CPU last: where another one lost that CPU meanwhile,
//! this one had it (Hourglass paper, section 4, first rule).
//!
//! Threads leave a note when they ask their counters anyway. One word a CPU, no lock.

use std::sync::atomic::{AtomicU64, Ordering};

/// Threads on CPUs with this number or a higher one leave no note.
const CPUS: usize = 512;
/// A note is the thread's number above its time, which begins again after 50 days.
const TIME_BITS: u32 = 42;

static NOTES: [AtomicU64; CPUS] = [const { AtomicU64::new(0) }; CPUS];

/// Who was seen, and when.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct LastSeen(u64);

impl LastSeen {
    fn new(thread: u32, now_ns: u64) -> LastSeen {
        LastSeen(u64::from(thread) << TIME_BITS | time(now_ns))
    }

    /// Leaves a note of the calling thread; the one that was there.
    pub(crate) fn leave(cpu: u32, thread: u32, now_ns: u64) -> LastSeen {
        let place = usize::try_from(cpu).ok().and_then(|cpu| NOTES.get(cpu));
        place.map_or(LastSeen(0), |place| {
            LastSeen(place.swap(LastSeen::new(thread, now_ns).0, Ordering::Relaxed))
        })
    }

    /// The thread, if it is another one and was seen between these moments.
    pub(crate) fn other(self, thread: u32, from_ns: u64, to_ns: u64) -> Option<u32> {
        let (number, at) = ((self.0 >> TIME_BITS) as u32, self.0 & time_mask());
        let within = time(from_ns) < at && at < time(to_ns);
        (number != 0 && number != thread && within).then_some(number)
    }
}

/// Microseconds, as far as they fit.
fn time(ns: u64) -> u64 {
    (ns / 1_000) & time_mask()
}

fn time_mask() -> u64 {
    (1 << TIME_BITS) - 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_note_is_of_another_thread_and_of_its_time() {
        let cpu = CPUS as u32 - 1;
        assert_eq!(LastSeen::leave(cpu, 7, 5_000_000), LastSeen(0));
        let note = LastSeen::leave(cpu, 8, 9_000_000);
        assert_eq!(note.other(8, 4_000_000, 9_000_000), Some(7));
        assert_eq!(note.other(7, 4_000_000, 9_000_000), None, "its own");
        assert_eq!(note.other(8, 5_000_000, 9_000_000), None, "before the span");
        assert_eq!(note.other(8, 1_000_000, 5_000_000), None, "behind it");
        assert_eq!(LastSeen::leave(u32::MAX, 7, 1), LastSeen(0), "no such place");
        assert_eq!(LastSeen::default().other(1, 0, u64::MAX), None);
    }
}
