//! Engines: timers on several time bases over one clock event device.
//!
//! *Hrtimers and Beyond* (2006), sections 4.2, 8 and 9, in user space: a queue a clock, the device
//! programmed for the first of all, precise or bound to a tick, no tick for nobody.
//!
//! Owns: [`Timers`] (a [`Queue`](crate::queue::Queue) a [`Base`] and a wheel of timeouts), the
//! readings of all bases ([`Times`], simulated by [`SimTimes`]), and the [`Engine`] that waits with
//! a device of [`event`](crate::event).
//! Must not: hand timers from one thread to another (that is a service's), lock or allocate while
//! arming, waiting and expiring; start threads, but for the watcher of the system's wall clock.

mod base;
mod driver;
mod error;
mod fired;
mod kicks;
mod looks;
#[cfg(target_os = "linux")]
mod os_times;
mod seat;
mod settings;
mod sim;
mod statistics;
mod timers;
mod times;
#[cfg(target_os = "linux")]
mod watcher;

pub use base::{Base, Now};
pub use driver::Engine;
pub use error::{EngineError, TimerError};
pub use fired::{Cause, Fired, OnSet, TimerId};
pub use kicks::NextWake;
pub use settings::Settings;
pub use sim::SimTimes;
pub use statistics::Statistics;
pub use timers::Timers;
#[cfg(target_os = "linux")]
pub use times::OsTimes;
pub use times::Times;
