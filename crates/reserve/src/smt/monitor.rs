//! The monitor of slack time (Inoue et al., CPU Resource Reservation for SMT, 2006, section 3), as a
//! machine over time values.
//!
//! Owns: when to look next, and whether co-runners may run until then. Must not: read a clock, stop a process, know a
//! formula (those are `sched`'s).

use hourglass_documents::named_enum;
pub use hourglass_sim::slack::SlackCheck;
use hourglass_sim::slack::{
    self, Decision, PendingWork, ProgressRate, SlackError, SlackReservation,
};

use crate::progress::{ProgressErrors, ProgressSource};

pub(super) use super::decision::{CoRunnerLevel, MonitorDecision, ReservationSet};
pub use super::decision::{JobCounts, MonitorStatistics};
use super::jobs::{JobReservation, ReservedJob};

named_enum! {
    /// What is done about co-runners while reserved work is pending (section 4.2), as the document and `--smt` name it.
    #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
    pub enum SiblingPolicy {
        /// They run as long as there is slack.
        #[default]
        Monitor => "monitor",
        /// They never run beside reserved work that wants the processor.
        Disable => "disable",
        /// Nothing; jobs are watched only.
        Ignore => "ignore",
    }
}

/// How slack is watched. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MonitorSettings {
    /// What is done about co-runners.
    pub policy: SiblingPolicy,
    /// When slack is looked at.
    pub checks: SlackCheck,
    /// The proven least rate of progress beside co-runners; [`ProgressRate::ZERO`] without proof.
    pub alpha: ProgressRate,
    /// Slack that is kept back for stopping co-runners and for the lateness of timers.
    pub margin_ns: u64,
    /// The part of the margin that stopping takes, as far as is known; the margin grows with it
    /// (`Monitor::stopped_in`).
    pub stop_ns: u64,
    /// Co-runners are stopped rather than looked at after less than this.
    pub smallest_ns: u64,
    /// Co-runners are slowed if the slack beyond the margin is at most this, ns; `None` for stoppers that can only
    /// stop.
    pub slow_ns: Option<u64>,
}

impl MonitorSettings {
    /// The smallest interval of the paper, section 4.2.
    pub const SMALLEST_NS: u64 = 10_000;
}

impl Default for MonitorSettings {
    /// Variable checks, nothing proven, the paper's smallest interval; the margin is to be measured.
    fn default() -> MonitorSettings {
        MonitorSettings {
            policy: SiblingPolicy::Monitor,
            checks: SlackCheck::Variable,
            alpha: ProgressRate::ZERO,
            margin_ns: 0,
            stop_ns: 0,
            smallest_ns: MonitorSettings::SMALLEST_NS,
            slow_ns: None,
        }
    }
}

/// Reservations that cannot be watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MonitorError {
    /// None is given.
    #[error("no reservation to watch")]
    Nothing,
    /// Checks every 0 ns.
    #[error("the interval of checks must be above zero")]
    Interval,
    /// More is reserved on one physical core than it has.
    #[error(
        "the reservations on one physical core, which never run at the same time, are more than the core; reserve less, or put one of them on another core"
    )]
    Overbooked,
    /// The periods have no common multiple that is near enough to look ahead to.
    #[error(
        "the periods of the reservations on one physical core have too few common multiples; choose rounder ones"
    )]
    Incommensurable,
}

/// Less slack than any margin.
const NO_SLACK: i128 = i64::MIN as i128;

/// Work that sleeps is looked at again after this part of its period.
pub(crate) const REST_PART: u64 = 100;

/// Looks at a reservation that looking ahead may take: some tens of microseconds.
const LOOKS: u64 = 50_000;

/// What a job of several costs more, because the next one waits for a look.
fn switch_ns(jobs: usize, floor_ns: u64, margin_ns: u64) -> u64 {
    if jobs > 1 { floor_ns.saturating_add(margin_ns) } else { 0 }
}

/// Whether these can be watched together, and whether each leaves the margin ([`Monitor::is_covered`]). Nothing is
/// watched.
pub(crate) fn check(
    settings: MonitorSettings,
    promised: &[JobReservation],
) -> Result<bool, MonitorError> {
    let idle = |promised: &JobReservation| (*promised, Box::new(NullProgress) as _);
    Monitor::new(settings, promised.iter().map(idle).collect()).map(|monitor| monitor.is_covered())
}

pub(super) struct NullProgress;

impl ProgressSource for NullProgress {
    fn name(&self) -> &'static str {
        "none"
    }

    fn begin(&mut self, _: u64) {}

    fn done_ns(&mut self) -> u64 {
        0
    }
}

pub(super) struct Monitor {
    pub(super) settings: MonitorSettings,
    jobs: Vec<ReservedJob>,
    sources: Vec<Box<dyn ProgressSource>>,
    /// Jobs, missed and idle of each.
    counts: Vec<(u64, u64, u64)>,
    /// Whose work may run since the last look, and who rests.
    last: (Option<usize>, ReservationSet),
    /// What each job costs more than is reserved, because the next one waits for a look.
    switch_ns: u64,
    /// Looks for the end of a job come no closer together than this.
    floor_ns: u64,
    /// Co-runners were stopped and stay so until nothing is pending or a period begins.
    latched: bool,
    /// When the next look is due; at first the begin of the first period.
    pub(super) next_ns: u64,
    /// For looking ahead, kept so that a look allocates little.
    ahead: Vec<slack::Reservation>,
    pub(super) statistics: MonitorStatistics,
}

impl Monitor {
    /// Watches these reservations. Periods begin as promised; of one reservation alone, with the jobs of
    /// the program where it tells them ([`ProgressSource::begun_ns`]). All times will be of the clock of [`JobReservation::first_ns`].
    pub(super) fn new(
        settings: MonitorSettings,
        watched: Vec<(JobReservation, Box<dyn ProgressSource>)>,
    ) -> Result<Monitor, MonitorError> {
        if settings.checks == SlackCheck::Fixed(0) {
            return Err(MonitorError::Interval);
        }
        let (promised, sources): (Vec<JobReservation>, Vec<_>) = watched.into_iter().unzip();
        let shortest =
            promised.iter().map(JobReservation::period_ns).min().ok_or(MonitorError::Nothing)?;
        // Of several, work is held, and so begins when it may.
        let follows = promised.len() == 1;
        let jobs: Vec<ReservedJob> =
            promised.into_iter().map(|promised| ReservedJob::new(promised, follows)).collect();
        let floor_ns = settings.smallest_ns.max(shortest / 1_000).max(1);
        let mut monitor = Monitor {
            settings,
            switch_ns: switch_ns(jobs.len(), floor_ns, settings.margin_ns),
            floor_ns,
            latched: false,
            next_ns: jobs.iter().map(ReservedJob::next_ns).min().unwrap_or(0),
            ahead: Vec::with_capacity(jobs.len()),
            counts: vec![(0, 0, 0); jobs.len()],
            last: (None, ReservationSet::default()),
            jobs,
            sources,
            statistics: MonitorStatistics::default(),
        };
        match monitor.slack_ahead(0, ReservationSet::default()) {
            Ok(_) => Ok(monitor),
            Err(SlackError::Overbooked) => Err(MonitorError::Overbooked),
            Err(_) => Err(MonitorError::Incommensurable),
        }
    }

    /// Whether the guarantees hold if progress is reported correctly: each job leaves the margin when it begins, also
    /// where all begin at once. Otherwise co-runners may already have taken too much at the first look.
    pub(super) fn is_covered(&self) -> bool {
        if self.settings.policy == SiblingPolicy::Ignore {
            return false;
        }
        let begun: Vec<slack::Reservation> =
            self.jobs.iter().map(|job| self.slack_reservation(job)).collect();
        let slack = match begun.as_slice() {
            [one] => Ok(Some(one.pending.slack(0))),
            all => slack::slack_ahead(0, all, LOOKS),
        };
        matches!(slack, Ok(Some(slack)) if slack >= i128::from(self.settings.margin_ns))
    }

    /// The reservation, with a job that begins at 0.
    fn slack_reservation(&self, job: &ReservedJob) -> slack::Reservation {
        let cost = job.reservation.reserved_ns().saturating_add(self.switch_ns);
        let pending = PendingWork { deadline: job.reservation.deadline_ns(), remaining: cost };
        slack::Reservation { pending, cost, period: job.reservation.period_ns() }
    }

    pub(super) fn job_counts(&self) -> impl Iterator<Item = JobCounts> {
        self.sources.iter().zip(&self.counts).map(|(source, (jobs, missed, idle))| JobCounts {
            jobs: *jobs,
            missed: *missed,
            idle: *idle,
            progress: source.name(),
            progress_errors: source.errors(),
        })
    }

    pub(super) fn doubts(&self) -> ProgressErrors {
        self.sources.iter().map(|source| source.errors()).fold(
            ProgressErrors::default(),
            |sum, each| ProgressErrors {
                backwards: sum.backwards + each.backwards,
                unmoved: sum.unmoved + each.unmoved,
            },
        )
    }

    pub(super) fn progress_name(&self) -> &'static str {
        self.sources.first().map_or("none", |source| source.name())
    }

    /// Takes the duration of an order to stop. The margin is never below an observed duration: it grows by the excess
    /// over all earlier orders.
    pub(super) fn stopped_in(&mut self, took_ns: u64) {
        let more = took_ns.saturating_sub(self.settings.stop_ns);
        self.settings.stop_ns = self.settings.stop_ns.saturating_add(more);
        self.settings.margin_ns = self.settings.margin_ns.saturating_add(more);
        self.switch_ns = switch_ns(self.jobs.len(), self.floor_ns, self.settings.margin_ns);
        self.statistics.stop_max_ns = self.statistics.stop_max_ns.max(took_ns);
    }

    /// Called after co-runners were stopped, and before they run again.
    pub(super) fn co_runners(&mut self, running: bool) {
        self.sources.iter_mut().for_each(|source| source.co_runners(running));
    }

    /// Looks at `now`, which MUST NOT be before an earlier look, and says what is to be done until the
    /// next.
    pub(super) fn check_slack(&mut self, now: u64) -> MonitorDecision {
        self.statistics.checks += 1;
        self.statistics.max_latency_ns =
            self.statistics.max_latency_ns.max(now.saturating_sub(self.next_ns));
        let mut began = false;
        let (runs, resting) = self.last;
        let each = self.jobs.iter_mut().zip(&mut self.sources).zip(&mut self.counts);
        for (index, ((job, source), counts)) in each.enumerate() {
            job.held = runs.is_some_and(|runs| runs != index) && !resting.has(index);
            let advance = job.advance(now, source.as_mut());
            counts.0 += advance.ended;
            counts.1 += advance.missed;
            counts.2 += advance.idle;
            began |= advance.began;
            self.statistics.jobs += advance.ended;
            self.statistics.missed += advance.missed;
            self.statistics.idle += advance.idle;
            self.statistics.skipped += advance.skipped;
        }
        self.latched &= !began;
        let order = MonitorDecision { began, ..self.decide(now) };
        self.next_ns = order.next_ns;
        self.last = (order.runs, order.idle);
        order
    }

    fn decide(&mut self, now: u64) -> MonitorDecision {
        let begins = self.jobs.iter().map(ReservedJob::next_ns);
        let dues = self.jobs.iter().filter(|job| job.is_pending()).map(ReservedJob::due_ns);
        let latest = begins.chain(dues.filter(|due| *due > now)).min().unwrap_or(u64::MAX);
        let (first, rests) = self.first_due();
        // Sleeping work is checked again soon.
        let latest = latest.min(self.wake_of(rests, now));
        let Some(first) = first else {
            self.latched = false;
            let (level, runs, slack_ns) = (CoRunnerLevel::Run, None, None);
            let (idle, next_ns) = (rests, latest);
            return MonitorDecision { level, began: false, runs, idle, slack_ns, next_ns };
        };
        let (level, slack_ns, next_ns) = match self.settings.policy {
            SiblingPolicy::Ignore => (CoRunnerLevel::Run, None, latest),
            SiblingPolicy::Disable => {
                let rest = self.beside_rest(first, now);
                rest.unwrap_or_else(|| (CoRunnerLevel::Stop, None, self.end_of(first, now)))
            }
            SiblingPolicy::Monitor => self.by_slack(first, rests, now),
        };
        let several = self.jobs.len() > 1 && self.settings.policy != SiblingPolicy::Ignore;
        let switch = if several { self.earliest_end_of(first, now) } else { u64::MAX };
        let runs = several.then_some(first);
        let next_ns = next_ns.min(switch).min(latest);
        MonitorDecision { level, began: false, runs, idle: rests, slack_ns, next_ns }
    }

    /// The pending job with the earliest deadline, and those that have earlier ones and sleep by their own will: no
    /// processor is kept for them. Of one reservation alone, [`Monitor::beside_rest`] decides.
    fn first_due(&mut self) -> (Option<usize>, ReservationSet) {
        let mut rests = ReservationSet::default();
        loop {
            let pending = self.jobs.iter().enumerate();
            let pending = pending.filter(|(index, job)| job.is_pending() && !rests.has(*index));
            let Some((index, job)) = pending.min_by_key(|(_, job)| job.due_ns()) else {
                return (None, rests);
            };
            // Of those that were held nothing can be said.
            let asked = self.jobs.len() > 1 && index < ReservationSet::MOST && !job.held;
            if !asked || !self.sources.get_mut(index).is_some_and(|source| source.is_idle()) {
                return (Some(index), rests);
            }
            rests = rests.with(index);
        }
    }

    /// When to look whether one of those wants the processor again.
    fn wake_of(&self, rests: ReservationSet, now: u64) -> u64 {
        let resting = self.jobs.iter().enumerate().filter(|(index, _)| rests.has(*index));
        let waits =
            resting.map(|(_, job)| (job.reservation.period_ns() / REST_PART).max(self.floor_ns));
        waits.min().map_or(u64::MAX, |wait| now.saturating_add(wait))
    }

    /// The order by slack: the level, the slack, and until when.
    fn by_slack(
        &mut self,
        first: usize,
        rests: ReservationSet,
        now: u64,
    ) -> (CoRunnerLevel, Option<i128>, u64) {
        // More is reserved than can be looked at: nothing is known to be left over.
        let slack = self.slack_ahead(now, rests).ok().flatten().unwrap_or(NO_SLACK);
        let run = if self.latched { None } else { self.run_until(now, slack, 0) };
        let Some(until) = run else {
            if let Some(rest) = self.beside_rest(first, now) {
                return rest;
            }
            self.latched = true;
            return (CoRunnerLevel::Stop, Some(slack), self.end_of(first, now));
        };
        let Some(slow_ns) = self.settings.slow_ns else {
            return (CoRunnerLevel::Run, Some(slack), until);
        };
        match self.run_until(now, slack, slow_ns) {
            Some(until) => (CoRunnerLevel::Run, Some(slack), until),
            None => (CoRunnerLevel::Slow, Some(slack), until),
        }
    }

    /// Work that reported nothing of its job and sleeps by its own will takes nothing of the processor: nothing is
    /// stopped for it, as no process is dispatched that yielded (section 4.1), and it is checked again soon. What it
    /// loses when it goes on is slack; if none is left while it sleeps, what is reserved cannot be had any more, by its
    /// own will.
    fn beside_rest(
        &mut self,
        first: usize,
        now: u64,
    ) -> Option<(CoRunnerLevel, Option<i128>, u64)> {
        // Of several, work is held, and then it looks as if it slept.
        if self.jobs.len() > 1 || !self.sources.get_mut(first)?.is_idle() {
            return None;
        }
        self.latched = false;
        let job = self.jobs.get_mut(first)?;
        let slack = PendingWork { deadline: job.due_ns(), remaining: job.remaining_ns }.slack(now);
        let left = slack - i128::from(self.settings.margin_ns);
        let mut wait = (job.reservation.period_ns() / REST_PART).max(self.floor_ns);
        match u64::try_from(left) {
            Ok(left) if left > 0 => wait = wait.min(left),
            _ => self.statistics.idle += u64::from(job.waive()),
        }
        Some((CoRunnerLevel::Run, Some(slack), now.saturating_add(wait)))
    }

    /// Until when co-runners may run without taking the margin and `more`; `None` if they may not.
    fn run_until(&self, now: u64, slack: i128, more: u64) -> Option<u64> {
        let MonitorSettings { alpha, margin_ns, smallest_ns, checks, .. } = self.settings;
        let promise = SlackReservation::new(now, 0, alpha, margin_ns.saturating_add(more));
        let decision = checks.limit(now, promise.decide(now, slack));
        let least = if checks == SlackCheck::Variable { smallest_ns } else { 0 };
        match decision {
            Decision::RunUntil(until) if until - now >= least => Some(until),
            Decision::RunUntil(_) | Decision::Stop => None,
        }
    }

    /// Slack of the system: of one reservation T - C, of several equation 9 with the jobs to come, without those that
    /// rest and those that have ended.
    fn slack_ahead(&mut self, now: u64, rests: ReservationSet) -> Result<Option<i128>, SlackError> {
        if let [job] = self.jobs.as_slice() {
            return Ok(Some(job.pending(0, false).slack(now)));
        }
        self.ahead.clear();
        let each = self.jobs.iter().enumerate().filter(|(_, job)| !job.ended);
        self.ahead.extend(each.map(|(index, job)| slack::Reservation {
            pending: job.pending(self.switch_ns, rests.has(index)),
            cost: job.reservation.reserved_ns().saturating_add(self.switch_ns),
            period: job.reservation.period_ns(),
        }));
        slack::slack_ahead(now, &self.ahead, LOOKS)
    }

    /// When to look whether the job is done that runs without co-runners.
    fn end_of(&mut self, index: usize, now: u64) -> u64 {
        let floor = self.floor_ns;
        let wait = self.jobs.get_mut(index).map_or(0, |job| job.alone_for_ns(now));
        now.saturating_add(wait.max(floor))
    }

    /// When the job can be done at the earliest, going by what is reserved: then the next one may run.
    fn earliest_end_of(&self, index: usize, now: u64) -> u64 {
        let left = self.jobs.get(index).map_or(0, |job| job.remaining_ns);
        now.saturating_add(left.max(self.floor_ns))
    }
}
