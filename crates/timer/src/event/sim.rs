//! The simulated device: fires in virtual time, with every way to be coarse, late or broken.
//!
//! Deterministic from its configuration: all arithmetic is in integers. Public and always compiled,
//! for users' tests as for ours. Time is that of a [`SimSource`], which a simulated clock can read
//! too; waiting is what makes it advance.

use std::sync::Arc;

use hourglass_clock::source::SimSource;
use hourglass_time::Span;

use super::clock_event::{ClockEvent, DeviceFeatures, DeviceWaitEnd, Mode};
use super::error::DeviceError;
use super::kick::{Kick, Kicker, Latch};
use super::period::{Period, PeriodGrid};
use super::periods::Periods;

/// Something that goes wrong with one event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SimFault {
    /// Which event, from 0: the times that the device was programmed, and its ticks.
    pub event: u64,
    /// What goes wrong with the event.
    pub kind: SimFaultKind,
}

/// What goes wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SimFaultKind {
    /// It comes late by this length.
    Late(Span),
    /// It comes early by this length, against the contract.
    Early(Span),
    /// It never comes.
    Lost,
}

/// Something that happens outside, and ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum ExternalEvent {
    /// A kick arrives.
    Kick,
    /// A signal is handled.
    Signal,
}

impl ExternalEvent {
    fn woken(self) -> DeviceWaitEnd {
        match self {
            ExternalEvent::Kick => DeviceWaitEnd::Kicked,
            ExternalEvent::Signal => DeviceWaitEnd::Signal,
        }
    }
}

/// How a simulated device behaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimEventConfig {
    /// Seed of the random latency.
    pub seed: u64,
    /// Name of the device, one word.
    pub name: &'static str,
    /// Whether it belongs to one engine, or to the system.
    pub per_cpu: bool,
    /// What it counts down in one-shot mode.
    pub unit: Period,
    /// The fewest and the most units that it can count down; `None` if it only ticks.
    pub one_shot: Option<(u64, u64)>,
    /// The periods that it can tick at by itself.
    pub periods: Periods,
    /// How late every event is at least.
    pub late: Span,
    /// How much later one may be, at random between nothing and this.
    pub jitter: Span,
    /// What goes wrong with which event.
    pub faults: Vec<SimFault>,
    /// What the world outside does, in order of time.
    pub outside: Vec<(Span, ExternalEvent)>,
}

impl SimEventConfig {
    /// A perfect one-shot device of one engine, exact to the nanosecond.
    #[must_use]
    pub fn exact() -> SimEventConfig {
        SimEventConfig {
            seed: 0,
            name: "sim",
            per_cpu: true,
            unit: Period::NANOSECOND,
            one_shot: Some((1, 1 << 62)),
            periods: Periods::None,
            late: Span::ZERO,
            jitter: Span::ZERO,
            faults: Vec::new(),
            outside: Vec::new(),
        }
    }

    /// The PC's programmable interval timer (*Time Services in RT-Mach*, section 2.2): counts in
    /// 838.095 ns, 16 bits, ticks or fires once; one for the system.
    #[must_use]
    pub fn i8254() -> SimEventConfig {
        SimEventConfig {
            name: "sim_i8254",
            per_cpu: false,
            unit: Period::I8254,
            one_shot: Some((2, 65_536)),
            periods: Periods::I8254,
            ..SimEventConfig::exact()
        }
    }

    /// The DECstation's clock chip (section 2.2 there): ticks at powers of two in a second; one for
    /// the system.
    #[must_use]
    pub fn mc146818() -> SimEventConfig {
        SimEventConfig {
            name: "sim_mc146818",
            per_cpu: false,
            one_shot: None,
            periods: Periods::MC146818,
            ..SimEventConfig::exact()
        }
    }
}

/// A device that fires in virtual time.
pub struct SimEvent {
    time: Arc<SimSource>,
    config: SimEventConfig,
    facts: DeviceFeatures,
    latch: Arc<SimKick>,
    /// When it fires, in one-shot mode; by itself, or never if the event was lost.
    fires_ns: Option<u64>,
    ticks: Option<PeriodGrid>,
    events: u64,
    happened: usize,
}

struct SimKick(Latch);

impl Kicker for SimKick {
    fn kick(&self) {
        // No thread sleeps in virtual time.
        self.0.kick(|| ());
    }
}

impl SimEvent {
    /// A device in the time that `time` tells; values out of range are taken to the nearest end.
    #[must_use]
    pub fn new(time: &Arc<SimSource>, mut config: SimEventConfig) -> SimEvent {
        config.late = config.late.max(Span::ZERO);
        config.jitter = config.jitter.max(Span::ZERO);
        config.outside.sort_by_key(|(at, _)| *at);
        let (fewest, most) = config.one_shot.unwrap_or((1, 1));
        let facts = DeviceFeatures {
            name: config.name,
            per_cpu: config.per_cpu,
            one_shot: config.one_shot.is_some(),
            periods: config.periods,
            min_delta_ns: config.unit.nth_ns(fewest.max(1)),
            // Rounded down, or the units that cover it would be one too many.
            max_delta_ns: (1u64 << 62).min(config.unit.nth_ns(most).saturating_sub(1)).max(1),
        };
        SimEvent {
            time: Arc::clone(time),
            facts,
            latch: Arc::new(SimKick(Latch::new())),
            fires_ns: None,
            ticks: None,
            events: 0,
            happened: 0,
            config,
        }
    }

    /// How late event number `event` is, ns; negative if it is early.
    fn lateness(&self, event: u64) -> i64 {
        let jitter = self.config.jitter.nanos_or_zero();
        let random = match jitter {
            0 => 0,
            _ => random(self.config.seed, event) % (jitter + 1),
        };
        let usual = self.config.late.nanos().saturating_add_unsigned(random);
        let faults = self.config.faults.iter().filter(|fault| fault.event == event);
        faults.fold(usual, |late, fault| match fault.kind {
            SimFaultKind::Late(by) => late.saturating_add(by.nanos()),
            SimFaultKind::Early(by) => late.saturating_sub(by.nanos()),
            SimFaultKind::Lost => late,
        })
    }

    fn is_lost(&self, event: u64) -> bool {
        let lost = |fault: &SimFault| fault.event == event && fault.kind == SimFaultKind::Lost;
        self.config.faults.iter().any(lost)
    }

    /// When the device fires next, ns, and with which event.
    fn next_firing(&self) -> Option<u64> {
        let Some(ticks) = &self.ticks else { return self.fires_ns };
        // The first tick that is not lost.
        let ahead = (0..).find(|ahead| !self.is_lost(self.events + ahead))?;
        let tick_ns = ticks.point_ns(ticks.seen() + 1 + ahead);
        Some(tick_ns.saturating_add_signed(self.lateness(self.events + ahead)))
    }

    /// The device fires: how many periods it reports.
    fn fire(&mut self) -> u64 {
        let now_ns = self.now_ns();
        let Some(ticks) = &mut self.ticks else {
            self.fires_ns = None;
            return 1;
        };
        // A tick that a fault lets come early is one all the same.
        let passed = ticks.advance(now_ns.max(ticks.next_ns()));
        let first = self.events;
        self.events += passed;
        (first..self.events).filter(|event| !self.is_lost(*event)).count() as u64
    }

    fn advance_to(&self, at_ns: u64) {
        let ahead = at_ns.saturating_sub(self.now_ns());
        self.time.advance(Span::saturating_from_nanos(ahead));
    }
}

/// What ends a wait, in the order in which it counts at equal times.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Cause {
    Fires,
    Outside(ExternalEvent),
    Limit,
}

impl ClockEvent for SimEvent {
    fn facts(&self) -> DeviceFeatures {
        self.facts
    }

    fn now_ns(&self) -> u64 {
        self.time.true_time().nanos_or_zero()
    }

    fn detach(&mut self) {
        (self.fires_ns, self.ticks) = (None, None);
    }

    fn set_mode(&mut self, mode: Mode) -> Result<(), DeviceError> {
        (self.fires_ns, self.ticks) = (None, None);
        if let Mode::Periodic(period) = mode {
            self.ticks = Some(PeriodGrid::starting_at(self.now_ns(), period));
        }
        Ok(())
    }

    fn set_next_event(&mut self, at_ns: u64) -> Result<(), DeviceError> {
        let event = self.events;
        self.events += 1;
        // Counting begins with the first edge from now on.
        let now_ns = self.now_ns();
        let edges = self.config.unit.covering(now_ns);
        let units = self.config.unit.covering(at_ns.saturating_sub(now_ns));
        let fires_ns = self.config.unit.nth_ns(edges.saturating_add(units));
        let fires_ns = fires_ns.saturating_add_signed(self.lateness(event));
        self.fires_ns = (!self.is_lost(event)).then_some(fires_ns);
        Ok(())
    }

    /// Lets virtual time pass until something ends the wait.
    fn wait(&mut self, limit_ns: Option<u64>) -> Result<DeviceWaitEnd, DeviceError> {
        if self.latch.0.take() {
            return Ok(DeviceWaitEnd::Kicked);
        }
        loop {
            let fires = self.next_firing().map(|at| (at, Cause::Fires));
            let outside = self.config.outside.get(self.happened);
            let outside = outside.map(|(at, what)| (at.nanos_or_zero(), Cause::Outside(*what)));
            let limit = limit_ns.map(|at| (at, Cause::Limit));
            let first = [fires, outside, limit].into_iter().flatten().min();
            let (at_ns, cause) = first.ok_or(DeviceError::NeverEnds(self.config.name))?;
            self.advance_to(at_ns);
            match cause {
                Cause::Fires => match self.fire() {
                    0 => {}
                    periods => return Ok(DeviceWaitEnd::Event { periods }),
                },
                Cause::Outside(what) => {
                    self.happened += 1;
                    return Ok(what.woken());
                }
                Cause::Limit => return Ok(DeviceWaitEnd::Limit),
            }
        }
    }

    fn kick(&self) -> Kick {
        Kick::new(self.latch.clone())
    }
}

/// A number that depends on nothing but its place in the sequence (SplitMix64).
fn random(seed: u64, place: u64) -> u64 {
    let mut z = seed.wrapping_add(place.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
#[path = "tests/sim.rs"]
mod tests;
