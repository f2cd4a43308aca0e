//! How a reservation goes, while it is in force.
//!
//! Owns: when the next look is. Must not: print.

use hourglass_documents::live::ReserveMoment;
use hourglass_documents::reserve::ReserveDocument;
use hourglass_sys::clock::{ClockId, now_ns};

use super::backend_selection::SelectedBackend;
use super::document;

/// From one to the next, ns.
const EVERY_NS: u64 = 1_000_000_000;

#[derive(Debug)]
pub(super) struct Moments {
    begun_ns: u64,
    seconds: u64,
    budget_ns: u64,
    promised: bool,
    /// Whether misses are known.
    judged: bool,
}

impl Moments {
    pub(super) fn begin(document: &ReserveDocument, several: bool) -> Moments {
        Moments {
            begun_ns: now_ns(ClockId::Monotonic),
            seconds: 0,
            budget_ns: document.kept_ns.unwrap_or(document.budget_ns),
            promised: document.guarantee,
            judged: !several && !document::is_limit(document),
        }
    }

    /// To be called more often than they are.
    pub(super) fn look(
        &mut self,
        picked: &mut SelectedBackend,
        watch: &mut dyn FnMut(&ReserveMoment),
    ) {
        let elapsed_ns = now_ns(ClockId::Monotonic).saturating_sub(self.begun_ns);
        let seconds = elapsed_ns / EVERY_NS;
        if seconds == self.seconds {
            return;
        }
        self.seconds = seconds;
        let supply = picked.reserved.supply();
        watch(&ReserveMoment {
            elapsed_ns,
            budget_ns: supply.changes.last().map_or(self.budget_ns, |(_, budget_ns, _)| *budget_ns),
            last_ns: supply.last_ns,
            periods: supply.periods,
            missed: self.judged.then_some(supply.missed),
            overruns: supply.overruns,
            guarantee: self.promised && picked.reserved.accuracy_warnings().is_empty(),
        });
    }
}
