//! The aarch64 generic timer's virtual count.

use super::{Probe, Unavailable};

#[cfg(target_arch = "aarch64")]
pub use native::CntvctSource;

/// The count, on a processor that has it.
///
/// # Errors
/// `NotSupported` elsewhere; `BadRegisters` if the firmware states no frequency.
pub(super) fn probe() -> Probe {
    #[cfg(target_arch = "aarch64")]
    return CntvctSource::probe().map(|source| Box::new(source) as _);
    #[cfg(not(target_arch = "aarch64"))]
    Err(Unavailable::NotSupported { what: "only ARM processors have a generic timer" })
}

#[cfg(target_arch = "aarch64")]
mod native {
    use hourglass_sys::counter;

    use super::Unavailable;
    use crate::source::{
        ClockSource, CounterMeaning, Frequency, FrequencyOrigin, SourceName, SourceProperties,
    };

    /// `CNTVCT_EL0`, read after an `isb` when ordered.
    #[derive(Clone, Copy, Debug)]
    pub struct CntvctSource {
        frequency: Frequency,
    }

    impl CntvctSource {
        /// The count at the frequency of `CNTFRQ_EL0`.
        ///
        /// # Errors
        /// `BadRegisters` if the firmware left that register at zero.
        pub fn probe() -> Result<CntvctSource, Unavailable> {
            match counter::cntfrq() {
                0 => Err(Unavailable::BadRegisters { what: "CNTFRQ_EL0 is zero" }),
                hertz => Ok(CntvctSource {
                    frequency: Frequency::from_hertz(hertz, FrequencyOrigin::Register),
                }),
            }
        }
    }

    impl ClockSource for CntvctSource {
        fn facts(&self) -> SourceProperties {
            // The kernel's rating of arch_sys_counter.
            const RATING: u16 = 400;
            // The architecture promises at least 56 bits; Linux counts on that many.
            const WIDTH_BITS: u32 = 56;
            SourceProperties {
                name: SourceName::Cntvct,
                rating: RATING,
                counts: CounterMeaning::Oscillator,
                frequency: Some(self.frequency),
                resolution_ns: 1e9 / self.frequency.hertz(),
                width_bits: WIDTH_BITS,
                hardware_bits: WIDTH_BITS,
                settable: false,
            }
        }

        #[inline]
        fn read(&self) -> u64 {
            counter::cntvct()
        }

        #[inline]
        fn read_ordered(&self) -> u64 {
            counter::cntvct_after_earlier()
        }
    }
}
