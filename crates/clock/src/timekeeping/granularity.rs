//! In what steps a counter and its reference really move.
//!
//! A count is rounded down to the last step, and a step may be longer than a tick or a nanosecond:
//! the timer of an ARM processor may add sixteen at a time (Arm ARM, "The system counter": at a
//! lower frequency it adds more), QEMU's user mode moves it once in a microsecond, a kernel on
//! `acpi_pm` moves `CLOCK_MONOTONIC` once in 279 ns. No interface states the step, so it is measured.

use super::slope::Slope;
use super::timebase::{ReferenceClock, SourceId, Timebase};

/// A clock's movements, seen by reading it as fast as possible.
#[derive(Clone, Copy, Debug)]
pub(super) struct Movements {
    last: Option<u64>,
    /// The last movement.
    last_movement: Option<Length>,
    count: u32,
    /// The least bound on a step so far.
    step: u64,
}

/// Movements that make a bound; two or three would do, but an interruption is a long movement, and
/// on a busy machine several may come one after the other.
const ENOUGH: u32 = 32;

impl Movements {
    pub(super) const NONE: Movements =
        Movements { last: None, last_movement: None, count: 0, step: u64::MAX };

    pub(super) fn see(&mut self, count: u64) {
        let ticks = self.last.map_or(0, |last| count.wrapping_sub(last));
        self.last = Some(count);
        // Backwards is for others to judge.
        if !(1..=u64::MAX / 2).contains(&ticks) {
            return;
        }
        // Both ends are rounded down: together they are off by less than a tick.
        let moved = Length { ticks, error: 1 };
        let common = common_measure(moved, self.last_movement.unwrap_or(moved));
        // Who moves by one is taken to move by one, not by one and a half.
        let step = if ticks == 1 { 1 } else { common.ticks.saturating_add(common.error) };
        self.step = self.step.min(step);
        self.last_movement = Some(moved);
        self.count = self.count.saturating_add(1);
    }

    /// Whether more would say no more.
    pub(super) fn is_enough(&self) -> bool {
        self.count >= ENOUGH
    }

    /// A bound on what it moves by at once; `None` if it did not move.
    pub(super) fn step(&self) -> Option<u64> {
        (self.count > 0).then_some(self.step)
    }
}

/// A length that is a whole number of steps, at least one, but for an error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Length {
    ticks: u64,
    error: u64,
}

/// The greatest common measure (Euclid, VII.2) of two lengths: one step or several, but never less.
///
/// A remainder that may be zero within its error is taken for zero, so that what goes on is at
/// least one step long; its error is that of what it was made from.
fn common_measure(a: Length, b: Length) -> Length {
    let (mut greater, mut smaller) = if a.ticks >= b.ticks { (a, b) } else { (b, a) };
    while smaller.ticks > 0 {
        let (times, left) = (greater.ticks / smaller.ticks, greater.ticks % smaller.ticks);
        let error = greater.error.saturating_add(times.saturating_mul(smaller.error));
        let missing = smaller.ticks - left;
        if left <= error || missing <= error.saturating_add(smaller.error) {
            return smaller;
        }
        (greater, smaller) = (smaller, Length { ticks: left, error });
    }
    greater
}

/// Whether time passed while a clock was watched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MovementState {
    /// Time passed; counter and reference together move by at most `grain` at once.
    Moving {
        /// The common step, ticks of the counter.
        grain: u64,
    },
    /// No time passed: it is simulated, and passes only by calls.
    Nothing,
    /// The reference moved, and the counter did not.
    Stuck,
}

/// Waits for `length_ns` of the reference, and looks meanwhile by what it and the counter move.
pub(super) fn watch<B: Timebase>(base: &B, source: SourceId, length_ns: u64) -> MovementState {
    /// A real clock moves within far fewer reads.
    const PATIENCE: u32 = 1_000;
    /// Reads after which what was seen must do: some 70 us.
    const LONGEST: u32 = 2_000;
    let from_ns = base.reference_ns(ReferenceClock::Monotonic);
    let from_ticks = base.ticks(source);
    let (mut clock, mut counter) = (Movements::NONE, Movements::NONE);
    let (mut now_ns, mut still, mut reads) = (from_ns, 0, 0);
    loop {
        let is_over = now_ns.saturating_sub(from_ns) >= length_ns;
        let is_enough = clock.is_enough() && counter.is_enough();
        if is_over && (is_enough || reads >= LONGEST) {
            break;
        }
        let last_ns = now_ns;
        now_ns = base.reference_ns(ReferenceClock::Monotonic);
        clock.see(now_ns);
        counter.see(base.ticks(source));
        still = if now_ns == last_ns { still + 1 } else { 0 };
        if still == PATIENCE {
            return MovementState::Nothing;
        }
        reads = reads.saturating_add(1);
    }
    let passed = base.ticks(source).wrapping_sub(from_ticks);
    let slope = Slope::between(now_ns - from_ns, passed.min(u64::MAX / 2));
    match (clock.step(), counter.step(), slope) {
        (Some(step_ns), Some(step), Some(slope)) => {
            // A nanosecond is what every reading of the reference is rounded to, and allowed for.
            MovementState::Moving { grain: step.saturating_add(slope.ticks_floor(step_ns - 1)) }
        }
        _ => MovementState::Stuck,
    }
}

#[cfg(test)]
mod tests {
    use hourglass_dice::Dice;

    use hourglass_time::Span;

    use super::*;
    use crate::source::SimSource;
    use crate::source::sim::SimConfig;

    /// A clock that moves by `step` ticks (a ratio) at a time, read at these ticks of true time.
    fn seen(step: (u64, u64), reads: impl Iterator<Item = u64>) -> u64 {
        let (ticks, parts) = step;
        let mut movements = Movements::NONE;
        for truth in reads {
            let steps = truth * parts / ticks;
            movements.see(1_000_000 + steps * ticks / parts);
        }
        movements.step().unwrap()
    }

    #[test]
    fn a_tick_at_a_time_is_a_tick() {
        assert_eq!((Movements::NONE.step(), Movements::NONE.is_enough()), (None, false));
        assert_eq!(seen((1, 1), (0..100).map(|read| read * 2 / 3)), 1);
        // Reads 20 to 30 ticks apart, as of a TSC.
        for seed in 0..100 {
            let mut dice = Dice::new(seed);
            let mut truth = 0;
            let reads = (0..300).map(|_| {
                truth += dice.between(20, 30);
                truth
            });
            assert!(seen((1, 1), reads) <= 6, "seed {seed}");
        }
    }

    #[test]
    fn longer_steps_are_never_taken_for_shorter_ones() {
        // 16 at a time; 100 MHz at 3.6 GHz; a microsecond at 62.5 MHz; 279.365 ns.
        for step in [(16u64, 1), (36, 1), (125, 2), (279_365, 1_000), (5, 2), (7, 1)] {
            let longest = step.0.div_ceil(step.1);
            for pace in 1..200u64 {
                let reads = (0..2_000u64).map(|read| read * pace + read.wrapping_mul(pace) % 7);
                let found = seen(step, reads);
                assert!(found >= longest, "{step:?} at {pace}: {found}");
            }
            // Read fast enough, a step is seen alone.
            assert!(seen(step, 0..20_000) <= longest + 2, "{step:?}");
            // Or seldom, at random.
            for seed in 0..200 {
                let mut dice = Dice::new(seed);
                let mut truth = 0;
                let reads = (0..40).map(|_| {
                    truth += dice.between(1, 5 * longest);
                    truth
                });
                assert!(seen(step, reads) >= longest, "{step:?}, seed {seed}");
            }
        }
    }

    /// What QEMU's user mode does with the ARM timer: 62.5 MHz, moved once in a microsecond.
    #[test]
    fn a_counter_of_long_steps_is_watched_until_its_steps_are_seen() {
        let config =
            SimConfig { hertz: 1_000_000, read_cost: Span::from_nanos(30), ..SimConfig::default() };
        let sim = SimSource::new(config);
        // A tick a microsecond; the reference moves by reads of 30 ns.
        let MovementState::Moving { grain } = watch(&sim, SourceId::SIMULATED, 10_000) else {
            panic!()
        };
        assert_eq!(grain, 1);
        assert!(sim.true_time() >= Span::from_micros(ENOUGH.into()));
        let fine = SimSource::new(SimConfig { hertz: 1_000_000_000, ..sim.config().clone() });
        let MovementState::Moving { grain } = watch(&fine, SourceId::SIMULATED, 10_000) else {
            panic!()
        };
        assert!(grain >= 30, "nothing tells reads of 30 ns from steps of 30 ns: {grain}");
    }

    #[test]
    fn a_stopped_clock_differs_from_a_simulated_one() {
        let still = SimSource::default();
        assert_eq!(watch(&still, SourceId::SIMULATED, 10_000), MovementState::Nothing);
        let config = SimConfig { read_cost: Span::from_nanos(30), ..SimConfig::default() };
        let stuck = SimSource::new(config);
        stuck.stop();
        assert_eq!(watch(&stuck, SourceId::SIMULATED, 10_000), MovementState::Stuck);
    }

    #[test]
    fn nothing_overflows() {
        let mut movements = Movements::NONE;
        for count in [0, u64::MAX / 2, u64::MAX, 5, 1 << 63, 0] {
            movements.see(count);
            let _ = movements.step();
        }
        let longest = Length { ticks: u64::MAX, error: u64::MAX };
        assert_eq!(common_measure(longest, longest), longest);
        assert_eq!(common_measure(Length::default(), Length::default()), Length::default());
    }
}
