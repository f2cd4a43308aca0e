//! The loop of the real-time process: one job after the other, and what each was kept from.
//!
//! Owns: running jobs, noting when they are done and where their time went. Must not: judge.

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::thread;
use hourglass_sys::wait::nanosleep_until;

use hourglass_reserve::account::{AccountingSample, GAP_NS, ThreadAccounting};
use hourglass_reserve::progress::Progress;

use super::emulator::Participant;
use super::jobs::{JobPhase, ProcessJobs};
use super::outcome::FinishedJob;
use super::trial::PhaseWork;

/// Waiting for others, as it is emulated, that takes longer than reading the clock, ns.
const CONTENDED_NS: u64 = 1_000;

pub(super) struct LoopResult {
    pub(super) done: Vec<FinishedJob>,
    pub(super) best_effort_ns: u64,
}

pub(super) struct Loop<'a> {
    pub(super) jobs: &'a ProcessJobs,
    pub(super) reported: bool,
    pub(super) pace: Participant<'a>,
    pub(super) account: ThreadAccounting,
    pub(super) progress: Progress,
}

/// Where the time of a job went, ns.
#[derive(Clone, Copy, Debug, Default)]
struct JobBreakdown {
    /// In all, without what is emulated.
    own_ns: u64,
    /// What the job's progress was worth to the monitor, beyond what it had needed until then; the most.
    ahead_ns: u64,
    waited_ns: u64,
    taken_ns: u64,
    longest_ns: u64,
    /// When others were last felt, and what was left to do then.
    felt: (u64, u64),
}

impl Loop<'_> {
    /// From the period that begins at `first` on. A late job goes on to its end; periods that pass
    /// meanwhile have none. `None` if a signal asked to stop.
    pub(super) fn run(
        mut self,
        first: u64,
        phases: &mut [PhaseWork],
        others: &dyn Fn() -> u64,
        stopped: fn() -> bool,
    ) -> Option<LoopResult> {
        let period_ns = self.jobs.period_ns;
        let mut done = Vec::with_capacity(self.jobs.jobs.len());
        let mut before = 0;
        let mut next = 0;
        while let Some(job) = self.jobs.jobs.get(next) {
            let number = next as u64;
            let release = first + number * period_ns;
            // A signal ends the sleep, and is looked for.
            while now_ns(ClockId::Monotonic) < release {
                let _ = nanosleep_until(release);
                if stopped() {
                    return None;
                }
            }
            if number == 0 {
                before = others();
            }
            let found = self.timed(job, phases, (number, release));
            let passed = usize::try_from(found.response_ns / period_ns).unwrap_or(usize::MAX);
            next = next.saturating_add(passed).saturating_add(1);
            done.push(found);
        }
        let end = first + self.jobs.jobs.len() as u64 * period_ns;
        let _ = nanosleep_until(end);
        Some(LoopResult { done, best_effort_ns: others().saturating_sub(before) })
    }

    /// Does a job, and returns its outcome. What it needed by itself is what the kernel charges it for, without what is
    /// emulated; a job that reports its progress needs the time that makes its reports true: the remaining part takes
    /// no more than its share of what is reserved.
    fn timed(
        &mut self,
        job: &[JobPhase],
        phases: &mut [PhaseWork],
        (period, release): (u64, u64),
    ) -> FinishedJob {
        let switches = thread::counters();
        let begun = now_ns(ClockId::Monotonic);
        let went = self.job(job, phases);
        let end = now_ns(ClockId::Monotonic);
        self.pace.rests();
        let after = thread::counters();
        let response_ns = end - release;
        let others_ns = went.waited_ns.saturating_add(went.taken_ns);
        let ahead_ns = if self.reported { went.ahead_ns } else { 0 };
        let (felt, left) = went.felt;
        FinishedJob {
            period,
            response_ns,
            own_ns: went.own_ns.saturating_sub(others_ns),
            ahead_ns,
            taken_ns: went.taken_ns.min(response_ns),
            preempted: after.involuntary > switches.involuntary,
            waited_ns: went.waited_ns,
            begun_ns: begun.saturating_sub(release),
            longest_ns: went.longest_ns,
            alone_ns: end.saturating_sub(felt.max(release)),
            left_ns: left,
        }
    }

    fn job(&mut self, job: &[JobPhase], phases: &mut [PhaseWork]) -> JobBreakdown {
        let total: u64 = job.iter().map(|phase| phase.ns).sum();
        let (mut went, mut done) =
            (JobBreakdown { felt: (0, total), ..JobBreakdown::default() }, 0);
        self.progress.begin();
        let mut read = self.account.read();
        let mut last = now_ns(ClockId::Monotonic);
        for phase in job {
            let Some(PhaseWork { work, chunk }) = phases.get_mut(phase.kind.place()) else {
                continue;
            };
            let mut left = phase.ns;
            while left > 0 {
                let this = chunk.run(work.as_mut(), chunk.ns.min(left));
                let end = self.pace.after(this);
                let began = last;
                went.own_ns += end.saturating_sub(began);
                left = left.saturating_sub(this);
                done += this;
                if phase.reported && done < total {
                    self.progress.report(done, total);
                    let ahead_ns = self.promised(done, total).saturating_sub(went.own_ns);
                    went.ahead_ns = went.ahead_ns.max(ahead_ns);
                }
                let now = now_ns(ClockId::Monotonic);
                if now.saturating_sub(end) > CONTENDED_NS {
                    went.felt = (now, total.saturating_sub(done));
                }
                last = now;
                let gap_ns = end.saturating_sub(began).saturating_sub(this);
                went.longest_ns = went.longest_ns.max(gap_ns);
                if gap_ns > GAP_NS {
                    read = self.span(read, gap_ns, &mut went);
                }
            }
        }
        self.progress.report(total, total);
        self.span(read, 0, &mut went);
        went
    }

    fn promised(&self, done: u64, total: u64) -> u64 {
        let share = u128::from(self.jobs.reserve_ns) * u128::from(done) / u128::from(total.max(1));
        u64::try_from(share).unwrap_or(u64::MAX)
    }

    /// How the time since `read` was used, with a gap in it, ns: the part of a gap that no thread of this kernel had
    /// is a host's, and so is what the kernel says that the host stole.
    fn span(
        &self,
        read: AccountingSample,
        gap_ns: u64,
        went: &mut JobBreakdown,
    ) -> AccountingSample {
        let now = self.account.read();
        let spent = now.since(read);
        went.waited_ns += spent.waited_ns.unwrap_or(0);
        went.taken_ns += spent.taken_ns(gap_ns);
        now
    }
}
