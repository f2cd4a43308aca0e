//! Jobs of a reservation: one in every period of its grid.
//!
//! Owns: which job is under way, what is left of it, whether it was done by its deadline. Must not:
//! decide about co-runners.

use hourglass_model::Reservation;
use hourglass_sched::slack::Pending;

use crate::progress::ProgressSource;

/// What is promised, and when. Times in ns, on one clock.
///
/// Invariant: 0 < reserved <= deadline <= period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promised {
    reserved_ns: u64,
    period_ns: u64,
    deadline_ns: u64,
    first_ns: u64,
}

impl Promised {
    /// The reservation in every period from `first_ns` on: budget in single-thread time.
    #[must_use]
    pub fn new(reservation: &Reservation, first_ns: u64) -> Promised {
        Promised {
            reserved_ns: reservation.budget().nanos_or_zero(),
            period_ns: reservation.period().nanos_or_zero(),
            deadline_ns: reservation.deadline().nanos_or_zero(),
            first_ns,
        }
    }

    /// The same from the first period that begins after `now`.
    #[must_use]
    pub fn after(self, now: u64) -> Promised {
        let behind = match now.checked_sub(self.first_ns) {
            Some(since) => since / self.period_ns + 1,
            None => 0,
        };
        let first_ns = self.first_ns.saturating_add(behind.saturating_mul(self.period_ns));
        Promised { first_ns, ..self }
    }

    /// Single-thread time in each period.
    #[must_use]
    pub fn reserved_ns(&self) -> u64 {
        self.reserved_ns
    }

    /// The period.
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

/// What an advance of time brought.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Advance {
    /// Whether a period began.
    pub(super) began: bool,
    /// Jobs whose period is over.
    pub(super) ended: u64,
    /// Jobs found undone at their deadline.
    pub(super) missed: u64,
    /// Whole periods that nobody looked at.
    pub(super) skipped: u64,
}

/// The job under way.
#[derive(Clone, Copy, Debug)]
pub(super) struct Job {
    pub(super) promised: Promised,
    /// Begin of its period; `None` before the first.
    begun_ns: Option<u64>,
    /// Begin of the next period.
    next_ns: u64,
    /// What is left of it, single-thread time.
    left_ns: u64,
    /// Whether it was counted as missed.
    missed: bool,
    /// When it was first looked at without co-runners, and what was left then.
    alone: Option<(u64, u64)>,
}

impl Job {
    pub(super) fn new(promised: Promised) -> Job {
        Job {
            promised,
            begun_ns: None,
            next_ns: promised.first_ns,
            left_ns: 0,
            missed: false,
            alone: None,
        }
    }

    /// Brings it to `now`.
    pub(super) fn advance<P: ProgressSource>(&mut self, now: u64, source: &mut P) -> Advance {
        let mut advance = Advance::default();
        if now >= self.next_ns {
            self.close(source, &mut advance);
            let skipped = (now - self.next_ns) / self.promised.period_ns;
            let begun = self.next_ns + skipped * self.promised.period_ns;
            advance.began = true;
            advance.skipped = skipped;
            self.begun_ns = Some(begun);
            self.next_ns = begun.saturating_add(self.promised.period_ns);
            self.left_ns = self.promised.reserved_ns;
            self.missed = false;
            self.alone = None;
            source.begin(self.promised.reserved_ns);
        }
        self.measure(source);
        if self.is_pending() && !self.missed && now >= self.due_ns() {
            self.missed = true;
            advance.missed += 1;
        }
        advance
    }

    /// The job of the period that is over.
    fn close<P: ProgressSource>(&mut self, source: &mut P, advance: &mut Advance) {
        if self.begun_ns.is_some() {
            self.measure(source);
            advance.ended = 1;
            if self.is_pending() && !self.missed {
                advance.missed = 1;
            }
        }
    }

    fn measure<P: ProgressSource>(&mut self, source: &mut P) {
        if self.is_pending() {
            self.left_ns = self.promised.reserved_ns.saturating_sub(source.done_ns());
        }
    }

    /// Whether something is left to do.
    pub(super) fn is_pending(&self) -> bool {
        self.begun_ns.is_some() && self.left_ns > 0
    }

    /// Single-thread time that is left of it.
    pub(super) fn left_ns(&self) -> u64 {
        self.left_ns
    }

    /// When the job must be done; of one that has not begun, that of the first.
    pub(super) fn due_ns(&self) -> u64 {
        self.begun_ns.unwrap_or(self.promised.first_ns).saturating_add(self.promised.deadline_ns)
    }

    /// Begin of the next period.
    pub(super) fn next_ns(&self) -> u64 {
        self.next_ns
    }

    /// What is to be done next of the reservation: this job, or the next one where it is done. Each
    /// job costs `extra` more.
    pub(super) fn pending(&self, extra: u64) -> Pending {
        if self.is_pending() {
            Pending { deadline: self.due_ns(), left: self.left_ns.saturating_add(extra) }
        } else {
            let deadline = self.next_ns.saturating_add(self.promised.deadline_ns);
            Pending { deadline, left: self.promised.reserved_ns.saturating_add(extra) }
        }
    }

    /// How long it takes to be done without co-runners, going by its progress since they stopped: a job
    /// that needs less than is reserved is done earlier. At most what is left.
    pub(super) fn alone_for_ns(&mut self, now: u64) -> u64 {
        let (since, left) = *self.alone.get_or_insert((now, self.left_ns));
        let (passed, done) = (now.saturating_sub(since), left.saturating_sub(self.left_ns));
        if passed == 0 || done == 0 {
            return self.left_ns / 4;
        }
        let wait = u128::from(self.left_ns) * u128::from(passed) / u128::from(done);
        u64::try_from(wait).unwrap_or(u64::MAX).min(self.left_ns)
    }
}
