//! A timer that has fired.

use std::fmt;

use hourglass_time::{ClockTag, Instant};

use super::Handle;

/// A timer or timeout that has fired. It is not armed any more, but lives on.
pub struct ExpiredEntry<C: ClockTag> {
    /// The timer that expired.
    pub handle: Handle,
    /// The expiry that it was armed with; never later than the time at which it fired.
    pub expiry: Instant<C>,
    /// By when it was to fire: expiry plus slack, or the time of its bucket. If it fired later than
    /// that, the queue was not polled in between.
    pub latest: Instant<C>,
}

// Written out, because derived ones would ask the same of the tag.

impl<C: ClockTag> Clone for ExpiredEntry<C> {
    fn clone(&self) -> ExpiredEntry<C> {
        *self
    }
}

impl<C: ClockTag> Copy for ExpiredEntry<C> {}

impl<C: ClockTag> PartialEq for ExpiredEntry<C> {
    fn eq(&self, other: &ExpiredEntry<C>) -> bool {
        (self.handle, self.expiry, self.latest) == (other.handle, other.expiry, other.latest)
    }
}

impl<C: ClockTag> Eq for ExpiredEntry<C> {}

impl<C: ClockTag> fmt::Debug for ExpiredEntry<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Expired")
            .field("handle", &self.handle)
            .field("expiry", &self.expiry)
            .field("latest", &self.latest)
            .finish()
    }
}
