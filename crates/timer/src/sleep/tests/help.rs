//! What processors and kernels offer to spinning threads: waits at low power, time slices that are extended.

use super::super::sim::{Load, Preemptions};
use super::*;

/// Wake-ups evenly late, so that some 20 us are spun.
fn spinning() -> SleeperSettings {
    SleeperSettings::PRECISE
}

/// TPAUSE in quanta (36 ns are the 83 ticks of Kuns and others, ICPE 2025; the others are worse): no sleep
/// ends later than one that looks all the time, and most of the spin is at low power.
#[test]
fn waits_in_quanta_make_no_sleep_late() {
    let seed = seed();
    for quantum_ns in [1, 36, 100, 190] {
        let mut sleeper = sleeper(seed, Load::idle(), spinning());
        sleeper.mechanism().quantum_ns = Some(quantum_ns);
        Run::of(&mut sleeper, 200, || 1_000_000);
        let before = sleeper.mechanism().low_power_ns;
        let (mut spun, mut low_power) = (0, 0);
        let mut dice = seed;
        for _ in 0..2_000 {
            // All phases of the spin against the quanta.
            dice = dice.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_041);
            let slept = sleeper.sleep_ns(1_000_000 + (dice >> 40) % 5_000);
            // Where the kernel was not too late for a spin.
            if slept.spin_ns > 1_000 {
                assert!(slept.miss_ns() < 150, "{quantum_ns}: {slept:?}");
            }
            spun += slept.spin_ns;
        }
        low_power += sleeper.mechanism().low_power_ns - before;
        assert!(low_power * 2 > spun, "{low_power} of {spun} ns");
    }
}

#[test]
fn a_wait_at_low_power_ends_soon_after_an_interrupt() {
    let seed = seed();
    for at in 1..60 {
        let mut sleeper = sleeper(
            seed,
            Load::idle(),
            SleeperSettings::with_policy(super::super::SleepPolicy::SpinOnly),
        );
        sleeper.mechanism().quantum_ns = Some(36);
        let now = sleeper.mechanism().now();
        let interrupter = sleeper.interrupter();
        sleeper.mechanism().interrupt_at(now + at * 997, interrupter);
        let slept = sleeper.sleep_ns(100_000);
        assert!(slept.interrupted && slept.woke_ns < now + at * 997 + 700, "{slept:?}");
    }
}

/// A preemption that would come in the last microseconds comes after the sleep; one that would come
/// before is not changed; and the sleeper asks for nothing when the sleep is over.
#[test]
fn an_extended_slice_keeps_preemptions_out_of_the_last_microseconds() {
    let seed = seed();
    let load = Load {
        preemptions: Some(Preemptions {
            every_ns: 40_000,
            from_ns: 100_000,
            to_ns: 300_000,
            counted: true,
        }),
        ..Load::idle()
    };
    let late = |extension_ns: Option<u64>| {
        let mut sleeper = sleeper(
            seed,
            load.clone(),
            SleeperSettings::with_policy(super::super::SleepPolicy::SpinOnly),
        );
        if let Some(extension_ns) = extension_ns {
            sleeper.mechanism().extension_ns = Some(extension_ns);
        }
        let mut late = 0;
        // All of it within what may be asked for.
        for _ in 0..5_000 {
            let slept = sleeper.sleep_ns(3_000);
            late += u32::from(slept.miss_ns() > 50_000);
            assert!(sleeper.mechanism().slice_extensions().is_some(), "still asked for");
            sleeper.mechanism().work(20_000);
        }
        (late, sleeper.mechanism().slice_extensions().unwrap())
    };
    let (without, none) = late(None);
    let (with, granted) = late(Some(5_000));
    assert!(none == 0 && without > 100, "{without} late without");
    // What comes between the beginning of a sleep and its first look.
    assert!(granted > 100 && with * 20 < without, "{with} of {without} late, {granted} granted");
}
