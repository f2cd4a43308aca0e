//! The cause of one gap while the run goes on: by what is known of it alone.
//!
//! Owns: what a first look may say. Must not: use other gaps; what these tell comes after the run, and may be another
//! cause.

use crate::{CounterDeltas, Evidence};
use hourglass_documents::Cause;

use super::facts::TickClock;
use super::tick::TickGrid;

const TICK_NS: i64 = 500_000;

/// The cause of a gap of a thread on `cpu` that never waits, from `start_ns` to `end_ns` on the time line of `tick`.
/// `Unknown` without evidence.
pub fn at_first_sight(
    evidence: Evidence,
    (start_ns, end_ns): (i64, i64),
    cpu: u32,
    tick: Option<TickClock>,
) -> Cause {
    let CounterDeltas { involuntary, voluntary, faults } = evidence.counted.unwrap_or_default();
    match evidence {
        Evidence { cleared: None, counted: None } => return Cause::Unknown,
        // A thread that never waits was stopped, or waited for a page.
        _ if voluntary > 0 && faults > 0 => return Cause::PageFault,
        _ if voluntary > 0 => return Cause::Stopped,
        _ if involuntary > 0 => return Cause::ContextSwitchInvoluntary,
        _ if faults > 0 => return Cause::PageFault,
        Evidence { cleared: Some(true), counted: None } => return Cause::ContextSwitch,
        _ => {}
    }
    let grid = tick.and_then(|tick| TickGrid::new(tick, cpu));
    let on_tick = grid.is_some_and(|grid| grid.point(start_ns, end_ns).is_some());
    if on_tick && end_ns.saturating_sub(start_ns) <= TICK_NS {
        Cause::TimerTick
    } else if evidence.cleared == Some(true) {
        Cause::Irq
    } else {
        Cause::IrqOrBelow
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_gap_says_what_it_can() {
        const US: i64 = 1_000;
        let tick = Some(TickClock { period_ns: 4_000_000, at_ns: 0, skew_ns: 0 });
        let of = |cleared, counted: Option<[u8; 3]>, start: i64, end: i64| {
            let counted = counted.map(|[involuntary, voluntary, faults]| CounterDeltas {
                involuntary,
                voluntary,
                faults,
            });
            at_first_sight(Evidence { cleared, counted }, (start * US, end * US), 1, tick)
        };
        let none = Some([0, 0, 0]);
        assert_eq!(of(None, None, 3_990, 4_010), Cause::Unknown);
        assert_eq!(of(Some(true), Some([1, 0, 0]), 3_990, 4_010), Cause::ContextSwitchInvoluntary);
        assert_eq!(of(Some(true), Some([1, 1, 0]), 0, 90_000), Cause::Stopped);
        assert_eq!(of(Some(true), Some([0, 1, 1]), 0, 90_000), Cause::PageFault);
        assert_eq!(of(Some(true), None, 100, 900), Cause::ContextSwitch);
        assert_eq!(of(Some(false), None, 3_990, 4_010), Cause::TimerTick);
        assert_eq!(of(Some(false), None, 3_000, 4_010), Cause::IrqOrBelow, "longer than any tick");
        assert_eq!(of(Some(true), none, 1_000, 1_010), Cause::Irq);
        assert_eq!(of(None, none, 1_000, 1_010), Cause::IrqOrBelow);
    }
}
