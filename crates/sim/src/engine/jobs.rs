//! Jobs come, reach their marks, and end.
//!
//! Owns: releases, queues of late jobs, marks and sections, completion, chains. Must not: choose who
//! runs.

use super::super::error::SimError;
use super::super::outcome::FirstMiss;
use super::super::sink::Event;
use super::super::source::JobRelease;
use super::super::thread::{MarkAction, OverrunPolicy, Preemption};
use super::SimState;
use super::state::{ActiveJob, QueuedJob, ThreadState};
use super::timers::NEVER;

/// Jobs of a thread that may wait behind an unfinished one.
pub(crate) const MOST_WAITING: usize = 1 << 20;

impl<const TELL: bool> SimState<TELL> {
    pub(super) fn end_on(&mut self, cpu: usize) -> Result<(), SimError> {
        let Some(thread) = self.cpus[cpu].thread else { return Ok(()) };
        let domain = self.cpus[cpu].domain;
        self.bring_up(domain);
        self.soil(domain);
        self.cpus[cpu].stale = true;
        let runner = &self.runners[thread];
        let works = !runner.spinning && !runner.endless;
        if works && runner.job.is_some_and(|job| job.reload == 0 && job.remaining <= job.point) {
            self.reach(thread)?;
        }
        if let Some(payer) = self.cpus[cpu].payer
            && self.servers[payer].remaining_budget == 0
        {
            self.exhaust(payer)?;
        }
        if self.takes_turns(thread) && self.runners[thread].quantum == 0 {
            self.runners[thread].fifo_order = self.next_turn();
            self.runners[thread].quantum = self.quantum;
            self.rank_again(thread);
        }
        if self.cpus[cpu].shared && self.runners[thread].share.slice == 0 {
            self.renew_slice(thread);
        }
        let spent = |machine: &Self| {
            machine.throttling.is_some_and(|limit| machine.cpus[cpu].used >= limit.runtime)
        };
        if self.cpus[cpu].counted && !self.cpus[cpu].throttled && spent(self) {
            self.throttle(cpu);
        }
        Ok(())
    }

    pub(super) fn release_timer(&mut self, thread: usize) -> Result<(), SimError> {
        let runner = &mut self.runners[thread];
        let Some(coming) = runner.coming.take() else {
            self.timers.set(self.slots.release + thread, NEVER);
            return Ok(());
        };
        runner.coming = match runner.chain.done.is_empty() {
            true => runner.releases.next(),
            false => runner.chain.due.pop_front(),
        };
        let next = runner.coming.map_or(NEVER, |coming| coming.release);
        self.timers.set(self.slots.release + thread, next);
        self.release(thread, coming)
    }

    fn release(&mut self, thread: usize, coming: JobRelease) -> Result<(), SimError> {
        let turn = self.next_turn();
        self.reasons.release = true;
        let runner = &mut self.runners[thread];
        let number = runner.number;
        runner.number += 1;
        let waiting = QueuedJob { number, coming, turn };
        if runner.job.is_some() && runner.late == OverrunPolicy::Skip {
            runner.outcome.lost += 1;
            self.tell(Event::Lost { thread, job: number, arrival: coming.arrival });
            return Ok(());
        }
        runner.outcome.released += 1;
        let busy = runner.job.is_some();
        if busy {
            if runner.waiting.len() >= MOST_WAITING {
                return Err(SimError::Backlog { thread, waiting: MOST_WAITING });
            }
            runner.waiting.push_back(waiting);
        }
        self.tell(Event::Release { thread, job: number, arrival: coming.arrival });
        if !busy {
            self.start(thread, waiting)?;
            self.make_ready(thread)?;
        }
        Ok(())
    }

    /// A released job becomes the current one.
    fn start(&mut self, thread: usize, waiting: QueuedJob) -> Result<(), SimError> {
        let scale = self.rates.scale;
        let runner = &mut self.runners[thread];
        let arrival = waiting.coming.arrival;
        let due = match arrival.checked_add(runner.deadline) {
            Some(due) => due,
            // This deadline is not compared; a job's own deadline is compared with its response.
            None if runner.endless || !runner.by_deadline() => u64::MAX,
            None => return Err(SimError::Overflow { thread }),
        };
        let cost = match runner.endless {
            true => u64::MAX,
            false => runner.costs.next().checked_mul(scale).ok_or(SimError::Overflow { thread })?,
        };
        let (number, coming) = (waiting.number, waiting.coming);
        let mut job = ActiveJob {
            number,
            coming,
            deadline: due,
            cost,
            remaining: cost,
            reload: 0,
            point: 0,
            section: 0,
            marks: 0,
            started: false,
            preempted: false,
        };
        runner.fifo_order = waiting.turn;
        job.section = runner.section(&job, scale);
        job.point = runner.next_point(&job);
        runner.job = Some(job);
        if let Some(cpu) = runner.cpu {
            self.cpus[cpu].slice_job = number;
        }
        self.rank_again(thread);
        Ok(())
    }

    /// A thread competes from now on.
    pub(super) fn make_ready(&mut self, thread: usize) -> Result<(), SimError> {
        let runner = &mut self.runners[thread];
        runner.ready = true;
        let (domain, server) = (runner.domain, runner.server);
        self.soil(domain);
        if let Some(server) = server {
            self.server_wakes(server)?;
        }
        self.enqueue(thread);
        self.update_share(thread);
        Ok(())
    }

    pub(super) fn make_unready(&mut self, thread: usize) -> Result<(), SimError> {
        let runner = &mut self.runners[thread];
        runner.ready = false;
        runner.held = false;
        let (domain, server) = (runner.domain, runner.server);
        self.tell(Event::Waits { thread });
        self.update_share(thread);
        self.dequeue(thread);
        self.soil(domain);
        match server {
            Some(server) => self.server_sleeps(server),
            None => Ok(()),
        }
    }

    pub(super) fn wake(&mut self, thread: usize) -> Result<(), SimError> {
        self.runners[thread].fifo_order = self.next_turn();
        self.make_ready(thread)
    }

    /// A job is at a mark, a preemption point, or its end.
    fn reach(&mut self, thread: usize) -> Result<(), SimError> {
        if self.scripts.has(thread) {
            return self.follow_script(thread);
        }
        let scale = self.rates.scale;
        // Each round has passed a mark, and there are finitely many.
        for _ in 0..=self.runners[thread].marks.len() {
            let runner = &mut self.runners[thread];
            let Some(job) = &mut runner.job else { return Ok(()) };
            let done = job.cost - job.remaining;
            let mark = runner.marks.get(job.marks).filter(|m| m.at <= done && m.at < job.cost);
            let Some(action) = mark.map(|mark| mark.action) else { break };
            job.marks += 1;
            if !self.act(thread, action)? {
                break;
            }
        }
        let runner = &self.runners[thread];
        let Some(job) = runner.job else { return Ok(()) };
        if job.remaining == 0 && runner.ready && !runner.spinning {
            return self.complete(thread);
        }
        let mut job = job;
        if job.remaining <= job.section {
            job.section = runner.section(&job, scale);
            self.runners[thread].held = self.spins(thread);
            self.rank_again(thread);
        }
        job.point = self.runners[thread].next_point(&job);
        self.runners[thread].job = Some(job);
        Ok(())
    }

    /// Carries out the action of a mark. Returns whether the job goes on.
    fn act(&mut self, thread: usize, action: MarkAction) -> Result<bool, SimError> {
        match action {
            MarkAction::Suspend(time) => {
                let until = self.now.checked_add(time).ok_or(SimError::TimeOverflow)?;
                self.timers.set(self.slots.wake + thread, until);
                self.make_unready(thread)?;
                Ok(false)
            }
            MarkAction::Lock(resource) => self.lock(thread, resource),
            MarkAction::Unlock(resource) => {
                self.unlock(thread, resource)?;
                // CPUs are given out before a section that follows at once.
                Ok(false)
            }
        }
    }

    fn complete(&mut self, thread: usize) -> Result<(), SimError> {
        let Some(job) = self.runners[thread].job else { return Ok(()) };
        if let Some(cpu) = self.runners[thread].cpu {
            self.end_slice(cpu, thread);
        }
        self.count_completion(thread, &job);
        self.reasons.completion = true;
        if let Some(resource) = self.runners[thread].holds {
            self.unlock(thread, resource)?;
        }
        self.follow(thread, job.coming.arrival)?;
        let runner = &mut self.runners[thread];
        runner.job = None;
        runner.held = false;
        match runner.waiting.pop_front() {
            Some(waiting) => self.start(thread, waiting),
            None => self.make_unready(thread),
        }
    }

    pub(super) fn count_completion(&mut self, thread: usize, job: &ActiveJob) {
        let runner = &mut self.runners[thread];
        let outcome = &mut runner.outcome;
        let response = self.now - job.coming.arrival;
        let from_release = self.now - job.coming.release;
        outcome.jobs += 1;
        outcome.responses.record(response);
        outcome.min_response = Some(outcome.min_response.map_or(response, |m| m.min(response)));
        outcome.max_response = outcome.max_response.max(Some(response));
        outcome.max_response_from_release =
            outcome.max_response_from_release.max(Some(from_release));
        let missed = response > runner.deadline;
        if missed {
            outcome.missed += 1;
            outcome.late += 1;
            outcome.first_miss.get_or_insert(FirstMiss {
                job: job.number,
                arrival: job.coming.arrival,
                deadline: job.deadline,
                done: Some(self.now),
            });
        }
        self.tell(Event::Completion { thread, job: job.number, response });
        if missed {
            self.tell(Event::Miss { thread, job: job.number, due: job.deadline });
        }
    }

    /// Releases the threads for which a completed job was the last predecessor.
    pub(super) fn follow(&mut self, thread: usize, arrival: u64) -> Result<(), SimError> {
        for index in 0..self.runners[thread].chain.successors.len() {
            let (successor, place) = self.runners[thread].chain.successors[index];
            let runner = &mut self.runners[successor];
            let chain = &mut runner.chain;
            chain.done[place] += 1;
            if place == 0 {
                chain.arrivals.push_back(arrival);
            }
            if chain.arrivals.len() > MOST_WAITING || chain.due.len() > MOST_WAITING {
                return Err(SimError::Backlog { thread: successor, waiting: MOST_WAITING });
            }
            if chain.done.contains(&0) {
                continue;
            }
            chain.done.iter_mut().for_each(|done| *done -= 1);
            let Some(arrival) = chain.arrivals.pop_front() else { continue };
            let Some(coming) = runner.releases.next_release(arrival, self.now) else { continue };
            if runner.coming.is_some() {
                runner.chain.due.push_back(coming);
            } else {
                runner.coming = Some(coming);
                self.timers.set(self.slots.release + successor, coming.release);
            }
        }
        Ok(())
    }
}

impl ThreadState {
    fn by_deadline(&self) -> bool {
        self.class == super::super::Class::Edf
    }

    /// The remaining work of a job at its next mark, preemption point or end.
    fn next_point(&self, job: &ActiveJob) -> u64 {
        let mark = self.marks.get(job.marks).filter(|mark| mark.at < job.cost);
        mark.map_or(0, |mark| job.cost - mark.at).max(job.section)
    }

    /// The remaining work of a job at the end of the section that it is in, or that begins: 0
    /// without sections.
    fn section(&self, job: &ActiveJob, scale: u64) -> u64 {
        let Preemption::Limited { longest, last } = self.preemption else { return 0 };
        // A section that does not fit into 64 bits is longer than any job.
        let longest = longest.saturating_mul(scale);
        let body = job.cost.saturating_sub(last.saturating_mul(scale));
        let done = job.cost - job.remaining;
        if done >= body {
            return 0;
        }
        job.cost - (done / longest + 1).saturating_mul(longest).min(body)
    }
}
