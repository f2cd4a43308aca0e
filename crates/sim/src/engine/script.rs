//! Threads that follow a script.
//!
//! Owns: where each of them is, what they share, act after act; their jobs. Must not: choose who runs, keep
//! locks (the machine's are used).
//!
//! A thread acts while it has a CPU, one act after the other at one instant. After an act that wakes another one,
//! CPUs are given out again before it goes on.

use std::collections::VecDeque;

use super::super::error::SimError;
use super::super::script::{self, MOST_IDLE_ROUNDS, ROUND, Script, SimStep};
use super::super::system::System;
use super::super::thread::Class;
use super::SimState;
use super::fair::Share;
use super::script_jobs::job;

/// Threads that follow scripts, and what they share; of each, who waits for it, first come first.
#[derive(Clone, Debug, Default)]
pub(super) struct Scripts {
    /// Cursors by thread; empty where no thread has a script.
    cursors: Vec<Option<Box<Cursor>>>,
    pub(super) events: Vec<VecDeque<usize>>,
    pub(super) semaphores: Vec<VecDeque<usize>>,
    /// The count of each semaphore.
    pub(super) left: Vec<u64>,
    pub(super) barriers: Vec<VecDeque<usize>>,
    pub(super) parties: Vec<u64>,
    pub(super) starts: Vec<VecDeque<usize>>,
    /// How often each start was made.
    pub(super) made: Vec<u64>,
    /// When each timer last expired; `None` before that.
    pub(super) timers: Vec<Option<u64>>,
}

/// The position of a thread in its script.
#[derive(Clone, Debug)]
pub(super) struct Cursor {
    pub(super) script: Script,
    pub(super) phase: usize,
    pub(super) act: usize,
    /// Rounds of the phase, and of all phases, that are behind it.
    pub(super) phase_rounds: u64,
    pub(super) rounds: u64,
    /// Whether the phase has been entered.
    pub(super) entered: bool,
    pub(super) mask: u128,
    pub(super) origin: Option<u64>,
    pub(super) doing: TimerPurpose,
    /// The lock that it is to take before its next act.
    pub(super) wants: Option<usize>,
    /// Locks that it has besides the last one.
    pub(super) outer: Vec<usize>,
    /// The arrival of the job at hand; `None` between jobs.
    pub(super) arrival: Option<u64>,
    /// Whether that job has executed anything.
    pub(super) worked: bool,
    /// Whether a job begins when what it waits for comes.
    pub(super) begins: bool,
    /// The arrival of the last job.
    pub(super) last_arrival: u64,
    /// Rounds in turn that took no time, and until when.
    pub(super) idle_rounds: u64,
    pub(super) idle_at: u64,
}

/// The purpose of a timer of the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TimerPurpose {
    /// The thread has not started.
    Nothing,
    /// The thread goes from act to act, or executes, or waits for others.
    Acting,
    /// The thread executes until its timer expires.
    Passing,
    /// It sleeps until its timer expires; what began its job then, or the thread itself.
    Sleeping {
        arrival: u64,
    },
    Over,
}

/// How an act leaves the thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StepFlow {
    Next,
    /// The thread goes on, unless another one is to run.
    Look,
    /// The thread executes, or waits.
    Stop,
}

impl Scripts {
    pub(super) fn of(system: &System) -> Scripts {
        if system.threads.iter().all(|thread| thread.script.is_none()) {
            return Scripts::default();
        }
        let shared = script::shared(system);
        let cursors = system.threads.iter().map(|thread| {
            let own = super::super::check::mask(thread, system.cpus);
            thread.script.clone().map(|script| Box::new(Cursor::new(script, own)))
        });
        Scripts {
            cursors: cursors.collect(),
            events: vec![VecDeque::new(); shared.events],
            semaphores: vec![VecDeque::new(); shared.semaphores],
            left: vec![0; shared.semaphores],
            barriers: vec![VecDeque::new(); system.barriers.len()],
            parties: system.barriers.iter().map(|parties| u64::from(*parties)).collect(),
            starts: vec![VecDeque::new(); shared.starts],
            made: vec![0; shared.starts],
            timers: vec![None; shared.timers],
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.cursors.is_empty()
    }

    #[inline]
    pub(super) fn has(&self, thread: usize) -> bool {
        self.cursors.get(thread).is_some_and(Option::is_some)
    }

    /// The position of a thread in its script.
    pub(super) fn cursor(&self, thread: usize) -> Option<&Cursor> {
        self.cursors.get(thread)?.as_deref()
    }

    /// When a thread with a script starts.
    pub(super) fn start(&self, thread: usize) -> Option<u64> {
        Some(self.cursor(thread)?.script.start)
    }
}

impl Cursor {
    fn new(script: Script, mask: u128) -> Cursor {
        Cursor {
            script,
            phase: 0,
            act: 0,
            phase_rounds: 0,
            rounds: 0,
            entered: false,
            mask,
            origin: None,
            doing: TimerPurpose::Nothing,
            wants: None,
            outer: Vec::new(),
            arrival: None,
            worked: false,
            begins: false,
            last_arrival: 0,
            idle_rounds: 0,
            idle_at: 0,
        }
    }

    /// Whether a round that ends now is one too many that took no time.
    fn is_idle(&mut self, now: u64) -> bool {
        if now > self.idle_at {
            (self.idle_at, self.idle_rounds) = (now, 0);
        }
        self.idle_rounds += 1;
        self.idle_rounds > MOST_IDLE_ROUNDS
    }
}

impl<const TELL: bool> SimState<TELL> {
    pub(super) fn cursor(&mut self, thread: usize) -> Option<&mut Cursor> {
        self.scripts.cursors.get_mut(thread)?.as_deref_mut()
    }

    /// The timer of a thread with a script: it starts, a sleep is over, or the time of an act.
    pub(super) fn script_timer(&mut self, thread: usize) -> Result<(), SimError> {
        let now = self.now;
        let Some(cursor) = self.cursor(thread) else { return Ok(()) };
        match std::mem::replace(&mut cursor.doing, TimerPurpose::Acting) {
            TimerPurpose::Nothing => {
                cursor.arrival = Some(now);
                cursor.last_arrival = now;
                self.runners[thread].job = Some(job(0, now));
                self.set_due(thread);
                self.wake(thread)
            }
            TimerPurpose::Passing => {
                let runner = &mut self.runners[thread];
                let (domain, cpu) = (runner.domain, runner.cpu);
                if let Some(job) = &mut runner.job {
                    job.remaining = 0;
                    job.point = 0;
                }
                if let Some(cpu) = cpu {
                    self.cpus[cpu].stale = true;
                }
                self.soil(domain);
                Ok(())
            }
            TimerPurpose::Sleeping { arrival } => self.resumes(thread, arrival),
            other => {
                cursor.doing = other;
                Ok(())
            }
        }
    }

    /// What a thread waited for has come, brought about by a job that arrived then.
    pub(super) fn resumes(&mut self, thread: usize, arrival: u64) -> Result<(), SimError> {
        if self.cursor(thread).is_some_and(|cursor| std::mem::take(&mut cursor.begins)) {
            self.begin_job(thread, arrival);
        }
        self.wake(thread)
    }

    /// A thread with a script has a CPU and executes nothing: it goes on with its next acts.
    pub(super) fn follow_script(&mut self, thread: usize) -> Result<(), SimError> {
        loop {
            if let Some(lock) = self.cursor(thread).and_then(|cursor| cursor.wants)
                && !self.take_lock(thread, lock)?
            {
                return Ok(());
            }
            let (act, fresh) = match self.next_act(thread)? {
                Some(found) => found,
                None => return Ok(()),
            };
            let then = match (act, fresh) {
                (_, true) => self.enter_phase(thread)?,
                (Some(act), _) => self.perform(thread, act)?,
                (None, _) => StepFlow::Next,
            };
            if then != StepFlow::Next {
                return Ok(());
            }
        }
    }

    /// The next act; or that a phase begins; or nothing, a round being over. `None` if the thread
    /// executes or has ended.
    fn next_act(&mut self, thread: usize) -> Result<Option<(Option<SimStep>, bool)>, SimError> {
        let now = self.now;
        let Some(cursor) = self.cursor(thread) else { return Ok(None) };
        let Some(phase) = cursor.script.phases.get(cursor.phase) else {
            cursor.rounds = cursor.rounds.saturating_add(1);
            let is_over = cursor.script.loops.is_some_and(|loops| cursor.rounds >= loops);
            let idle = cursor.is_idle(now);
            (cursor.phase, cursor.entered) = (0, false);
            if is_over || cursor.script.phases.is_empty() {
                self.end_script(thread)?;
                return Ok(None);
            }
            return Ok(self.goes_round(thread, idle).then_some((None, false)));
        };
        if !cursor.entered {
            let is_empty = cursor.script.loops == Some(0) || phase.loops == Some(0);
            if is_empty {
                cursor.phase += 1;
                return Ok(Some((None, false)));
            }
            (cursor.entered, cursor.act, cursor.phase_rounds) = (true, 0, 0);
            return Ok(Some((None, true)));
        }
        if let Some(act) = phase.acts.get(cursor.act) {
            cursor.act += 1;
            return Ok(Some((Some(*act), false)));
        }
        cursor.act = 0;
        cursor.phase_rounds = cursor.phase_rounds.saturating_add(1);
        if phase.loops.is_some_and(|loops| cursor.phase_rounds >= loops) {
            cursor.phase += 1;
            cursor.entered = false;
        }
        let idle = cursor.is_idle(now);
        Ok(self.goes_round(thread, idle).then_some((None, false)))
    }

    /// Whether a thread goes on at once after a round; else it executes for [`ROUND`].
    fn goes_round(&mut self, thread: usize, idle: bool) -> bool {
        if idle {
            let until = self.now.saturating_add(ROUND);
            if let Some(cursor) = self.cursor(thread) {
                cursor.idle_at = until;
            }
            self.execute(thread, ROUND.saturating_mul(self.rates.scale));
        }
        !idle
    }

    /// The class and the CPUs of a phase.
    fn enter_phase(&mut self, thread: usize) -> Result<StepFlow, SimError> {
        let Some(cursor) = self.cursor(thread) else { return Ok(StepFlow::Next) };
        let Some(phase) = cursor.script.phases.get(cursor.phase) else { return Ok(StepFlow::Next) };
        let own = cursor.mask;
        let mask = match phase.cpus[..] {
            [] => own,
            _ => phase.cpus.iter().fold(0u128, |mask, cpu| mask | (1 << *cpu)),
        };
        let class = phase.class;
        let runner = &mut self.runners[thread];
        // A thread in a server stays in it.
        let class = class.filter(|class| *class != runner.class && runner.server.is_none());
        if mask == runner.mask && class.is_none() {
            return Ok(StepFlow::Next);
        }
        runner.mask = mask;
        if let Some(class) = class {
            self.make_unready(thread)?;
            let nice = match class {
                Class::Fair(nice) => Some(nice),
                Class::Idle => None,
                _ => Some(0),
            };
            let share = Share::new(nice, self.slice);
            let quantum = self.quantum;
            let runner = &mut self.runners[thread];
            (runner.class, runner.share, runner.quantum) = (class, share, quantum);
            self.make_ready(thread)?;
        }
        let domain = self.runners[thread].domain;
        self.soil(domain);
        Ok(StepFlow::Look)
    }

    fn perform(&mut self, thread: usize, act: SimStep) -> Result<StepFlow, SimError> {
        let begins = self.cursor(thread).is_some_and(|cursor| cursor.script.begins_job(act));
        if begins {
            self.finish_job(thread)?;
        }
        if let Some(cursor) = self.cursor(thread) {
            cursor.begins = begins;
        }
        let now = self.now;
        match act {
            SimStep::Run(0) => Ok(self.works(thread)),
            SimStep::Run(time) => {
                let units = time.checked_mul(self.rates.scale);
                let units = units.ok_or(SimError::Overflow { thread })?;
                self.works(thread);
                self.execute(thread, units);
                Ok(StepFlow::Stop)
            }
            SimStep::RunFor(0) => Ok(self.works(thread)),
            SimStep::RunFor(time) => {
                self.works(thread);
                self.execute(thread, u64::MAX);
                let until = now.saturating_add(time);
                self.set_doing(thread, TimerPurpose::Passing);
                self.timers.set(self.slots.wake + thread, until);
                Ok(StepFlow::Stop)
            }
            SimStep::Sleep(0) => Ok(StepFlow::Next),
            SimStep::Sleep(time) => {
                let due = now.checked_add(time).ok_or(SimError::TimeOverflow)?;
                self.sleep_until(thread, due, due)
            }
            SimStep::Timer { timer, period, absolute } => {
                self.await_timer(thread, timer, period, absolute)
            }
            SimStep::StartAt(time) => self.start_at(thread, time),
            SimStep::Lock(lock) => {
                self.set_wants(thread, lock);
                Ok(StepFlow::Next)
            }
            SimStep::Unlock(lock) => self.release_lock(thread, lock),
            SimStep::Yield => Ok(self.step_back(thread)),
            _ => self.meet(thread, act),
        }
    }

    pub(super) fn set_doing(&mut self, thread: usize, doing: TimerPurpose) {
        if let Some(cursor) = self.cursor(thread) {
            cursor.doing = doing;
        }
    }

    pub(super) fn set_wants(&mut self, thread: usize, lock: usize) {
        if let Some(cursor) = self.cursor(thread) {
            cursor.wants = Some(lock);
        }
    }

    /// The thread executes `units` of work.
    fn execute(&mut self, thread: usize, units: u64) {
        if let Some(job) = &mut self.runners[thread].job {
            (job.remaining, job.cost, job.point) = (units, units, 0);
        }
    }

    fn sleep_until(&mut self, thread: usize, due: u64, arrival: u64) -> Result<StepFlow, SimError> {
        // Wake-ups are delayed until a tick, as releases are.
        let now = self.now;
        let coming = self.runners[thread].releases.next_release(due, now);
        let wake = coming.map_or(due, |coming| coming.release).max(now);
        self.set_doing(thread, TimerPurpose::Sleeping { arrival });
        self.timers.set(self.slots.wake + thread, wake);
        self.make_unready(thread)?;
        Ok(StepFlow::Stop)
    }

    /// The next expiry of a timer. One that is past is not waited for, and a relative timer then
    /// counts from now.
    fn await_timer(
        &mut self,
        thread: usize,
        timer: usize,
        period: u64,
        absolute: bool,
    ) -> Result<StepFlow, SimError> {
        let now = self.now;
        let start = self.cursor(thread).map_or(0, |c| c.origin.unwrap_or(c.script.start));
        let last = self.scripts.timers[timer].unwrap_or(start);
        let due = last.checked_add(period).ok_or(SimError::TimeOverflow)?;
        self.scripts.timers[timer] = Some(due);
        if now < due {
            return self.sleep_until(thread, due, due);
        }
        if !absolute {
            self.scripts.timers[timer] = Some(now);
        }
        if self.cursor(thread).is_some_and(|cursor| std::mem::take(&mut cursor.begins)) {
            self.begin_job(thread, due);
        }
        Ok(StepFlow::Next)
    }

    fn start_at(&mut self, thread: usize, time: u64) -> Result<StepFlow, SimError> {
        let now = self.now;
        let Some(cursor) = self.cursor(thread) else { return Ok(StepFlow::Next) };
        if cursor.origin.is_some() {
            return Ok(StepFlow::Next);
        }
        self.begin_thread(thread, time.max(now));
        if time <= now { Ok(StepFlow::Next) } else { self.sleep_until(thread, time, time) }
    }

    /// The thread begins then, if it has not begun: its first job arrives, its timers count from there.
    pub(super) fn begin_thread(&mut self, thread: usize, at: u64) {
        let Some(cursor) = self.cursor(thread) else { return };
        if cursor.origin.is_none() {
            cursor.origin = Some(at);
            self.begin_job(thread, at);
        }
    }

    /// Goes behind equals.
    fn step_back(&mut self, thread: usize) -> StepFlow {
        let turn = self.next_turn();
        self.runners[thread].fifo_order = turn;
        self.rank_again(thread);
        if self.runners[thread].is_fair() {
            self.renew_slice(thread);
        }
        let domain = self.runners[thread].domain;
        self.soil(domain);
        StepFlow::Look
    }
}
