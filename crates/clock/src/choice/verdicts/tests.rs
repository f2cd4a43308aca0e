//! Every verdict, from made-up facts.

use super::*;
use crate::choice::CrossCpu;
use crate::choice::machine::CpuFlags;
use crate::choice::measured::RateChange;
use crate::choice::monotonicity::Monotonicity;
use crate::source::cpuid::Hypervisor;
use crate::source::{Frequency, MeasuredFrequency, ReadCost};
use crate::trust::{is_trusted, objection};

/// A KVM guest whose TSC is good.
fn good_machine() -> ClockHost {
    ClockHost {
        current: Some("tsc".into()),
        available: vec!["tsc".into(), "kvm-clock".into()],
        cpuid: Some(Cpuid {
            vendor: *b"GenuineIntel",
            family: 6,
            model: 207,
            rdtscp: true,
            invariant_tsc: true,
            tsc_adjust: true,
            hypervisor: Some(Hypervisor {
                signature: *b"KVMKVMKVM\0\0\0",
                kvm_stable: Some(true),
                frequency: None,
            }),
            ..Cpuid::default()
        }),
        cpuid_intercepted: Some(false),
        tsc_intercepted: Some(false),
        flags: Some(CpuFlags { constant_tsc: true, nonstop_tsc: true, tsc_known_freq: true }),
        tsc_adjust: vec![(0, 0), (1, 0)],
    }
}

fn good_measurements() -> SourceMeasurement {
    SourceMeasurement {
        cost: Some(cost(10.0)),
        frequency: Some(frequency(2_300_000_000)),
        drift: Some(RateChange { ppm: 0.4, error_ppm: 5.0 }),
        cross_cpu: vec![pair(-73, 172)],
        pairs: 1,
        monotonicity: Some(Monotonicity { cpus: 2, reads: 9_000, violations: 0, worst_ticks: 0 }),
        clocksource_after: Some("tsc".into()),
    }
}

fn cost(p50_ns: f64) -> ReadCost {
    ReadCost {
        reads: 4_096,
        mean_ns: p50_ns,
        stddev_ns: 20.0,
        p50_ns,
        p99_ns: p50_ns * 2.0,
        overhead_ns: 1.0,
        batch: 1,
    }
}

fn frequency(hertz: u64) -> MeasuredFrequency {
    let frequency = Frequency::from_hertz(hertz, FrequencyOrigin::Measured);
    MeasuredFrequency { frequency, error_ppm: 3.0, bracket_ns: 30.0 }
}

fn pair(offset_lo_ns: i64, offset_hi_ns: i64) -> CrossCpu {
    CrossCpu { a: 0, b: 1, offset_lo_ns, offset_hi_ns, rounds: 2_000 }
}

fn facts(name: SourceName) -> SourceProperties {
    SourceProperties {
        name,
        rating: 300,
        counts: CounterMeaning::Oscillator,
        frequency: None,
        resolution_ns: 0.43,
        width_bits: 64,
        hardware_bits: 64,
        settable: false,
    }
}

/// The objection of the policy strict against a TSC.
fn objection_to(
    machine: impl FnOnce(&mut ClockHost),
    measured: impl FnOnce(&mut SourceMeasurement),
    stated: Option<Frequency>,
) -> Option<String> {
    let (mut m, mut d) = (good_machine(), good_measurements());
    machine(&mut m);
    measured(&mut d);
    let facts = SourceProperties { frequency: stated, ..facts(SourceName::Tsc) };
    objection(&about(&facts, &m, &d), required(SourceName::Tsc))
}

fn objects(id: &str, found: Option<String>) {
    assert!(found.as_ref().is_some_and(|f| f.starts_with(&format!("{id}: "))), "{id}: {found:?}");
}

fn cpuid(machine: &mut ClockHost) -> &mut Cpuid {
    machine.cpuid.as_mut().unwrap()
}

#[test]
fn the_base_machines_tsc_is_trusted() {
    assert_eq!(objection_to(|_| (), |_| (), None), None);
    // None of these is needed.
    assert_eq!(objection_to(|m| cpuid(m).rdtscp = false, |_| (), None), None);
    assert_eq!(objection_to(|m| cpuid(m).hypervisor = None, |_| (), None), None);
    assert_eq!(objection_to(|m| m.tsc_adjust.clear(), |_| (), None), None);
    assert_eq!(objection_to(|m| m.flags = None, |_| (), None), None);
    assert_eq!(objection_to(|_| (), |d| d.cross_cpu.clear(), None), None);
    assert_eq!(objection_to(|_| (), |d| d.monotonicity = None, None), None);
}

/// valkey #4691: a kvm-clock guest that merely has a TSC.
#[test]
fn the_kernel_must_use_it() {
    let other = objection_to(|m| m.current = Some("kvm-clock".into()), |_| (), None);
    objects("kernel_clocksource", other);
    objects("kernel_clocksource", objection_to(|m| m.current = None, |_| (), None));
    // An unstable TSC is taken off the list (QEMU with plain `-cpu max`).
    let gone = objection_to(|m| m.available = vec!["hpet".into()], |_| (), None);
    objects("available_clocksources", gone);
    let changed = |d: &mut SourceMeasurement| d.clocksource_after = Some("hpet".into());
    objects("clocksource_change", objection_to(|_| (), changed, None));
}

#[test]
fn the_processor_must_say_that_it_is_invariant() {
    objects("invariant_tsc", objection_to(|m| cpuid(m).invariant_tsc = false, |_| (), None));
    objects("invariant_tsc", objection_to(|m| m.cpuid = None, |_| (), None));
    let flags = |constant_tsc, nonstop_tsc| {
        objection_to(
            |m| m.flags = Some(CpuFlags { constant_tsc, nonstop_tsc, tsc_known_freq: true }),
            |_| (),
            None,
        )
    };
    objects("kernel_flags", flags(false, true));
    objects("kernel_flags", flags(true, false));
}

#[test]
fn kvm_must_call_it_stable_and_others_need_not() {
    let unstable = |m: &mut ClockHost| {
        cpuid(m).hypervisor.as_mut().unwrap().kvm_stable = Some(false);
    };
    objects("kvm_stable", objection_to(unstable, |_| (), None));
    let other = |m: &mut ClockHost| {
        let signature = *b"VMwareVMware";
        cpuid(m).hypervisor = Some(Hypervisor { signature, ..Hypervisor::default() });
    };
    assert_eq!(objection_to(other, |_| (), None), None);
}

/// prctl(2), arch_prctl(2): both can be made to lie.
#[test]
fn no_program_may_answer_in_the_processors_place() {
    objects("tsc_access", objection_to(|m| m.tsc_intercepted = Some(true), |_| (), None));
    objects("cpuid_access", objection_to(|m| m.cpuid_intercepted = Some(true), |_| (), None));
    assert_eq!(objection_to(|m| m.cpuid_intercepted = None, |_| (), None), None);
    objects("read_cost", objection_to(|_| (), |d| d.cost = Some(cost(3_500.0)), None));
}

#[test]
fn registers_that_differ_between_cpus() {
    objects("tsc_adjust", objection_to(|m| m.tsc_adjust = vec![(0, 0), (1, -9)], |_| (), None));
    assert_eq!(objection_to(|m| m.tsc_adjust = vec![(0, -9), (1, -9)], |_| (), None), None);
}

#[test]
fn the_rate_must_agree_with_a_prior_within_500_ppm() {
    let prior = |ppm: i64, origin| {
        let hertz = 2_300_000_000_i64 + ppm * 2_300;
        Some(Frequency::from_hertz(hertz.unsigned_abs(), origin))
    };
    let against = |ppm, origin| objection_to(|_| (), |_| (), prior(ppm, origin));
    for origin in [FrequencyOrigin::Cpuid15, FrequencyOrigin::Hypervisor] {
        assert_eq!(against(0, origin), None);
        assert_eq!(against(490, origin), None);
        assert_eq!(against(-490, origin), None);
        objects("rate", against(510, origin));
        objects("rate", against(-510, origin));
    }
    // Skylake's nameplate of 2,600 MHz for a TSC of 2,592.
    assert_eq!(against(3_086, FrequencyOrigin::Cpuid16), None);
    objects("rate", against(11_000, FrequencyOrigin::Cpuid16));
    objects("rate", objection_to(|_| (), |d| d.frequency = None, None));
}

#[test]
fn the_rate_must_stay() {
    let drift = |ppm| {
        let change = Some(RateChange { ppm, error_ppm: 5.0 });
        objection_to(|_| (), |d| d.drift = change, None)
    };
    assert_eq!(drift(104.0), None);
    objects("drift", drift(106.0));
    objects("drift", drift(-106.0));
}

#[test]
fn cpus_must_not_contradict_each_other() {
    let offsets = |pair| objection_to(|_| (), |d| d.cross_cpu.push(pair), None);
    objects("cross_cpu", offsets(pair(1, 400)));
    objects("cross_cpu", offsets(pair(-400, -1)));
    assert_eq!(offsets(pair(-400, 400)), None);
    // A guest whose CPUs take turns: no objection, but nothing in favour either.
    let turns =
        SourceMeasurement { cross_cpu: vec![pair(-3_000_000, 4_000_000)], ..good_measurements() };
    let evidence = about(&facts(SourceName::Tsc), &good_machine(), &turns);
    let item = evidence.iter().find(|e| e.id == "cross_cpu").unwrap();
    assert_eq!(item.verdict, EvidenceVerdict::Unknown);
    let back = |d: &mut SourceMeasurement| {
        d.monotonicity =
            Some(Monotonicity { cpus: 2, reads: 9_000, violations: 1, worst_ticks: 7 });
    };
    objects("monotonicity", objection_to(|_| (), back, None));
}

#[test]
fn the_arm_counter_needs_no_cpuid() {
    let facts = SourceProperties {
        frequency: Some(Frequency::from_hertz(62_500_000, FrequencyOrigin::Register)),
        ..facts(SourceName::Cntvct)
    };
    let measured =
        SourceMeasurement { frequency: Some(frequency(62_500_100)), ..good_measurements() };
    let arm = |current: &str| ClockHost {
        current: Some(current.into()),
        available: vec!["arch_sys_counter".into()],
        ..ClockHost::default()
    };
    let measured =
        SourceMeasurement { clocksource_after: Some("arch_sys_counter".into()), ..measured };
    let trusted =
        |machine| is_trusted(&about(&facts, &machine, &measured), required(SourceName::Cntvct));
    assert!(trusted(arm("arch_sys_counter")));
    assert!(!trusted(arm("jiffies")));
}

#[test]
fn an_hpet_must_be_wide_and_keep_the_rate_of_its_register() {
    let trusted = |bits, hertz| {
        let facts = SourceProperties {
            frequency: Some(Frequency::from_hertz(14_318_180, FrequencyOrigin::Register)),
            hardware_bits: bits,
            ..facts(SourceName::Hpet)
        };
        let machine = ClockHost { available: vec!["hpet".into()], ..ClockHost::default() };
        let measured =
            SourceMeasurement { frequency: Some(frequency(hertz)), ..SourceMeasurement::default() };
        is_trusted(&about(&facts, &machine, &measured), required(SourceName::Hpet))
    };
    assert!(trusted(64, 14_318_180));
    assert!(!trusted(32, 14_318_180));
    assert!(!trusted(64, 14_330_000));
}

/// Never a settable clock behind a monotonic type, nor one of processor time.
#[test]
fn os_clocks_are_trusted_unless_they_are_set_or_count_something_else() {
    let trusted = |counts, settable| {
        let name = SourceName::MONOTONIC;
        let facts = SourceProperties { counts, settable, ..facts(name) };
        is_trusted(
            &about(&facts, &ClockHost::default(), &SourceMeasurement::default()),
            required(name),
        )
    };
    assert!(trusted(CounterMeaning::Uptime, false));
    assert!(!trusted(CounterMeaning::TimeOfDay, true));
    assert!(!trusted(CounterMeaning::CpuTime, false));
    assert!(!trusted(CounterMeaning::Simulated, false));
}
