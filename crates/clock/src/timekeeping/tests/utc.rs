//! UTC with its bound while the kernel's clock steps, leaps and is let go, on simulated time.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;

use hourglass_time::Span;

use super::super::{Clock, ClockSettings, ReferenceRate, SourceId, Start, Status, WallReference};
use super::*;
use crate::source::SimSource;
use crate::source::sim::{Adjustment, AdjustmentKind as Kind, LeapKind, SimConfig, SimKernel};

pub(in super::super) const S: i64 = SECOND_NS as i64;
/// 5 s before a midnight of UTC.
pub(in super::super) const BEGIN_NS: i64 = 20_000 * 86_400 * S - 5 * S;
/// How far the kernel's clock is ahead of UTC; 3 ms are vouched for.
const AHEAD_NS: i64 = 2_000_000;

/// Each question to the kernel takes 100 ns, so that whatever happens also happens within a read. Counts how often it
/// was asked for its bound.
pub(in super::super) struct SlowKernel(
    pub(in super::super) SimSource,
    pub(in super::super) AtomicU64,
);

impl SlowKernel {
    fn pass(&self) {
        self.0.advance(Span::from_nanos(100));
    }
}

impl Timebase for SlowKernel {
    fn ticks(&self, source: SourceId) -> u64 {
        self.0.ticks(source)
    }
    fn ticks_ordered(&self, source: SourceId) -> u64 {
        self.0.ticks(source)
    }
    fn ticks_enclosing(&self, source: SourceId) -> u64 {
        self.0.ticks(source)
    }
    fn reference_ns(&self, scale: ReferenceClock) -> u64 {
        self.pass();
        self.0.reference_ns(scale)
    }
    fn supports(&self, source: SourceId) -> bool {
        self.0.supports(source)
    }
    fn choose(&self, root: &Path) -> SourceId {
        self.0.choose(root)
    }
    fn discipline(&self) -> Option<Discipline> {
        self.1.fetch_add(1, Relaxed);
        self.pass();
        self.0.discipline()
    }
    fn generation(&self) -> u32 {
        self.0.generation()
    }
    fn steering(&self, source: SourceId) -> ReferenceRate {
        self.0.steering(source)
    }
}

/// The events of a case, and the conditions for its reads.
struct Row {
    name: &'static str,
    /// Times after the beginning, ns, and the events.
    happens: Vec<(i64, Kind)>,
    /// Moments at which the bound must be known, and its maximum, ns.
    known: Vec<(i64, u64)>,
    /// Moments at which it must not be known.
    unknown: Vec<i64>,
}

/// How often a reader reads.
const EVERY_NS: i64 = 2 * MS as i64;
pub(in super::super) const MS: u64 = 1_000_000;

fn rows() -> Vec<Row> {
    let row = |name, happens: &[(i64, Kind)], known: &[(i64, u64)], unknown: &[i64]| Row {
        name,
        happens: happens.to_vec(),
        known: known.to_vec(),
        unknown: unknown.to_vec(),
    };
    let leap = |kind| Kind::Leap(Some(kind));
    vec![
        row("undisturbed", &[], &[(S / 2, 4 * MS), (9 * S, 9 * MS)], &[]),
        row("clock_settime", &[(S, Kind::Set(30 * S))], &[(S - EVERY_NS, 4 * MS)], &[S, 9 * S]),
        row(
            "makestep",
            &[(S, Kind::Step(S / 2)), (S, Kind::Synchronised(503_001))],
            &[(S - EVERY_NS, 5 * MS), (S, 510 * MS)],
            &[],
        ),
        row(
            "makestep back, and a smaller bound",
            &[
                (S, Kind::Step(S / 2)),
                (S, Kind::Synchronised(503_001)),
                (2 * S, Kind::Step(-S / 2)),
                (2 * S, Kind::Synchronised(3_001)),
            ],
            &[(2 * S - EVERY_NS, 510 * MS), (2 * S + EVERY_NS, 4 * MS)],
            &[],
        ),
        row(
            "an inserted leap second",
            &[(S, leap(LeapKind::Inserted)), (8 * S + S / 2, Kind::Leap(None))],
            &[(S, 5 * MS), (5 * S, 1_010 * MS), (10 * S, 10 * MS)],
            &[],
        ),
        row(
            "a deleted leap second",
            &[(S, leap(LeapKind::Deleted)), (8 * S + S / 2, Kind::Leap(None))],
            &[(S, 5 * MS), (4 * S, 1_010 * MS), (10 * S, 10 * MS)],
            &[],
        ),
        row(
            "a greater error",
            &[(S, Kind::Synchronised(800_001))],
            &[(S - EVERY_NS, 4 * MS), (S, 801 * MS)],
            &[],
        ),
        row(
            "slewed at the kernel's limit",
            &[(S, Kind::SingleShot(-1_500)), (S, Kind::Frequency(100_000))],
            &[(S / 2, 4 * MS), (9 * S, 9 * MS)],
            &[],
        ),
        row(
            "a smeared leap second",
            &[(S, Kind::Frequency(-11_574)), (9 * S, Kind::Frequency(0))],
            &[(S / 2, 4 * MS), (9 * S, 9 * MS)],
            &[],
        ),
        row("no daemon synchronises", &[(S, Kind::Unsynchronised)], &[], &[S, 9 * S]),
        row(
            "a daemon synchronises",
            &[(0, Kind::Unsynchronised), (S, Kind::Synchronised(3_001))],
            &[(S, 4 * MS)],
            &[S - EVERY_NS],
        ),
    ]
}

/// No source vouches while the clock runs away from its bound.
fn slewed_by_a_dead_daemon() -> Row {
    Row {
        name: "slewed by a daemon that is dead",
        happens: vec![
            (S, Kind::Tick(10_800)),
            (6 * S, Kind::Tick(10_000)),
            (6 * S, Kind::Synchronised(500_001)),
        ],
        known: vec![(S - EVERY_NS, 4 * MS), (6 * S, 510 * MS)],
        unknown: vec![S, 3 * S, 6 * S - EVERY_NS],
    }
}

impl Row {
    fn sim(&self) -> SlowKernel {
        let adjustment =
            |(at, kind): &(i64, Kind)| Adjustment { at: Span::from_nanos(*at + 1), kind: *kind };
        let first = [(0, Kind::Set(BEGIN_NS + AHEAD_NS)), (0, Kind::Synchronised(3_001))];
        let adjustments = first.iter().chain(&self.happens).map(adjustment).collect();
        let tick = Span::from_millis(4);
        let kernel = Some(SimKernel { tick, adjustments, shown: true });
        SlowKernel(SimSource::new(SimConfig { kernel, ..SimConfig::default() }), AtomicU64::new(0))
    }

    /// The times allowed at a moment, by UTC: 23:59:60 is 00:00:00, too.
    fn utc(&self, at: i64) -> std::ops::RangeInclusive<i64> {
        let after = |leap: i64| BEGIN_NS + at + leap;
        match self.happens.iter().find_map(|(_, kind)| match kind {
            Kind::Leap(Some(kind)) => Some(kind),
            _ => None,
        }) {
            Some(LeapKind::Inserted) if at > 6 * S => after(-S)..=after(-S),
            Some(LeapKind::Inserted) if at >= 5 * S => after(-S)..=after(0),
            Some(LeapKind::Deleted) if at >= 4 * S => after(S)..=after(S),
            _ => after(0)..=after(0),
        }
    }

    fn holds(&self, start: SourceId, maintained: bool) {
        let asked = Arc::new(self.sim());
        let settings = ClockSettings {
            start: Start::With(start),
            look_every_ns: u64::MAX,
            ..ClockSettings::DEFAULT
        };
        let clock = Clock::on(Arc::clone(&asked), settings);
        let mut met = 0;
        for turn in 0..(11 * S / EVERY_NS) {
            let at = turn * EVERY_NS + 10;
            let late = at - asked.0.true_time().nanos();
            asked.0.advance(Span::from_nanos(late));
            if maintained {
                clock.maintain();
            }
            let context = format!("{}, {start}, {maintained}, {at} ns", self.name);
            let wall = || {
                let wall = clock.wall();
                assert_eq!(wall.error_ns.is_none(), wall.status == WallStatus::Unknown, "{wall:?}");
                wall.into()
            };
            met += self.read_is_right(&asked.0, turn * EVERY_NS, &format!("{context}, wall"), wall);
            let bounded = || clock.utc_bounded();
            met += self.read_is_right(&asked.0, turn * EVERY_NS, &context, bounded);
        }
        assert_eq!(met, 2 * (self.known.len() + self.unknown.len()), "{}", self.name);
    }

    /// Reads, and compares with UTC; returns how many of the wanted bounds were met.
    fn read_is_right(
        &self,
        time: &SimSource,
        moment: i64,
        context: &str,
        read: impl FnOnce() -> Utc,
    ) -> usize {
        let before = time.true_time().nanos();
        let found = read();
        let after = time.true_time().nanos();
        let (earliest, latest) = (*self.utc(before).start(), *self.utc(after).end());
        if let Some(found) = found.interval() {
            let inside = found.earliest_ns <= latest && found.latest_ns >= earliest;
            assert!(inside, "{context}: {found:?}, {earliest}..{latest}");
        }
        let known = self.known.iter().filter(|(at, _)| *at == moment);
        let unknown = self.unknown.iter().filter(|at| **at == moment).count();
        let wanted = known.map(|(_, most_ns)| {
            assert!(
                found.interval().is_some_and(|f| f.error_ns() <= *most_ns),
                "{context}: {found:?}"
            );
        });
        let met = wanted.count() + unknown;
        assert!(unknown == 0 || found == Utc::Unvouched, "{context}: {found:?}");
        met
    }
}

/// The bound on UTC holds at every read, whatever clock serves, and with or without maintenance: the cases in which a
/// guest's clock was off for up to 0.9 s by more than its bound, and without end where the kernel's clock served.
#[test]
fn the_bound_on_utc_holds_whatever_is_done_to_the_kernels_clock() {
    for row in rows().into_iter().chain([slewed_by_a_dead_daemon()]) {
        for start in [SourceId::SIMULATED, SourceId::OS] {
            row.holds(start, false);
            row.holds(start, true);
        }
    }
}

/// A step that falls into a read, at every place of it.
#[test]
fn a_step_within_a_read_is_seen() {
    for at in (0..600).step_by(10) {
        let row = Row {
            name: "within",
            happens: vec![
                (1_000 + at, Kind::Step(-S / 2)),
                (1_000 + at, Kind::Synchronised(500_001)),
            ],
            known: vec![],
            unknown: vec![],
        };
        let asked = row.sim();
        asked.0.advance(Span::from_nanos(1_000));
        let before = asked.0.true_time().nanos();
        let (wall, said) = of_kernel(&asked);
        if let Some(said) = said.filter(|said| said.generation == asked.0.generation()) {
            let before = asked.0.true_time().nanos();
            let now = asked.0.reference_ns(ReferenceClock::Monotonic);
            let now = Bounds { earliest: now, latest: now + 1, status: Status::Steady };
            let found = said.at(now).unwrap().interval().unwrap();
            let inside = (found.earliest_ns..=found.latest_ns).contains(&(BEGIN_NS + before));
            assert!(inside, "{at}: {found:?}");
        }
        let after = asked.0.true_time().nanos();
        let error_ns = wall.error_ns.unwrap().cast_signed();
        let (earliest, latest) = (wall.ns - error_ns, wall.ns + error_ns);
        assert!(earliest <= BEGIN_NS + after && latest >= BEGIN_NS + before, "{at}: {wall:?}");
    }
}

#[test]
fn nothing_overflows() {
    let said = |leap| Discipline {
        synchronised: true,
        max_error_ns: u64::MAX,
        correction: 0,
        slewing: false,
        leap,
    };
    for ns in [0, u64::MAX] {
        for leap in [Leap::None, Leap::Announced, Leap::Running] {
            assert_eq!(bound(&said(leap), ns), u64::MAX);
        }
    }
    assert_eq!(held(u64::MAX), i64::MAX);
}

/// Between two ticks of the kernel its last answer serves; time that is set by hand is seen at once.
#[test]
fn the_kernel_is_asked_once_a_tick() {
    let row = Row { name: "ticks", happens: vec![], known: vec![], unknown: vec![] };
    let asked = Arc::new(row.sim());
    let settings =
        ClockSettings { start: Start::With(SourceId::SIMULATED), ..ClockSettings::DEFAULT };
    let clock = Clock::on(Arc::clone(&asked), settings);
    asked.0.advance(Span::from_nanos(S));
    clock.maintain();
    let (mut reads, begin) = (0, asked.1.load(Relaxed));
    let end = asked.0.true_time().nanos() + 40 * MS.cast_signed();
    while asked.0.true_time().nanos() < end {
        asked.0.advance(Span::from_micros(10));
        assert!(clock.utc_bounded().interval().is_some_and(|found| found.error_ns() < 5 * MS));
        reads += 1;
    }
    let times = asked.1.load(Relaxed) - begin;
    // Ten ticks, and once for each line that is drawn.
    assert!(reads > 1_000 && (10..=24).contains(&times), "{times} of {reads}");
    let monotonic_ns = clock.now();
    clock.set_wall(WallReference { monotonic_ns, wall_ns: 5, error_ns: 0 });
    let found = clock.utc_bounded().interval().unwrap();
    assert_eq!(found.status, WallStatus::ByHand);
    assert!(found.earliest_ns < 100_000 && found.latest_ns >= 5, "{found:?}");
    clock.release_wall();
    assert_eq!(clock.utc_bounded().interval().unwrap().status, WallStatus::Synchronised);
}

#[test]
fn an_answer_serves_for_a_tenth_of_a_second_and_grows() {
    let said = KernelStatement { generation: 2, at_ns: 1_000, least_ns: -10, most_ns: 10 };
    let kept = StatementCache::new();
    let at = |ns| Bounds { earliest: ns, latest: ns, status: Status::Steady };
    assert_eq!(kept.at(0, at(1_000)), None, "nothing was said");
    kept.keep(7, &said);
    assert_eq!(kept.at(6, at(1_000)), None);
    let found = kept.at(7, at(1_000 + KEPT_NS)).unwrap().interval().unwrap();
    // 525/2^20 of 0.1 s are 50 067 ns.
    assert_eq!(found.earliest_ns, (1_000 + KEPT_NS).cast_signed() - 10 - 50_068);
    assert_eq!(found.error_ns(), 50_078);
    assert_eq!(kept.at(7, at(1_001 + KEPT_NS)), None);
    kept.keep(8, &KernelStatement { least_ns: i64::MAX, most_ns: i64::MIN, ..said });
    assert_eq!(kept.at(8, at(1_001)), Some(Utc::Unvouched));
}

#[test]
fn before_is_yes_no_or_not_known() {
    let utc = |earliest_ns, latest_ns| {
        Utc::Bounded(UtcInterval { earliest_ns, latest_ns, status: WallStatus::Synchronised })
    };
    for (a, b, before) in [
        (utc(0, 10), utc(11, 20), Some(true)),
        (utc(0, 10), utc(10, 20), None),
        (utc(10, 20), utc(0, 10), Some(false)),
        (utc(9, 20), utc(0, 10), None),
        (utc(5, 5), utc(5, 5), Some(false)),
        (utc(0, 10), Utc::Unvouched, None),
    ] {
        assert_eq!(a.is_before(b), before, "{a:?} {b:?}");
    }
    assert_eq!(utc(1, 4).interval().unwrap().instants().width(), Some(Span::from_nanos(3)));
}

/// 525/2^20 > 500/10^6, so that the rounded products keep the order for each age; held at both ends of every step.
#[test]
fn a_bound_grows_by_500_ppm_at_least() {
    let steps = (0..KEPT_NS / 2_000).flat_map(|step| [step * 2_000, step * 2_000 + 1_999]);
    for age_ns in steps.chain([KEPT_NS]) {
        let least_ns = age_ns * GROWTH_PPM / 1_000_000;
        assert!((least_ns..=least_ns + least_ns / 500 + 1).contains(&growth(age_ns)), "{age_ns}");
    }
}

/// Sums of what is out of range would overflow; no source vouches there.
#[test]
fn a_statement_out_of_range_is_none() {
    let said = KernelStatement { generation: 2, at_ns: 1_000, least_ns: -10, most_ns: 10 };
    assert_eq!(said.in_range(), said);
    let of_2185 = 215 * 31_556_952 * 1_000_000_000;
    assert_eq!(KernelStatement { most_ns: of_2185, ..said }.in_range().most_ns, of_2185);
    for far in [i64::MAX, i64::MIN, i64::MAX / 10 * 8] {
        let at_ns = far.cast_unsigned();
        for of in [
            KernelStatement { least_ns: far, ..said },
            KernelStatement { most_ns: far, ..said },
            KernelStatement { at_ns, ..said },
        ] {
            let now = Bounds { earliest: of.at_ns, latest: of.at_ns, status: Status::OsClock };
            assert_eq!(of.in_range().at(now), Some(Utc::Unvouched), "{of:?}");
        }
    }
}
