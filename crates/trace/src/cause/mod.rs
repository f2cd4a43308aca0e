//! A cause for every gap, with a confidence and what speaks for it.
//!
//! Owns: the rules by which a gap gets its cause. The best source speaks first: the kernel's own
//! events, what the thread found out right after the gap, what follows from the trace alone
//! (Hourglass paper, section 4), and at last statistics over all gaps. What was seen and what was
//! inferred are kept apart ([`CauseBasis`]).
//! Must not: read a file or a clock, draw. State is kept per thread and per CPU, not per gap.
//!
//! A trace is read twice: [`survey`] learns grids and periods, [`attribute`] gives causes.
//!
//! # How a gap gets its cause
//!
//! `trace::cause` reads a trace twice. `survey` learns what only many gaps show: how many gaps hold a tick
//! (`tick.rs`: its moments are known by `CLOCK_MONOTONIC`; where they are not, `grid.rs` looks for the grid of the
//! tick on each CPU: a histogram of phases in windows, so that a grid kept by another clock is followed),
//! periods of gaps of one size (`periodic_gaps.rs`: the host's tick), throttlings a period apart (`throttled.rs`), ends of
//! gaps at replenishments, where a quota's periods begin (`quota.rs`), and how many gaps of each size interrupts
//! can be by the kernel's counts. `attribute` then takes intervals and kernel events in order.
//! `kernel.rs` keeps an account for each thread from the end of its last interval on: where the time went,
//! who took the CPU for how long, in which state the thread left it. `verdict.rs` has the rules in order: the kernel's
//! events, what the thread found out itself, interleaving and priorities (section 4), statistics. `CauseBasis`
//! keeps what was seen apart from what was inferred. State is kept per thread and per CPU. `runs::causes` makes
//! the facts out of a manifest and says in warnings what the causes lack. `trace::run_comparison` has the
//! statements that need two runs.

mod attribution;
mod classify;
mod facts;
mod gap;
mod grid;
mod indications;
mod kernel;
mod live_cause;
mod log2_buckets;
mod periodic_gaps;
mod quota;
mod simulated;
mod span;
mod stream;
mod switch_evidence;
mod tally;
mod throttled;
mod tick;
mod trace_patterns;

pub use attribution::{Attribution, AttributionCounts, RanByCause};
pub use facts::{
    InterruptFacts, KernelCoverage, Quota, REPORTED_NS, RtLimit, RunFacts, SwitchFacts,
    ThreadFacts, TickClock,
};
pub use gap::{AttributedGap, CauseBasis, GapBreakdown, GapOccupants, OccupantShare, Successor};
pub use indications::{Indication, IndicationSet};
pub use live_cause::at_first_sight;
pub use simulated::attribute_simulated;
pub use span::{SpanSeen, judge_span};
pub use stream::{AttributedGaps, attribute, survey};
pub use tally::CauseTally;
pub use trace_patterns::{Patterns, RepeatFound, TickFound, TracePatterns};
