//! The names of sources, as documents and command lines write them.

use std::fmt;
use std::str::FromStr;

use hourglass_sys::clock::ClockId;

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

#[cfg(test)]
mod tests {
    use super::*;

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
