//! When things happen: sleeping until a time, and timers.
//!
//! Owns: timers and timeouts in order of expiry ([`queue`]), clock event devices ([`event`]), timers on
//! several clocks over one device ([`engine`]), timers that any thread arms ([`service`]), precise
//! sleep ([`mod@sleep`]), timing faults ([`fault`]), periodic threads ([`periodic`]), clock devices by
//! name ([`clock_device`]).
//! Must not: read hardware but through `clock`; print.

#![forbid(unsafe_code)]

pub mod clock_device;
pub mod engine;
pub mod event;
pub mod fault;
pub mod periodic;
pub mod queue;
pub mod service;
pub mod sleep;

pub use periodic::PeriodicThread;
pub use service::{Timer, TimerService};
pub use sleep::Sleeper;
