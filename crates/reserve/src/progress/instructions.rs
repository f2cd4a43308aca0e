//! Progress by retired instructions (Inoue et al., section 4.2: the PMC implementation).
//!
//! Owns: what an instruction is worth. Must not: stop anybody to find it out; whoever calibrates keeps
//! co-runners away meanwhile.

use std::cmp::Ordering;

use hourglass_sys::instructions::Instructions;

use super::{Doubts, ProgressSource};

/// Counts retired instructions. MUST NOT fall, nor count what others do.
pub trait Counter: Send {
    /// How many so far; `None` if it cannot be told.
    fn count(&mut self) -> Option<u64>;
}

impl Counter for Instructions {
    fn count(&mut self) -> Option<u64> {
        self.read().ok()
    }
}

impl<F: FnMut() -> Option<u64> + Send> Counter for F {
    fn count(&mut self) -> Option<u64> {
        self()
    }
}

/// How many instructions a processor that is not shared retires in how much time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SingleThreadRate {
    instructions: u64,
    ns: u64,
}

impl SingleThreadRate {
    /// The fastest of some windows, each of instructions and processor time (ns) without co-runners. The
    /// fastest, since an instruction must not be worth more than it was: time would count that was not
    /// given. `None` without a window in which anything happened.
    #[must_use]
    pub fn of_windows(windows: &[(u64, u64)]) -> Option<SingleThreadRate> {
        let speed = |a: &&(u64, u64), b: &&(u64, u64)| -> Ordering {
            let left = u128::from(a.0) * u128::from(b.1);
            left.cmp(&(u128::from(b.0) * u128::from(a.1)))
        };
        let told = windows.iter().filter(|(instructions, ns)| *instructions > 0 && *ns > 0);
        let (instructions, ns) = *told.max_by(speed)?;
        Some(SingleThreadRate { instructions, ns })
    }

    /// Time that so many instructions stand for, ns, rounded down.
    #[must_use]
    pub fn ns(&self, instructions: u64) -> u64 {
        let ns = u128::from(instructions) * u128::from(self.ns) / u128::from(self.instructions);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// Progress of one thread by its instructions.
#[derive(Debug)]
pub struct ByInstructions<C> {
    counter: C,
    rate: SingleThreadRate,
    reserved_ns: u64,
    /// The counter when the job began; `None` if it could not be read.
    base: Option<u64>,
    last: u64,
    fell: bool,
    begun: bool,
    doubts: Doubts,
}

impl<C: Counter> ByInstructions<C> {
    /// By this counter.
    #[must_use]
    pub fn new(counter: C, rate: SingleThreadRate) -> ByInstructions<C> {
        ByInstructions {
            counter,
            rate,
            reserved_ns: 0,
            base: None,
            last: 0,
            fell: false,
            begun: false,
            doubts: Doubts::default(),
        }
    }
}

impl<C: Counter> ProgressSource for ByInstructions<C> {
    fn name(&self) -> &'static str {
        "instructions"
    }

    fn begin(&mut self, reserved_ns: u64) {
        if self.begun {
            let moved = self.base.is_some_and(|base| self.last > base);
            self.doubts.backwards += u64::from(self.fell);
            self.doubts.unmoved += u64::from(!self.fell && !moved);
        }
        self.begun = true;
        self.fell = false;
        self.reserved_ns = reserved_ns;
        self.base = self.counter.count();
        self.last = self.base.unwrap_or(0);
    }

    fn done_ns(&mut self) -> u64 {
        let (Some(base), Some(now)) = (self.base, self.counter.count()) else { return 0 };
        self.fell |= now < self.last;
        self.last = now;
        if self.fell {
            return 0;
        }
        self.rate.ns(now.saturating_sub(base)).min(self.reserved_ns)
    }

    fn doubts(&self) -> Doubts {
        self.doubts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    #[test]
    fn the_fastest_window_gives_the_rate() {
        let rate = SingleThreadRate::of_windows(&[(2_000, 1_000), (0, 5), (900, 300), (7, 0)]);
        let rate = rate.unwrap();
        assert_eq!((rate.ns(900), rate.ns(10)), (300, 3));
        assert_eq!(SingleThreadRate::of_windows(&[(0, 5)]), None);
    }

    #[test]
    fn instructions_are_turned_into_time() {
        let counted = Arc::new(AtomicU64::new(1_000));
        let read = Arc::clone(&counted);
        let rate = SingleThreadRate::of_windows(&[(3, 1)]).unwrap();
        let count = move || Some(read.load(Ordering::Relaxed));
        let mut source = ByInstructions::new(count, rate);
        source.begin(100);
        assert_eq!(source.done_ns(), 0);
        counted.store(1_050, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 16);
        counted.store(2_000, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 100);
        counted.store(1_999, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 0);
        source.begin(100);
        source.begin(100);
        assert_eq!(source.doubts(), Doubts { backwards: 1, unmoved: 1 });
    }

    /// A counter that cannot be read tells no progress.
    #[test]
    fn what_cannot_be_read_is_not_done() {
        let rate = SingleThreadRate::of_windows(&[(1, 1)]).unwrap();
        let mut source = ByInstructions::new(|| None, rate);
        source.begin(100);
        assert_eq!(source.done_ns(), 0);
    }
}
