//! `jobs.parquet`: jobs of periodic threads, by thread.

use hourglass_trace::JobRecord;

use crate::store::error::RowFault;
use crate::store::table::read::DecodeRows;
use crate::store::table::write::EncodeRows;
use crate::store::table::{Column, ColumnType, Layout, Table};
use crate::store::table::{from_int32, known, or_null, to_int32};

const THREAD: Column = Column::required("thread", ColumnType::Int32);

const LAYOUT: Layout = Layout {
    name: "jobs",
    columns: &[
        THREAD,
        Column::required("release_ns", ColumnType::Int64),
        Column::required("deadline_ns", ColumnType::Int64),
        Column::nullable("started_ns", ColumnType::Int64),
        Column::nullable("finished_ns", ColumnType::Int64),
        Column::required("lost", ColumnType::Int32),
    ],
    sorted_by: THREAD,
};

#[derive(Default)]
pub(crate) struct Jobs {
    last_thread: u32,
}

impl Jobs {
    /// Checks that a job does not end before it starts, and that its thread is not below that of the job above it.
    fn admit(&mut self, job: &JobRecord) -> Result<(), RowFault> {
        if job.thread < self.last_thread {
            return Err(RowFault::ThreadOrder);
        }
        if job.started_ns.zip(job.finished_ns).is_some_and(|(start, end)| end < start) {
            return Err(RowFault::Reversed);
        }
        self.last_thread = job.thread;
        Ok(())
    }
}

impl Table for Jobs {
    type Row = JobRecord;
    const LAYOUT: &'static Layout = &LAYOUT;
}

impl EncodeRows<6> for Jobs {
    fn encode(&mut self, job: &JobRecord) -> Result<[i64; 6], RowFault> {
        let thread = to_int32(job.thread, RowFault::Thread)?;
        self.admit(job)?;
        let (started, finished) = (or_null(job.started_ns), or_null(job.finished_ns));
        Ok([thread, job.release_ns, job.deadline_ns, started, finished, job.lost.into()])
    }
}

impl DecodeRows<6> for Jobs {
    fn decode(&mut self, numbers: [i64; 6]) -> Result<Option<JobRecord>, RowFault> {
        let [thread, release_ns, deadline_ns, started, finished, lost] = numbers;
        let job = JobRecord {
            thread: from_int32(thread, RowFault::Thread)?,
            release_ns,
            deadline_ns,
            started_ns: known(started),
            finished_ns: known(finished),
            lost: lost != 0,
        };
        self.admit(&job)?;
        Ok(Some(job))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::partial::PartialFile;
    use crate::store::table::read::Rows;
    use crate::store::table::write::write_rows;

    fn job(thread: u32, started_ns: Option<i64>, finished_ns: Option<i64>) -> JobRecord {
        let (release_ns, deadline_ns, lost) = (-3, 7, started_ns.is_none());
        JobRecord { thread, release_ns, deadline_ns, started_ns, finished_ns, lost }
    }

    #[test]
    fn jobs_come_back_as_they_were() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::JOBS_FILE).unwrap();
        let all = [job(0, Some(-3), Some(9)), job(0, None, None), job(2, Some(0), None)];
        write_rows::<Jobs, 6>(&partial, all).unwrap();
        let rows = Rows::<Jobs, 6>::open(home.path().join(crate::store::JOBS_FILE)).unwrap();
        assert_eq!(rows.map(Result::unwrap).collect::<Vec<_>>(), all);
    }

    #[test]
    fn jobs_that_no_thread_can_have_are_refused() {
        let home = tempfile::tempdir().unwrap();
        let partial = PartialFile::create(home.path(), crate::store::JOBS_FILE).unwrap();
        let reversed = [job(0, Some(5), Some(4))];
        assert!(write_rows::<Jobs, 6>(&partial, reversed).is_err());
        let falling = [job(1, None, None), job(0, None, None)];
        assert!(write_rows::<Jobs, 6>(&partial, falling).is_err());
        // The same row as a damaged file would have it.
        assert!(Jobs::default().decode([0, 0, 0, 5, 4, 0]).is_err());
        assert!(Jobs::default().decode([-1, 0, 0, 5, 6, 0]).is_err());
    }
}
