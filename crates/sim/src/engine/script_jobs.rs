//! Jobs of threads that follow scripts.
//!
//! Owns: where a job begins, counts and ends. Must not: act.

use super::super::error::SimError;
use super::super::sink::Event;
use super::super::source::JobRelease;
use super::SimState;
use super::script::{StepFlow, TimerPurpose};
use super::state::ActiveJob;
use super::timers::NEVER;

impl<const TELL: bool> SimState<TELL> {
    /// The job at hand executes; from now on it counts.
    pub(super) fn works(&mut self, thread: usize) -> StepFlow {
        let Some(cursor) = self.cursor(thread) else { return StepFlow::Next };
        if std::mem::replace(&mut cursor.worked, true) {
            return StepFlow::Next;
        }
        let now = self.now;
        let Some(cursor) = self.cursor(thread) else { return StepFlow::Next };
        // A thread that goes on working after what no job begins with goes on with its job.
        let arrival = *cursor.arrival.get_or_insert(now);
        self.runners[thread].outcome.released += 1;
        let number = self.runners[thread].job.map_or(0, |job| job.number);
        self.tell(Event::Release { thread, job: number, arrival });
        StepFlow::Next
    }

    /// A job begins that arrived then.
    pub(super) fn begin_job(&mut self, thread: usize, arrival: u64) {
        let now = self.now;
        if let Some(cpu) = self.runners[thread].cpu {
            self.end_slice(cpu, thread);
        }
        let Some(cursor) = self.cursor(thread) else { return };
        let forgotten = cursor.arrival.is_some();
        (cursor.arrival, cursor.last_arrival, cursor.worked) = (Some(arrival), arrival, false);
        let number = match self.runners[thread].job {
            // A job that executed nothing was none.
            Some(job) if forgotten => job.number,
            Some(job) => job.number + 1,
            None => 0,
        };
        let job = ActiveJob {
            coming: JobRelease { arrival, release: now.max(arrival) },
            ..job(number, now)
        };
        self.runners[thread].job = Some(job);
        if let Some(cpu) = self.runners[thread].cpu {
            self.cpus[cpu].slice_job = number;
        }
        self.set_due(thread);
    }

    /// The absolute deadline of the job at hand.
    pub(super) fn set_due(&mut self, thread: usize) {
        let runner = &mut self.runners[thread];
        if let Some(job) = &mut runner.job {
            job.deadline = job.coming.arrival.saturating_add(runner.deadline);
        }
        self.rank_again(thread);
    }

    pub(super) fn finish_job(&mut self, thread: usize) -> Result<(), SimError> {
        let Some(cursor) = self.cursor(thread) else { return Ok(()) };
        if !std::mem::take(&mut cursor.worked) {
            return Ok(());
        }
        cursor.arrival = None;
        let Some(job) = self.runners[thread].job else { return Ok(()) };
        if let Some(cpu) = self.runners[thread].cpu {
            self.end_slice(cpu, thread);
        }
        self.count_completion(thread, &job);
        self.reasons.completion = true;
        self.follow(thread, job.coming.arrival)
    }

    pub(super) fn end_script(&mut self, thread: usize) -> Result<(), SimError> {
        self.finish_job(thread)?;
        while let Some(lock) = self.runners[thread].holds {
            let _ = self.release_lock(thread, lock)?;
        }
        self.set_doing(thread, TimerPurpose::Over);
        self.timers.set(self.slots.wake + thread, NEVER);
        self.make_unready(thread)?;
        self.runners[thread].job = None;
        Ok(())
    }

    /// At the horizon a script without a job has no open job.
    pub(super) fn close_script(&mut self, thread: usize) {
        let Some(cursor) = self.cursor(thread) else { return };
        let (open, worked) = (cursor.arrival.is_some(), cursor.worked);
        let waits = matches!(cursor.doing, TimerPurpose::Nothing | TimerPurpose::Over);
        let runner = &mut self.runners[thread];
        // One that was released and has not had a CPU is open; one that waits for its first act is not.
        let open = open && !waits && (worked || runner.ready);
        match &mut runner.job {
            Some(job) if open => {
                runner.outcome.released += u64::from(!worked);
                job.cost = job.remaining.saturating_add(u64::from(worked));
            }
            job => *job = None,
        }
    }
}

/// A job that has executed nothing.
pub(super) fn job(number: u64, arrival: u64) -> ActiveJob {
    ActiveJob {
        number,
        coming: JobRelease { arrival, release: arrival },
        deadline: u64::MAX,
        cost: 0,
        remaining: 0,
        reload: 0,
        point: 0,
        section: 0,
        marks: 0,
        started: false,
        preempted: false,
    }
}
