//! Chapter 5 of the thesis: ways to sleep, what their sleeps miss and what they take of a CPU.
//!
//! Owns: the ways ([`SleepMethod`]), measuring blocks of sleeps ([`block`]), measuring all lengths of the
//! thesis by all ways in turn ([`sweep`]), its probe for HZ ([`hz`]).
//! Must not: say what it means (the tables do). All but [`local_sleeper`] also runs on a simulated machine.

pub(super) mod block;
pub(super) mod hz;
pub(super) mod local_sleeper;
pub(super) mod stats;
pub(super) mod sweep;
#[cfg(test)]
pub(super) mod tests;

use std::cell::OnceCell;

use hourglass_clock::process;
use hourglass_timer::sleep::HzProbe;

use super::super::bench::MeasurementHost;
use super::super::costs::PinnedThread;
use local_sleeper::LocalSleeper;
use sweep::{Sweep, SweepPlan, sweep};

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(crate) enum SleepMethod {
        /// The system's, relative, with the timer slack that the thread has.
        System => "system sleep",
        /// Ours without spinning: an absolute kernel wait without slack.
        KernelOnly => "kernel only",
        Busy => "busy-waiting",
        Thesis => "thesis' sleep",
        /// The same behind a function call that is not expanded inline.
        ThesisCalled => "thesis' sleep, called",
        Learned => "learned",
        Frugal => "frugal",
        Precise => "precise",
    }
}

impl SleepMethod {
    pub(super) const COMPARED: [SleepMethod; 5] = [
        SleepMethod::System,
        SleepMethod::KernelOnly,
        SleepMethod::Busy,
        SleepMethod::Thesis,
        SleepMethod::Learned,
    ];

    pub(super) const MEASURED: [SleepMethod; 7] = [
        SleepMethod::System,
        SleepMethod::KernelOnly,
        SleepMethod::Busy,
        SleepMethod::Thesis,
        SleepMethod::Learned,
        SleepMethod::Frugal,
        SleepMethod::Precise,
    ];

    pub(super) const fn is_drawn_only(self) -> bool {
        matches!(self, SleepMethod::Frugal | SleepMethod::Precise)
    }
}

/// Lengths of which misses are drawn over CPU time, ns.
pub(super) const DRAWN: [u64; 2] = [976_000, 7_812_000];

#[derive(Debug, Default)]
struct CachedSweeps {
    probe: OnceCell<HzProbe>,
    sweep: OnceCell<Option<Sweep>>,
}

pub(super) fn probe(bench: &MeasurementHost) -> HzProbe {
    *bench.shared.get::<CachedSweeps>().probe.get_or_init(|| {
        let _pinned = PinnedThread::to_last_cpu();
        HzProbe::run(process::clock())
    })
}

pub(super) fn all(bench: &MeasurementHost) -> Option<&Sweep> {
    let measured = bench.shared.get::<CachedSweeps>().sweep.get_or_init(|| {
        let mut here = LocalSleeper::new(&SleepMethod::MEASURED, probe(bench).policy());
        sweep(&mut here, &SweepPlan::of(bench.effort), bench.stopped)
    });
    measured.as_ref()
}
