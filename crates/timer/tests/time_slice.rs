//! The kernel's help in the last microseconds of a spin (time-slice extension, Linux 7.0), and sleeping without it.

use std::time::Duration;

use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::time_slice;
use hourglass_timer::Sleeper;
use hourglass_timer::sleep::{EndsWhen, Policy, Settings};

fn sleeper(policy: Policy) -> Sleeper {
    let ends_when = EndsWhen::SurelyReached;
    Sleeper::with(Settings { ends_when, ..Settings::with_policy(policy) })
}

/// Never early, and no request outlives its spin: the kernel would keep another thread waiting for nothing.
#[test]
fn a_spin_ends_on_time_and_asks_no_more() {
    let sleeps = || {
        let mut spinning = sleeper(Policy::SpinOnly);
        let mut learned = sleeper(Policy::Learned);
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
