//! How sleeps end: never early, by interrupts, late and why.

use hourglass_clock::timekeeping::{EventKind, SourceId};
use hourglass_dice::Dice;

use super::*;
use crate::sleep::sim::{LatencyDistribution, Preemptions};
use crate::sleep::{Delay, Interrupt, Interrupter, SleepEnd, SleepOutcome, SleepPolicy};

const POLICIES: [SleepPolicy; 4] = [
    SleepPolicy::Learned,
    SleepPolicy::Thesis { hz: 1_000 },
    SleepPolicy::KernelOnly,
    SleepPolicy::SpinOnly,
];

/// From 0 to 2^24 ns, each order of magnitude as often.
fn length_ns(dice: &mut Dice) -> u64 {
    dice.magnitude(25).unsigned_abs()
}

/// "Never early" on the sleeper's own clock, on every machine and by every policy: a million sleeps
/// with interrupts and signals at random times. An interrupted sleep says so; one that was not is
/// at its deadline.
#[test]
fn never_early() {
    let seed = seed();
    for (number, policy) in (0..).zip(POLICIES) {
        let mut dice = Dice::new(seed + number);
        for load in [Load::idle(), Load::busy()] {
            let settings = SleeperSettings::with_policy(policy);
            let mut sleeper = sleeper(seed + number, load, settings);
            for _ in 0..125_000 {
                let begun = sleeper.mechanism().now();
                let length = length_ns(&mut dice);
                let interrupted_at = match dice.below(4) {
                    0 => Some(begun + 1 + dice.below(2 * length + 2)),
                    _ => None,
                };
                if let Some(at) = interrupted_at {
                    let interrupter = sleeper.interrupter();
                    sleeper.mechanism().interrupt_at(at, interrupter);
                }
                if dice.below(4) == 0 {
                    sleeper.mechanism().signal_at(begun + dice.below(length + 1));
                }
                let slept = sleeper.sleep_ns(length);
                let report = format!("seed {seed}, {policy}, {length} ns: {slept:?}");
                assert!(slept.reached() || slept.interrupted, "early: {report}");
                let due = interrupted_at.is_some_and(|at| at <= sleeper.mechanism().now());
                assert!(!slept.interrupted || due, "interrupted without an interrupt: {report}");
                // The sleeper's line may lie behind the true time, by its bound.
                let lasted = slept.woke_ns.saturating_sub(begun);
                assert!(slept.kernel_ns + slept.spin_ns <= lasted + 1_000, "{report}");
                // What comes between two sleeps is for the next one; it shall begin anew.
                sleeper.mechanism().work(2 * length + 2);
                sleeper.clear();
            }
        }
    }
}

#[test]
fn surely_reached_means_true_time() {
    let settings =
        SleeperSettings { ends_when: SleepEnd::SurelyReached, ..SleeperSettings::DEFAULT };
    let seed = seed();
    let mut sleeper = sleeper(seed, Load::idle(), settings);
    let mut dice = Dice::new(seed);
    for _ in 0..20_000 {
        let slept = sleeper.sleep_ns(length_ns(&mut dice));
        let now = sleeper.mechanism().now();
        assert!(now >= slept.deadline_ns && slept.reached(), "at {now}: {slept:?}");
    }
}

#[test]
fn a_past_deadline_does_not_enter_the_kernel() {
    for policy in POLICIES {
        let mut sleeper = sleeper(seed(), Load::idle(), SleeperSettings::with_policy(policy));
        sleeper.mechanism().work(5_000_000);
        for deadline in [0, 1, 4_999_999, 5_000_000] {
            let before = sleeper.mechanism().now();
            let slept = sleeper.sleep_until_ns(deadline);
            assert_eq!((slept.delay, slept.kernel_ns, slept.spin_ns), (Delay::AlreadyPast, 0, 0));
            assert!(slept.miss_ns() >= before - deadline && !slept.interrupted);
            assert!(sleeper.mechanism().now() - before < 100);
        }
        assert_eq!(sleeper.mechanism().waits(), 0);
    }
}

/// In the published program an early interrupt is lost, and a late one ends nothing (research
/// 1.1 f).
#[test]
fn an_interrupt_latches_until_it_is_cleared() {
    for policy in POLICIES {
        let mut sleeper = sleeper(seed(), Load::idle(), SleeperSettings::with_policy(policy));
        let interrupter = sleeper.interrupter();
        interrupter.interrupt();
        for _ in 0..3 {
            let before = sleeper.mechanism().now();
            let slept = sleeper.sleep_ns(1_000_000_000);
            assert!(slept.interrupted && !slept.reached() && slept.miss_ns() == 0, "{slept:?}");
            assert!(sleeper.mechanism().now() - before < 1_000);
        }
        assert_eq!(sleeper.mechanism().waits(), 0);
        assert!(sleeper.clear() && !sleeper.clear());
        assert!(!sleeper.sleep_ns(3_000_000).interrupted);
    }
}

#[test]
fn an_interrupt_ends_both_phases() {
    for (policy, before_deadline, within) in [
        (SleepPolicy::Learned, 5_000_000, 60_000),
        (SleepPolicy::KernelOnly, 5_000_000, 60_000),
        (SleepPolicy::Thesis { hz: 1_000 }, 5_000_000, 60_000),
        (SleepPolicy::SpinOnly, 5_000_000, 1_000),
        (SleepPolicy::Learned, 2_000, 1_000),
        (SleepPolicy::Thesis { hz: 1_000 }, 500_000, 1_000),
    ] {
        let interrupted = |seed| {
            let mut sleeper = sleeper(seed, Load::idle(), SleeperSettings::with_policy(policy));
            let _ = Run::of(&mut sleeper, 300, || 1_000_000);
            let at = sleeper.mechanism().now() + 10_000_000;
            let interrupter = sleeper.interrupter();
            sleeper.mechanism().interrupt_at(at - before_deadline, interrupter);
            (sleeper.sleep_until_ns(at), at - before_deadline)
        };
        // Now and then the kernel's wait is so late that nothing is left of the phase that is to be interrupted.
        let spins = policy == SleepPolicy::SpinOnly || before_deadline < 1_000_000;
        let in_time =
            |(slept, at): &(SleepOutcome, u64)| !spins || slept.woke_ns - slept.spin_ns <= *at;
        let (slept, at) = (seed()..).take(10).map(interrupted).find(in_time).unwrap();
        assert!(slept.interrupted && !slept.reached(), "{policy}: {slept:?}");
        let late = slept.woke_ns - at;
        assert!(late <= within, "{policy}: {late} ns after the interrupt");
    }
}

#[test]
fn a_group_shares_a_word() {
    static STOP: Interrupt = Interrupt::new();
    let mut sleepers: Vec<SimSleeper> = (0..3)
        .map(|n| sleeper(n, Load::idle(), SleeperSettings::DEFAULT).interrupted_by(&STOP))
        .collect();
    STOP.interrupt();
    assert!(sleepers.iter_mut().all(|sleeper| sleeper.sleep_ns(1_000_000).interrupted));
    STOP.clear();
    assert!(sleepers.iter_mut().all(|sleeper| sleeper.sleep_ns(1_000_000).reached()));
}

#[test]
fn a_handle_is_shared() {
    let stop = Interrupter::new();
    let mut sleepers: Vec<SimSleeper> = (0..3)
        .map(|n| {
            sleeper(n, Load::idle(), SleeperSettings::DEFAULT).interrupted_through(stop.clone())
        })
        .collect();
    stop.interrupt();
    assert!(sleepers.iter_mut().all(|sleeper| sleeper.sleep_ns(1_000_000).interrupted));
    drop(sleepers);
    assert!(stop.clear());
}

#[test]
fn other_signals_end_no_sleep() {
    let signalled = |seed| {
        let mut sleeper = sleeper(seed, Load::idle(), SleeperSettings::DEFAULT);
        let _ = Run::of(&mut sleeper, 300, || 1_000_000);
        let begun = sleeper.mechanism().now();
        (1..50).for_each(|n| sleeper.mechanism().signal_at(begun + n * 100_000));
        let slept = sleeper.sleep_until_ns(begun + 10_000_000);
        assert!(slept.reached() && slept.spin_ns < 100_000, "{slept:?}");
        slept.miss_ns()
    };
    // Now and then the kernel's wait ends late.
    let least = (seed()..).take(10).map(signalled).min();
    assert!(least <= Some(1_000), "{least:?}");
}

#[test]
fn each_delay_is_reported_for_what_it_is() {
    let preempted = |counted| Load {
        preemptions: Some(Preemptions {
            every_ns: 1_000_000,
            from_ns: 100_000,
            to_ns: 200_000,
            counted,
        }),
        ..Load::idle()
    };
    let late = LatencyDistribution { weight: 1, from_ns: 700_000, to_ns: 700_000 };
    let mut found = Vec::new();
    for (load, policy) in [
        (Load { wake_ups: vec![late], ..Load::idle() }, SleepPolicy::Learned),
        (preempted(true), SleepPolicy::SpinOnly),
        (preempted(false), SleepPolicy::SpinOnly),
    ] {
        let mut sleeper = sleeper(seed(), load, SleeperSettings::with_policy(policy));
        let delays: Vec<SleepOutcome> = (0..1_000)
            .map(|_| sleeper.sleep_ns(2_000_000))
            .filter(|slept| slept.delay != Delay::None)
            .collect();
        let first = delays[0];
        assert!(delays.iter().all(|slept| slept.delay == first.delay), "{policy}");
        assert!(delays.iter().all(|slept| slept.miss_ns() > Delay::ON_TIME_NS));
        found.push((first.delay, first.preempted()));
    }
    let wanted = [(Delay::WokenLate, false), (Delay::Preempted, true), (Delay::Stalled, true)];
    assert_eq!(found, wanted);
}

#[test]
fn a_clock_that_stands_still_does_not_hold_a_sleeper_for_ever() {
    let mut sleeper =
        sleeper(seed(), Load::idle(), SleeperSettings::with_policy(SleepPolicy::SpinOnly));
    let _ = Run::of(&mut sleeper, 300, || 1_000_000);
    sleeper.mechanism().stop_clock();
    let slept = sleeper.sleep_ns(1_000_000);
    assert!(slept.reached(), "{slept:?}");
    let found = [EventKind::Stuck, EventKind::Residual].map(|kind| sleeper.clock.count(kind));
    assert_eq!(found.iter().sum::<u64>(), 1, "{:?}", sleeper.clock.events());
    assert_eq!(sleeper.clock.source(), SourceId::OS);
}

#[test]
fn slack_is_as_before() {
    for policy in POLICIES {
        let mut sleeper = sleeper(seed(), Load::idle(), SleeperSettings::with_policy(policy));
        sleeper.mechanism().set_slack_ns(12_345);
        let _ = Run::of(&mut sleeper, 100, || 1_000_000);
        assert_eq!(sleeper.mechanism().slack_ns(), Some(12_345), "{policy}");
    }
}

#[test]
fn no_length_is_too_long_or_too_short() {
    for policy in POLICIES {
        let mut sleeper = sleeper(seed(), Load::idle(), SleeperSettings::with_policy(policy));
        for length in [Span::ZERO, Span::MIN, Span::from_nanos(-1)] {
            assert_eq!(sleeper.sleep_for(length).delay, Delay::AlreadyPast);
        }
        assert_eq!(sleeper.sleep_until(hourglass_time::Instant::MIN).delay, Delay::AlreadyPast);
        for deadline in [u64::MAX, u64::MAX / 2, 1 << 60] {
            let (at, interrupter) = (sleeper.mechanism().now() + 1_000, sleeper.interrupter());
            sleeper.mechanism().interrupt_at(at, interrupter);
            let slept = sleeper.sleep_until_ns(deadline);
            assert!(slept.interrupted && slept.woke_ns < at + 100_000, "{policy}: {slept:?}");
            sleeper.clear();
        }
        assert!(sleeper.sleep(std::time::Duration::from_micros(3)).reached());
    }
}
