//! Progress by retired instructions (Inoue et al., section 4.2: the PMC implementation).
//!
//! Owns: what an instruction is worth, found in windows without co-runners: some measured before, or those in which the
//! monitor has stopped them. Must not: stop co-runners to find it out.
//!
//! A program has phases that differ in how much an instruction takes. An instruction counts as the least that one took,
//! so that progress is reported low in slower phases. The paper takes one rate for all, with which a phase that is
//! faster than what was measured is reported high. Two bounds keep that from going beyond what can be:
//!
//! - Progress is at most the processor time that the job had. It is work in single-thread time, so that its slope is one
//!   at most (the paper's Figure 2), and no faster phase makes more of a millisecond than a millisecond.
//! - Sharing a processor slows. So a window beside co-runners that is faster than the known rate proves that the thread
//!   alone is at least as fast, and the rate is the fastest of all windows, of whichever kind.
//!
//! What is left: until the first such window of a faster phase is over, an instruction of it counts as too much, by no
//! more than the first bound allows. A program that must be sure reports progress in a word.

use std::cmp::Ordering;

use hourglass_sys::instructions::Instructions;
use hourglass_sys::task_clock::TaskClock;

use super::{ProgressErrors, ProgressSource};

/// Counts retired instructions. MUST NOT fall, nor count what others do.
pub trait Counter: Send {
    /// Number of instructions so far; `None` if it is not known.
    fn count(&mut self) -> Option<u64>;
}

impl Counter for Instructions {
    fn count(&mut self) -> Option<u64> {
        self.read().ok()
    }
}

/// Processor time, ns, in the place of instructions: a counter that every kernel has.
impl Counter for TaskClock {
    fn count(&mut self) -> Option<u64> {
        self.read_ns().ok()
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
        let counted = windows.iter().filter(|(instructions, ns)| *instructions > 0 && *ns > 0);
        let (instructions, ns) = *counted.max_by(speed)?;
        Some(SingleThreadRate { instructions, ns })
    }

    /// The faster of two.
    #[must_use]
    pub fn faster(self, other: SingleThreadRate) -> SingleThreadRate {
        let windows = [(self.instructions, self.ns), (other.instructions, other.ns)];
        SingleThreadRate::of_windows(&windows).unwrap_or(self)
    }

    /// Time that `instructions` stand for, ns, rounded down.
    #[must_use]
    pub fn ns(&self, instructions: u64) -> u64 {
        let ns = u128::from(instructions) * u128::from(self.ns) / u128::from(self.instructions);
        u64::try_from(ns).unwrap_or(u64::MAX)
    }
}

/// Processor time of a window that says something, ns.
const WINDOW_NS: u64 = 1_000_000;

/// Progress by the instructions of a thread, or of a whole process with its descendants.
pub struct InstructionProgress<C, F> {
    counter: C,
    /// Processor time of the thread so far, ns; `None` if it is not known.
    time: F,
    /// `None` until the first window: then nothing counts.
    rate: Option<SingleThreadRate>,
    /// How long co-runners may still run after they were ordered to stop, ns.
    settle_ns: u64,
    /// Instructions and processor time when the window without co-runners began.
    window: Option<(u64, u64)>,
    /// Whether co-runners run in this window: then it can raise a rate, and not be the first.
    co_runners_active: bool,
    /// Whether co-runners stand, but perhaps not all of them yet.
    settling: bool,
    reserved_ns: u64,
    /// The counter when the job began; `None` if it could not be read.
    base: Option<u64>,
    base_ns: Option<u64>,
    last: u64,
    fell: bool,
    begun: bool,
    doubts: ProgressErrors,
}

impl<C: Counter, F: FnMut() -> Option<u64> + Send> InstructionProgress<C, F> {
    /// Progress by this counter and the processor time of the thread that it counts. `rate` is one measured before;
    /// without, nothing counts until co-runners have stood for a while. `settle_ns` is the longest time from an order
    /// to stop until no co-runner runs any more.
    #[must_use]
    pub fn new(counter: C, time: F, rate: Option<SingleThreadRate>, settle_ns: u64) -> Self {
        InstructionProgress {
            counter,
            time,
            rate,
            settle_ns,
            window: None,
            co_runners_active: true,
            settling: false,
            reserved_ns: 0,
            base: None,
            base_ns: None,
            last: 0,
            fell: false,
            begun: false,
            doubts: ProgressErrors::default(),
        }
    }

    /// The worth of an instruction, as far as is known.
    #[must_use]
    pub fn rate(&self) -> Option<SingleThreadRate> {
        self.rate
    }

    /// Looks at the window that lasts, at `count` instructions and processor time `now`.
    fn update_rate(&mut self, count: u64, now: u64) {
        let Some((since, begun)) = self.window else {
            self.window = Some((count, now));
            return;
        };
        let used = now.saturating_sub(begun);
        if self.settling {
            if used >= self.settle_ns {
                (self.settling, self.window) = (false, Some((count, now)));
            }
        } else if used >= WINDOW_NS {
            self.window = Some((count, now));
            let found = SingleThreadRate::of_windows(&[(count.saturating_sub(since), used)]);
            self.rate = match (self.rate, found) {
                (Some(known), Some(found)) => Some(known.faster(found)),
                (None, found) if !self.co_runners_active => found,
                (known, _) => known,
            };
        }
    }
}

impl<C: Counter, F: FnMut() -> Option<u64> + Send> ProgressSource for InstructionProgress<C, F> {
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
        self.base_ns = (self.time)();
        self.last = self.base.unwrap_or(0);
    }

    fn done_ns(&mut self) -> u64 {
        // The instructions first: time that passes between the readings makes the rate lower, and the bound higher.
        let (Some(base), Some(now)) = (self.base, self.counter.count()) else { return 0 };
        let (Some(base_ns), Some(now_ns)) = (self.base_ns, (self.time)()) else { return 0 };
        self.fell |= now < self.last;
        self.last = now;
        if self.fell {
            return 0;
        }
        self.update_rate(now, now_ns);
        let ns = self.rate.map_or(0, |rate| rate.ns(now.saturating_sub(base)));
        ns.min(now_ns.saturating_sub(base_ns)).min(self.reserved_ns)
    }

    fn restart(&mut self) {
        self.base = self.counter.count();
        self.base_ns = (self.time)();
    }

    fn co_runners(&mut self, running: bool) {
        self.window = self.counter.count().zip((self.time)());
        (self.co_runners_active, self.settling) = (running, !running);
    }

    fn errors(&self) -> ProgressErrors {
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

    /// A counter and a clock that a test sets.
    fn machine() -> (Arc<AtomicU64>, Arc<AtomicU64>) {
        (Arc::new(AtomicU64::new(1_000)), Arc::new(AtomicU64::new(50_000)))
    }

    fn reader(value: &Arc<AtomicU64>) -> impl FnMut() -> Option<u64> + Send + use<> {
        let value = Arc::clone(value);
        move || Some(value.load(Ordering::Relaxed))
    }

    #[test]
    fn instructions_are_turned_into_time() {
        let (counted, time) = machine();
        let rate = SingleThreadRate::of_windows(&[(3, 1)]);
        let mut source = InstructionProgress::new(reader(&counted), reader(&time), rate, 0);
        source.begin(100);
        assert_eq!(source.done_ns(), 0);
        counted.store(1_050, Ordering::Relaxed);
        time.fetch_add(40, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 16);
        source.restart();
        assert_eq!(source.done_ns(), 0, "that was before the job began");
        counted.store(2_000, Ordering::Relaxed);
        // The slope of progress is one at most (Inoue et al., Figure 2), whatever an instruction was worth.
        time.fetch_add(70, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 70);
        time.fetch_add(70, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 100);
        counted.store(1_999, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 0);
        source.begin(100);
        source.begin(100);
        assert_eq!(source.errors(), ProgressErrors { backwards: 1, unmoved: 1 });
    }

    /// Nothing counts until co-runners have stood long enough; the fastest window stays.
    #[test]
    fn the_rate_is_learnt_while_co_runners_stand() {
        let (counted, time) = machine();
        let mut source = InstructionProgress::new(reader(&counted), reader(&time), None, 2_000);
        let pass = |instructions: u64, ns: u64| {
            counted.fetch_add(instructions, Ordering::Relaxed);
            time.fetch_add(ns, Ordering::Relaxed);
        };
        source.begin(100_000_000);
        pass(9_000_000, 1_000_000);
        assert_eq!(source.done_ns(), 0, "beside co-runners nothing is learnt");
        source.co_runners(false);
        pass(9_000, 2_000);
        assert_eq!(source.done_ns(), 0, "they may have run until now");
        pass(1_000_000, 500_000);
        assert_eq!(source.done_ns(), 0, "too short a window");
        pass(2_000_000, 1_000_000);
        // 2 instructions a nanosecond, for all 12,009,000 since the begin: more than the processor time.
        assert_eq!(source.done_ns(), 2_502_000);
        pass(40_000_000, 10_000_000);
        // 4 a nanosecond from now on, and so less before: 52,009,000 in all are 13,002,250, in 12,502,000.
        assert_eq!(source.done_ns(), 12_502_000);
        assert_eq!(source.rate().map(|rate| rate.ns(4)), Some(1));
        source.co_runners(true);
        pass(1_000_000, 10_000_000);
        // Beside co-runners, slowly: 53,009,000 of them.
        assert_eq!(source.done_ns(), 13_252_250);
    }

    /// Sharing slows: work that is faster beside co-runners than ever without has a phase that is at least as fast.
    #[test]
    fn a_faster_phase_beside_co_runners_is_not_reported_high() {
        let (counted, time) = machine();
        let rate = SingleThreadRate::of_windows(&[(1, 1)]);
        let mut source = InstructionProgress::new(reader(&counted), reader(&time), rate, 0);
        source.begin(100_000_000);
        source.co_runners(true);
        counted.fetch_add(8_000_000, Ordering::Relaxed);
        time.fetch_add(2_000_000, Ordering::Relaxed);
        // 4 a nanosecond, where 1 was known.
        assert_eq!(source.done_ns(), 2_000_000);
        counted.fetch_add(4_000_000, Ordering::Relaxed);
        time.fetch_add(3_000_000, Ordering::Relaxed);
        assert_eq!(source.done_ns(), 3_000_000, "12,000,000 at 4 a nanosecond");
        // Without a rate from a window without co-runners nothing counts.
        let mut first = InstructionProgress::new(reader(&counted), reader(&time), None, 0);
        first.begin(100_000_000);
        first.co_runners(true);
        counted.fetch_add(8_000_000, Ordering::Relaxed);
        time.fetch_add(2_000_000, Ordering::Relaxed);
        assert_eq!((first.done_ns(), first.rate()), (0, None));
    }

    /// A counter that cannot be read tells no progress.
    #[test]
    fn what_cannot_be_read_is_not_done() {
        let rate = SingleThreadRate::of_windows(&[(1, 1)]);
        let mut source = InstructionProgress::new(|| None, || None, rate, 0);
        source.begin(100);
        assert_eq!(source.done_ns(), 0);
    }
}
