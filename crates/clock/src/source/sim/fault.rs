//! Faults of a simulated clock, and their times.

use hourglass_time::Span;

/// Something that goes wrong at a moment of true time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// When, in true time since the beginning.
    pub at: Span,
    /// The kind of the fault.
    pub kind: FaultKind,
}

/// The kinds of faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// The clock jumps, backwards if negative.
    Step(Span),
    /// The clock stands still for this time, then goes on from where it stood.
    Stop(Span),
    /// One CPU's count has this offset from then on.
    CpuOffset {
        /// The CPU.
        cpu: u32,
        /// How far ahead of the others it is.
        offset: Span,
    },
    /// The clock runs at another rate from then on.
    Rate {
        /// How much faster it runs, parts per billion.
        ppb: i64,
    },
    /// The machine is suspended. True time is that of `CLOCK_MONOTONIC`, so it stands still, and
    /// the count with it; `CLOCK_BOOTTIME` is ahead by this time from then on. A count that went on
    /// meanwhile, or began anew, is a [`FaultKind::Step`] at the same moment.
    Suspend(Span),
}
