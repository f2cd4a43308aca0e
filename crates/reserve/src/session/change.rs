//! Another budget for a reservation that is in force.
//!
//! In the deadline class the kernel makes the change, and observers of the thread see it. Otherwise a signal with a
//! number (`sigqueue(3)`) asks the keeper; its user and root may send that. It answers by its claim: a new claim takes
//! the place of the first when it is admitted.

use std::fs::File;
use std::io;
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};

use hourglass_documents::document::Warning;
use hourglass_documents::reservations::ReservationsDocument;
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_sys::signal_file;
use hourglass_time::Span;

use super::backend_selection::SelectedBackend;
use super::list;
use crate::backend::{BackendKind, deadline, user};

/// Times travel in this unit, ns, with 32 bits for each.
const UNIT_NS: u64 = 100;
/// How long an answer is waited for; the keeper looks ten times a second.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long earlier requests are waited for.
const TURN: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(20);

/// Why a reservation goes on as it was.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChangeFailure {
    /// What was asked for makes no sense, or there is no such process.
    #[error("{0}")]
    Words(String),
    /// It is refused.
    #[error("{0}")]
    Refused(String),
}

impl From<String> for ChangeFailure {
    fn from(why: String) -> ChangeFailure {
        ChangeFailure::Refused(why)
    }
}

fn number(budget: Span, period: Span) -> Result<u64, String> {
    let units = |span: Span| {
        let ns = span.nanos_or_zero();
        let units = u32::try_from(ns / UNIT_NS).ok().filter(|_| ns.is_multiple_of(UNIT_NS));
        units
            .map(u64::from)
            .ok_or_else(|| format!("{span}: a change takes multiples of 100ns up to 429 s"))
    };
    Ok(units(budget)? << 32 | units(period)?)
}

fn times(number: u64) -> (Span, Span) {
    let span = |units: u64| Span::saturating_from_nanos(units * UNIT_NS);
    (span(number >> 32), span(number & u64::from(u32::MAX)))
}

/// Waits until no other process asks for a change; `None` where no lock says so.
fn wait_for_turn() -> Result<Option<File>, String> {
    let begun = Instant::now();
    loop {
        match user::alone() {
            Ok(Some(alone)) => return Ok(Some(alone)),
            Ok(None) if begun.elapsed() < TURN => sleep(PAUSE),
            Ok(None) => {
                let seconds = TURN.as_secs();
                return Err(format!(
                    "nothing was changed: others have asked for changes for {seconds} s"
                ));
            }
            Err(_) => return Ok(None),
        }
    }
}

/// Gives the reservation of process `pid` another budget and period: the one that it keeps from user space, or that of its
/// thread in the deadline class, which may be named by its own number. Returns it as it is then; the first period with them
/// begins after the one that lasts.
///
/// # Errors
/// Why not, in a line; it goes on as it was.
pub fn change(pid: u32, budget: Span, period: Span) -> Result<ReservationsDocument, ChangeFailure> {
    Reservation::new(budget, period, ReservationKind::Hard)
        .map_err(|error| ChangeFailure::Words(format!("{budget}/{period}: {error}")))?;
    if !Path::new(&format!("/proc/{pid}")).exists() {
        return Err(ChangeFailure::Words(format!(
            "there is no process {pid}; hourglass reserve --list names those with a reservation"
        )));
    }
    let mut all = list();
    all.reservations.retain(|one| one.pid == Some(pid) || one.tid == Some(pid));
    let class: Vec<u32> = all.reservations.iter().filter_map(|one| one.tid).collect();
    match &class[..] {
        [tid] if all.reservations.len() == 1 => Ok(change_in_class(*tid, budget, period)?),
        [_, _, ..] => {
            let named: Vec<String> = class.iter().map(u32::to_string).collect();
            let named = named.join(", ");
            Err(ChangeFailure::Words(format!(
                "process {pid} has several threads in the deadline class; name one of {named}"
            )))
        }
        _ => {
            let number = number(budget, period).map_err(ChangeFailure::Words)?;
            Ok(change_kept(pid, budget, period, number)?)
        }
    }
}

fn change_in_class(tid: u32, budget: Span, period: Span) -> Result<ReservationsDocument, String> {
    let gone = || Err("it is no longer in the class".to_owned());
    let changed = deadline::change(tid, budget, period).unwrap_or_else(gone);
    changed.map_err(|why| format!("thread {tid}: {why}"))?;
    let mut all = list();
    all.reservations.retain(|one| one.tid == Some(tid));
    Ok(all)
}

fn change_kept(
    pid: u32,
    budget: Span,
    period: Span,
    number: u64,
) -> Result<ReservationsDocument, String> {
    let _alone = wait_for_turn()?;
    user::may_change(pid, budget, period)?;
    signal_file::send_value(pid, signal_file::change(), number).map_err(|error| {
        let why = match error.kind() {
            io::ErrorKind::Unsupported => {
                "only what hourglass reserve keeps, without --smt and --also, can be changed"
                    .to_owned()
            }
            io::ErrorKind::PermissionDenied => {
                "it belongs to another user, and only that one and root may change it".to_owned()
            }
            io::ErrorKind::NotFound => "it has ended".to_owned(),
            _ => error.to_string(),
        };
        format!("process {pid}: {why}")
    })?;
    let begun = Instant::now();
    let (budget_ns, period_ns) = (budget.nanos_or_zero(), period.nanos_or_zero());
    while begun.elapsed() < PATIENCE {
        sleep(PAUSE);
        let mut all = list();
        all.reservations
            .retain(|one| one.pid == Some(pid) && one.backend == BackendKind::User.name());
        if matches!(&all.reservations[..], [one] if (one.budget_ns, one.period_ns) == (budget_ns, period_ns))
        {
            return Ok(all);
        }
    }
    let goes_on = Path::new(&format!("/proc/{pid}")).exists();
    Err(match goes_on {
        true => format!(
            "process {pid} has not taken it for {} s; where it refused it, its report says why",
            PATIENCE.as_secs()
        ),
        false => format!("process {pid} has ended, and did not take it before"),
    })
}

/// Carries out what a signal asked for; what to say at the end if it is refused.
pub(super) fn asked(picked: &mut SelectedBackend, number: u64) -> Option<Warning> {
    let (budget, period) = times(number);
    let refused = picked.reserved.change(budget, period).err()?;
    Some(Warning {
        id: "change-refused".to_owned(),
        text: format!("the budget was to be changed to {budget}/{period}: {refused}"),
        remedy: "hourglass reserve --change asks again".to_owned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_come_back() {
        let (budget, period) = (Span::from_micros(3_100), Span::from_millis(8));
        assert_eq!(times(number(budget, period).unwrap()), (budget, period));
        assert!(number(Span::from_nanos(150), period).is_err());
        assert!(number(budget, Span::from_secs(430)).is_err());
    }
}
