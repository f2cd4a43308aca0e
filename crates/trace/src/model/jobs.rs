//! Jobs: what a thread does from a release to the next one, with the waits that lie within.
//!
//! Owns: how the bursts of jobs become these. Must not: know how their waits are told from others (`grouping` does).

use std::collections::BTreeMap;

use super::activity::{Burst, Waker, length};
use super::curve::Distances;
use super::period::{self, PeriodFit};
use super::places::Places;

/// Where so many times the periods without a job, in which none ran, are more than the jobs, another grouping is tried.
const EMPTY: u64 = 4;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Job {
    pub(super) at_ns: i64,
    /// It was released at `at_ns` or before.
    pub(super) is_late: bool,
    /// The earliest release in its period.
    pub(super) nominal_ns: Option<i64>,
    pub(super) waker: Waker,
    pub(super) end_ns: i64,
    pub(super) run_ns: u64,
    /// The longest from a waking to a wait.
    pub(super) longest_ns: u64,
    pub(super) others_ns: u64,
    pub(super) is_whole: bool,
    /// Its waking was seen.
    pub(super) is_begun: bool,
    pub(super) is_ended: bool,
    pub(super) stretch: u32,
    pub(super) waits_ns: Vec<u64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Grouped {
    pub(super) jobs: Vec<Job>,
    pub(super) fit: Option<PeriodFit>,
    /// The shortest times in which so many jobs began; empty with a fit.
    pub(super) distances: Distances,
    /// How waits within jobs were told from others.
    pub(super) basis: &'static str,
    /// Some waits are sleeps, which may lie within jobs, and others are not; they could not be told by a period.
    pub(super) has_sleeps: bool,
    /// What is held to be within a job may be one of its own.
    pub(super) may_be_several: bool,
    /// How often each thread ended a wait within a job.
    pub(super) answers: BTreeMap<u32, u64>,
    /// What the system calls of its waits say.
    pub(super) places: Places,
}

impl Job {
    /// Whether its response was seen, whatever switches within were not.
    pub(super) fn is_seen(&self) -> bool {
        self.is_begun && self.is_ended
    }
}

impl Grouped {
    /// Jobs released while the one before still ran.
    pub(super) fn unseen(&self) -> u64 {
        let pairs = self.jobs.windows(2).filter(|pair| pair[0].stretch == pair[1].stretch);
        pairs.filter(|pair| pair[1].is_late).count() as u64
    }

    /// What one job certainly ran: of those seen whole, the longest, as a part of it where it may be several, also by the number
    /// of jobs that are `merged` into each.
    pub(super) fn surely_ran(&self, merged: &[u64]) -> u64 {
        let merged = |at: usize| merged.get(at).copied().unwrap_or(0);
        let parts = |at: usize| self.more_than_one(at).max(merged(at)).saturating_add(1);
        let whole = self.jobs.iter().enumerate().filter(|(_, job)| job.is_whole);
        let ran = |job: &Job| if self.may_be_several { job.longest_ns } else { job.run_ns };
        whole.map(|(at, job)| ran(job).div_ceil(parts(at))).max().unwrap_or(0)
    }

    /// Releases that may have come before the end of a job, beside its own: a thread that is woken while it may run shows none, and
    /// a part of the next job may be in this one where that was not seen to begin.
    pub(super) fn more_than_one(&self, at: usize) -> u64 {
        let job = &self.jobs[at];
        if self.fit.is_some() {
            let is_split = self.jobs.get(at + 1).is_some_and(|next| next.is_late);
            return if is_split { self.passed_over(at) } else { self.periods(at, job.end_ns) };
        }
        let response = length(job.at_ns, job.end_ns);
        let within = self.distances.iter().take_while(|(_, distance)| *distance <= response);
        within.last().map_or(0, |(number, _)| *number as u64 - 1)
    }

    /// Whether few periods were waited through: waits within jobs may fall on a finer grid, of which many periods have no job.
    pub(super) fn is_full(&self) -> bool {
        let is_followed = |at: &usize| self.jobs[*at].stretch == self.jobs[*at + 1].stretch;
        let followed = (0..self.jobs.len().saturating_sub(1)).filter(is_followed);
        let passed: u64 = followed.map(|at| self.passed_over(at)).sum();
        let waited = self.fit.map(|fit| fit.skipped.saturating_sub(passed));
        waited.is_some_and(|waited| waited.saturating_mul(EMPTY) < self.jobs.len() as u64)
    }

    /// Releases on the grid before the end of a job for which none was seen: a thread that is late goes on without a wait.
    pub(super) fn passed_over(&self, at: usize) -> u64 {
        let next = self.jobs.get(at + 1).filter(|next| next.stretch == self.jobs[at].stretch);
        let until = |next: &Job| Some(self.periods(at, next.nominal_ns?).saturating_sub(1));
        let empty = next.and_then(until).unwrap_or(u64::MAX);
        self.periods(at, self.jobs[at].end_ns).min(empty)
    }

    /// Whole periods of the grid from a job's own release.
    fn periods(&self, at: usize, ns: i64) -> u64 {
        let of_grid = self.fit.zip(self.jobs[at].nominal_ns);
        of_grid.map_or(0, |(fit, nominal_ns)| length(nominal_ns, ns) / fit.period_ns.max(1))
    }
}

/// The jobs whose waits are those that are inner, with their period where they have one.
pub(super) fn grouped(
    bursts: &[Burst],
    is_inner: impl Fn(&Burst) -> bool,
    basis: &'static str,
) -> Grouped {
    let has_waits = bursts.iter().any(&is_inner);
    // Behind a wait that was not seen there may be the rest of a job, which was released before.
    let is_rest = |burst: &Burst| is_inner(burst) || burst.slept.is_none();
    let mut jobs: Vec<Job> = Vec::new();
    let mut answers: BTreeMap<u32, u64> = BTreeMap::new();
    for burst in bursts {
        let last = jobs.last_mut().filter(|last| last.stretch == burst.stretch);
        let goes_on = is_inner(burst) && (burst.slept.is_some() || burst.is_late);
        let is_cut = last.is_none() && has_waits && is_rest(burst);
        match last.filter(|_| goes_on) {
            Some(job) => {
                if let Waker::Thread(tid) = burst.waker {
                    *answers.entry(tid).or_default() += 1;
                }
                job.run_ns = job.run_ns.saturating_add(burst.run_ns);
                job.longest_ns = job.longest_ns.max(burst.run_ns);
                job.others_ns = job.others_ns.saturating_add(burst.others_ns);
                job.end_ns = burst.end_ns;
                job.is_whole &= burst.is_whole;
                job.is_ended = burst.is_ended;
                job.waits_ns.extend(burst.slept.map(|(from_ns, _)| length(from_ns, burst.at_ns)));
            }
            None => jobs.push(Job {
                at_ns: burst.at_ns,
                is_late: burst.is_late || is_cut,
                nominal_ns: None,
                waker: burst.waker,
                end_ns: burst.end_ns,
                run_ns: burst.run_ns,
                longest_ns: burst.run_ns,
                others_ns: burst.others_ns,
                is_whole: burst.is_whole && !is_cut,
                is_begun: !is_cut,
                is_ended: burst.is_ended,
                stretch: burst.stretch,
                waits_ns: Vec::new(),
            }),
        }
    }
    // The rest of the last job may lie behind the end.
    if let Some(last) = jobs.last_mut().filter(|_| has_waits) {
        (last.is_whole, last.is_ended) = (false, false);
    }
    let seen = jobs.iter().filter(|job| !job.is_late).map(|job| job.at_ns);
    let fit = period::fit(&seen.collect::<Vec<i64>>());
    fit.iter().for_each(|fit| join_early(&mut jobs, fit));
    let fit = fit.and_then(|fit| place(&mut jobs, fit));
    Grouped { fit, jobs, basis, answers, ..Grouped::default() }
}

/// The first job that was seen to be released is a part of the next one if that one is in its period: a thread that begins may be
/// woken before its first job.
fn join_early(jobs: &mut Vec<Job>, fit: &PeriodFit) {
    let Some(at) = jobs.iter().position(|job| !job.is_late) else { return };
    let Some(next) = jobs.get(at + 1) else { return };
    let is_within = length(jobs[at].at_ns, next.at_ns) < fit.period_ns;
    let is_late = next.is_late && jobs[at].at_ns <= fit.offset_ns && is_within;
    if !fit.has_early && !is_late {
        return;
    }
    let early = jobs.remove(at);
    let job = &mut jobs[at];
    job.run_ns = job.run_ns.saturating_add(early.run_ns);
    job.others_ns = job.others_ns.saturating_add(early.others_ns);
    job.is_whole &= early.is_whole;
}

/// Gives each job a period of its own, also those of which the release was not seen: they and those before them were released
/// early enough. `None` where more than a few that were seen are moved.
fn place(jobs: &mut [Job], fit: PeriodFit) -> Option<PeriodFit> {
    let period = i64::try_from(fit.period_ns).ok().filter(|period| *period > 0)?;
    let mut numbers: Vec<i64> = Vec::with_capacity(jobs.len());
    let mut after = i64::MAX;
    let (mut moved, mut jitter_ns) = (0, fit.jitter_ns);
    for job in jobs.iter().rev() {
        let latest = job.at_ns.saturating_sub(fit.offset_ns).div_euclid(period);
        let number = latest.min(after.saturating_sub(1));
        if number < latest && !job.is_late {
            let nominal = fit.offset_ns.saturating_add(number.saturating_mul(period));
            moved += 1;
            jitter_ns = jitter_ns.max(length(nominal, job.at_ns));
        }
        numbers.push(number);
        after = number;
    }
    if moved as usize > jobs.len() / period::RARE {
        return None;
    }
    let mut before: Option<i64> = None;
    for (job, latest) in jobs.iter_mut().zip(numbers.iter().rev()) {
        let next = before.filter(|_| job.is_late).map(|before| before.saturating_add(1));
        let number = next.unwrap_or(*latest);
        job.nominal_ns = Some(fit.offset_ns.saturating_add(number.saturating_mul(period)));
        before = Some(number);
    }
    let all = numbers.first()?.checked_sub(after)?.checked_add(1)?;
    let skipped = u64::try_from(all).ok()?.checked_sub(jobs.len() as u64)?;
    let late = fit.late.saturating_add(moved);
    Some(PeriodFit { skipped, jitter_ns, late, ..fit })
}
