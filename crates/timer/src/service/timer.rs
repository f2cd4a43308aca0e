//! A timer, in the hands of its users.
//!
//! Owns: the calls on it. What they meet in is [`super::remote`].
//! Must not: allocate or take a lock when arming or cancelling.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use hourglass_time::Span;

use super::arm::{Expiry, TimerSpec};
use super::error::ServiceError;
use super::remote::{CancelScope, SleeperState, SlotState};
use super::run::is_own;
use super::statistics::count;
use super::table::{CHUNK, TableSlot, TimerTable};
use crate::engine::{ClockBase, ClockSetPolicy};

/// A timer of an [`Owner`](super::Owner), with an expiry, an action and a state (RT-Mach, section 3).
///
/// Any thread may call anything; clones are the same timer. Arming and cancelling take no lock, do
/// not allocate and make no system call, but for one wake-up if the engine would sleep too long.
/// Which of several armings at the same moment is the last is as their exchanges of the state word
/// come; up to three of them may be stuck half way without holding up a fourth.
///
/// Dropping the last clone terminates the timer. An action that owns a clone of its own timer is
/// released when that, or its owner, is terminated.
///
/// After a `fork` every call in the child gives [`ServiceError::Forked`], and dropping does nothing.
#[derive(Clone)]
pub struct Timer(pub(super) Arc<TimerInner>);

pub(super) struct TimerInner {
    pub(super) table: Arc<TimerTable>,
    pub(super) place: TableSlot,
    pub(super) generation: u32,
    pub(super) base: ClockBase,
    pub(super) on_set: ClockSetPolicy,
}

/// What a timer is doing, each part as of a moment ago.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Status {
    /// Whether it will expire.
    pub armed: bool,
    /// When next, ns on its clock; of a periodic timer the expiry that is not cancelled.
    pub next_ns: Option<i64>,
    /// Actions that ran, and sleeps that ended in time.
    pub fired: u64,
    /// Expiries without an action of their own.
    pub overruns: u64,
    /// Actions that panicked.
    pub panics: u32,
    /// Whether its action waits for a worker or runs.
    pub busy: bool,
    /// Whether it was terminated.
    pub terminated: bool,
}

impl Timer {
    /// Clock of the timer.
    #[must_use]
    pub fn base(&self) -> ClockBase {
        self.0.base
    }

    /// What it does when its clock is set.
    #[must_use]
    pub fn on_set(&self) -> ClockSetPolicy {
        self.0.on_set
    }

    /// Arms it, once or periodically, in place of whatever it was armed for; a thread that sleeps
    /// on it wakes with [`ServiceError::Cancelled`]. From its own action too.
    ///
    /// # Errors
    /// [`ServiceError::PeriodNotPositive`], [`ServiceError::NegativeDelay`], [`ServiceError::NegativeSlack`],
    /// [`ServiceError::ExpiryOutOfRange`], [`ServiceError::Terminated`],
    /// [`ServiceError::Contended`], [`ServiceError::Forked`]; [`ServiceError::Engine`] and
    /// [`ServiceError::Panicked`] if the engine does not go on. Nothing changed then.
    #[inline]
    pub fn arm(&self, arm: TimerSpec) -> Result<(), ServiceError> {
        self.publish(arm, false)
    }

    fn publish(&self, arm: TimerSpec, sleeps: bool) -> Result<(), ServiceError> {
        let TimerInner { table, place, base, .. } = &*self.0;
        table.serves()?;
        let arming = arm.arming(*base, || table.clock.now_ns(*base))?;
        let before = place.entry().slot.arm(&arming, sleeps)?;
        self.mark();
        self.wake_sleeper(before);
        let latest = arming.expiry_ns.saturating_add_unsigned(arming.slack_ns);
        // The engine that is awake looks again anyway; only one that sleeps is asked when it wakes.
        let published = table.wake.published();
        if published != super::remote::AWAKE
            && table.wake.wants(table.clock.device_ns(*base, latest))
        {
            table.kick();
        }
        Ok(())
    }

    fn mark(&self) {
        let place = &self.0.place;
        place.chunk.changed.mark(place.index as usize % CHUNK);
    }

    /// The thread that slept for the state before must look again.
    fn wake_sleeper(&self, before: SlotState) {
        if before.slept() == SleeperState::Sleeps {
            self.0.place.entry().open_gate();
        }
    }

    /// Cancels, and tells whether there was something to cancel: of an expiry and a cancelling
    /// exactly one wins. An action that runs or waits for a worker already is not held up. The
    /// engine is not woken for it.
    ///
    /// [`CancelScope::Current`] cancels the next expiry of a periodic timer only: it stays armed, in
    /// phase, for the one after (RT-Mach, section 3.1). Doing so twice before that expiry's time
    /// cancels one. Of a timer that is armed for once it cancels that.
    ///
    /// # Errors
    /// [`ServiceError::Terminated`], [`ServiceError::Forked`].
    #[inline]
    pub fn cancel(&self, which: CancelScope) -> Result<bool, ServiceError> {
        self.0.table.check_not_forked()?;
        let Some(before) = self.0.place.entry().slot.cancel(which)? else { return Ok(false) };
        if which == CancelScope::All || !before.periodic() {
            self.mark();
        }
        self.wake_sleeper(before);
        Ok(true)
    }

    /// Sleeps until a time of the timer's clock, ns, on the timer: it is armed for that. A thread
    /// that cancels, arms or terminates it ends the sleep.
    ///
    /// The engine's thread wakes this one, which takes a wake-up more than sleeping by oneself:
    /// for precision see [`Sleeper`](crate::Sleeper).
    ///
    /// # Errors
    /// [`ServiceError::Cancelled`], [`ServiceError::Terminated`], [`ServiceError::ClockSet`] if the timer
    /// was made with [`ClockSetPolicy::Expire`], [`ServiceError::AnotherSleeps`], and those of [`Timer::arm`].
    pub fn sleep_until(&self, at_ns: i64) -> Result<(), ServiceError> {
        self.sleep(Expiry::At(at_ns))
    }

    /// Sleeps for `length` from now.
    ///
    /// # Errors
    /// As [`Timer::sleep_until`].
    pub fn sleep_for(&self, length: Span) -> Result<(), ServiceError> {
        self.sleep(Expiry::After(length))
    }

    fn sleep(&self, expiry: Expiry) -> Result<(), ServiceError> {
        if self.0.table.clock.is_simulated() {
            return Err(ServiceError::Simulated);
        }
        self.begin_sleep(expiry)?;
        self.0.place.entry().wait(|| {
            let end = self.end_sleep();
            // An engine that lost its last device wakes no thread any more.
            end.or_else(|| {
                self.0.table.serves().err().and_then(|failed| self.cancel_after_failure(failed))
            })
        })
    }

    fn cancel_after_failure(&self, failed: ServiceError) -> Option<Result<(), ServiceError>> {
        let _ = self.cancel(CancelScope::All);
        self.end_sleep().map(|_| Err(failed))
    }

    pub(super) fn begin_sleep(&self, expiry: Expiry) -> Result<(), ServiceError> {
        self.publish(TimerSpec::once(expiry), true)
    }

    pub(super) fn end_sleep(&self) -> Option<Result<(), ServiceError>> {
        match self.0.place.entry().slot.slept() {
            (SleeperState::Sleeps, false) => None,
            (SleeperState::Woken, _) => Some(Ok(())),
            (SleeperState::ClockSet, _) => Some(Err(ServiceError::ClockSet)),
            (SleeperState::Cancelled, _) => Some(Err(ServiceError::Cancelled)),
            (SleeperState::Sleeps | SleeperState::Absent, _) => Some(Err(ServiceError::Terminated)),
        }
    }

    /// Terminates it. When this returns, no action of it runs, and none will: one that runs on
    /// another thread is waited for. From its own action it returns at once, and that is the last.
    /// Terminating twice does no harm.
    ///
    /// Two actions that terminate each other's timers at the same moment wait for ever, as two
    /// threads that join each other do. An immediate action must not terminate a timer with a
    /// deferred one: the wait would hold up the engine.
    ///
    /// # Errors
    /// [`ServiceError::Forked`].
    pub fn terminate(&self) -> Result<(), ServiceError> {
        self.0.terminate()
    }

    /// What it is doing.
    ///
    /// # Errors
    /// [`ServiceError::Forked`].
    pub fn status(&self) -> Result<Status, ServiceError> {
        self.0.table.check_not_forked()?;
        let entry = self.0.place.entry();
        let standing = entry.slot.standing().flatten();
        let state = entry.slot.state();
        let next_ns = standing.and_then(|(sequence, arming)| {
            let followed = entry.scheduled_for.load(Ordering::Acquire) == sequence;
            let next = match followed {
                true => entry.scheduled_ns.load(Ordering::Relaxed),
                // The engine has not seen it yet.
                false => arming.expiry_ns,
            };
            let skipped = if state.skips() { arming.period_ns } else { 0 };
            next.checked_add_unsigned(skipped)
        });
        Ok(Status {
            armed: standing.is_some(),
            next_ns,
            fired: entry.fired.load(Ordering::Relaxed),
            overruns: entry.overruns.load(Ordering::Relaxed),
            panics: entry.panics.load(Ordering::Relaxed),
            busy: state.pending() || state.running(),
            terminated: state.dead(),
        })
    }
}

impl TimerInner {
    fn terminate(&self) -> Result<(), ServiceError> {
        self.table.check_not_forked()?;
        let entry = self.place.entry();
        let before = entry.slot.terminate();
        if !before.dead() {
            self.table.ended.fetch_add(1, Ordering::Release);
        }
        entry.terminated();
        if before.slept() == SleeperState::Sleeps {
            entry.open_gate();
        }
        if before.armed() {
            // The engine takes it off its queue when it looks next; no hurry.
            self.place.chunk.changed.mark(self.place.index as usize % CHUNK);
        }
        if is_own(entry) {
            return Ok(());
        }
        entry.wait(|| (!entry.slot.await_end()).then_some(()));
        entry.retire();
        Ok(())
    }
}

impl Drop for TimerInner {
    fn drop(&mut self) {
        // In a forked child nothing is here that could be torn down.
        if self.terminate().is_ok() && self.place.entry().slot.abandon() {
            self.table.release(self.place.index);
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Timer")
            .field("base", &self.0.base.name())
            .field("status", &self.status())
            .finish()
    }
}

pub(super) fn open(
    table: &Arc<TimerTable>,
    kind: (ClockBase, ClockSetPolicy),
    action: super::Action,
) -> Result<Timer, ServiceError> {
    table.check_not_forked()?;
    let (base, on_set) = kind;
    let (place, new) = table.take(super::table::kind(base, on_set))?;
    let entry = place.entry();
    let route = action.class().map_or(0, |class| class.0.number + 1);
    entry.route.store(route, Ordering::Release);
    for counter in [&entry.fired, &entry.overruns, &entry.published.overruns] {
        counter.store(0, Ordering::Relaxed);
    }
    entry.panics.store(0, Ordering::Relaxed);
    *entry.action.lock().unwrap_or_else(std::sync::PoisonError::into_inner) = Some(action);
    // Before another thread can terminate it.
    count(&table.counters.created, 1);
    let generation = entry.open();
    let inner = TimerInner { table: Arc::clone(table), place, generation, base, on_set };
    let timer = Timer(Arc::new(inner));
    if new {
        // The engine makes room for it in its queue, so that nothing is left to do when it is armed.
        timer.mark();
        table.kick();
    }
    Ok(timer)
}
