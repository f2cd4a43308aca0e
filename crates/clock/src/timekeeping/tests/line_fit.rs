//! The beginning of a line.

use hourglass_dice::Dice;

use super::super::double::Drift;
use super::super::properties::Observed;
use super::*;

/// Half of a slow read (a cold one, or a system call), ns.
const HALF_READ_NS: u64 = 150;
/// Two roundings, and what a slope over 10 us leaves open.
const NEAR_NS: u64 = 20;

/// A steady clock whose reads all take as long, so that every bracket's middle is the truth.
fn slow(seed: u64) -> Observed {
    let mut observed = Observed::new(seed, Drift::Constant(40_000));
    let half_read_ps = HALF_READ_NS * 1_000;
    observed.double.with(|s| s.half_read_ps = half_read_ps..half_read_ps + 1);
    observed.settle();
    observed
}

/// Reads while nothing else happens: the time returned is that in the middle of the read.
fn assert_on_time(observed: &Observed, seed: u64) {
    let truth_ns = observed.double.truth_ns() + HALF_READ_NS;
    let reported_ns = observed.clock.now();
    let interrupted = observed.double.truth_ns() > truth_ns + HALF_READ_NS;
    let apart_ns = reported_ns.abs_diff(truth_ns);
    assert!(interrupted || apart_ns <= NEAR_NS, "seed {seed}: {apart_ns} ns off");
}

/// The OS clock served since the last line's end, and the new line began at what it had said
/// before the counter was read: a whole read behind, 300 ns where that was slow.
#[test]
fn a_new_line_begins_where_the_old_one_is_also_after_an_expiry() {
    for seed in 0..20 {
        let (mut observed, mut dice) = (slow(seed), Dice::new(seed));
        for _ in 0..20 {
            observed.double.pass_ns(dice.between(20_000_000_000, 100_000_000_000));
            // Finds the line at its end, and draws the next.
            observed.look();
            assert_ne!(observed.clock.now_bounded().status, Status::OsClock);
            assert_on_time(&observed, seed);
        }
    }
}

/// A new line begins where the OS clock was requested, or serves while a counter is measured.
#[test]
fn a_new_line_begins_where_the_old_one_is_also_over_another_source() {
    for seed in 0..20 {
        let (mut observed, mut dice) = (slow(seed), Dice::new(seed));
        for _ in 0..20 {
            for source in [SourceId::OS, SourceId::SIMULATED] {
                observed.clock.set_source(source).unwrap();
                assert_on_time(&observed, seed);
                observed.double.pass_ns(dice.between(1, 2_000_000_000));
                observed.look();
            }
        }
    }
}
