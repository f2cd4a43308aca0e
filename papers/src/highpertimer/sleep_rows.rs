//! What the tables of chapter 5 have in common: their rows and the words about how they were measured.

use hourglass_documents::paper::{Cell, MeasurementKind, PaperFigure, PaperRow};
use hourglass_timer::sleep::HzProbe;

use super::super::bench::MeasurementHost;
use super::sleeps::SleepMethod;
use super::sleeps::local_sleeper::conditions;
use super::sleeps::sweep::{LENGTHS, Length, Sweep, Tally};
use crate::miss_over_cpu::{self, Sleeps};

/// Misses of one length over CPU time: ours from kernel-only to precise, the others beside it.
pub(super) fn figure(slept: &SweepTable, id: &str, length_ns: u64) -> Option<PaperFigure> {
    let at = LENGTHS.iter().position(|length| length.ns == length_ns)?;
    let sleeps = |way: SleepMethod| {
        let tally = slept.sweep.of(way, at);
        let misses = tally.misses();
        Some(Sleeps {
            name: way.name().to_owned(),
            cpu_percent: tally.cpu_percent()?,
            p50_ns: misses.median()?,
            p99_ns: misses.percentile(99)?,
        })
    };
    let ours =
        [SleepMethod::KernelOnly, SleepMethod::Frugal, SleepMethod::Learned, SleepMethod::Precise]
            .into_iter();
    let peers = [SleepMethod::System, SleepMethod::Busy, SleepMethod::Thesis].into_iter();
    let (ours, peers): (Vec<_>, Vec<_>) =
        (ours.filter_map(sleeps).collect(), peers.filter_map(sleeps).collect());
    let title = format!("Miss over CPU time, sleeps of {}", LENGTHS[at].name);
    Some(PaperFigure::Curves(miss_over_cpu::figure(id, &title, &ours, &peers)))
}

/// What a table is made of: the sweep and what it is to be read with.
pub(super) struct SweepTable<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) probe: HzProbe,
    /// Under which rules, in words.
    pub(super) conditions: String,
    pub(super) how: MeasurementKind,
}

impl<'a> SweepTable<'a> {
    /// This machine's; `None` if a signal asked to stop.
    pub(super) fn for_this_machine(bench: &'a MeasurementHost) -> Option<SweepTable<'a>> {
        let sweep = super::sleeps::all(bench)?;
        let probe = super::sleeps::probe(bench);
        Some(SweepTable {
            sweep,
            probe,
            conditions: conditions(bench),
            how: MeasurementKind::Measured,
        })
    }

    /// How all lengths were measured.
    pub(super) fn method(&self) -> String {
        let of = |at: usize| self.sweep.of(SleepMethod::Learned, at).count();
        format!(
            "every length by every way in turn, {} times 1 s up to {} times 1 us, in {} rounds; \
             {}; a thread for each way; the miss is a reading after the sleep less one before it \
             and the length; CPU by the thread's CPU clock; {}; the kernel took the CPU {} times \
             from sleepers, which makes misses of a tick",
            of(0),
            of(LENGTHS.len() - 1),
            self.sweep.rounds,
            self.conditions,
            self.thesis_tick(),
            self.sweep.preemptions()
        )
    }

    /// What the thesis' sleep takes for 1/HZ.
    pub(super) fn thesis_tick(&self) -> String {
        let tick_ns = self.tick_ns();
        format!("the thesis' sleep spins 1/HZ = {:.1} ms ({})", tick_ns as f64 / 1e6, self.probe)
    }

    /// 1/HZ as the thesis' sleep takes it, ns.
    pub(super) fn tick_ns(&self) -> u64 {
        self.probe.policy().tick_ns().unwrap_or(1_000_000)
    }

    /// Numbers of the lengths from 0.25 s on that are at least 1/HZ, or those that are shorter.
    pub(super) fn class(&self, long: bool) -> Vec<usize> {
        let own = |at: &usize| (LENGTHS[*at].ns >= self.tick_ns()) == long;
        (FIRST_OF_5_8..LENGTHS.len()).filter(own).collect()
    }
}

/// Lengths that Tables 5.5, 5.8 and 5.9 are about begin here: "from 0.25 seconds to 1 microsecond".
const FIRST_OF_5_8: usize = 2;

/// Rounds of these lengths that fit the thesis' times: its 50,000 s are 100,000 times 0.5 s.
pub(super) const ROUNDS: f64 = 100_000.0;

/// What [`ROUNDS`] of some lengths take, s.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Totals {
    pub(super) real: f64,
    pub(super) cpu: f64,
    /// In user and in system mode, where that is reported.
    pub(super) split: Option<(f64, f64)>,
    /// Sleeps behind it.
    pub(super) sleeps: u64,
}

impl Totals {
    /// CPU time, per cent of the time.
    pub(super) fn percent(self) -> Option<f64> {
        (self.real > 0.0).then(|| self.cpu * 100.0 / self.real)
    }

    /// Both together.
    pub(super) fn and(self, more: Totals) -> Totals {
        let split = self.split.zip(more.split);
        Totals {
            real: self.real + more.real,
            cpu: self.cpu + more.cpu,
            split: split.map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
            sleeps: self.sleeps + more.sleeps,
        }
    }
}

impl SweepTable<'_> {
    /// What these lengths come to by this way; `None` if one of them was not slept.
    pub(super) fn totals(&self, way: SleepMethod, lengths: &[usize]) -> Option<Totals> {
        let of = |at: &usize| {
            let tally = self.sweep.of(way, *at);
            let (usage, sleeps) = (tally.usage(), tally.count());
            let all = |ns: u64| ns as f64 / sleeps as f64 * ROUNDS / 1e9;
            (sleeps > 0).then(|| Totals {
                real: all(usage.wall_ns),
                cpu: all(usage.cpu_ns),
                split: usage.split.map(|(user, system)| (all(user), all(system))),
                sleeps,
            })
        };
        let each: Option<Vec<Totals>> = lengths.iter().map(of).collect();
        each?.into_iter().reduce(Totals::and)
    }

    /// The lengths of Tables 5.8 and 5.9.
    pub(super) fn lengths_of_5_8(&self) -> Vec<usize> {
        (FIRST_OF_5_8..LENGTHS.len()).collect()
    }
}

/// What a number is, and where it comes from.
pub(super) struct Quantity<'a> {
    pub(super) subject: &'a str,
    pub(super) statistic: &'a str,
    pub(super) unit: &'a str,
    /// ns, or whatever is measured, in a unit.
    pub(super) size: f64,
}

/// The row of a grid of lengths.
pub(super) fn grid_row(
    length: Length,
    quantity: &Quantity,
    how: MeasurementKind,
    paper: Option<f64>,
    (value, tally): (Option<f64>, &Tally),
) -> PaperRow {
    let Quantity { subject, statistic, unit, size } = quantity;
    let measured = value.map(|value| value / size);
    PaperRow {
        name: format!("{}, {subject}: {statistic}", length.name),
        paper,
        measured,
        unit: (*unit).into(),
        how,
        count: measured.map(|_| tally.count()),
        missing: missing(measured, tally),
        cell: Some(Cell {
            line: length.name.into(),
            subject: (*subject).into(),
            statistic: (*statistic).into(),
        }),
    }
}

fn missing(measured: Option<f64>, tally: &Tally) -> Option<String> {
    let nothing = || "it was not slept often enough; measure without --quick".to_owned();
    measured.is_none().then(|| tally.missing.clone().unwrap_or_else(nothing))
}

/// The row of a list.
pub(super) fn row(
    name: String,
    (paper, measured): (Option<f64>, Option<f64>),
    unit: &str,
    how: MeasurementKind,
    count: u64,
) -> PaperRow {
    let nothing = "a sleep that it needs could not be measured; run it under SCHED_OTHER";
    PaperRow {
        name,
        paper,
        measured,
        unit: unit.into(),
        how,
        count: measured.map(|_| count),
        missing: measured.is_none().then(|| nothing.into()),
        cell: None,
    }
}

/// A number for a sentence, or words for a missing one.
pub(super) fn said(ns: Option<f64>) -> String {
    ns.map_or("nothing measured".into(), super::sentences::time)
}

/// Per cent for a sentence.
pub(super) fn percent(value: Option<f64>) -> String {
    match value {
        Some(value) if value < 10.0 => format!("{value:.2} %"),
        Some(value) => format!("{value:.0} %"),
        None => "nothing measured".into(),
    }
}

/// That the thesis' policy is not one to use.
pub(super) const UNRELIABLE: &str = "The thesis' policy is kept for comparison and is unreliable: since timers are not bound to ticks, \
     1/HZ is not what a kernel sleep is late by, so that it spins too long on most machines, and its \
     probe finds no HZ on kernels that count CPU time precisely.";

/// What the thesis does not say of its single numbers.
pub(super) const SINGLE: &str = "The thesis does not say of how many sleeps each of its numbers is, nor whether it is a mean; \
     here they are medians.";
