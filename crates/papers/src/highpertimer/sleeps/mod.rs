//! Chapter 5 of the thesis: ways to sleep, what their sleeps miss and what they take of a CPU.
//!
//! Owns: the ways ([`Way`]), measuring blocks of sleeps ([`block`]), measuring all lengths of the
//! thesis by all ways in turn ([`sweep`]), its probe for HZ ([`hz`]).
//! Must not: say what it means (the tables do). All but [`here`] also runs on a simulated machine.

pub(super) mod block;
pub(super) mod here;
pub(super) mod hz;
pub(super) mod stats;
pub(super) mod sweep;
#[cfg(test)]
pub(super) mod tests;

use std::cell::OnceCell;

use hourglass_clock::process;
use hourglass_timer::sleep::HzProbe;

use super::super::bench::Bench;
use super::super::costs::Pinned;
use here::Here;
use sweep::{Plan, Sweep, sweep};

/// A way to sleep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Way {
    /// The system's, relative, with the timer slack that the thread has.
    System,
    /// Ours without spinning: an absolute kernel wait without slack.
    KernelOnly,
    /// Spinning all the time.
    Busy,
    /// The thesis'.
    Thesis,
    /// The same behind a function call that is not expanded inline.
    ThesisCalled,
    /// Ours.
    Learned,
    /// Ours with little CPU time.
    Frugal,
    /// Ours whatever it takes.
    Precise,
}

impl Way {
    /// Those that are compared, in the order of the thesis.
    pub(super) const COMPARED: [Way; 5] =
        [Way::System, Way::KernelOnly, Way::Busy, Way::Thesis, Way::Learned];

    /// The same and what only the figures of misses over CPU time have ([`DRAWN`]).
    pub(super) const MEASURED: [Way; 7] = [
        Way::System,
        Way::KernelOnly,
        Way::Busy,
        Way::Thesis,
        Way::Learned,
        Way::Frugal,
        Way::Precise,
    ];

    /// Whether it is slept for the figures of misses over CPU time alone.
    pub(super) const fn is_drawn_only(self) -> bool {
        matches!(self, Way::Frugal | Way::Precise)
    }

    /// As tables write it.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Way::System => "system sleep",
            Way::KernelOnly => "kernel only",
            Way::Busy => "busy-waiting",
            Way::Thesis => "thesis' sleep",
            Way::ThesisCalled => "thesis' sleep, called",
            Way::Learned => "learned",
            Way::Frugal => "frugal",
            Way::Precise => "precise",
        }
    }
}

/// Lengths of which misses are drawn over CPU time, ns.
pub(super) const DRAWN: [u64; 2] = [976_000, 7_812_000];

/// What several tables are made of, measured once.
#[derive(Debug, Default)]
pub(in super::super) struct Kept {
    probe: OnceCell<HzProbe>,
    sweep: OnceCell<Option<Sweep>>,
}

/// What the thesis' probe says of this machine's HZ.
pub(super) fn probe(bench: &Bench) -> HzProbe {
    *bench.sleeps.probe.get_or_init(|| {
        let _pinned = Pinned::to_last_cpu();
        HzProbe::run(process::clock())
    })
}

/// All lengths by all ways on this machine; `None` if a signal asked to stop.
pub(super) fn all(bench: &Bench) -> Option<&Sweep> {
    let measured = bench.sleeps.sweep.get_or_init(|| {
        let mut here = Here::new(&Way::MEASURED, probe(bench).policy());
        sweep(&mut here, &Plan::of(bench.effort), bench.stopped)
    });
    measured.as_ref()
}
