//! A reservation of this kind is given another budget while it is in force.
//!
//! Owns: its admission, which is that of a new one in its place, and the order to the keeper. Must not: change what is in
//! force before it is admitted.

use std::fs::File;
use std::io;

use hourglass_documents::Reservation;
use hourglass_sys::{credentials, lock};
use hourglass_time::Span;

use super::UserReservation;
use super::admit::{admit, check};
use super::budget::BudgetTerms;
use super::claims::ReservationClaim;
use super::registry::{Holder, RegisteredReservation, Registry};
use crate::admission::facts::AdmissionFacts;
use crate::backend::{BackendRequest, changed};

fn admitted(
    share: &ReservationClaim,
    reservation: &Reservation,
    others: Vec<RegisteredReservation>,
) -> Result<(), String> {
    let facts = AdmissionFacts::here(None);
    let request = BackendRequest { reservation: *reservation, cpu: None };
    let refused = check(&request, &facts).into_iter().next();
    let refused = refused.map_or_else(|| admit(share, others, &facts), Err);
    refused.map_err(|refusal| format!("{}; {}", refusal.cause, refusal.remedy))
}

/// What to keep open while one reservation of the machine is asked to change, so that no other one is: whether another budget
/// was taken is seen by the claim, of which there are two for a moment. `None` while another process has it.
///
/// # Errors
/// No reservation is written down, or the kernel has no such lock.
pub(crate) fn alone() -> io::Result<Option<File>> {
    let folder = Registry::of_the_machine().open()?;
    Ok(lock::try_exclusive(&folder)?.then_some(folder))
}

/// Whether the reservation that process `pid` keeps may have another budget and period, as far as can be seen from outside.
pub(crate) fn may_change(pid: u32, budget: Span, period: Span) -> Result<(), String> {
    let is_its = |held: &RegisteredReservation| matches!(held.holder, Holder::Process { pid: Some(of), .. } if of == pid);
    let (own, others): (Vec<RegisteredReservation>, Vec<RegisteredReservation>) =
        Registry::of_the_machine().all().into_iter().partition(is_its);
    let share = match &own[..] {
        [RegisteredReservation { holder: Holder::Process { uid, .. }, .. }]
            if ![0, *uid].contains(&credentials::real()) =>
        {
            return Err(format!(
                "process {pid} belongs to user {uid}, and only that one and root may change it"
            ));
        }
        [one] => &one.share,
        [] => {
            return Err(format!(
                "process {pid} keeps no reservation from user space; hourglass reserve --list names those that do"
            ));
        }
        several => return Err(format!("process {pid} keeps {} reservations", several.len())),
    };
    let span = Span::saturating_from_nanos;
    // Whether it is soft bears on no admission.
    let strength = hourglass_documents::ReservationKind::Hard;
    let before = Reservation::new(span(share.budget_ns), span(share.period_ns), strength)
        .and_then(|whole| whole.with_deadline(span(share.deadline_ns)))
        .map_err(|error| error.to_string())?;
    let new = changed(&before, budget, period)?;
    admitted(&ReservationClaim::new(&new, share.cpus.clone()), &new, others)
}

impl UserReservation {
    pub(super) fn change_to(&mut self, budget: Span, period: Span) -> Result<(), String> {
        let Some(before) = &self.entry else {
            return Err("it shares the time of another reservation".to_owned());
        };
        let reservation = changed(&self.reservation, budget, period)?;
        let share = ReservationClaim::new(&reservation, before.share().cpus.clone());
        // Written down first, as at the start.
        let (entry, others) = before.enter_instead(&share);
        admitted(&share, &reservation, others)?;
        self.enforcer.change(BudgetTerms::new(&reservation, self.cpus_at_once));
        self.reservation = reservation;
        self.entry = Some(entry);
        Ok(())
    }
}
