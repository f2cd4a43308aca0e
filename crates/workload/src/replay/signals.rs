//! What a thread of a script waits for and what it tells others: locks and their priorities,
//! conditions, barriers, timers, other tasks' jobs.
//!
//! Owns: each wait, which ends with the thread's time at the latest. Must not: account for jobs.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hourglass_documents::Policy;
use hourglass_sys::sched::{self, Attributes};
use hourglass_sys::{futex, thread as os};
use hourglass_time::Span;

use super::execution::ReplayExecution;
use super::lock::LockAttempt;
use super::script::{ReplayPhase, ReplayStep};
use super::shared::JobCounter;
use crate::measuring_counter::MeasuringCounter;
use crate::recorder::{Recorder, RecordingEnd};

/// The policy of the calling thread, if it is one whose priority can be raised.
pub(super) fn policy_now() -> Option<Policy> {
    match sched::read(0) {
        Ok(Some(Attributes::Fifo(priority))) => Some(Policy::Fifo(priority)),
        Ok(Some(Attributes::RoundRobin(priority))) => Some(Policy::RoundRobin(priority)),
        _ => None,
    }
}

impl ReplayExecution {
    /// Takes the policy and the CPUs of a phase, where it has its own.
    pub(super) fn enter(&mut self, phase: &ReplayPhase) {
        if let Some(policy) = phase.policy {
            self.policy = policy.is_real_time().then_some(policy);
            // A refusal of the machine came at the start already, and was reported there.
            let _ = sched::set(crate::thread::attributes(policy));
            self.apply_priority();
        }
        // A phase without CPUs has those that the thread began with.
        match (&phase.cpus, self.home.take()) {
            (Some(cpus), home) => {
                self.home = home.or_else(|| os::affinity().ok());
                let _ = os::set_affinity(cpus.iter());
            }
            (None, Some(home)) => drop(os::set_affinity(home)),
            (None, None) => {}
        }
    }

    /// Gives the thread the highest of its own priority, that of the job at hand, and those of the
    /// locks that it holds.
    pub(super) fn apply_priority(&mut self) {
        let Some(policy) = self.policy else { return };
        let locks = self.held.iter().filter_map(|lock| self.shared.locks.get(*lock)?.ceiling);
        let raised = locks.chain(self.raised).max().unwrap_or(0);
        let wanted = match policy {
            Policy::Fifo(own) => Attributes::Fifo(own.max(raised)),
            Policy::RoundRobin(own) => Attributes::RoundRobin(own.max(raised)),
            _ => return,
        };
        if self.in_force != Some(wanted) {
            self.in_force = Some(wanted);
            let _ = sched::set(wanted);
        }
    }

    /// Takes a lock, waiting as its protocol wants. One that the thread holds already is left so.
    pub(super) fn take<C: MeasuringCounter>(
        &mut self,
        place: usize,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let shared = Arc::clone(&self.shared);
        let Some(lock) = shared.locks.get(place) else { return RecordingEnd::Done };
        if self.held.contains(&place) {
            return recorder.touch();
        }
        // The ceiling also counts for a waiting thread: from here on it is in `held`, and comes out
        // again if the lock is not got.
        self.held.push(place);
        self.apply_priority();
        let mut got = false;
        let ended = match lock.take(self.me) {
            LockAttempt::Yes => {
                got = true;
                recorder.touch()
            }
            LockAttempt::NotYet => recorder.block(|latest_ns| {
                got = got || lock.wait(latest_ns);
                got
            }),
            LockAttempt::Ticket(ticket) => recorder.poll(|| {
                got = lock.is_served(ticket);
                got
            }),
        };
        if !got {
            self.held.pop();
            self.apply_priority();
        }
        ended
    }

    pub(super) fn release(&mut self, place: usize) {
        let Some(position) = self.held.iter().rposition(|held| *held == place) else { return };
        self.held.remove(position);
        if let Some(lock) = self.shared.locks.get(place) {
            lock.release(self.me);
        }
        self.apply_priority();
    }

    pub(super) fn release_all(&mut self) {
        while let Some(place) = self.held.last().copied() {
            self.release(place);
        }
    }

    /// Lets the lock go, waits for the condition, and takes the lock again.
    pub(super) fn await_condition<C: MeasuringCounter>(
        &mut self,
        event: usize,
        lock: usize,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let shared = Arc::clone(&self.shared);
        let Some(event) = shared.events.get(event) else { return RecordingEnd::Done };
        // Read before the lock is let go: a signal given under the lock is not missed.
        let seen = event.times.load(Ordering::Acquire);
        self.release(lock);
        let ended = recorder.block(|latest_ns| {
            let _ = futex::wait_until(&event.times, seen, latest_ns);
            event.times.load(Ordering::Acquire) != seen
        });
        match ended {
            RecordingEnd::Done => self.take(lock, recorder),
            RecordingEnd::TimeOver => RecordingEnd::TimeOver,
        }
    }

    pub(super) fn await_event<C: MeasuringCounter>(
        &mut self,
        event: usize,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let shared = Arc::clone(&self.shared);
        let Some(event) = shared.events.get(event) else { return RecordingEnd::Done };
        let seen = event.times.load(Ordering::Acquire);
        recorder.block(|latest_ns| {
            let _ = futex::wait_until(&event.times, seen, latest_ns);
            event.times.load(Ordering::Acquire) != seen
        })
    }

    /// Wakes at most `most` threads that wait for an event.
    pub(super) fn signal<C: MeasuringCounter>(
        &mut self,
        event: usize,
        most: u32,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        if let Some(event) = self.shared.events.get(event) {
            let arrival = recorder.job_arrival().unwrap_or(recorder.now());
            event.signal(arrival, most);
        }
        recorder.touch()
    }

    /// When the job arrived that a thread begins which was woken by the act: with the job that woke
    /// it; now, where that is not known or has woken it before.
    pub(super) fn woken_by(&self, act: &ReplayStep, now: u64) -> u64 {
        let arrival = match act {
            ReplayStep::Wait { event, .. } | ReplayStep::Suspend(event) => {
                self.shared.events.get(*event).map(|event| &event.arrival)
            }
            ReplayStep::Take(semaphore) => {
                self.shared.semaphores.get(*semaphore).map(|semaphore| &semaphore.arrival)
            }
            _ => None,
        };
        let arrival = arrival.map(|arrival| arrival.load(Ordering::Relaxed));
        let is_new = |arrival: &u64| *arrival > self.last_arrival && *arrival <= now;
        arrival.filter(is_new).unwrap_or(now)
    }

    pub(super) fn take_from<C: MeasuringCounter>(
        &mut self,
        semaphore: usize,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let shared = Arc::clone(&self.shared);
        let Some(semaphore) = shared.semaphores.get(semaphore) else { return RecordingEnd::Done };
        if semaphore.take() {
            return recorder.touch();
        }
        recorder.block(|latest_ns| {
            let _ = futex::wait_until(&semaphore.left, 0, latest_ns);
            semaphore.take()
        })
    }

    pub(super) fn post<C: MeasuringCounter>(
        &mut self,
        semaphore: usize,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        if let Some(semaphore) = self.shared.semaphores.get(semaphore) {
            semaphore.post(recorder.job_arrival().unwrap_or(recorder.now()));
        }
        recorder.touch()
    }

    pub(super) fn await_barrier<C: MeasuringCounter>(
        &mut self,
        barrier: usize,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let shared = Arc::clone(&self.shared);
        let Some(barrier) = shared.barriers.get(barrier) else { return RecordingEnd::Done };
        let Some(seen) = barrier.arrive() else { return recorder.touch() };
        recorder.block(|latest_ns| {
            let _ = futex::wait_until(&barrier.times, seen, latest_ns);
            barrier.times.load(Ordering::Acquire) != seen
        })
    }

    /// Waits until a task has done its job of this number (from 0).
    pub(super) fn await_job<C: MeasuringCounter>(
        &mut self,
        task: usize,
        number: u64,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let shared = Arc::clone(&self.shared);
        let Some(done) = shared.done.get(task) else { return RecordingEnd::Done };
        await_count(done, number, recorder)
    }

    /// Waits until this start was made more often than `number`.
    pub(super) fn await_fork<C: MeasuringCounter>(
        &mut self,
        start: usize,
        number: u32,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let shared = Arc::clone(&self.shared);
        let Some(starts) = shared.forks.get(start) else { return RecordingEnd::Done };
        let ended = await_count(starts, number.into(), recorder);
        if ended == RecordingEnd::Done {
            self.begin(recorder.now(), recorder);
        }
        ended
    }

    /// The thread begins now, if it has not begun: its first job arrives, its timers count from here.
    fn begin<C: MeasuringCounter>(&mut self, now: u64, recorder: &mut Recorder<C>) {
        if self.origin.is_none() {
            self.origin = Some(now);
            recorder.forget_job();
            recorder.begin_job(now);
        }
    }

    pub(super) fn fork<C: MeasuringCounter>(
        &mut self,
        start: usize,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        if let Some(starts) = self.shared.forks.get(start) {
            starts.count();
        }
        recorder.touch()
    }

    /// Waits until this long after the thread's start, if that is not past.
    pub(super) fn start_after<C: MeasuringCounter>(
        &mut self,
        time: Span,
        recorder: &mut Recorder<C>,
    ) -> RecordingEnd {
        let due = recorder.start().saturating_add(recorder.timeline().ticks_at_least(time));
        let is_past = self.origin.is_some() || recorder.now() >= due;
        let ended = if is_past { recorder.touch() } else { recorder.wait_until(due) };
        if ended == RecordingEnd::Done {
            self.begin(due, recorder);
        }
        ended
    }

    /// Waits for the next expiry of a timer, which comes back; `None` when the time is over. As
    /// rt-app has it, a timer whose expiry is past does not wait, and a relative one then counts
    /// from now.
    pub(super) fn await_timer<C: MeasuringCounter>(
        &mut self,
        timer: usize,
        period_ns: u64,
        absolute: bool,
        recorder: &mut Recorder<C>,
    ) -> Option<u64> {
        let timer = self.shared.timers.get(timer)?;
        let timeline = *recorder.timeline();
        let since_start = |ticks: u64| timeline.ns_at(ticks).max(0).unsigned_abs();
        let start = self.origin.unwrap_or(recorder.start());
        let due_ns = timer.next(since_start(start), period_ns);
        let due = timeline.ticks_at(due_ns);
        if recorder.now() >= due && !absolute {
            timer.restart(since_start(recorder.now()));
        }
        (recorder.wait_until(due) == RecordingEnd::Done).then_some(due)
    }
}

/// Waits until something was counted more than `number` times.
fn await_count<C: MeasuringCounter>(
    done: &JobCounter,
    number: u64,
    recorder: &mut Recorder<C>,
) -> RecordingEnd {
    let is_done = |jobs: u32| u64::from(jobs) > number;
    if is_done(done.jobs.load(Ordering::Acquire)) {
        return recorder.touch();
    }
    recorder.block(|latest_ns| {
        let jobs = done.jobs.load(Ordering::Acquire);
        if !is_done(jobs) {
            let _ = futex::wait_until(&done.jobs, jobs, latest_ns);
        }
        is_done(done.jobs.load(Ordering::Acquire))
    })
}
