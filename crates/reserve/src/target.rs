//! The target of a reservation.

/// Threads that share one reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One thread by its kernel number.
    Thread(u32),
    /// A process with all of its threads and descendants.
    Process(u32),
}
