//! Clock event devices: what makes an engine come back at a time.
//!
//! *Hrtimers and Beyond*, section 6, in user space: the "interrupt" is the engine's thread coming
//! back from the device's wait.
//!
//! Owns: devices behind [`ClockEvent`], what is done with any of them ([`EventDevice`]: modes,
//! limits, periods emulated on one-shot devices), which device serves what ([`Registry`]), one
//! device serving several things at once ([`ServiceDevice`], [`TickDevice`]), validation, and
//! whether an engine may be precise or is bound to its tick ([`HighRes`]).
//! Must not: keep timers (that is the queue's), start threads, allocate or take a lock while
//! waiting or programming.

mod clock_event;
mod device;
mod error;
mod facts;
mod high_res;
mod kick;
#[cfg(target_os = "linux")]
pub mod native;
mod period;
mod periods;
mod registry;
mod services;
pub mod sim;
mod tick;
mod validation;

pub use clock_event::{ClockEvent, DeviceWaitEnd, Mode, NextEvent};
pub use device::{DeviceCounts, EventDevice, EventHandler, Programmed, ResumeOutcome};
pub use error::{DeviceError, ModeError, ProgramError};
pub use facts::{BadFacts, DeviceFeatures};
pub use high_res::{HighRes, LowResReason, Resolution, ResolutionListener};
pub use kick::{Kick, Kicker};
pub use period::{BadPeriod, MultShift, Period, PeriodGrid};
pub use periods::{Periods, ResolutionError};
pub use registry::{
    DeviceId, EngineId, Listener, Notice, NoticeKind, RegisterError, Registry, ServiceAssignment,
    Subscription, UnknownDevice,
};
pub use services::{DueServices, Service, ServiceDevice, ServiceWait, Services};
pub use sim::{SimEvent, SimEventConfig};
pub use tick::{TickDevice, TickUser, Ticks};
pub use validation::{
    DevicePlan, InvalidDevice, InvalidSource, SourcePlan, ValidationReport, validate_device,
    validate_source,
};
