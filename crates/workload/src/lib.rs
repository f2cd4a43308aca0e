//! The hourglass itself: threads that measure when they run.
//!
//! Owns: the thread execution models ([`models`]), tasks as threads ([`replay`]), the wake-up methods ([`wake`]), gap detection
//! and the recorder ([`recorder`]), the hook by which a thread asks for a reservation
//! ([`reservation`]), and the run that puts them on the machine ([`mod@run`]).
//! Must not: know which scheduler it is under, infer anything, and, between start and stop, do
//! I/O, allocate, fault pages or make a system call but the model's own, the question for the
//! kernel's counters behind a gap, and where the kernel is traced a mark behind the latest wake-up so far.
//!
//! The specification is Regehr, *Inferring Scheduling Behavior with Hourglass* (2002),
//! section 3 and Appendix A.

#![forbid(unsafe_code)]

pub mod buckets;
mod buffer;
pub mod gap_evidence;
pub mod guard;
pub mod jobs;
pub mod live;
pub mod long_gaps;
mod loop_time;
pub mod marker;
mod measuring_counter;
pub mod memory;
pub mod models;
mod notifier;
pub mod own_loop;
pub mod recorder;
mod refused;
pub mod replay;
pub mod reservation;
pub mod run;
mod run_threads;
#[cfg(test)]
mod simulated;
pub mod spec;
mod thread;
mod timeline;
mod tokens;
pub mod wake;
pub mod wake_times;

pub use buckets::{Buckets, Steps};
pub use buffer::{Record, TraceBuffer};
pub use guard::{Guard, HitKind, LimitHit};
pub use live::{LiveSnapshot, LiveThreads, WorstEvent};
pub use long_gaps::{LongGap, LongGaps};
pub use measuring_counter::{AnyCounter, MeasuringCounter};
pub use own_loop::{LoopError, LoopSpec, OwnLoop};
pub use recorder::{Recorder, RecordingEnd, Work};
pub use run::{RunError, RunMeasurement, RunObserver, run};
pub use spec::{RunSpec, SpecError, ThreadSpec};
pub use timeline::{Epoch, Timeline};
pub use tokens::{TokenReader, WordError};

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
