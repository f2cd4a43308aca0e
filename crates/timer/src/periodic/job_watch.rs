//! Where something that enforces deadlines attaches to a periodic task, as timing faults do.

use std::error::Error;
use std::ops::ControlFlow;

use hourglass_time::Span;

use crate::fault::{
    self, Attributes, Deadline, DeadlineHandler, Fault, FaultError, FaultVerdict, WatchSettings,
    deadline_handler,
};

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

/// The thread's watch, with a handler installed. Of the two the handler goes first.
#[derive(Debug)]
pub(super) struct FaultWatch {
    _handler: DeadlineHandler,
    watch: fault::DeadlineWatch,
    /// Whether overruns of the budget are faults too.
    budget: bool,
}

impl FaultWatch {
    pub(super) fn install<A: Send + 'static>(
        settings: WatchSettings,
        attributes: Attributes,
        entry: impl FnMut(&Fault, &mut A) -> FaultVerdict + Send + 'static,
        argument: A,
        budget: bool,
    ) -> Result<FaultWatch, FaultError> {
        let watch = fault::DeadlineWatch::new(settings)?;
        let handler = deadline_handler(&watch.thread(), attributes, entry, argument)?;
        Ok(FaultWatch { _handler: handler, watch, budget })
    }
}

impl JobWatch for FaultWatch {
    fn released(&mut self, job: ReleasedJob) {
        // A deadline beyond the end of time is never passed; a verdict to end is asked for again when
        // the job is complete.
        let _ = self.watch.begin_job(Deadline::At(job.deadline_ns));
        if let Some(budget_ns) = job.budget_ns.filter(|_| self.budget) {
            // Fails if no signal is left for the timer of the budget: then the overrun is reported after the job.
            let _ = self.watch.arm_budget(Span::from_nanos(budget_ns.cast_signed()));
        }
    }

    fn completed(&mut self) -> ControlFlow<()> {
        self.watch.disarm_budget();
        match self.watch.end_job() {
            Err(FaultError::Ended(_)) => ControlFlow::Break(()),
            _ => ControlFlow::Continue(()),
        }
    }
}
