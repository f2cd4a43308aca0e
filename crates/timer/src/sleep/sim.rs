//! A simulated machine to sleep on: virtual time, wake-ups of a chosen latency, preemptions.
//!
//! Deterministic from its seed. Hours pass in milliseconds, since nothing waits: a wait or a moment
//! of spinning moves the simulated clock to its end, or to what comes in between. Public, for users'
//! tests as for ours.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use hourglass_clock::source::SimSource;
use hourglass_time::Span;

use super::interrupt::Interrupter;
use super::mechanism::{LAST_NS, Mechanism, SchedClass, WakeReason, low_power_slice_ns};

/// How late some of the wake-ups are: evenly spread from one time to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LatencyDistribution {
    /// How many wake-ups are of this kind, against those of the others.
    pub weight: u32,
    /// Minimum, ns.
    pub from_ns: u64,
    /// Maximum, ns.
    pub to_ns: u64,
}

/// The CPU is taken from a spinning thread now and then.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preemptions {
    /// Mean CPU time between two of them, ns.
    pub every_ns: u64,
    /// Minimum, ns.
    pub from_ns: u64,
    /// Maximum, ns.
    pub to_ns: u64,
    /// Whether the scheduler did it and counts it, or an interrupt or a hypervisor.
    pub counted: bool,
}

/// What the machine does to its sleepers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// How late the kernel wakes, timer slack not included. None: never late.
    pub wake_ups: Vec<LatencyDistribution>,
    /// What a kernel wait takes of the CPU, ns.
    pub wait_cost_ns: u64,
    /// What happens to a spinning thread.
    pub preemptions: Option<Preemptions>,
}

impl Load {
    /// An idle machine of 2026: wake-ups 20 to 30 us late, one in fifty up to 50 us.
    #[must_use]
    pub fn idle() -> Load {
        Load {
            wake_ups: vec![
                LatencyDistribution { weight: 49, from_ns: 20_000, to_ns: 30_000 },
                LatencyDistribution { weight: 1, from_ns: 30_000, to_ns: 50_000 },
            ],
            wait_cost_ns: 15_000,
            preemptions: None,
        }
    }

    /// A machine where others run: wake-ups 80 to 200 us late, one in ten by milliseconds.
    #[must_use]
    pub fn busy() -> Load {
        Load {
            wake_ups: vec![
                LatencyDistribution { weight: 9, from_ns: 80_000, to_ns: 200_000 },
                LatencyDistribution { weight: 1, from_ns: 1_000_000, to_ns: 4_000_000 },
            ],
            wait_cost_ns: 20_000,
            preemptions: Some(Preemptions {
                every_ns: 20_000_000,
                from_ns: 1_000_000,
                to_ns: 4_000_000,
                counted: true,
            }),
        }
    }
}

#[derive(Clone, Debug)]
enum Event {
    Interrupt(Interrupter),
    /// A signal whose handler has nothing to do with the sleeper.
    Signal,
}

/// A simulated thread on a simulated machine.
pub struct SimMachine {
    time: Arc<SimSource>,
    state: u64,
    load: Load,
    plan: Vec<(u64, Event)>,
    next_preemption_ns: u64,
    /// The thread's policy.
    pub class: SchedClass,
    /// Where the thread runs.
    pub cpu: u32,
    slack_ns: u64,
    preemptions: u64,
    waits: u64,
    away_ns: u64,
    /// What the first question for the class after a wait takes, ns: the wait drove the sleeper's own
    /// code out of the caches.
    pub cold_ns: u64,
    is_cold: bool,
    /// What low-power waits (TPAUSE) are a multiple of, rounded up, ns; at least 1. `None`: there are none.
    pub quantum_ns: Option<u64>,
    /// Time spent in low-power waits, ns.
    pub low_power_ns: u64,
    /// How long a preemption waits for a thread that asks for that (rseq), ns.
    pub extension_ns: Option<u64>,
    asked: bool,
    extensions: u64,
}

/// The time between the end of a spin step and the deadline is spread over this, ns: as the
/// duration of a step.
const STEP_NS: u64 = 30;

impl SimMachine {
    /// A machine whose time is `time`, which the sleeper's clock MUST run on.
    #[must_use]
    pub fn new(time: Arc<SimSource>, seed: u64, load: Load) -> SimMachine {
        let mut machine = SimMachine {
            time,
            state: seed,
            load,
            plan: Vec::new(),
            next_preemption_ns: u64::MAX,
            class: SchedClass::OTHER,
            cpu: 0,
            slack_ns: 50_000,
            preemptions: 0,
            waits: 0,
            away_ns: 0,
            cold_ns: 0,
            is_cold: false,
            quantum_ns: None,
            low_power_ns: 0,
            extension_ns: None,
            asked: false,
            extensions: 0,
        };
        machine.plan_preemption();
        machine
    }

    /// From now on the machine does this.
    pub fn set_load(&mut self, load: Load) {
        self.load = load;
        self.plan_preemption();
    }

    /// How often one was granted; `None` while one is asked for.
    #[must_use]
    pub fn slice_extensions(&self) -> Option<u64> {
        (!self.asked).then_some(self.extensions)
    }

    /// The clock's counter stands still from now on, while true time goes on.
    pub fn stop_clock(&mut self) {
        self.time.stop();
    }

    /// At that time a sleeper is interrupted.
    pub fn interrupt_at(&mut self, at_ns: u64, interrupter: Interrupter) {
        self.apply_event(at_ns, Event::Interrupt(interrupter));
    }

    /// At that time a signal comes that has nothing to do with sleeping.
    pub fn signal_at(&mut self, at_ns: u64) {
        self.apply_event(at_ns, Event::Signal);
    }

    /// Lets the thread work for a while.
    pub fn work(&mut self, length_ns: u64) {
        let end = self.now().saturating_add(length_ns);
        while self.now() < end {
            self.run_until(end);
        }
        // What came while the CPU was away.
        while self.plan.first().is_some_and(|(at, _)| *at <= self.now()) {
            self.run_until(self.now());
        }
    }

    /// How often the kernel was entered to wait.
    #[must_use]
    pub fn waits(&self) -> u64 {
        self.waits
    }

    /// True time of the simulation, ns.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.time.true_time().nanos_or_zero()
    }

    fn apply_event(&mut self, at_ns: u64, event: Event) {
        let index = self.plan.partition_point(|(at, _)| *at <= at_ns);
        self.plan.insert(index, (at_ns, event));
    }

    fn advance_to(&self, to_ns: u64) {
        let by = to_ns.saturating_sub(self.now());
        self.time.advance(Span::saturating_from_nanos(by));
    }

    /// Lets the thread run until `end`, or to what happens before.
    fn run_until(&mut self, end: u64) {
        if let Some(event) = self.next_event(end.min(self.next_preemption_ns)) {
            if let Event::Interrupt(interrupter) = event {
                interrupter.interrupt();
            }
        } else if self.next_preemption_ns <= end {
            self.advance_to(self.next_preemption_ns);
            match self.extension_ns.filter(|_| self.asked) {
                // Once for a request, as the kernel takes it back.
                Some(extension_ns) => {
                    self.asked = false;
                    self.extensions += 1;
                    self.next_preemption_ns = self.next_preemption_ns.saturating_add(extension_ns);
                }
                None => self.be_preempted(),
            }
        } else {
            self.advance_to(end);
        }
    }

    fn be_preempted(&mut self) {
        if let Some(preemptions) = self.load.preemptions {
            let length = self.between(preemptions.from_ns, preemptions.to_ns);
            self.advance_to(self.now().saturating_add(length));
            self.away_ns += length;
            self.preemptions += u64::from(preemptions.counted);
        }
        self.plan_preemption();
    }

    /// The next event up to `end`, if there is one; it is then that late.
    fn next_event(&mut self, end: u64) -> Option<Event> {
        if self.plan.first()?.0 > end {
            return None;
        }
        let (at, event) = self.plan.remove(0);
        self.advance_to(at);
        Some(event)
    }

    fn wait(&mut self, word: &AtomicU32, expected: u32, until: u64) -> WakeReason {
        if word.load(Ordering::Acquire) != expected {
            return WakeReason::Changed;
        }
        self.waits += 1;
        let begun = self.now();
        let slack = if self.class.is_real_time() { 0 } else { self.slack_ns };
        let lateness = self.lateness();
        let fires = until.saturating_add(slack).max(begun);
        let woken = loop {
            match self.next_event(fires) {
                None => {
                    self.advance_to(fires);
                    break WakeReason::Timeout;
                }
                Some(Event::Signal) => break WakeReason::Signal,
                Some(Event::Interrupt(interrupter)) => {
                    interrupter.interrupt();
                    if word.load(Ordering::Acquire) != expected {
                        break WakeReason::Woken;
                    }
                }
            }
        };
        self.advance_to(self.now().saturating_add(lateness));
        self.is_cold = true;
        let waited = self.now() - begun;
        self.away_ns += waited.saturating_sub(self.load.wait_cost_ns);
        // No thread is preempted while it waits.
        self.next_preemption_ns = self.next_preemption_ns.saturating_add(waited);
        woken
    }

    fn lateness(&mut self) -> u64 {
        let total: u64 = self.load.wake_ups.iter().map(|kind| u64::from(kind.weight)).sum();
        let mut pick = if total == 0 { 0 } else { self.random() % total };
        for index in 0..self.load.wake_ups.len() {
            let LatencyDistribution { weight, from_ns, to_ns } = self.load.wake_ups[index];
            match pick.checked_sub(u64::from(weight)) {
                Some(left) => pick = left,
                None => return self.between(from_ns, to_ns),
            }
        }
        0
    }

    fn plan_preemption(&mut self) {
        self.next_preemption_ns = match self.load.preemptions {
            Some(Preemptions { every_ns, .. }) => {
                let until = self.between(1, every_ns.saturating_mul(2).max(1));
                self.now().saturating_add(until)
            }
            None => u64::MAX,
        };
    }

    fn between(&mut self, from: u64, to: u64) -> u64 {
        let width = to.saturating_sub(from).saturating_add(1);
        from.saturating_add(self.random() % width)
    }

    /// SplitMix64 (Steele, Lea, Flood: Fast splittable pseudorandom number generators, 2014).
    fn random(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}

impl Mechanism for SimMachine {
    fn wait_until(&mut self, word: &AtomicU32, expected: u32, deadline_ns: u64) -> WakeReason {
        self.wait(word, expected, deadline_ns)
    }

    fn wait_for(&mut self, word: &AtomicU32, expected: u32, length_ns: u64) -> WakeReason {
        self.wait(word, expected, self.now().saturating_add(length_ns))
    }

    fn relax(&mut self, left_ns: u64) {
        self.asked |= self.extension_ns.is_some() && left_ns <= LAST_NS;
        if let Some((quantum, slice)) = self.quantum_ns.zip(low_power_slice_ns(left_ns)) {
            let begun = self.now();
            self.run_until(
                begun.saturating_add(slice.div_ceil(quantum.max(1)).saturating_mul(quantum)),
            );
            self.low_power_ns += self.now() - begun;
            return;
        }
        let short_by = self.random() % STEP_NS;
        let end = self.now().saturating_add(left_ns.saturating_sub(short_by).max(1));
        self.run_until(end);
    }

    fn spin_ended(&mut self) {
        self.asked = false;
    }

    fn cpu(&mut self) -> u32 {
        self.cpu
    }

    fn class(&mut self) -> SchedClass {
        // A sleeper's first question.
        if std::mem::take(&mut self.is_cold) {
            self.work(self.cold_ns);
        }
        self.class
    }

    fn preemptions(&mut self) -> u64 {
        self.preemptions
    }

    fn cpu_time_ns(&mut self) -> u64 {
        self.now().saturating_sub(self.away_ns)
    }

    fn slack_ns(&mut self) -> Option<u64> {
        Some(self.slack_ns)
    }

    fn set_slack_ns(&mut self, slack_ns: u64) {
        self.slack_ns = slack_ns;
    }
}

impl fmt::Debug for SimMachine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimMachine").field("now", &self.now()).finish_non_exhaustive()
    }
}
