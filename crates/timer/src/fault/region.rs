//! Regions in which a thread is not stopped, and points at which it may be ended.
//!
//! Owns: [`defer`], [`Region`], [`safepoint`]. Must not: allocate, or ask whether the thread is watched.

use hourglass_sys::{no_stop, stop};

use super::error::ThreadTerminated;

/// A region in which the thread that made it is neither suspended nor demoted; until it is dropped.
///
/// Regions nest. A deadline that passes within is acted upon when the outermost is left, before the
/// drop returns; [`super::FaultAction::Notify`] does nothing to the thread and so is not put off. Costs
/// some ns, and nothing but a counter if the thread is not watched. A region that is leaked protects
/// the thread for ever.
#[must_use = "the region ends when this is dropped"]
#[derive(Debug)]
pub struct Region(no_stop::Region);

impl Region {
    /// From here on the calling thread is not stopped.
    #[inline]
    pub fn enter() -> Region {
        Region(no_stop::Region::enter())
    }
}

/// Does `work` without being stopped in the middle: [`Region`]. For whatever holds a lock that others
/// wait for, the allocator's and the standard streams' among them.
///
/// ```
/// use std::sync::Mutex;
/// use hourglass_timer::fault;
///
/// static TABLE: Mutex<Vec<u64>> = Mutex::new(Vec::new());
///
/// fault::defer(|| TABLE.lock().unwrap().push(7));
/// ```
#[inline]
pub fn defer<R>(work: impl FnOnce() -> R) -> R {
    let _region = Region::enter();
    work()
}

/// Where the calling thread may be ended: call it where nothing is held, and propagate the error.
/// For a thread that is not watched it does nothing.
///
/// # Errors
/// [`ThreadTerminated`] from a handler's verdict on.
#[inline]
pub fn safepoint() -> Result<(), ThreadTerminated> {
    if stop::has_ended() { Err(ThreadTerminated) } else { Ok(()) }
}
