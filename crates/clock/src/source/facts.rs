//! Constant properties of sources.

use super::SourceName;
use crate::Rate;

/// The properties of a source: constant, and found without measuring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SourceProperties {
    /// The name of the source in documents.
    pub name: SourceName,
    /// How good it is as the base of time, on the kernel's scale: 1 to 99 only for tests or for
    /// something other than real time, 100 to 199 usable but coarse or settable, 200 to 299 good,
    /// 300 to 399 fast and accurate, 400 to 499 perfect. It says nothing about trust.
    pub rating: u16,
    /// The meaning of its counts.
    pub counts: CounterMeaning,
    /// Ticks against time, if something states it; else it must be measured
    /// ([`super::measure_frequency`]).
    pub frequency: Option<Frequency>,
    /// Its smallest step, ns: a tick, or what the kernel states. For a counter of unknown
    /// frequency an upper bound of 1 ns.
    pub resolution_ns: f64,
    /// Bits after which the count wraps. OS clocks count nanoseconds in 64 bits.
    pub width_bits: u32,
    /// Bits of the counter behind it; fewer where software carries it on, which then must read it
    /// often enough ([`super::hpet::HpetSource::max_poll_interval`]).
    pub hardware_bits: u32,
    /// Whether a program may set the clock, so that it jumps.
    pub settable: bool,
}

/// How to use a counter of 32 bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counter32Policy {
    /// Refuse it, as the thesis does.
    Refuse,
    /// Carry it on by software; it must then be read every `HpetSource::max_poll_interval`.
    Extend,
}

impl SourceProperties {
    /// Multiplier and shift from ticks to nanoseconds, if the frequency is known.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        self.frequency?.rate()
    }

    /// How far `later` is after `earlier`, both read from this source, negative if it is before:
    /// the wrap at the source's width is undone.
    #[must_use]
    pub fn ticks_between(&self, earlier: u64, later: u64) -> i64 {
        let unused = 64 - self.width_bits.clamp(1, 64);
        (later.wrapping_sub(earlier) << unused).cast_signed() >> unused
    }
}

/// The meaning of a source's counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CounterMeaning {
    /// Periods of an oscillator, from an unknown beginning.
    Oscillator,
    /// The operating system's time since boot.
    Uptime,
    /// Time of day.
    TimeOfDay,
    /// Time on a processor, not real time.
    CpuTime,
    /// Time that a test makes.
    Simulated,
}

/// A frequency as an exact ratio of ticks to nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frequency {
    /// Ticks...
    pub ticks: u64,
    /// ...in this many ns.
    pub ns: u64,
    /// The origin of the statement.
    pub origin: FrequencyOrigin,
}

impl Frequency {
    /// `hertz` ticks a second.
    #[must_use]
    pub const fn from_hertz(hertz: u64, origin: FrequencyOrigin) -> Frequency {
        Frequency { ticks: hertz, ns: 1_000_000_000, origin }
    }

    /// Ticks a second, for people.
    #[must_use]
    pub fn hertz(&self) -> f64 {
        self.ticks as f64 * 1e9 / self.ns as f64
    }

    /// Multiplier and shift; `None` if a part of the ratio is zero.
    #[must_use]
    pub fn rate(&self) -> Option<Rate> {
        Rate::from_ratio(self.ns, self.ticks)
    }

    /// How much faster than `other` this is, in parts per million.
    #[must_use]
    pub fn ppm_above(&self, other: &Frequency) -> f64 {
        (self.hertz() / other.hertz() - 1.0) * 1e6
    }
}

/// The origin of a stated frequency.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrequencyOrigin {
    /// The definition of the clock gives the frequency.
    Definition,
    /// CPUID leaf 15h: the crystal's frequency and the ratio of the TSC to it.
    Cpuid15,
    /// CPUID leaf 16h: the processor's base frequency, in whole MHz.
    Cpuid16,
    /// The hypervisor, CPUID leaf 4000_0010h, in whole kHz.
    Hypervisor,
    /// A register of the device (the HPET's period, `CNTFRQ_EL0`).
    Register,
    /// Measured against `CLOCK_MONOTONIC`.
    Measured,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_between_undoes_the_wrap_at_the_width() {
        let mut facts = SourceProperties {
            name: SourceName::Hpet,
            rating: 250,
            counts: CounterMeaning::Oscillator,
            frequency: None,
            resolution_ns: 100.0,
            width_bits: 32,
            hardware_bits: 32,
            settable: false,
        };
        assert_eq!(facts.ticks_between(0xffff_fff0, 0x10), 0x20);
        assert_eq!(facts.ticks_between(0x10, 0xffff_fff0), -0x20);
        facts.width_bits = 64;
        assert_eq!(facts.ticks_between(u64::MAX, 1), 2);
        assert_eq!(facts.ticks_between(0x10, 0xffff_fff0), 0xffff_ffe0);
    }

    #[test]
    fn a_ratio_is_exact() {
        // The HPET of most PCs: 69,841,279 fs a tick.
        let hpet =
            Frequency { ticks: 1_000_000, ns: 69_841_279, origin: FrequencyOrigin::Register };
        assert!((hpet.hertz() - 14_318_179.9).abs() < 0.1, "{}", hpet.hertz());
        let rate = hpet.rate().unwrap();
        assert!((rate.ns_floor(1_000_000) - 69_841_279).abs() <= 1);
        let nominal = Frequency::from_hertz(14_318_180, FrequencyOrigin::Definition);
        assert!(hpet.ppm_above(&nominal).abs() < 0.1);
        assert_eq!(Frequency::from_hertz(0, FrequencyOrigin::Register).rate(), None);
    }
}
