//! What timers and engines refuse.

use hourglass_queue::QueueError;

use super::ClockBase;
use crate::event::{DeviceError, InvalidDevice};

/// Why [`EngineTimers`](super::EngineTimers) did not do as asked. Nothing has changed when one comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TimerError {
    /// The timer was removed, or there is no room.
    #[error(transparent)]
    Queue(#[from] QueueError),
    /// No clock is ever before its zero.
    #[error("an expiry of {expiry_ns} ns on {}: it must be 0 to {}", .base.name(), i64::MAX)]
    ExpiryOutOfRange {
        /// Clock of the timer.
        base: ClockBase,
        /// Requested expiry.
        expiry_ns: i64,
    },
}

/// Why an [`Engine`](super::Engine) does not go on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine's device failed, or was found broken.
    #[error("no clock event device is left for this engine: make another engine")]
    NoDevice,
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The device was found broken when it was tried out.
    #[error(transparent)]
    Invalid(InvalidDevice),
    /// The timers refused.
    #[error(transparent)]
    Timers(#[from] TimerError),
}
