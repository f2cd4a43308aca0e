//! Clock event devices: what makes a thread come back at a time.
//!
//! *Hrtimers and Beyond*, section 6, in user space: the "interrupt" is the thread coming back from the
//! device's wait. Which device serves what is for the caller to say: an engine has one.
//!
//! Owns: devices behind [`ClockEvent`], what is done with any of them ([`EventDevice`]: modes,
//! limits, periods emulated on one-shot devices), validation of devices and of clock sources.
//! Must not: keep timers (that is the queue's), start threads, allocate or take a lock while
//! waiting or programming.

mod clock_event;
mod device;
mod error;
mod kick;
pub mod native;
mod period;
mod periods;
pub mod sim;
mod validation;

pub use clock_event::{ClockEvent, DeviceFeatures, DeviceWaitEnd, Mode, Resolution};
pub use device::{DeviceCounts, EventDevice};
pub use error::{DeviceError, ProgramError};
pub use kick::{Kick, Kicker};
pub use period::{BadPeriod, Period, PeriodGrid};
pub use periods::{Periods, ResolutionError};
pub use sim::{SimEvent, SimEventConfig};
pub use validation::{
    InvalidDevice, InvalidSource, ValidationReport, validate_device, validate_source,
};
