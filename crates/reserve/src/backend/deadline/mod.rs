//! The kernel's deadline class (`SCHED_DEADLINE`, a constant bandwidth server).
//!
//! A hard reservation is the class as it is: the budget is also the limit. A soft one is the class with reclaiming
//! (`SCHED_FLAG_RECLAIM`), the kernel's approximation: the thread may use the bandwidth that is not reserved or not
//! used. Hourglass paper, section 5.6.
//!
//! Owns: entering and leaving the class, for the calling thread and for another one; EBUSY while
//! bandwidth that was given back is still charged; what was delivered. Must not: say why the kernel
//! refused (`admission` does).
//!
//! The class is per thread: what a thread forks begins in the time-sharing class, there is no budget
//! for several threads, and no pinning to a CPU.
//!
//! # How the deadline class is asked
//!
//! `reserve::admission::facts` reads what bears on it from any root, so that tests give machines of files: limits,
//! root domain, capacities, cpusets, fair servers, other threads of the class, the kernel's own account where debugfs shows it.
//! `rules.rs` and `bandwidth.rs` put the kernel's rules against them one by one, with the sum left to
//! `sched::admission`; `errno.rs` finds the rule behind an error number; `lateness.rs` has `sched::servers` and `sched::global` say
//! whether what is admitted is also in time. `backend::deadline` asks, and waits out EBUSY while bandwidth that
//! was given back is still charged. Afterwards a thread looks at the kernel's account of the reserved one
//! once a period (`sample.rs`). `PeriodLedger` makes periods of the looks, and knows nothing but them: which period it was
//! the account of the budget tells, what it really had the thread's clock. A look that comes too late to tell leaves the
//! period out. `admission/tick.rs` says which budgets are of the order of the tick at which the kernel ends them.

mod change;
mod ledger;
mod reservation;
mod sample;
#[cfg(test)]
mod tests;

use std::io;
use std::time::{Duration, Instant};

use hourglass_documents::{Reservation, ReservationKind};
use hourglass_sys::sched::{self, Attributes, SavedScheduling};
use hourglass_sys::thread;

use crate::admission::{
    AdmissionFacts, Obstacle, Refusal, Tick, bandwidth, explain, ownership, ownership_of,
};
use crate::backend::{
    AccuracyWarning, ActiveReservation, Backend, BackendKind, BackendRequest, members, nested, user,
};
use crate::ownership;
use crate::target::Target;

pub(crate) use change::change;

/// How long a refusal for want of bandwidth is taken to be the echo of a reservation that has
/// just ended; about 180 ms were measured.
const ECHO: Duration = Duration::from_millis(300);
const RETRY: Duration = Duration::from_millis(10);

/// How long it is waited where by all that can be seen the reservation fits. The kernel's account has been
/// seen to be wrong for a while; see [`crate::admission::explain`].
const PATIENCE: Duration = Duration::from_millis(1_500);

/// The deadline class as a backend.
#[derive(Clone, Copy, Debug, Default)]
pub struct Deadline;

impl Backend for Deadline {
    fn kind(&self) -> BackendKind {
        BackendKind::Deadline
    }

    fn guarantee(&self) -> bool {
        true
    }

    /// A process must have a single thread. What the thread forks begins in the time-sharing
    /// class, without a share of the budget.
    fn reserve(
        &self,
        target: &Target,
        request: &BackendRequest,
    ) -> Result<Box<dyn ActiveReservation>, Refusal> {
        let tid = the_thread(target, request)?;
        ownership(BackendKind::Deadline, tid)?;
        let refused = |error: io::Error| refusal(&error, Some(tid), request);
        let coarse = Tick::of_this_machine().and_then(|tick| tick.against(request));
        if request.cpu.is_some() {
            // The kernel is not asked: it would take the thread, and leave it where it is.
            let facts = AdmissionFacts::here(Some(tid));
            let pinned = crate::admission::deadline(request, &facts)
                .into_iter()
                .find(|refusal| matches!(refusal.id, Obstacle::Cpu | Obstacle::Affinity));
            pinned.map_or(Ok(()), Err)?;
        }
        nested::refusal(BackendKind::Deadline, target).map_or(Ok(()), Err)?;
        user::check_above(request, &AdmissionFacts::here(Some(tid)))?;
        let reserved = sample::ReservedThread::open(tid).map_err(refused)?;
        let saved = SavedScheduling::read(tid).map_err(refused)?;
        let attributes = attributes(&request.reservation, false);
        waiting_for_echo(Some(tid), &request.reservation, || {
            ownership::set_policy_without_children(tid, attributes)
        })
        .map_err(|error| {
            ownership_of(BackendKind::Deadline, &error).unwrap_or_else(|| refused(error))
        })?;
        let held =
            reservation::DeadlineReservation::new(reserved, saved, &request.reservation, coarse);
        // A reservation that was made meanwhile sees this thread, or is seen here; `held` puts everything back.
        user::check_above(request, &AdmissionFacts::here(Some(tid)))?;
        if let Target::Process(_) = target {
            // It may have made a thread meanwhile; `held` puts everything back.
            the_thread(target, request)?;
        }
        Ok(Box::new(held))
    }
}

/// The doubt that a budget of the order of the tick is kept; `coarse` says why ([`Tick::against`]).
#[must_use]
pub fn at_tick(coarse: String) -> AccuracyWarning {
    AccuracyWarning {
        id: "budget-at-tick",
        text: coarse,
        remedy: "--backend user, which ends a budget between ticks; or a budget of ten ticks and more",
    }
}

/// The doubt that jobs have their budget by a deadline before the period: the kernel holds up one that comes between the two
/// (`dl_check_constrained_dl`), and then each that comes a period later.
#[must_use]
pub fn before_period(reservation: &Reservation) -> Option<AccuracyWarning> {
    let [deadline, period] = [reservation.deadline(), reservation.period()];
    let wait = period.saturating_sub(deadline);
    wait.is_positive().then(|| AccuracyWarning {
        id: "deadline-before-period",
        text: format!(
            "the deadline class may keep a job that comes behind the deadline of {deadline} up to {wait} longer, so that it \
             has its budget within {period}, and so every job that comes a period after another"
        ),
        remedy: "a period that is the deadline, or --backend user",
    })
}

/// The only thread of a target.
///
/// # Errors
/// It has several, or has ended.
pub(crate) fn the_thread(target: &Target, request: &BackendRequest) -> Result<u32, Refusal> {
    let process = match target {
        Target::Thread(tid) => return Ok(*tid),
        Target::Process(process) => *process,
    };
    match members::threads_of(process).as_slice() {
        [] => Err(explain(crate::ownership::ESRCH, request, &AdmissionFacts::default())),
        [thread] => Ok(*thread),
        threads => Err(Refusal::deadline(
            Obstacle::Fork,
            format!(
                "process {process} has {} threads (/proc/{process}/task), and the deadline class gives each \
                 thread a budget of its own",
                threads.len()
            ),
            "--backend user, which has one budget for all of them; or --thread TID for one"
                .to_owned(),
        )),
    }
}

/// What the kernel's answer for thread `tid` means; `None` is the calling thread.
fn refusal(error: &io::Error, tid: Option<u32>, request: &BackendRequest) -> Refusal {
    explain(error.raw_os_error().unwrap_or_default(), request, &AdmissionFacts::here(tid))
}

fn attributes(reservation: &Reservation, overrun_signal: bool) -> Attributes {
    Attributes::Deadline {
        runtime_ns: reservation.budget().nanos_or_zero(),
        deadline_ns: reservation.deadline().nanos_or_zero(),
        period_ns: reservation.period().nanos_or_zero(),
        reclaim: reservation.strength() == ReservationKind::Soft,
        overrun_signal,
    }
}

/// Asks until the answer is another one than EBUSY, as long as that can be an echo. `tid` is the thread for which it is
/// asked.
fn waiting_for_echo(
    tid: Option<u32>,
    reservation: &Reservation,
    mut ask: impl FnMut() -> io::Result<()>,
) -> io::Result<()> {
    let begun = Instant::now();
    let mut limit = ECHO;
    loop {
        let error = match ask() {
            Err(error) if error.kind() == io::ErrorKind::ResourceBusy => error,
            answer => return answer,
        };
        if begun.elapsed() >= limit {
            let request = BackendRequest { reservation: *reservation, cpu: None };
            let fits =
                || bandwidth(&request, &AdmissionFacts::here(tid)).is_some_and(|sum| sum.fits_seen);
            if limit == PATIENCE || !fits() {
                return Err(error);
            }
            limit = PATIENCE;
        }
        std::thread::sleep(RETRY);
    }
}

/// Puts the calling thread into the deadline class. It leaves
/// the class when it ends; the kernel may charge the bandwidth for up to 200 ms longer, so that
/// EBUSY is given that time to pass.
///
/// # Errors
/// What the kernel answers: EPERM without `CAP_SYS_NICE` or with an affinity that does not cover
/// the root domain, EBUSY where the bandwidth is given away, EINVAL for times outside 100 us to
/// 4.19 s or a budget under 1024 ns.
pub fn enter(reservation: &Reservation) -> io::Result<()> {
    waiting_for_echo(None, reservation, || sched::set(attributes(reservation, false)))
}

/// As [`enter`], with the reason where it is refused.
///
/// # Errors
/// The obstacle, and its remedy.
pub fn enter_or_say_why(reservation: &Reservation) -> Result<(), Refusal> {
    let request = BackendRequest { reservation: *reservation, cpu: None };
    let above = || user::check_above(&request, &AdmissionFacts::here(Some(thread::id())));
    nested::refusal(BackendKind::Deadline, &Target::Thread(thread::id())).map_or(Ok(()), Err)?;
    above()?;
    let before = SavedScheduling::read(0).map_err(|error| refusal(&error, None, &request))?;
    enter(reservation).map_err(|error| refusal(&error, None, &request))?;
    above().inspect_err(|_| {
        // It was let in just now.
        let _ = before.restore(0);
    })
}

/// Puts the calling thread back into the time-sharing class.
///
/// # Errors
/// What the kernel answers; does not happen.
pub fn leave() -> io::Result<()> {
    sched::set(Attributes::Other(0))
}
