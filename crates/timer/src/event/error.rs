//! What devices refuse, and what can be done about it.

use super::period::Period;

/// A device that cannot do what was asked of it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DeviceError {
    /// The kernel has no signal left to set aside for a timer.
    #[error(
        "no signals are left for a timer (RLIMIT_SIGPENDING): raise the limit (ulimit -i 65536) or end other timers"
    )]
    SignalsExhausted,
    /// The process has too many files open.
    #[error("too many files are open: raise the limit (ulimit -n 4096)")]
    TooManyFiles,
    /// A device file does not exist.
    #[error("{path} does not exist: this machine has no such device, or its driver is not loaded")]
    Missing {
        /// Path of the device file.
        path: String,
    },
    /// A device file may not be used, or not at this rate.
    #[error("{path} may not be used like this: as root, or raise /proc/sys/dev/rtc/max-user-freq")]
    Denied {
        /// Path of the device file.
        path: String,
    },
    /// Another process has the device.
    #[error("{path} is in use: end the program that holds it (fuser -v {path})")]
    Busy {
        /// Path of the device file.
        path: String,
    },
    /// The signal asked for is no real-time signal.
    #[error("signal {asked} is not a real-time signal: take one from {first} to {last}")]
    NotRealTime {
        /// The requested signal.
        asked: i32,
        /// First signal that may be used.
        first: i32,
        /// Last signal that may be used.
        last: i32,
    },
    /// The device was not attached by the thread that waits.
    #[error("{0} is not attached to this thread: call `attach` in the thread that waits")]
    NotAttached(&'static str),
    /// The device does not have this mode.
    #[error("{0} does not have this mode")]
    Unsupported(&'static str),
    /// The device only ticks.
    #[error("{0} only ticks, it cannot be programmed for one time")]
    NoOneShot(&'static str),
    /// The device is not in one-shot mode.
    #[error("{0} is not in one-shot mode: call `set_mode` first")]
    NotOneShot(&'static str),
    /// The device has other periods.
    #[error("{device} cannot tick every {asked}: the nearest that it can is {nearest}")]
    Period {
        /// Name of the device.
        device: &'static str,
        /// What was requested.
        asked: Period,
        /// Nearest period of the device.
        nearest: Period,
    },
    /// The period is shorter than the device's shortest distance.
    #[error(
        "{device} cannot tick every {asked}: at least {min_delta_ns} ns lie between its events"
    )]
    TooShort {
        /// Name of the device.
        device: &'static str,
        /// What was requested.
        asked: Period,
        /// Shortest distance of an event, ns.
        min_delta_ns: u64,
    },
    /// The device says that it can neither tick nor be programmed.
    #[error("{0} can neither tick nor be programmed")]
    Useless(&'static str),
    /// The device's shortest distance is 0 or above the longest.
    #[error("{name} can be programmed from {min_ns} ns to {max_ns} ns: that is not a range")]
    Deltas {
        /// Name of the device.
        name: &'static str,
        /// Shortest distance of an event, ns.
        min_ns: u64,
        /// Longest distance of an event, ns.
        max_ns: u64,
    },
    /// In a simulation, nothing would ever end this wait.
    #[error("{0}: nothing is programmed and no kick is planned, so this wait would never end")]
    NeverEnds(&'static str),
    /// The operating system refused.
    #[error("{device}: error {errno} of the operating system (man 3 errno)")]
    Os {
        /// Name of the device.
        device: &'static str,
        /// The number, as `errno(3)`; in a child made by `fork`, 22: make the child its own.
        errno: i32,
    },
}

impl DeviceError {
    /// What an answer of the operating system means for a device.
    pub(crate) fn from_os(device: &'static str, error: &std::io::Error) -> DeviceError {
        // The numbers are Linux's on every architecture.
        match error.raw_os_error().unwrap_or(0) {
            23 | 24 => DeviceError::TooManyFiles,
            errno => DeviceError::Os { device, errno },
        }
    }

    /// What an answer of the operating system means for a device with a file.
    pub(super) fn from_file(
        device: &'static str,
        path: &std::path::Path,
        error: &std::io::Error,
    ) -> DeviceError {
        let path = path.display().to_string();
        match error.raw_os_error().unwrap_or(0) {
            1 | 13 => DeviceError::Denied { path },
            2 | 6 | 19 => DeviceError::Missing { path },
            16 => DeviceError::Busy { path },
            _ => DeviceError::from_os(device, error),
        }
    }
}

/// An event that was not programmed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProgramError {
    /// The time is not ahead. Nothing was programmed; handle it now (the kernel's `-ETIME`: asking
    /// the kernel to wake for the past costs 25 us).
    #[error("the event was due {late_ns} ns ago: handle it now")]
    Past {
        /// How long ago it was, ns.
        late_ns: u64,
    },
    /// The device refused.
    #[error(transparent)]
    Device(#[from] DeviceError),
}
