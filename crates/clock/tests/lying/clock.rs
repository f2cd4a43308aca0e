//! The whole clock, natively, over a TSC and under a CPUID that lie.
//!
//! The promise: no time read is before an earlier one or outside its bounds against
//! `CLOCK_MONOTONIC`, and a counter that misbehaves is left, by an event that says why. A counter
//! that leaves its line (a long jump either way, a count of 0) is left by the first read after
//! that. One that stays on it (a short jump, another rate, a count that stands) is believed until
//! the next check: [`ClockSettings::longest_interval_ns`] says how long that may be, and the tests
//! excuse times read until then, and nothing else.
//!
//! How small a change of the rate can be seen follows from how long a read takes, which no two
//! machines have in common where reads are emulated: a test waits until the clock says that it knows
//! the rate well enough ([`Clock::rate`]), and where that never comes, it says so.
//!
//! Two lies are not noticed, because they do not change the time of the clock: a rate that is wrong
//! from the beginning, where the right one is not stated, and a count that is off by a constant.

use std::thread;
use std::time::{Duration, Instant};

use hourglass_clock::source::tsc::TscSource;
use hourglass_clock::source::{ClockSource, measure_frequency};
use hourglass_clock::timekeeping::{
    Clock, ClockSettings, EventKind, ExtendedTimebase, FrequencyHint, SourceId, Start, Status,
    Timebase,
};
use hourglass_skip::{Requirement, skip};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::fault_injection::{self, FaultInjection};
use hourglass_time::Span;

use crate::turn;

/// For how long a clock is watched before and after a lie begins.
const WATCHED: Duration = Duration::from_millis(60);
/// A lie is found at the next check, 20 ms away; the rest is for a busy machine.
const PATIENCE: Duration = Duration::from_secs(10);
/// Reads between two calls of `maintain`; each takes some microseconds.
const READS: usize = 50;
/// Ticks in 10 us to a second, at any rate that a TSC has.
const MS: i64 = 2_000_000;

/// Runs `test` in a thread whose TSC is emulated, truthfully at first; not at all where the machine
/// cannot do that.
fn emulated(test: impl FnOnce() + Send + 'static) {
    let _turn = turn();
    // A test that is skipped is known by the name of its thread.
    let name = thread::current().name().unwrap_or_default().to_owned();
    let emulated = thread::Builder::new().name(name).spawn(move || {
        if let Err(error) = fault_injection::about_tsc(FaultInjection::default()) {
            return skip(
                Requirement::runs("x86-64", "test $(uname -m) = x86_64"),
                format_args!("PR_SET_TSC: {error}"),
            );
        }
        test();
        fault_injection::end().expect("it worked before");
    });
    if let Err(panic) = emulated.unwrap().join() {
        std::panic::resume_unwind(panic);
    }
}

fn lie(what: FaultInjection) {
    fault_injection::about_tsc(what).expect("it worked before");
}

/// Calibrated anew every 20 ms, or 2,000 reads where these are slow: brackets around emulated reads
/// are some 10 us wide on one machine, and a millisecond on another.
fn settings() -> ClockSettings {
    let tsc = TscSource::without_checks();
    let begun = Instant::now();
    for _ in 0..READS {
        std::hint::black_box(tsc.read());
    }
    let reads_ns = u64::try_from(begun.elapsed().as_nanos()).expect("less than centuries");
    ClockSettings {
        start: Start::With(SourceId::TSC),
        target_bound_ns: 10_000_000,
        longest_interval_ns: (reads_ns / READS as u64 * 2_000).max(20_000_000),
        look_every_ns: u64::MAX,
        ..ClockSettings::DEFAULT
    }
}

/// Whether times that are read before a lie is found are in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Promised,
    Excused,
}

/// A clock that is read all the time.
struct ClockReader<B: Timebase> {
    clock: Clock<B>,
    last_ns: u64,
}

impl ClockReader<ExtendedTimebase> {
    /// Over the TSC that is lied about.
    fn new(settings: ClockSettings) -> ClockReader<ExtendedTimebase> {
        let tsc = Box::new(TscSource::without_checks());
        let base = ExtendedTimebase::new(tsc).expect("64 bits, and never set");
        ClockReader { clock: Clock::on(base, settings), last_ns: 0 }
    }

    /// The same after it was found sound for a while.
    fn settled() -> ClockReader<ExtendedTimebase> {
        let mut watched = ClockReader::new(settings());
        watched.live(WATCHED);
        watched.assert_sound();
        watched
    }
}

impl<B: Timebase> ClockReader<B> {
    fn look(&mut self) -> Status {
        let events = || self.clock.events();
        for ns in [self.clock.now(), self.clock.now_ordered()] {
            assert!(ns >= self.last_ns, "{ns} after {}: {:?}", self.last_ns, events());
            self.last_ns = ns;
        }
        let before_ns = now_ns(ClockId::Monotonic);
        let bounds = self.clock.now_bounded();
        let after_ns = now_ns(ClockId::Monotonic);
        let inside = bounds.earliest <= after_ns && bounds.latest >= before_ns;
        assert!(inside, "{bounds:?} without {before_ns}..{after_ns}: {:?}", events());
        bounds.status
    }

    fn live(&mut self, time: Duration) {
        let end = Instant::now() + time;
        while Instant::now() < end {
            for _ in 0..READS {
                self.look();
            }
            self.clock.maintain();
        }
    }

    /// Waits until the clock knows the rate to within `ppm`; false, and said, if it never does.
    fn knows_the_rate_to(&mut self, ppm: u64) -> bool {
        let end = Instant::now() + PATIENCE;
        let known_ppb = |clock: &Clock<B>| clock.rate().map_or(u64::MAX, |rate| rate.error_ppb);
        while known_ppb(&self.clock) > ppm * 1_000 {
            if Instant::now() > end {
                let known_ppm = known_ppb(&self.clock) / 1_000;
                let known = format_args!("after {PATIENCE:?} to {known_ppm} ppm, not to {ppm}");
                skip(
                    Requirement::CHANCE,
                    format_args!("reads are slow: the rate is known {known}"),
                );
                return false;
            }
            self.live(WATCHED / 4);
        }
        true
    }

    /// Until the lie is found, bounds are not promised, nor order where the count went back.
    fn wait_until_found(&mut self, kinds: &[EventKind], order: Order) {
        let end = Instant::now() + PATIENCE;
        loop {
            let ns = self.clock.now();
            let forward = ns >= self.last_ns || order == Order::Excused;
            assert!(forward, "{ns} after {}: {:?}", self.last_ns, self.clock.events());
            self.last_ns = self.last_ns.max(if order == Order::Promised { ns } else { 0 });
            if self.clock.now_bounded().status == Status::FailedOver {
                break;
            }
            assert!(Instant::now() < end, "{kinds:?}: never found: {:?}", self.clock.events());
            self.clock.maintain();
        }
        self.assert_left(kinds);
    }

    /// One of these kinds was counted, and nothing else that speaks against the counter.
    fn assert_left(&self, kinds: &[EventKind]) {
        let counted: u64 = kinds.iter().map(|kind| self.clock.count(*kind)).sum();
        let all = EventKind::ALL.iter().filter(|kind| kind.fails_over());
        let all: u64 = all.map(|kind| self.clock.count(*kind)).sum();
        assert_eq!((counted, all), (1, 1), "{kinds:?}: {:?}", self.clock.events());
        assert_eq!(self.clock.source(), SourceId::OS);
    }

    fn assert_sound(&self) {
        let left = EventKind::ALL.iter().filter(|kind| kind.fails_over());
        let left: u64 = left.map(|kind| self.clock.count(*kind)).sum();
        let found = (self.clock.source(), self.clock.count(EventKind::Adopted), left);
        assert_eq!(found, (SourceId::TSC, 1, 0), "{:?}", self.clock.events());
    }
}

const STEPPED: &[EventKind] = &[EventKind::NegativeStep, EventKind::Residual];

/// fastant #5, quanta #61; a machine restored from a snapshot (CRIU #2668).
#[test]
fn a_long_jump_back_is_found_by_the_next_read() {
    for ticks in [-500 * MS, -3_600_000 * MS] {
        emulated(move || {
            let mut watched = ClockReader::settled();
            lie(FaultInjection { ahead_ticks: ticks, ..FaultInjection::default() });
            assert_eq!(watched.look(), Status::FailedOver);
            watched.assert_left(STEPPED);
            watched.live(WATCHED);
        });
    }
}

/// valkey #4691: the TSC of a kvm-clock guest jumps forward.
#[test]
fn a_long_jump_forward_is_found_by_the_next_read() {
    for ticks in [500 * MS, 3_600_000 * MS] {
        emulated(move || {
            let mut watched = ClockReader::settled();
            lie(FaultInjection { ahead_ticks: ticks, ..FaultInjection::default() });
            assert_eq!(watched.look(), Status::FailedOver);
            watched.assert_left(STEPPED);
            watched.live(WATCHED);
        });
    }
}

/// Within the line a short jump looks like time: the next check finds it. After a jump back no
/// reader receives an earlier time than before.
#[test]
fn a_short_jump_is_found_by_the_next_check() {
    for (ticks, order) in [(-2 * MS, Order::Excused), (2 * MS, Order::Promised)] {
        emulated(move || {
            let mut watched = ClockReader::settled();
            lie(FaultInjection { ahead_ticks: ticks, ..FaultInjection::default() });
            watched.wait_until_found(STEPPED, order);
            watched.live(WATCHED);
        });
    }
}

/// One read in fifty is 2 ms behind: every calibration could pass over it.
#[test]
fn single_reads_that_go_back_are_found() {
    emulated(|| {
        let mut watched = ClockReader::settled();
        lie(FaultInjection { jump_every: 50, jump_ticks: -2 * MS, ..FaultInjection::default() });
        watched.wait_until_found(STEPPED, Order::Excused);
        watched.live(WATCHED);
    });
}

/// A change is found that is well beyond what the clock does not know of the rate (four times that
/// is the least; eight leave room for brackets that widen): on a guest where a read took 100 us a lie
/// of 2,000 ppm contradicted nothing.
fn a_changed_rate_is_found(rate_ppm: i64, delay_ns: u64) {
    emulated(move || {
        lie(FaultInjection { delay_ns, ..FaultInjection::default() });
        let mut watched = ClockReader::settled();
        if watched.knows_the_rate_to(rate_ppm.unsigned_abs() / 8) {
            lie(FaultInjection { rate_ppm, delay_ns, ..FaultInjection::default() });
            watched.wait_until_found(&[EventKind::Residual], Order::Promised);
            watched.live(WATCHED);
        }
    });
}

#[test]
fn a_rate_that_changes_midway_is_found() {
    for rate_ppm in [2_000, -2_000, 500_000] {
        a_changed_rate_is_found(rate_ppm, 0);
    }
}

#[test]
fn a_rate_that_changes_is_found_where_reads_are_slow() {
    for rate_ppm in [2_000, -2_000] {
        a_changed_rate_is_found(rate_ppm, 60_000);
    }
}

/// The right rate is not stated, and need not be: it is measured.
#[test]
fn a_rate_that_is_wrong_from_the_beginning_is_only_another_rate() {
    for rate_ppm in [2_000, 500_000, -500_000] {
        emulated(move || {
            lie(FaultInjection { rate_ppm, ..FaultInjection::default() });
            ClockReader::settled();
        });
    }
}

/// The right rate is stated: a counter that contradicts it is left at once. Emulated reads leave the
/// first measurement unsure by tens of per cent, so the lie must be larger than that.
#[test]
fn a_rate_that_contradicts_what_was_stated_is_left() {
    let truth = measure_frequency(&TscSource::without_checks(), Span::from_millis(20)).unwrap();
    let hertz = truth.frequency.hertz() as u64;
    emulated(move || {
        lie(FaultInjection { rate_ppm: 5_000_000, ..FaultInjection::default() });
        let prior = Some(FrequencyHint { hertz, tolerance_ppb: 100_000 });
        let mut watched = ClockReader::new(ClockSettings { prior, ..settings() });
        assert_eq!(watched.look(), Status::FailedOver);
        watched.assert_left(&[EventKind::PriorContradicted]);
        watched.live(WATCHED);
    });
}

/// valkey #4345: the clock stood at 0 and no key expired.
#[test]
fn a_count_of_zero_is_no_time() {
    emulated(|| {
        lie(FaultInjection { frozen: Some(0), ..FaultInjection::default() });
        let mut watched = ClockReader::new(settings());
        assert_eq!(watched.look(), Status::FailedOver);
        watched.assert_left(&[EventKind::Stuck]);
        watched.live(WATCHED);
    });
    emulated(|| {
        let mut watched = ClockReader::settled();
        lie(FaultInjection { frozen: Some(0), ..FaultInjection::default() });
        assert_eq!(watched.look(), Status::FailedOver);
        watched.assert_left(STEPPED);
        watched.live(WATCHED);
    });
}

/// A count that stops where it is stays on its line, and no reader comes to its end: only who
/// maintains the clock finds out.
#[test]
fn a_count_that_stops_is_found_by_maintenance() {
    emulated(|| {
        let mut watched = ClockReader::settled();
        let frozen = Some(TscSource::without_checks().read());
        lie(FaultInjection { frozen, ..FaultInjection::default() });
        watched.wait_until_found(STEPPED, Order::Promised);
        watched.live(WATCHED);
    });
}

/// For a thread that may not read the TSC, and one that sees it as not invariant, the clock of this
/// machine does not read it.
#[test]
fn a_clock_that_judges_for_itself_does_not_believe_either() {
    let judged = || {
        let clock =
            Clock::with(ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT });
        let mut watched = ClockReader { clock, last_ns: 0 };
        watched.live(WATCHED);
        assert_eq!(watched.look(), Status::OsClock);
        assert_eq!(watched.clock.source(), SourceId::OS);
        assert_eq!(watched.clock.count(EventKind::Adopted), 0);
    };
    emulated(judged);
    let _turn = turn();
    let run = thread::spawn(move || {
        if fault_injection::about_invariant_tsc().is_ok() {
            judged();
            fault_injection::end().expect("it worked before");
        }
    });
    run.join().expect("the test panicked");
}
