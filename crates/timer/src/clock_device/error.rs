//! What clock devices refuse.

use hourglass_queue::QueueError;
use hourglass_time::Span;

use crate::event::{DeviceError, ResolutionError};

/// A clock device that was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No clock device has this name.
    #[error("no clock device is called '{name}'; there are {known}")]
    Unknown {
        /// Name that was requested.
        name: String,
        /// The names there are, separated by commas.
        known: String,
    },
    /// This machine does not have the device, or not for this program.
    #[error("clock device '{name}': {error}")]
    Device {
        /// Name of the device.
        name: String,
        /// The error of the device.
        error: DeviceError,
    },
    /// The device does not tick.
    #[error("clock device '{name}': {error}")]
    Resolution {
        /// Name of the device.
        name: String,
        /// The error of the device.
        error: ResolutionError,
    },
}

/// A name that a clock device has already.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a clock device is called '{0}' already; take another name")]
pub struct NameTaken(pub String);

/// A timer that was not armed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArmError {
    /// The period is zero or negative.
    #[error("a period of {0} never ends; give one of at least 1 ns, or none to fire once")]
    Period(Span),
    /// The timer was terminated.
    #[error(transparent)]
    Timer(#[from] QueueError),
}
