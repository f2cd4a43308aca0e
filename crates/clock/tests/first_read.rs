//! The first read of a clock is the time, however it is started: nothing has to be called before,
//! nothing blocks (HighPerTimer took 46 to 147 ms before `main`).

use hourglass_clock::timekeeping::{
    Bounds, Clock, ClockSettings, EventKind, FrequencyHint, Native, PageReader, ReferenceClock,
    SourceId, Start, Status, Timebase,
};
use hourglass_sys::clock::{ClockId, now_ns};

/// Every way to start, on any machine: two of the counters are not there on each.
const STARTS: [Start; 6] = [
    Start::Judged,
    Start::With(SourceId::OS),
    Start::With(SourceId::TSC),
    Start::With(SourceId::CNTVCT),
    Start::With(SourceId::HPET),
    Start::With(SourceId(999)),
];

/// A prior that contradicts any counter: what was stated is wrong, the time must not be.
const WRONG: FrequencyHint = FrequencyHint { hertz: 1, tolerance_ppb: 0 };

fn all_settings() -> Vec<ClockSettings> {
    let mut all = Vec::new();
    for start in STARTS {
        for readers_refit in [true, false] {
            for prior in [None, Some(WRONG)] {
                let quiet = ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT };
                all.push(ClockSettings { start, readers_refit, prior, ..quiet });
            }
        }
    }
    all
}

/// A first line holds for a millisecond: within half of it the line that was read still serves.
const SAME_LINE_NS: u64 = 500_000;
/// Clocks that are started until one is read within that time.
const TRIES: u32 = 100;
/// Allowed where the counter gives the time and the OS clock its bound: the first brackets of an
/// emulated counter are some microseconds wide.
const WITHOUT_BOUND_NS: u64 = 50_000;

/// Reads once; the time must be between two of the kernel's, to within what the clock itself says
/// of its error right afterwards. That is said of the line that serves then: a thread that is held
/// up until a narrower line is drawn (by a busy machine, or an emulator that translates what runs
/// for the first time) has no bound for what it read, and reads another clock.
fn first_read(settings: &ClockSettings, what: &str, read: impl Fn(&Clock) -> u64) {
    let mut shortest_ns = u64::MAX;
    for _ in 0..TRIES {
        let clock = Clock::with(settings.clone());
        let before_ns = now_ns(ClockId::Monotonic);
        let reported_ns = read(&clock);
        let after_ns = now_ns(ClockId::Monotonic);
        let error_ns = error_after(&clock);
        let took_ns = now_ns(ClockId::Monotonic) - before_ns;
        assert!(clock.now() >= reported_ns, "{what}, {settings:?}");
        if took_ns > SAME_LINE_NS {
            shortest_ns = shortest_ns.min(took_ns);
            continue;
        }
        let least_ns = before_ns.saturating_sub(error_ns);
        let inside = (least_ns..=after_ns + error_ns).contains(&reported_ns);
        assert!(
            inside,
            "{what}: {reported_ns} without {before_ns}..{after_ns} +- {error_ns}, {settings:?}"
        );
        return;
    }
    panic!("{what}: each of {TRIES} first reads took {shortest_ns} ns or more, {settings:?}");
}

/// The error that the clock states now, ns. A reference whose changes are not visible (a kernel's
/// page that is missing or not understood) bounds no line over a counter: `now_bounded` is then the
/// OS clock, which says nothing about what `now` reads.
fn error_after(clock: &Clock) -> u64 {
    let bounds = clock.now_bounded();
    let is_of_another = bounds.status == Status::OsClock && clock.source() != SourceId::OS;
    if is_of_another { WITHOUT_BOUND_NS } else { bounds.error_ns() }
}

#[test]
fn the_first_read_is_the_time_in_every_start_mode() {
    for settings in all_settings() {
        first_read(&settings, "now", Clock::now);
        first_read(&settings, "now_ordered", Clock::now_ordered);
        first_read(&settings, "recent", Clock::recent);
        first_read(&settings, "now_bounded", |clock| clock.now_bounded().middle());
        let monotonic = |clock: &Clock| clock.now_on(ReferenceClock::Monotonic).ns.cast_unsigned();
        first_read(&settings, "now_on", monotonic);
    }
}

#[test]
fn the_first_bound_holds_in_every_start_mode() {
    for settings in all_settings() {
        let clock = Clock::with(settings.clone());
        let before_ns = now_ns(ClockId::Monotonic);
        let bounds: Bounds = clock.now_bounded();
        let after_ns = now_ns(ClockId::Monotonic);
        let inside = bounds.earliest <= after_ns && bounds.latest >= before_ns;
        assert!(inside, "{bounds:?} without {before_ns}..{after_ns}, {settings:?}");
        assert_status(&clock, &settings, bounds.status);
    }
}

/// The OS clock serves first, and a counter that was asked for by name at once.
fn assert_status(clock: &Clock, settings: &ClockSettings, status: Status) {
    let asked = match settings.start {
        Start::With(source) if settings.readers_refit => source,
        // The clock was never checked: that is a task of maintenance.
        _ => SourceId::OS,
    };
    let expected = match asked {
        SourceId::OS => Status::OsClock,
        source if !Native.supports(source) => Status::OsClock,
        _ if settings.prior.is_some() => Status::FailedOver,
        _ => Status::Settling,
    };
    // The first line holds for a millisecond; a reader that is interrupted for longer gets the OS clock.
    let late = status == Status::OsClock && clock.source() == asked;
    assert!(status == expected || late, "{status:?}, {settings:?}: {:?}", clock.events());
    let unsupported = asked != SourceId::OS && !Native.supports(asked);
    assert_eq!(clock.count(EventKind::Unsupported), u64::from(unsupported), "{settings:?}");
    let contradicted = u64::from(expected == Status::FailedOver);
    assert_eq!(clock.count(EventKind::PriorContradicted), contradicted, "{settings:?}");
}

/// Readers of a page without a line take the OS clock.
#[test]
fn the_first_read_of_a_shared_page_is_the_time() {
    for settings in all_settings() {
        let clock = Clock::with(settings);
        let page = std::fs::File::from(clock.share().unwrap());
        let reader = PageReader::open(&page).unwrap();
        let before_ns = now_ns(ClockId::Monotonic);
        let times = [reader.now(), reader.now_ordered(), reader.now_bounded().middle()];
        let after_ns = now_ns(ClockId::Monotonic);
        assert!(times.iter().all(|ns| (before_ns..=after_ns).contains(ns)), "{times:?}");
    }
}
