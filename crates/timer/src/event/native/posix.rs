//! A POSIX timer that signals the engine's thread, which waits for the signal.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hourglass_sys::fork;
use hourglass_sys::posix_timer::{
    PosixTimer, SignalOrigin, block, expire_soon, realtime_signals, send, take, unblock,
};
use hourglass_sys::thread::id;

use super::{now, until};
use crate::event::kick::Latch;
use crate::event::{
    ClockEvent, DeviceError, DeviceFeatures, DeviceWaitEnd, Kick, Kicker, Mode, PeriodGrid, Periods,
};

const NAME: &str = "posix";

/// EAGAIN on Linux.
const TRY_AGAIN: i32 = 11;

/// The default signal, counted from the first real-time signal that programs may use.
const DEFAULT_SIGNAL: i32 = 3;

/// `timer_create` with `SIGEV_THREAD_ID`, waited for by `sigtimedwait` on a blocked real-time
/// signal: what *Hrtimers and Beyond* measures as the "POSIX interval timer" (section 8.1).
///
/// [`ClockEvent::attach`] makes the timers and blocks the signal in the calling thread;
/// [`ClockEvent::detach`] deletes them, takes what is pending, and restores the signal mask. If the
/// device is dropped in another thread, the signal stays blocked in the one that attached it. Two
/// queued signals are set aside (`RLIMIT_SIGPENDING`), one of them so that a kick arrives even when
/// no other signal can be queued. In a child made by `fork` kicks do nothing, and what is programmed
/// is refused ([`DeviceError::Os`], 22), until it is attached anew. Programs must not use the same signal in this thread. Not subject
/// to timer slack.
pub struct PosixTimerEvent {
    shared: Arc<KickShared>,
    timers: Option<Timers>,
    next_ns: Option<u64>,
    ticks: Option<PeriodGrid>,
}

struct Timers {
    thread: u32,
    was_blocked: bool,
    events: PosixTimer,
    /// Only for kicks that find no signal left; armed by its number, and deleted with the rest.
    kicks: PosixTimer,
}

struct KickShared {
    latch: Latch,
    signal: i32,
    /// Forks of the process that its thread is in.
    forks: AtomicU32,
    /// The thread (upper half) and the number of the timer for kicks; [`DETACHED`] if not attached.
    target: AtomicU64,
    /// Kicks that may be looking at the target.
    kicking: AtomicU32,
}

/// No thread has the number 0.
const DETACHED: u64 = 0;

impl Kicker for KickShared {
    fn kick(&self) {
        self.latch.kick(|| {
            // In a child neither number is the device's, and may be one of the child's own.
            if self.is_inherited() {
                return;
            }
            // Counted before the target is read: `leave` takes the target away, then waits until no
            // kick is counted. So neither number is reused yet.
            self.kicking.fetch_add(1, Ordering::SeqCst);
            let target = self.target.load(Ordering::SeqCst);
            if target != DETACHED && send((target >> 32) as u32, self.signal).is_err() {
                // No signal left; the timer has one set aside. It fails only in a child.
                let _ = expire_soon(target as u32 as i32);
            }
            self.kicking.fetch_sub(1, Ordering::SeqCst);
        });
    }
}

impl KickShared {
    /// Whether this is a child of the process that attached the device.
    fn is_inherited(&self) -> bool {
        fork::generation() != self.forks.load(Ordering::Relaxed)
    }

    /// From here on no kick signals the thread. Sleeps in between: a kicker may be waiting for this
    /// very CPU.
    fn leave(&self) {
        self.target.store(DETACHED, Ordering::SeqCst);
        if self.is_inherited() {
            // The counted kicks are in the parent.
            self.kicking.store(0, Ordering::SeqCst);
        }
        while self.kicking.load(Ordering::SeqCst) > 0 {
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}

impl PosixTimerEvent {
    /// A device on the fourth real-time signal.
    ///
    /// # Errors
    /// As [`PosixTimerEvent::on_signal`].
    pub fn new() -> Result<PosixTimerEvent, DeviceError> {
        PosixTimerEvent::on_signal(realtime_signals().0 + DEFAULT_SIGNAL)
    }

    /// A device on `signal`. The signals are each thread's own: all engines may use the same.
    ///
    /// # Errors
    /// [`DeviceError::NotRealTime`].
    pub fn on_signal(signal: i32) -> Result<PosixTimerEvent, DeviceError> {
        let (first, last) = realtime_signals();
        if !(first..=last).contains(&signal) {
            return Err(DeviceError::NotRealTime { asked: signal, first, last });
        }
        let shared = KickShared {
            latch: Latch::new(),
            signal,
            forks: AtomicU32::new(fork::watch()),
            target: AtomicU64::new(DETACHED),
            kicking: AtomicU32::new(0),
        };
        Ok(PosixTimerEvent { shared: Arc::new(shared), timers: None, next_ns: None, ticks: None })
    }

    fn timers(&self) -> Result<&Timers, DeviceError> {
        self.timers.as_ref().ok_or(DeviceError::NotAttached(NAME))
    }

    /// Whether the timer really expired, and how many periods ended: signals sent before it was
    /// programmed anew may still be pending.
    fn fired(&mut self) -> Option<DeviceWaitEnd> {
        let now_ns = now();
        let periods = match &mut self.ticks {
            Some(ticks) => ticks.advance(now_ns),
            None => u64::from(self.next_ns.take_if(|next_ns| *next_ns <= now_ns).is_some()),
        };
        (periods > 0).then_some(DeviceWaitEnd::Event { periods })
    }

    /// Takes one signal; `None` if it meant nothing.
    fn take_one(&mut self, limit_ns: Option<u64>) -> Result<Option<DeviceWaitEnd>, DeviceError> {
        let answer = take(self.shared.signal, until(limit_ns));
        if let Ok(Some(SignalOrigin::Timer)) = answer
            && let Some(woken) = self.fired()
        {
            self.shared.latch.end_wait_for_event();
            return Ok(Some(woken));
        }
        match (self.shared.latch.end_wait(), answer) {
            (true, _) => Ok(Some(DeviceWaitEnd::Kicked)),
            (false, Ok(Some(_))) => Ok(None),
            (false, Ok(None)) => Ok(Some(DeviceWaitEnd::Limit)),
            (false, Err(e)) if e.kind() == io::ErrorKind::Interrupted => {
                Ok(Some(DeviceWaitEnd::Signal))
            }
            (false, Err(e)) => Err(DeviceError::from_os(NAME, &e)),
        }
    }
}

fn from_create(error: &io::Error) -> DeviceError {
    match error.raw_os_error() {
        Some(TRY_AGAIN) => DeviceError::SignalsExhausted,
        _ => DeviceError::from_os(NAME, error),
    }
}

impl ClockEvent for PosixTimerEvent {
    fn facts(&self) -> DeviceFeatures {
        DeviceFeatures { name: NAME, periods: Periods::NANOSECONDS, ..DeviceFeatures::KERNEL }
    }

    fn now_ns(&self) -> u64 {
        now()
    }

    fn attach(&mut self) -> Result<(), DeviceError> {
        let thread = id();
        if self.timers.as_ref().is_some_and(|timers| timers.thread == thread) {
            return Ok(());
        }
        self.detach();
        let signal = self.shared.signal;
        // Blocked before there is a timer: its default action would end the program.
        let was_blocked = block(signal).map_err(|e| DeviceError::from_os(NAME, &e))?;
        let made = PosixTimer::new(thread, signal)
            .and_then(|events| Ok((events, PosixTimer::new(thread, signal)?)));
        let (events, kicks) = made.map_err(|e| {
            if !was_blocked {
                // Nothing can be pending yet.
                let _ = unblock(signal);
            }
            from_create(&e)
        })?;
        self.shared.forks.store(fork::generation(), Ordering::Relaxed);
        let target = u64::from(thread) << 32 | u64::from(kicks.number() as u32);
        self.shared.target.store(target, Ordering::SeqCst);
        self.timers = Some(Timers { thread, was_blocked, events, kicks });
        Ok(())
    }

    fn detach(&mut self) {
        (self.next_ns, self.ticks) = (None, None);
        self.shared.leave();
        let Some(Timers { thread, was_blocked, events, kicks }) = self.timers.take() else {
            return;
        };
        drop((events, kicks));
        if thread == id() {
            while matches!(take(self.shared.signal, Some(0)), Ok(Some(_))) {}
            if !was_blocked {
                // Does not fail for a signal that was blocked.
                let _ = unblock(self.shared.signal);
            }
        }
    }

    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        (self.next_ns, self.ticks) = (None, None);
        let Some(Timers { events, .. }) = &self.timers else {
            return match mode {
                // Without a timer nothing fires.
                Mode::Shutdown | Mode::OneShot => Ok(()),
                Mode::Periodic(_) => Err(DeviceError::NotAttached(NAME)),
            };
        };
        let answer = match mode {
            Mode::Shutdown | Mode::OneShot => events.disarm(),
            // Only whole nanoseconds are announced.
            Mode::Periodic(period) => {
                let ticks = PeriodGrid::starting_at(now(), period);
                self.ticks = Some(ticks);
                events.set_absolute(ticks.next_ns(), period.nth_ns(1))
            }
        };
        answer.map_err(|e| DeviceError::from_os(NAME, &e))
    }

    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError> {
        let armed = self.timers()?.events.set_absolute(at_ns, 0);
        armed.map_err(|e| DeviceError::from_os(NAME, &e))?;
        self.next_ns = Some(at_ns);
        Ok(())
    }

    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        if self.timers()?.thread != id() {
            return Err(DeviceError::NotAttached(NAME));
        }
        loop {
            if !self.shared.latch.begin_wait() {
                return Ok(DeviceWaitEnd::Kicked);
            }
            if let Some(woken) = self.take_one(limit_ns)? {
                return Ok(woken);
            }
        }
    }

    fn kick(&self) -> Kick {
        Kick::new(self.shared.clone())
    }
}

impl Drop for PosixTimerEvent {
    fn drop(&mut self) {
        self.detach();
    }
}

#[cfg(test)]
#[path = "../tests/posix.rs"]
mod tests;
