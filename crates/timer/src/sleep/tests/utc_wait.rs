//! Waits on a simulated machine whose wall clock is stepped, slewed, leaps and is let go.

use std::sync::Arc;

use hourglass_clock::source::SimSource;
use hourglass_clock::source::sim::{
    Adjustment, AdjustmentKind as Kind, LeapKind, SimConfig, SimKernel,
};
use hourglass_clock::timekeeping::{ClockSettings, SourceId, Start};

use super::super::SleeperSettings;
use super::super::sim::{Load, SimMachine};
use super::*;

const S: i64 = 1_000_000_000;
const MS: i64 = 1_000_000;
/// 2 s before a midnight of UTC.
const BEGIN_NS: i64 = 20_000 * 86_400 * S - 2 * S;
/// How far the wall clock is ahead of UTC at first; 3 ms are vouched for.
const AHEAD_NS: i64 = 2 * MS;

/// What happens to the wall clock, and when.
type Happens<'a> = &'a [(i64, Kind)];
type SimSleeper = Sleeper<Arc<Clock<Arc<SimSource>>>, SimMachine>;

/// A sleeper on a machine to whose wall clock this happens, at times after the beginning.
fn sleeper(happens: &[(i64, Kind)]) -> (Arc<SimSource>, SimSleeper) {
    let first = [(0, Kind::Set(BEGIN_NS + AHEAD_NS)), (0, Kind::Synchronised(3_001))];
    let adjustment =
        |(at, kind): &(i64, Kind)| Adjustment { at: Span::from_nanos(*at + 1), kind: *kind };
    let adjustments = first.iter().chain(happens).map(adjustment).collect();
    let kernel = Some(SimKernel { tick: Span::from_millis(4), adjustments, shown: true });
    let read_cost = Span::from_nanos(15);
    let time = Arc::new(SimSource::new(SimConfig { kernel, read_cost, ..SimConfig::default() }));
    time.advance(Span::from_micros(10));
    let settings = ClockSettings {
        start: Start::With(SourceId::SIMULATED),
        look_every_ns: u64::MAX,
        ..ClockSettings::DEFAULT
    };
    let clock = Arc::new(Clock::on(Arc::clone(&time), settings));
    let machine = SimMachine::new(Arc::clone(&time), 7, Load::idle());
    (time, Sleeper::on(clock, machine, SleeperSettings::DEFAULT))
}

fn after(ns: i64) -> Instant<Realtime> {
    Instant::from_nanos(BEGIN_NS + ns)
}

/// Waits for a time after the beginning; when it returned, as true time.
fn waited(happens: &[(i64, Kind)], until: i64, at_most: Span) -> (UtcWait, i64) {
    let (time, mut sleeper) = sleeper(happens);
    let wait = sleeper.wait_until_past(after(until), at_most);
    (wait, time.true_time().nanos())
}

/// Whatever happens to the wall clock, the time has passed when the wait ends, and it ends soon after it is certain.
#[test]
fn a_wait_ends_when_the_time_has_surely_passed() {
    let leap = |kind| Kind::Leap(Some(kind));
    let rows: &[(&str, Happens<'_>, i64)] = &[
        ("undisturbed", &[], 3 * MS),
        ("slewed", &[(S / 10, Kind::SingleShot(-1_500))], 4 * MS),
        ("smeared", &[(S / 10, Kind::Frequency(-11_574))], 4 * MS),
        (
            "set back by what was wrong",
            &[
                (0, Kind::Step(S / 10)),
                (0, Kind::Synchronised(103_001)),
                (S / 5, Kind::Step(-S / 10)),
                (S / 5, Kind::Synchronised(3_001)),
            ],
            3 * MS,
        ),
        (
            "set forward by what was wrong",
            &[
                (0, Kind::Step(-S / 10)),
                (0, Kind::Synchronised(103_001)),
                (S / 5, Kind::Step(S / 10)),
                (S / 5, Kind::Synchronised(3_001)),
            ],
            3 * MS,
        ),
    ];
    for (name, happens, most) in rows {
        let (wait, ended) = waited(happens, S / 2, Span::MAX);
        assert_eq!(wait.end, UtcWaitEnd::Past, "{name}: {wait:?}");
        assert!(ended > S / 2 && ended < S / 2 + most, "{name}: {ended}, {wait:?}");
        assert!(wait.waited_ns.abs_diff(ended.unsigned_abs()) < 200_000, "{name}: {wait:?}");
    }
    // 0.5 s after midnight: a second later where one was inserted, a second earlier where one was left out. The
    // bound is a second wider near midnight, for two seconds.
    for (kind, true_end) in [(LeapKind::Inserted, 3 * S + S / 2), (LeapKind::Deleted, S + S / 2)] {
        let happens = [(0, leap(kind)), (2 * S + S / 4, Kind::Leap(None))];
        let (wait, ended) = waited(&happens, 2 * S + S / 2, Span::MAX);
        assert!(wait.is_past() && ended > true_end, "{kind:?}: {ended}, {wait:?}");
        assert!(ended < true_end + 2 * S, "{kind:?}: {ended}, {wait:?}");
    }
}

#[test]
fn a_wait_says_what_it_was_for() {
    let (wait, _) = waited(&[], S / 2, Span::MAX);
    assert_eq!(wait.ahead_ns.div_ceil(1_000_000), 498, "{wait:?}");
    assert_eq!(wait.error_ns / 1_000_000, 3, "{wait:?}");
    let (wait, ended) = waited(&[], -S, Span::ZERO);
    assert_eq!((wait.end, wait.ahead_ns), (UtcWaitEnd::AlreadyPast, 0));
    assert!(ended < 100_000 && wait.last.interval().is_some(), "{ended}, {wait:?}");
}

#[test]
fn what_cannot_be_waited_for_is_said() {
    let (wait, ended) = waited(&[(0, Kind::Unsynchronised)], S, Span::MAX);
    assert_eq!(
        (wait.end, wait.last, wait.waited_ns < 100_000),
        (UtcWaitEnd::Unvouched, Utc::Unvouched, true)
    );
    assert!(ended < 100_000, "{ended}");
    // Let go meanwhile: seen at the next look.
    let (wait, ended) = waited(&[(S / 4, Kind::Unsynchronised)], S, Span::MAX);
    assert_eq!(wait.end, UtcWaitEnd::Unvouched);
    assert!(ended < S / 4 + 110 * MS, "{ended}, {wait:?}");
    // A bound of 0.5 s is more than what may be waited; said at once.
    let (wait, ended) = waited(&[(0, Kind::Synchronised(500_001))], 0, Span::from_millis(200));
    assert_eq!((wait.end, wait.is_past()), (UtcWaitEnd::OutOfReach, false));
    assert!(ended < 100_000, "{ended}");
    // Set back meanwhile.
    let (wait, ended) = waited(&[(S / 4, Kind::Step(-10 * S))], S, Span::from_secs(2));
    assert_eq!(wait.end, UtcWaitEnd::OutOfReach);
    assert!(ended < S / 4 + 110 * MS, "{ended}, {wait:?}");
    let (time, mut sleeper) = sleeper(&[]);
    let wait = sleeper.wait_until_past(Instant::<Realtime>::MAX, Span::MAX);
    assert_eq!((wait.end, time.true_time().nanos() < 100_000), (UtcWaitEnd::OutOfReach, true));
}

/// Whatever ends a wait, and in whichever of its sleeps: its length and the last reading are those of the end.
#[test]
fn every_end_says_how_long_the_wait_was() {
    let no: Happens<'_> = &[];
    let let_go = [(S / 4, Kind::Unsynchronised)];
    let set_back = [(S / 4, Kind::Step(-10 * S))];
    let rows: &[(Happens<'_>, Option<i64>, UtcWaitEnd)] = &[
        (no, Some(30 * MS), UtcWaitEnd::Interrupted),
        (no, Some(90 * MS), UtcWaitEnd::Interrupted),
        (no, Some(S / 4), UtcWaitEnd::Interrupted),
        (&let_go, None, UtcWaitEnd::Unvouched),
        (&set_back, None, UtcWaitEnd::OutOfReach),
        (no, None, UtcWaitEnd::Past),
    ];
    for (happens, interrupt_at, end) in rows {
        let (time, mut sleeper) = sleeper(happens);
        let interrupter = sleeper.interrupter();
        if let Some(at) = interrupt_at {
            sleeper.mechanism().interrupt_at(at.unsigned_abs(), interrupter);
        }
        let begun = time.true_time().nanos();
        let wait = sleeper.wait_until_past(after(S), Span::from_secs(2));
        let passed = (time.true_time().nanos() - begun).unsigned_abs();
        assert_eq!(wait.end, *end, "{interrupt_at:?}: {wait:?}");
        assert!(wait.waited_ns.abs_diff(passed) < 200_000, "{interrupt_at:?}: {passed}, {wait:?}");
        let now = sleeper.clock.utc_bounded();
        let both = wait.last.interval().zip(now.interval());
        let apart = both.map_or(0, |(last, now)| last.earliest_ns.abs_diff(now.earliest_ns));
        assert_eq!(wait.last.interval().is_some(), now.interval().is_some(), "{wait:?}");
        assert!(apart < 1_000_000, "{interrupt_at:?}: {now:?}, {wait:?}");
    }
}

#[test]
fn an_interrupt_ends_a_wait() {
    let (time, mut sleeper) = sleeper(&[]);
    let interrupter = sleeper.interrupter();
    let at = u64::try_from(S / 4).unwrap();
    sleeper.mechanism().interrupt_at(at, interrupter);
    let wait = sleeper.wait_until_past(after(S), Span::MAX);
    assert_eq!(wait.end, UtcWaitEnd::Interrupted);
    assert!(time.true_time().nanos() < S / 4 + MS, "{wait:?}");
    assert_eq!(sleeper.wait_until_past(after(-S), Span::MAX).end, UtcWaitEnd::AlreadyPast);
}
