//! Policies on made-up machines, and all of them on this one.

use hourglass_time::Span;

use super::*;
use crate::choice::measured::RateChange;
use crate::source::cpuid::Cpuid;
use crate::source::{ClockSource, sim::SimConfig};
use crate::source::{CounterMeaning, Frequency, FrequencyOrigin, MeasuredFrequency, SimSource};

/// Something with facts of our choice.
#[derive(Debug)]
struct TestSource(SourceProperties, SimSource);

impl ClockSource for TestSource {
    fn facts(&self) -> SourceProperties {
        self.0
    }
    fn read(&self) -> u64 {
        self.1.read()
    }
    fn read_ordered(&self) -> u64 {
        self.1.read_ordered()
    }
}

fn made(name: SourceName, rating: u16, counts: CounterMeaning) -> ProbeResult {
    let sim = SimSource::new(SimConfig::default());
    let facts = SourceProperties { name, rating, counts, frequency: None, ..sim.facts() };
    ProbeResult { name, source: Ok(Box::new(TestSource(facts, sim))) }
}

fn cost(mean_ns: f64, stddev_ns: f64) -> Option<ReadCost> {
    let (p50_ns, p99_ns) = (mean_ns, mean_ns);
    Some(ReadCost { reads: 256, mean_ns, stddev_ns, p50_ns, p99_ns, overhead_ns: 1.0, batch: 1 })
}

fn measured(cost: Option<ReadCost>) -> SourceMeasurement {
    let frequency = Frequency::from_hertz(1_000_000_000, FrequencyOrigin::Measured);
    SourceMeasurement {
        cost,
        frequency: Some(MeasuredFrequency { frequency, error_ppm: 1.0, bracket_ns: 20.0 }),
        drift: Some(RateChange { ppm: 0.0, error_ppm: 1.0 }),
        ..SourceMeasurement::default()
    }
}

/// A machine with a TSC, an HPET, and the OS clock on `kernel`.
fn chosen(policy: SelectionPolicy, invariant_tsc: bool, kernel: &str) -> Selection {
    let machine = ClockHost {
        current: Some(kernel.into()),
        available: vec!["tsc".into(), "hpet".into()],
        cpuid: Some(Cpuid { invariant_tsc, vendor: *b"AuthenticAMD", ..Cpuid::default() }),
        ..ClockHost::default()
    };
    let probed = vec![
        made(SourceName::Tsc, 300, CounterMeaning::Oscillator),
        made(SourceName::Hpet, 250, CounterMeaning::Oscillator),
        made(SourceName::MONOTONIC, 290, CounterMeaning::Uptime),
    ];
    // Table 3.2 of the thesis, in ns.
    let costs = [cost(27.5, 75.6), cost(1_117.9, 376.4), cost(1_142.3, 529.2)];
    decide(policy, &machine, probed, &costs.map(measured)).unwrap()
}

fn name(text: &str) -> SourceName {
    text.parse().unwrap()
}

#[test]
fn each_policy_on_three_machines() {
    let forced = SelectionPolicy::Forced(name("hpet"));
    let rows = [
        // All is well.
        (
            true,
            "tsc",
            [SelectionPolicy::Thesis, SelectionPolicy::Strict, SelectionPolicy::Permissive],
            ["tsc"; 3],
        ),
        // The TSC is invariant, but the kernel left it: only strict checks that.
        (
            true,
            "hpet",
            [SelectionPolicy::Thesis, SelectionPolicy::Strict, SelectionPolicy::Permissive],
            ["tsc", "monotonic", "tsc"],
        ),
        // The AMD Athlon of Table 3.2: the thesis takes the HPET.
        (
            false,
            "hpet",
            [SelectionPolicy::Thesis, SelectionPolicy::Strict, SelectionPolicy::Permissive],
            ["hpet", "monotonic", "monotonic"],
        ),
    ];
    for (invariant, kernel, policies, expected) in rows {
        for (policy, expected) in policies.into_iter().zip(expected) {
            let selection = chosen(policy, invariant, kernel);
            assert_eq!(selection.selected, name(expected), "{policy} {invariant} {kernel}");
        }
        assert_eq!(chosen(forced, invariant, kernel).selected, name("hpet"));
    }
}

/// Permissive shows what it does not heed.
#[test]
fn permissive_keeps_the_evidence() {
    let selection = chosen(SelectionPolicy::Permissive, true, "kvm-clock");
    let tsc = selection.source(SourceName::Tsc).unwrap();
    assert!(tsc.trust.trusted);
    let kernel = tsc.trust.evidence.iter().find(|e| e.id == "kernel_clocksource").unwrap();
    assert_eq!((kernel.verdict, kernel.found.as_str()), (EvidenceVerdict::Bad, "kvm-clock"));
    let strict = chosen(SelectionPolicy::Strict, true, "kvm-clock");
    assert_eq!(
        strict.source(SourceName::Tsc).unwrap().trust.reason,
        "kernel_clocksource: kvm-clock"
    );
}

#[test]
fn what_cannot_be_read_cannot_be_forced() {
    let refused = |text: &str| {
        let probed = vec![ProbeResult { name: name("hpet"), source: Err(Unavailable::MapRefused) }];
        let measured = [SourceMeasurement::default()];
        decide(SelectionPolicy::Forced(name(text)), &ClockHost::default(), probed, &measured)
            .unwrap_err()
    };
    let SelectError::Unavailable { why, .. } = refused("hpet");
    assert_eq!(why, Unavailable::MapRefused);
    assert!(refused("hpet").to_string().contains("hpet_mmap=1"));
    let SelectError::Unavailable { why, .. } = refused("ptp4000000000");
    assert!(matches!(why, Unavailable::NotPresent { .. }));
}

#[test]
fn with_nothing_at_all_the_os_clock_serves() {
    for policy in [SelectionPolicy::Thesis, SelectionPolicy::Strict, SelectionPolicy::Permissive] {
        let found = decide(policy, &ClockHost::default(), Vec::new(), &[]).unwrap();
        assert_eq!(found.selected, SourceName::MONOTONIC);
    }
}

/// On this machine every policy ends, and its statements are consistent.
#[test]
fn every_policy_on_this_machine() {
    let before = hourglass_sys::thread::affinity().unwrap();
    let effort = MeasurementLimits {
        reads: 512,
        window: Span::from_millis(5),
        ..MeasurementLimits::default()
    };
    let policies = [
        SelectionPolicy::Thesis,
        SelectionPolicy::Strict,
        SelectionPolicy::Permissive,
        SelectionPolicy::Forced(SourceName::MONOTONIC),
    ];
    for policy in policies {
        let found = select(policy, &effort).unwrap();
        let selected = found.source(found.selected).unwrap();
        assert!(selected.available, "{found:?}");
        assert!(selected.trust.trusted || !matches!(policy, SelectionPolicy::Strict), "{found:?}");
        for report in &found.sources {
            assert_eq!(report.available, report.cost.is_some(), "{report:?}");
            assert_eq!(report.available, report.unavailable.is_none(), "{report:?}");
            assert!(!report.trust.reason.is_empty());
        }
        assert!(found.cross_cpu.iter().all(|pair| pair.rounds > 0));
    }
    assert_eq!(hourglass_sys::thread::affinity().unwrap(), before);
}
