//! How long to simulate, and from which seed.
//!
//! Owns: [`SimSettings`]. Must not: say anything about the system.

/// The extent of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimSettings {
    /// Simulated time, ns. What would happen at this instant or later does not happen, but what ends
    /// at it ends. 2^64 - 1 itself is never reached.
    pub horizon: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// More events than this are refused. An event is an instant at which something happens on a
    /// CPU or a timer.
    pub max_events: u64,
}

/// Events allowed unless it is said otherwise: about half an hour of a processor of 2026.
pub const MOST_EVENTS: u64 = 20_000_000_000;

impl SimSettings {
    /// Settings from 0 to `horizon` with seed 0.
    #[must_use]
    pub fn until(horizon: u64) -> SimSettings {
        SimSettings { horizon, seed: 0, max_events: MOST_EVENTS }
    }

    #[must_use]
    pub fn with_seed(self, seed: u64) -> SimSettings {
        SimSettings { seed, ..self }
    }

    #[must_use]
    pub fn with_most_events(self, most_events: u64) -> SimSettings {
        SimSettings { max_events: most_events, ..self }
    }
}
