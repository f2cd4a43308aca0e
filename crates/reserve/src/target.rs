//! The target of a reservation.

/// Threads that share one reservation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// One thread by its kernel number.
    Thread(u32),
    /// A process with all of its threads and descendants.
    Process(u32),
}

impl Target {
    /// Its kernel number; that of a process is also its first thread's.
    #[must_use]
    pub fn id(&self) -> u32 {
        let (Target::Thread(id) | Target::Process(id)) = self;
        *id
    }
}
