//! A thread that asks made-up sources about a simulated kernel's clock.

use std::sync::atomic::AtomicU64;

use hourglass_time::Span;

use super::super::{UtcAnswer, UtcEvidence};
use super::*;
use crate::source::SimSource;
use crate::source::sim::{Adjustment, AdjustmentKind, SimConfig, SimKernel};
use crate::timekeeping::{ClockSettings, ReferenceClock, SourceId, Start, Utc, UtcInterval};

const NOTHING: UtcStatement =
    UtcStatement { error_ns: 0, growth_ppb: 0, at_ns: 0, age_ns: 0, supersedes_kernel: false };

/// Says this bound as of a moment, as a page does, or refuses; counts how often it was asked.
struct FakeSource(&'static str, Option<u64>, Arc<AtomicU64>, Arc<AtomicU64>);

impl UtcSource for FakeSource {
    fn name(&self) -> &'static str {
        self.0
    }

    fn ask(&self) -> UtcAnswer {
        self.3.fetch_add(1, Ordering::Relaxed);
        let at_ns = self.2.load(Ordering::Relaxed);
        let said = |error_ns| UtcStatement { error_ns, growth_ppb: 1_000, at_ns, ..NOTHING };
        UtcAnswer {
            said: self.1.map(said).ok_or_else(|| "away".to_owned()),
            denies: UtcDenial::Own,
            evidence: Vec::<UtcEvidence>::new(),
        }
    }
}

/// A simulated clock two seconds after its start, and its source. The kernel's clock has been adjusted so.
fn two_seconds_after(adjustments: Vec<Adjustment>) -> (Arc<SimSource>, Arc<Clock<Arc<SimSource>>>) {
    let kernel = Some(SimKernel { tick: Span::from_millis(4), adjustments, shown: true });
    let time = Arc::new(SimSource::new(SimConfig { kernel, ..SimConfig::default() }));
    time.advance(Span::from_secs(2));
    let start = Start::With(SourceId::SIMULATED);
    let clock = Clock::on(time.clone(), ClockSettings { start, ..ClockSettings::DEFAULT });
    (time, Arc::new(clock))
}

const MS: u64 = 1_000_000;

fn now_ns(time: &SimSource) -> u64 {
    time.reference_ns(ReferenceClock::Monotonic)
}

#[test]
fn the_narrowest_statement_is_handed_over_and_withdrawn_by_the_last_keeper() {
    let set = AdjustmentKind::Set(1_700_000_000_000_000_000);
    let adjustments = vec![Adjustment { at: Span::from_nanos(1), kind: set }];
    let (time, clock) = two_seconds_after(adjustments);
    let (as_of, times) = (Arc::new(AtomicU64::new(u64::MAX)), Arc::new(AtomicU64::new(0)));
    let sources = || {
        let made = |name, error_ns| -> Box<dyn UtcSource> {
            Box::new(FakeSource(name, error_ns, as_of.clone(), times.clone()))
        };
        vec![made("silent", None), made("wide", Some(90_000)), made("narrow", Some(5_000))]
    };
    assert_eq!(clock.utc_bounded(), Utc::Unvouched);
    as_of.store(now_ns(&time) - 1, Ordering::Relaxed);
    let keeper = UtcKeeper::with(Arc::clone(&clock), sources()).unwrap();
    // Of a time before the keeper looked at the clock for the first time.
    assert_eq!((keeper.status().source, clock.utc_bounded()), (None, Utc::Unvouched));
    as_of.store(now_ns(&time) + 100 * MS, Ordering::Relaxed);
    time.advance(Span::from_millis(1_100));
    let begun = std::time::Instant::now();
    while keeper.status().source.is_none() && begun.elapsed() < EVERY * 20 {
        std::thread::sleep(EVERY / 20);
    }
    let status = keeper.status();
    assert_eq!(
        (status.source, status.refused),
        (Some("narrow"), vec![("silent", "away".to_owned())])
    );
    let found = clock.utc_bounded().interval().unwrap().error_ns();
    // The second since the statement was made is 1 us at 1 ppm.
    assert!((6_000..7_000).contains(&found), "{found}");
    assert!(times.load(Ordering::Relaxed) >= 6);
    drop(UtcKeeper::with(Arc::clone(&clock), Vec::new()).unwrap());
    assert!(clock.utc_bounded().interval().is_some());
    drop(keeper);
    assert_eq!(clock.utc_bounded(), Utc::Unvouched);
}

/// The bug: what a source knew before the clock was set or slewed counted as if it knew it of the clock as it is. Rounds at 2, 3, and
/// 4 s of simulated time; the statement is of 2.2 s, 100 us at most, and truth is what the clock showed of UTC then.
#[test]
fn what_happened_to_the_clock_since_a_statement_is_in_its_bound_or_it_does_not_count() {
    for (what, kind) in [
        ("nothing", None),
        ("a step", Some(AdjustmentKind::Step(2_000_000_000))),
        ("another rate", Some(AdjustmentKind::Frequency(400_000))),
        ("a slew", Some(AdjustmentKind::SingleShot(1_000))),
    ] {
        let of = |at, kind| Adjustment { at: Span::from_millis(at), kind };
        let set = of(1, AdjustmentKind::Set(1_700_000_000_000_000_000));
        let adjustments = std::iter::once(set).chain(kind.map(|kind| of(2_500, kind)));
        let (time, clock) = two_seconds_after(adjustments.collect());
        let as_of = Arc::new(AtomicU64::new(u64::MAX));
        let counted = Arc::new(AtomicU64::new(0));
        let sources: [Box<dyn UtcSource>; 1] =
            [Box::new(FakeSource("page", Some(100_000), as_of.clone(), counted))];
        let mut rounds = Rounds::default();
        assert_eq!(rounds.ask(&clock, &sources).source, None);
        time.advance(Span::from_millis(200));
        as_of.store(now_ns(&time), Ordering::Relaxed);
        let at_statement =
            [ReferenceClock::Realtime, ReferenceClock::Raw].map(|of| time.reference_ns(of));
        for _ in 0..3 {
            time.advance(Span::from_millis(800));
            rounds.ask(&clock, &sources);
            time.advance(Span::from_millis(1));
            // The raw clock is the one that nothing touches, and runs at the rate of UTC here.
            let passed = time.reference_ns(ReferenceClock::Raw) - at_statement[1];
            let truth = i64::try_from(at_statement[0] + passed).unwrap();
            let found = clock.utc_bounded().interval();
            let holds = |of: UtcInterval| (of.earliest_ns..=of.latest_ns).contains(&truth);
            assert!(found.is_none_or(holds), "{what}: {found:?} {truth}");
            assert_eq!(found.is_some(), what == "nothing" || what == "a slew", "{what}: {found:?}");
        }
    }
}

/// A source whose statement the clock has, and that takes it back, ends it at once.
#[test]
fn a_statement_that_its_source_denies_ends() {
    let set = AdjustmentKind::Set(1_700_000_000_000_000_000);
    for (denies, is_kept) in [(UtcDenial::Nothing, true), (UtcDenial::Own, false)] {
        struct Changing(Arc<AtomicU64>, UtcDenial);
        impl UtcSource for Changing {
            fn name(&self) -> &'static str {
                "page"
            }
            fn ask(&self) -> UtcAnswer {
                let at_ns = self.0.load(Ordering::Relaxed);
                let said = UtcStatement { error_ns: 9, at_ns, ..NOTHING };
                let said = if at_ns == 0 { Err("disrupted".to_owned()) } else { Ok(said) };
                UtcAnswer { said, denies: self.1, evidence: Vec::new() }
            }
        }
        let (time, clock) =
            two_seconds_after(vec![Adjustment { at: Span::from_nanos(1), kind: set }]);
        let as_of = Arc::new(AtomicU64::new(now_ns(&time)));
        let sources: [Box<dyn UtcSource>; 1] = [Box::new(Changing(as_of.clone(), denies))];
        let mut rounds = Rounds::default();
        assert_eq!(rounds.ask(&clock, &sources).source, Some("page"));
        as_of.store(0, Ordering::Relaxed);
        time.advance(Span::from_millis(500));
        assert_eq!(rounds.ask(&clock, &sources).source, None);
        assert_eq!(clock.utc_bounded().interval().is_some(), is_kept);
    }
}

/// chronyd that denies what it told the kernel denies the kernel's bound; one that is away says nothing about it.
#[test]
fn a_source_that_denies_the_kernels_bound_leaves_none() {
    struct Denier(&'static str, UtcDenial);
    impl UtcSource for Denier {
        fn name(&self) -> &'static str {
            Chronyd::NAME
        }
        fn ask(&self) -> UtcAnswer {
            UtcAnswer { said: Err(self.0.to_owned()), denies: self.1, evidence: Vec::new() }
        }
    }
    let kind = AdjustmentKind::Synchronised(3_001);
    let adjustments = vec![Adjustment { at: Span::from_nanos(1), kind }];
    let (_, clock) = two_seconds_after(adjustments);
    for (why, denies, is_bounded) in [
        ("strange", UtcDenial::Kernel, false),
        ("own", UtcDenial::Own, true),
        ("away", UtcDenial::Nothing, true),
    ] {
        assert!(clock.utc_bounded().interval().is_some());
        let keeper =
            UtcKeeper::with(Arc::clone(&clock), vec![Box::new(Denier(why, denies))]).unwrap();
        assert_eq!(clock.utc_bounded().interval().is_some(), is_bounded, "{why}");
        assert_eq!(keeper.status().refused, [(Chronyd::NAME, why.to_owned())]);
    }
}

/// A statement that is refused, since the clock is slewed too fast, is of a source that denies the kernel's bound as well.
#[test]
fn a_refused_statement_leaves_no_bound_of_the_kernel() {
    struct Superseding(Arc<SimSource>);
    impl UtcSource for Superseding {
        fn name(&self) -> &'static str {
            Chronyd::NAME
        }
        fn ask(&self) -> UtcAnswer {
            let at_ns = self.0.reference_ns(ReferenceClock::Monotonic);
            let said = UtcStatement { error_ns: 1_000, at_ns, supersedes_kernel: true, ..NOTHING };
            UtcAnswer { said: Ok(said), denies: UtcDenial::Kernel, evidence: Vec::new() }
        }
    }
    let of = |at_ms, kind| Adjustment { at: Span::from_millis(at_ms), kind };
    let adjustments = vec![
        of(1, AdjustmentKind::Synchronised(3_001)),
        of(1_000, AdjustmentKind::Tick(10_006)),
        of(2_100, AdjustmentKind::Tick(10_000)),
    ];
    let (time, clock) = two_seconds_after(adjustments);
    let keeper =
        UtcKeeper::with(Arc::clone(&clock), vec![Box::new(Superseding(time.clone()))]).unwrap();
    assert_eq!(keeper.status().source, None);
    time.advance(Span::from_millis(200));
    assert_eq!(clock.utc_bounded(), Utc::Unvouched);
    drop(keeper);
    assert!(clock.utc_bounded().interval().is_some());
}

/// Whatever runs here: it answers or says why not in one line, and ends with its handle.
#[test]
fn the_sources_of_this_machine_answer_or_say_why_not() {
    let keeper = UtcKeeper::start().unwrap();
    let status = keeper.status();
    assert_eq!(status.source.is_some(), status.said.is_some(), "{status:?}");
    assert!(status.source.is_some() || status.refused.len() >= 3, "{status:?}");
    assert!(
        status.refused.iter().all(|(_, why)| !why.is_empty() && !why.contains('\n')),
        "{status:?}"
    );
    assert!(
        status.source.is_none() || crate::process::clock().utc_bounded().interval().is_some(),
        "{status:?}"
    );
}
