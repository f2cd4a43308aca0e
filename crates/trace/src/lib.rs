//! What an execution trace says: the gaps on each CPU, and what each thread received.
//!
//! Owns: the records of a trace ([`Interval`], [`Evidence`], [`KernelEvent`]), and statements that follow from a trace alone (Hourglass paper, sections 3.1 and 4).
//! Must not: run anything, read a clock or a file, draw. A trace from any machine is enough.
//!
//! Everything here takes intervals one by one, in the order of their starts. Summaries keep state per
//! thread and per CPU only; inferences keep, for exact percentiles, a number for each switch and gap.
//! [`compare`] keeps what it is going to draw anew.

#![forbid(unsafe_code)]

pub mod cause;
pub mod compare;
pub mod cpu_occupancy;
mod cpu_timeline;
pub mod delay;
mod evidence;
mod gap_statistics;
mod interval;
mod job;
pub mod model;
pub mod run_comparison;
mod trace_summary;
pub mod wakeup;

pub mod inferences;
pub mod statistics;

pub use cpu_timeline::{CpuGap, CpuGaps, CpuTimeline};
pub use evidence::{CounterDeltas, Evidence, KernelEvent, KernelEventKind, Vector, WaitCall};
pub use gap_statistics::GapStatistics;
pub use interval::{Interval, IntervalStart};
pub use job::JobRecord;
pub use trace_summary::{ThreadSummary, TraceSummary};

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
