//! Reservations of the kernel's deadline class.

use std::fs;
use std::sync::{Mutex, PoisonError};

use hourglass_reserve::admission::{self, AdmissionFacts, Obstacle, Refusal};
use hourglass_reserve::backend::deadline::Deadline;
use hourglass_reserve::backend::{ActiveReservation, Backend, BackendKind, BackendRequest};
use hourglass_reserve::supply::Supply;
use hourglass_reserve::target::Target;
use hourglass_reserve::{Reservation, ReservationKind};
use hourglass_time::Span;

use crate::error::{
    CapiError, HG_BUSY, HG_INVALID, HG_OS, HG_PERMISSION, HG_STALE, HG_UNSUPPORTED, guard,
    hg_error, hg_status,
};
use crate::pointers::{give, nanoseconds, read, unused};
use crate::table::{HandleTable, handles};

/// A request for processor time: a budget in every period.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_request {
    /// Processor time in each period, ns.
    pub budget_ns: u64,
    /// Period, ns.
    pub period_ns: u64,
    /// Deadline from the start of the period, ns; 0 for the period.
    pub deadline_ns: u64,
    /// Whether the work may also use unreserved time.
    pub soft: bool,
    /// Whether the work is to stay on `cpu`.
    pub pinned: bool,
    /// Reserved: 0.
    pub reserved: [u8; 2],
    /// CPU of the work, with `pinned`.
    pub cpu: u32,
}

handles! {
    hg_reservation, "A reservation in force.";
}

/// Processor time that a reservation delivered.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct hg_supply {
    /// Periods that are complete and known.
    pub periods: u64,
    /// Budgets that were wanted and not delivered by the deadline.
    pub missed: u64,
    /// Periods in which more was wanted than the budget.
    pub overruns: u64,
    /// Minimum over the periods in which all of the budget was wanted, ns; 0 without such a period.
    pub delivered_min_ns: u64,
    /// Median over these periods, ns.
    pub delivered_p50_ns: u64,
    /// Time for which the thread stood since its budget was used up, ns; 0 if unknown.
    pub throttled_ns: u64,
}

static RESERVATIONS: HandleTable<Mutex<Box<dyn ActiveReservation>>> =
    HandleTable::new(15, "reservation");

impl hg_request {
    fn request(&self) -> Result<BackendRequest, CapiError> {
        unused(self.reserved, "hg_request")?;
        if self.budget_ns == 0 {
            return Err(CapiError::invalid("budget_ns is 0: it must be above zero"));
        }
        let span = |ns: u64, name: &str| nanoseconds(ns, name).map(Span::from_nanos);
        let strength = if self.soft { ReservationKind::Soft } else { ReservationKind::Hard };
        let invalid = |error: &dyn std::fmt::Display| CapiError::invalid(error.to_string());
        let (budget, period) =
            (span(self.budget_ns, "budget_ns")?, span(self.period_ns, "period_ns")?);
        let mut reservation =
            Reservation::new(budget, period, strength).map_err(|error| invalid(&error))?;
        if self.deadline_ns != 0 {
            let deadline = span(self.deadline_ns, "deadline_ns")?;
            reservation = reservation.with_deadline(deadline).map_err(|error| invalid(&error))?;
        }
        Ok(BackendRequest { reservation, cpu: self.pinned.then_some(self.cpu) })
    }
}

/// The kind of error for a refusal.
fn failure(refusal: &Refusal) -> CapiError {
    let kind = match refusal.id {
        Obstacle::Capability | Obstacle::Owner | Obstacle::GroupBudget => HG_PERMISSION,
        Obstacle::Bandwidth | Obstacle::Nested => HG_BUSY,
        Obstacle::Times | Obstacle::Affinity | Obstacle::Cpu | Obstacle::Fork => HG_INVALID,
        Obstacle::Gone => HG_STALE,
        Obstacle::Missing => HG_UNSUPPORTED,
    };
    // The remedy must give the privilege to this program, not to the command `hourglass`.
    let program = std::env::current_exe().ok();
    let program = program.map_or("PROGRAM".to_owned(), |path| path.display().to_string());
    let text = refusal.to_string().replace("$(command -v hourglass)", &program);
    let text = text.replace("sudo hourglass ...", &format!("sudo {program}"));
    CapiError { kind, os_errno: refusal.errno.unwrap_or(0), text: text.into() }
}

/// Checks with the kernel that a thread exists.
fn is_there(
    thread: u32,
    request: &BackendRequest,
    facts: &AdmissionFacts,
) -> Result<(), CapiError> {
    const ESRCH: i32 = 3;
    match hourglass_sys::sched::read(thread) {
        Err(error) if error.raw_os_error() == Some(ESRCH) => {
            Err(failure(&admission::explain(ESRCH, request, facts)))
        }
        _ => Ok(()),
    }
}

/// A thread by its number; 0 is the calling one.
fn number(thread: u32) -> Result<u32, CapiError> {
    if thread != 0 {
        return Ok(thread);
    }
    // It links to PID/task/TID.
    let own = fs::read_link("/proc/thread-self").ok();
    let own = own.as_deref().and_then(|path| path.file_name()?.to_str()?.parse().ok());
    own.ok_or_else(|| {
        let text = "/proc/thread-self does not tell this thread's number: give it, or mount /proc";
        CapiError::new(HG_OS, text)
    })
}

/// Checks whether the kernel would accept a reservation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_reserve_check(
    thread: u32,
    request: *const hg_request,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `request`.
        let request = unsafe { read(request, "request") }?.request()?;
        let thread = number(thread)?;
        let facts = AdmissionFacts::here(Some(thread));
        is_there(thread, &request, &facts)?;
        admission::ownership(BackendKind::Deadline, thread).map_err(|refusal| failure(&refusal))?;
        match admission::deadline(&request, &facts).first() {
            Some(refusal) => Err(failure(refusal)),
            None => Ok(()),
        }
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

/// Puts a thread under a reservation.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_reserve_thread(
    thread: u32,
    request: *const hg_request,
    reservation: *mut hg_reservation,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        // SAFETY: as the header says of `request`.
        let request = unsafe { read(request, "request") }?.request()?;
        let target = Target::Thread(number(thread)?);
        let reserved = Deadline.reserve(&target, &request).map_err(|refusal| failure(&refusal))?;
        Ok(hg_reservation { handle: RESERVATIONS.insert(Mutex::new(reserved))? })
    };
    // SAFETY: as the header says of `reservation` and `error`.
    unsafe { give(reservation, "reservation", error, work) }
}

fn supply_to_c(supply: &Supply) -> hg_supply {
    hg_supply {
        periods: supply.periods,
        missed: supply.missed,
        overruns: supply.overruns,
        delivered_min_ns: supply.delivered_min_ns().unwrap_or(0),
        delivered_p50_ns: supply.delivered_p50_ns().unwrap_or(0),
        throttled_ns: supply.throttled_ns.unwrap_or(0),
    }
}

/// Reads the processor time that it delivered until now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_reserve_look(
    reservation: hg_reservation,
    supply: *mut hg_supply,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let held = RESERVATIONS.get(reservation.handle)?;
        let found = held.lock().unwrap_or_else(PoisonError::into_inner).supply();
        Ok(supply_to_c(&found))
    };
    // SAFETY: as the header says of `supply` and `error`.
    unsafe { give(supply, "supply", error, work) }
}

/// Ends it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn hg_reserve_release(
    reservation: hg_reservation,
    error: *mut hg_error,
) -> hg_status {
    let work = || {
        let held = RESERVATIONS.remove(reservation.handle)?;
        let mut held = held.into_inner().unwrap_or_else(PoisonError::into_inner);
        held.release().map_err(|error| CapiError::os(&error))
    };
    // SAFETY: as the header says of `error`.
    unsafe { guard(error, work) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_calling_thread_has_a_number() {
        let own = number(0).unwrap();
        assert!(fs::exists(format!("/proc/self/task/{own}")).unwrap());
        assert_eq!(number(7).unwrap(), 7);
    }
}
