//! The paper's inferences: each a function from a trace to a statement with its uncertainty
//! (Hourglass paper, sections 4 and 5).
//!
//! Owns: which gaps and turns a statement is made of, what is set aside, and whether the statement is
//! certain or statistical (section 4 keeps these apart). Must not: give a single gap its cause, which
//! is another module's, or run anything.
//!
//! Traces are iterators of [`crate::Interval`] in the order of their starts. What a trace
//! does not say, [`ThreadFact`] does.
//!
//! # How an inference is made
//!
//! `trace::inferences` has a file for each: it takes records in the order of their starts and gives a statement
//! whose numbers carry 95 % intervals (`trace::statistics`). `Collector` feeds one reading of a trace to all;
//! `document.rs` flattens statements into `documents::Inference`. What a trace does not say (which threads never
//! block, which is the highest) `runs::inferences` takes from the manifest. The next record of a thread shows
//! by whose will it left its CPU; a gap is a cost only if the CPU cannot have been idle meanwhile.

mod cache;
mod cost;
mod cpu_placement;
mod cpu_share;
mod deadlines;
mod dispatch;
mod document;
mod interrupts;
mod quantum;
mod statements;
mod switches;

pub use cache::{CacheTrial, cache_cost};
pub use cost::CostEstimate;
pub use cpu_placement::{PlacedTrace, place};
pub use cpu_share::{CpuShares, cpu_shares};
pub use deadlines::{MissedShare, missed};
pub use dispatch::{Dispatch, LATER_THAN_NS, TailShare, dispatch};
pub use interrupts::{InterruptCost, Interrupts, interrupts};
pub use quantum::{Quantum, quantum};
pub use statements::{Collector, Statements};
pub use switches::{Switch, SwitchKind, Switches, switch_cost, switch_rate, switches};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThreadFact {
    pub thread: u32,
    /// When it began, ns from the run's start.
    pub start_ns: i64,
    /// When it ended, ns from the run's start.
    pub finish_ns: i64,
    /// Whether it never waits or yields by itself.
    pub never_blocks: bool,
    /// Whether no other thread can have taken its CPU: a real-time priority above that of every
    /// thread that may run there, as far as is known.
    pub highest: bool,
}

#[cfg(test)]
mod simulated;
