//! The clocks that a program can read, each behind [`ClockSource`].
//!
//! The abstraction is the kernel's clock source (*Hrtimers and Beyond*, sections 3.1 and 5):
//! something that counts, and what is needed to turn its counts into nanoseconds. To add one,
//! write a file and a line in `REGISTRY`.

#[cfg(target_os = "linux")]
pub mod cntvct;
pub mod cost;
#[cfg(target_os = "linux")]
pub mod cpuid;
pub mod facts;
#[cfg(target_os = "linux")]
pub mod frequency;
#[cfg(target_os = "linux")]
pub mod hpet;
#[cfg(target_os = "linux")]
pub mod hpet_registers;
pub mod os;
#[cfg(target_os = "linux")]
pub mod ptp;
pub mod sim;
#[cfg(target_os = "linux")]
pub mod tsc;
pub mod unavailable;

use std::fmt::{self, Debug};
use std::str::FromStr;

use hourglass_sys::clock::ClockId;

pub use cost::{ReadCost, ReadOrder, read_cost};
pub use facts::{Counter32Policy, CounterMeaning, Frequency, FrequencyOrigin, SourceProperties};
#[cfg(target_os = "linux")]
pub use frequency::{MeasuredFrequency, measure_frequency};
pub use sim::SimSource;
pub use unavailable::Unavailable;

/// A source's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SourceName {
    /// The x86 time-stamp counter.
    Tsc,
    /// The High Precision Event Timer of a PC.
    Hpet,
    /// The aarch64 generic timer's virtual count.
    Cntvct,
    /// A clock of the operating system.
    Os(ClockId),
    /// The hardware clock `/dev/ptpN`.
    Ptp(u32),
    /// The simulated clock.
    Sim,
}

/// The operating system's clocks and their names.
const OS_NAMES: [(ClockId, &str); 9] = [
    (ClockId::Monotonic, "monotonic"),
    (ClockId::MonotonicRaw, "monotonic_raw"),
    (ClockId::Boottime, "boottime"),
    (ClockId::Realtime, "realtime"),
    (ClockId::Tai, "tai"),
    (ClockId::MonotonicCoarse, "monotonic_coarse"),
    (ClockId::RealtimeCoarse, "realtime_coarse"),
    (ClockId::ThreadCpu, "thread_cpu"),
    (ClockId::ProcessCpu, "process_cpu"),
];

impl SourceName {
    /// `CLOCK_MONOTONIC`, which every machine has.
    pub const MONOTONIC: SourceName = SourceName::Os(ClockId::Monotonic);

    /// Every source; of the hardware clocks of networks the first.
    pub fn all() -> impl Iterator<Item = SourceName> {
        let counters = [SourceName::Tsc, SourceName::Hpet, SourceName::Cntvct, SourceName::Ptp(0)];
        let of_os = OS_NAMES.iter().map(|(clock, _)| SourceName::Os(*clock));
        counters.into_iter().chain(of_os).chain([SourceName::Sim])
    }
}

impl fmt::Display for SourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SourceName::Tsc => f.pad("tsc"),
            SourceName::Hpet => f.pad("hpet"),
            SourceName::Cntvct => f.pad("cntvct"),
            SourceName::Os(clock) => {
                let found = OS_NAMES.iter().find(|(id, _)| id == clock);
                f.pad(found.map_or("monotonic", |(_, name)| name))
            }
            SourceName::Ptp(number) => f.pad(&format!("ptp{number}")),
            SourceName::Sim => f.pad("sim"),
        }
    }
}

/// A name that is no source's; the text lists those that are.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no clock is called `{0}`; there is: tsc, hpet, cntvct, ptp0 (or another number), monotonic, \
     monotonic_raw, boottime, realtime, tai, monotonic_coarse, realtime_coarse, thread_cpu, \
     process_cpu, sim"
)]
pub struct UnknownSource(pub String);

impl FromStr for SourceName {
    type Err = UnknownSource;

    fn from_str(text: &str) -> Result<SourceName, UnknownSource> {
        if let Some((clock, _)) = OS_NAMES.iter().find(|(_, name)| *name == text) {
            return Ok(SourceName::Os(*clock));
        }
        match text {
            "tsc" => Ok(SourceName::Tsc),
            "hpet" => Ok(SourceName::Hpet),
            "cntvct" => Ok(SourceName::Cntvct),
            "sim" => Ok(SourceName::Sim),
            _ => {
                ptp_number(text).map(SourceName::Ptp).ok_or_else(|| UnknownSource(text.to_owned()))
            }
        }
    }
}

/// The number in `ptpN`, written as the kernel writes it: digits only, no leading zero.
fn ptp_number(text: &str) -> Option<u32> {
    let number: u32 = text.strip_prefix("ptp")?.parse().ok()?;
    (format!("ptp{number}") == text).then_some(number)
}

/// Something that counts time and can be read.
///
/// Reading MUST
/// - never fail, block, allocate or panic, so that it can be done in a signal handler (a source
///   whose device vanishes stands still);
/// - never go backwards on one CPU but by the wrap after [`SourceProperties::hardware_bits`] bits, or by being
///   set where [`SourceProperties::settable`] says that it may be;
/// - advance at one rate, that of [`SourceProperties::frequency`] where it is known, however slowly that
///   rate drifts; except for sources that do not count real time ([`SourceProperties::counts`]);
/// - give the same count ordered or not: the two differ only in *when* they sample.
///
/// Reading need not agree between CPUs: that is for [`crate::choice`] to find out.
pub trait ClockSource: Debug + Send + Sync {
    /// The properties of this source. Constant while the value lives.
    fn facts(&self) -> SourceProperties;

    /// Reads the count. It may be sampled before earlier instructions have finished and after
    /// later ones have begun: the fastest read there is.
    fn read(&self) -> u64;

    /// Reads the count after everything that the program did earlier. What it does later may
    /// begin before the count is sampled, but a store of the value read is seen after it.
    fn read_ordered(&self) -> u64;
}

/// A source that can be read, or why not.
pub type Probe = Result<Box<dyn ClockSource>, Unavailable>;

/// A name and what probing it gave.
#[derive(Debug)]
pub struct ProbeResult {
    /// The source's name.
    pub name: SourceName,
    /// The source, or why it is not available.
    pub source: Probe,
}

/// Sources that are found and probed in one way.
struct SourceFamily {
    owns: fn(SourceName) -> bool,
    names: fn() -> Vec<SourceName>,
    probe: fn(SourceName, Counter32Policy) -> Probe,
}

/// Every source, in the order in which they are listed.
#[rustfmt::skip]
const REGISTRY: &[SourceFamily] = &[
    #[cfg(target_os = "linux")]
    SourceFamily { owns: |n| n == SourceName::Tsc, names: || vec![SourceName::Tsc], probe: |_, _| tsc::probe() },
    #[cfg(target_os = "linux")]
    SourceFamily { owns: |n| n == SourceName::Cntvct, names: || vec![SourceName::Cntvct], probe: |_, _| cntvct::probe() },
    #[cfg(target_os = "linux")]
    SourceFamily { owns: |n| n == SourceName::Hpet, names: || vec![SourceName::Hpet], probe: |_, narrow| hpet::probe(narrow) },
    SourceFamily { owns: |n| matches!(n, SourceName::Os(_)), names: os::names, probe: |n, _| os::probe(n) },
    #[cfg(target_os = "linux")]
    SourceFamily { owns: |n| matches!(n, SourceName::Ptp(_)), names: ptp::names, probe: |n, _| ptp::probe(n) },
    SourceFamily { owns: |n| n == SourceName::Sim, names: || vec![SourceName::Sim], probe: |_, _| sim::probe() },
];

/// Probes every source of this host. Without a PTP clock it probes `ptp0`, so that the reason is listed.
///
/// Opens and maps devices; milliseconds at worst. `/dev/hpet` is held while its source lives.
#[must_use]
pub fn all(narrow: Counter32Policy) -> Vec<ProbeResult> {
    let found = |entry: &SourceFamily| -> Vec<ProbeResult> {
        let probed = |name| ProbeResult { name, source: (entry.probe)(name, narrow) };
        (entry.names)().into_iter().map(probed).collect()
    };
    REGISTRY.iter().flat_map(found).collect()
}

/// Probes one source; an HPET of 32 bits is extended.
///
/// # Errors
/// Why it cannot be read, and what would mend that.
pub fn probe(name: SourceName) -> Probe {
    match REGISTRY.iter().find(|entry| (entry.owns)(name)) {
        Some(entry) => (entry.probe)(name, Counter32Policy::Extend),
        None => Err(Unavailable::NotSupported { what: "no source has this name" }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_source_is_listed_once_and_found_by_name() {
        let mut names: Vec<String> =
            all(Counter32Policy::Extend).iter().map(|p| p.name.to_string()).collect();
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count);
        for name in ["tsc", "hpet", "cntvct", "monotonic", "thread_cpu", "ptp0", "sim"] {
            assert!(names.iter().any(|n| n == name), "{name} is not listed: {names:?}");
        }
        for probed in all(Counter32Policy::Extend) {
            let again = probe(probed.name);
            assert_eq!(again.is_ok(), probed.source.is_ok(), "{}", probed.name);
            if let Ok(source) = again {
                assert_eq!(source.facts().name, probed.name);
            }
        }
    }

    /// The MUSTs of [`ClockSource`] that can be seen from outside, on every source of this machine.
    #[test]
    fn sources_keep_their_contract() {
        for probed in all(Counter32Policy::Extend) {
            let Ok(source) = probed.source else { continue };
            let facts = source.facts();
            assert!((1..=499).contains(&facts.rating), "{facts:?}");
            assert!((1..=64).contains(&facts.width_bits), "{facts:?}");
            assert!(facts.resolution_ns > 0.0, "{facts:?}");
            if facts.settable {
                continue;
            }
            let mut last = source.read_ordered();
            for turn in 0..1_000 {
                let now = if turn % 2 == 0 { source.read_ordered() } else { source.read() };
                // An unordered read may be sampled a little early.
                assert!(now.wrapping_sub(last).cast_signed() > -1_000, "{facts:?}");
                last = now;
            }
        }
    }

    #[test]
    fn a_source_serves_several_threads() {
        let source = probe(SourceName::MONOTONIC).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| source.read());
            scope.spawn(|| source.read_ordered());
        });
    }

    #[test]
    fn the_contracts_names_go_both_ways() {
        let others = [SourceName::Ptp(17)];
        for name in SourceName::all().chain(others) {
            assert_eq!(name.to_string().parse(), Ok(name));
        }
        // Scripts know these.
        let names = SourceName::all().map(|name| name.to_string()).collect::<Vec<_>>().join(", ");
        let listed = "tsc, hpet, cntvct, ptp0, monotonic, monotonic_raw, boottime, realtime, tai, monotonic_coarse, \
                      realtime_coarse, thread_cpu, process_cpu, sim";
        assert_eq!(names, listed);
        let message = UnknownSource(String::new()).to_string();
        assert!(message.replace(" (or another number)", "").contains(listed), "{message}");
    }

    #[test]
    fn other_names_are_refused_with_a_list() {
        for name in ["", "TSC", "ptp", "ptp-1", "ptp+1", "ptp01", "ptp99999999999", "acpi_pm"] {
            let refused = name.parse::<SourceName>().unwrap_err();
            assert!(refused.to_string().contains("monotonic_raw"), "{refused}");
        }
    }

    #[test]
    fn every_os_clock_has_a_name() {
        for clock in ClockId::ALL {
            let name = SourceName::Os(clock).to_string();
            assert_eq!(name.parse(), Ok(SourceName::Os(clock)));
        }
    }
}
