//! The jobs of a thread, one by one: when they arrived, began and finished.
//!
//! Owns: [`JobTiming`] and the room for them, made before the start. Must not: judge whether one was late.

use hourglass_time::Span;

/// A job that ended. Times are on the raw counter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTiming {
    /// Nominal arrival, ticks of the counter.
    pub arrival: u64,
    pub started: u64,
    pub finished: u64,
    /// Processor time that it received meanwhile, in ticks.
    pub received: u64,
}

impl JobTiming {
    /// From its arrival to its end, in ticks.
    pub fn response(&self) -> u64 {
        self.finished.saturating_sub(self.arrival)
    }
}

/// What the jobs of a thread have in common.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobTerms {
    /// From a job's arrival to the time at which it must be done; `None` for jobs without a deadline.
    pub deadline: Option<Span>,
    /// Distance of arrivals on a grid, of which those that find an earlier job running are lost.
    pub grid: Option<Span>,
    /// Whether points of the grid behind the last job are lost, too, if their deadlines pass by the thread's end.
    pub until_end: bool,
}

/// The jobs of a thread, as far as there was room; the worst of all of them.
#[derive(Debug)]
pub struct JobLog {
    room: Vec<JobTiming>,
    taken: usize,
    /// Jobs that are not there one by one.
    pub dropped: u64,
    /// The job with the longest response, kept or not.
    pub worst: Option<JobTiming>,
    /// The job that had begun and not ended when the thread's time was over.
    pub unfinished: Option<JobTiming>,
    pub terms: JobTerms,
}

impl JobLog {
    /// Room for `capacity` jobs, its pages written.
    pub fn new(capacity: usize, terms: JobTerms) -> JobLog {
        // Not all zero, so that making the room writes its pages.
        let empty = JobTiming { arrival: u64::MAX, ..JobTiming::default() };
        let room = vec![empty; capacity];
        JobLog { room, taken: 0, dropped: 0, worst: None, unfinished: None, terms }
    }

    pub(crate) fn record(&mut self, job: JobTiming) {
        if self.worst.is_none_or(|worst| job.response() > worst.response()) {
            self.worst = Some(job);
        }
        match self.room.get_mut(self.taken) {
            Some(place) => {
                *place = job;
                self.taken += 1;
            }
            None => self.dropped += 1,
        }
    }

    /// The jobs that are there, in the order in which they ended.
    pub fn jobs(&self) -> &[JobTiming] {
        self.room.get(..self.taken).unwrap_or(&self.room)
    }

    /// The memory that must not be paged out.
    pub(crate) fn memory(&self) -> &[JobTiming] {
        &self.room
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_job_is_kept_even_without_room() {
        let mut jobs = JobLog::new(1, JobTerms::default());
        for (arrival, finished) in [(0, 5), (10, 29), (30, 34)] {
            jobs.record(JobTiming { arrival, started: arrival, finished, received: 1 });
        }
        assert_eq!(jobs.jobs().len(), 1);
        assert_eq!(jobs.dropped, 2);
        assert_eq!(jobs.worst.map(|job| job.response()), Some(19));
    }
}
