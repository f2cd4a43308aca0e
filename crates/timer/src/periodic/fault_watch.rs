//! A periodic thread's deadlines, handled as timing faults.

use std::ops::ControlFlow;

use crate::fault::{
    self, Attributes, Deadline, DeadlineHandler, Fault, FaultError, FaultVerdict, WatchSettings,
    deadline_handler,
};

use hourglass_time::Span;

use super::job_watch::{JobWatch, ReleasedJob};

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
