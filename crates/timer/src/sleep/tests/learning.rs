//! What is learnt, what it costs, and how it is unlearnt.

use hourglass_dice::Dice;

use super::*;
use crate::sleep::sim::LatencyDistribution;
use crate::sleep::{Budget, SchedClass};

/// A machine whose kernel wakes late by about `ns`.
fn late_by(ns: u64) -> Load {
    let wake_ups = vec![LatencyDistribution { weight: 1, from_ns: ns, to_ns: ns + ns / 4 }];
    Load { wake_ups, wait_cost_ns: ns / 2, preemptions: None }
}

/// The goals of the issue: 80 ns at 5 %, 0.6 %, 55 % of a CPU.
#[test]
fn an_idle_machine_is_slept_on_precisely_and_within_the_budget() {
    let seed = seed();
    for (length_ns, cpu_ppm) in [(100_000, 550_000), (1_000_000, 50_000), (10_000_000, 6_000)] {
        let mut sleeper = sleeper(seed, Load::idle(), SleeperSettings::DEFAULT);
        let _ = Run::of(&mut sleeper, 200, || length_ns);
        let run = Run::of(&mut sleeper, 5_000, || length_ns);
        assert!(run.miss_ns(500_000) <= 80, "{length_ns}: {} ns", run.miss_ns(500_000));
        assert!(run.miss_ns(970_000) <= 1_000, "{length_ns}: {} ns", run.miss_ns(970_000));
        assert!(run.cpu_ppm() <= cpu_ppm, "{length_ns}: {} ppm", run.cpu_ppm());
    }
}

/// A margin that was the maximum of the last 64 took 90 % of a CPU under load (research 2.4).
#[test]
fn load_does_not_inflate_the_margin_and_is_forgotten() {
    let mut sleeper = sleeper(seed(), Load::idle(), SleeperSettings::DEFAULT);
    let _ = Run::of(&mut sleeper, 1_000, || 1_000_000);
    sleeper.mechanism().set_load(Load::busy());
    let busy = Run::of(&mut sleeper, 5_000, || 1_000_000);
    assert!(busy.cpu_ppm() <= 50_000, "busy: {} ppm", busy.cpu_ppm());
    // Half of those that any margin reaches are on time for what the budget affords.
    assert!(busy.miss_ns(250_000) <= 80, "busy: {} ns", busy.miss_ns(250_000));
    sleeper.mechanism().set_load(Load::idle());
    let settling = Run::of(&mut sleeper, 1_000, || 1_000_000);
    assert!(settling.cpu_ppm() <= 50_000, "settling: {} ppm", settling.cpu_ppm());
    let after = Run::of(&mut sleeper, 1_000, || 1_000_000);
    assert!(after.cpu_ppm() <= 50_000, "after: {} ppm", after.cpu_ppm());
    assert!(after.miss_ns(970_000) <= 1_000, "after: {} ns", after.miss_ns(970_000));
    let margin = sleeper.margin_ns(1_000_000).unwrap();
    assert!(margin <= 60_000, "{margin}");
}

/// An estimate above the time that is slept has locked programs into spinning for ever: 70 % of a
/// core, 12 % when mended (research 1.11, airbus/sen 195). Here the guess is far above, and the
/// budget would let it all be spun.
#[test]
fn a_guess_above_the_time_slept_does_not_lock_in() {
    let generous = Budget { per_sleep_ns: 1_000_000, ..Budget::DEFAULT };
    let settings =
        SleeperSettings { seed_ns: 400_000, budget: generous, ..SleeperSettings::DEFAULT };
    let mut sleeper = sleeper(seed(), late_by(10_000), settings);
    let begin = Run::of(&mut sleeper, 32, || 100_000);
    assert!(begin.cpu_ppm() > 800_000, "the guess was not believed: {} ppm", begin.cpu_ppm());
    let _ = Run::of(&mut sleeper, 2_000, || 100_000);
    let run = Run::of(&mut sleeper, 2_000, || 100_000);
    assert!(run.cpu_ppm() < 120_000, "{} ppm", run.cpu_ppm());
    assert!(run.miss_ns(980_000) <= 80, "{} ns", run.miss_ns(980_000));
}

/// The same where it was not a guess: the machine was slow and is not any more, and all sleeps are
/// shorter than what was learnt.
#[test]
fn what_was_learnt_under_load_does_not_lock_in() {
    let generous = Budget { per_sleep_ns: 1_000_000, ..Budget::DEFAULT };
    let settings = SleeperSettings { budget: generous, ..SleeperSettings::DEFAULT };
    let mut sleeper = sleeper(seed(), late_by(300_000), settings);
    let _ = Run::of(&mut sleeper, 1_000, || 2_000_000);
    sleeper.mechanism().set_load(late_by(10_000));
    let stuck = Run::of(&mut sleeper, 100, || 310_000);
    assert!(stuck.cpu_ppm() > 500_000, "nothing to be freed from: {} ppm", stuck.cpu_ppm());
    let _ = Run::of(&mut sleeper, 5_000, || 310_000);
    let run = Run::of(&mut sleeper, 1_000, || 310_000);
    assert!(run.cpu_ppm() < 100_000, "{} ppm", run.cpu_ppm());
}

#[test]
fn samples_do_not_make_short_sleeps_late() {
    let mut sleeper = sleeper(seed(), Load::idle(), SleeperSettings::DEFAULT);
    let _ = Run::of(&mut sleeper, 10_000, || 10_000);
    let run = Run::of(&mut sleeper, 100_000, || 10_000);
    assert!(run.miss_ns(999_000) <= 80, "{} ns", run.miss_ns(999_000));
    assert!(sleeper.mechanism().waits() <= 20, "{} waits", sleeper.mechanism().waits());
}

/// Whatever is slept on whatever machine, the account is kept: the allowance of each sleep, what may be
/// owed at any moment (16 allowances), and about the same again until the cost of a wait is known.
#[test]
fn the_budget_is_kept() {
    let seed = seed();
    let loads = [Load::idle(), Load::busy(), late_by(5_000), late_by(100_000), late_by(400_000)];
    for (number, load) in (0..).zip(loads.iter().cycle().take(20)) {
        let budget = Budget { per_sleep_ns: 5_000 + 20_000 * number, of_wait_ppm: 0, share_ppm: 0 };
        let settings = SleeperSettings { budget, ..SleeperSettings::DEFAULT };
        let mut sleeper = sleeper(seed + number, load.clone(), settings);
        let mut dice = Dice::new(seed + number);
        let lengths = move || 1_000_000 << dice.below(6);
        let sleeps = 3_000;
        let run = Run::of(&mut sleeper, sleeps, lengths);
        // What a wait costs it costs, even where nothing is spun; and the sleeper thinks.
        let thought = 500;
        let each = budget.per_sleep_ns + load.wait_cost_ns + thought;
        let allowed = u64::from(sleeps) * each + 32 * budget.per_sleep_ns;
        assert!(run.cpu_ns <= allowed, "{number}: {} of {allowed} ns", run.cpu_ns);
    }
}

#[test]
fn margins_are_kept_apart() {
    let mut sleeper = sleeper(seed(), late_by(40_000), SleeperSettings::DEFAULT);
    assert_eq!(sleeper.margin_ns(1_000_000), None);
    let mut margin_at = |class, cpu, load: Load| {
        sleeper.mechanism().class = class;
        sleeper.mechanism().cpu = cpu;
        sleeper.mechanism().set_load(load);
        let _ = Run::of(&mut sleeper, 1_500, || 1_000_000);
        sleeper.margin_ns(1_000_000).unwrap()
    };
    let other = margin_at(SchedClass::OTHER, 0, late_by(40_000));
    let fifo = margin_at(SchedClass::FIFO, 0, late_by(8_000));
    let elsewhere = margin_at(SchedClass::OTHER, 3, late_by(20_000));
    assert!(fifo < elsewhere && elsewhere < other, "{fifo} {elsewhere} {other}");
    sleeper.mechanism().class = SchedClass::OTHER;
    sleeper.mechanism().cpu = 0;
    assert!(sleeper.margin_ns(1_000_000).unwrap().abs_diff(other) < 3_000);
}

/// A CPU that may sleep for longer sleeps deeper: short and long sleeps in turn are both precise.
#[test]
fn lengths_are_kept_apart() {
    let mut sleeper = sleeper(seed(), late_by(8_000), SleeperSettings::DEFAULT);
    let (mut short, mut long) = (Vec::new(), Vec::new());
    for _ in 0..2_000 {
        sleeper.mechanism().set_load(late_by(8_000));
        short.push(sleeper.sleep_ns(100_000));
        sleeper.mechanism().set_load(late_by(40_000));
        long.push(sleeper.sleep_ns(10_000_000));
    }
    for (sleeps, most_spun) in [(short, 6_000), (long, 25_000)] {
        let settled = &sleeps[500..];
        let late = settled.iter().filter(|slept| slept.miss_ns() > 1_000).count();
        let spun = settled.iter().map(|slept| slept.spin_ns).sum::<u64>() / settled.len() as u64;
        assert!(late < 60 && spun < most_spun, "{late} late, {spun} ns spun");
    }
    assert!(sleeper.margin_ns(100_000) < sleeper.margin_ns(10_000_000));
}

#[test]
fn places_are_forgotten_in_order() {
    let mut sleeper = sleeper(seed(), Load::idle(), SleeperSettings::DEFAULT);
    for cpu in 0..40 {
        sleeper.mechanism().cpu = cpu;
        let run = Run::of(&mut sleeper, 50, || 1_000_000);
        // What is known of the class elsewhere serves at once.
        assert!(cpu == 0 || run.miss_ns(900_000) <= 1_000, "CPU {cpu}: {run:?}");
    }
    sleeper.mechanism().cpu = 0;
    assert_eq!(sleeper.margin_ns(1_000_000), None);
    sleeper.mechanism().cpu = 39;
    assert!(sleeper.margin_ns(1_000_000).is_some());
}

/// Without a budget nothing is spun on purpose. What a wake-up always takes is still allowed for,
/// which costs nothing.
#[test]
fn no_budget_means_no_spinning() {
    let budget = Budget { per_sleep_ns: 0, of_wait_ppm: 0, share_ppm: 0 };
    let mut sleeper =
        sleeper(seed(), late_by(20_000), SleeperSettings { budget, ..SleeperSettings::DEFAULT });
    let _ = Run::of(&mut sleeper, 500, || 1_000_000);
    let run = Run::of(&mut sleeper, 500, || 1_000_000);
    assert!((500..5_500).contains(&run.miss_ns(500_000)), "{} ns", run.miss_ns(500_000));
    assert!(run.cpu_ppm() < 12_000, "{} ppm", run.cpu_ppm());
}

/// A wait that takes 60 us of the CPU left nothing to spin with, where the budget was of both
/// together: after 10 ms of idling other machines take that much.
#[test]
fn a_dear_kernel_does_not_cost_precision() {
    let load = Load { wait_cost_ns: 60_000, ..Load::idle() };
    for length_ns in [1_000_000, 10_000_000] {
        let mut sleeper = sleeper(seed(), load.clone(), SleeperSettings::DEFAULT);
        let _ = Run::of(&mut sleeper, 500, || length_ns);
        let run = Run::of(&mut sleeper, 2_000, || length_ns);
        assert!(run.miss_ns(900_000) <= 80, "{length_ns}: {} ns", run.miss_ns(900_000));
        let each_ns = run.cpu_ns / 2_000;
        assert!(each_ns <= 120_000, "{length_ns}: {each_ns} ns");
    }
}

#[test]
fn an_hour_passes() {
    let mut sleeper = sleeper(seed(), Load::busy(), SleeperSettings::DEFAULT);
    let run = Run::of(&mut sleeper, 36_000, || 100_000_000);
    assert!(run.wall_ns >= 3_600_000_000_000);
    // A wait of 20 us, 20 us more, and half a percent at most for the usual wake-ups.
    assert!(run.cpu_ppm() <= 1_500, "{} ppm", run.cpu_ppm());
}
