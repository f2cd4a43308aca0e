//! Executes a system, event by event.
//!
//! Owns: the machine's state, the order of what happens at an instant. Must not: allocate for each
//! event, round what is left of anything.
//!
//! At every event the CPUs that it touches are accounted up to it, so that what follows may change rates,
//! drains and threads without looking back: those of the domain, or all where CPUs of different domains
//! influence each other by locks, shared cores or a monitor.

mod account;
mod build;
mod context_switch;
mod fair;
mod finish;
mod jobs;
mod locks;
pub(crate) mod monitor;
mod monitor_view;
mod pick_next;
mod queue;
mod script;
mod script_jobs;
mod servers;
mod state;
mod sync;
mod timers;

use super::error::SimError;
use super::interference::Rates;
use super::outcome::SimOutcome;
use super::settings::SimSettings;
use super::sink::{Event, Sink, SinkDetail, Slice};
use super::system::{Overheads, System, Throttling};
pub(super) use jobs::MOST_WAITING;
use monitor::{CallReasons, MOST_LOOKS, Monitor, MonitorOrder};
use pick_next::Candidate;
use script::Scripts;
use state::{Cpu, CpuDomain, Lock, ServerState, ThreadState};
use timers::{NEVER, TimerHeap};

/// Rounds at one instant after which a monitor is taken to set its timer to the same instant for
/// ever.
const MOST_STILL: u32 = 1 << 20;

/// The sink is asked whether to go on after this number of rounds: some thousand times a second.
const ROUNDS_TO_ASK: u32 = 1 << 12;

/// Number of slices and events that the sink gets at once.
const FLUSH_AT: usize = 256;

#[derive(Clone, Copy, Debug)]
enum SinkEvent {
    Ran(Slice),
    Happened(u64, Event),
}

/// The state of a simulation. `TELL` says whether the sink wants slices or events.
#[derive(Clone, Debug)]
pub(super) struct SimState<const TELL: bool> {
    now: u64,
    horizon: u64,
    events: u64,
    max_events: u64,
    runners: Vec<ThreadState>,
    cpus: Vec<Cpu>,
    servers: Vec<ServerState>,
    locks: Vec<Lock>,
    scripts: Scripts,
    domains: Vec<CpuDomain>,
    timers: TimerHeap,
    slots: Slots,
    rates: Rates,
    overheads: Overheads,
    throttling: Option<Throttling>,
    /// What deadlines may use of a CPU, in 2^-20.
    most_bandwidth: u64,
    quantum: u64,
    slice: u64,
    /// Numbers who came first.
    turns: u64,
    reasons: CallReasons,
    expired: Vec<bool>,
    /// Domains whose CPUs must be given out again, a bit each.
    dirty: u128,
    /// Whether CPUs of different domains do not influence each other.
    apart: bool,
    /// Whether every thread may use every CPU of its mask at any time: no monitor closes a CPU, no thread is throttled.
    open: bool,
    /// When something is to be done on each CPU.
    ends: Vec<u64>,
    sink_events: Vec<SinkEvent>,
    /// Whether the sink gets events besides slices.
    tells_events: bool,
    candidates: Vec<Candidate>,
    winners: Vec<Option<usize>>,
    displaced: Vec<usize>,
    coming: Vec<usize>,
}

/// Which timer stands for what, in the order in which they expire at one instant.
#[derive(Clone, Copy, Debug)]
struct Slots {
    replenish: usize,
    zero_lag: usize,
    throttle: usize,
    wake: usize,
    release: usize,
    tick: usize,
    monitor: usize,
    end: usize,
}

pub(super) fn run<M: Monitor>(
    system: &System,
    settings: SimSettings,
    sink: &mut dyn Sink,
    monitor: &mut M,
) -> Result<SimOutcome, SimError> {
    let interest = sink.interest();
    if interest == SinkDetail::Nothing {
        SimState::<false>::build(system, settings, monitor.timers())?.run(sink, monitor)
    } else {
        let mut machine = SimState::<true>::build(system, settings, monitor.timers())?;
        machine.tells_events = interest == SinkDetail::Everything;
        machine.run(sink, monitor)
    }
}

impl<const TELL: bool> SimState<TELL> {
    fn run<M: Monitor>(
        mut self,
        sink: &mut dyn Sink,
        monitor: &mut M,
    ) -> Result<SimOutcome, SimError> {
        let mut given = Vec::new();
        self.open &= !M::ACTIVE;
        if M::ACTIVE {
            // The monitor is called before anything runs, so that it can set its first timer.
            self.call_monitor(monitor, &mut given)?;
        }
        let (mut still, mut rounds) = (0u32, 0u32);
        loop {
            let ends = self.ends.iter().copied().min().unwrap_or(NEVER);
            let next = self.timers.first().0.min(ends);
            if next > self.horizon || (next == self.horizon && ends > next) || next == NEVER {
                break;
            }
            if M::ACTIVE {
                still = if next == self.now { still + 1 } else { 0 };
                if still > MOST_STILL {
                    return Err(SimError::Restless { at: next });
                }
            }
            self.now = next;
            if !self.apart {
                self.bring_up_all();
            }
            if ends == next {
                for cpu in 0..self.cpus.len() {
                    if self.ends[cpu] == next {
                        self.count_event()?;
                        self.end_on(cpu)?;
                    }
                }
            }
            if next < self.horizon {
                self.expire()?;
            }
            self.give_out();
            if M::ACTIVE {
                self.consult(monitor, &mut given)?;
            }
            if self.sink_events.len() >= FLUSH_AT {
                self.flush(sink);
            }
            rounds = rounds.wrapping_add(1);
            if rounds.is_multiple_of(ROUNDS_TO_ASK) && !self.continue_run(sink) {
                self.horizon = self.now;
                break;
            }
        }
        let horizon = self.horizon;
        self.now = horizon;
        self.bring_up_all();
        let outcome = self.finish();
        self.flush(sink);
        Ok(outcome)
    }

    /// Whether the sink wants more.
    fn continue_run(&mut self, sink: &mut dyn Sink) -> bool {
        self.flush(sink);
        sink.reached(self.now)
    }

    fn expire(&mut self) -> Result<(), SimError> {
        loop {
            let (at, slot) = self.timers.first();
            if at > self.now || at == NEVER {
                return Ok(());
            }
            self.count_event()?;
            let slots = self.slots;
            let is_release = (slots.release..slots.tick).contains(&slot);
            if !is_release {
                self.timers.set(slot, NEVER);
            }
            match slot {
                _ if slot >= slots.monitor => {
                    self.expired[slot - slots.monitor] = true;
                    self.reasons.timer = true;
                }
                _ if slot >= slots.tick => self.tick(),
                // The source sets its timer to the next one.
                _ if is_release => {
                    let thread = slot - slots.release;
                    self.bring_up(self.runners[thread].domain);
                    self.release_timer(thread)?;
                }
                _ if slot >= slots.wake => {
                    let thread = slot - slots.wake;
                    self.bring_up(self.runners[thread].domain);
                    if self.scripts.has(thread) {
                        self.script_timer(thread)?;
                    } else {
                        self.wake(thread)?;
                    }
                }
                _ if slot >= slots.throttle => self.unthrottle(),
                _ if slot >= slots.zero_lag => {
                    let server = slot - slots.zero_lag;
                    self.bring_up(self.servers[server].domain);
                    self.end_of_lag(server);
                }
                _ => {
                    self.bring_up(self.servers[slot].domain);
                    self.replenish(slot)?;
                }
            }
        }
    }

    /// Gives out CPUs wherever something has changed.
    fn give_out(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        while dirty != 0 {
            self.dispatch(dirty.trailing_zeros() as usize);
            dirty &= dirty - 1;
        }
    }

    /// Calls the monitor until nothing changes any more.
    fn consult<M: Monitor>(
        &mut self,
        monitor: &mut M,
        given: &mut Vec<MonitorOrder>,
    ) -> Result<(), SimError> {
        let wanted = monitor.call_reasons();
        for _ in 0..MOST_LOOKS {
            if !self.reasons.meets(wanted) {
                self.reasons = CallReasons::default();
                return Ok(());
            }
            self.call_monitor(monitor, given)?;
        }
        Err(SimError::Restless { at: self.now })
    }

    fn call_monitor<M: Monitor>(
        &mut self,
        monitor: &mut M,
        given: &mut Vec<MonitorOrder>,
    ) -> Result<(), SimError> {
        self.consulted(monitor, given);
        self.reasons = CallReasons::default();
        self.expired.fill(false);
        self.obey(given)?;
        self.give_out();
        Ok(())
    }

    fn count_event(&mut self) -> Result<(), SimError> {
        self.events += 1;
        if self.events > self.max_events {
            return Err(SimError::TooManyEvents { events: self.max_events, at: self.now });
        }
        Ok(())
    }

    fn tell(&mut self, event: Event) {
        if TELL && self.tells_events {
            self.sink_events.push(SinkEvent::Happened(self.now, event));
        }
    }

    fn flush(&mut self, sink: &mut dyn Sink) {
        if TELL {
            for event in self.sink_events.drain(..) {
                match event {
                    SinkEvent::Ran(slice) => sink.ran(slice),
                    SinkEvent::Happened(at, event) => sink.event(at, event),
                }
            }
        }
    }

    fn next_turn(&mut self) -> u64 {
        self.turns += 1;
        self.turns
    }

    fn soil(&mut self, domain: usize) {
        // As many domains as CPUs at most, of which there are no more than bits.
        self.dirty |= 1 << domain;
    }
}
