//! The kernel's help in the last microseconds of a spin (time-slice extension, Linux 7.0), and sleeping without it.

use std::time::Duration;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::time_slice;
use hourglass_timer::Sleeper;
use hourglass_timer::sleep::{SleepEnd, SleepPolicy, SleeperSettings};

fn sleeper(policy: SleepPolicy) -> Sleeper {
    let ends_when = SleepEnd::SurelyReached;
    Sleeper::with(SleeperSettings { ends_when, ..SleeperSettings::with_policy(policy) })
}

/// Never early, and no request outlives its spin: the kernel would keep another thread waiting for nothing.
#[test]
fn a_spin_ends_on_time_and_asks_no_more() {
    let sleeps = || {
        let mut spinning = sleeper(SleepPolicy::SpinOnly);
        let mut learned = sleeper(SleepPolicy::Learned);
        let mut best = Duration::MAX;
        for round in 0..200 {
            let sleeper = if round % 2 == 0 { &mut spinning } else { &mut learned };
            let deadline = now_ns(ClockId::Monotonic) + 500_000;
            let _ = sleeper.sleep_until_ns(deadline);
            let late = now_ns(ClockId::Monotonic).checked_sub(deadline).expect("early");
            best = best.min(Duration::from_nanos(late));
            assert!(!time_slice::is_asked(), "round {round}");
        }
        let state = match (time_slice::is_available(), time_slice::enable()) {
            (false, false) => "not offered by this kernel or this C library",
            (true, false) => "refused",
            (_, true) => "enabled",
        };
        println!("time-slice extension: {state}; the best sleep was {best:?} late");
        assert!(best < Duration::from_millis(1), "{best:?}");
    };
    std::thread::spawn(sleeps).join().unwrap();
}
