//! A cause for every gap, with a confidence and what speaks for it.
//!
//! Owns: the rules by which a gap gets its cause. The best source speaks first: the kernel's own
//! events, what the thread found out right after the gap, what follows from the trace alone
//! (Hourglass paper, section 4), and at last statistics over all gaps. What was seen and what was
//! inferred are kept apart ([`Basis`]).
//! Must not: read a file or a clock, draw. State is kept per thread and per CPU, not per gap.
//!
//! A trace is read twice: [`survey`] learns grids and periods, [`attribute`] gives causes.

mod attribution;
mod facts;
mod gap;
mod grid;
mod judge;
mod kernel;
mod repeats;
mod signs;
mod stream;
mod survey;
mod switched;
mod tally;

pub use attribution::{Attribution, Remarks};
pub use facts::{Facts, KernelCoverage, Quota, REPORTED_NS, RtLimit, SwitchFacts, ThreadFacts};
pub use gap::{AttributedGap, Basis, Composition, Successor};
pub use signs::{Sign, Signs};
pub use stream::{Attributed, attribute, survey};
pub use survey::{Patterns, RepeatFound, Survey, TickFound};
pub use tally::CauseTally;
