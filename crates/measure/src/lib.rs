//! A run made: threads started, measured, explained, kept; limits held against it.
//!
//! Owns: running a specification and explaining its numbers ([`experiment`]), the same for a loop of
//! the user's own ([`own_loop`]), for spans of a program ([`spans`]) and for another process ([`watch_process`]), runs made to be
//! compared ([`compare`]), limits that a run has to keep ([`gates`]), workload files ([`workload_file`]), sets of tasks
//! ([`task_input`]) and threads made of them ([`task_threads`]).
//! Must not: draw, print, or parse arguments; say what follows from a kept run (`runs` does).

#![forbid(unsafe_code)]

mod affinity_violations;
pub mod cache_cost;
pub mod clock_watch;
pub mod compare;
mod concurrent_threads;
mod dma_latency;
mod evidence;
pub mod experiment;
mod failure;
mod findings;
pub mod gates;
mod interrupt_counts;
mod kernel_trace;
mod live_view;
mod load;
mod loop_observer;
mod niceness;
mod node_name;
pub mod noise;
mod observer;
mod outside;
pub mod own_loop;
mod premises;
mod records;
pub mod reserved_folder;
mod reserver;
mod resources;
mod run_observer;
pub mod spans;
mod switch_records;
pub mod task_input;
pub mod task_threads;
mod tick;
mod time_limits;
mod time_namespace;
pub mod utc;
mod wakeups;
pub mod watch_process;
pub mod workload_file;
mod worst_intervals;
mod worst_stacks;

pub use experiment::{ExperimentObserver, Finished, LoadOptions, RunFailure, RunOptions, run};
/// Policies for choosing a clock, and the error for an unknown policy name.
pub use hourglass_clock::{
    SelectionPolicy as ClockPolicy,
    choice::UnknownPolicy as UnknownClockPolicy,
    source::{SourceName, UnknownSource},
};

pub use gates::{Gates, Limit};

pub use live_view::LiveView;

pub use hourglass_sys::credentials::give_up_capabilities;
/// For programs that have handlers of signals of their own.
pub use hourglass_sys::signal::catch_stop_during;

/// For commands: what does not end them; which signals a program that they start ignores; whether a terminal shows lines.
pub use hourglass_sys::inherited_signals::hand_on;
pub use hourglass_sys::memory::has_room;
pub use hourglass_sys::signal::set_signal_dispositions;
pub use hourglass_sys::terminal::shows_lines;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
