//! Drawing a line: from where the last one is, towards where the reference is.

use super::bound::Status;
use super::clock_offsets::difference;
use super::line::{ClockLine, LinePosition, LineValidity, UNORDERED_NS};
use super::sample::ClockSample;
use super::slope::{RELATIVE_BITS, Slope, share_of};
use super::timebase::{ReferenceClock, SourceId, Timebase};

/// The shortest time in which an error is absorbed, ns.
const SHORTEST_NS: u64 = 1_000_000;

/// The input for a line over a counter.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineParameters {
    pub(super) source: SourceId,
    pub(super) status: Status,
    pub(super) epoch: u32,
    pub(super) slope: Slope,
    /// Bound on its relative error from now on, with the allowance for drift; 2^-32.
    pub(super) error: u64,
    /// The time for which the line must hold, ns.
    pub(super) interval_ns: u64,
    /// Counter and `CLOCK_MONOTONIC` at a moment just past.
    pub(super) anchor: ClockSample,
    /// The latest time that a reader may have received by other means than the last line, ns.
    pub(super) floor_ns: u64,
    /// How long the bound holds.
    pub(super) validity: LineValidity,
}

/// The latest time that readers of `old` can have received by now, ns. Call it while readers wait.
fn reported_by_now<B: Timebase>(base: &B, old: &ClockLine, ticks: u64) -> u64 {
    match old.place(ticks) {
        LinePosition::Within(ahead) => old.at(ahead),
        LinePosition::Before(_) => old.base_ns,
        // After its end they received the OS clock, but no time before its end.
        LinePosition::After(_) => base.reference_ns(ReferenceClock::Monotonic).max(old.end_ns()),
    }
}

/// A line over a counter, without a step: it begins where the last one is, and absorbs 15/16 of
/// the error within its interval (Abseil's `GetCurrentTimeNanos` does the same).
pub(super) fn over_counter<B: Timebase>(
    base: &B,
    old: &ClockLine,
    plan: &LineParameters,
) -> ClockLine {
    let mut ticks = base.ticks_enclosing(old.source);
    let reported_ns = reported_by_now(base, old, ticks);
    let goes_on = plan.source == old.source && matches!(old.place(ticks), LinePosition::Within(_));
    if !goes_on {
        ticks = base.ticks_enclosing(plan.source);
    }
    let since = ticks.wrapping_sub(plan.anchor.ticks);
    // A counter that steps back just now is found by the next check; here nothing must overflow.
    let since = if since > u64::MAX / 2 { 0 } else { since };
    let since_ns = plan.slope.ns_floor(since);
    let truth_ns = plan.anchor.ns.saturating_add(since_ns);
    // Where another clock served until now, time has passed since it was read for `reported_ns`.
    let least_ns = if goes_on { plan.floor_ns } else { plan.floor_ns.max(truth_ns) };
    let base_ns = reported_ns.max(least_ns);
    let ahead_ns = difference(base_ns, truth_ns);
    let bound_ns = ahead_ns
        .unsigned_abs()
        .saturating_add(anchor_error_ns(plan, since_ns))
        .saturating_add(UNORDERED_NS);
    let slope = plan.slope.slower(absorbed(ahead_ns), plan.interval_ns);
    // A line that slows down lasts no longer for that: it would absorb more than the error.
    let valid_for =
        slope.ticks_floor(plan.interval_ns).min(plan.slope.ticks_floor(plan.interval_ns));
    // What proofs/timekeeping.py takes for granted: else the bound would not hold while the line slows down.
    debug_assert!(plan.error <= 1 << RELATIVE_BITS, "a slope known to {} of 2^-32", plan.error);
    debug_assert!(16 * u128::from(slope.mult) + 16 >= 15 * u128::from(plan.slope.mult), "{plan:?}");
    debug_assert!(plan.slope.ns_floor(valid_for) <= plan.interval_ns, "{plan:?}");
    ClockLine {
        source: plan.source,
        status: plan.status,
        epoch: plan.epoch,
        slope,
        base_ticks: ticks,
        valid_for,
        base_ns,
        bound_ns,
        growth: plan.error,
        validity: plan.validity,
    }
}

/// How far the reference may be, `since_ns` after the anchor, from what the anchor and the slope say, ns.
pub(super) fn anchor_error_ns(plan: &LineParameters, since_ns: u64) -> u64 {
    const ROUNDINGS_NS: u64 = 2;
    let half_ns = plan.slope.ns_ceil(plan.anchor.half_ticks);
    // The anchor's reading may be half a bracket older.
    let longest_ns = since_ns.saturating_add(half_ns).saturating_add(1);
    half_ns.saturating_add(share_of(longest_ns, plan.error)).saturating_add(ROUNDINGS_NS)
}

/// A line over the OS clock, not below any time that readers received. If it is ahead it runs up to
/// 1/16 slower until it is not, and then is the OS clock itself. `look_again_ns` ends its validity
/// earlier, so that it is checked then.
pub(super) fn over_os<B: Timebase>(
    base: &B,
    old: &ClockLine,
    floor_ns: u64,
    epoch: u32,
    status: Status,
    look_again_ns: Option<u64>,
) -> ClockLine {
    let reported_ns = reported_by_now(base, old, base.ticks_enclosing(old.source));
    let ticks = base.reference_ns(ReferenceClock::Monotonic);
    let base_ns = reported_ns.max(floor_ns).max(ticks);
    let ahead_ns = base_ns - ticks;
    let mut slope = Slope::IDENTITY;
    let mut valid_for = look_again_ns.unwrap_or(u64::MAX);
    if ahead_ns > 0 {
        let over_ns = ahead_ns.saturating_mul(16).max(SHORTEST_NS);
        slope = slope.slower(absorbed(difference(base_ns, ticks)), over_ns);
        valid_for = valid_for.min(over_ns);
        // As in `over_counter`: what is absorbed until the end is no more than the error.
        debug_assert!(Slope::IDENTITY.ns_floor(valid_for) <= over_ns);
    }
    ClockLine {
        source: SourceId::OS,
        status,
        epoch,
        slope,
        base_ticks: ticks,
        valid_for,
        base_ns,
        bound_ns: ahead_ns,
        growth: 0,
        validity: LineValidity::Always,
    }
}

/// How much of an error is taken away until the next line: 15/16, so that noise does not echo.
pub(super) fn absorbed(error_ns: i64) -> i64 {
    error_ns - error_ns / 16
}

#[cfg(test)]
#[path = "tests/line_fit.rs"]
mod tests;
