//! Experiments: the other crates put together into a run with its manifest, warnings and result.
//!
//! Owns: running a specification and explaining its numbers ([`experiment`]), the same for a loop of
//! the user's own ([`own_loop`]), causes of gaps ([`causes`]), runs compared ([`compare`]), reading a
//! kept run ([`mod@recall`]), limits that a run has to keep ([`gates`]), facts about the machine
//! ([`host`]), advice about them ([`advice`]), a diagnosis
//! ([`doctor`]), theory put to use ([`theory`]), workload files ([`workload_file`]).
//! Must not: draw, print, or parse arguments.

#![forbid(unsafe_code)]

pub mod advice;
pub mod cache_cost;
pub mod causes;
pub mod clock_watch;
pub mod clocks;
pub mod compare;
mod dma_latency;
pub mod doctor;
mod drift;
mod evidence;
pub mod experiment;
mod findings;
pub mod gates;
pub mod host;
mod inferences;
mod kernel_trace;
pub mod load;
mod niceness;
pub mod noise;
pub mod own_loop;
pub mod paper;
mod passing;
pub mod recall;
mod records;
pub mod refusal;
pub mod reserve;
mod reserver;
mod resources;
mod strays;
mod switch_records;
pub mod theory;
mod wakeups;
pub mod whole;
pub mod workload_file;

pub use causes::Explanation;
pub use dma_latency::may_hold as may_hold_idle_latency;
pub use experiment::{Failure, Finished, Request, Watch, run};
/// The rules by which a clock is chosen, and what a text is that is none.
pub use hourglass_clock::{
    Policy as ClockPolicy,
    choice::UnknownPolicy as UnknownClockPolicy,
    source::{SourceName, UnknownSource},
};

pub use gates::{Gates, Limit};

pub use recall::{Recalled, recall};
pub use refusal::Refusal;
pub use resources::{permitted_cpus, usual_cpus};
pub use whole::{Whole, WholeError};

/// The types of which a run is specified.
pub use hourglass_workload as workload;

/// The nouns that the other crates share, for those who depend on this one only.
pub use hourglass_model as model;

/// Reservations of a program's own threads, and the page in which it tells how far it is.
pub use hourglass_reserve as reservations;

/// For programs that have handlers of signals of their own.
pub use hourglass_sys::signal::catch_stop_during;
pub use hourglass_sys::user::give_up_capabilities;

/// For commands: what does not end them.
pub use hourglass_sys::signal::live_on;

/// What a trace says, for those who go through one themselves.
pub use hourglass_infer as infer;

/// The theory itself, for those who choose its parts.
pub use hourglass_sched as sched;

/// The run folders that a run is kept in.
pub use hourglass_store as store;
