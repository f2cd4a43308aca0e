//! A clock over the HPET of this machine; without one, nothing is tested. The test bed `hpet` has
//! one, and says so ([`REQUIRED`]).

use std::thread;
use std::time::{Duration, Instant};

use hourglass_clock::SourceName;
use hourglass_clock::choice::kernel_clocksource;
use hourglass_clock::source::{ClockSource, Unavailable, measure_frequency, probe};
use hourglass_clock::timekeeping::{
    Clock, ClockSettings, EventKind, ExtendedTimebase, SourceId, Start, Status,
};
use hourglass_skip::{Requirement, skip};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_time::Span;

/// Set where the absence of the device is a failure.
const REQUIRED: &str = "HOURGLASS_TEST_HPET_REQUIRED";

fn hpet() -> Option<Box<dyn ClockSource>> {
    // The other test may hold it: a device with three timers is opened once.
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match probe(SourceName::Hpet) {
            Ok(source) => return Some(source),
            Err(Unavailable::Busy { .. }) if is_required() && Instant::now() < end => {
                thread::sleep(Duration::from_millis(10));
            }
            Err(why) => {
                assert!(!is_required(), "{why}; {}", why.remedy());
                skip(Requirement::file("/dev/hpet"), why);
                return None;
            }
        }
    }
}

fn is_required() -> bool {
    std::env::var_os(REQUIRED).is_some()
}

/// 64 bits at the rate that its register states; it is closed and opened again, since a process
/// that leaks it can open it only once (`thesis_defects.rs`, h).
#[test]
fn the_device_is_what_its_registers_say() {
    for _ in 0..5 {
        let Some(source) = hpet() else { return };
        let facts = source.facts();
        assert_eq!((facts.name, facts.hardware_bits), (SourceName::Hpet, u64::BITS));
        let mut last = source.read();
        for _ in 0..10_000 {
            let now = source.read_ordered();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        let stated = facts.frequency.unwrap();
        let found = measure_frequency(source.as_ref(), Span::from_millis(50)).unwrap();
        // Two devices of an emulated machine need not agree.
        let is_reference = kernel_clocksource("/".as_ref()).as_deref() == Some("hpet");
        let off = found.frequency.ppm_above(&stated).abs();
        assert!(!is_reference || off <= 500.0 + found.error_ppm, "{off} ppm off: {found:?}");
    }
}

/// The whole clock over it: in order, inside its bounds, and nothing found that speaks against it.
#[test]
fn a_clock_over_the_device_keeps_its_promises() {
    let Some(source) = hpet() else { return };
    let resolution_ns = source.facts().resolution_ns;
    let base = ExtendedTimebase::new(source).unwrap();
    let start = Start::With(SourceId::HPET);
    // The kernel does not show how it makes its clock of this device, so bounds rest on a stated
    // drift: what the kernel adds to a clock that no daemon sets.
    let allowance_ppb = Some(2_000);
    let settings =
        ClockSettings { start, allowance_ppb, look_every_ns: u64::MAX, ..ClockSettings::DEFAULT };
    let clock = Clock::on(base, settings);
    let (mut last, mut reads, mut widest_ns) = (0, 0, 0);
    let end = Instant::now() + Duration::from_secs(2);
    while Instant::now() < end {
        for now in [clock.now(), clock.now_ordered()] {
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
        let before = now_ns(ClockId::Monotonic);
        let bounds = clock.now_bounded();
        let after = now_ns(ClockId::Monotonic);
        let inside = bounds.earliest <= after && bounds.latest >= before;
        assert!(inside, "{bounds:?} without {before}..{after}: {:?}", clock.events());
        (reads, widest_ns) = (reads + 1, bounds.error_ns().max(widest_ns));
    }
    assert_eq!(clock.source(), SourceId::HPET, "{:?}", clock.events());
    let left: u64 = EventKind::ALL.iter().filter(|k| k.fails_over()).map(|k| clock.count(*k)).sum();
    assert_eq!((clock.count(EventKind::Adopted), left), (1, 0), "{:?}", clock.events());
    assert_eq!(clock.now_bounded().status, Status::Assumed);
    println!("{reads} reads of {resolution_ns} ns, bounds up to {widest_ns} ns");
}
