//! What the facts and measurements say about a source: the rules of the policy `strict`.
//!
//! Pure functions. Each rule names the failure that it keeps out.

use super::machine::ClockHost;
use super::measured::SourceMeasurement;
use crate::source::cpuid::Cpuid;
use crate::source::{CounterMeaning, FrequencyOrigin, SourceName, SourceProperties};
use crate::trust::{Evidence, EvidenceVerdict};

/// A rate that differs from the stated one by more than this is refused, ppm: a crystal is within
/// 100, NTP steers by up to 500.
pub const RATE_LIMIT_PPM: f64 = 500.0;
/// The limit where only the base frequency of CPUID leaf 16h states it: that is a name in whole
/// MHz, 3,000 ppm off the TSC on some processors.
pub const NAMEPLATE_LIMIT_PPM: f64 = 10_000.0;
/// A rate that changes by more than this within a second is refused, ppm.
pub const DRIFT_LIMIT_PPM: f64 = 100.0;
/// A processor's counter whose read takes longer than this is not read but emulated, ns; reads
/// take 10 to 40, a trap 1,000 and more.
pub const TRAP_NS: f64 = 500.0;
/// Offsets between CPUs that are known less exactly than this say nothing, ns; messages take 100
/// to 300, so a wider interval means that the threads hardly ever ran together.
pub const CROSS_CPU_WIDEST_NS: i64 = 10_000;

/// The evidence that must speak for a source if it is to be trusted, besides that nothing speaks
/// against it.
#[must_use]
pub fn required(name: SourceName) -> &'static [&'static str] {
    match name {
        SourceName::Tsc => &["kernel_clocksource", "invariant_tsc", "rate"],
        SourceName::Cntvct => &["kernel_clocksource", "rate"],
        SourceName::Hpet => &["width", "rate"],
        SourceName::Os(_) | SourceName::Ptp(_) | SourceName::Sim => &["counts", "settable"],
    }
}

/// All that is known about a source that can be read.
#[must_use]
pub fn about(
    facts: &SourceProperties,
    machine: &ClockHost,
    measured: &SourceMeasurement,
) -> Vec<Evidence> {
    let mut evidence = Vec::new();
    match facts.name {
        SourceName::Tsc => {
            evidence.extend(about_kernel("tsc", machine, measured));
            evidence.extend(about_tsc(machine));
            evidence.extend(about_rate(facts, measured));
            evidence.extend(about_cpus(measured));
            evidence.push(trapped(measured));
        }
        SourceName::Cntvct => {
            evidence.extend(about_kernel("arch_sys_counter", machine, measured));
            evidence.extend(about_rate(facts, measured));
            evidence.extend(about_cpus(measured));
            evidence.push(trapped(measured));
        }
        SourceName::Hpet => {
            evidence.push(width(facts));
            evidence.push(available("hpet", machine));
            evidence.extend(about_rate(facts, measured));
        }
        SourceName::Os(_) | SourceName::Ptp(_) | SourceName::Sim => {
            evidence.push(counts(facts));
            evidence.push(settable(facts));
            if matches!(facts.name, SourceName::Os(_)) {
                evidence.push(system_call(measured));
            }
        }
    }
    evidence
}

/// The kernel watches its clock source and leaves it when it misbehaves: if it does not use a
/// counter, it or the administrator distrusts that counter (valkey #4691, #4345).
fn about_kernel(wanted: &str, machine: &ClockHost, measured: &SourceMeasurement) -> Vec<Evidence> {
    let current = match machine.current.as_deref() {
        Some(current) => Evidence::new(
            "kernel_clocksource",
            EvidenceVerdict::good_if(current == wanted),
            current.to_owned(),
        ),
        None => Evidence::new(
            "kernel_clocksource",
            EvidenceVerdict::Unknown,
            "the kernel does not say which it uses",
        ),
    };
    let change = match (&machine.current, &measured.clocksource_after) {
        (Some(before), Some(after)) if before != after => Evidence::new(
            "clocksource_change",
            EvidenceVerdict::Bad,
            format!("from {before} to {after} while this was measured"),
        ),
        (Some(_), Some(_)) => Evidence::new(
            "clocksource_change",
            EvidenceVerdict::Good,
            "none while this was measured",
        ),
        _ => Evidence::new("clocksource_change", EvidenceVerdict::Unknown, "not known"),
    };
    vec![current, available(wanted, machine), change]
}

/// Being available says little (minstant takes it for trust); not being available says a lot: the
/// kernel drops a TSC that it has marked unstable.
fn available(wanted: &str, machine: &ClockHost) -> Evidence {
    let list = machine.available.join(" ");
    let verdict = match machine.available.iter().any(|name| name == wanted) {
        _ if list.is_empty() => EvidenceVerdict::Unknown,
        true => EvidenceVerdict::Neutral,
        false => EvidenceVerdict::Bad,
    };
    let found = if list.is_empty() { "the kernel does not list them".into() } else { list };
    Evidence::new("available_clocksources", verdict, found)
}

/// The statements of processor, hypervisor and kernel about the TSC.
fn about_tsc(machine: &ClockHost) -> Vec<Evidence> {
    let mut evidence = vec![
        intercepted("tsc_access", "reading it", machine.tsc_intercepted),
        intercepted("cpuid_access", "CPUID", machine.cpuid_intercepted),
    ];
    match &machine.cpuid {
        Some(cpuid) => evidence.extend(about_processor(cpuid)),
        None => {
            evidence.push(Evidence::new("invariant_tsc", EvidenceVerdict::Unknown, "no CPUID"));
        }
    }
    evidence.push(kernel_flags(machine));
    evidence.push(tsc_adjust(machine));
    evidence
}

/// `prctl(PR_SET_TSC)` and `arch_prctl(ARCH_SET_CPUID)` let a signal handler make up the answers.
fn intercepted(id: &'static str, what: &str, found: Option<bool>) -> Evidence {
    match found {
        Some(false) => {
            Evidence::new(id, EvidenceVerdict::Good, format!("{what} is not intercepted"))
        }
        Some(true) => Evidence::new(
            id,
            EvidenceVerdict::Bad,
            format!("{what} raises a signal in this thread; another program supplies its answers"),
        ),
        None => Evidence::new(id, EvidenceVerdict::Unknown, "the kernel does not say"),
    }
}

fn about_processor(cpuid: &Cpuid) -> Vec<Evidence> {
    let yes_no = |yes: bool| if yes { "yes" } else { "no" };
    let rdtscp = match cpuid.rdtscp {
        true => EvidenceVerdict::Good,
        // The TSC can be read without it, but the read then gives no CPU number.
        false => EvidenceVerdict::Neutral,
    };
    let invariant = EvidenceVerdict::good_if(cpuid.invariant_tsc);
    let mut evidence = vec![
        Evidence::new("invariant_tsc", invariant, yes_no(cpuid.invariant_tsc)),
        Evidence::new("rdtscp", rdtscp, yes_no(cpuid.rdtscp)),
    ];
    match &cpuid.hypervisor {
        None => evidence.push(Evidence::new("hypervisor", EvidenceVerdict::Good, "none")),
        Some(hypervisor) => {
            evidence.push(Evidence::new("hypervisor", EvidenceVerdict::Neutral, hypervisor.name()));
            // Without the bit KVM's own clock can differ between CPUs, and so can the TSC below it.
            if let Some(stable) = hypervisor.kvm_stable {
                let verdict = EvidenceVerdict::good_if(stable);
                evidence.push(Evidence::new("kvm_stable", verdict, yes_no(stable)));
            }
        }
    }
    evidence
}

/// The kernel sets both flags from the invariant bit, so one that is missing beside it means that
/// the kernel judges otherwise, or that kernel and process read different CPUID answers.
fn kernel_flags(machine: &ClockHost) -> Evidence {
    let Some(flags) = machine.flags else {
        return Evidence::new("kernel_flags", EvidenceVerdict::Unknown, "no /proc/cpuinfo");
    };
    let named = [
        ("constant_tsc", flags.constant_tsc),
        ("nonstop_tsc", flags.nonstop_tsc),
        ("tsc_known_freq", flags.tsc_known_freq),
    ];
    let list = |wanted: bool| {
        let names = named.iter().filter(|(_, set)| *set == wanted).map(|(name, _)| *name);
        names.collect::<Vec<_>>().join(" ")
    };
    let missing = list(false);
    let verdict = EvidenceVerdict::good_if(flags.constant_tsc && flags.nonstop_tsc);
    let found = match missing.as_str() {
        "" => list(true),
        missing => format!("{}; not: {missing}", list(true)),
    };
    Evidence::new("kernel_flags", verdict, found.trim_start_matches("; ").to_owned())
}

/// Firmware that writes the TSC of one CPU shows in this register.
fn tsc_adjust(machine: &ClockHost) -> Evidence {
    const ID: &str = "tsc_adjust";
    let values = &machine.tsc_adjust;
    match values.first() {
        Some((_, first)) if values.iter().all(|(_, value)| value == first) => Evidence::new(
            ID,
            EvidenceVerdict::Good,
            format!("{first} on all {} CPUs", values.len()),
        ),
        Some(_) => {
            let list: Vec<String> =
                values.iter().map(|(cpu, value)| format!("CPU {cpu}: {value}")).collect();
            Evidence::new(ID, EvidenceVerdict::Bad, list.join(", "))
        }
        None => match machine.cpuid {
            Some(cpuid) if cpuid.tsc_adjust => Evidence::new(
                ID,
                EvidenceVerdict::Neutral,
                "the kernel can see writes to the TSC; this program may not read the register",
            ),
            Some(_) => Evidence::new(ID, EvidenceVerdict::Neutral, "no such register"),
            None => Evidence::new(ID, EvidenceVerdict::Unknown, "not known"),
        },
    }
}

/// The rate against what is stated, and against itself a moment later.
fn about_rate(facts: &SourceProperties, measured: &SourceMeasurement) -> Vec<Evidence> {
    let mut evidence = vec![match facts.frequency {
        Some(stated) => Evidence::new(
            "stated_frequency",
            EvidenceVerdict::Neutral,
            format!("{:.6} MHz, by {}", stated.hertz() / 1e6, origin(stated.origin)),
        ),
        None => Evidence::new("stated_frequency", EvidenceVerdict::Neutral, "none is stated"),
    }];
    let Some(found) = measured.frequency else {
        evidence.push(Evidence::new(
            "rate",
            EvidenceVerdict::Bad,
            "it did not go forward steadily",
        ));
        return evidence;
    };
    let measured_text =
        format!("{:.6} MHz +- {:.1} ppm", found.frequency.hertz() / 1e6, found.error_ppm);
    evidence.push(match facts.frequency {
        None => Evidence::new("rate", EvidenceVerdict::Good, measured_text),
        Some(stated) => {
            let off = found.frequency.ppm_above(&stated);
            let limit = match stated.origin {
                FrequencyOrigin::Cpuid16 => NAMEPLATE_LIMIT_PPM,
                _ => RATE_LIMIT_PPM,
            };
            let verdict = EvidenceVerdict::good_if(off.abs() - found.error_ppm <= limit);
            Evidence::new("rate", verdict, format!("{measured_text}, {off:+.1} ppm off"))
        }
    });
    evidence.push(match measured.drift {
        Some(drift) => Evidence::new(
            "drift",
            EvidenceVerdict::good_if(drift.ppm.abs() - drift.error_ppm <= DRIFT_LIMIT_PPM),
            format!("{:+.1} ppm +- {:.1}", drift.ppm, drift.error_ppm),
        ),
        None => Evidence::new("drift", EvidenceVerdict::Unknown, "not measured"),
    });
    evidence
}

fn origin(origin: FrequencyOrigin) -> &'static str {
    match origin {
        FrequencyOrigin::Definition => "definition",
        FrequencyOrigin::Cpuid15 => "CPUID leaf 15h",
        FrequencyOrigin::Cpuid16 => "CPUID leaf 16h (nameplate)",
        FrequencyOrigin::Hypervisor => "the hypervisor",
        FrequencyOrigin::Register => "its register",
        FrequencyOrigin::Measured => "measurement",
    }
}

/// Offsets and steps between CPUs (quanta #61, fastant #5, valkey #4345).
fn about_cpus(measured: &SourceMeasurement) -> Vec<Evidence> {
    let pairs = &measured.cross_cpu;
    let lo = pairs.iter().map(|pair| pair.offset_lo_ns).min();
    let hi = pairs.iter().map(|pair| pair.offset_hi_ns).max();
    let offsets = match (lo.zip(hi), pairs.iter().find(|pair| !pair.may_agree())) {
        (_, Some(apart)) if apart.offset_lo_ns > apart.offset_hi_ns => Evidence::new(
            "cross_cpu",
            EvidenceVerdict::Bad,
            format!(
                "rounds between CPU {} and CPU {} contradict each other by {} ns: it jumped",
                apart.a,
                apart.b,
                apart.offset_lo_ns.saturating_sub(apart.offset_hi_ns)
            ),
        ),
        (_, Some(apart)) => Evidence::new(
            "cross_cpu",
            EvidenceVerdict::Bad,
            format!(
                "CPU {} is {} to {} ns ahead of CPU {}",
                apart.b, apart.offset_lo_ns, apart.offset_hi_ns, apart.a
            ),
        ),
        (Some((lo, hi)), None) => Evidence::new(
            "cross_cpu",
            if hi.saturating_sub(lo) <= CROSS_CPU_WIDEST_NS {
                EvidenceVerdict::Good
            } else {
                EvidenceVerdict::Unknown
            },
            format!("between {lo} and {hi} ns, over {} of {} pairs", pairs.len(), measured.pairs),
        ),
        (None, None) => {
            Evidence::new("cross_cpu", EvidenceVerdict::Unknown, "no pair was measured")
        }
    };
    let steps = match measured.monotonicity {
        Some(seen) if seen.reads > 0 => Evidence::new(
            "monotonicity",
            EvidenceVerdict::good_if(seen.violations == 0),
            match seen.violations {
                0 => format!("{} reads on {} CPUs, none before another", seen.reads, seen.cpus),
                n => format!(
                    "{n} of {} reads on {} CPUs went back, by up to {} ticks",
                    seen.reads, seen.cpus, seen.worst_ticks
                ),
            },
        ),
        _ => Evidence::new("monotonicity", EvidenceVerdict::Unknown, "not measured"),
    };
    vec![offsets, steps]
}

/// A hypervisor or a signal handler that emulates each read.
fn trapped(measured: &SourceMeasurement) -> Evidence {
    match measured.cost {
        Some(cost) => Evidence::new(
            "read_cost",
            EvidenceVerdict::good_if(cost.p50_ns <= TRAP_NS),
            match cost.p50_ns <= TRAP_NS {
                true => format!("{:.1} ns", cost.p50_ns),
                false => format!("{:.0} ns: each read is emulated", cost.p50_ns),
            },
        ),
        None => Evidence::new("read_cost", EvidenceVerdict::Unknown, "not measured"),
    }
}

fn width(facts: &SourceProperties) -> Evidence {
    let found = match facts.hardware_bits == facts.width_bits {
        true => format!("{} bits", facts.hardware_bits),
        false => format!("{} bits, extended by software", facts.hardware_bits),
    };
    // An extended counter is right only if it is read at least once in every wrap.
    Evidence::new("width", EvidenceVerdict::good_if(facts.hardware_bits == u64::BITS), found)
}

fn counts(facts: &SourceProperties) -> Evidence {
    let (good, found) = match facts.counts {
        CounterMeaning::Oscillator => (true, "periods of an oscillator"),
        CounterMeaning::Uptime => (true, "time since boot"),
        CounterMeaning::TimeOfDay => (true, "time of day"),
        CounterMeaning::CpuTime => (false, "processor time, not real time"),
        CounterMeaning::Simulated => (false, "time that a test makes"),
    };
    Evidence::new("counts", EvidenceVerdict::good_if(good), found)
}

/// A settable clock behind a monotonic type is minstant's and fastant's defect.
fn settable(facts: &SourceProperties) -> Evidence {
    let found = if facts.settable { "it may be set, and jumps then" } else { "never set" };
    Evidence::new("settable", EvidenceVerdict::good_if(!facts.settable), found)
}

/// Whether a read enters the kernel: that follows from the kernel's clock source.
fn system_call(measured: &SourceMeasurement) -> Evidence {
    /// A system call takes 100 ns and more, a read through the vDSO 5 to 50.
    const SYSTEM_CALL_NS: f64 = 80.0;
    match measured.cost {
        Some(cost) if cost.p50_ns < SYSTEM_CALL_NS => {
            let found = format!("{:.1} ns, in user space", cost.p50_ns);
            Evidence::new("read_cost", EvidenceVerdict::Good, found)
        }
        Some(cost) => {
            let found = format!("{:.0} ns, as long as a system call", cost.p50_ns);
            Evidence::new("read_cost", EvidenceVerdict::Neutral, found)
        }
        None => Evidence::new("read_cost", EvidenceVerdict::Unknown, "not measured"),
    }
}

#[cfg(test)]
mod tests;
