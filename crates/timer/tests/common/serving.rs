//! What the tests of the timer service share.

#![allow(dead_code, reason = "each program uses its part")]

use std::sync::{Mutex, Once, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use hourglass_time::Span;
use hourglass_timer::engine::ClockBase;
use hourglass_timer::service::{
    Action, ActionClass, Expiration, Owner, Timer, TimerService, TimerSpec,
};

/// Longer than any test takes, unless it hangs.
pub(crate) const LONG: Span = Span::from_secs(60);

/// `CLOCK_MONOTONIC`, ns, as timers take it.
pub(crate) fn now() -> i64 {
    super::now() as i64
}

pub(crate) fn service() -> (TimerService, Owner) {
    let service = TimerService::start().unwrap();
    let owner = service.owner("test");
    (service, owner)
}

pub(crate) fn nothing(owner: &Owner) -> Timer {
    owner.timer(ClockBase::Monotonic, Action::nothing()).unwrap()
}

/// A timer that calls on the worker of this class, or without one on the engine's thread.
pub(crate) fn calling(
    owner: &Owner,
    class: Option<&ActionClass>,
    call: impl FnMut(&Expiration) + Send + 'static,
) -> Timer {
    let action = match class {
        Some(class) => Action::deferred(class, call),
        None => Action::immediate(call),
    };
    owner.timer(ClockBase::Monotonic, action).unwrap()
}

/// Waits as long as `goes_on`.
pub(crate) fn wait_while(mut goes_on: impl FnMut() -> bool) {
    let begun = Instant::now();
    while goes_on() {
        assert!(begun.elapsed() < Duration::from_secs(20), "what is waited for does not come");
        thread::yield_now();
    }
}

/// Panics of engines and of classes called "panics" are silent from now on; those of tests are not.
pub(crate) fn silence_engines() {
    static SILENCED: Once = Once::new();
    SILENCED.call_once(|| {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let name = thread::current().name().unwrap_or_default().to_owned();
            if !name.starts_with("hg-engine") && name != "panics" {
                hook(panic);
            }
        }));
    });
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

    pub(crate) fn wait(&self) {
        self.begins.recv().unwrap();
    }

    pub(crate) fn release(&self) {
        self.release.send(()).unwrap();
    }
}
