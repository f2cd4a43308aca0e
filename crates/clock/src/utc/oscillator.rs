//! How fast the clock of this machine runs where nobody corrects it, by what was known of UTC at several moments: no estimate,
//! but the rates that all of it allows.

use std::collections::VecDeque;

use hourglass_sys::clock::{ClockId, now_ns};

/// What a clock that nobody corrects is off by at most, as AWS ClockBound takes it for granted: twice that of usual crystals.
const OSCILLATOR_PPB: i64 = 50_000;
/// By how much its rate changes at most within [`WINDOW_NS`]; chronyd's `maxclockerror`, unless it is configured otherwise.
const WANDER_PPB: i64 = 1_000;
/// What is older says nothing: half an hour, two questions of a synchroniser that asks as rarely as it does by default.
const WINDOW_NS: u64 = 2_048_000_000_000;
/// Half an hour of questions every half minute.
const MOST: usize = 64;
/// Parts in one, of a rate in ppb.
const ONE: i128 = 1_000_000_000;

/// The clocks of one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Moment {
    pub(super) realtime_ns: u64,
    /// `CLOCK_MONOTONIC_RAW` before and after that.
    raw_ns: [u64; 2],
    /// `CLOCK_BOOTTIME` minus `CLOCK_MONOTONIC`, at least and at most: how long the machine slept.
    slept_ns: [u64; 2],
}

impl Moment {
    pub(super) fn read() -> Moment {
        let before = now_ns(ClockId::MonotonicRaw);
        let realtime_ns = now_ns(ClockId::Realtime);
        let after = now_ns(ClockId::MonotonicRaw);
        let awake = now_ns(ClockId::Monotonic);
        let all = now_ns(ClockId::Boottime);
        let later = now_ns(ClockId::Monotonic);
        let slept_ns = [all.saturating_sub(later), all.saturating_sub(awake)];
        Moment { realtime_ns, raw_ns: [before, after], slept_ns }
    }
}

/// A moment, and by how much its `CLOCK_REALTIME` was off UTC at most.
#[derive(Clone, Copy, Debug)]
struct KnownMoment {
    moment: Moment,
    error_ns: u64,
}

impl KnownMoment {
    /// How much faster than UTC `CLOCK_MONOTONIC_RAW` ran from here to `later`, ppb, at least and at most; `None` if nothing
    /// is known of that.
    fn rate_until(&self, later: &KnownMoment) -> Option<[i64; 2]> {
        let apart = |until: u64, from: u64| i128::from(until) - i128::from(from);
        let unsure = i128::from(self.error_ns) + i128::from(later.error_ns);
        let (from, until) = (&self.moment, &later.moment);
        let passed = apart(until.realtime_ns, from.realtime_ns);
        let utc = [passed - unsure, passed + unsure];
        let raw = [apart(until.raw_ns[0], from.raw_ns[1]), apart(until.raw_ns[1], from.raw_ns[0])];
        if utc[0] <= 0 || raw[0] < 0 {
            return None;
        }
        let least = ((raw[0] - utc[1]) * ONE).div_euclid(utc[1]);
        let most = ((raw[1] - utc[0]) * ONE).div_euclid(utc[0]) + 1;
        Some([i64::try_from(least).ok()?, i64::try_from(most).ok()?])
    }
}

/// The latest moments of which something was known.
#[derive(Debug, Default)]
pub(super) struct Oscillator(VecDeque<KnownMoment>);

impl Oscillator {
    /// The rate of one of which nothing was learnt.
    pub(super) const ASSUMED: [i64; 2] = [-OSCILLATOR_PPB, OSCILLATOR_PPB];

    /// One more; it is not earlier than the last.
    pub(super) fn learn(&mut self, moment: Moment, error_ns: u64) {
        self.forget_before(&moment);
        if self.0.len() >= MOST {
            self.0.pop_front();
        }
        self.0.push_back(KnownMoment { moment, error_ns });
        // What contradicts itself was wrong once: the counter stood still, or a source was.
        if self.0.len() > 1 && self.learnt().is_none() {
            self.0.drain(..self.0.len() - 1);
        }
    }

    /// By how much it runs too fast, ppb, at least and at most, at this moment and in the time before it that counts. It
    /// stands on two premises: within half an hour it changes by 1 ppm at most, and where nothing speaks against that it
    /// is off by 50 ppm at most.
    pub(super) fn rate(&mut self, now: &Moment) -> [i64; 2] {
        self.forget_before(now);
        let Some(learnt) = self.learnt() else { return Oscillator::ASSUMED };
        both(learnt, Oscillator::ASSUMED).unwrap_or(learnt)
    }

    /// Whether a measurement of this age was of the time that counts.
    pub(super) fn covers(age_s: u32) -> bool {
        u64::from(age_s) * 1_000_000_000 <= WINDOW_NS
    }

    fn forget_before(&mut self, now: &Moment) {
        self.0.retain(|known| {
            let then = &known.moment;
            let is_awake =
                then.slept_ns[0] <= now.slept_ns[1] && now.slept_ns[0] <= then.slept_ns[1];
            is_awake && now.raw_ns[1].saturating_sub(then.raw_ns[0]) <= WINDOW_NS
        });
    }

    /// What all pairs of moments allow; `None` if that is nothing, or there is no pair.
    fn learnt(&self) -> Option<[i64; 2]> {
        let mut rate = None;
        for (at, later) in self.0.iter().enumerate() {
            for earlier in self.0.iter().take(at) {
                let Some([least, most]) = earlier.rate_until(later) else { continue };
                let now = [least.saturating_sub(WANDER_PPB), most.saturating_add(WANDER_PPB)];
                rate = Some(both(rate.unwrap_or(now), now)?);
            }
        }
        rate
    }
}

/// What is in both.
fn both(a: [i64; 2], b: [i64; 2]) -> Option<[i64; 2]> {
    let common = [a[0].max(b[0]), a[1].min(b[1])];
    (common[0] <= common[1]).then_some(common)
}

#[cfg(test)]
#[path = "tests/oscillator.rs"]
mod tests;
