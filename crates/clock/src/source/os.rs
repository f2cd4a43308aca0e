//! The operating system's clocks.

use hourglass_sys::clock::{ClockId, now_ns, resolution_ns};

use super::{
    ClockSource, CounterMeaning, Frequency, FrequencyOrigin, Probe, SourceName, SourceProperties,
    Unavailable,
};

/// A clock of the operating system, read by `clock_gettime`; it counts nanoseconds. The C library
/// and the kernel order every read, so both kinds of read are the same.
#[derive(Clone, Copy, Debug)]
pub struct OsSource {
    clock: ClockId,
    step_ns: u64,
}

/// The sources of this file.
pub(super) fn names() -> Vec<SourceName> {
    ClockId::ALL.into_iter().map(SourceName::Os).collect()
}

/// The source of that name, if it is one of this file and the kernel has the clock.
pub(super) fn probe(name: SourceName) -> Probe {
    let SourceName::Os(clock) = name else {
        return Err(Unavailable::NotSupported { what: "not a clock of the operating system" });
    };
    OsSource::probe(clock).map(|source| Box::new(source) as _)
}

impl OsSource {
    /// The clock, with the step that `clock_getres` states.
    ///
    /// # Errors
    /// `NotSupported` on a kernel without that clock.
    pub fn probe(clock: ClockId) -> Result<OsSource, Unavailable> {
        match resolution_ns(clock) {
            Ok(step_ns) => Ok(OsSource { clock, step_ns: step_ns.max(1) }),
            Err(_) => Err(Unavailable::NotSupported { what: "the kernel has no such clock" }),
        }
    }
}

/// Below a counter that can be trusted, above every other source; among themselves by how close
/// to a plain uptime they come.
fn rating(clock: ClockId) -> u16 {
    match clock {
        ClockId::Monotonic => 290,
        ClockId::MonotonicRaw => 280,
        ClockId::Boottime => 270,
        ClockId::Tai => 160,
        ClockId::Realtime => 150,
        ClockId::MonotonicCoarse => 120,
        ClockId::RealtimeCoarse => 110,
        ClockId::ThreadCpu | ClockId::ProcessCpu => 50,
    }
}

impl ClockSource for OsSource {
    fn facts(&self) -> SourceProperties {
        let counts = match self.clock {
            ClockId::Realtime | ClockId::RealtimeCoarse | ClockId::Tai => CounterMeaning::TimeOfDay,
            ClockId::ThreadCpu | ClockId::ProcessCpu => CounterMeaning::CpuTime,
            _ => CounterMeaning::Uptime,
        };
        SourceProperties {
            name: SourceName::Os(self.clock),
            rating: rating(self.clock),
            counts,
            frequency: Some(Frequency::from_hertz(1_000_000_000, FrequencyOrigin::Definition)),
            resolution_ns: self.step_ns as f64,
            width_bits: u64::BITS,
            hardware_bits: u64::BITS,
            settable: counts == CounterMeaning::TimeOfDay,
        }
    }

    #[inline]
    fn read(&self) -> u64 {
        now_ns(self.clock)
    }

    #[inline]
    fn read_ordered(&self) -> u64 {
        now_ns(self.clock)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_clocks_are_coarse_and_settable_ones_say_so() {
        let facts = |clock| OsSource::probe(clock).unwrap().facts();
        assert!(facts(ClockId::MonotonicCoarse).resolution_ns >= 1_000_000.0);
        assert!(facts(ClockId::Monotonic).resolution_ns <= 10_000_000.0);
        assert!(facts(ClockId::Realtime).settable && facts(ClockId::Tai).settable);
        assert!(!facts(ClockId::Boottime).settable);
        assert_eq!(facts(ClockId::ThreadCpu).counts, CounterMeaning::CpuTime);
    }
}
