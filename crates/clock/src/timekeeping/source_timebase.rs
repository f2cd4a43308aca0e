//! Timebases over the sources of [`crate::source`]: the simulated clock, and any other counter.

use std::path::Path;
use std::sync::Arc;

use super::inline_string::InlineString;
use super::native::Native;
use super::reference_rate::{ReferenceLine, ReferenceRate};
use super::settings::FrequencyHint;
use super::timebase::{Discipline, Leap, ReferenceClock, SourceId, Timebase};
use crate::source::{ClockSource, SimSource, SourceName};

impl SourceId {
    /// The number of a source in pages; `None` for the clocks of the operating system that are
    /// not [`SourceId::OS`].
    #[must_use]
    pub fn from_name(name: SourceName) -> Option<SourceId> {
        /// The first number of a PTP clock.
        const FIRST_PTP: u16 = 256;
        match name {
            SourceName::Tsc => Some(SourceId::TSC),
            SourceName::Cntvct => Some(SourceId::CNTVCT),
            SourceName::Hpet => Some(SourceId::HPET),
            SourceName::Sim => Some(SourceId::SIMULATED),
            SourceName::Ptp(number) => {
                u16::try_from(number).ok()?.checked_add(FIRST_PTP).map(SourceId)
            }
            SourceName::MONOTONIC => Some(SourceId::OS),
            SourceName::Os(_) => None,
        }
    }
}

/// This machine with one more counter: an HPET, say. The processor's own counter stays available.
#[derive(Debug)]
pub struct ExtendedTimebase {
    counter: Box<dyn ClockSource>,
    id: SourceId,
}

impl ExtendedTimebase {
    /// Adds a counter. `None` for one that wraps before 64 bits, may be set, or is a clock of the
    /// operating system: those are no counters to draw a line over.
    #[must_use]
    pub fn new(counter: Box<dyn ClockSource>) -> Option<ExtendedTimebase> {
        let facts = counter.facts();
        let id = SourceId::from_name(facts.name).filter(|id| *id != SourceId::OS)?;
        let fit = facts.width_bits == u64::BITS && !facts.settable;
        fit.then_some(ExtendedTimebase { counter, id })
    }

    /// Its number, for [`super::Start::With`] and [`super::Clock::set_source`].
    #[must_use]
    pub fn id(&self) -> SourceId {
        self.id
    }
}

impl Timebase for ExtendedTimebase {
    #[inline]
    fn ticks(&self, source: SourceId) -> u64 {
        if source == self.id { self.counter.read() } else { Native.ticks(source) }
    }

    #[inline]
    fn ticks_ordered(&self, source: SourceId) -> u64 {
        if source == self.id { self.counter.read_ordered() } else { Native.ticks_ordered(source) }
    }

    fn ticks_enclosing(&self, source: SourceId) -> u64 {
        if source != self.id {
            return Native.ticks_enclosing(source);
        }
        let ticks = self.counter.read_ordered();
        // The fence of an enclosing read of the processor's counter holds the rest back.
        let _ = Native.ticks_enclosing(SourceId::OS);
        ticks
    }

    fn reference_ns(&self, scale: ReferenceClock) -> u64 {
        Native.reference_ns(scale)
    }

    fn supports(&self, source: SourceId) -> bool {
        source == self.id || Native.supports(source)
    }

    fn choose(&self, root: &Path) -> SourceId {
        Native.choose(root)
    }

    fn examine(&self, source: SourceId, root: &Path) -> Option<InlineString<48>> {
        Native.examine(source, root)
    }

    fn discipline(&self) -> Option<Discipline> {
        Native.discipline()
    }

    #[inline(always)]
    fn generation(&self) -> u32 {
        Native.generation()
    }

    fn steering(&self, source: SourceId) -> ReferenceRate {
        Native.steering(source)
    }

    fn generation_address(&self) -> u64 {
        Native.generation_address()
    }

    fn stated(&self, source: SourceId) -> Option<FrequencyHint> {
        if source != self.id {
            return Native.stated(source);
        }
        FrequencyHint::from_frequency(self.counter.facts().frequency?)
    }
}

/// Simulated time: the simulated counter against true time, or against what a simulated kernel makes
/// of it ([`SimConfig::kernel`](crate::source::sim::SimConfig::kernel)). `CLOCK_BOOTTIME` is ahead by
/// [`SimSource::suspended`]. Time passes by [`SimSource::advance`] and by what reads are set to cost.
impl Timebase for SimSource {
    fn ticks(&self, source: SourceId) -> u64 {
        match source {
            SourceId::SIMULATED => self.read(),
            _ => self.monotonic().nanos_or_zero(),
        }
    }

    fn ticks_ordered(&self, source: SourceId) -> u64 {
        self.ticks(source)
    }

    fn ticks_enclosing(&self, source: SourceId) -> u64 {
        self.ticks(source)
    }

    fn reference_ns(&self, scale: ReferenceClock) -> u64 {
        let kernel = self.kernel_now();
        let realtime_ns = kernel.as_ref().map_or(0, |k| k.realtime_ns);
        let ahead_ns = match scale {
            ReferenceClock::Monotonic | ReferenceClock::Raw => 0,
            ReferenceClock::Boottime => self.suspended().nanos(),
            ReferenceClock::Realtime => realtime_ns,
            ReferenceClock::Tai => kernel.map_or(0, |k| realtime_ns + k.tai_s * 1_000_000_000),
        };
        let read =
            if scale == ReferenceClock::Raw { self.monotonic_raw() } else { self.monotonic() };
        read.nanos_or_zero().saturating_add_signed(ahead_ns)
    }

    fn supports(&self, source: SourceId) -> bool {
        let whole = self.config().width_bits == u64::BITS;
        source == SourceId::OS || (source == SourceId::SIMULATED && whole)
    }

    fn choose(&self, _root: &Path) -> SourceId {
        let whole = self.supports(SourceId::SIMULATED);
        if whole { SourceId::SIMULATED } else { SourceId::OS }
    }

    fn discipline(&self) -> Option<Discipline> {
        let kernel = self.kernel_now();
        let (correction, slewing) = kernel.as_ref().map_or((0, false), |k| k.corrections());
        let max_error_us = kernel.as_ref().and_then(|k| k.max_error_us);
        Some(Discipline {
            synchronised: max_error_us.is_some(),
            max_error_ns: max_error_us.unwrap_or(0).saturating_mul(1_000),
            correction,
            slewing,
            leap: kernel.map_or(Leap::None, |k| k.leap()),
        })
    }

    fn generation(&self) -> u32 {
        self.kernel_now().map_or(0, |kernel| kernel.generation)
    }

    /// True time is never slewed.
    fn steering(&self, source: SourceId) -> ReferenceRate {
        let Some(kernel) = self.kernel_now() else { return ReferenceRate::Generation(0) };
        if source != SourceId::SIMULATED || self.config().kernel.as_ref().is_none_or(|k| !k.shown) {
            return ReferenceRate::Untold;
        }
        let (base_ns, fraction) = kernel.base();
        ReferenceRate::Line(ReferenceLine {
            generation: kernel.generation,
            base_ticks: kernel.base_ticks,
            base_ns,
            fraction,
            mult: kernel.mult(),
            shift: kernel.shift(),
        })
    }
}

/// Passes every method on.
macro_rules! pass_on {
    () => {
        #[inline(always)]
        fn ticks(&self, source: SourceId) -> u64 {
            (**self).ticks(source)
        }

        #[inline(always)]
        fn ticks_ordered(&self, source: SourceId) -> u64 {
            (**self).ticks_ordered(source)
        }

        fn ticks_enclosing(&self, source: SourceId) -> u64 {
            (**self).ticks_enclosing(source)
        }

        fn reference_ns(&self, scale: ReferenceClock) -> u64 {
            (**self).reference_ns(scale)
        }

        fn supports(&self, source: SourceId) -> bool {
            (**self).supports(source)
        }

        fn choose(&self, root: &Path) -> SourceId {
            (**self).choose(root)
        }

        fn discipline(&self) -> Option<Discipline> {
            (**self).discipline()
        }

        #[inline(always)]
        fn generation(&self) -> u32 {
            (**self).generation()
        }

        fn steering(&self, source: SourceId) -> ReferenceRate {
            (**self).steering(source)
        }

        fn generation_address(&self) -> u64 {
            (**self).generation_address()
        }

        fn stated(&self, source: SourceId) -> Option<FrequencyHint> {
            (**self).stated(source)
        }

        fn examine(&self, source: SourceId, root: &Path) -> Option<InlineString<48>> {
            (**self).examine(source, root)
        }
    };
}

impl<B: Timebase + ?Sized> Timebase for &B {
    pass_on!();
}

/// This includes `Arc<dyn Timebase>`: one type of clock over real and simulated time.
impl<B: Timebase + ?Sized> Timebase for Arc<B> {
    pass_on!();
}

#[cfg(test)]
mod tests {
    use hourglass_time::Span;

    use super::super::{Clock, ClockSettings, EventKind, Status};
    use super::*;
    use crate::source::sim::{Fault, FaultKind, SimConfig};

    /// Simulated time passes only by calls: the test takes a first bracket now, the second one later.
    #[test]
    fn the_public_simulated_clock_runs_a_clock() {
        let sim = Arc::new(SimSource::default());
        let clock = Clock::on(
            Arc::clone(&sim),
            ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT },
        );
        assert_eq!(clock.now(), 0);
        for _ in 0..4_000 {
            sim.advance(Span::from_millis(1));
            let truth = sim.true_time().nanos_or_zero();
            let bounds = clock.now_bounded();
            assert!(bounds.earliest <= truth && truth <= bounds.latest, "{bounds:?} at {truth}");
        }
        assert_eq!(clock.now_bounded().status, Status::Steady);
        assert_eq!((clock.source(), clock.count(EventKind::Adopted)), (SourceId::SIMULATED, 1));
    }

    #[test]
    fn its_faults_are_found() {
        let config = SimConfig {
            hertz: 24_000_000,
            read_cost: Span::from_nanos(15),
            faults: vec![Fault {
                at: Span::from_secs(5),
                kind: FaultKind::Step(Span::from_millis(-3)),
            }],
            ..SimConfig::default()
        };
        let sim: Arc<SimSource> = Arc::new(SimSource::new(config));
        let base: Arc<dyn Timebase> = sim.clone();
        let clock =
            Clock::on(base, ClockSettings { look_every_ns: u64::MAX, ..ClockSettings::DEFAULT });
        for _ in 0..700 {
            sim.advance(Span::from_millis(10));
            clock.maintain();
        }
        assert_eq!(clock.now_bounded().status, Status::FailedOver, "{:?}", clock.events());
        assert_eq!(clock.count(EventKind::Residual) + clock.count(EventKind::NegativeStep), 1);
    }

    #[test]
    fn a_counter_that_wraps_early_is_not_taken() {
        let narrow = || SimSource::new(SimConfig { width_bits: 32, ..SimConfig::default() });
        assert!(ExtendedTimebase::new(Box::new(narrow())).is_none());
        assert_eq!(narrow().choose(Path::new("/")), SourceId::OS);
        let os = crate::source::probe(SourceName::MONOTONIC).unwrap();
        assert!(ExtendedTimebase::new(os).is_none());
    }

    #[test]
    fn another_counter_serves_beside_the_machines_own() {
        let base = ExtendedTimebase::new(Box::new(SimSource::default())).unwrap();
        assert!(base.supports(base.id()) && base.supports(SourceId::OS));
        assert_eq!(base.ticks(base.id()), base.ticks_enclosing(base.id()));
        let clock = Clock::on(base, ClockSettings::DEFAULT);
        // The clock stands still, which is found at once.
        clock.set_source(SourceId::SIMULATED).unwrap();
        assert_eq!((clock.source(), clock.count(EventKind::Stuck)), (SourceId::OS, 1));
        assert_eq!(SourceId::from_name(SourceName::Ptp(3)), Some(SourceId(259)));
        assert_eq!(SourceId::from_name(SourceName::Ptp(70_000)), None);
    }
}
