//! A reservation of the class in force. A thread samples it every period, and its end puts everything back.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched::{self, Attributes, SavedScheduling};

use super::ledger::PeriodLedger;
use super::sample::{DeadlineSample, ReservedThread, StallDetector};
use super::{at_tick, before_period};
use crate::backend::{AccuracyWarning, ActiveReservation, user};
use crate::ownership;
use crate::supply::{Spent, Supply};

/// Of the thread that looks, a few tens of microseconds in each period: as the keeper of a user-space reserve has it.
const PRIORITY: u8 = 95;

/// A warning names the left-out periods if they are more than one part in `TOLERATED_PART` of the others.
const TOLERATED_PART: u64 = 100;

#[derive(Debug)]
struct HeldShared {
    ledger: Mutex<PeriodLedger>,
    ended: Mutex<bool>,
    bell: Condvar,
    /// Whether it became another user's, and was put back for that.
    foreign: AtomicBool,
}

#[derive(Debug)]
pub(super) struct DeadlineReservation {
    reserved: ReservedThread,
    /// Scheduling before the reservation; taken when it is put back.
    saved: Option<SavedScheduling>,
    shared: Arc<HeldShared>,
    coarse: Option<String>,
    waits: Option<AccuracyWarning>,
    looking: Option<JoinHandle<()>>,
}

impl DeadlineReservation {
    /// Of a thread that has entered the class, and was `saved` before.
    /// `coarse` says what is wrong where budgets end at ticks that are long beside this one.
    pub(super) fn new(
        reserved: ReservedThread,
        saved: SavedScheduling,
        reservation: &Reservation,
        coarse: Option<String>,
    ) -> DeadlineReservation {
        let ledger = PeriodLedger::new(
            reservation.budget().nanos_or_zero(),
            reservation.deadline().nanos_or_zero(),
            reservation.period().nanos_or_zero(),
            reservation.strength() == ReservationKind::Soft,
        );
        let shared = Arc::new(HeldShared {
            ledger: Mutex::new(ledger),
            ended: Mutex::new(false),
            bell: Condvar::new(),
            foreign: AtomicBool::new(false),
        });
        let own = Arc::clone(&shared);
        let period_ns = reservation.period().nanos_or_zero();
        // Without it the reservation holds all the same, and its supply stays unknown.
        let looking = thread::Builder::new()
            .name("hourglass-looks".to_owned())
            .spawn(move || look_on(&own, &reserved, saved, period_ns))
            .ok();
        let waits = before_period(reservation);
        DeadlineReservation { reserved, saved: Some(saved), shared, coarse, waits, looking }
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

/// State of a thread that panicked is valid: each of its steps is complete.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Takes a thread that the kernel forgot out of the class and lets it in again. Where that is refused it stays outside, which
/// ends looking; it runs, and its reservation is over.
fn wake(reserved: &ReservedThread) {
    let Ok(within) = SavedScheduling::read(reserved.life.id) else { return };
    if sched::set_of(reserved.life.id, Attributes::Other(0)).is_ok()
        && ownership::check(reserved.life.id).is_ok()
    {
        let _ = within.restore(reserved.life.id);
    }
}

/// Budget, deadline and period that the class gives a thread, ns: any program with the right can change them.
fn terms_of(tid: u32) -> Option<(u64, u64, u64)> {
    match sched::read(tid) {
        Ok(Some(Attributes::Deadline { runtime_ns, deadline_ns, period_ns, .. })) => {
            let period_ns = if period_ns == 0 { deadline_ns } else { period_ns };
            Some((runtime_ns, deadline_ns, period_ns))
        }
        _ => None,
    }
}

/// Samples until the thread ends or the reservation is released. A thread that executes a set-uid program is put back.
fn look_on(shared: &HeldShared, reserved: &ReservedThread, saved: SavedScheduling, period_ns: u64) {
    // On time, where that is granted: what a period had is known from a look soon behind its end.
    let _ = sched::set(Attributes::Fifo(PRIORITY));
    let mut stuck = StallDetector::default();
    while let Some(look) = DeadlineSample::at(reserved) {
        if ownership::NotOwned::find(reserved.life.id).is_some() {
            shared.foreign.store(true, Ordering::Relaxed);
            let _ = saved.restore(reserved.life.id);
            return;
        }
        if stuck.sees(&look, period_ns) {
            wake(reserved);
        }
        let next_ns = {
            let mut ledger = locked(&shared.ledger);
            match terms_of(reserved.life.id) {
                Some(terms) if terms != ledger.terms() => ledger.change_terms(terms, &look),
                _ => ledger.take(&look),
            }
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

impl ActiveReservation for DeadlineReservation {
    fn supply(&mut self) -> Supply {
        locked(&self.shared.ledger).supply.clone()
    }

    fn spent(&mut self) -> Spent {
        locked(&self.shared.ledger).spent()
    }

    fn accuracy_warnings(&self) -> Vec<AccuracyWarning> {
        let mut doubts = Vec::new();
        if self.shared.foreign.load(Ordering::Relaxed) {
            let text = "it became a program of another user, as set-uid programs do, and lost its reservation then";
            let remedy = "run it as root, whose reservations go on";
            doubts.push(AccuracyWarning { id: "members-of-others", text: text.to_owned(), remedy });
        }
        if let Some(coarse) = &self.coarse {
            doubts.push(at_tick(coarse.clone()));
        }
        doubts.extend(self.waits.clone());
        let (periods, left_out) = {
            let ledger = locked(&self.shared.ledger);
            (ledger.supply.periods, ledger.left_out)
        };
        if left_out > periods / TOLERATED_PART {
            doubts.push(AccuracyWarning {
                id: "periods-left-out",
                text: format!(
                    "periods that are not counted: {left_out}; the sample at their start or end came too late to show \
                     their CPU time"
                ),
                remedy: "leave a CPU to the sampling thread; in a virtual machine, the host took it",
            });
        }
        doubts
    }

    fn outranked_by(&self) -> Vec<String> {
        user::in_class_beside(self.reserved.life.id)
    }

    fn release(&mut self) -> io::Result<()> {
        self.stop_looking();
        let Some(saved) = self.saved.take() else { return Ok(()) };
        if !self.reserved.life.is_alive() {
            return Ok(());
        }
        match saved.restore(self.reserved.life.id) {
            // It ended just now.
            Err(error) if error.raw_os_error() == Some(crate::ownership::ESRCH) => Ok(()),
            answer => answer,
        }
    }
}

impl Drop for DeadlineReservation {
    fn drop(&mut self) {
        // `drop` has no caller that could receive the error.
        let _ = self.release();
    }
}
