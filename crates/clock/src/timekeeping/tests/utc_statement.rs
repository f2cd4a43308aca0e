//! UTC by statements of other sources than the kernel, while its clock steps, is slewed and leaps, on simulated time.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;

use hourglass_dice::{Dice, seed};
use hourglass_time::Span;

use super::super::utc::of_both;
use super::super::utc::tests::{BEGIN_NS, MS, S, SlowKernel};
use super::super::{Clock, ClockSettings, SourceId, Start, Utc, UtcInterval, WallStatus, WallTime};
use super::*;
use crate::source::SimSource;
use crate::source::sim::{
    Adjustment, AdjustmentKind as Kind, Drift, LeapKind, SimConfig, SimKernel,
};

const US: u64 = 1_000;

/// A clock over a kernel that is 2 ms ahead of UTC and was told so by no synchroniser.
struct Machine {
    kernel: Arc<SlowKernel>,
    clock: Clock<Arc<SlowKernel>>,
    /// By how much UTC leaps at midnight.
    leap: i64,
}

impl Machine {
    fn new(drift_ppb: i64, shown: bool, happens: &[(i64, Kind)]) -> Machine {
        let first = [(0, Kind::Set(BEGIN_NS + 2_000_000)), (0, Kind::Synchronised(0))];
        let adjustments = first.iter().chain(happens);
        let adjustments =
            adjustments.map(|(at, kind)| Adjustment { at: Span::from_nanos(*at + 1), kind: *kind });
        let kernel =
            SimKernel { tick: Span::from_millis(4), adjustments: adjustments.collect(), shown };
        let drifts = vec![Drift::Constant { ppb: drift_ppb }];
        let source =
            SimSource::new(SimConfig { kernel: Some(kernel), drifts, ..SimConfig::default() });
        source.advance(Span::from_nanos(1_000));
        let kernel = Arc::new(SlowKernel(source, AtomicU64::new(0)));
        let settings = ClockSettings {
            start: Start::With(SourceId::SIMULATED),
            look_every_ns: u64::MAX,
            ..ClockSettings::DEFAULT
        };
        let clock = Clock::on(Arc::clone(&kernel), settings);
        let leap = happens.iter().map(|(_, kind)| match kind {
            Kind::Leap(Some(LeapKind::Inserted)) => -S,
            Kind::Leap(Some(LeapKind::Deleted)) => S,
            _ => 0,
        });
        Machine { kernel, clock, leap: leap.sum() }
    }

    fn at(&self) -> i64 {
        self.kernel.0.true_time().nanos()
    }

    fn go_to(&self, at: i64) {
        self.kernel.0.advance(Span::from_nanos(at - self.at()));
    }

    /// The times that UTC may show; 23:59:60 is 00:00:00, too.
    fn utc(&self) -> [i64; 2] {
        let (at, midnight) = (self.at(), 5 * S);
        let of = |leap: i64| BEGIN_NS + at + leap;
        match self.leap {
            i64::MIN..=-1 if at > midnight + S => [of(-S); 2],
            i64::MIN..=-1 if at >= midnight => [of(-S), of(0)],
            1.. if at >= midnight - S => [of(S); 2],
            _ => [of(0); 2],
        }
    }

    /// `CLOCK_REALTIME` less UTC.
    fn error(&self) -> u64 {
        let found = self.kernel.0.reference_ns(ReferenceClock::Realtime).cast_signed();
        self.utc().into_iter().map(|utc| found.abs_diff(utc)).max().unwrap()
    }

    /// What a source says truly: the error, and `beyond_ns`.
    fn said(&self, beyond_ns: u64, growth_ppb: u64) -> UtcStatement {
        UtcStatement {
            error_ns: self.error() + beyond_ns,
            growth_ppb,
            at_ns: self.kernel.0.reference_ns(ReferenceClock::Monotonic),
            age_ns: 0,
            supersedes_kernel: false,
        }
    }

    fn vouch(&self, beyond_ns: u64, growth_ppb: u64) {
        let before = self.clock.kernel_clock_state().unwrap();
        self.clock.vouch_utc(&before, self.said(beyond_ns, growth_ppb)).unwrap();
    }

    /// UTC as it is read, which is compared with what it is.
    fn read(&self) -> Option<UtcInterval> {
        let [earliest, _] = self.utc();
        let found = self.clock.utc_bounded().interval();
        let [_, latest] = self.utc();
        if let Some(found) = found {
            let inside = found.earliest_ns <= latest && found.latest_ns >= earliest;
            assert!(inside, "{} ns: {found:?}, {earliest}..{latest}", self.at());
        }
        found
    }

    fn bound(&self) -> Option<u64> {
        self.read().map(UtcInterval::error_ns)
    }
}

#[test]
fn a_statement_vouches_where_the_kernel_does_not_and_grows() {
    for shown in [true, false] {
        let machine = Machine::new(0, shown, &[]);
        machine.go_to(S);
        assert_eq!(machine.bound(), None);
        machine.vouch(10 * US, 1_000);
        let found = machine.bound().unwrap();
        assert!((2_010 * US..2_012 * US).contains(&found), "{shown} {found}");
        machine.go_to(3 * S);
        let found = machine.bound().unwrap();
        // 2 s at 1 ppm; under one generation an answer grows by 500 ppm.
        assert!((2_012 * US..2_015 * US).contains(&found), "{shown} {found}");
        machine.go_to(6 * S - 1_000_000);
        assert!(machine.bound().is_some());
        machine.go_to(6 * S + 20_000_000);
        assert_eq!(machine.bound(), None);
        machine.vouch(10 * US, 1_000);
        machine.clock.withdraw_utc();
        assert_eq!(machine.bound(), None);
    }
}

#[test]
fn the_narrower_bound_answers_unless_one_supersedes_the_other() {
    let machine = Machine::new(0, true, &[(0, Kind::Synchronised(3_001))]);
    machine.go_to(S / 2);
    assert!(machine.bound().unwrap() > 3_000 * US);
    machine.vouch(10 * US, 0);
    assert!(machine.bound().unwrap() < 2_020 * US);
    machine.vouch(5_000 * US, 0);
    assert!((3_000 * US..4_000 * US).contains(&machine.bound().unwrap()));
    let before = machine.clock.kernel_clock_state().unwrap();
    let said = UtcStatement { supersedes_kernel: true, ..machine.said(5_000 * US, 0) };
    machine.clock.vouch_utc(&before, said).unwrap();
    assert!(machine.bound().unwrap() > 7_000 * US);
    let before = machine.clock.kernel_clock_state().unwrap();
    let said = UtcStatement { error_ns: UtcStatement::NO_BOUND, ..said };
    let said = UtcStatement { at_ns: machine.said(0, 0).at_ns, ..said };
    machine.clock.vouch_utc(&before, said).unwrap();
    assert_eq!((machine.bound(), machine.bound()), (None, None));
}

/// One of them is wrong, and which one is not known.
#[test]
fn bounds_that_contradict_each_other_are_none() {
    let now = Bounds { earliest: 1_000, latest: 1_000, status: Status::OsClock };
    let said =
        |least_ns, most_ns| KernelStatement { generation: 2, at_ns: 1_000, least_ns, most_ns };
    let own = || Some(VouchedNow { said: said(100, 200), now, supersedes_kernel: false });
    let wall = WallTime { ns: 0, error_ns: Some(500), status: WallStatus::Synchronised };
    for (kernel, contradicts) in
        [(said(-400, 99), true), (said(201, 300), true), (said(-400, 100), false)]
    {
        let (utc, keep) = of_both((wall, Some(kernel)), own());
        assert_eq!(utc == Utc::Unvouched, contradicts, "{kernel:?}");
        assert_eq!(keep.unwrap().at(now) == Some(Utc::Unvouched), contradicts, "{kernel:?}");
    }
    let superseding = own().map(|own| VouchedNow { supersedes_kernel: true, ..own });
    assert!(of_both((wall, Some(said(201, 300))), superseding).0.interval().is_some());
    let silent = WallTime { error_ns: None, ..wall };
    assert!(of_both((silent, None), own()).0.interval().is_some());
}

#[test]
fn a_step_drops_a_statement_until_the_next_one() {
    for (kind, by) in
        [(Kind::Step(50_000), 50_000), (Kind::Step(-50_000), -50_000), (Kind::Set(S), S)]
    {
        let machine = Machine::new(
            0,
            true,
            &[
                (2 * S, kind),
                (2 * S + 8 * S / 1_000, Kind::Step(-by)),
                (3 * S, Kind::Synchronised(0)),
            ],
        );
        machine.go_to(S);
        machine.vouch(US, 0);
        machine.go_to(2 * S - 1_000_000);
        assert!(machine.bound().is_some(), "{kind:?}");
        machine.go_to(2 * S + 10);
        assert_eq!(machine.bound(), None, "{kind:?}");
        // Also once it was undone.
        machine.go_to(2 * S + S / 2);
        assert_eq!(machine.bound(), None, "{kind:?}");
        machine.vouch(US, 0);
        assert!(machine.bound().is_some(), "{kind:?}");
    }
}

#[test]
fn a_statement_counts_under_an_unsynchronised_clock_but_not_across_the_loss() {
    let machine = Machine::new(
        0,
        true,
        &[
            (S / 2, Kind::Unsynchronised),
            (2 * S, Kind::Synchronised(0)),
            (3 * S, Kind::Unsynchronised),
        ],
    );
    machine.go_to(S);
    machine.vouch(US, 0);
    for (at, counts) in [(S + S / 2, true), (2 * S + S / 2, true), (3 * S + S / 2, true)] {
        machine.go_to(at);
        assert_eq!(machine.bound().is_some(), counts, "{at}");
    }
    let machine = Machine::new(0, true, &[(3 * S, Kind::Unsynchronised)]);
    machine.go_to(2 * S);
    machine.vouch(US, 0);
    machine.go_to(3 * S + S / 2);
    assert_eq!(machine.bound(), None);
}

/// Whatever slews the clock: it is seen afterwards, and in the bound by no more than it moved the clock.
#[test]
fn a_slew_since_the_statement_is_in_the_bound() {
    let rows: [(&[(i64, Kind)], u64); 4] = [
        (&[(2 * S, Kind::Frequency(400_000))], 800),
        (&[(2 * S, Kind::SingleShot(-500))], 500),
        // Over before it is read.
        (&[(2 * S, Kind::Frequency(-400_000)), (3 * S, Kind::Frequency(0))], 400),
        (&[(2 * S, Kind::Tick(11_000)), (2 * S + S / 10, Kind::Tick(10_000))], 10_000),
    ];
    for (happens, slewed_us) in rows {
        let machine = Machine::new(0, true, happens);
        machine.go_to(S);
        machine.vouch(US, 0);
        machine.go_to(4 * S);
        let found = machine.read().unwrap();
        let least = 2 * (2_001 * US) + slewed_us * US;
        let width = found.latest_ns.abs_diff(found.earliest_ns);
        // Tens of microseconds are of the rate's change, which is kept for 0.1 s.
        assert!(
            (least - 2 * US..least + 120 * US).contains(&width),
            "{happens:?}: {width}, {least}"
        );
    }
    for kind in [Kind::Tick(10_006), Kind::Offset { ns: 400_000_000, constant: 4 }] {
        let machine = Machine::new(0, true, &[(2 * S, kind), (3 * S, Kind::Tick(10_000))]);
        machine.go_to(S);
        machine.vouch(US, 0);
        machine.go_to(2 * S + 10);
        assert_eq!(machine.bound(), None, "{kind:?}");
        let before = machine.clock.kernel_clock_state().unwrap();
        let refused = machine.clock.vouch_utc(&before, machine.said(US, 0));
        assert_eq!(refused, Err(UtcStatementError::Slewed));
    }
}

/// The bug: a keeper's statement, or that there is none, was forgotten while chronyd slewed the clock by more than 500 ppm;
/// behind that, and until the next one, what chronyd had told the kernel answered, and was wrong by 6 ms (bed `utc`, an hour).
#[test]
fn the_kernels_bound_stays_superseded_when_the_statement_does_not_count_any_more() {
    let told = |at: i64| (at, Kind::Synchronised(501));
    let slew = [told(0), (2 * S, Kind::Tick(10_006)), (2 * S + S / 2, Kind::Tick(10_000))];
    let step = [told(0), (2 * S, Kind::Step(50_000)), told(2 * S + S / 4)];
    for (happens, seen) in [(&slew, true), (&slew, false), (&step, true), (&step, false)] {
        let machine = Machine::new(0, true, happens);
        let vouch = |beyond_ns| {
            let before = machine.clock.kernel_clock_state().unwrap();
            let said = machine.said(beyond_ns, 0);
            let error_ns = if beyond_ns == 0 { UtcStatement::NO_BOUND } else { said.error_ns };
            let said = UtcStatement { supersedes_kernel: true, error_ns, ..said };
            machine.clock.vouch_utc(&before, said)
        };
        machine.go_to(S);
        vouch(US).unwrap();
        assert!(machine.bound().is_some());
        // Also where it is not asked meanwhile.
        if seen {
            machine.go_to(2 * S + S / 3);
            assert_eq!(machine.bound(), None, "{happens:?}");
            assert_eq!(vouch(0), Ok(()), "{happens:?}");
        }
        machine.go_to(3 * S);
        // A slew that is over is in the bound.
        let covered = !seen && matches!(happens[1].1, Kind::Tick(_));
        assert_eq!(machine.bound().is_some(), covered, "{happens:?}");
        machine.go_to(5 * S + S / 2);
        assert_eq!(machine.bound().is_some(), covered, "{happens:?}");
    }
}

#[test]
fn what_happens_while_a_source_is_asked_is_refused_or_in_the_bound() {
    use UtcStatementError::{Age, LostSynchronisation, RateChanged, Stepped};
    let refused = |happens: &[(i64, Kind)], at: fn(&UtcStatement) -> u64| {
        let machine = Machine::new(0, true, happens);
        machine.go_to(S);
        let before = machine.clock.kernel_clock_state().unwrap();
        machine.kernel.0.advance(Span::from_nanos(S / 20));
        let said = machine.said(US, 0);
        let said = UtcStatement { at_ns: at(&said), ..said };
        machine.kernel.0.advance(Span::from_nanos(S / 20));
        (machine.clock.vouch_utc(&before, said), machine)
    };
    let now = |said: &UtcStatement| said.at_ns;
    let within = S + S / 50;
    assert_eq!(refused(&[], now).0, Ok(()));
    assert_eq!(refused(&[(within, Kind::Step(5_000))], now).0, Err(Stepped));
    assert_eq!(refused(&[(within, Kind::Frequency(1_000))], now).0, Err(RateChanged));
    assert_eq!(refused(&[(within, Kind::Unsynchronised)], now).0, Err(LostSynchronisation));
    assert_eq!(refused(&[], |said| said.at_ns + MS * 60).0, Err(Age));
    assert_eq!(refused(&[], |said| said.at_ns - MS * 60).0, Err(Age));
    // Slewed, and slewed back: once before the statement, once after it.
    let tick = |at: i64, us| (at, Kind::Tick(us));
    let forth = [tick(S + S / 50, 10_005), tick(S + 3 * S / 100, 10_000)];
    let back = [tick(S + 7 * S / 100, 9_995), tick(S + 8 * S / 100, 10_000)];
    for happens in [&forth[..], &back[..]] {
        let (found, machine) = refused(happens, now);
        assert_eq!(found, Ok(()));
        assert!(machine.read().is_some());
    }
}

#[test]
fn around_a_leap_second_the_bound_is_a_second_wider() {
    for kind in [LeapKind::Inserted, LeapKind::Deleted] {
        let machine = Machine::new(0, true, &[(S, Kind::Leap(Some(kind)))]);
        let mut wide = 0;
        for turn in 1..100 {
            machine.go_to(turn * S / 10 + 10);
            let found = machine.bound();
            wide += u32::from(found.is_some_and(|found| found > MS * 1_000));
            if turn % 10 == 5 && machine.leap != 0 && !(40..62).contains(&turn) {
                machine.vouch(US, 0);
            }
        }
        assert!(wide > 5, "{wide}");
    }
}

#[test]
fn words_are_read_as_they_were_written() {
    let vouched = Vouched {
        at_ns: 1,
        error_ns: 2,
        growth_ppb: 3,
        offset_ns: [-4, 5],
        slewed_ns: [-6, 7],
        rate: -8,
        begin_ns: 9,
        was_synchronised: true,
        supersedes_kernel: false,
    };
    assert_eq!(Vouched::from_words(vouched.to_words()), Some(vouched));
    assert_eq!(Vouched::from_words([0; WORDS]), None);
}

/// Nothing but true statements, of a clock to which everything is done: UTC is never outside.
#[test]
fn utc_is_never_outside_while_statements_are_true() {
    let seed = seed();
    let (mut known, mut reads) = (0, 0);
    for case in 0..60 {
        let mut dice = Dice::new(seed.wrapping_add(case));
        let drift_ppb = dice.within(-60_000, 60_001);
        let happens: Vec<(i64, Kind)> = (0..dice.below(12)).map(|_| happening(&mut dice)).collect();
        let machine = Machine::new(drift_ppb, !dice.one_in(4), &happens);
        let mut at = 0;
        while at < 11 * S {
            at = at.max(machine.at()) + 1 + dice.magnitude(29);
            machine.go_to(at);
            if dice.one_in(3) {
                machine.clock.maintain();
            }
            if dice.one_in(10)
                && let Ok(before) = machine.clock.kernel_clock_state()
            {
                machine.kernel.0.advance(Span::from_nanos(dice.magnitude(27)));
                // By the rate that it had when its state was read; rates multiply, and are rounded.
                let rate_ppb = (i128::from(before.kernel.correction) * 1_000_000_000) >> 32;
                let growth_ppb = (i128::from(drift_ppb) + rate_ppb).unsigned_abs() as u64 + 60;
                let said = machine.said(dice.magnitude(16).unsigned_abs(), growth_ppb);
                machine.kernel.0.advance(Span::from_nanos(dice.magnitude(27)));
                let _ = machine.clock.vouch_utc(&before, said);
            }
            known += u32::from(machine.read().is_some());
            reads += 1;
        }
    }
    assert!(known > reads / 10, "{known} of {reads}");
}

fn happening(dice: &mut Dice) -> (i64, Kind) {
    let at = dice.within(0, 11 * S);
    let kind = match dice.below(9) {
        0 => Kind::Frequency(dice.within(-500_000, 500_001)),
        1 => Kind::Tick(dice.within(9_995, 10_006)),
        2 => {
            Kind::Offset { ns: dice.within(-1_000_000, 1_000_001), constant: dice.below(6) as u32 }
        }
        3 => Kind::SingleShot(dice.within(-2_000, 2_001)),
        4 => Kind::Set(dice.magnitude(31)),
        5 => Kind::Step(-dice.magnitude(31)),
        6 => Kind::Step(dice.magnitude(10)),
        7 => Kind::Synchronised(0),
        _ => Kind::Unsynchronised,
    };
    (at, kind)
}
