//! What a queue refuses.

use hourglass_time::Span;

use super::Handle;

/// Why a queue did not do as asked. Nothing has changed when one of these comes back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QueueError {
    /// The timer of this handle was removed. Its slot may hold another timer by now; that one is
    /// not touched.
    #[error("timer {handle} was removed; create another one")]
    StaleHandle {
        /// The refused handle.
        handle: Handle,
    },
    /// Slack is the time after the expiry in which the timer may still fire.
    #[error("a slack of {slack} is negative; arm with an earlier expiry instead")]
    NegativeSlack {
        /// Requested slack.
        slack: Span,
    },
    /// Further away than the clock or the wheel can tell.
    #[error("an expiry {after} from now is out of range; the longest is {longest}")]
    ExpiryOutOfRange {
        /// From now to the expiry.
        after: Span,
        /// What is possible.
        longest: Span,
    },
    /// A wheel whose buckets are too small.
    #[error("a granularity of {granularity} is too fine for a wheel; the finest is {finest}")]
    TooFine {
        /// Requested granularity.
        granularity: Span,
        /// What is possible.
        finest: Span,
    },
    /// Every slot that 32 bits can name is taken.
    #[error("the queue holds {timers} timers and cannot hold more; remove some")]
    Full {
        /// Timers in the queue.
        timers: usize,
    },
    /// The allocator gave nothing.
    #[error("no memory for {timers} timers; remove some, or ask for less capacity")]
    OutOfMemory {
        /// How many timers there was to be room for.
        timers: usize,
    },
}
