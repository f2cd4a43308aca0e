//! Timekeeping: a clock drawn in straight lines over a counter, each with a bound on its error.
//!
//! Owns: the calibration [`page`] and how it is read and replaced, the [`Clock`] with its
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
//! layout that is not known is found nowhere. `steering.rs` compares lines: a line is confirmed under a generation
//! if it stays within its bound of the kernel's line to its end. The page holds the generation that was confirmed
//! last (`guard`); a bounded read loads it and the kernel's own after the counter, and goes to `Clock::late` if they
//! differ: at each tick of the kernel to confirm (0.1 us, no lock), after a change of rate to draw a new line, or to
//! take the OS clock if somebody else draws it. `reference_state.rs` holds the kernel's line against a reading of both at each
//! calibration, so that a counter which lies to this process is still found. Without the kernel's line bounded
//! reads take the OS clock, unless the settings give an allowance (`Status::Assumed`).

mod bend;
mod bound;
mod check;
mod clock;
mod draw;
mod event;
mod grain;
mod helper;
#[cfg(target_os = "linux")]
mod kernel_page;
mod line;
mod native;
pub mod page;
mod read;
mod reference_state;
mod sample;
mod scales;
mod settings;
#[cfg(target_os = "linux")]
mod share;
#[cfg(not(target_os = "linux"))]
#[path = "unshared.rs"]
mod share;
mod slope;
mod sourced;
mod steering;
mod text;
mod timebase;
mod timekeeper;
mod trust;
mod typed;
mod utc;
mod wall;
mod watch;

#[cfg(test)]
#[path = "tests/double.rs"]
mod double;
#[cfg(test)]
#[path = "tests/properties.rs"]
mod properties;

pub use bound::{Bounds, Status};
pub use clock::{Clock, Elapsed, Maintained, MixedTicks, ScaleTime, SetSourceError, Ticks};
pub use event::{Event, EventKind, What};
pub use helper::Helper;
pub use native::Native;
pub use settings::{Prior, Settings, Start};
#[cfg(target_os = "linux")]
pub use share::{OpenPageError, PageReader, Writer};
pub use sourced::WithSource;
pub use steering::{ReferenceLine, Steering};
pub use text::Text;
pub use timebase::{Discipline, Leap, Scale, SourceId, Timebase};
pub use trust::MeasuredRate;
pub use typed::Timeline;
pub use wall::{WallReference, WallStatus, WallTime};
