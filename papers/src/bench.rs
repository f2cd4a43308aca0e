//! What every table needs to be measured: how much, on which machine, and when to stop.

use std::any::Any;
use std::cell::OnceCell;
use std::path::Path;
use std::time::Duration;

use hourglass_clock::source::cpuid::Cpuid;
use hourglass_clock::source::{SourceName, measure_frequency, probe};
use hourglass_documents::host::VirtualMachine;
use hourglass_documents::paper::MachineFacts;
use hourglass_machine::facts::HostReader;
use hourglass_time::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MeasurementSize {
    /// Seconds for a whole paper.
    Quick,
    /// The amount that the paper measured, where that is known: minutes, up to half an hour for
    /// `hrtimers`.
    Full,
}

impl MeasurementSize {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            MeasurementSize::Quick => "quick",
            MeasurementSize::Full => "full",
        }
    }

    /// Time for one table of costs, at most; it is used up only by sources that are slow to read.
    #[must_use]
    pub fn budget(self) -> Duration {
        match self {
            MeasurementSize::Quick => Duration::from_millis(1_200),
            MeasurementSize::Full => Duration::from_secs(20),
        }
    }
}

#[derive(Debug)]
pub(super) struct MeasurementHost {
    pub(super) effort: MeasurementSize,
    pub(super) machine: MachineFacts,
    /// What its processor says of itself; `None` on other than x86.
    pub(super) cpuid: Option<Cpuid>,
    pub(super) tick_hz: Option<u32>,
    /// Load average over the last minute, at the start, if the kernel tells.
    pub(super) load: Option<f64>,
    pub(super) shared: SharedMeasurements,
    pub(super) stopped: fn() -> bool,
}

/// What several tables of a paper are made of, measured once: a value of each type that is asked for.
#[derive(Debug, Default)]
pub(super) struct SharedMeasurements(OnceCell<Box<(Box<dyn Any>, SharedMeasurements)>>);

impl SharedMeasurements {
    pub(super) fn get<T: Default + 'static>(&self) -> &T {
        let (value, others) =
            &**self.0.get_or_init(|| Box::new((Box::new(T::default()), Self::default())));
        value.downcast_ref().unwrap_or_else(|| others.get())
    }
}

/// The rate of the counter is measured over this; good to a few parts per million.
const RATE_WINDOW: Span = Span::from_millis(20);

impl MeasurementHost {
    pub(super) fn at_most<T>(&self, full: T, quick: T) -> T {
        match self.effort {
            MeasurementSize::Quick => quick,
            MeasurementSize::Full => full,
        }
    }

    /// This machine. Takes about 30 ms.
    pub(super) fn for_this_machine(
        effort: MeasurementSize,
        stopped: fn() -> bool,
    ) -> MeasurementHost {
        let host = HostReader::new(Path::new("/")).read();
        let rate = |name| {
            let source = probe(name).ok()?;
            Some(measure_frequency(source.as_ref(), RATE_WINDOW)?.frequency.hertz())
        };
        let machine = MachineFacts {
            processor: host.cpu.model,
            counter_hz: rate(SourceName::Tsc).or_else(|| rate(SourceName::Cntvct)),
            kernel: host.kernel,
            clock_source: host.clock_source.current,
            virtual_machine: hypervisor(host.virtual_machine),
        };
        let cpuid = Cpuid::of_this_processor();
        let (tick_hz, shared) = (host.tick_hz, SharedMeasurements::default());
        let load = host.start.load_average.map(|[minute, ..]| minute);
        MeasurementHost { effort, machine, cpuid, tick_hz, load, shared, stopped }
    }
}

fn hypervisor(found: VirtualMachine) -> Option<String> {
    let present = found.present == Some(true) || found.kind.is_some();
    present.then(|| found.kind.unwrap_or_else(|| "unknown".into()))
}
