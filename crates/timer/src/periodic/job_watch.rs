//! Where something that enforces deadlines attaches to a periodic task.

use std::error::Error;
use std::ops::ControlFlow;

/// A job that was released, as a [`JobWatch`] receives it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReleasedJob {
    /// How many jobs there were before.
    pub number: u64,
    /// Its release, ns.
    pub release_ns: u64,
    /// By when it is to be complete, ns; may have passed already.
    pub deadline_ns: u64,
    /// CPU time that it may take, ns, if that is limited.
    pub budget_ns: Option<u64>,
}

/// Watches the jobs of a periodic task while they run: a deadline handler, a watchdog.
///
/// It is made, called and dropped by the task's own thread. An implementation MUST
/// - neither allocate, block nor panic in [`JobWatch::released`] and [`JobWatch::completed`], which run in
///   the task's time (the first counts towards the job's response time, neither towards what it
///   costs);
/// - disarm whatever it armed in [`JobWatch::completed`], which is also called when the body panics;
/// - leave nothing behind in the thread when it is dropped.
pub trait JobWatch {
    /// A job is about to begin.
    fn released(&mut self, job: ReleasedJob);

    /// The job is complete. [`ControlFlow::Break`] ends the task ([`super::LoopEnd::ByWatch`]).
    fn completed(&mut self) -> ControlFlow<()>;
}

pub(super) type WatchError = Box<dyn Error + Send + Sync>;

pub(super) type MakeWatch = Box<dyn FnOnce() -> Result<Box<dyn JobWatch>, WatchError> + Send>;

pub(super) type OnStart = Box<dyn FnOnce() -> Result<(), WatchError> + Send>;

/// Calls [`JobWatch::completed`] once, however the job ends.
pub(super) struct WatchGuard<'a>(Option<&'a mut (dyn JobWatch + 'static)>);

impl<'a> WatchGuard<'a> {
    pub(super) fn begin(
        watch: Option<&'a mut Box<dyn JobWatch>>,
        job: ReleasedJob,
    ) -> WatchGuard<'a> {
        let mut watch = watch.map(|watch| &mut **watch);
        if let Some(watch) = &mut watch {
            watch.released(job);
        }
        WatchGuard(watch)
    }

    /// The job is complete: whether the watch ends the task.
    pub(super) fn complete(mut self) -> bool {
        self.0.take().is_some_and(|watch| watch.completed().is_break())
    }
}

impl Drop for WatchGuard<'_> {
    fn drop(&mut self) {
        if let Some(watch) = &mut self.0 {
            // The body panicked: the task ends in any case.
            let _ = watch.completed();
        }
    }
}
