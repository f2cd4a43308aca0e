//! A reservation of the class in force: somebody looks at it every period, and everything is put back.

use std::fmt;
use std::io;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hourglass_model::{Reservation, Strength};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched::{self, Attributes, Saved};

use super::ledger::Ledger;
use super::look::{Look, Person, Stuck};
use crate::backend::Reserved;
use crate::supply::Supply;

/// What the one who looks and the one who asks share.
#[derive(Debug)]
struct Shared {
    ledger: Mutex<Ledger>,
    /// Whether looking ends.
    ended: Mutex<bool>,
    bell: Condvar,
}

/// A thread in the class.
pub(super) struct Held {
    person: Person,
    /// What it was before; taken when it is put back.
    saved: Option<Saved>,
    shared: Arc<Shared>,
    looking: Option<JoinHandle<()>>,
}

impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("tid", &self.person.tid).finish_non_exhaustive()
    }
}

impl Held {
    /// Of a thread that has entered the class, and was `saved` before.
    pub(super) fn new(person: Person, saved: Saved, reservation: &Reservation) -> Held {
        let ledger = Ledger::new(
            reservation.budget().nanos_or_zero(),
            reservation.deadline().nanos_or_zero(),
            reservation.period().nanos_or_zero(),
            reservation.strength() == Strength::Soft,
        );
        let shared = Arc::new(Shared {
            ledger: Mutex::new(ledger),
            ended: Mutex::new(false),
            bell: Condvar::new(),
        });
        let own = Arc::clone(&shared);
        let period_ns = reservation.period().nanos_or_zero();
        // Without it the reservation holds all the same, and its supply stays unknown.
        let looking = thread::Builder::new()
            .name("hourglass-looks".to_owned())
            .spawn(move || look_on(&own, &person, period_ns))
            .ok();
        Held { person, saved: Some(saved), shared, looking }
    }

    fn stop_looking(&mut self) {
        *locked(&self.shared.ended) = true;
        self.shared.bell.notify_all();
        if let Some(looking) = self.looking.take() {
            // It has no panic to hand on.
            let _ = looking.join();
        }
    }
}

/// What a thread that panicked left is as good as any: each step of it is complete.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a thread that the kernel forgot out of the class and lets it in again. Where that is refused it stays outside, which
/// ends looking; it runs, and its reservation is over.
fn wake(person: &Person) {
    let Ok(within) = Saved::of(person.tid) else { return };
    if sched::set_of(person.tid, Attributes::Other(0)).is_ok() {
        let _ = within.restore(person.tid);
    }
}

/// Looks until the thread has ended or nobody asks any more.
fn look_on(shared: &Shared, person: &Person, period_ns: u64) {
    let mut stuck = Stuck::default();
    while let Some(look) = Look::at(person) {
        if stuck.sees(&look, period_ns) {
            wake(person);
        }
        let next_ns = {
            let mut ledger = locked(&shared.ledger);
            ledger.take(&look);
            ledger.next_look_ns(now_ns(ClockId::Monotonic))
        };
        let ended = locked(&shared.ended);
        let wait = Duration::from_nanos(next_ns.saturating_sub(now_ns(ClockId::Monotonic)));
        let waiting = shared.bell.wait_timeout_while(ended, wait, |ended| !*ended);
        if *waiting.unwrap_or_else(PoisonError::into_inner).0 {
            return;
        }
    }
}

impl Reserved for Held {
    fn supply(&mut self) -> Supply {
        locked(&self.shared.ledger).supply().clone()
    }

    fn release(&mut self) -> io::Result<()> {
        self.stop_looking();
        let Some(saved) = self.saved.take() else { return Ok(()) };
        if !self.person.lives() {
            return Ok(());
        }
        match saved.restore(self.person.tid) {
            // It ended just now.
            Err(error) if error.raw_os_error() == Some(crate::admission::ESRCH) => Ok(()),
            answer => answer,
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        // Nobody is left who could be told.
        let _ = self.release();
    }
}
