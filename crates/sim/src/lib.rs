//! Tasks on a simulated machine: what runs when, exactly, event by event.
//!
//! Owns: the machine ([`System`]: CPUs that may share cores, [`Thread`]s under the scheduling classes
//! of Linux, [`SimServer`]s, what the kernel costs), the engine that executes it, what comes of it
//! ([`SimOutcome`]). Time is in whole nanoseconds, in `u64`; work on shared cores is in fractions of a
//! nanosecond, as small as the rates of progress need. Must not: know Linux, read a clock, use
//! floating point for what happens when, run without a bound ([`SimSettings`]).
//!
//! The same system with the same seed does the same. [`run`] gives statistics only. [`run_to`] tells a
//! [`Sink`] how far the simulation is, and if it wants that, what ran when and what happened. Unless events are
//! wanted, both have a fast path for the common case, with the same outcome. [`run_with`] also lets a [`Monitor`] close CPUs and
//! stop threads, which is how the policies for hardware threads are written.
//!
//! ```
//! use hourglass_sim::{self as sim, SimSettings, System, Thread};
//!
//! // Two periodic threads on one CPU, the first being more urgent: 3/8 and 17/33.
//! let mut system = System::new(1);
//! system.threads.push(Thread::periodic(3, 8).with_priority(2));
//! system.threads.push(Thread::periodic(17, 33).with_priority(1));
//! let outcome = sim::run(&system, SimSettings::until(264))?;
//! assert_eq!(outcome.threads[0].max_response, Some(3));
//! assert_eq!(outcome.threads[1].max_response, Some(29));
//! # Ok::<(), sim::SimError>(())
//! ```
//!
//! # Rounding
//! Releases, replenishments and all other events happen at whole nanoseconds. A job is done in the
//! nanosecond in which its work ends, that is, less than 1 ns late; this only happens where it
//! shares a core (rates below 1). What is left is never rounded, so that nothing drifts.
//!
//! # At the same instant
//! First what ends, ends (jobs, sections, budgets, quanta), in the order of CPUs; then timers expire
//! in the order replenishments, periods of throttling, releases in the order of threads, ticks,
//! timers of the monitor; then CPUs are given out; then the monitor looks, and if it gives orders,
//! CPUs are given out again.

#![forbid(unsafe_code)]

mod check;
mod engine;
mod error;
mod fast;
mod histogram;
mod interference;
mod outcome;
mod random;
mod script;
mod server;
mod settings;
mod sink;
pub mod slack;
pub mod smt;
mod source;
mod system;
mod thread;

pub use engine::monitor::{
    CallReasons, CpuGate, JobView, MOST_LOOKS, MachineView, Monitor, NullMonitor, OrderList,
};
pub use error::SimError;
pub use histogram::Histogram;
pub use hourglass_tasks::JobTrigger;
pub use interference::ProgressRates;
pub use outcome::{CpuOutcome, FirstMiss, ServerOutcome, SimOutcome, ThreadOutcome};
pub use script::{ROUND, Script, SimPhase, SimStep};
pub use server::{Charge, ServerKind, ServerRank, SimServer};
pub use settings::{MOST_EVENTS, SimSettings};
pub use sink::{Event, NullSink, Sink, SinkDetail, Slice};
pub use system::{Overheads, QUANTUM, SLICE, SimLockProtocol, System, Throttling};
pub use thread::{
    ArrivalPattern, Class, CostModel, Jitter, Mark, MarkAction, OverrunPolicy, Preemption, Thread,
};

/// Simulates a system and keeps statistics.
///
/// # Errors
/// A system that makes no sense, more events than the settings allow, or a time over 64 bits.
pub fn run(system: &System, settings: SimSettings) -> Result<SimOutcome, SimError> {
    run_to(system, settings, &mut NullSink)
}

/// Simulates a system, and tells `sink` what it wants to hear.
///
/// # Errors
/// Those of [`run`].
// Not generic, so that the engine is compiled with the settings of this crate, which are for speed.
pub fn run_to(
    system: &System,
    settings: SimSettings,
    sink: &mut dyn Sink,
) -> Result<SimOutcome, SimError> {
    check::check(system)?;
    match fast::run(system, settings, sink) {
        fast::FastOutcome::Done(found) => found,
        fast::FastOutcome::Left(0) => engine::run(system, settings, sink, &mut NullMonitor),
        fast::FastOutcome::Left(sent) => {
            engine::run(system, settings, &mut sink::SkippingSink::of(sink, sent), &mut NullMonitor)
        }
    }
}

/// Simulates a system, tells `sink` what happens, and follows the orders of `monitor`.
///
/// # Errors
/// Those of [`run`], and [`SimError::Restless`] for a monitor that never comes to rest.
pub fn run_with<M: Monitor>(
    system: &System,
    settings: SimSettings,
    sink: &mut dyn Sink,
    monitor: &mut M,
) -> Result<SimOutcome, SimError> {
    check::check(system)?;
    engine::run(system, settings, sink, monitor)
}

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
