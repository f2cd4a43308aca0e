//! Experiments: the other crates put together into a run with its manifest, warnings and result.
//!
//! Owns: running a specification and explaining its numbers ([`experiment`]), the same for a loop of
//! the user's own ([`own_loop`]) and for spans of a program ([`spans`]), causes of gaps ([`causes`]), runs compared
//! ([`compare`]), reading a run folder back ([`mod@open_run`]), runs of many nodes put together ([`fleet`]), limits
//! that a run has to keep ([`gates`]), workload files ([`workload_file`]), sets of tasks ([`task_input`]) and threads
//! made of them ([`task_threads`]).
//! Must not: draw, print, or parse arguments.

#![forbid(unsafe_code)]

mod affinity_violations;
pub mod cache_cost;
pub mod causes;
pub mod clock_watch;
pub mod compare;
mod concurrent_threads;
mod dma_latency;
mod drift;
mod evidence;
pub mod experiment;
mod failure;
mod findings;
pub mod fleet;
pub mod gates;
mod inferences;
mod interrupt_counts;
mod kernel_trace;
mod late_wake_ups;
mod live_view;
mod niceness;
mod node_name;
pub mod noise;
mod observer;
pub mod open_run;
mod outside;
pub mod own_loop;
mod premises;
mod records;
pub mod reserved_folder;
mod reserver;
mod resources;
pub mod run_contents;
mod run_observer;
pub mod spans;
mod switch_records;
pub mod task_input;
pub mod task_threads;
mod tick;
mod time_namespace;
mod utc;
mod wakeups;
pub mod watch_process;
pub mod workload_file;
mod worst_intervals;
mod worst_stacks;

pub use causes::Explanation;
pub use experiment::{ExperimentObserver, Finished, RunFailure, RunOptions, run};
/// Policies for choosing a clock, and the error for an unknown policy name.
pub use hourglass_clock::{
    SelectionPolicy as ClockPolicy,
    choice::UnknownPolicy as UnknownClockPolicy,
    source::{SourceName, UnknownSource},
};

pub use gates::{Gates, Limit};

pub use live_view::LiveView;

pub use open_run::{OpenRun, open_run};
pub use run_contents::{RunContents, RunContentsError};

/// The types of which a run is specified.
pub use hourglass_workload as workload;

/// The nouns that the other crates share, for those who depend on this one only.
pub use hourglass_model as model;

/// Reservations of a program's own threads, and the page in which it tells how far it is.
pub use hourglass_reserve as reservations;

pub use hourglass_sys::credentials::give_up_capabilities;
/// For programs that have handlers of signals of their own.
pub use hourglass_sys::signal::catch_stop_during;

/// For commands: what does not end them; which signals a program that they start ignores; whether a terminal shows lines.
pub use hourglass_sys::inherited_signals::hand_on;
pub use hourglass_sys::signal::set_signal_dispositions;
pub use hourglass_sys::terminal::shows_lines;

/// What a trace says, for those who go through one themselves.
pub use hourglass_infer as infer;

/// The theory itself, for those who choose its parts.
pub use hourglass_sched as sched;

/// The run folders that a run is kept in.
pub use hourglass_store as store;
