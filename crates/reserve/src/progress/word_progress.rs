//! Progress by the word that the program writes.
//!
//! Owns: which job the word tells of, and how much of it may be believed. Must not: believe more than
//! was written.

use std::sync::atomic::Ordering;

use super::page::{BEGUN, DONE, JOB, ProgressPage, TOTAL};
use super::{ProgressErrors, ProgressSource};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct WordReading {
    /// The job's number; 0 before the first.
    job: u64,
    done: u64,
    total: u64,
    begun: u64,
}

/// Reads the word of one page.
///
/// Each period takes the job that no period before it had: the one under way if it is new, or else the
/// next to begin, of which nothing is done yet. A job with a later number means that this one is over.
/// Of a job whose word fell, nothing counts from then on.
#[derive(Debug)]
pub struct WordProgress {
    page: ProgressPage,
    reserved_ns: u64,
    /// The job of this period; 0 before the first period.
    job: u64,
    /// The most that was seen done of it.
    max_done: u64,
    went_backwards: bool,
    moved: bool,
    doubts: ProgressErrors,
}

impl WordProgress {
    /// Of this page.
    #[must_use]
    pub fn new(page: ProgressPage) -> WordProgress {
        WordProgress {
            page,
            reserved_ns: 0,
            job: 0,
            max_done: 0,
            went_backwards: false,
            moved: false,
            doubts: ProgressErrors::default(),
        }
    }

    /// The page that it reads.
    #[must_use]
    pub fn page(&self) -> &ProgressPage {
        &self.page
    }

    fn see(&self) -> WordReading {
        let nothing = |job| WordReading { job, done: 0, total: 0, begun: 0 };
        let Some(words) = self.page.words() else { return nothing(0) };
        let before = words[JOB].load(Ordering::Acquire);
        let done = words[DONE].load(Ordering::Acquire);
        let total = words[TOTAL].load(Ordering::Acquire);
        let begun = words[BEGUN].load(Ordering::Acquire);
        let after = words[JOB].load(Ordering::Acquire);
        let job = after.div_ceil(2);
        if before == after && after % 2 == 0 {
            WordReading { job, done, total, begun }
        } else {
            nothing(job)
        }
    }

    fn end_job(&mut self) {
        if self.job == 0 {
            return;
        }
        if self.went_backwards {
            self.doubts.backwards += 1;
        } else if !self.moved {
            self.doubts.unmoved += 1;
        }
    }
}

impl ProgressSource for WordProgress {
    fn name(&self) -> &'static str {
        "word"
    }

    fn begin(&mut self, reserved_ns: u64) {
        self.end_job();
        let seen = self.see();
        self.job = if seen.job > self.job { seen.job } else { seen.job + 1 };
        self.reserved_ns = reserved_ns;
        (self.max_done, self.went_backwards, self.moved) = (0, false, false);
    }

    fn done_ns(&mut self) -> u64 {
        let WordReading { job, done, total, .. } = self.see();
        if job != self.job {
            let over = job > self.job;
            self.moved |= over;
            return if over && !self.went_backwards { self.reserved_ns } else { 0 };
        }
        self.moved |= done > 0;
        self.went_backwards |= done < self.max_done;
        self.max_done = self.max_done.max(done);
        if self.went_backwards || total == 0 {
            return 0;
        }
        let share = u128::from(self.reserved_ns) * u128::from(done.min(total)) / u128::from(total);
        // No more than what is reserved.
        u64::try_from(share).unwrap_or(0)
    }

    fn begun_ns(&mut self) -> Option<u64> {
        let seen = self.see();
        (seen.job == self.job && seen.begun > 0).then_some(seen.begun)
    }

    fn is_silent(&mut self) -> bool {
        let seen = self.see();
        !self.moved && (seen.job < self.job || (seen.job == self.job && seen.begun == 0))
    }

    fn errors(&self) -> ProgressErrors {
        self.doubts
    }
}

#[cfg(test)]
mod tests {
    use std::cmp::Ordering::{Equal, Greater, Less};
    use std::sync::Arc;
    use std::sync::atomic::AtomicU64;

    use super::*;
    use crate::progress::Progress;

    fn pair() -> (Progress, WordProgress) {
        let progress = Progress::on(ProgressPage::create().unwrap());
        let word = WordProgress::new(ProgressPage::open(&progress.page().path()).unwrap());
        (progress, word)
    }

    #[test]
    fn progress_is_the_share_of_what_is_reserved() {
        let (mut progress, mut word) = pair();
        word.begin(1_000);
        assert_eq!(word.done_ns(), 0);
        for (done, total, wanted) in [(1, 3, 333), (2, 3, 666), (20, 300, 66), (300, 300, 1_000)] {
            progress.report(done, total);
            assert_eq!(word.done_ns(), wanted);
        }
        assert_eq!(word.errors(), ProgressErrors::default());
        progress.begin();
        progress.report(u64::MAX - 1, u64::MAX);
        word.begin(u64::MAX);
        assert_eq!(word.done_ns(), u64::MAX - 1);
    }

    /// Progress of the last job does not count in the next period.
    #[test]
    fn a_job_that_has_not_begun_has_no_progress() {
        let (mut progress, mut word) = pair();
        word.begin(100);
        progress.report(5, 5);
        assert_eq!(word.done_ns(), 100);
        word.begin(100);
        assert_eq!(word.done_ns(), 0, "still the last job");
        progress.begin();
        assert_eq!(word.done_ns(), 0);
        progress.report(1, 5);
        assert_eq!(word.done_ns(), 20);
        // Begun before the period: it is this period's all the same.
        progress.begin();
        progress.report(2, 5);
        word.begin(100);
        assert_eq!(word.done_ns(), 40);
    }

    #[test]
    fn the_begin_is_that_of_the_job_that_counts() {
        use hourglass_sys::clock::{ClockId, now_ns};
        let (mut progress, mut word) = pair();
        word.begin(100);
        assert_eq!(word.begun_ns(), None);
        let before = now_ns(ClockId::Monotonic);
        progress.begin();
        let begun = word.begun_ns().unwrap();
        assert!((before..=now_ns(ClockId::Monotonic)).contains(&begun));
        word.begin(100);
        assert_eq!(word.begun_ns(), None, "that was the job of the period before");
        progress.begin();
        assert!(word.begun_ns().unwrap() >= begun);
    }

    /// An overrun takes nothing from the next job.
    #[test]
    fn a_late_job_is_not_taken_for_the_next() {
        let (mut progress, mut word) = pair();
        word.begin(100);
        progress.report(2, 5);
        word.begin(100);
        progress.report(4, 5);
        assert_eq!(word.done_ns(), 0);
        progress.report(5, 5);
        assert_eq!(word.done_ns(), 0);
        progress.report(1, 5);
        assert_eq!(word.done_ns(), 20);
        progress.begin();
        assert_eq!(word.done_ns(), 100, "a later job has begun");
    }

    #[test]
    fn a_word_that_falls_or_rests_counts_as_no_progress_and_is_reported() {
        let (mut progress, mut word) = pair();
        word.begin(100);
        progress.report(3, 5);
        assert_eq!(word.done_ns(), 60);
        progress.report(2, 5);
        assert_eq!(word.done_ns(), 0);
        progress.report(5, 5);
        assert_eq!(word.done_ns(), 0, "not even its end is believed");
        word.begin(100);
        assert_eq!(word.errors(), ProgressErrors { backwards: 1, unmoved: 0 });
        progress.begin();
        assert_eq!(word.done_ns(), 0);
        word.begin(100);
        assert_eq!(word.errors(), ProgressErrors { backwards: 1, unmoved: 1 });
    }

    /// A program that began a job has reported it, even if nothing of it is done.
    #[test]
    fn a_program_that_tells_nothing_is_silent() {
        let (mut progress, mut word) = pair();
        word.begin(100);
        assert!(word.is_silent());
        progress.begin();
        assert!(!word.is_silent());
        progress.report(5, 5);
        assert_eq!(word.done_ns(), 100);
        assert!(!word.is_silent());
        word.begin(100);
        assert!(word.is_silent(), "that was the job before");
    }

    /// A writer and a reader at full speed: the reader never sees more than was reported, nor a step backwards.
    #[test]
    fn nothing_is_seen_that_was_not_reported() {
        const JOBS: u64 = 2_000;
        let (mut progress, mut word) = pair();
        // The next job and thousandths to be reported: written before each report, read after each look.
        let reported = Arc::new(AtomicU64::new(0));
        let telling = Arc::clone(&reported);
        let writer = std::thread::spawn(move || {
            for job in 1..=JOBS {
                telling.store(job * 10_000, Ordering::SeqCst);
                progress.begin();
                let total = 10 + job % 7;
                for done in 1..=total {
                    // A guess of the whole that turns out too large.
                    let whole = if done < total { total * 4 } else { total };
                    telling.store(job * 10_000 + done * 1_000 / whole, Ordering::SeqCst);
                    progress.report(done, whole);
                }
            }
        });
        let mut last = 0;
        while !writer.is_finished() {
            word.begin(1_000);
            if word.job > JOBS {
                break;
            }
            assert!(word.job >= last);
            last = word.job;
            let done = word.done_ns();
            let reported = reported.load(Ordering::SeqCst);
            let most = match (reported / 10_000).cmp(&word.job) {
                Less => 0,
                Equal => reported % 10_000,
                Greater => 1_000,
            };
            assert!(done <= most, "{done} of job {} where {reported} was told", word.job);
        }
        writer.join().unwrap();
        assert_eq!(word.errors().backwards, 0);
    }
}
