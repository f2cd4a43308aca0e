//! What a program calls to tell how far it is (Inoue et al., section 4.2: the program reports its
//! progress by itself).
//!
//! Owns: writing the word. Must not: enter the kernel, wait, read a clock but when a job begins.

use std::sync::atomic::Ordering;

use hourglass_sys::clock::{ClockId, now_ns};

use super::page::{BEGUN, DONE, JOB, PageError, ProgressPage, TOTAL};

/// Tells progress, for less than a nanosecond a call.
///
/// ```
/// use hourglass_reserve::progress::Progress;
///
/// let mut progress = Progress::open()?; // the page of `hourglass reserve`, or one of its own
/// for _job in 0..3 {
///     progress.begin();
///     for row in 0..200 {
///         // ... a row of the work ...
///         progress.report(row + 1, 200);
///     }
/// }
/// # Ok::<(), hourglass_reserve::progress::page::PageError>(())
/// ```
#[derive(Debug)]
pub struct Progress {
    page: ProgressPage,
    job: u64,
    /// Whether the job is done, so that the next report begins another.
    finished: bool,
    /// The whole of the job as the page has it; 0 where it must be written, or a job begun.
    total: u64,
}

impl Progress {
    /// On the page that was handed down ([`ProgressPage::handed_down`]); without one, on a page of its own, which
    /// [`ProgressPage::of_process`] finds.
    ///
    /// # Errors
    /// A variable that names no page; no memory.
    pub fn open() -> Result<Progress, PageError> {
        let page = match ProgressPage::handed_down()? {
            Some(page) => page,
            None => ProgressPage::create()?,
        };
        page.count_opened();
        Ok(Progress::on(page))
    }

    /// Writes progress to this page, beginning with a new job.
    #[must_use]
    pub fn on(page: ProgressPage) -> Progress {
        let job = page.load(JOB).div_ceil(2);
        Progress { page, job, finished: true, total: 0 }
    }

    /// A job begins: nothing of it is done. The job before is over, whatever was reported of it. Costs a reading of the
    /// clock, some 20 ns.
    #[cold]
    pub fn begin(&mut self) {
        self.finished = false;
        self.total = 0;
        self.job = self.job.wrapping_add(1);
        if let Some(words) = self.page.words() {
            // Odd while neither the old nor the new progress is meant. A program that may write the page can have left any
            // number there.
            let begun = self.job.wrapping_mul(2);
            words[JOB].store(begun.wrapping_sub(1), Ordering::Relaxed);
            words[DONE].store(0, Ordering::Release);
            words[BEGUN].store(now_ns(ClockId::Monotonic), Ordering::Release);
            words[JOB].store(begun, Ordering::Release);
        }
    }

    /// `done` of `total` is done, in any unit in which equal steps take equal times; `total` itself means that the job
    /// is done, and MUST be reported for every job, or the next one announced by [`Progress::begin`]. `total` may
    /// change within a job; `done` must not fall. After the end, the next report begins a job. A `total` of 0 says
    /// nothing, and changes nothing.
    #[inline]
    pub fn report(&mut self, done: u64, total: u64) {
        // Within a job, which is nearly always, one store.
        if total == self.total
            && done < total
            && let Some(words) = self.page.words()
        {
            words[DONE].store(done, Ordering::Release);
        } else {
            self.turn(done, total);
        }
    }

    /// A report with which a job begins, ends or changes.
    #[cold]
    fn turn(&mut self, done: u64, total: u64) {
        if total == 0 {
            return;
        }
        if self.finished {
            self.begin();
        }
        if let Some(words) = self.page.words() {
            words[TOTAL].store(total, Ordering::Relaxed);
            words[DONE].store(done, Ordering::Release);
        }
        self.finished = done >= total;
        self.total = if self.finished { 0 } else { total };
    }

    /// The number of the last job, 0 before the first.
    #[must_use]
    pub fn job(&self) -> u64 {
        self.job
    }

    /// The page that it writes.
    #[must_use]
    pub fn page(&self) -> &ProgressPage {
        &self.page
    }

    /// Begin of the first period after `now` (ns of `CLOCK_MONOTONIC`), on the grid that the monitor watches; `None`
    /// where it set no grid.
    #[must_use]
    pub fn next_release_ns(&self, now: u64) -> Option<u64> {
        let (first, period) = self.page.grid()?;
        let behind =
            now.checked_sub(first).map_or(Some(0), |since| (since / period).checked_add(1))?;
        first.checked_add(behind.checked_mul(period)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(progress: &Progress) -> (u64, u64, u64) {
        let page = progress.page();
        (page.load(JOB), page.load(DONE), page.load(TOTAL))
    }

    #[test]
    fn a_job_that_is_done_is_followed_by_the_next() {
        let mut progress = Progress::on(ProgressPage::create().unwrap());
        assert_eq!(words(&progress), (0, 0, 0));
        progress.report(3, 10);
        assert_eq!(words(&progress), (2, 3, 10));
        progress.report(10, 10);
        assert_eq!(words(&progress), (2, 10, 10));
        progress.report(1, 10);
        assert_eq!(words(&progress), (4, 1, 10));
        progress.report(0, 0);
        assert_eq!(words(&progress), (4, 1, 10));
        progress.report(2, 20);
        assert_eq!(words(&progress), (4, 2, 20));
        progress.begin();
        assert_eq!(words(&progress), (6, 0, 20));
        let other = ProgressPage::open(&progress.page().path()).unwrap();
        let mut taken_over = Progress::on(other);
        taken_over.report(1, 2);
        assert_eq!(words(&progress), (8, 1, 2));
    }

    /// The bug: 0 of 0 ended a job, and the next report counted as another one's.
    #[test]
    fn no_total_is_no_statement() {
        let mut progress = Progress::on(ProgressPage::create().unwrap());
        progress.report(0, 0);
        assert_eq!((words(&progress), progress.job()), ((0, 0, 0), 0));
        progress.report(3, 10);
        progress.report(7, 0);
        assert_eq!(words(&progress), (2, 3, 10));
        progress.report(4, 10);
        assert_eq!((words(&progress), progress.job()), ((2, 4, 10), 1));
    }

    #[test]
    fn releases_are_on_the_grid() {
        let progress = Progress::on(ProgressPage::create().unwrap());
        assert_eq!(progress.next_release_ns(0), None);
        progress.page().set_grid(100, 70);
        for (now, next) in [(0, 100), (99, 100), (100, 170), (169, 170), (170, 240)] {
            assert_eq!(progress.next_release_ns(now), Some(next), "at {now}");
        }
    }
}
