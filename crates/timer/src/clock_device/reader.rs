//! The two ways to read a clock device.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_clock::Clock;
use hourglass_clock::timekeeping::{Bounds, Timebase};

/// What a device shows to its readers: RT-Mach's mapped page.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(super) struct MappedClock {
    tick_ns: AtomicU64,
    /// The distance of ticks, ns rounded up; 0 without ticks.
    resolution_ns: AtomicU64,
}

impl MappedClock {
    pub(super) fn show(&self, tick_ns: u64) {
        self.tick_ns.store(tick_ns, Ordering::Release);
    }

    pub(super) fn show_resolution(&self, resolution_ns: u64) {
        self.resolution_ns.store(resolution_ns, Ordering::Release);
    }

    pub(super) fn shown_ns(&self) -> u64 {
        self.tick_ns.load(Ordering::Acquire)
    }
}

/// Reads a clock device from any thread.
///
/// | read | what it is | costs | how coarse |
/// |---|---|---|---|
/// | [`ClockReader::now_ns`] | the time at the device's last tick ("mapped page") | one load, about 1 ns | behind by up to a tick, and by as long as the device's thread is late to serve it |
/// | [`ClockReader::now_precise`] | the source, in order, with bounds | 30 to 40 ns; where the counter cannot be read in user space, a system call | its stated bound, usually some 10 ns |
///
/// Both are on `CLOCK_MONOTONIC`'s scale, and neither goes back. The paper's figures (Table 3): below
/// 2 us for the mapped page, 85 us for the precise read, which there asks the kernel.
pub struct ClockReader<C = &'static Clock> {
    pub(super) face: Arc<MappedClock>,
    pub(super) clock: C,
}

impl<C: Clone> Clone for ClockReader<C> {
    fn clone(&self) -> ClockReader<C> {
        ClockReader { face: Arc::clone(&self.face), clock: self.clock.clone() }
    }
}

impl<C> ClockReader<C> {
    /// The cheap read: the time at the last tick, ns. Never ahead of the precise one's upper bound.
    #[inline]
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.face.shown_ns()
    }

    /// How coarse the cheap read is at the moment: the distance of the device's ticks, ns rounded
    /// up; 0 if it does not tick.
    #[must_use]
    pub fn tick_ns(&self) -> u64 {
        self.face.resolution_ns.load(Ordering::Acquire)
    }
}

impl<B: Timebase, C: Deref<Target = Clock<B>>> ClockReader<C> {
    /// The precise read: the source's time between two bounds, after all earlier instructions.
    #[inline]
    #[must_use]
    pub fn now_precise(&self) -> Bounds {
        self.clock.now_bounded_ordered()
    }
}

impl<C> fmt::Debug for ClockReader<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClockReader").field("face", &self.face).finish_non_exhaustive()
    }
}
