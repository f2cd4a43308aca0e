//! How long the calling thread was off its CPU, from records of its switches that are read as they come.

use std::cell::Cell;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{
    DATA_HEAD, PerfUnavailable, SWITCH, SwitchDirection, control, half, map, open_event,
    page_bytes, refused, way, word,
};

/// The place of the tail in `struct perf_event_mmap_page`.
const DATA_TAIL: usize = 1032;
/// Room for 512 records; memory that may not be swapped out is short.
const PAGES: usize = 4;
const WORD: usize = size_of::<u64>();
/// Where a record has its time: behind header and thread.
const TIME: u64 = 16;

/// Switches of the calling thread since they are recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SwitchSums {
    /// How often it left the CPU and came back.
    pub switches: u64,
    /// For how long it was away, ns: from the record that the kernel makes when it has chosen the next thread to that
    /// which it makes when this one is back.
    pub off_cpu_ns: u64,
    /// How often records were missing or made no sense.
    pub breaks: u64,
}

/// Adds up the switches of the thread that opened it. A system call to open, none to read; a switch takes the kernel
/// some hundred nanoseconds more.
#[derive(Debug)]
pub struct SwitchTimes {
    _event: OwnedFd,
    map: *mut u8,
    room: usize,
    /// The thread; a forked child's has no mapping.
    tid: u32,
    left_ns: Cell<Option<u64>>,
    sums: Cell<SwitchSums>,
    _of_this_thread: PhantomData<*const ()>,
}

impl SwitchTimes {
    /// Of the calling thread, from now on. Takes no memory of the heap.
    ///
    /// # Errors
    /// See [`PerfUnavailable`].
    pub fn open() -> Result<SwitchTimes, PerfUnavailable> {
        let event = open_event(0, 0).map_err(|error| refused(&error))?;
        let room = PAGES * page_bytes();
        let map = map(&event, page_bytes() + room).map_err(|_| PerfUnavailable::NoRoom)?;
        let times = SwitchTimes {
            map,
            room,
            tid: crate::thread::id(),
            left_ns: Cell::new(None),
            sums: Cell::default(),
            _of_this_thread: PhantomData,
            _event: event,
        };
        control(&times._event, super::ENABLE).map_err(|error| refused(&error))?;
        Ok(times)
    }

    /// All up to now; `None` in a child that was forked since.
    #[must_use]
    pub fn sums(&self) -> Option<SwitchSums> {
        if self.tid != crate::thread::id() {
            return None;
        }
        let (head, tail) = (self.word(DATA_HEAD), self.word(DATA_TAIL));
        let end = head.load(Ordering::Acquire);
        let mut at = tail.load(Ordering::Relaxed);
        while at < end {
            let header = self.record(at).to_ne_bytes();
            let size = half(&header, 6).map_or(0, u64::from);
            if size < 8 || !size.is_multiple_of(8) || size > end - at {
                self.breaks();
                at = end;
                break;
            }
            match (word(&header, 0), half(&header, 4)) {
                (Some(SWITCH), Some(misc)) => self.switch(misc, self.record(at + TIME)),
                _ => self.breaks(),
            }
            at += size;
        }
        tail.store(at, Ordering::Release);
        Some(self.sums.get())
    }

    fn switch(&self, misc: u16, at_ns: u64) {
        let sums = self.sums.get();
        match (way(misc), self.left_ns.take()) {
            (SwitchDirection::In, Some(left_ns)) if left_ns <= at_ns => self.sums.set(SwitchSums {
                switches: sums.switches.wrapping_add(1),
                off_cpu_ns: sums.off_cpu_ns.wrapping_add(at_ns - left_ns),
                ..sums
            }),
            (SwitchDirection::Waited | SwitchDirection::Preempted, None) => {
                self.left_ns.set(Some(at_ns))
            }
            _ => self.breaks(),
        }
    }

    fn breaks(&self) {
        let sums = self.sums.get();
        self.left_ns.set(None);
        self.sums.set(SwitchSums { breaks: sums.breaks.wrapping_add(1), ..sums });
    }

    /// A word of the first page.
    fn word(&self, place: usize) -> &AtomicU64 {
        // SAFETY: an aligned word of the first page, mapped for as long as `self` in this thread's process, which
        // the kernel and this thread access as one.
        unsafe { AtomicU64::from_ptr(self.map.add(place).cast()) }
    }

    /// A word of the ring, whose place begins again at its end.
    fn record(&self, at: u64) -> u64 {
        let place = (at % self.room as u64) as usize & !(WORD - 1);
        self.word(page_bytes() + place).load(Ordering::Relaxed)
    }
}

impl Drop for SwitchTimes {
    fn drop(&mut self) {
        // The kernel gives no mapping of a ring to a forked child, where something else may be there now.
        if self.tid == crate::thread::id() {
            // SAFETY: the mapping is ours, of this length, and nothing points into it any more.
            unsafe { libc::munmap(self.map.cast(), page_bytes() + self.room) };
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread::sleep;
    use std::time::Duration;

    use super::*;
    use crate::clock::{ClockId, now_ns};

    fn nap() {
        sleep(Duration::from_micros(1));
    }

    /// As many switches as the kernel counts, over the end of the ring; each no shorter than it may be.
    #[test]
    fn switches_are_added_up_as_they_come() {
        let Ok(times) = SwitchTimes::open() else { return };
        let counted = || crate::thread::counters().switches();
        let (first, before) = (times.sums().unwrap(), counted());
        let begun_ns = now_ns(ClockId::Monotonic);
        for turn in 0..2_000 {
            nap();
            if turn % 100 == 0 {
                assert!(times.sums().is_some());
            }
        }
        let (sums, after) = (times.sums().unwrap(), counted());
        let passed_ns = now_ns(ClockId::Monotonic) - begun_ns;
        assert!((before..=after + 1).contains(&(before + sums.switches - first.switches)));
        assert!(sums.switches - first.switches + 2 >= after - before, "{sums:?}");
        assert_eq!(sums.breaks, 0);
        assert!(sums.off_cpu_ns <= passed_ns + passed_ns / 100, "{sums:?} in {passed_ns}");
    }

    /// Records without room cause a break, and later ones are added up again.
    #[test]
    fn a_full_ring_is_a_break() {
        let Ok(times) = SwitchTimes::open() else { return };
        (0..1_000).for_each(|_| nap());
        let _ = times.sums();
        nap();
        let full = times.sums().unwrap();
        assert!(full.breaks > 0, "{full:?}");
        let before = full.switches;
        (0..10).for_each(|_| nap());
        let later = times.sums().unwrap();
        assert_eq!(later.breaks, full.breaks);
        assert!(later.switches > before);
    }
}
