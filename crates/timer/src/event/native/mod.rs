//! Devices of this machine: what Linux offers to wake a thread at a time.
//!
//! All of them on `CLOCK_MONOTONIC`. A child made by `fork` makes its own: a timerfd would be
//! shared with the parent, a POSIX timer is not inherited, and kicks of the parent do not reach it.

mod busy;
mod posix;
mod rtc;
mod sleep;
mod timerfd;

use std::io;
use std::sync::Arc;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::eventfd::EventFd;
use hourglass_sys::futex::wake;

pub use busy::BusyEvent;
pub use posix::PosixTimerEvent;
pub use rtc::RtcEvent;
pub use sleep::SleepEvent;
pub use timerfd::TimerFdEvent;

use super::clock_event::DeviceWaitEnd;
use super::error::DeviceError;
use super::kick::{Kicker, Latch};

#[inline]
fn now() -> u64 {
    now_ns(ClockId::Monotonic)
}

fn until(limit_ns: Option<u64>) -> Option<u64> {
    limit_ns.map(|limit_ns| limit_ns.saturating_sub(now()))
}

/// A latch whose waiter sleeps on the word itself.
#[derive(Default)]
struct FutexKick(Latch);

impl FutexKick {
    /// Sleeps until `until_ns`, a kick or a signal. `None` when the time came or nothing did: look
    /// at the clock.
    fn sleep(
        &self,
        device: &'static str,
        until_ns: u64,
    ) -> Result<Option<DeviceWaitEnd>, DeviceError> {
        if !self.0.begin_wait() {
            return Ok(Some(DeviceWaitEnd::Kicked));
        }
        let answer = hourglass_sys::wait::futex_until(self.0.word(), Latch::WAITING, until_ns);
        if now() >= until_ns {
            self.0.end_wait_for_event();
            return Ok(None);
        }
        match (self.0.end_wait(), answer) {
            (true, _) => Ok(Some(DeviceWaitEnd::Kicked)),
            (false, Ok(())) => Ok(None),
            (false, Err(e)) if e.kind() == io::ErrorKind::Interrupted => {
                Ok(Some(DeviceWaitEnd::Signal))
            }
            (false, Err(e)) => Err(DeviceError::from_os(device, &e)),
        }
    }
}

impl Kicker for FutexKick {
    fn kick(&self) {
        self.0.kick(|| wake(self.0.word(), 1));
    }
}

/// A latch whose waiter polls a descriptor beside its own.
struct FdKick {
    latch: Latch,
    event: EventFd,
}

impl FdKick {
    fn shared(device: &'static str) -> Result<Arc<FdKick>, DeviceError> {
        let event = EventFd::new().map_err(|e| DeviceError::from_os(device, &e))?;
        Ok(Arc::new(FdKick { latch: Latch::new(), event }))
    }

    /// Turns a poll of a device and of this into the reason to return; `fired` reads the device.
    /// `None` without a reason: poll again.
    fn came_back(
        &self,
        device: &'static str,
        polled: io::Result<(bool, bool)>,
        fired: impl FnOnce() -> Result<u64, DeviceError>,
    ) -> Result<Option<DeviceWaitEnd>, DeviceError> {
        let kicked_or =
            |end| Ok(Some(if self.latch.end_wait() { DeviceWaitEnd::Kicked } else { end }));
        match polled {
            Ok((true, _)) => {
                self.latch.end_wait_for_event();
                let periods = fired()?;
                Ok((periods > 0).then_some(DeviceWaitEnd::Event { periods }))
            }
            Ok((false, true)) => {
                // First the descriptor, then the latch: a kick in between stays in the latch.
                self.event.drain();
                Ok(self.latch.end_wait().then_some(DeviceWaitEnd::Kicked))
            }
            Ok((false, false)) => kicked_or(DeviceWaitEnd::Limit),
            Err(e) if e.kind() == io::ErrorKind::Interrupted => kicked_or(DeviceWaitEnd::Signal),
            Err(e) => {
                self.latch.end_wait();
                Err(DeviceError::from_os(device, &e))
            }
        }
    }
}

impl Kicker for FdKick {
    fn kick(&self) {
        self.latch.kick(|| self.event.post());
    }
}
