//! The reads for which the page alone does not give the time.

use super::bound::{Reading, Status};
use super::line::{ClockLine, LinePosition, LineValidity};
use super::reference_rate::ReferenceRate;
use super::timebase::{ReferenceClock, SourceId, Timebase};

/// How often a reader retries on a page that changes under it before it takes the OS clock.
pub(super) const ATTEMPTS: u32 = 1_000;
/// For how many retries it waits for a writer in the midst of a switch (a switch takes 0.1 us).
pub(super) const PATIENCE: u32 = 200;

/// Behind the base by up to this, a counter was read by a processor that samples early, or whose
/// counter is a little behind; ns. A reader loads the line before it reads the counter, so a
/// counter further back has stepped.
const SKEW_NS: u64 = 10_000;

/// Whether the clock needs maintenance: the line is at its end, or the counter stepped back.
pub(super) fn is_overdue(line: &ClockLine, place: LinePosition) -> bool {
    match place {
        LinePosition::Within(_) => false,
        LinePosition::After(_) => true,
        LinePosition::Before(behind) => line.slope.ns_floor(behind) > SKEW_NS,
    }
}

/// The kind of a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadKind {
    /// The time, as the line tells it.
    Time,
    /// The time between bounds that hold whatever the reference did meanwhile.
    Bounds,
}

/// The generation of the reference under which `line` keeps its bound from this moment on; `None`
/// if nothing says that it does.
pub(super) fn confirmed<B: Timebase>(base: &B, line: &ClockLine) -> Option<u32> {
    let LineValidity::Under(drawn) = line.validity else { return None };
    match base.steering(line.source) {
        ReferenceRate::Untold => None,
        ReferenceRate::Generation(generation) => (generation == drawn).then_some(generation),
        ReferenceRate::Line(reference) => {
            let ticks = base.ticks_ordered(line.source);
            reference.confirms(line, ticks).then_some(reference.generation)
        }
    }
}

/// The OS clock in place of a line that may not keep its bound any more, but not below any time
/// read from that line.
pub(super) fn os_in_place<B: Timebase>(base: &B, line: &ClockLine, place: LinePosition) -> Reading {
    let reported_ns = match place {
        LinePosition::Within(ahead) => line.at(ahead),
        LinePosition::Before(_) => line.base_ns,
        LinePosition::After(_) => line.end_ns(),
    };
    Reading::of_os(base.reference_ns(ReferenceClock::Monotonic), reported_ns, Status::OsClock)
}

/// What a line says at a place, with the OS clock where it says nothing.
pub(super) fn reading<B: Timebase>(base: &B, line: &ClockLine, place: LinePosition) -> Reading {
    let status = if line.source == SourceId::OS { line.status } else { Status::OsClock };
    match place {
        LinePosition::Within(ahead) => {
            let bound_ns = line.bound_at(ahead);
            Reading::from_center(line.at(ahead), bound_ns, line.status)
        }
        // Negative deltas are held at the base, as the kernel's vDSO does.
        LinePosition::Before(behind) if !is_overdue(line, place) => {
            let mut reading = Reading::from_center(line.base_ns, line.bound_ns, line.status);
            let behind_ns = line.slope.ns_ceil(behind);
            reading.bounds.earliest = reading.bounds.earliest.saturating_sub(behind_ns);
            reading
        }
        LinePosition::Before(_) => {
            Reading::of_os(base.reference_ns(ReferenceClock::Monotonic), line.base_ns, status)
        }
        LinePosition::After(_) => {
            Reading::of_os(base.reference_ns(ReferenceClock::Monotonic), line.end_ns(), status)
        }
    }
}
