//! The hook by which a thread asks for a reservation. This crate knows no scheduler; who starts
//! the run says how a reservation is made.

use hourglass_model::Reservation;

/// Why a reservation was refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denied {
    /// What the kernel answered; 0 if it was not asked.
    pub errno: i32,
    /// What is in the way.
    pub cause: String,
    /// The line that mends it.
    pub remedy: String,
}

/// What keeps a reservation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Means {
    /// The kernel's deadline class.
    DeadlineClass,
    /// A reserve in user space: real-time priority while the budget lasts.
    UserSpace,
}

impl Means {
    /// The policy in force, as it is written: `DEADLINE:3.1ms/8ms`, `USER:3.1ms/8ms`, with `+` for a soft one.
    #[must_use]
    pub fn policy(self, reservation: &Reservation) -> String {
        let policy = reservation.to_string();
        match (self, policy.split_once(':')) {
            (Means::UserSpace, Some((_, times))) => format!("USER:{times}"),
            _ => policy,
        }
    }
}

/// Makes reservations for the threads of a run.
pub trait Reserver: Sync {
    /// Reserves for the calling thread, from now until the thread ends; what keeps it.
    ///
    /// Called on the thread itself before it is measured, after its affinity was set.
    ///
    /// # Errors
    /// What is in the way, and what mends it.
    fn reserve(&self, reservation: &Reservation) -> Result<Means, Denied>;
}
