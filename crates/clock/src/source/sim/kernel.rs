//! A kernel that makes its clock of the simulated counter, and what `adjtimex(2)` does to that.

use hourglass_time::Span;

use crate::timekeeping::Leap;

/// A kernel over a simulated counter. Without one `CLOCK_MONOTONIC` is true time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimKernel {
    /// How often it moves its clock on, in true time; 0.1 ms or more.
    pub tick: Span,
    /// The adjustments of its clock, in any order.
    pub adjustments: Vec<Adjustment>,
    /// Whether programs see by which line it makes its clock, as they do where `[vvar]` is mapped.
    pub shown: bool,
}

/// Something that a daemon does to the kernel's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Adjustment {
    /// When, in true time since the beginning.
    pub at: Span,
    /// The kind of the adjustment.
    pub kind: AdjustmentKind,
}

/// What a daemon may do, each within the kernel's limits: more is taken for the limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AdjustmentKind {
    /// `ADJ_FREQUENCY`: the clock runs this much faster from now on, parts per billion; 500,000 either way at most.
    Frequency(i64),
    /// `ADJ_TICK`: the length of a tick of 10 ms, us; 9,000 to 11,000.
    Tick(i64),
    /// `ADJ_OFFSET` with `STA_PLL`: an offset that is taken away by a part of what is left in
    /// every second.
    Offset {
        /// How far the clock is behind, ns; half a second either way at most.
        ns: i64,
        /// The loop's time constant: a part of 2^(2 + this) a second; 10 at most.
        constant: u32,
    },
    /// `adjtime(3)`: the correction, us, applied at 500 us in every second.
    SingleShot(i64),
    /// `clock_settime`: `CLOCK_REALTIME` is set forward by this time, ns. It is not synchronised any more.
    Set(i64),
    /// `ADJ_SETOFFSET`: `CLOCK_REALTIME` steps by this time, ns, and stays synchronised.
    Step(i64),
    /// `ADJ_STATUS` without `STA_UNSYNC`, `ADJ_MAXERROR`: it is synchronised, with this maximum error, us.
    Synchronised(u64),
    /// `STA_UNSYNC`.
    Unsynchronised,
    /// `STA_INS`, `STA_DEL`, or none of them: a leap second at the next midnight.
    Leap(Option<LeapKind>),
}

/// The announced leap second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeapKind {
    /// 23:59:60.
    Inserted,
    /// 23:59:59 is left out.
    Deleted,
}

/// How far the kernel is with a leap second (`time_state`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LeapState {
    Ok,
    Coming(LeapKind),
    Running,
    Over,
}

/// Bits behind the point of a multiplier.
pub(super) const SHIFT: u32 = 24;
const S_NS: i128 = 1_000_000_000;
/// `NTP_PHASE_LIMIT`: the kernel gives no bound above this error, us.
const LARGEST_ERROR_US: u64 = 16_000_000;

/// The clock at a moment: from there on the counter times a multiplier.
#[derive(Clone, Debug)]
pub(crate) struct State {
    pub(crate) generation: u32,
    pub(crate) base_ticks: u64,
    /// ns in 2^-24.
    base: i128,
    /// Until when everything that happened is in it, true time in ns.
    applied_until_ns: i64,
    hertz: u64,
    frequency_ppb: i64,
    tick_us: i64,
    offset_ns: i64,
    constant: u32,
    /// The part of the offset that is applied in this second, ns.
    chunk_ns: i64,
    single_us: i64,
    /// The part of the single shot that is applied in this second, us.
    single_now_us: i64,
    /// How far the clock is behind what it should be, in 2^-24 ns / hertz.
    behind: i128,
    /// `CLOCK_REALTIME` minus `CLOCK_MONOTONIC`, ns.
    pub(crate) realtime_ns: i64,
    /// `CLOCK_TAI` minus `CLOCK_REALTIME`, s.
    pub(crate) tai_s: i64,
    /// Maximum error of the clock, us; `None` if the clock is not synchronised.
    pub(crate) max_error_us: Option<u64>,
    announced: Option<LeapKind>,
    leap: LeapState,
}

impl State {
    pub(super) fn new(hertz: u64, start_ticks: u64) -> State {
        State {
            generation: 0,
            base_ticks: start_ticks,
            base: 0,
            applied_until_ns: 0,
            hertz,
            frequency_ppb: 0,
            tick_us: 10_000,
            offset_ns: 0,
            constant: 0,
            chunk_ns: 0,
            single_us: 0,
            single_now_us: 0,
            behind: 0,
            realtime_ns: 0,
            tai_s: 0,
            max_error_us: None,
            announced: None,
            leap: LeapState::Ok,
        }
    }

    /// The clock's rate error, parts per billion.
    fn rate_ppb(&self) -> i128 {
        let by_tick = (self.tick_us - 10_000) * 100_000;
        let by_hand = self.chunk_ns + self.single_now_us * 1_000;
        S_NS + i128::from(self.frequency_ppb + by_tick + by_hand)
    }

    /// The whole multiplier below the rate; the next one while the clock is behind.
    pub(crate) fn mult(&self) -> u32 {
        let exact = (self.rate_ppb() << SHIFT) / i128::from(self.hertz);
        u32::try_from(exact + i128::from(self.behind > 0)).unwrap_or(u32::MAX)
    }

    /// The clock at a count, in 2^-24 ns.
    pub(super) fn at(&self, ticks: u64) -> i128 {
        let ahead = i128::from(ticks.wrapping_sub(self.base_ticks).cast_signed());
        self.base + ahead * i128::from(self.mult())
    }

    /// The clock at the base: ns rounded down, and the rest in 2^-[`State::shift`] ns.
    pub(crate) fn base(&self) -> (u64, u64) {
        let whole = u64::try_from(self.base >> SHIFT).unwrap_or(0);
        (whole, (self.base & ((1 << SHIFT) - 1)) as u64)
    }

    /// Bits behind the point of the multiplier.
    pub(crate) fn shift(&self) -> u32 {
        SHIFT
    }

    /// The correction on purpose that `adjtimex` reports, 2^-32, and whether an offset remains.
    pub(crate) fn corrections(&self) -> (i64, bool) {
        let ppb = i128::from(self.frequency_ppb) + i128::from(self.tick_us - 10_000) * 100_000;
        (((ppb << 32) / S_NS) as i64, self.offset_ns != 0)
    }

    /// The leap second that `adjtimex` reports.
    pub(crate) fn leap(&self) -> Leap {
        match (self.leap, self.announced) {
            (LeapState::Running, _) => Leap::Running,
            (LeapState::Ok, None) => Leap::None,
            _ => Leap::Announced,
        }
    }

    /// Lets everything happen up to a moment of true time; `count` tells the count at one.
    pub(super) fn follow(&mut self, kernel: &SimKernel, now_ns: i64, count: impl Fn(i64) -> u64) {
        let tick_ns = kernel.tick.nanos().max(100_000);
        while self.applied_until_ns < now_ns {
            let next_tick = (self.applied_until_ns / tick_ns + 1).saturating_mul(tick_ns);
            let times = kernel.adjustments.iter().map(|what| what.at.nanos());
            let next = times.filter(|at| *at > self.applied_until_ns).fold(next_tick, i64::min);
            if next > now_ns {
                return;
            }
            self.move_on(count(next));
            self.applied_until_ns = next;
            for what in kernel.adjustments.iter().filter(|what| what.at.nanos() == next) {
                self.adjust(what.kind);
            }
        }
    }

    /// Begins a new line where the clock is now.
    fn move_on(&mut self, ticks: u64) {
        let ahead = i128::from(ticks.wrapping_sub(self.base_ticks));
        let second = |base: i128| ((base >> SHIFT) + i128::from(self.realtime_ns)) / S_NS;
        let before = second(self.base);
        let should = ahead * (self.rate_ppb() << SHIFT);
        let does = ahead * i128::from(self.mult()) * i128::from(self.hertz);
        let base = self.at(ticks);
        let now = second(base);
        self.base = base;
        self.behind += should - does;
        self.base_ticks = ticks;
        self.generation = self.generation.wrapping_add(2);
        if now != before {
            self.begin_second(now);
        }
    }

    /// `second_overflow`; `second` is since 1970.
    fn begin_second(&mut self, second: i128) {
        self.leap_second(second);
        let error_us = self.max_error_us.map(|us| us.saturating_add(500));
        self.max_error_us = error_us.filter(|us| *us < LARGEST_ERROR_US);
        self.chunk_ns = self.offset_ns >> (2 + self.constant);
        self.offset_ns -= self.chunk_ns;
        self.single_now_us = self.single_us.clamp(-500, 500);
        self.single_us -= self.single_now_us;
    }

    fn leap_second(&mut self, second: i128) {
        const DAY_S: i128 = 86_400;
        self.leap = match (self.leap, self.announced) {
            (LeapState::Coming(LeapKind::Inserted), Some(_)) if second % DAY_S == 0 => {
                self.realtime_ns -= S_NS as i64;
                LeapState::Running
            }
            (LeapState::Coming(LeapKind::Deleted), Some(_)) if (second + 1) % DAY_S == 0 => {
                self.realtime_ns += S_NS as i64;
                self.tai_s -= 1;
                LeapState::Over
            }
            (LeapState::Running, _) => {
                self.tai_s += 1;
                LeapState::Over
            }
            (LeapState::Over, Some(_)) => LeapState::Over,
            (_, announced) => announced.map_or(LeapState::Ok, LeapState::Coming),
        };
    }

    fn adjust(&mut self, what: AdjustmentKind) {
        match what {
            AdjustmentKind::Frequency(ppb) => self.frequency_ppb = ppb.clamp(-500_000, 500_000),
            AdjustmentKind::Tick(us) => self.tick_us = us.clamp(9_000, 11_000),
            AdjustmentKind::Offset { ns, constant } => {
                self.offset_ns = ns.clamp(-500_000_000, 500_000_000);
                self.constant = constant.min(10);
            }
            AdjustmentKind::SingleShot(us) => self.single_us = us,
            AdjustmentKind::Set(ns) => {
                self.realtime_ns = self.realtime_ns.saturating_add(ns);
                self.max_error_us = None;
            }
            AdjustmentKind::Step(ns) => self.realtime_ns = self.realtime_ns.saturating_add(ns),
            AdjustmentKind::Synchronised(us) => self.max_error_us = Some(us),
            AdjustmentKind::Unsynchronised => self.max_error_us = None,
            AdjustmentKind::Leap(kind) => self.announced = kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const S: i64 = 1_000_000_000;

    /// The clock after `seconds` of a perfect counter of 2.3 GHz, ns.
    fn after(seconds: i64, adjustments: &[(i64, AdjustmentKind)]) -> i64 {
        let at = |ns: i64| Span::from_nanos(ns);
        let adjustments =
            adjustments.iter().map(|(ns, kind)| Adjustment { at: at(*ns), kind: *kind }).collect();
        let kernel = SimKernel { tick: Span::from_millis(4), adjustments, shown: true };
        let count = |ns: i64| (i128::from(ns) * 23 / 10) as u64;
        let mut state = State::new(2_300_000_000, 0);
        state.follow(&kernel, seconds * S, count);
        (state.at(count(seconds * S)) >> SHIFT) as i64
    }

    #[test]
    fn rates_are_those_of_adjtimex() {
        use AdjustmentKind::{Frequency, Offset, SingleShot, Tick};
        let near = |found: i64, wanted: i64| {
            assert!((found - wanted).abs() <= 2, "{found} in place of {wanted}");
        };
        near(after(10, &[]), 10 * S);
        near(after(10, &[(S, Frequency(100_000)), (2 * S + 5, Frequency(0))]), 10 * S + 100_000);
        near(after(10, &[(S, Frequency(9_000_000)), (2 * S, Frequency(0))]), 10 * S + 500_000);
        near(after(3, &[(S, Tick(11_000)), (2 * S, Tick(10_000))]), 3 * S + S / 10);
        near(after(3, &[(S, Tick(9_000)), (2 * S, Tick(10_000))]), 3 * S - S / 10);
        // 500 us in the second after, 500 in the next, 200 in the third.
        let slewed = after(6, &[(S + 4, SingleShot(-1_200))]);
        assert!((slewed - (6 * S - 1_200_000)).abs() < 20_000, "{slewed}");
        // A quarter in the first second, a quarter of what is left in the next.
        let slewed = after(4, &[(S + 4, Offset { ns: 1_000_000, constant: 0 })]);
        assert!((slewed - (4 * S + 437_500)).abs() < 20_000, "{slewed}");
    }
}
