//! Oscillators of known rates, and what may be said of them.

use hourglass_dice::{Dice, seed};

use super::*;

const S: u64 = 1_000_000_000;

/// `at_ns` of UTC, the raw clock of an oscillator that is `rate` ppb too fast, and a wall clock that is off by `off_ns`.
fn moment(at_ns: u64, rate: i64, off_ns: i64) -> Moment {
    let gained = i128::from(at_ns) * i128::from(rate) / ONE;
    let raw_ns = u64::try_from(i128::from(at_ns) + gained).unwrap();
    let realtime_ns = (1_800_000_000 * S + at_ns).checked_add_signed(off_ns).unwrap();
    Moment { realtime_ns, raw_ns: [raw_ns, raw_ns + 1], slept_ns: [7, 9] }
}

#[test]
fn a_rate_is_known_by_the_errors_of_two_moments_over_their_distance() {
    let mut oscillator = Oscillator::default();
    assert_eq!(oscillator.rate(&moment(S, 0, 0)), [-50_000, 50_000]);
    oscillator.learn(moment(1_000 * S, 20_000, 900_000), 1_000_000);
    assert_eq!(oscillator.rate(&moment(1_000 * S, 20_000, 0)), [-50_000, 50_000]);
    oscillator.learn(moment(1_100 * S, 20_000, 900_000), 1_000_000);
    // 2 ms in 100 s, and 1 ppm.
    let [least, most] = oscillator.rate(&moment(1_100 * S, 20_000, 0));
    assert!(
        (-1_100..=-900).contains(&least) && (40_900..=41_100).contains(&most),
        "{least} {most}"
    );
    oscillator.learn(moment(3_000 * S, 20_000, -900_000), 1_000_000);
    let [least, most] = oscillator.rate(&moment(3_000 * S, 20_000, 0));
    assert!(17_800 < least && least <= 20_000 && most < 24_000, "{least} {most}");
}

/// Random moments, true to their errors, of an oscillator that wanders by less than is allowed: its rate is never outside.
#[test]
fn no_true_rate_is_outside() {
    let mut dice = Dice::new(seed());
    let mut narrow = 0;
    for _ in 0..300 {
        let rate = dice.below(160_000).cast_signed() - 80_000;
        let mut oscillator = Oscillator::default();
        let (mut at_ns, mut gained) = (S, 0i128);
        for _ in 0..dice.below(100) {
            // Half of 1 ppm on both sides of it.
            let now = rate + dice.below(1_000).cast_signed() - 500;
            let passed = 1 + dice.below(60) * S;
            at_ns += passed;
            gained += i128::from(passed) * i128::from(now) / ONE;
            let error_ns = 100_000 + dice.below(10_000_000);
            let off_ns = dice.below(2 * error_ns).cast_signed() - error_ns.cast_signed();
            let raw_ns = u64::try_from(i128::from(at_ns) + gained).unwrap();
            let known = Moment { raw_ns: [raw_ns - 50, raw_ns + 50], ..moment(at_ns, 0, off_ns) };
            oscillator.learn(known, error_ns);
            if let Some([least, most]) = oscillator.learnt() {
                assert!(least <= now && now <= most, "{least} {now} {most}");
                narrow += u32::from(most - least < 40_000);
            }
            assert!(oscillator.0.len() <= MOST);
        }
    }
    assert!(narrow > 100, "{narrow}");
}

#[test]
fn what_contradicts_itself_is_forgotten_and_so_is_a_sleep() {
    let mut oscillator = Oscillator::default();
    for at in 0..3 {
        oscillator.learn(moment((100 + at * 100) * S, 0, 0), 1_000);
    }
    assert!(oscillator.learnt().is_some_and(|[least, most]| -2_000 < least && most < 2_000));
    // Paused with its counter for 1 ms.
    let paused = moment(400 * S, 0, 1_000_000);
    oscillator.learn(paused, 1_000);
    assert_eq!((oscillator.0.len(), oscillator.rate(&paused)), (1, Oscillator::ASSUMED));
    oscillator.learn(moment(500 * S, 0, 1_000_000), 1_000);
    assert!(oscillator.learnt().is_some());
    let slept = Moment { slept_ns: [S, S + 2], ..moment(600 * S, 0, 1_000_000) };
    assert_eq!(oscillator.rate(&slept), Oscillator::ASSUMED);
    // One that is off by more than is assumed is believed.
    oscillator.learn(moment(700 * S, 90_000, 0), 1_000);
    oscillator.learn(moment(800 * S, 90_000, 0), 1_000);
    let [least, most] = oscillator.rate(&moment(800 * S, 90_000, 0));
    assert!(88_000 < least && most < 92_000, "{least} {most}");
}
