//! Where an engine reads its time bases.

use super::ClockReadings;
#[cfg(target_os = "linux")]
pub use super::os_times::OsTimes;
use crate::event::{DeviceError, Kick};

/// A source of readings of all time bases.
///
/// An implementation MUST
/// - have [`ClockBase::Monotonic`](super::ClockBase::Monotonic) be the time base of the engine's device, and
///   never set or turn it back;
/// - read the other bases not after it, or at the same moment, and say within what time
///   ([`ClockReadings::with_gap`]);
/// - count the settings of the wall clock that it knows of, and read that count before the clocks;
/// - neither allocate nor take a lock in [`Times::now`] and [`Times::monotonic_ns`].
pub trait Times: Send {
    /// One reading of all bases.
    fn now(&self) -> ClockReadings;

    /// [`ClockBase::Monotonic`](super::ClockBase::Monotonic) alone, ns.
    fn monotonic_ns(&self) -> u64 {
        self.now().device_ns()
    }

    /// From now on `kick` is to be kicked when the wall clock is set or the machine comes back from
    /// a suspension, since a device on [`ClockBase::Monotonic`](super::ClockBase::Monotonic) does not notice.
    /// Called before the first wait with a timer on another base, again after an error only, at
    /// most once a tick.
    ///
    /// # Errors
    /// What the operating system answers. The engine goes on without.
    fn watch(&mut self, kick: &Kick) -> Result<(), DeviceError> {
        let _ = kick;
        Ok(())
    }
}
