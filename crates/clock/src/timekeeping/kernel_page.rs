//! What the kernel's own time data in this process say, once it is proven what they mean.
//!
//! The layout of `[vvar]` is private to the kernel: `struct vdso_data` (Linux 5.3 and later,
//! `include/vdso/datapage.h`), `struct vdso_clock` (6.15 and later). Nothing is believed because of
//! a version. A place counts if the time computed from it lies between two readings of
//! `CLOCK_MONOTONIC` around a reading of the counter, again and again, under two generations whose
//! base was moved on in between. An unknown layout is found nowhere; then bounded reads take the
//! kernel's clock itself.

use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_sys::vvar::{self, KernelPage};

use super::native::Native;
use super::reference_rate::{ReferenceLine, ReferenceRate};
use super::timebase::{ReferenceClock, SourceId, Timebase};

/// Words of the page in which the data may begin.
const SEARCHED_WORDS: usize = 128;
/// Readings between two of the kernel's that a place must explain to be the one.
const PROOFS: u32 = 8;
/// How often data are read that change meanwhile.
const ATTEMPTS: u32 = 16;
/// The clock mode of the processor's own counter (`VDSO_CLOCKMODE_TSC`, `_ARCHTIMER`).
const PROCESSOR_COUNTER: u32 = 1;

const NOWHERE: u64 = 0;
/// The number of the layout that was found, and the generation then in the upper half.
static FOUND: AtomicU64 = AtomicU64::new(NOWHERE);
const FOUND_LAYOUT: u64 = u32::MAX as u64;
/// The base of the counter under that generation.
static FOUND_BASE: AtomicU64 = AtomicU64::new(0);
/// The number of the layout that is proven.
static PROVEN: AtomicU64 = AtomicU64::new(NOWHERE);

/// The place of the data, and their kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Layout {
    /// The word of the sequence count and the clock mode.
    first: usize,
    /// Whether the limit of the counter's advance stands before its mask
    /// (`CONFIG_GENERIC_VDSO_OVERFLOW_PROTECT`, Linux 6.10).
    limited: bool,
}

impl Layout {
    /// Every place there may be.
    fn all() -> impl Iterator<Item = Layout> {
        (0..SEARCHED_WORDS).flat_map(|first| [true, false].map(|limited| Layout { first, limited }))
    }

    /// The layout as a number from 1 on.
    fn number(self) -> u64 {
        (self.first as u64) * 2 + u64::from(self.limited) + 1
    }

    fn of_number(number: u64) -> Option<Layout> {
        let packed = number.checked_sub(1)?;
        Some(Layout { first: usize::try_from(packed / 2).ok()?, limited: packed & 1 == 1 })
    }

    /// The data at this place, if they belong together and are about the processor's counter.
    fn read(self, page: &KernelPage, source: SourceId) -> Option<ReferenceLine> {
        let word = |index: usize| page.load(self.first.checked_add(index)?);
        for _ in 0..ATTEMPTS {
            let generation = word(0)?;
            let mask_at = if self.limited { 3 } else { 2 };
            let (last, mask, scale) = (word(1)?, word(mask_at)?, word(mask_at + 1)?);
            // The second of an array of seconds and nanoseconds: CLOCK_MONOTONIC is number 1.
            let (seconds, fraction) = (word(mask_at + 4)?, word(mask_at + 5)?);
            let (sequence, mode) = (generation as u32, (generation >> 32) as u32);
            let (mult, shift) = (scale as u32, (scale >> 32) as u32);
            if mode != PROCESSOR_COUNTER || !is_mask(mask) || mult == 0 || shift > 32 {
                return None;
            }
            if sequence & 1 == 0 && word(0)? == generation {
                let now = Native.ticks(source);
                return Some(ReferenceLine {
                    generation: sequence,
                    base_ticks: now.wrapping_sub(ticks_ahead(now, last, mask)),
                    base_ns: seconds.checked_mul(1_000_000_000)?,
                    fraction,
                    mult,
                    shift,
                });
            }
            std::hint::spin_loop();
        }
        None
    }

    /// The data, if they explain what the kernel's clock says now.
    fn proven(self, page: &KernelPage, source: SourceId) -> Option<ReferenceLine> {
        let mut proofs = 0;
        for _ in 0..PROOFS * 2 {
            let line = self.read(page, source)?;
            let before = Native.reference_ns(ReferenceClock::Monotonic);
            let ticks = Native.ticks_enclosing(source);
            let after = Native.reference_ns(ReferenceClock::Monotonic);
            if page.load(self.first)? as u32 != line.generation {
                continue;
            }
            if !(before..=after).contains(&line.at(ticks)) {
                return None;
            }
            proofs += 1;
            if proofs == PROOFS {
                return Some(line);
            }
        }
        None
    }
}

/// How far a count is ahead of the last one, or (negative, wrapped) behind it.
fn ticks_ahead(now: u64, last: u64, mask: u64) -> u64 {
    let ahead = now.wrapping_sub(last) & mask;
    // The upper half of the range is behind.
    if ahead > mask / 2 { ahead | !mask } else { ahead }
}

/// Whether it is the mask of a counter that does not wrap within days.
fn is_mask(mask: u64) -> bool {
    const NARROWEST: u64 = (1 << 48) - 1;
    mask & mask.wrapping_add(1) == 0 && mask >= NARROWEST
}

/// The generation under which the kernel's clock runs now.
#[inline(always)]
pub(super) fn generation() -> u32 {
    vvar::watched() as u32
}

/// The rate of the kernel's clock against a counter. The first call searches the place; no call
/// allocates or locks.
pub(super) fn steering(source: SourceId) -> ReferenceRate {
    let own = if cfg!(target_arch = "x86_64") { SourceId::TSC } else { SourceId::CNTVCT };
    if source != own {
        return ReferenceRate::Untold;
    }
    steering_of(source).map_or(ReferenceRate::Untold, ReferenceRate::Line)
}

fn steering_of(source: SourceId) -> Option<ReferenceLine> {
    let page = KernelPage::find()?;
    if let Some(layout) = Layout::of_number(PROVEN.load(Ordering::Acquire)) {
        return layout.read(&page, source);
    }
    // This check comes last: CPUID takes microseconds in a virtual machine.
    if !Native.supports(source) {
        return None;
    }
    let found = FOUND.load(Ordering::Acquire);
    let Some(layout) = Layout::of_number(found & FOUND_LAYOUT) else {
        let (layout, line) = Layout::all()
            .find_map(|layout| layout.proven(&page, source).map(|line| (layout, line)))?;
        FOUND_BASE.store(line.base_ticks, Ordering::Relaxed);
        let packed = layout.number() | u64::from(line.generation) << 32;
        FOUND.store(packed, Ordering::Release);
        return None;
    };
    let line = layout.proven(&page, source)?;
    let moved_on = u64::from(line.generation) != found >> 32;
    if !moved_on || line.base_ticks == FOUND_BASE.load(Ordering::Relaxed) {
        return None;
    }
    page.watch(layout.first);
    PROVEN.store(layout.number(), Ordering::Release);
    Some(line)
}

#[cfg(test)]
mod tests {
    use hourglass_skip::{Requirement, skip};

    use super::*;

    #[test]
    fn a_layout_is_its_number() {
        for layout in Layout::all() {
            assert_eq!(Layout::of_number(layout.number()), Some(layout));
        }
        assert_eq!(Layout::of_number(NOWHERE), None);
    }

    #[test]
    fn counts_are_ahead_or_behind_in_any_width() {
        let narrow = (1u64 << 56) - 1;
        for mask in [u64::MAX, narrow] {
            assert!(is_mask(mask));
            assert_eq!(ticks_ahead(mask & 70, mask & 50, mask), 20);
            assert_eq!(ticks_ahead(5, mask & 5u64.wrapping_sub(20), mask), 20, "wrapped");
            assert_eq!(ticks_ahead(50, 70, mask), 20u64.wrapping_neg(), "behind");
        }
        assert!(!is_mask(0) && !is_mask(u64::from(u32::MAX)) && !is_mask(!1));
    }

    /// Where the kernel's clock is made of the processor's counter, its data are found within some
    /// ticks of the kernel, and explain its clock exactly.
    #[test]
    fn the_kernels_line_is_found_and_true() {
        let source = Native.choose(std::path::Path::new("/"));
        if source == SourceId::OS || KernelPage::find().is_none() {
            skip(
                Requirement::runs(
                    "clocksource tsc",
                    "grep -qx tsc /sys/devices/system/clocksource/clocksource0/current_clocksource",
                ),
                "the kernel's clock is not made of a counter that can be read here",
            );
            return;
        }
        let begun = std::time::Instant::now();
        let line = loop {
            if let ReferenceRate::Line(line) = steering(source) {
                break line;
            }
            if begun.elapsed().as_secs() >= 10 {
                skip(
                    Requirement::CHANCE,
                    "its time data are laid out in a way that is not known here",
                );
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(2));
        };
        assert_eq!(line.generation & 1, 0);
        let mut compared = 0;
        for _ in 0..100_000 {
            let ReferenceRate::Line(line) = steering(source) else { continue };
            let before = Native.reference_ns(ReferenceClock::Monotonic);
            let ticks = Native.ticks_enclosing(source);
            let after = Native.reference_ns(ReferenceClock::Monotonic);
            if generation() == line.generation {
                assert!((before..=after).contains(&line.at(ticks)), "{line:?} at {ticks}");
                compared += 1;
            }
        }
        assert!(compared > 1_000, "{compared}");
    }
}
