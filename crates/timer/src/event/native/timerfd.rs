//! A timerfd: a device that can be waited for beside other descriptors.

use std::os::fd::AsFd;
use std::sync::Arc;

use hourglass_sys::eventfd::{Timer, either_readable};

use super::{FdKick, now, until};
use crate::event::{ClockEvent, DeviceError, DeviceFeatures, DeviceWaitEnd, Kick, Mode, Periods};

const NAME: &str = "timerfd";

/// A timerfd and an eventfd, waited for by `ppoll`. Programming is one system call, a wait two.
/// Not subject to timer slack. Waking costs some 5 us more than [`super::SleepEvent`].
pub struct TimerFdEvent {
    timer: Timer,
    kick: Arc<FdKick>,
}

impl TimerFdEvent {
    /// A device that fires nothing yet.
    ///
    /// # Errors
    /// [`DeviceError::TooManyFiles`]: it needs two descriptors.
    pub fn new() -> Result<TimerFdEvent, DeviceError> {
        let timer = Timer::new().map_err(|e| DeviceError::from_os(NAME, &e))?;
        Ok(TimerFdEvent { timer, kick: FdKick::shared(NAME)? })
    }
}

impl ClockEvent for TimerFdEvent {
    fn facts(&self) -> DeviceFeatures {
        DeviceFeatures { name: NAME, periods: Periods::NANOSECONDS, ..DeviceFeatures::KERNEL }
    }

    fn now_ns(&self) -> u64 {
        now()
    }

    fn detach(&mut self) {
        // Disarming a live timer does not fail.
        let _ = self.timer.disarm();
    }

    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        let answer = match mode {
            Mode::Shutdown | Mode::OneShot => self.timer.disarm(),
            // Only whole nanoseconds are announced.
            Mode::Periodic(period) => {
                let period_ns = period.nth_ns(1);
                self.timer.set_absolute(now().saturating_add(period_ns), period_ns)
            }
        };
        answer.map_err(|e| DeviceError::from_os(NAME, &e))
    }

    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError> {
        self.timer.set_absolute(at_ns, 0).map_err(|e| DeviceError::from_os(NAME, &e))
    }

    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        loop {
            if !self.kick.latch.begin_wait() {
                return Ok(DeviceWaitEnd::Kicked);
            }
            let (timer, event) = (self.timer.as_fd(), self.kick.event.as_fd());
            let polled = either_readable(timer, event, until(limit_ns));
            let fired = || Ok(self.timer.expiries());
            if let Some(woken) = self.kick.came_back(NAME, polled, fired)? {
                return Ok(woken);
            }
        }
    }

    fn kick(&self) -> Kick {
        Kick::new(self.kick.clone())
    }
}
