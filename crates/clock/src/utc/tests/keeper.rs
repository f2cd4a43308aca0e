//! A thread that asks made-up sources about a simulated kernel's clock.

use std::sync::atomic::AtomicU64;

use hourglass_time::Span;

use super::super::{UtcAnswer, UtcEvidence};
use super::*;
use crate::source::SimSource;
use crate::source::sim::{Adjustment, AdjustmentKind, SimConfig, SimKernel};
use crate::timekeeping::{ClockSettings, ReferenceClock, SourceId, Start, Utc};

/// Says this bound, or refuses; counts how often it was asked.
struct FakeSource(&'static str, Option<u64>, Arc<SimSource>, Arc<AtomicU64>);

impl UtcSource for FakeSource {
    fn name(&self) -> &'static str {
        self.0
    }

    fn ask(&self) -> UtcAnswer {
        self.3.fetch_add(1, Ordering::Relaxed);
        let said = |error_ns| UtcStatement {
            error_ns,
            growth_ppb: 1_000,
            // A second ago, as of a page that is written by a daemon.
            at_ns: self.2.reference_ns(ReferenceClock::Monotonic) - 1_000_000_000,
            age_ns: 0,
            supersedes_kernel: false,
        };
        UtcAnswer {
            said: self.1.map(said).ok_or_else(|| "away".to_owned()),
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

#[test]
fn the_narrowest_statement_is_handed_over_and_withdrawn() {
    let set = AdjustmentKind::Set(1_700_000_000_000_000_000);
    let adjustments = vec![Adjustment { at: Span::from_nanos(1), kind: set }];
    let (time, clock) = two_seconds_after(adjustments);
    let times = Arc::new(AtomicU64::new(0));
    let made = |name, error_ns| -> Box<dyn UtcSource> {
        Box::new(FakeSource(name, error_ns, time.clone(), times.clone()))
    };
    assert_eq!(clock.utc_bounded(), Utc::Unvouched);
    let sources =
        vec![made("silent", None), made("wide", Some(90_000)), made("narrow", Some(5_000))];
    let keeper = UtcKeeper::with(Arc::clone(&clock), sources).unwrap();
    let status = keeper.status();
    assert_eq!(
        (status.source, status.refused),
        (Some("narrow"), vec![("silent", "away".to_owned())])
    );
    let found = clock.utc_bounded().interval().unwrap().error_ns();
    // The second since the statement was made is 1 us at 1 ppm.
    assert!((6_000..7_000).contains(&found), "{found}");
    let begun = std::time::Instant::now();
    while times.load(Ordering::Relaxed) < 6 && begun.elapsed() < EVERY * 20 {
        std::thread::sleep(EVERY / 20);
    }
    assert!(times.load(Ordering::Relaxed) >= 6);
    drop(keeper);
    assert_eq!(clock.utc_bounded(), Utc::Unvouched);
}

/// chronyd that denies what it told the kernel denies the kernel's bound; one that is away says nothing about it.
#[test]
fn a_source_that_denies_the_kernels_bound_leaves_none() {
    struct Denier(&'static str);
    impl UtcSource for Denier {
        fn name(&self) -> &'static str {
            Chronyd::NAME
        }
        fn ask(&self) -> UtcAnswer {
            UtcAnswer { said: Err(self.0.to_owned()), evidence: Vec::new() }
        }
    }
    let kind = AdjustmentKind::Synchronised(3_001);
    let adjustments = vec![Adjustment { at: Span::from_nanos(1), kind }];
    let (_, clock) = two_seconds_after(adjustments);
    for (why, is_bounded) in
        Chronyd::REFUSED.map(|why| (why, false)).into_iter().chain([("away", true)])
    {
        assert!(clock.utc_bounded().interval().is_some());
        let keeper = UtcKeeper::with(Arc::clone(&clock), vec![Box::new(Denier(why))]).unwrap();
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
            let said = UtcStatement {
                error_ns: 1_000,
                growth_ppb: 0,
                at_ns,
                age_ns: 0,
                supersedes_kernel: true,
            };
            UtcAnswer { said: Ok(said), evidence: Vec::new() }
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
