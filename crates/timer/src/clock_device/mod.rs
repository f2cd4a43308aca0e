//! Clock devices: RT-Mach's clocks, opened by name, whose resolution can be changed.
//!
//! *Real-Time Mach Timers* (Savage and Tokuda, 1993), section 2: "a clock device contains an
//! interrupt handler, a representation of the current time and a timer queue". Here the interrupt is
//! a tick of a clock event device ([`crate::event::EventDevice`]), the representation a word that any
//! thread reads with one load ([`ClockReader`]), the queue a [`hourglass_queue::Queue`].
//!
//! Owns: devices by name ([`ClockDevices`]), the two ways to read them, their resolution, their
//! timers, which expire at their ticks ([`ClockDevice`]).
//! Must not: start threads, allocate or lock while waiting, arming and expiring (creating a timer
//! may); be more precise than its tick.
//!
//! That last point is what tells it from its neighbours. A clock device is *tick-bound*: it costs as
//! many wake-ups as it ticks, whether anything is due or not. What is to be exact and to leave an idle CPU asleep is an engine's business: it
//! sets the same queue's next expiry as a one-shot event ([`crate::engine::Engine`]).

mod device;
mod error;
mod reader;
mod registry;
mod timers;

#[cfg(test)]
mod tests;

pub use device::ClockDevice;
pub use error::{ArmError, NameTaken, OpenError};
pub use reader::ClockReader;
pub use registry::{ClockDevices, Description};
pub use timers::{Cancel, DeviceExpiry};
