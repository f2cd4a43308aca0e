//! Whether timers are precise, or bound to a tick.

/// How an engine works (*Hrtimers and Beyond*, sections 7 and 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Resolution {
    /// Everything waits for the next tick.
    TickBound,
    /// The device is programmed for each expiry.
    High,
}

impl Resolution {
    /// Name of the resolution in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Resolution::TickBound => "tick_bound",
            Resolution::High => "high",
        }
    }
}
