//! Jobs of a reservation: one in every period of its grid.
//!
//! Owns: which job is under way, what is left of it, whether it was done by its deadline. Must not:
//! decide about co-runners.

use hourglass_documents::Reservation;
use hourglass_sim::slack::PendingWork;

use crate::progress::ProgressSource;

/// What is promised, and when. Times in ns, on one clock.
///
/// Invariant: 0 < reserved <= deadline <= period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JobReservation {
    reserved_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    first_ns: u64,
}

impl JobReservation {
    /// The reservation in every period from `first_ns` on: budget in single-thread time.
    #[must_use]
    pub fn new(reservation: &Reservation, first_ns: u64) -> JobReservation {
        JobReservation {
            reserved_ns: reservation.budget().nanos_or_zero(),
            period_ns: reservation.period().nanos_or_zero(),
            deadline_ns: reservation.deadline().nanos_or_zero(),
            first_ns,
        }
    }

    /// The reservation from the first period that begins after `now`.
    #[must_use]
    pub fn after(self, now: u64) -> JobReservation {
        let behind = match now.checked_sub(self.first_ns) {
            Some(since) => since / self.period_ns + 1,
            None => 0,
        };
        let first_ns = self.first_ns.saturating_add(behind.saturating_mul(self.period_ns));
        JobReservation { first_ns, ..self }
    }

    /// Single-thread time in each period.
    #[must_use]
    pub fn reserved_ns(&self) -> u64 {
        self.reserved_ns
    }

    /// Length of a period.
    #[must_use]
    pub fn period_ns(&self) -> u64 {
        self.period_ns
    }

    /// The deadline, from the begin of a period.
    #[must_use]
    pub fn deadline_ns(&self) -> u64 {
        self.deadline_ns
    }

    /// Begin of the first period.
    #[must_use]
    pub fn first_ns(&self) -> u64 {
        self.first_ns
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ElapsedJobs {
    pub(super) began: bool,
    pub(super) ended: u64,
    /// Jobs found undone at their deadline.
    pub(super) missed: u64,
    /// Jobs found resting at their deadline ([`ProgressSource::is_idle`]).
    pub(super) idle: u64,
    pub(super) skipped: u64,
}

/// Where in time the program's jobs begin, as the program reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct JobPhase {
    /// Whether any job reported its begin.
    known: bool,
    /// Whether the one under way did.
    settled: bool,
    /// Whether the one before was done in its period.
    in_time: bool,
    /// How much earlier periods were made since they were last begun with a job, ns.
    earlier_ns: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct ReservedJob {
    pub(super) reservation: JobReservation,
    /// Begin of its period; `None` before the first.
    start_ns: Option<u64>,
    next_ns: u64,
    /// The remaining part of it, single-thread time.
    pub(super) remaining_ns: u64,
    /// Whether it was counted as missed or idle.
    settled: bool,
    /// Whether its work is held for that of another reservation: then it seems to sleep.
    pub(super) held: bool,
    pub(super) ended: bool,
    /// Knowledge of where the program's jobs begin; `None` if its periods are fixed.
    phase: Option<JobPhase>,
    /// When it was first looked at without co-runners, and what was left then.
    alone: Option<(u64, u64)>,
}

impl ReservedJob {
    /// With `follows`, periods are moved to where the program's jobs begin.
    pub(super) fn new(promised: JobReservation, follows: bool) -> ReservedJob {
        ReservedJob {
            reservation: promised,
            start_ns: None,
            next_ns: promised.first_ns,
            remaining_ns: 0,
            settled: false,
            held: false,
            ended: false,
            phase: follows.then(JobPhase::default),
            alone: None,
        }
    }

    pub(super) fn advance(&mut self, now: u64, source: &mut dyn ProgressSource) -> ElapsedJobs {
        let mut advance = ElapsedJobs::default();
        self.ended = self.ended || source.has_ended();
        if self.ended {
            self.remaining_ns = 0;
            return advance;
        }
        if now >= self.next_ns {
            self.close(source, &mut advance);
            let skipped = (now - self.next_ns) / self.reservation.period_ns;
            let begun = self.next_ns + skipped * self.reservation.period_ns;
            advance.began = true;
            advance.skipped = skipped;
            self.start_ns = Some(begun);
            self.next_ns = begun.saturating_add(self.reservation.period_ns);
            self.remaining_ns = self.reservation.reserved_ns;
            self.settled = false;
            self.alone = None;
            if let Some(phase) = &mut self.phase {
                phase.settled = false;
            }
            source.begin(self.reservation.reserved_ns);
        }
        self.align(now, source);
        self.measure(source);
        if now >= self.due_ns() {
            self.settle_job(source, &mut advance);
        }
        advance
    }

    /// At the deadline, once: whether a job that is not done was missed, or wanted no more.
    fn settle_job(&mut self, source: &mut dyn ProgressSource, advance: &mut ElapsedJobs) {
        if !self.is_pending() || std::mem::replace(&mut self.settled, true) {
            return;
        }
        if !self.held && source.is_idle() {
            advance.idle += 1;
        } else {
            advance.missed += 1;
        }
    }

    /// The work slept until it could not be done any more: it counts as idle whatever comes. Whether that is new.
    pub(super) fn waive(&mut self) -> bool {
        self.is_pending() && !std::mem::replace(&mut self.settled, true)
    }

    /// The job of the period that is over.
    fn close(&mut self, source: &mut dyn ProgressSource, advance: &mut ElapsedJobs) {
        if self.start_ns.is_some() {
            self.measure(source);
            advance.ended = 1;
            if let Some(phase) = &mut self.phase {
                phase.in_time = self.remaining_ns == 0;
            }
            self.settle_job(source, advance);
        }
    }

    fn measure(&mut self, source: &mut dyn ProgressSource) {
        if self.is_pending() {
            self.remaining_ns = self.reservation.reserved_ns.saturating_sub(source.done_ns());
        }
    }

    /// Begins the period with its job where that is known to be right: the first job that tells its begin; one
    /// that begins somewhat earlier, since the one before may have been woken late; one that begins much
    /// later though the one before was done in time, since the program has a period of its own. Somewhat
    /// later is no reason, not even for the first: that is how wake-ups are.
    fn align(&mut self, now: u64, source: &mut dyn ProgressSource) {
        let period = self.reservation.period_ns;
        let (Some(phase), Some(begun)) = (&mut self.phase, self.start_ns) else { return };
        if phase.settled {
            return;
        }
        let Some(reported_ns) = source.begun_ns() else { return };
        if reported_ns > now || reported_ns.saturating_add(period) <= now {
            return;
        }
        phase.settled = true;
        let (early, late) = (begun.saturating_sub(reported_ns), reported_ns.saturating_sub(begun));
        let within = phase.earlier_ns.saturating_add(early) <= period / 4;
        let earlier = early > 0 && (within || !phase.known);
        let later =
            if phase.known { late > period / 4 && phase.in_time } else { late > period / 8 };
        let first = !std::mem::replace(&mut phase.known, true);
        if earlier || later {
            phase.earlier_ns = if first || later { 0 } else { phase.earlier_ns + early };
            if late > 0 {
                source.restart();
            }
            self.start_ns = Some(reported_ns);
            self.next_ns = reported_ns.saturating_add(period);
        }
    }

    pub(super) fn is_pending(&self) -> bool {
        self.start_ns.is_some() && self.remaining_ns > 0
    }

    /// Single-thread time that is left of it.
    /// When the job must be done; of one that has not begun, that of the first.
    pub(super) fn due_ns(&self) -> u64 {
        self.start_ns
            .unwrap_or(self.reservation.first_ns)
            .saturating_add(self.reservation.deadline_ns)
    }

    /// Begin of the next period; of one that has ended, never.
    pub(super) fn next_ns(&self) -> u64 {
        if self.ended { u64::MAX } else { self.next_ns }
    }

    /// What is to be done next of the reservation: this job, or the next one where it is done, or wants nothing
    /// (`rests`). Each job costs `extra` more.
    pub(super) fn pending(&self, extra: u64, rests: bool) -> PendingWork {
        if self.is_pending() && !rests {
            PendingWork {
                deadline: self.due_ns(),
                remaining: self.remaining_ns.saturating_add(extra),
            }
        } else {
            let deadline = self.next_ns.saturating_add(self.reservation.deadline_ns);
            PendingWork { deadline, remaining: self.reservation.reserved_ns.saturating_add(extra) }
        }
    }

    /// How long it takes to be done without co-runners, going by its progress since they stopped: a job
    /// that needs less than is reserved is done earlier. At most what is left.
    pub(super) fn alone_for_ns(&mut self, now: u64) -> u64 {
        let (since, left) = *self.alone.get_or_insert((now, self.remaining_ns));
        let (passed, done) = (now.saturating_sub(since), left.saturating_sub(self.remaining_ns));
        if passed == 0 || done == 0 {
            return self.remaining_ns / 4;
        }
        let wait = u128::from(self.remaining_ns) * u128::from(passed) / u128::from(done);
        u64::try_from(wait).unwrap_or(u64::MAX).min(self.remaining_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Jobs as a program tells them: when the one under way began, and whether it is done.
    #[derive(Default)]
    struct ScriptedProgress {
        begun: Option<u64>,
        done: bool,
        rests: bool,
        reserved: u64,
    }

    impl ProgressSource for ScriptedProgress {
        fn name(&self) -> &'static str {
            "word"
        }

        fn begin(&mut self, reserved_ns: u64) {
            self.reserved = reserved_ns;
        }

        fn done_ns(&mut self) -> u64 {
            if self.done { self.reserved } else { 0 }
        }

        fn begun_ns(&mut self) -> Option<u64> {
            self.begun
        }

        fn is_idle(&mut self) -> bool {
            self.rests
        }
    }

    fn job(follows: bool) -> ReservedJob {
        let promised =
            JobReservation { reserved_ns: 20, period_ns: 100, deadline_ns: 90, first_ns: 1_000 };
        ReservedJob::new(promised, follows)
    }

    #[test]
    fn periods_come_from_the_grid_and_skipped_ones_are_counted() {
        let (mut job, mut progress) =
            (job(false), ScriptedProgress { begun: Some(1_030), ..ScriptedProgress::default() });
        assert_eq!(job.advance(999, &mut progress), ElapsedJobs::default());
        let begins = ElapsedJobs { began: true, ..ElapsedJobs::default() };
        assert_eq!(job.advance(1_000, &mut progress), begins);
        assert_eq!((job.due_ns(), job.next_ns(), job.remaining_ns), (1_090, 1_100, 20));
        assert_eq!(job.advance(1_090, &mut progress).missed, 1);
        assert_eq!(job.advance(1_095, &mut progress).missed, 0, "counted once");
        let skips = ElapsedJobs { began: true, ended: 1, skipped: 2, ..ElapsedJobs::default() };
        assert_eq!(job.advance(1_350, &mut progress), skips);
        assert_eq!((job.due_ns(), job.next_ns()), (1_390, 1_400));
        progress.done = true;
        assert_eq!(
            job.advance(1_400, &mut progress),
            ElapsedJobs { began: true, ended: 1, ..begins }
        );
    }

    /// The bug: work that wanted nothing, and reported nothing, missed each of its deadlines.
    #[test]
    fn a_job_that_wants_nothing_is_not_missed() {
        let (mut job, mut progress) =
            (job(false), ScriptedProgress { rests: true, ..ScriptedProgress::default() });
        job.advance(1_000, &mut progress);
        let idle = ElapsedJobs { idle: 1, ..ElapsedJobs::default() };
        assert_eq!(job.advance(1_090, &mut progress), idle);
        // Counted once, and as what it was at its deadline.
        progress.rests = false;
        let next = ElapsedJobs { began: true, ended: 1, ..ElapsedJobs::default() };
        assert_eq!(job.advance(1_100, &mut progress), next);
        // Also without a check at the deadline itself.
        progress.rests = true;
        assert_eq!(job.advance(1_200, &mut progress), ElapsedJobs { idle: 1, ..next });
        progress.rests = false;
        assert_eq!(job.advance(1_300, &mut progress), ElapsedJobs { missed: 1, ..next });
    }

    #[test]
    fn periods_follow_the_jobs() {
        let (mut job, mut progress) = (job(true), ScriptedProgress::default());
        job.advance(1_000, &mut progress);
        assert_eq!(job.due_ns(), 1_090, "nothing told yet");
        // The first job began at 1,070: so does its period.
        progress.begun = Some(1_070);
        job.advance(1_080, &mut progress);
        assert_eq!((job.due_ns(), job.next_ns()), (1_160, 1_170));
        // The next one somewhat later: woken late. And one somewhat earlier.
        let mut next = |job: &mut ReservedJob, begun: u64, done: bool| {
            (progress.begun, progress.done) = (None, done);
            job.advance(job.next_ns(), &mut progress);
            (progress.begun, progress.done) = (Some(begun), false);
            job.advance(job.next_ns() - 95, &mut progress);
            (job.due_ns(), job.next_ns())
        };
        assert_eq!(next(&mut job, 1_175, true), (1_260, 1_270));
        assert_eq!(next(&mut job, 1_265, true), (1_355, 1_365));
        // A program that runs ahead does not get more than a quarter of a period in all.
        assert_eq!(next(&mut job, 1_345, true), (1_435, 1_445));
        assert_eq!(next(&mut job, 1_425, true), (1_535, 1_545));
    }

    #[test]
    fn a_first_job_that_is_woken_late_keeps_the_grid() {
        for (begun, due) in [(1_012, 1_090), (1_013, 1_103), (990, 1_080)] {
            let (mut job, mut progress) =
                (job(true), ScriptedProgress { begun: Some(begun), ..ScriptedProgress::default() });
            job.advance(1_000, &mut progress);
            job.advance(1_020, &mut progress);
            assert_eq!(job.due_ns(), due, "begun at {begun}");
        }
    }

    /// Late after a job that was late itself: the program makes up for it, and the grid stays.
    #[test]
    fn an_overrun_does_not_move_the_periods() {
        for (done, due) in [(false, 1_190), (true, 1_225)] {
            let (mut job, mut progress) =
                (job(true), ScriptedProgress { begun: Some(1_000), ..ScriptedProgress::default() });
            job.advance(1_000, &mut progress);
            (progress.begun, progress.done) = (None, done);
            job.advance(1_100, &mut progress);
            (progress.begun, progress.done) = (Some(1_135), false);
            job.advance(1_140, &mut progress);
            assert_eq!(job.due_ns(), due, "done: {done}");
        }
    }
}
