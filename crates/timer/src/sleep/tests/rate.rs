//! Loops at a rate.

use super::*;
use crate::sleep::{MissedTicks, PeriodError, Rate};

fn at_1khz(missed: MissedTicks) -> Rate<SimClock, SimMachine> {
    let sleeper = sleeper(seed(), Load::idle(), SleeperSettings::DEFAULT);
    Rate::hz(sleeper, 1_000).unwrap().on_missed(missed)
}

/// Work of any length below the period shifts nothing: after ten thousand periods the loop is where
/// the grid is, to a wake-up.
#[test]
fn work_does_not_shift_the_grid() {
    let mut rate = at_1khz(MissedTicks::Skip);
    let begun = rate.sleeper().mechanism().now();
    for number in 0..10_000 {
        let beat = rate.wait();
        let tick = beat.tick.unwrap();
        assert_eq!((tick.number, tick.lost), (number, 0));
        assert!(beat.slept.reached() && !beat.is_overrun());
        rate.sleeper().mechanism().work(number % 10 * 90_000);
    }
    let last = rate.wait().tick.unwrap();
    assert!(last.scheduled_ns.abs_diff(begun + 10_001_000_000) < 100, "{last:?} from {begun}");
    assert_eq!((rate.overruns(), rate.lost()), (0, 0));
}

/// Every tenth turn works 3.5 periods.
#[test]
fn overruns_are_counted() {
    // Of the ticks that 3.5 periods pass the first is given late, two are left out or given later.
    for (missed, overruns, lost) in
        [(MissedTicks::Skip, 1, 2), (MissedTicks::Delay, 1, 2), (MissedTicks::Burst, 3, 0)]
    {
        let mut rate = at_1khz(missed);
        for turn in 0..100 {
            assert!(rate.wait().tick.is_some());
            if turn % 10 == 3 {
                rate.sleeper().mechanism().work(3_500_000);
            }
        }
        assert_eq!((rate.overruns(), rate.lost()), (10 * overruns, 10 * lost), "{missed:?}");
    }
}

#[test]
fn an_interrupt_takes_no_tick() {
    let mut rate = at_1khz(MissedTicks::Skip);
    let first = rate.wait().tick.unwrap();
    rate.sleeper().interrupter().interrupt();
    let beat = rate.wait();
    assert!(beat.tick.is_none() && beat.slept.interrupted && !beat.is_overrun());
    rate.sleeper().clear();
    let second = rate.wait().tick.unwrap();
    assert_eq!((second.number, second.scheduled_ns), (1, first.scheduled_ns + 1_000_000));
}

#[test]
fn periods_that_cannot_be_are_refused() {
    let new = || sleeper(1, Load::idle(), SleeperSettings::DEFAULT);
    assert_eq!(Rate::hz(new(), 0).unwrap_err(), PeriodError::NoRate);
    let negative = Rate::every(new(), Span::from_nanos(-5)).unwrap_err();
    assert_eq!(negative.to_string(), "a period of -5ns never ends; give one of at least 1 ns");
    assert!(Rate::every(new(), Span::NANOSECOND).is_ok());
}
