//! The clock on this machine, and what its methods promise.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use super::super::properties::{Observed, quiet};
use super::super::{ClockEventKind, MaintenanceThread, Start, WallStatus};
use super::*;
use crate::timekeeping::double::Drift;

fn os_ns() -> u64 {
    Native.reference_ns(ReferenceClock::Monotonic)
}

/// The best source that this machine has, whatever the kernel thinks of it.
fn some_source() -> SourceId {
    let counters = [SourceId::TSC, SourceId::CNTVCT];
    counters.into_iter().find(|s| Native.supports(*s)).unwrap_or(SourceId::OS)
}

#[test]
fn the_first_read_is_the_time() {
    static CLOCK: Clock = Clock::new();
    let before = os_ns();
    let now = CLOCK.now();
    assert!((before..=os_ns()).contains(&now), "the OS clock serves first");
    assert_eq!(CLOCK.now_bounded().status, Status::OsClock);
    let given = Clock::with(ClockSettings { start: Start::With(some_source()), ..quiet() });
    let before = os_ns();
    let bounds = given.now_bounded();
    assert!(bounds.earliest <= os_ns() && bounds.latest >= before, "{bounds:?}");
    assert_eq!(given.source(), some_source());
}

#[test]
fn a_source_that_is_not_here_is_refused() {
    let clock = Clock::new();
    let error = clock.set_source(SourceId::HPET).unwrap_err();
    assert!(error.to_string().contains("hpet"), "{error}");
    let before = os_ns();
    let now = clock.now();
    assert!((before..=os_ns()).contains(&now));
    let given = Clock::with(ClockSettings { start: Start::With(SourceId(99)), ..quiet() });
    assert!(given.now() >= before);
    assert_eq!((given.source(), given.count(EventKind::Unsupported)), (SourceId::OS, 1));
}

#[test]
fn ticks_of_two_epochs_do_not_mix() {
    let mut observed = Observed::new(1, Drift::Constant(250_000));
    observed.settle();
    let clock = &observed.clock;
    let first = clock.ticks();
    observed.double.pass_ns(1_000_000);
    let second = clock.ticks();
    // Differences are measured at RAW's rate, which here is MONOTONIC's.
    let elapsed = clock.elapsed(first, second).unwrap();
    assert!(elapsed.ns.abs_diff(1_000_000) <= elapsed.error_ns + 200, "{elapsed:?}");
    assert!(elapsed.error_ns < 10, "{elapsed:?}");
    let backwards = clock.elapsed(second, first).unwrap();
    assert_eq!(backwards.ns, -elapsed.ns);
    clock.set_source(SourceId::SIMULATED).unwrap();
    assert!(clock.elapsed(first, second).is_ok(), "the same counter, calibrated anew");
    clock.set_source(SourceId::OS).unwrap();
    let error = clock.elapsed(first, second).unwrap_err();
    assert_eq!((error.first, error.current), (first.epoch, first.epoch + 1));
    assert!(clock.elapsed(first, clock.ticks()).is_err());
}

/// The bug: each check looked at the latest interval alone, so that a changed rate that stays within
/// the brackets of one interval was never found, and lines were drawn by slopes that were further off
/// than they said. What must be found is what the clock says that it can know.
#[test]
fn a_changed_rate_is_found_however_long_a_read_takes() {
    for (seed, half_read_ps) in [(61, 5_000), (62, 1_000_000), (63, 25_000_000), (64, 150_000_000)]
    {
        for direction in [1, -1] {
            let interval_ns = 20_000_000;
            let settings = ClockSettings {
                target_bound_ns: 10_000_000,
                longest_interval_ns: interval_ns,
                ..quiet()
            };
            let mut observed = Observed::with(seed, Drift::Constant(0), settings);
            observed.double.with(|s| s.half_read_ps = half_read_ps..half_read_ps * 5 / 4);
            observed.settle();
            let known = observed.clock.rate().expect("a counter serves");
            let ppb = i64::try_from(known.error_ppb * 8).unwrap() * direction;
            println!("{half_read_ps} ps: {known:?}, so {ppb} ppb");
            observed.double.with(|s| s.drift = Drift::Constant(ppb));
            let mut checks = 0;
            while observed.clock.now_bounded().status != Status::FailedOver {
                checks += 1;
                assert!(checks < 30, "{ppb} ppb: never found, {:?}", observed.clock.rate());
                observed.double.pass_ns(interval_ns);
                observed.clock.maintain();
            }
            assert_eq!(observed.clock.count(EventKind::Residual), 1);
        }
    }
}

/// The kernel's clock left the counter by so little a check that only the row shows it: the counter
/// goes on.
#[test]
fn a_slewed_reference_is_no_changed_rate_over_a_row_either() {
    let settings =
        ClockSettings { target_bound_ns: 10_000_000, longest_interval_ns: 20_000_000, ..quiet() };
    let mut observed = Observed::with(65, Drift::Constant(0), settings);
    observed.double.with(|s| s.half_read_ps = 25_000_000..30_000_000);
    observed.settle();
    let known = observed.clock.rate().expect("a counter serves");
    observed.double.with(|s| s.slew_ppb = i64::try_from(known.error_ppb * 40).unwrap());
    for _ in 0..60 {
        observed.double.pass_ns(20_000_000);
        observed.clock.maintain();
    }
    assert_eq!(observed.clock.source(), SourceId::SIMULATED, "{:?}", observed.clock.events());
    assert!(observed.clock.count(EventKind::ReferenceSlewed) >= 1);
    for _ in 0..20 {
        observed.look();
    }
}

/// The difference clock has its own rate: slewing MONOTONIC does not touch it.
#[test]
fn differences_are_not_slewed() {
    let mut observed = Observed::new(2, Drift::Constant(0));
    observed.double.with(|s| s.slew_ppb = -400_000);
    observed.settle();
    let first = observed.clock.ticks();
    observed.double.pass_ns(100_000_000);
    let elapsed = observed.clock.elapsed(first, observed.clock.ticks()).unwrap();
    // RAW passes 400 ppm slower than MONOTONIC: 99.96 ms of RAW.
    assert!(elapsed.ns.abs_diff(99_960_000) <= elapsed.error_ns + 200, "{elapsed:?}");
}

#[test]
fn every_scale_has_its_own_offset_and_bound() {
    let mut observed = Observed::new(3, Drift::Constant(5_000));
    let unmeasured = observed.clock.now_on(ReferenceClock::Tai);
    assert_eq!(unmeasured.status, Status::OsClock);
    observed.settle();
    let scales = [
        ReferenceClock::Monotonic,
        ReferenceClock::Raw,
        ReferenceClock::Realtime,
        ReferenceClock::Tai,
        ReferenceClock::Boottime,
    ];
    for scale in scales {
        let before = observed.double.reference_ns(scale).cast_signed();
        let time = observed.clock.now_on(scale);
        let after = observed.double.reference_ns(scale).cast_signed();
        let error = time.error_ns.cast_signed();
        assert!(time.ns - error <= after && time.ns + error >= before, "{scale:?} {time:?}");
    }
    observed.double.with(|s| s.wall_ns += 5_000_000_000);
    observed.double.pass_ns(2_000_000_000);
    observed.clock.maintain();
    assert_eq!(observed.clock.count(EventKind::WallSet), 1);
    let what = observed.clock.events().last().unwrap().what;
    assert!(
        matches!(what, ClockEventKind::WallSet { ns } if ns.abs_diff(5_000_000_000) < 100),
        "{what:?}"
    );
    assert_eq!(observed.clock.count(EventKind::Residual), 0);
}

#[test]
fn wall_clock_time_is_the_kernels_until_another_reference_is_set() {
    let mut observed = Observed::new(4, Drift::Constant(0));
    observed.settle();
    let kernel = observed.clock.wall();
    let truth = observed.double.reference_ns(ReferenceClock::Realtime).cast_signed();
    assert!(kernel.ns.abs_diff(truth) < 2_000);
    assert_eq!((kernel.error_ns, kernel.status), (None, WallStatus::Unknown));
    let monotonic_ns = observed.clock.now();
    observed.clock.set_wall(WallReference { monotonic_ns, wall_ns: 1_000, error_ns: 10 });
    observed.double.pass_ns(1_000_000);
    let by_hand = observed.clock.wall();
    assert!(by_hand.ns.abs_diff(1_001_000) < 1_000, "{by_hand:?}");
    assert_eq!(by_hand.status, WallStatus::ByHand);
    let monotonic_ns = observed.clock.now();
    observed.clock.steer_wall(WallReference { monotonic_ns, wall_ns: 1_002_000, error_ns: 10 });
    assert_eq!(observed.clock.wall().status, WallStatus::Steered);
    observed.look();
    observed.clock.release_wall();
    assert_eq!(observed.clock.wall().status, WallStatus::Unknown);
    assert!(observed.clock.wall().ns.abs_diff(truth) < 2_000_000);
}

#[test]
fn a_helper_keeps_a_clock() {
    let settings =
        ClockSettings { readers_refit: false, start: Start::With(some_source()), ..quiet() };
    let helper = MaintenanceThread::start(Arc::new(Clock::with(settings))).unwrap();
    let clock = helper.clock();
    // The helper's thread may have to wait for a CPU.
    let begun = Instant::now();
    while clock.count(EventKind::Adopted) == 0 && begun.elapsed() < Duration::from_secs(20) {
        std::thread::sleep(Duration::from_millis(5));
    }
    std::thread::sleep(Duration::from_millis(50));
    let found = (clock.source(), clock.count(EventKind::Adopted));
    assert_eq!(found, (some_source(), 1), "{:?}", clock.events());
    let before = os_ns();
    let bounds = clock.now_bounded();
    assert!(bounds.earliest <= os_ns() && bounds.latest >= before, "{bounds:?}");
    assert!(clock.recent() <= clock.now());
}

/// After one thread read a time, no other thread reads an earlier one: with ordered reads, on a
/// machine whose counters the kernel itself trusts to agree.
#[test]
fn time_does_not_go_backwards_from_thread_to_thread() {
    let source = Native.choose(std::path::Path::new("/"));
    let clock = Clock::with(quiet());
    let (done, reference_state) = (AtomicBool::new(false), std::sync::atomic::AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !done.load(Ordering::Relaxed) {
                    let before = reference_state.load(Ordering::Acquire);
                    let now = clock.now_ordered();
                    assert!(now >= before, "{now} after {before}");
                    reference_state.fetch_max(now, Ordering::AcqRel);
                }
            });
        }
        for turn in 0..2_000 {
            clock.set_source(if turn % 2 == 0 { source } else { SourceId::OS }).unwrap();
            std::thread::yield_now();
        }
        done.store(true, Ordering::Relaxed);
    });
}

/// Readers in several threads while one changes everything that can be changed: each reader's
/// time does not go backwards, no reading is outside its bound.
#[test]
fn readers_and_a_busy_writer() {
    let clock = Clock::with(quiet());
    let done = AtomicBool::new(false);
    let source = some_source();
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (clock, done) = (&clock, &done);
            scope.spawn(move || {
                let mut last = 0;
                while !done.load(Ordering::Relaxed) {
                    let now = if reader == 0 { clock.now_ordered() } else { clock.now() };
                    assert!(now >= last, "{now} after {last}");
                    last = now;
                    let before = os_ns();
                    let bounds = clock.now_bounded();
                    let after = os_ns();
                    let inside = bounds.earliest <= after && bounds.latest >= before;
                    assert!(inside, "{bounds:?} without {before}..{after}");
                }
            });
        }
        let end = Instant::now() + Duration::from_millis(500);
        let mut turn = 0u64;
        while Instant::now() < end {
            turn += 1;
            let wanted = if turn.is_multiple_of(2) { source } else { SourceId::OS };
            clock.set_source(wanted).unwrap();
            let monotonic_ns = clock.now();
            clock.set_wall(WallReference { monotonic_ns, wall_ns: 0, error_ns: 0 });
            clock.maintain();
        }
        done.store(true, Ordering::Relaxed);
    });
    assert!(clock.count(EventKind::ByHand) > 10);
}
