//! The device itself: what every implementation must do.

use super::error::DeviceError;
use super::facts::DeviceFeatures;
use super::kick::Kick;
use super::period::Period;

/// How a device operates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// It fires nothing.
    Shutdown,
    /// It fires once, at the time that it is programmed for.
    OneShot,
    /// It fires again and again.
    Periodic(Period),
}

/// Why a wait ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceWaitEnd {
    /// The device fired.
    Event {
        /// Periods that ended since the last event; 1 in one-shot mode.
        periods: u64,
    },
    /// A [`Kick`] ended the wait; the engine must poll its timers.
    Kicked,
    /// A signal was handled.
    Signal,
    /// The limit of the wait is past, and the device did not fire.
    Limit,
}

/// Something that makes a thread come back at a time: the kernel's clock event device (*Hrtimers
/// and Beyond*, section 6.1).
///
/// An implementation MUST
/// - not fire earlier than programmed, by [`ClockEvent::now_ns`] read after the wait;
/// - fire nothing after [`Mode::Shutdown`] is set, nothing after [`Mode::OneShot`] is set until it
///   is programmed, and once for each time that it is programmed;
/// - forget what it was programmed for when it is programmed again;
/// - keep a kick that comes before the wait, and let it end that wait (see [`super::Kicker`]);
/// - neither allocate nor take a lock in `set_next_event` and `wait`;
/// - in `wait`, give the processor away unless its documentation says otherwise, and come back
///   from it only for a reason that [`DeviceWaitEnd`] has.
///
/// A device is used by one thread at a time, and by one that called [`ClockEvent::attach`].
pub trait ClockEvent: Send {
    /// What the device is. Constant.
    fn facts(&self) -> DeviceFeatures;

    /// The device's time base now, ns. For devices of the operating system `CLOCK_MONOTONIC`.
    fn now_ns(&self) -> u64;

    /// The calling thread will wait from now on.
    ///
    /// # Errors
    /// What the device needs and does not get.
    fn attach(&mut self) -> Result<(), DeviceError> {
        Ok(())
    }

    /// The calling thread, which attached the device, will no longer wait: the device is shut down
    /// and leaves nothing behind in the thread.
    fn detach(&mut self) {}

    /// Sets the mode. Only modes that [`DeviceFeatures`] announce are asked for.
    ///
    /// # Errors
    /// What the operating system answers.
    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError>;

    /// Programs the next event for `at_ns` of the device's time base, in one-shot mode. It is ahead, within
    /// the device's limits.
    ///
    /// # Errors
    /// What the operating system answers.
    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError>;

    /// Waits until the device fires, a kick arrives, a signal is handled, or the time base reaches
    /// `limit_ns` (for ever without).
    ///
    /// # Errors
    /// What the operating system answers.
    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError>;

    /// A handle that ends waits of this device.
    fn kick(&self) -> Kick;
}
