//! The jobs of periodic threads, one by one.

/// A job of a thread: when it was released and had to be done, and what came of it. Nanoseconds from the run's start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobRecord {
    /// Number of the thread in the run.
    pub thread: u32,
    /// Its nominal arrival.
    pub release_ns: i64,
    /// When it had to be done.
    pub deadline_ns: i64,
    /// When it first ran; `None` if it did not.
    pub started_ns: Option<i64>,
    /// When it was done; `None` if the run ended before, or it is lost.
    pub finished_ns: Option<i64>,
    /// Whether it never was to run, because an earlier job of the thread still did.
    pub lost: bool,
}

impl JobRecord {
    /// The times for which it ran although its deadline had passed: from, to. `end_ns` is the run's end.
    pub fn late_span(&self, end_ns: i64) -> Option<(i64, i64)> {
        let from = self.started_ns?.max(self.deadline_ns);
        let to = self.finished_ns.unwrap_or(end_ns);
        (to > from).then_some((from, to))
    }

    /// Whether it was not done by its deadline, as far as the run's end tells.
    pub fn is_missed(&self, end_ns: i64) -> bool {
        // What ends with the run has ended, so that a job that had to be done by then is late.
        let missed =
            self.finished_ns.map_or(self.deadline_ns <= end_ns, |at| at > self.deadline_ns);
        missed && !self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_ran_after_the_deadline_is_late() {
        let job = JobRecord {
            thread: 0,
            release_ns: 0,
            deadline_ns: 10,
            started_ns: Some(4),
            finished_ns: Some(13),
            lost: false,
        };
        assert_eq!(job.late_span(99), Some((10, 13)));
        assert!(job.is_missed(99));
        let in_time = JobRecord { finished_ns: Some(10), ..job };
        assert_eq!((in_time.late_span(99), in_time.is_missed(99)), (None, false));
        // A backlog: it began when its deadline had passed.
        assert_eq!(JobRecord { started_ns: Some(12), ..job }.late_span(99), Some((12, 13)));
        let open = JobRecord { finished_ns: None, ..job };
        assert_eq!(open.late_span(20), Some((10, 20)));
        assert_eq!(
            (open.late_span(10), open.is_missed(10), open.is_missed(9)),
            (None, true, false)
        );
        let lost = JobRecord { started_ns: None, finished_ns: None, lost: true, ..job };
        assert_eq!((lost.late_span(20), lost.is_missed(20)), (None, false));
    }
}
