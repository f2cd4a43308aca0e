//! What a reader does when the page does not simply give the time.

use super::bound::{Reading, Status};
use super::line::{Line, Place};
use super::timebase::{Scale, SourceId, Timebase};

/// How often a reader looks at a page that changes under it before it takes the OS clock.
pub(super) const ATTEMPTS: u32 = 1_000;
/// For how many looks it waits for a writer in the midst of a switch (a switch takes 0.1 us).
pub(super) const PATIENCE: u32 = 200;

/// Behind the base by up to this, a counter was read by a processor that samples early, or whose
/// counter is a little behind; ns. A reader loads the line before it reads the counter, so a
/// counter further back has stepped.
const SKEW_NS: u64 = 10_000;

/// Whether somebody should look after the line: it is at its end, or the counter stepped back.
pub(super) fn is_overdue(line: &Line, place: Place) -> bool {
    match place {
        Place::Within(_) => false,
        Place::After(_) => true,
        Place::Before(behind) => line.slope.ns_floor(behind) > SKEW_NS,
    }
}

/// What a line says at a place, with the OS clock where it says nothing.
pub(super) fn reading<B: Timebase>(base: &B, line: &Line, place: Place) -> Reading {
    let status = if line.source == SourceId::OS { line.status } else { Status::OsClock };
    match place {
        Place::Within(ahead) => {
            let bound_ns = line.bound_at(ahead);
            Reading::around(line.at(ahead), bound_ns, line.status)
        }
        // Negative deltas are held at the base, as the kernel's vDSO does.
        Place::Before(behind) if !is_overdue(line, place) => {
            let mut reading = Reading::around(line.base_ns, line.bound_ns, line.status);
            let behind_ns = line.slope.ns_ceil(behind);
            reading.bounds.earliest = reading.bounds.earliest.saturating_sub(behind_ns);
            reading
        }
        Place::Before(_) => {
            Reading::of_os(base.reference_ns(Scale::Monotonic), line.base_ns, status)
        }
        Place::After(_) => {
            Reading::of_os(base.reference_ns(Scale::Monotonic), line.end_ns(), status)
        }
    }
}
