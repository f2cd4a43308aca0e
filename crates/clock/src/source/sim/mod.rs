//! The simulated clock: time that a test makes, with every way to be wrong.
//!
//! Deterministic from its configuration: the same calls give the same counts on every machine,
//! since all arithmetic is in integers. Public and always compiled, for users' tests as for ours.

pub mod drift;
pub mod fault;
pub mod kernel;

use std::sync::atomic::{AtomicI64, AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use hourglass_time::Span;

use super::{
    ClockSource, CounterMeaning, Frequency, FrequencyOrigin, Probe, SourceName, SourceProperties,
};
pub use drift::Drift;
use drift::{ATTOSECONDS_PER_NS, random};
pub use fault::{Fault, FaultKind};
pub use kernel::{Adjustment, AdjustmentKind, LeapKind, SimKernel};

/// CPUs that can have an offset of their own.
const CPUS: usize = 64;

/// How a simulated clock behaves. True time is what [`SimSource::advance`] adds up.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimConfig {
    /// The seed of all random numbers in the drifts.
    pub seed: u64,
    /// Nominal ticks a second, 1 to 10^10.
    pub hertz: u64,
    /// The count at the beginning.
    pub start_ticks: u64,
    /// Bits after which the count wraps, 1 to 64.
    pub width_bits: u32,
    /// Ticks that it moves by at once, 1 or more.
    pub grain_ticks: u64,
    /// The drifts of the clock's rate; their effects add up.
    pub drifts: Vec<Drift>,
    /// The faults at set times.
    pub faults: Vec<Fault>,
    /// The kernel that makes its clock of the counter; without one its clock is true time.
    pub kernel: Option<SimKernel>,
    /// How far true time advances at every read; not negative.
    pub read_cost: Span,
    /// How much longer a read may take, at random between nothing and this; not negative.
    pub read_jitter: Span,
}

impl Default for SimConfig {
    /// A perfect clock of 1 GHz that starts at 0 and is read in no time.
    fn default() -> SimConfig {
        SimConfig {
            seed: 0,
            hertz: 1_000_000_000,
            start_ticks: 0,
            width_bits: u64::BITS,
            grain_ticks: 1,
            drifts: Vec::new(),
            faults: Vec::new(),
            kernel: None,
            read_cost: Span::ZERO,
            read_jitter: Span::ZERO,
        }
    }
}

/// A simulated clock. Its time advances only by calls.
///
/// Any thread may read while one thread advances and injects faults.
#[derive(Debug)]
pub struct SimSource {
    config: SimConfig,
    /// True time since the beginning, ns.
    now_ns: AtomicI64,
    /// The CPU on which [`ClockSource::read`] reads.
    cpu: AtomicU32,
    /// Sum of injected steps, ns.
    stepped_ns: AtomicI64,
    /// True time at which an injected stop began, or [`RUNNING`].
    stopped_at_ns: AtomicI64,
    /// True time lost in injected stops that are over, ns.
    lost_ns: AtomicI64,
    /// Injected offsets, ns.
    cpu_offsets_ns: [AtomicI64; CPUS],
    /// Reads so far: the place in the sequence that their jitter is taken from.
    reads: AtomicU64,
    /// The kernel's clock as far as it was followed.
    kernel: Mutex<kernel::State>,
}

/// No stop is going on.
const RUNNING: i64 = i64::MAX;

impl Default for SimSource {
    fn default() -> SimSource {
        SimSource::new(SimConfig::default())
    }
}

/// A perfect clock; a test makes its own.
pub(super) fn probe() -> Probe {
    Ok(Box::new(SimSource::default()))
}

impl SimSource {
    /// A clock at the beginning of its time; values out of range are taken to the nearest end.
    #[must_use]
    pub fn new(mut config: SimConfig) -> SimSource {
        // Above it a product of 292 years and the frequency would not fit 128 bits.
        const HIGHEST_HERTZ: u64 = 10_000_000_000;
        config.hertz = config.hertz.clamp(1, HIGHEST_HERTZ);
        config.width_bits = config.width_bits.clamp(1, u64::BITS);
        config.grain_ticks = config.grain_ticks.max(1);
        config.read_cost = config.read_cost.max(Span::ZERO);
        config.read_jitter = config.read_jitter.max(Span::ZERO);
        config.drifts.iter_mut().for_each(|drift| *drift = drift.clamped());
        let kernel = Mutex::new(kernel::State::new(config.hertz, config.start_ticks));
        SimSource {
            kernel,
            config,
            now_ns: AtomicI64::new(0),
            cpu: AtomicU32::new(0),
            stepped_ns: AtomicI64::new(0),
            stopped_at_ns: AtomicI64::new(RUNNING),
            lost_ns: AtomicI64::new(0),
            cpu_offsets_ns: std::array::from_fn(|_| AtomicI64::new(0)),
            reads: AtomicU64::new(0),
        }
    }

    /// How it was configured.
    #[must_use]
    pub fn config(&self) -> &SimConfig {
        &self.config
    }

    /// Lets true time pass; nothing happens for negative spans. Held at 292 years.
    pub fn advance(&self, by: Span) {
        add_held(&self.now_ns, by.max(Span::ZERO).nanos());
    }

    /// True time since the beginning: what a perfect clock would have counted.
    #[must_use]
    pub fn true_time(&self) -> Span {
        Span::from_nanos(self.now_ns.load(Ordering::Relaxed))
    }

    /// The time for which the machine was suspended so far: `CLOCK_BOOTTIME` minus true time.
    #[must_use]
    pub fn suspended(&self) -> Span {
        let now = self.now_ns.load(Ordering::Relaxed);
        let slept = |fault: &Fault| match fault.kind {
            FaultKind::Suspend(length) if fault.at.nanos() <= now => length.nanos().max(0),
            _ => 0,
        };
        Span::from_nanos(self.config.faults.iter().map(slept).fold(0, i64::saturating_add))
    }

    /// Makes later reads happen on `cpu`.
    pub fn run_on(&self, cpu: u32) {
        self.cpu.store(cpu, Ordering::Relaxed);
    }

    /// The clock jumps now, backwards if negative.
    pub fn step(&self, by: Span) {
        add_held(&self.stepped_ns, by.nanos());
    }

    /// The clock stands still from now on; nothing happens if it already does.
    pub fn stop(&self) {
        let now = self.now_ns.load(Ordering::Relaxed);
        let _ =
            self.stopped_at_ns.compare_exchange(RUNNING, now, Ordering::Relaxed, Ordering::Relaxed);
    }

    /// Ends a stop: the clock goes on from where it stood.
    pub fn resume(&self) {
        let since = self.stopped_at_ns.swap(RUNNING, Ordering::Relaxed);
        if since != RUNNING {
            add_held(&self.lost_ns, self.now_ns.load(Ordering::Relaxed) - since);
        }
    }

    /// From now on the count of `cpu`, one of the first 64, is ahead of the others by `offset`.
    pub fn set_cpu_offset(&self, cpu: u32, offset: Span) {
        if let Some(slot) = self.cpu_offsets_ns.get(cpu as usize) {
            slot.store(offset.nanos(), Ordering::Relaxed);
        }
    }

    /// Reads the count as `cpu` sees it.
    #[must_use]
    pub fn read_on(&self, cpu: u32) -> u64 {
        self.pass_a_read();
        self.count_at(self.now_ns.load(Ordering::Relaxed), cpu)
    }

    /// `CLOCK_MONOTONIC`: what the kernel makes of the counter, true time without a kernel.
    #[must_use]
    pub fn monotonic(&self) -> Span {
        let (Some(state), now) = (self.kernel_now(), self.now_ns.load(Ordering::Relaxed)) else {
            return self.true_time();
        };
        let ns = state.at(self.count_at(now, 0)) >> kernel::SHIFT;
        Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// `CLOCK_MONOTONIC_RAW`: the counter at its nominal rate; true time without a kernel.
    #[must_use]
    pub fn monotonic_raw(&self) -> Span {
        if self.config.kernel.is_none() {
            return self.true_time();
        }
        let count = self.count_at(self.now_ns.load(Ordering::Relaxed), 0);
        let ticks = u128::from(count.wrapping_sub(self.config.start_ticks));
        let ns = ticks * 1_000_000_000 / u128::from(self.config.hertz);
        Span::from_nanos(i64::try_from(ns).unwrap_or(i64::MAX))
    }

    /// The kernel's clock as it is now, if there is a kernel.
    pub(crate) fn kernel_now(&self) -> Option<kernel::State> {
        let kernel = self.config.kernel.as_ref()?;
        let mut state = self.kernel.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.now_ns.load(Ordering::Relaxed);
        state.follow(kernel, now, |at| self.count_at(at, 0));
        Some(state.clone())
    }

    /// The count at a moment of true time, as `cpu` sees it.
    fn count_at(&self, now: i64, cpu: u32) -> u64 {
        let running = self.running_ns(now);
        let drifts = self.config.drifts.iter();
        let drift: i128 = drifts.map(|drift| drift.error(self.config.seed, running)).sum();
        let drift = drift + self.wrong_rates(running);
        let jumps = i128::from(self.jumps_ns(now, cpu));
        let local = (i128::from(running) + jumps) * ATTOSECONDS_PER_NS + drift;
        self.ticks(local)
    }

    /// Lets the time pass that a read takes.
    fn pass_a_read(&self) {
        let (cost, jitter) = (self.config.read_cost.nanos(), self.config.read_jitter.nanos());
        let longer = match jitter {
            0 => 0,
            _ => {
                let read = self.reads.fetch_add(1, Ordering::Relaxed);
                (random(self.config.seed, read) % (jitter.unsigned_abs() + 1)).cast_signed()
            }
        };
        if cost > 0 || longer > 0 {
            self.advance(Span::from_nanos(cost.saturating_add(longer)));
        }
    }

    /// The sum of the faults of the rate so far, attoseconds.
    fn wrong_rates(&self, running: i64) -> i128 {
        let error = |fault: &Fault| match fault.kind {
            FaultKind::Rate { ppb } => {
                let since = running.saturating_sub(self.running_ns(fault.at.nanos())).max(0);
                Drift::Constant { ppb }.clamped().error(self.config.seed, since)
            }
            _ => 0,
        };
        self.config.faults.iter().map(error).sum()
    }

    /// True time less the time that the clock stood still.
    fn running_ns(&self, now: i64) -> i64 {
        let stopped = |fault: &Fault| match fault.kind {
            FaultKind::Stop(length) => {
                let since = now.saturating_sub(fault.at.nanos());
                since.clamp(0, length.nanos().max(0))
            }
            _ => 0,
        };
        let planned = self.config.faults.iter().map(stopped).fold(0, i64::saturating_add);
        let until = now.min(self.stopped_at_ns.load(Ordering::Relaxed));
        let lost = planned.saturating_add(self.lost_ns.load(Ordering::Relaxed));
        until.saturating_sub(lost).max(0)
    }

    /// Steps so far and the CPU's offset.
    fn jumps_ns(&self, now: i64, cpu: u32) -> i64 {
        let jump = |fault: &Fault| match fault.kind {
            _ if fault.at.nanos() > now => 0,
            FaultKind::Step(by) => by.nanos(),
            FaultKind::CpuOffset { cpu: of, offset } if of == cpu => offset.nanos(),
            _ => 0,
        };
        let planned = self.config.faults.iter().map(jump).fold(0, i64::saturating_add);
        let slot = self.cpu_offsets_ns.get(cpu as usize);
        let offset = slot.map_or(0, |slot| slot.load(Ordering::Relaxed));
        planned.saturating_add(offset).saturating_add(self.stepped_ns.load(Ordering::Relaxed))
    }

    /// The count at a local time in attoseconds, rounded down.
    fn ticks(&self, local: i128) -> u64 {
        const ATTOSECONDS_PER_S: i128 = ATTOSECONDS_PER_NS * 1_000_000_000;
        let ticks =
            local.saturating_mul(i128::from(self.config.hertz)).div_euclid(ATTOSECONDS_PER_S);
        let ticks = ticks - ticks.rem_euclid(i128::from(self.config.grain_ticks));
        // Truncated on purpose: the count wraps at 64 bits, and then at its width.
        let count = self.config.start_ticks.wrapping_add(ticks as u64);
        count & (u64::MAX >> (u64::BITS - self.config.width_bits))
    }
}

/// Adds without wrapping.
fn add_held(value: &AtomicI64, by: i64) {
    let add = |old: i64| Some(old.saturating_add(by));
    // The closure never declines.
    let _ = value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add);
}

impl ClockSource for SimSource {
    fn facts(&self) -> SourceProperties {
        // Never chosen before anything real.
        const RATING: u16 = 1;
        let hertz = self.config.hertz;
        SourceProperties {
            name: SourceName::Sim,
            rating: RATING,
            counts: CounterMeaning::Simulated,
            frequency: Some(Frequency::from_hertz(hertz, FrequencyOrigin::Definition)),
            resolution_ns: 1e9 * self.config.grain_ticks as f64 / hertz as f64,
            width_bits: self.config.width_bits,
            hardware_bits: self.config.width_bits,
            settable: false,
        }
    }

    fn read(&self) -> u64 {
        self.read_on(self.cpu.load(Ordering::Relaxed))
    }

    fn read_ordered(&self) -> u64 {
        self.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Span = Span::from_secs(1);

    fn sim(change: impl FnOnce(&mut SimConfig)) -> SimSource {
        let mut config = SimConfig::default();
        change(&mut config);
        SimSource::new(config)
    }

    #[test]
    fn time_advances_only_on_request() {
        let sim = sim(|c| c.hertz = 2_300_000_000);
        assert_eq!((sim.read(), sim.read_ordered()), (0, 0));
        sim.advance(SECOND);
        sim.advance(Span::from_nanos(-5));
        assert_eq!(sim.read(), 2_300_000_000);
        assert_eq!(sim.true_time(), SECOND);
    }

    #[test]
    fn reading_can_cost_time() {
        let sim = sim(|c| c.read_cost = Span::from_nanos(10));
        assert_eq!((sim.read(), sim.read()), (10, 20));
    }

    #[test]
    fn a_count_may_move_by_several_ticks_at_once() {
        let sim = sim(|c| {
            c.grain_ticks = 16;
            c.start_ticks = 3;
        });
        let read = |_| {
            sim.advance(Span::from_nanos(7));
            sim.read()
        };
        assert_eq!((0..8).map(read).collect::<Vec<u64>>(), [3, 3, 19, 19, 35, 35, 51, 51]);
    }

    #[test]
    fn a_read_may_take_longer_than_usual() {
        let read = |seed| {
            let sim = sim(|c| {
                c.seed = seed;
                c.read_cost = Span::from_nanos(10);
                c.read_jitter = Span::from_nanos(5);
            });
            (0..1_000).map(|_| sim.read()).collect::<Vec<u64>>()
        };
        let counts = read(3);
        let took: Vec<u64> = counts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert!((10..=15).all(|ns| took.contains(&ns)), "{took:?}");
        assert!(took.iter().all(|ns| (10..=15).contains(ns)));
        assert_eq!(counts, read(3));
        assert_ne!(counts, read(4));
    }

    #[test]
    fn the_rate_can_go_wrong_at_its_time() {
        let at = Span::from_secs;
        let sim = sim(|c| {
            c.faults = vec![
                Fault { at: at(1), kind: FaultKind::Rate { ppb: 200_000 } },
                Fault { at: at(3), kind: FaultKind::Stop(SECOND) },
            ];
        });
        let mut seen = Vec::new();
        for _ in 0..5 {
            sim.advance(SECOND);
            seen.push(sim.read());
        }
        let s = 1_000_000_000;
        assert_eq!(seen, [s, 2 * s + 200_000, 3 * s + 400_000, 3 * s + 400_000, 4 * s + 600_000]);
    }

    #[test]
    fn suspending_moves_neither_true_time_nor_the_count() {
        let fault = Fault { at: SECOND, kind: FaultKind::Suspend(Span::from_secs(30)) };
        let sim = sim(|c| c.faults = vec![fault]);
        assert_eq!(sim.suspended(), Span::ZERO);
        sim.advance(Span::from_secs(2));
        assert_eq!((sim.suspended(), sim.read()), (Span::from_secs(30), 2_000_000_000));
    }

    #[test]
    fn the_same_seed_gives_the_same_counts_and_another_one_others() {
        let run = |seed| {
            let sim = sim(|c| {
                c.seed = seed;
                c.drifts = vec![Drift::Stepping { ppb: 10_000, interval: SECOND }];
            });
            let read = |_| {
                sim.advance(Span::from_millis(333));
                sim.read()
            };
            (0..100).map(read).collect::<Vec<u64>>()
        };
        assert_eq!(run(7), run(7));
        assert_ne!(run(7), run(8));
    }

    #[test]
    fn planned_faults_happen_at_their_time() {
        let at = Span::from_secs;
        let sim = sim(|c| {
            c.faults = vec![
                Fault { at: at(2), kind: FaultKind::Step(Span::from_nanos(-500)) },
                Fault { at: at(3), kind: FaultKind::Stop(SECOND) },
                Fault {
                    at: at(5),
                    kind: FaultKind::CpuOffset { cpu: 1, offset: Span::from_nanos(70) },
                },
            ];
        });
        let mut seen = Vec::new();
        for _ in 0..6 {
            sim.advance(SECOND);
            seen.push(sim.read());
        }
        let s = 1_000_000_000;
        assert_eq!(seen, [s, 2 * s - 500, 3 * s - 500, 3 * s - 500, 4 * s - 500, 5 * s - 500]);
        assert_eq!(sim.read_on(1), 5 * s - 430);
    }

    #[test]
    fn faults_can_be_injected_as_it_runs() {
        let sim = sim(|c| c.start_ticks = 1_000);
        sim.advance(Span::from_nanos(100));
        sim.step(Span::from_nanos(-30));
        assert_eq!(sim.read(), 1_070);
        sim.stop();
        sim.stop();
        sim.advance(Span::from_nanos(50));
        assert_eq!(sim.read(), 1_070);
        sim.resume();
        sim.resume();
        sim.advance(Span::from_nanos(5));
        assert_eq!(sim.read(), 1_075);
        sim.set_cpu_offset(3, Span::from_nanos(-7));
        sim.set_cpu_offset(64, SECOND);
        sim.run_on(3);
        assert_eq!((sim.read(), sim.read_on(64)), (1_068, 1_075));
    }

    #[test]
    fn a_narrow_count_wraps() {
        let sim = sim(|c| {
            c.width_bits = 32;
            c.start_ticks = u64::from(u32::MAX);
        });
        let before = sim.read();
        sim.advance(Span::from_nanos(3));
        assert_eq!((before, sim.read()), (0xffff_ffff, 2));
        assert_eq!(sim.facts().ticks_between(before, 2), 3);
    }

    #[test]
    fn the_ends_do_not_wrap() {
        let sim = sim(|c| {
            c.hertz = u64::MAX;
            c.grain_ticks = u64::MAX;
            c.drifts = vec![
                Drift::Constant { ppb: i64::MAX },
                Drift::Linear { ppb_per_s: i64::MIN, limit_ppb: i64::MAX },
                Drift::Periodic { ppb: i64::MIN, period: Span::MAX },
                Drift::Stepping { ppb: i64::MAX, interval: Span::MAX },
            ];
            c.faults = [
                FaultKind::Step(Span::MAX),
                FaultKind::Rate { ppb: i64::MIN },
                FaultKind::Suspend(Span::MAX),
                FaultKind::Suspend(Span::MAX),
            ]
            .map(|kind| Fault { at: Span::MIN, kind })
            .to_vec();
            c.read_jitter = Span::MAX;
        });
        for _ in 0..3 {
            sim.advance(Span::MAX);
            sim.step(Span::MIN);
            sim.stop();
            let _ = sim.read();
            sim.resume();
        }
        assert_eq!((sim.true_time(), sim.suspended()), (Span::MAX, Span::MAX));
    }
}
