//! Timekeeping: a clock drawn in straight lines over a counter, each with a bound on its error.
//!
//! Owns: the calibration [`calibration_page`] and how it is read and replaced, the [`Clock`] with its
//! calibration, failover and events, wall-clock time, the page shared with other processes.
//! Must not: decide what is to be trusted at first (that is [`crate::choice`]'s), arm anything, run
//! in a signal handler but for plain reads.
//!
//! A line begins where the last one is and leads towards where the reference is, so that time
//! never steps; its bound grows with time, and it has an end, after which the OS clock serves.
//! Whatever goes wrong ends in a line over the OS clock.
//!
//! # How a bound outlasts a change of the kernel's rate
//!
//! No calibration covers what `adjtimex` does after it. The kernel's clock is a line over the counter, and the kernel
//! shows it to every process (`[vvar]`, `sys::vvar`). The layout is private, so `timekeeping/kernel_page.rs` believes a
//! place only when the time computed from it lay between readings of `CLOCK_MONOTONIC`, under two generations; a
//! layout that is not known is found nowhere. `reference_rate.rs` compares lines: a line is confirmed under a generation
//! if it stays within its bound of the kernel's line to its end. The page holds the generation that was confirmed
//! last (`guard`); a bounded read loads it and the kernel's own after the counter, and goes to `Clock::late` if they
//! differ: at each tick of the kernel to confirm (0.1 us, no lock), after a change of rate to draw a new line, or to
//! take the OS clock if another thread draws it. `reference_state.rs` compares the kernel's line with a reading of both
//! at each calibration, so that a counter which lies to this process is still found. Without the kernel's line bounded
//! reads take the OS clock, unless the settings give an allowance (`Status::Assumed`).

mod bound;
pub mod calibration_page;
mod check;
mod clock;
mod clock_offsets;
mod event;
mod granularity;
mod inline_string;
mod instants;
#[cfg(target_os = "linux")]
mod kernel_page;
mod line;
mod line_fit;
mod linearity;
mod machine_watch;
mod maintenance_thread;
mod native;
mod reference_rate;
mod reference_state;
mod sample;
mod seq_words;
mod settings;
#[cfg(target_os = "linux")]
mod share;
#[cfg(not(target_os = "linux"))]
#[path = "no_shared_page.rs"]
mod share;
mod slope;
mod slow_path;
mod source_timebase;
mod timebase;
mod timekeeper;
mod trust;
mod utc;
mod utc_statement;
mod wall_clock;

#[cfg(test)]
#[path = "tests/double.rs"]
mod double;
#[cfg(test)]
#[path = "tests/lemmas.rs"]
mod lemmas;
#[cfg(test)]
#[path = "tests/properties.rs"]
mod properties;

pub use bound::{Bounds, Status};
pub use clock::{Clock, Elapsed, MaintenanceResult, MixedTicks, ScaleTime, SetSourceError, Ticks};
pub use event::{ClockEventKind, Event, EventKind};
pub use inline_string::InlineString;
pub use instants::Timeline;
pub use machine_watch::disruption_marker;
pub use maintenance_thread::MaintenanceThread;
pub use native::Native;
pub use reference_rate::{ReferenceLine, ReferenceRate};
pub use settings::{ClockSettings, FrequencyHint, Start};
#[cfg(target_os = "linux")]
pub use share::{OpenPageError, PageReader, Writer};
pub use source_timebase::ExtendedTimebase;
pub use timebase::{Discipline, Leap, ReferenceClock, SourceId, Timebase};
pub use trust::MeasuredRate;
#[cfg(target_os = "linux")]
pub(crate) use utc::is_leap_near;
pub use utc::{Utc, UtcInterval, states_bound};
#[cfg(target_os = "linux")]
pub(crate) use utc_statement::growth_ns;
pub use utc_statement::{KernelClockState, UtcStatement, UtcStatementError};
pub use wall_clock::{WallReference, WallStatus, WallTime};
