//! What the tests of the timer service share.

#![allow(dead_code, reason = "each test uses its part")]

use std::sync::{Mutex, mpsc};

use hourglass_time::Span;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::service::{Action, ActionClass, Owner, Timer, TimerService, TimerSpec};

/// Longer than any test takes, unless it hangs.
pub(crate) const LONG: Span = Span::from_secs(60);

pub(crate) fn service() -> (TimerService, Owner) {
    let service = TimerService::start().unwrap();
    let owner = service.owner("test");
    (service, owner)
}

pub(crate) fn nothing(owner: &Owner) -> Timer {
    owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap()
}

/// An action that holds the worker of its class from when it is armed until it is released.
pub(crate) struct Gate {
    release: mpsc::Sender<()>,
    pub(crate) timer: Timer,
    begins: mpsc::Receiver<()>,
}

impl Gate {
    /// Armed for now, at this priority if there is one.
    pub(crate) fn armed(owner: &Owner, class: &ActionClass, priority: Option<u8>) -> Gate {
        let (release, held) = mpsc::channel::<()>();
        let held = Mutex::new(held);
        let (begun, begins) = mpsc::channel();
        let action = Action::deferred(class, move |_| {
            let _ = begun.send(());
            let _ = held.lock().unwrap().recv();
        });
        let timer = owner.timer(ClockBase::Monotonic, action).unwrap();
        let arm = TimerSpec::after(Span::ZERO);
        timer.arm(priority.map_or(arm, |priority| arm.priority(priority))).unwrap();
        Gate { release, timer, begins }
    }

    /// Waits until the worker is held.
    pub(crate) fn wait(&self) {
        self.begins.recv().unwrap();
    }

    pub(crate) fn release(&self) {
        self.release.send(()).unwrap();
    }
}
