//! The timer service.

mod remote;

/// The atomics of [`remote`], which a model checker replaces.
mod atomic {
    pub(crate) use std::sync::atomic::{AtomicU64, Ordering, fence};
}
