//! What a thread does act by act, instead of jobs whose needs are known when they come.
//!
//! Owns: the forms ([`Script`], [`SimStep`]), and what is refused of them. Must not: execute them.
//!
//! A script is how a program with waits is simulated: it executes, sleeps, waits for timers, locks, events,
//! barriers and semaphores, and starts others. The acts themselves take no time. Where rounds of a script
//! take no time for ever, each takes [`ROUND`], so that a simulation ends.

use hourglass_tasks::JobTrigger;

use super::error::SimError;
use super::system::System;
use super::thread::{ArrivalPattern, Class, Thread};

/// The acts of a thread from its start to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Script {
    /// When it starts, ns.
    pub start: u64,
    /// How often all phases are gone through; for ever without a number.
    pub loops: Option<u64>,
    pub phases: Vec<SimPhase>,
    /// The event with which a job begins.
    pub beginning: JobTrigger,
}

/// A part of a script that is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimPhase {
    /// How often it is gone through before the next; for ever without a number.
    pub loops: Option<u64>,
    /// The class that the thread takes when the phase begins; without it, the one that it has.
    pub class: Option<Class>,
    /// The CPUs that it may use in the phase; empty for those of the thread.
    pub cpus: Vec<u32>,
    pub acts: Vec<SimStep>,
}

/// One thing to do. Events, barriers, semaphores, timers and starts are known by numbers of their own kind
/// from 0, which the threads of a system share; locks are its resources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimStep {
    /// Executes this work, ns of a CPU that is not shared.
    Run(u64),
    /// Executes until this time has passed, ns, and then goes on as soon as it has a CPU.
    RunFor(u64),
    /// Sleeps for this time, ns.
    Sleep(u64),
    /// Sleeps until a period after the last expiry of the timer; the first counts from the thread's start.
    Timer {
        timer: usize,
        /// The time between two expiries, ns.
        period: u64,
        /// Whether late expiries are caught up with, rather than counted anew from the late one.
        absolute: bool,
    },
    /// Takes the lock of this resource. One that it has is left so.
    Lock(usize),
    /// Gives it back, if it has it.
    Unlock(usize),
    /// Gives the lock back, waits for the event, and takes the lock again.
    Wait { event: usize, lock: usize },
    /// Waits for the event.
    Suspend(usize),
    /// Wakes the first of the most urgent threads that wait for the event.
    Signal(usize),
    /// Wakes all that wait for the event.
    Broadcast(usize),
    /// Waits until the number of threads in [`System::barriers`] have come to the barrier.
    Barrier(usize),
    /// Takes one from the semaphore, which is 0 in the beginning; waits until there is one.
    Take(usize),
    /// Adds one to the semaphore, or wakes who waits for one.
    Post(usize),
    /// Goes behind equals.
    Yield,
    /// Makes a start of this number: the threads that wait for it begin, each with one of its own.
    Fork(usize),
    /// Waits until this start was made more often than `number`, and begins with that.
    Forked {
        start: usize,
        /// How many starts are others'.
        number: u64,
    },
    /// Waits until this instant, ns, if the thread has not begun; it begins with that.
    StartAt(u64),
}

/// The longest that a round of a script takes which takes no time by what it says, ns.
pub const ROUND: u64 = 1_000;

/// Maximum number of successive rounds that take no time.
pub(super) const MOST_IDLE_ROUNDS: u64 = 1_000;

/// How many there are of what scripts share.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ScriptObjects {
    pub(super) events: usize,
    pub(super) semaphores: usize,
    pub(super) timers: usize,
    pub(super) starts: usize,
}

/// Numbers of a kind that scripts may use; so that memory has a bound.
const MOST: usize = 1 << 20;

impl Script {
    fn acts(&self) -> impl Iterator<Item = &SimStep> {
        self.phases.iter().flat_map(|phase| &phase.acts)
    }

    /// Whether the job at hand ends before this act and the next begins after it.
    pub(super) fn begins_job(&self, act: SimStep) -> bool {
        match (self.beginning, act) {
            (JobTrigger::Timer, SimStep::Timer { period, .. }) => period > 0,
            (JobTrigger::Sleep, SimStep::Sleep(time)) => time > 0,
            (JobTrigger::Event, SimStep::Wait { .. } | SimStep::Suspend(_)) => true,
            (JobTrigger::Event, SimStep::Barrier(_) | SimStep::Take(_)) => true,
            _ => false,
        }
    }
}

pub(super) fn shared(system: &System) -> ScriptObjects {
    let mut shared = ScriptObjects::default();
    let scripts = system.threads.iter().filter_map(|thread| thread.script.as_ref());
    for act in scripts.flat_map(Script::acts) {
        let (count, number) = match act {
            SimStep::Wait { event, .. } | SimStep::Suspend(event) => (&mut shared.events, *event),
            SimStep::Signal(event) | SimStep::Broadcast(event) => (&mut shared.events, *event),
            SimStep::Take(semaphore) | SimStep::Post(semaphore) => {
                (&mut shared.semaphores, *semaphore)
            }
            SimStep::Timer { timer, .. } => (&mut shared.timers, *timer),
            SimStep::Fork(start) | SimStep::Forked { start, .. } => (&mut shared.starts, *start),
            _ => continue,
        };
        *count = (*count).max(number.saturating_add(1));
    }
    shared
}

/// Refuses scripts that make no sense.
pub(super) fn check(system: &System) -> Result<(), SimError> {
    for (position, thread) in system.threads.iter().enumerate() {
        if let Some(script) = &thread.script {
            check_one(position, thread, script, system)?;
        }
    }
    let ScriptObjects { events, semaphores, timers, starts } = shared(system);
    let most = events.max(semaphores).max(timers).max(starts);
    if most > MOST { Err(SimError::Dangling { thread: 0, what: "event" }) } else { Ok(()) }
}

fn check_one(
    position: usize,
    thread: &Thread,
    script: &Script,
    system: &System,
) -> Result<(), SimError> {
    let dangling = |what| Err(SimError::Dangling { thread: position, what });
    let arrives = thread.arrivals != ArrivalPattern::Listed(Vec::new());
    if arrives || !thread.after.is_empty() || !thread.marks.is_empty() {
        return Err(SimError::Script(position));
    }
    for phase in &script.phases {
        if let Some(cpu) = phase.cpus.iter().find(|cpu| **cpu >= system.cpus) {
            return Err(SimError::UnknownCpu(*cpu));
        }
        if let Some(Class::Fair(nice)) = phase.class
            && !(-20..=19).contains(&nice)
        {
            return Err(SimError::Nice(position));
        }
    }
    for act in script.acts() {
        match act {
            SimStep::Lock(lock) | SimStep::Unlock(lock) | SimStep::Wait { lock, .. }
                if *lock >= system.resources.len() =>
            {
                return dangling("resource");
            }
            SimStep::Barrier(barrier) if *barrier >= system.barriers.len() => {
                return dangling("barrier");
            }
            _ => {}
        }
    }
    Ok(())
}

/// The CPUs that a thread may use in some phase, one bit each, besides its own.
pub(super) fn mask(thread: &Thread) -> u128 {
    let phases = thread.script.iter().flat_map(|script| &script.phases);
    phases.flat_map(|phase| &phase.cpus).fold(0, |mask, cpu| mask | (1 << *cpu))
}
