//! Engines: timers on several time bases over one clock event device.
//!
//! *Hrtimers and Beyond* (2006), sections 4.2, 8 and 9, in user space: a queue a clock, the device
//! programmed for the first of all, precise or bound to a tick, no tick without a use.
//!
//! Owns: [`EngineTimers`] (a [`Queue`](hourglass_queue::Queue) a [`ClockBase`]), the
//! readings of all bases ([`Times`], simulated by [`SimTimes`]), and the [`Engine`] that waits with
//! a device of [`event`](crate::event).
//! Must not: hand timers from one thread to another (that is a service's), lock or allocate while
//! arming, waiting and expiring; start threads, but for the watcher of the system's wall clock.
//!
//! # How a timer expires
//!
//! [`Engine`] belongs to one thread. `timers.rs` has a queue a clock;
//! expiries stay absolute on their own clock, so that setting the wall clock moves none. Before a wait
//! `driver.rs` reads all clocks, maps the first of each queue to the device's time, and tells
//! `device.rs`, which programs the device only if the first of everything changed, at the expiry
//! itself or at the tick that covers it. It tells its user when it will wake, who publishes that and looks
//! once more at what other threads handed over, and only then waits. A thread that sleeps until the wall clock is
//! set (`clock_set_watcher.rs`) is started with the first timer that needs it, never in a simulation.

mod base;
mod clock_set_watcher;
mod device;
mod driver;
mod error;
mod sim;
mod timers;
mod times;

pub use base::{ClockBase, ClockReadings};
pub use driver::{DEFAULT_TICK, Engine, EngineStatistics};
pub use error::{EngineError, TimerError};
pub use sim::SimTimes;
pub use timers::{Cause, ClockSetPolicy, EngineTimers, ExpiredTimer, TimerId};
pub use times::{OsTimes, Times};
