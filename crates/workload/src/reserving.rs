//! The hook by which a thread asks for a reservation. This crate knows no scheduler; who starts
//! the run says how a reservation is made.

use std::io;

use hourglass_model::Reservation;

/// Makes reservations for the threads of a run.
pub trait Reserver: Sync {
    /// Reserves for the calling thread, from now until the thread ends.
    ///
    /// Called on the thread itself before it is measured, after its affinity was set.
    ///
    /// # Errors
    /// What the kernel answered.
    fn reserve(&self, reservation: &Reservation) -> io::Result<()>;
}
