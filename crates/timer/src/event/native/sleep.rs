//! The engine's own thread, asleep.

use std::sync::Arc;

use hourglass_sys::thread::{id, set_timer_slack, timer_slack};

use super::{FutexKick, now};
use crate::event::{ClockEvent, DeviceError, DeviceFeatures, DeviceWaitEnd, Kick, Mode};

const NAME: &str = "sleep";

/// The thread sleeps until the event: the cheapest device, and the one with the least lateness of
/// those that sleep.
///
/// Of the two ways to make such a sleep interruptible this takes a futex with an absolute timeout
/// instead of `clock_nanosleep` and a signal: the same timer in the kernel and the same lateness,
/// but a kick needs no signal, so it takes none away from the program, it is not lost between the
/// look at the queue and the sleep, and it costs no system call unless the thread sleeps.
/// Programming costs none at all: the time is kept until the wait.
///
/// [`ClockEvent::attach`] takes the thread's timer slack down to 1 ns (threads under the real-time
/// classes have none), [`ClockEvent::detach`] restores it.
#[derive(Default)]
pub struct SleepEvent {
    kick: Arc<FutexKick>,
    next_ns: Option<u64>,
    attached: Option<AttachedThread>,
}

struct AttachedThread {
    thread: u32,
    slack_ns: u64,
}

impl SleepEvent {
    /// A device that fires nothing yet.
    #[must_use]
    pub fn new() -> SleepEvent {
        SleepEvent::default()
    }
}

impl ClockEvent for SleepEvent {
    fn facts(&self) -> DeviceFeatures {
        DeviceFeatures { name: NAME, ..DeviceFeatures::KERNEL }
    }

    fn now_ns(&self) -> u64 {
        now()
    }

    fn attach(&mut self) -> Result<(), DeviceError> {
        if self.attached.as_ref().is_some_and(|attached| attached.thread == id()) {
            return Ok(());
        }
        let slack_ns = timer_slack().unwrap_or(0);
        set_timer_slack(1).map_err(|e| DeviceError::from_os(NAME, &e))?;
        self.attached = Some(AttachedThread { thread: id(), slack_ns });
        Ok(())
    }

    fn detach(&mut self) {
        self.next_ns = None;
        if let Some(AttachedThread { thread, slack_ns }) = self.attached.take()
            && thread == id()
            && slack_ns > 0
        {
            // Does not fail for what was in force before.
            let _ = set_timer_slack(slack_ns);
        }
    }

    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        self.next_ns = None;
        match mode {
            Mode::Shutdown | Mode::OneShot => Ok(()),
            Mode::Periodic(_) => Err(DeviceError::Unsupported(NAME)),
        }
    }

    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError> {
        self.next_ns = Some(at_ns);
        Ok(())
    }

    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        let until_ns = self.next_ns.unwrap_or(u64::MAX).min(limit_ns.unwrap_or(u64::MAX));
        loop {
            let now_ns = now();
            if self.next_ns.is_some_and(|next_ns| next_ns <= now_ns) {
                self.next_ns = None;
                return Ok(DeviceWaitEnd::Event { periods: 1 });
            }
            if limit_ns.is_some_and(|limit_ns| limit_ns <= now_ns) {
                return Ok(if self.kick.0.take() {
                    DeviceWaitEnd::Kicked
                } else {
                    DeviceWaitEnd::Limit
                });
            }
            if let Some(woken) = self.kick.sleep(NAME, until_ns)? {
                return Ok(woken);
            }
        }
    }

    fn kick(&self) -> Kick {
        Kick::new(self.kick.clone())
    }
}

impl Drop for SleepEvent {
    fn drop(&mut self) {
        self.detach();
    }
}
