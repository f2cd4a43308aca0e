//! When things happen: sleeping until a time, and timers.
//!
//! Owns: clock event devices ([`event`]), timers on several clocks over one device ([`engine`]), timers that any
//! thread arms ([`service`]), precise sleep ([`mod@sleep`]), timing faults ([`fault`]), periodic threads
//! ([`periodic`]), clock devices by name ([`clock_device`]), what a refusal of the kernel means ([`errno_class`]).
//! Must not: read hardware but through `clock`; print.
//!
//! Other systems than Linux have [`mod@sleep`] without its futures.
//!
//! ```
//! use hourglass_time::Span;
//! use hourglass_timer::engine::ClockBase;
//! use hourglass_timer::service::{Action, TimerSpec};
//! use hourglass_timer::{PeriodicThread, Sleeper, TimerService};
//!
//! let slept = Sleeper::new().sleep_for(Span::from_micros(300));
//! println!("{} ns late, {} ns of CPU spun", slept.miss_ns(), slept.spin_ns);
//!
//! let service = TimerService::start()?;
//! let owner = service.owner("example");
//! let action = Action::immediate(|expiry| println!("{} ns late", expiry.late_ns()));
//! let timer = owner.timer(ClockBase::Monotonic, action)?;
//! timer.arm(TimerSpec::after(Span::from_millis(1)).every(Span::from_millis(1)))?; // from any thread
//! timer.terminate()?; // nothing of it runs after this
//!
//! let control = PeriodicThread::builder("control").period(Span::from_millis(1)).spawn(|_job| ())?;
//! let (_why, statistics) = control.stop()?;
//! println!("{} missed of {}", statistics.misses, statistics.jobs);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![warn(missing_docs, unreachable_pub)]

#[cfg(target_os = "linux")]
pub mod clock_device;
#[cfg(target_os = "linux")]
pub mod engine;
#[cfg(target_os = "linux")]
pub mod errno_class;
#[cfg(target_os = "linux")]
pub mod event;
#[cfg(target_os = "linux")]
pub mod fault;
#[cfg(target_os = "linux")]
pub mod periodic;
#[cfg(target_os = "linux")]
pub mod service;
pub mod sleep;
#[cfg(target_os = "linux")]
mod start_thread;

#[cfg(target_os = "linux")]
pub use periodic::PeriodicThread;
#[cfg(target_os = "linux")]
pub use service::{Timer, TimerService};
pub use sleep::Sleeper;

// The example of the page on a registry is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
