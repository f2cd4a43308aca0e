//! What the jobs of a program are: how long they execute, how far apart they come, what they lock.
//!
//! Owns: cutting the steps of a program at its wake-ups. Must not: know other threads.

use std::collections::{BTreeMap, BTreeSet};

use hourglass_time::Span;

use crate::{JobTrigger, Phase, Program, ProgramStep};

/// Figures that hold for every job of a program.
#[derive(Clone, Debug, Default)]
pub(crate) struct JobTotals {
    pub(crate) wake_up: JobTrigger,
    pub(crate) execution: Span,
    /// The longest time slept in all within a job.
    pub(crate) suspension: Span,
    /// The shortest time between two jobs, where it is known.
    pub(crate) separation: Option<Span>,
    /// For each mutex the longest time of holding it, and how often a job does at most.
    pub(crate) sections: BTreeMap<String, (Span, u32)>,
    /// Conditions that it waits for, within or between jobs.
    pub(crate) conditions: BTreeSet<String>,
    /// Names under which it waits to be resumed.
    pub(crate) suspends: BTreeSet<String>,
    /// What it signals, and what it resumes, and how often a job does so at most.
    pub(crate) signals: BTreeMap<String, u32>,
    pub(crate) resumes: BTreeMap<String, u32>,
    /// The parts that the figures above leave out, in words.
    pub(crate) doubts: BTreeSet<&'static str>,
}

/// Twice through, so that the job that crosses the end is seen whole.
const ROUNDS: u64 = 2;

impl JobTotals {
    pub(crate) fn of(program: &Program) -> JobTotals {
        let wake_up = program.beginning();
        let jobs = JobTotals { wake_up, ..JobTotals::default() };
        let mut walk = JobWalk { jobs, ..JobWalk::default() };
        'all: for _ in 0..rounds(program.loops) {
            for phase in &program.phases {
                walk.phase(phase);
                // Phases behind one without an end are never reached.
                if phase.loops.is_none() {
                    break 'all;
                }
            }
        }
        // A program that ends, ends its last job too.
        if program.loops.is_some() || wake_up == JobTrigger::Start {
            walk.end_job();
        }
        walk.jobs
    }
}

fn rounds(loops: Option<u64>) -> u64 {
    loops.unwrap_or(ROUNDS).min(ROUNDS)
}

#[derive(Default)]
struct JobWalk {
    jobs: JobTotals,
    execution: Span,
    suspension: Span,
    counts: BTreeMap<String, u32>,
    signals: BTreeMap<String, u32>,
    resumes: BTreeMap<String, u32>,
    /// Mutexes that are held, and for how long by now.
    held: Vec<(String, Span)>,
}

impl JobWalk {
    /// A phase with all its rounds: as many as a job may cross, or all of them where none of them waits.
    fn phase(&mut self, phase: &Phase) {
        let wakes = phase.steps.iter().any(|step| self.jobs.wake_up.is_step(step));
        for round in 0..rounds(phase.loops) {
            let before = (self.execution, self.suspension);
            let counts = [self.counts.clone(), self.signals.clone(), self.resumes.clone()];
            phase.steps.iter().for_each(|step| self.step(step));
            if round + 1 == ROUNDS && !wakes {
                match phase.loops {
                    Some(loops) => self.again(loops - ROUNDS, before, &counts),
                    None => (self.jobs.wake_up, self.jobs.separation) = (JobTrigger::Start, None),
                }
            }
        }
    }

    /// Adds `times` more rounds like the last one, before which the job had `before` and `counts`.
    fn again(&mut self, times: u64, before: (Span, Span), counts: &[BTreeMap<String, u32>; 3]) {
        let more = |now: Span, before: Span| {
            let each = i128::from(now.nanos()) - i128::from(before.nanos());
            let all = each.saturating_mul(i128::from(times));
            Span::from_nanos(i64::try_from(all).unwrap_or(i64::MAX))
        };
        let executed = more(self.execution, before.0);
        self.execution = self.execution.saturating_add(executed);
        self.suspension = self.suspension.saturating_add(more(self.suspension, before.1));
        for (_, length) in &mut self.held {
            *length = length.saturating_add(executed);
        }
        let most = times.try_into().unwrap_or(u32::MAX);
        for (name, here) in &mut self.counts {
            repeat(here, counts[0].get(name), most);
            let known = self.jobs.sections.entry(name.clone()).or_default();
            known.1 = known.1.max(*here);
        }
        let made = [
            (&mut self.signals, &mut self.jobs.signals),
            (&mut self.resumes, &mut self.jobs.resumes),
        ];
        for ((here, all), before) in made.into_iter().zip(&counts[1..]) {
            for (name, count) in here.iter_mut() {
                repeat(count, before.get(name), most);
                let known = all.entry(name.clone()).or_default();
                *known = (*known).max(*count);
            }
        }
    }

    fn step(&mut self, step: &ProgramStep) {
        match step {
            ProgramStep::Run(time) | ProgramStep::RunFor(time) => {
                self.execution = self.execution.saturating_add(*time);
                for (_, length) in &mut self.held {
                    *length = length.saturating_add(*time);
                }
            }
            ProgramStep::Timer { period, .. } if period.is_positive() => self.wakes_after(*period),
            ProgramStep::Sleep(time)
                if self.jobs.wake_up == JobTrigger::Sleep && time.is_positive() =>
            {
                self.wakes_after(time.saturating_add(self.execution));
            }
            ProgramStep::Sleep(time) => self.suspension = self.suspension.saturating_add(*time),
            ProgramStep::Lock(mutex) => self.held.push((mutex.clone(), Span::ZERO)),
            ProgramStep::Unlock(mutex) => self.unlock(mutex),
            ProgramStep::Wait { condition, mutex } => {
                self.jobs.conditions.insert(condition.clone());
                self.unlock(mutex);
                self.waits();
                self.held.push((mutex.clone(), Span::ZERO));
            }
            ProgramStep::Suspend(name) => {
                self.jobs.suspends.insert(name.clone());
                self.waits();
            }
            ProgramStep::Signal(name) | ProgramStep::Broadcast(name) => {
                count(&mut self.signals, &mut self.jobs.signals, name);
            }
            ProgramStep::Resume(name) => count(&mut self.resumes, &mut self.jobs.resumes, name),
            ProgramStep::Barrier(_) => {
                self.jobs.doubts.insert("waits at barriers; for how long is not known");
                self.waits();
            }
            // A semaphore is a condition to whom it wakes. The blank keeps its name from others'.
            ProgramStep::Take(name) => {
                self.jobs.conditions.insert(semaphore(name));
                self.waits();
            }
            ProgramStep::Post(name) => {
                count(&mut self.signals, &mut self.jobs.signals, &semaphore(name));
            }
            ProgramStep::Memory(_)
            | ProgramStep::Io(_)
            | ProgramStep::Read { .. }
            | ProgramStep::Write { .. }
            | ProgramStep::Chase { .. } => {
                self.jobs.doubts.insert(
                    "mem, memrun and iorun take a time that the file does not say; it is not in \
                     the execution time",
                );
            }
            _ => {}
        }
    }

    fn wakes_after(&mut self, separation: Span) {
        let shortest = self.jobs.separation.map_or(separation, |known| known.min(separation));
        self.jobs.separation = Some(shortest);
        self.end_job();
    }

    fn waits(&mut self) {
        if self.jobs.wake_up == JobTrigger::Event {
            self.end_job();
        } else {
            self.jobs.doubts.insert(
                "waits for another thread within a job; that time is not in the suspension",
            );
        }
    }

    fn unlock(&mut self, mutex: &str) {
        let Some(position) = self.held.iter().rposition(|(name, _)| name == mutex) else { return };
        let (mutex, length) = self.held.remove(position);
        if length.is_zero() {
            return;
        }
        let count = self.counts.entry(mutex.clone()).or_default();
        *count += 1;
        let known = self.jobs.sections.entry(mutex).or_default();
        *known = (known.0.max(length), known.1.max(*count));
    }

    fn end_job(&mut self) {
        let held: Vec<String> = self.held.iter().map(|(mutex, _)| mutex.clone()).collect();
        if !held.is_empty() {
            self.jobs
                .doubts
                .insert("waits while it holds a mutex; for how long it blocks others is not known");
        }
        for mutex in held {
            self.unlock(&mutex);
            self.held.push((mutex, Span::ZERO));
        }
        self.jobs.execution = self.jobs.execution.max(self.execution);
        self.jobs.suspension = self.jobs.suspension.max(self.suspension);
        self.execution = Span::ZERO;
        self.suspension = Span::ZERO;
        self.counts.clear();
        self.signals.clear();
        self.resumes.clear();
    }
}

/// The name of a semaphore among those of conditions, which have no blanks.
fn semaphore(name: &str) -> String {
    format!("semaphore {name}")
}

/// Adds `times` times what was counted in the last round.
fn repeat(count: &mut u32, before: Option<&u32>, times: u32) {
    let each = *count - before.copied().unwrap_or(0);
    *count = count.saturating_add(each.saturating_mul(times));
}

/// One more of `name` in the job at hand, and the most in any job.
fn count(here: &mut BTreeMap<String, u32>, most: &mut BTreeMap<String, u32>, name: &str) {
    let here = here.entry(name.to_owned()).or_default();
    *here += 1;
    let most = most.entry(name.to_owned()).or_default();
    *most = (*most).max(*here);
}
