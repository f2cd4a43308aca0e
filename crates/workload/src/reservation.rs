//! The hook by which a thread asks for a reservation. This crate knows no scheduler; the caller of
//! the run says how a reservation is made.

use hourglass_documents::Reservation;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReservationDenied {
    /// What the kernel answered; 0 if it was not asked.
    pub errno: i32,
    pub cause: String,
    pub remedy: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReservationBackend {
    DeadlineClass,
    /// A reserve in user space: real-time priority while the budget lasts.
    UserSpace {
        /// When its first period began, ns of `CLOCK_MONOTONIC`. The class needs none: its period begins with a
        /// wake-up.
        first_ns: u64,
    },
}

impl ReservationBackend {
    /// The policy in force, as it is written: `DEADLINE:3.1ms/8ms`, `USER:3.1ms/8ms`, with `+` for a soft one.
    pub fn policy(self, reservation: &Reservation) -> String {
        let policy = reservation.to_string();
        match (self, policy.split_once(':')) {
            (ReservationBackend::UserSpace { .. }, Some((_, times))) => format!("USER:{times}"),
            _ => policy,
        }
    }

    /// When a thread begins that was to begin at `start_ns`: with the next period of its reservation, so that its own
    /// periods and those of what it is given begin together, as they do in the class and in the paper (section 5.6).
    pub fn start_ns(self, reservation: &Reservation, start_ns: u64) -> u64 {
        let ReservationBackend::UserSpace { first_ns } = self else { return start_ns };
        let period_ns = reservation.period().nanos_or_zero().max(1);
        let into_ns = start_ns.saturating_sub(first_ns) % period_ns;
        if into_ns == 0 { start_ns } else { start_ns.saturating_add(period_ns - into_ns) }
    }
}

pub trait Reserver: Sync {
    /// Reserves for the calling thread, from now until the thread ends; what keeps it.
    ///
    /// Called on the thread itself before it is measured, after its affinity was set.
    ///
    /// # Errors
    /// What is in the way, and what mends it.
    fn reserve(&self, reservation: &Reservation) -> Result<ReservationBackend, ReservationDenied>;
}

#[cfg(test)]
mod tests {
    use hourglass_documents::ReservationKind;
    use hourglass_time::Span;

    use super::*;

    #[test]
    fn a_thread_begins_with_a_period_of_its_reserve() {
        let (budget, period) = (Span::from_millis(3), Span::from_millis(8));
        let reservation = Reservation::new(budget, period, ReservationKind::Hard).unwrap();
        let user = ReservationBackend::UserSpace { first_ns: 1_000_000 };
        for (asked_ms, begins_ms) in [(1, 1), (2, 9), (9, 9), (10, 17), (801, 801), (802, 809)] {
            let begins = user.start_ns(&reservation, asked_ms * 1_000_000);
            assert_eq!(begins, begins_ms * 1_000_000, "{asked_ms}");
        }
        assert_eq!(ReservationBackend::DeadlineClass.start_ns(&reservation, 5), 5);
        assert_eq!(user.start_ns(&reservation, u64::MAX), u64::MAX);
    }
}
