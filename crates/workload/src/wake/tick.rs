//! The tick-bound `usleep` of the paper's time, emulated.
//!
//! Sections 5.3 and 5.5 need it: sleepers woke only at clock interrupts, 100 a second, and the
//! kernel busy-waited when a real-time thread asked for 2 ms or less.

use std::fmt;
use std::sync::Arc;

use hourglass_documents::Policy;
use hourglass_time::Span;

use super::nanosleep::{FINEST, set_slack};
use super::spin::spin_until;
use super::{MethodEntry, OpenWakeUp, Sleeper, Unavailable, WakeUp, WakeUpMethod, WakeUpTime};
use crate::tokens::TokenReader;

pub(super) const ENTRY: MethodEntry = MethodEntry {
    name: "TICK",
    synopsis: "TICK:HZ",
    about: "emulates the tick-bound usleep of 2002: wakes only on a grid of HZ a second",
    aliases: &[],
    parse: |parameter| {
        let given: Vec<&str> = parameter.into_iter().collect();
        let mut words = TokenReader::new(ENTRY.synopsis, &given);
        let hertz: u64 = words.value("HZ")?;
        if !(1..=100_000).contains(&hertz) {
            return Err(words.together(format!("HZ must be from 1 to 100000, not {hertz}")));
        }
        Ok(Arc::new(Tick { hertz }))
    },
};

/// Linux 2.4 busy-waited in `nanosleep` up to this length, for real-time threads.
const LONGEST_BUSY_WAIT: Span = Span::from_millis(2);
const SECOND_NS: u64 = 1_000_000_000;

#[derive(Clone, Copy, Debug)]
struct Tick {
    hertz: u64,
}

impl fmt::Display for Tick {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", ENTRY.name, self.hertz)
    }
}

impl WakeUpMethod for Tick {
    fn open(&self, thread: &Sleeper) -> Result<OpenWakeUp, Unavailable> {
        // The grid is the only lateness wanted.
        set_slack(self, Some(FINEST))?;
        let wake_up = Box::new(TickWakeUp {
            tick_ns: SECOND_NS / self.hertz,
            busy_waits: thread.policy.is_real_time(),
        });
        let busy = if wake_up.busy_waits { ", busy-waiting up to 2ms" } else { "" };
        Ok(OpenWakeUp {
            wake_up,
            emulated: Some(format!("clock interrupts at {} Hz{busy}", self.hertz)),
        })
    }

    fn grid(&self) -> Option<Span> {
        let tick_ns = SECOND_NS / self.hertz;
        i64::try_from(tick_ns).ok().map(Span::from_nanos)
    }

    fn busy_wait(&self, policy: Policy) -> Span {
        if policy.is_real_time() { LONGEST_BUSY_WAIT } else { Span::ZERO }
    }

    fn is_emulation(&self) -> bool {
        true
    }
}

struct TickWakeUp {
    tick_ns: u64,
    busy_waits: bool,
}

impl WakeUp for TickWakeUp {
    fn wait(&mut self, alarm: WakeUpTime) {
        let ahead = alarm.due_ns.saturating_sub(alarm.now_ns);
        if self.busy_waits && ahead <= LONGEST_BUSY_WAIT.nanos_or_zero() {
            return spin_until(alarm.due_ns);
        }
        let _ = hourglass_sys::wait::nanosleep_until(tick_at_or_after(alarm, self.tick_ns));
    }
}

/// The first tick of the grid that is not before the alarm. The grid begins with the run, so
/// that its phase against the threads is the same in every run.
pub(super) fn tick_at_or_after(alarm: WakeUpTime, tick_ns: u64) -> u64 {
    let since = alarm.due_ns.saturating_sub(alarm.epoch_ns);
    alarm.epoch_ns.saturating_add(since.div_ceil(tick_ns).saturating_mul(tick_ns))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Hourglass paper, section 5.5: with 10 ms ticks a wake-up for 33 ms comes at 40 ms.
    #[test]
    fn wakes_only_on_the_grid() {
        let at = |due_ms: u64| {
            let alarm = WakeUpTime {
                now_ns: 5_000_000_000,
                due_ns: 5_000_000_000 + due_ms * 1_000_000,
                epoch_ns: 5_000_000_000,
            };
            (tick_at_or_after(alarm, 10_000_000) - alarm.epoch_ns) / 1_000_000
        };
        assert_eq!([at(33), at(66), at(99), at(330)], [40, 70, 100, 330]);
    }

    #[test]
    fn hertz_must_be_a_rate() {
        for bad in [None, Some("0"), Some("x"), Some("-5"), Some("1000000")] {
            assert!((ENTRY.parse)(bad).is_err(), "{bad:?}");
        }
        assert_eq!((ENTRY.parse)(Some("100")).map(|m| m.to_string()), Ok("TICK:100".to_owned()));
    }
}
