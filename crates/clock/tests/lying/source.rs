//! Distrust, natively: a TSC and a CPUID that lie.

use std::path::Path;
use std::thread;

use hourglass_clock::choice::machine::ClockHost;
use hourglass_clock::choice::{MeasurementLimits, monotonicity, select};
use hourglass_clock::source::tsc::TscSource;
use hourglass_clock::source::{ClockSource, Unavailable, measure_frequency};
use hourglass_clock::trust::EvidenceVerdict;
use hourglass_clock::{SelectionPolicy, SourceName};
use hourglass_skip::{Requirement, skip};
use hourglass_sys::fault_injection::{self, FaultInjection};
use hourglass_time::Span;

use crate::turn;

/// Runs `test` in a thread that is lied to; not at all where the machine cannot lie.
fn lied_to<T: Send + 'static>(
    begin: impl FnOnce() -> std::io::Result<()> + Send + 'static,
    test: impl FnOnce() -> T + Send + 'static,
) -> Option<T> {
    let _turn = turn();
    let found = thread::spawn(move || {
        begin()?;
        let found = test();
        fault_injection::end()?;
        Ok::<T, std::io::Error>(found)
    });
    let found = found.join().expect("the test panicked");
    let refused = |error: std::io::Error| {
        // The kernel's word for a processor that cannot fault on CPUID; a counter can be refused on every x86.
        const ENODEV: i32 = 19;
        let need = match error.raw_os_error() {
            Some(ENODEV) => Requirement::processor("cpuid_fault"),
            _ => Requirement::runs("x86-64", "test $(uname -m) = x86_64"),
        };
        skip(need, format_args!("no lies: {error}"));
    };
    found.map_err(refused).ok()
}

/// One test, since what is made up is one set for the process.
#[test]
fn lies_about_the_tsc_are_noticed() {
    let begin = |lies| move || fault_injection::about_tsc(lies);

    // A thread that may not read it directly gets an error, and the OS clock serves.
    let effort = MeasurementLimits {
        reads: 256,
        window: Span::from_millis(5),
        ..MeasurementLimits::default()
    };
    let chosen = lied_to(begin(FaultInjection::default()), move || {
        assert_eq!(TscSource::probe().err(), Some(Unavailable::DisabledForThread));
        let forced = select(SelectionPolicy::Forced(SourceName::Tsc), &effort);
        assert!(forced.unwrap_err().to_string().contains("PR_SET_TSC"));
        [SelectionPolicy::Strict, SelectionPolicy::Permissive, SelectionPolicy::Thesis]
            .map(|policy| select(policy, &effort).unwrap().selected)
    });
    if let Some(chosen) = chosen {
        assert_eq!(chosen, [SourceName::MONOTONIC; 3]);
    }

    // Backward jumps of 2 ms show in a monotonicity check.
    let jumps =
        FaultInjection { jump_every: 50, jump_ticks: -5_000_000, ..FaultInjection::default() };
    let seen = lied_to(begin(jumps), || {
        let cpus = hourglass_sys::thread::affinity().unwrap();
        let tsc = TscSource::without_checks();
        // Long enough for some of those jumps, however long an emulated read takes here.
        let begun = std::time::Instant::now();
        for _ in 0..50 {
            std::hint::black_box(tsc.read());
        }
        let length = Span::try_from(begun.elapsed() * 20).unwrap().max(Span::from_millis(5));
        monotonicity::check(&tsc, &cpus, length)
    });
    if let Some(seen) = seen {
        assert!(seen.violations > 0 && seen.worst_ticks > 1_000_000, "{seen:?}");
    }

    // A rate that is 2,000 ppm off is measured as such.
    let rate = |lies| {
        lied_to(begin(lies), || {
            measure_frequency(&TscSource::without_checks(), Span::from_millis(50))
        })
    };
    let fast = FaultInjection { rate_ppm: 2_000, ..FaultInjection::default() };
    if let (Some(Some(truth)), Some(Some(lie))) = (rate(FaultInjection::default()), rate(fast)) {
        let off = lie.frequency.ppm_above(&truth.frequency);
        let error = truth.error_ppm + lie.error_ppm;
        assert!((off - 2_000.0).abs() <= error + 1.0, "{off} ppm +- {error}");
    }
}

/// CPUID faulting: the bit is denied, and the choice shows that software answers in the processor's place.
#[test]
fn a_lie_about_the_invariant_bit_is_noticed() {
    let Some(machine) =
        lied_to(fault_injection::about_invariant_tsc, || ClockHost::find(Path::new("/")))
    else {
        return;
    };
    assert!(!machine.cpuid.unwrap().invariant_tsc);
    assert_eq!(machine.cpuid_intercepted, Some(true));

    let effort = MeasurementLimits {
        reads: 256,
        window: Span::from_millis(5),
        ..MeasurementLimits::default()
    };
    let strict = lied_to(fault_injection::about_invariant_tsc, move || {
        select(SelectionPolicy::Strict, &effort)
    });
    let strict = strict.expect("it worked before").unwrap();
    assert_eq!(strict.selected, SourceName::MONOTONIC);
    let tsc = strict.source(SourceName::Tsc).unwrap();
    for id in ["invariant_tsc", "cpuid_access"] {
        let item = tsc.trust.evidence.iter().find(|e| e.id == id).unwrap();
        assert_eq!(item.verdict, EvidenceVerdict::Bad, "{id}");
    }
}
