//! The x86 time-stamp counter.

use super::{Probe, Unavailable};

#[cfg(target_arch = "x86_64")]
pub use native::{TscRead, TscSource};

/// The TSC, if this thread can read it. Whether it can be trusted is another question
/// ([`crate::choice`]).
///
/// # Errors
/// `NotSupported` or `DisabledForThread`.
pub(super) fn probe() -> Probe {
    #[cfg(target_arch = "x86_64")]
    return TscSource::probe().map(|source| Box::new(source) as _);
    #[cfg(not(target_arch = "x86_64"))]
    Err(Unavailable::NotSupported { what: "only x86 processors have a TSC" })
}

#[cfg(target_arch = "x86_64")]
mod native {
    use hourglass_sys::counter::{self, TscMode};

    use super::super::cpuid::Cpuid;
    use super::Unavailable;
    use crate::source::{ClockSource, CounterMeaning, Frequency, SourceName, SourceProperties};

    /// An instruction sequence that reads the TSC. Costs at 2.3 GHz.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum TscRead {
        /// `rdtsc`: unordered. 10 ns.
        Rdtsc,
        /// `rdtscp`: after earlier instructions; later ones may begin. 17 ns.
        Rdtscp,
        /// `lfence; rdtsc`: orders as `rdtscp` on processors without it. 18 ns.
        LfenceRdtsc,
        /// `rdtscp; lfence`: after earlier and before later instructions. 22 ns.
        RdtscpLfence,
        /// `lfence; rdtsc; lfence`: orders as `rdtscp; lfence` on processors without `rdtscp`. 23 ns.
        LfenceRdtscLfence,
    }

    impl TscRead {
        /// Every sequence.
        pub const ALL: [TscRead; 5] = [
            TscRead::Rdtsc,
            TscRead::Rdtscp,
            TscRead::LfenceRdtsc,
            TscRead::RdtscpLfence,
            TscRead::LfenceRdtscLfence,
        ];

        /// Whether the sequence contains `rdtscp`, which old processors lack.
        #[must_use]
        pub fn needs_rdtscp(self) -> bool {
            matches!(self, TscRead::Rdtscp | TscRead::RdtscpLfence)
        }

        /// Reads the TSC.
        #[inline(always)]
        #[must_use]
        pub fn read(self) -> u64 {
            match self {
                TscRead::Rdtsc => counter::tsc(),
                TscRead::Rdtscp => counter::tsc_after_earlier(),
                TscRead::LfenceRdtsc => {
                    counter::fence_instructions();
                    counter::tsc()
                }
                TscRead::RdtscpLfence => {
                    let ticks = counter::tsc_after_earlier();
                    counter::fence_instructions();
                    ticks
                }
                TscRead::LfenceRdtscLfence => {
                    counter::fence_instructions();
                    let ticks = counter::tsc();
                    counter::fence_instructions();
                    ticks
                }
            }
        }
    }

    /// The TSC, with a sequence for each kind of read.
    #[derive(Clone, Copy, Debug)]
    pub struct TscSource {
        unordered: TscRead,
        ordered: TscRead,
        frequency: Option<Frequency>,
    }

    impl TscSource {
        /// The TSC read by `rdtsc`, and ordered by `rdtscp` or else `lfence; rdtsc`.
        ///
        /// # Errors
        /// `NotSupported` without a TSC, `DisabledForThread` after `prctl(PR_SET_TSC)`: a read
        /// would end the process, or give what a signal handler makes up.
        pub fn probe() -> Result<TscSource, Unavailable> {
            if !counter::has_tsc() {
                return Err(Unavailable::NotSupported { what: "the processor has no TSC" });
            }
            if counter::tsc_mode() == Some(TscMode::Fault) {
                return Err(Unavailable::DisabledForThread);
            }
            Ok(TscSource::without_checks())
        }

        /// The same without asking whether this thread may read it: for a TSC that a signal
        /// handler emulates.
        #[must_use]
        pub fn without_checks() -> TscSource {
            let rdtscp = counter::has_rdtscp();
            TscSource {
                unordered: TscRead::Rdtsc,
                ordered: if rdtscp { TscRead::Rdtscp } else { TscRead::LfenceRdtsc },
                frequency: Cpuid::of_this_processor().and_then(|cpuid| cpuid.tsc_frequency()),
            }
        }

        /// The same TSC with one sequence for both kinds of read, for comparing sequences.
        ///
        /// # Errors
        /// `NotSupported` if the processor lacks the instruction.
        pub fn reading_by(self, read: TscRead) -> Result<TscSource, Unavailable> {
            if read.needs_rdtscp() && !counter::has_rdtscp() {
                return Err(Unavailable::NotSupported { what: "the processor has no rdtscp" });
            }
            Ok(TscSource { unordered: read, ordered: read, ..self })
        }
    }

    impl ClockSource for TscSource {
        fn facts(&self) -> SourceProperties {
            // The kernel's rating of a TSC.
            const RATING: u16 = 300;
            SourceProperties {
                name: SourceName::Tsc,
                rating: RATING,
                counts: CounterMeaning::Oscillator,
                frequency: self.frequency,
                resolution_ns: self.frequency.map_or(1.0, |f| 1e9 / f.hertz()),
                width_bits: u64::BITS,
                hardware_bits: u64::BITS,
                settable: false,
            }
        }

        #[inline]
        fn read(&self) -> u64 {
            self.unordered.read()
        }

        #[inline]
        fn read_ordered(&self) -> u64 {
            self.ordered.read()
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;

        #[test]
        fn every_sequence_reads_one_counter() {
            let Ok(source) = TscSource::probe() else { return };
            let mut last = source.read_ordered();
            for read in TscRead::ALL {
                let Ok(by) = source.reading_by(read) else { continue };
                let now = by.read_ordered();
                // A second at 10 GHz; an unordered read may be a little early.
                let passed = now.wrapping_sub(last).cast_signed();
                assert!((-1_000..10_000_000_000).contains(&passed), "{read:?}: {passed}");
                last = now;
            }
        }

        /// prctl(PR_SET_TSC): the reason is typed, and nothing is read.
        #[test]
        fn a_thread_that_may_not_read_it_gets_an_error() {
            let found = std::thread::spawn(|| {
                counter::set_tsc_mode(TscMode::Fault).ok()?;
                Some(TscSource::probe().err())
            });
            if let Ok(Some(found)) = found.join() {
                assert_eq!(found, Some(Unavailable::DisabledForThread));
            }
        }
    }
}
