//! Run-queue delays of threads, one by one, from the kernel's switches, wakings and migrations: when a thread could
//! run and had no CPU, and who had that CPU.
//!
//! Nothing is assumed of a thread before an event says where it is. After events were lost nothing is known of any
//! thread until its next one: a delay with a hole in it is no delay that was measured.

mod budget_ends;

use std::collections::BTreeMap;

use crate::model::Budget;
use crate::{IntervalStart, KernelEvent, KernelEventKind as Kind};
use hourglass_documents::document::{GapReport, OccupantReport};

use crate::GapStatistics;
pub use budget_ends::BudgetEnds;

/// `TASK_STOPPED` and `TASK_TRACED` of `sched_switch` (trace/events/sched.h).
const STOPPED_STATES: u64 = 0x4 | 0x8;
const NAMED: usize = 3;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delay {
    /// When it could run, ns from the run's start.
    pub from_ns: i64,
    pub to_ns: i64,
    /// The CPU on which it then ran, or for which it still waits.
    pub cpu: u32,
    /// Whether it had waited by its own will before; else the CPU was taken from it.
    pub after_wait: bool,
    /// Who had the CPU for which it waited, and for how long, ns: the longest first. 0 is the idle CPU.
    pub occupants: Vec<(u32, u64)>,
}

impl Delay {
    /// The time from start to end, ns.
    pub fn length_ns(&self) -> u64 {
        length(self.from_ns, self.to_ns)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunSegment {
    /// The start of the delay, ns from the run's start.
    pub from_ns: i64,
    pub to_ns: i64,
    pub cpu: u32,
    pub onset: IntervalStart,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DelayEvent {
    Ran(u32, RunSegment),
    Delayed(u32, Delay),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InitialState {
    Runnable(u32),
    Stopped,
    /// The thread waits by its own will, or its state is not known.
    Other,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    #[default]
    Unknown,
    /// It has the CPU or waits for it; which of the two the next switch there says.
    Either(u32),
    /// It waits by its own will; whether it was woken on the way to that wait.
    Waiting {
        woken_before: bool,
    },
    Stopped,
    Ready {
        after_wait: bool,
    },
    Running {
        cpu: u32,
        onset: IntervalStart,
    },
}

#[derive(Clone, Debug, Default)]
struct Thread {
    state: State,
    since_ns: i64,
    /// While it could run: for which CPU it waits, up to when that one's time is charged, to whom.
    waiting_for_cpu: u32,
    charged_ns: i64,
    ran: BTreeMap<u32, u64>,
    woken_while_running: bool,
    was_seen: bool,
    migrations: u64,
    missing: u64,
    stopped_ns: u64,
}

/// Follows threads through the kernel's events, which come in order of time.
#[derive(Clone, Debug, Default)]
pub struct Delays {
    threads: BTreeMap<u32, Thread>,
    current: BTreeMap<u32, u32>,
    lost: u64,
}

impl Delays {
    /// From here on the thread with the kernel's number `tid` is followed; at `ns` or right after it did as `first`
    /// says. Once is enough.
    pub fn follow(&mut self, tid: u32, ns: i64, first: InitialState) {
        self.threads.entry(tid).or_insert_with(|| Thread {
            state: match first {
                InitialState::Runnable(cpu) => State::Either(cpu),
                InitialState::Stopped => State::Stopped,
                InitialState::Other => State::Unknown,
            },
            since_ns: ns,
            ..Thread::default()
        });
    }

    pub fn migrations(&self, tid: u32) -> u64 {
        self.threads.get(&tid).map_or(0, |thread| thread.migrations)
    }

    /// For how long the thread was stopped up to `ns`, by a signal or a debugger.
    pub fn stopped_ns(&self, tid: u32, ns: i64) -> u64 {
        let Some(thread) = self.threads.get(&tid) else { return 0 };
        let open = if thread.state == State::Stopped { length(thread.since_ns, ns) } else { 0 };
        thread.stopped_ns.saturating_add(open)
    }

    pub fn lost(&self) -> u64 {
        self.lost
    }

    /// Switches of the threads that must have been and are not among the events, though none was lost: a thread left
    /// a CPU that it had not taken, or took one while it had one. What it did around them is not known.
    pub fn missing(&self) -> u64 {
        self.threads.values().map(|thread| thread.missing).fold(0, u64::saturating_add)
    }

    /// Takes the next event; `each` gets what it completes.
    pub fn event(&mut self, event: &KernelEvent, mut each: impl FnMut(DelayEvent)) {
        match event.kind {
            Kind::Switch => self.switch(event, &mut each),
            Kind::Waking => {
                if let Some(thread) = self.threads.get_mut(&event.a) {
                    thread.woken(event);
                }
            }
            Kind::Migrate => self.migrate(event),
            Kind::Lost => {
                self.lost = self.lost.saturating_add(event.value);
                self.current.clear();
                self.threads.values_mut().for_each(|thread| thread.state = State::Unknown);
            }
            _ => {}
        }
    }

    /// The end, at `ns`: `each` gets what lasts until then.
    pub fn end(&mut self, ns: i64, mut each: impl FnMut(DelayEvent)) {
        for (tid, thread) in &mut self.threads {
            match thread.state {
                State::Running { cpu, onset } => {
                    let stretch = RunSegment { from_ns: thread.since_ns, to_ns: ns, cpu, onset };
                    each(DelayEvent::Ran(*tid, stretch));
                }
                State::Ready { .. } => {
                    let current = self.current.get(&thread.waiting_for_cpu).copied();
                    thread.charge(current, ns);
                    let cpu = thread.waiting_for_cpu;
                    each(DelayEvent::Delayed(*tid, thread.delay(ns, cpu)));
                }
                _ => {}
            }
        }
    }

    fn switch(&mut self, event: &KernelEvent, each: &mut impl FnMut(DelayEvent)) {
        let KernelEvent { ns, cpu, a: left, b: took, .. } = *event;
        for (tid, thread) in &mut self.threads {
            if thread.state == State::Either(cpu) && ns >= thread.since_ns {
                let has_it = *tid == left;
                thread.settle(has_it, cpu);
            }
            if matches!(thread.state, State::Ready { .. }) && thread.waiting_for_cpu == cpu {
                thread.charge(Some(left), ns);
            }
        }
        if let Some(thread) = self.threads.get_mut(&left)
            && let Some(stretch) = thread.leave(event)
        {
            each(DelayEvent::Ran(left, stretch));
        }
        let elsewhere = |thread: &Thread| self.current.get(&thread.waiting_for_cpu).copied();
        if let Some(thread) = self.threads.get_mut(&took) {
            if matches!(thread.state, State::Ready { .. }) && thread.waiting_for_cpu != cpu {
                let current = elsewhere(thread);
                thread.charge(current, ns);
            }
            if let Some(delay) = thread.take(ns, cpu) {
                each(DelayEvent::Delayed(took, delay));
            }
        }
        self.current.insert(cpu, took);
    }

    fn migrate(&mut self, event: &KernelEvent) {
        let Some(thread) = self.threads.get_mut(&event.a) else { return };
        thread.migrations = thread.migrations.saturating_add(1);
        match thread.state {
            State::Ready { .. } => {
                let current = self.current.get(&thread.waiting_for_cpu).copied();
                thread.charge(current, event.ns);
                thread.waiting_for_cpu = event.b;
            }
            State::Either(_) => thread.state = State::Either(event.b),
            _ => {}
        }
    }
}

impl Thread {
    /// The first switch on the CPU where it was or waited says which of the two it did.
    fn settle(&mut self, has_it: bool, cpu: u32) {
        if has_it {
            self.state = State::Running { cpu, onset: IntervalStart::Start };
            self.was_seen = true;
        } else {
            self.ready(self.since_ns, cpu, false);
        }
    }

    fn ready(&mut self, ns: i64, cpu: u32, after_wait: bool) {
        self.state = State::Ready { after_wait };
        self.since_ns = ns;
        self.charged_ns = ns;
        self.waiting_for_cpu = cpu;
        self.ran.clear();
    }

    fn woken(&mut self, event: &KernelEvent) {
        match self.state {
            // Woken before it had gone to sleep: it may be switched out nevertheless.
            State::Running { .. } => self.woken_while_running = true,
            State::Ready { .. } => {}
            State::Stopped => {
                self.stopped_ns = self.stopped_ns.saturating_add(length(self.since_ns, event.ns));
                self.ready(event.ns, event.b, true);
            }
            State::Unknown | State::Either(_) | State::Waiting { .. } => {
                self.ready(event.ns, event.b, true);
            }
        }
    }

    fn leave(&mut self, event: &KernelEvent) -> Option<RunSegment> {
        let State::Running { cpu, onset } = self.state else {
            let unknown = matches!(self.state, State::Unknown | State::Either(_));
            self.missing = self.missing.saturating_add(u64::from(!unknown));
            self.away(event);
            return None;
        };
        let stretch = RunSegment { from_ns: self.since_ns, to_ns: event.ns, cpu, onset };
        self.away(event);
        Some(stretch)
    }

    fn away(&mut self, event: &KernelEvent) {
        self.was_seen = true;
        let woken_before = std::mem::take(&mut self.woken_while_running);
        match event.value {
            0 => self.ready(event.ns, event.cpu, false),
            state if state & STOPPED_STATES != 0 => self.state = State::Stopped,
            _ => self.state = State::Waiting { woken_before },
        }
        self.since_ns = event.ns;
    }

    fn take(&mut self, ns: i64, cpu: u32) -> Option<Delay> {
        let has_one = matches!(self.state, State::Running { .. });
        self.missing = self.missing.saturating_add(u64::from(has_one));
        let onset = match self.state {
            _ if !self.was_seen => IntervalStart::Start,
            State::Ready { after_wait: false } => IntervalStart::Gap,
            _ => IntervalStart::Wait,
        };
        let delay = match self.state {
            State::Ready { .. } => Some(self.delay(ns, cpu)),
            // The waking came before the switch that it is to end: it could run all the time.
            State::Waiting { woken_before: true } => {
                self.ready(self.since_ns, cpu, true);
                self.charge(None, ns);
                Some(self.delay(ns, cpu))
            }
            _ => None,
        };
        self.state = State::Running { cpu, onset };
        self.since_ns = ns;
        self.was_seen = true;
        self.woken_while_running = false;
        delay
    }

    /// Charges the time up to `ns` to the thread that had the CPU meanwhile.
    fn charge(&mut self, current: Option<u32>, ns: i64) {
        let passed = length(self.charged_ns, ns);
        self.charged_ns = self.charged_ns.max(ns);
        if let Some(current) = current.filter(|tid| *tid != KernelEvent::UNTOLD && passed > 0) {
            let sum = self.ran.entry(current).or_default();
            *sum = sum.saturating_add(passed);
        }
    }

    fn delay(&self, ns: i64, cpu: u32) -> Delay {
        let after_wait = matches!(self.state, State::Ready { after_wait: true });
        let ran = longest(&self.ran);
        Delay { from_ns: self.since_ns, to_ns: ns, cpu, after_wait, occupants: ran }
    }
}

fn longest(ran: &BTreeMap<u32, u64>) -> Vec<(u32, u64)> {
    let mut all: Vec<(u32, u64)> = ran.iter().map(|(tid, ns)| (*tid, *ns)).collect();
    all.sort_by_key(|(tid, ns)| (std::cmp::Reverse(*ns), *tid));
    all
}

fn length(from_ns: i64, to_ns: i64) -> u64 {
    u64::try_from(to_ns.saturating_sub(from_ns)).unwrap_or(0)
}

/// Sums the delays of one thread up. Memory does not grow with their number.
#[derive(Clone, Debug, Default)]
pub struct DelayTally {
    lengths: GapStatistics,
    /// How many delays came after the thread's own wait.
    pub after_wait: u64,
    ran: BTreeMap<u32, u64>,
    /// The first of the longest.
    pub worst: Option<Delay>,
    /// Whether that one began as a budget was used up.
    pub worst_by_budget: bool,
    /// Of a thread of the deadline class.
    pub budget_ends: Option<BudgetEnds>,
}

impl DelayTally {
    /// The thread has a budget of the deadline class from now on.
    pub fn reserve(&mut self, budget: Budget) {
        self.budget_ends.get_or_insert_with(|| BudgetEnds::of(budget)).change(budget);
    }

    /// What comes between its delays.
    pub fn ran(&mut self, segment: &RunSegment) {
        self.budget_ends.iter_mut().for_each(|ends| ends.ran(segment));
    }

    pub fn push(&mut self, delay: Delay) {
        let by_budget = self.budget_ends.as_mut().is_some_and(|ends| ends.delayed(&delay));
        self.lengths.push(delay.length_ns());
        self.after_wait = self.after_wait.saturating_add(u64::from(delay.after_wait));
        for (tid, ns) in &delay.occupants {
            let sum = self.ran.entry(*tid).or_default();
            *sum = sum.saturating_add(*ns);
        }
        if self.worst.as_ref().is_none_or(|worst| worst.length_ns() < delay.length_ns()) {
            (self.worst, self.worst_by_budget) = (Some(delay), by_budget);
        }
    }

    pub fn lengths(&self) -> GapReport {
        self.lengths.report()
    }

    /// The threads that had the CPU in all delays, the longest first.
    pub fn occupants(&self) -> Vec<(u32, u64)> {
        longest(&self.ran)
    }
}

pub fn named(ran: &[(u32, u64)], names: &BTreeMap<u32, String>) -> Vec<OccupantReport> {
    let report = |(tid, total_ns): &(u32, u64)| OccupantReport {
        thread: None,
        tid: Some(*tid),
        name: names.get(tid).filter(|_| *tid != 0).cloned(),
        total_ns: *total_ns,
    };
    ran.iter().take(NAMED).map(report).collect()
}

#[cfg(test)]
mod tests;
