//! The High Precision Event Timer of a PC, mapped from `/dev/hpet` (thesis, section 2.2).

use std::path::Path;
use std::sync::atomic::{Ordering, fence};

use hourglass_sys::hpet::{Error, Mapping, Register};

use super::hpet_registers::{Capabilities, ExtendedCounter, Registers, counter64};
use super::{
    ClockSource, Counter32Policy, CounterMeaning, Frequency, FrequencyOrigin, Probe, SourceName,
    SourceProperties, Unavailable,
};
use hourglass_time::Span;

/// The device.
pub const DEVICE: &str = "/dev/hpet";

/// An HPET. A read takes 0.5 to 1 us, since it leaves the processor.
#[derive(Debug)]
pub struct HpetSource<R = Mapping> {
    registers: R,
    capabilities: Capabilities,
    extended: Option<ExtendedCounter>,
}

/// The HPET of this machine.
pub(super) fn probe(narrow: Counter32Policy) -> Probe {
    HpetSource::open(Path::new(DEVICE), narrow).map(|source| Box::new(source) as _)
}

impl HpetSource {
    /// Maps the registers. The device is in use, but no file open, until the value is dropped.
    ///
    /// # Errors
    /// Why it cannot be opened, mapped or used.
    pub fn open(device: &Path, narrow: Counter32Policy) -> Result<HpetSource, Unavailable> {
        let name = device.display().to_string();
        let registers = Mapping::open(device).map_err(|error| match error {
            Error::Open(error) => Unavailable::from_open(&name, &error),
            Error::Map(error) => Unavailable::from_map(&name, &error),
            _ => Unavailable::BadRegisters { what: "they are shorter than a page" },
        })?;
        HpetSource::from_registers(registers, narrow)
    }
}

impl<R: Registers> HpetSource<R> {
    /// An HPET with these registers.
    ///
    /// # Errors
    /// `BadRegisters`, `Stopped` or `Width32Refused`.
    pub fn from_registers(
        registers: R,
        narrow: Counter32Policy,
    ) -> Result<HpetSource<R>, Unavailable> {
        let capabilities = Capabilities::decode(&registers)?;
        if !capabilities.counter_is_64_bits && narrow == Counter32Policy::Refuse {
            let wraps_after_s = capabilities.wraps_after_ns() / 1_000_000_000;
            return Err(Unavailable::Width32Refused { wraps_after_s });
        }
        // A load takes longer than the longest period, so the second would do.
        const LOADS: u32 = 100;
        let first = registers.low(Register::Counter);
        if (0..LOADS).all(|_| registers.low(Register::Counter) == first) {
            return Err(Unavailable::Stopped);
        }
        let extended =
            (!capabilities.counter_is_64_bits).then(|| ExtendedCounter::starting_at(first));
        Ok(HpetSource { registers, capabilities, extended })
    }

    /// The capabilities that the device states.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// How often a counter of 32 bits must be read at least: half its wrap. `None` for one of 64
    /// bits, which takes care of itself.
    #[must_use]
    pub fn max_poll_interval(&self) -> Option<Span> {
        self.extended.as_ref()?;
        let half = self.capabilities.wraps_after_ns() / 2;
        Some(Span::saturating_from_nanos(half))
    }
}

impl<R: Registers> ClockSource for HpetSource<R> {
    fn facts(&self) -> SourceProperties {
        // The kernel's rating of an HPET.
        const RATING: u16 = 250;
        // A million ticks take as many nanoseconds as one takes femtoseconds.
        const TICKS: u64 = 1_000_000;
        let ns = u64::from(self.capabilities.period_fs);
        SourceProperties {
            name: SourceName::Hpet,
            rating: RATING,
            counts: CounterMeaning::Oscillator,
            frequency: Some(Frequency { ticks: TICKS, ns, origin: FrequencyOrigin::Register }),
            resolution_ns: ns as f64 / TICKS as f64,
            width_bits: u64::BITS,
            hardware_bits: if self.extended.is_some() { u32::BITS } else { u64::BITS },
            settable: false,
        }
    }

    #[inline]
    fn read(&self) -> u64 {
        match &self.extended {
            None => counter64(&self.registers),
            Some(extended) => extended.read(|| self.registers.low(Register::Counter)),
        }
    }

    #[inline]
    fn read_ordered(&self) -> u64 {
        // Device memory is read in program order; the fence waits for earlier stores as well.
        fence(Ordering::SeqCst);
        self.read()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    /// A counter that moves by one at every load.
    #[derive(Debug)]
    struct Running {
        wide: bool,
        counter: AtomicU64,
        step: u64,
    }

    impl Running {
        fn load(&self, register: Register) -> u64 {
            match register {
                Register::Capabilities => (100_000_000 << 32) | (u64::from(self.wide) << 13),
                Register::Configuration => 1,
                Register::Counter => self.counter.fetch_add(self.step, Ordering::Relaxed),
            }
        }
    }

    impl Registers for Running {
        fn low(&self, register: Register) -> u32 {
            self.load(register) as u32
        }
        fn high(&self, register: Register) -> u32 {
            (self.load(register) >> 32) as u32
        }
        #[cfg(target_pointer_width = "64")]
        fn whole(&self, register: Register) -> u64 {
            self.load(register)
        }
    }

    fn running(wide: bool, at: u64) -> Running {
        Running { wide, counter: AtomicU64::new(at), step: 1 }
    }

    /// Thesis 2.2.3: a counter of 32 bits is refused, with the reason MC32BIT.
    #[test]
    fn a_narrow_counter_is_refused_or_extended() {
        let refused =
            HpetSource::from_registers(running(false, 0), Counter32Policy::Refuse).unwrap_err();
        assert_eq!(refused, Unavailable::Width32Refused { wraps_after_s: 429 });
        let source =
            HpetSource::from_registers(running(false, 0xffff_ffff), Counter32Policy::Extend)
                .unwrap();
        let first = source.read();
        assert!(first > 0xffff_ffff, "{first:#x}");
        assert!(source.read_ordered() > first);
        assert_eq!(source.max_poll_interval().unwrap().nanos() / 1_000_000_000, 214);
    }

    #[test]
    fn a_wide_counter_keeps_its_upper_half() {
        let source =
            HpetSource::from_registers(running(true, 0x8000_0000), Counter32Policy::Refuse)
                .unwrap();
        assert_eq!(source.read() >> 31, 1);
        assert_eq!(source.max_poll_interval(), None);
        assert_eq!(source.facts().frequency.unwrap().hertz(), 10e6);
        assert_eq!(source.facts().resolution_ns, 100.0);
    }

    #[test]
    fn a_counter_that_stands_still_is_no_clock() {
        let still = Running { step: 0, ..running(true, 7) };
        let found = HpetSource::from_registers(still, Counter32Policy::Refuse);
        assert_eq!(found.unwrap_err(), Unavailable::Stopped);
    }

    #[test]
    fn a_missing_device_says_what_would_mend_it() {
        let path = Path::new("/nonexistent/hpet");
        let missing = HpetSource::open(path, Counter32Policy::Extend).unwrap_err();
        assert_eq!(missing, Unavailable::NotPresent { device: "/nonexistent/hpet".into() });
        assert!(missing.remedy().contains("CONFIG_HPET"));
    }
}
