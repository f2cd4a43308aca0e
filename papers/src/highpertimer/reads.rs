//! A table of the thesis that compares what reads of some sources cost.

use std::time::Duration;

use hourglass_clock::choice::machine::Cpuid;
use hourglass_clock::source::{Probe, ReadOrder, SourceName, Unavailable, probe};
use hourglass_documents::paper::{
    Decision, Figure, MachineFacts, MeasurementKind, PaperFigure, PaperRow, PaperTable, Series,
};
use hourglass_sys::clock::ClockId;

use super::super::MeasuredTable;
use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::costs::{Limits, MeasuredSource, ReadCosts, TURN, compare, measuring_cpu};

/// Reads of each source: what the thesis made for Table 2.1, and a tenth of it.
const FULL_READS: u64 = 100_000_000;
const QUICK_READS: u64 = 10_000_000;

/// A table as the thesis prints it, and how to measure it.
pub(super) struct ReadTable {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) machine: &'static str,
    /// Unit of the thesis' means and deviations.
    pub(super) unit: Unit,
    pub(super) subjects: &'static [ReadSource],
    /// The final column, where the table has one.
    pub(super) difference: Option<Difference>,
    /// What the thesis' rule decides by the table.
    pub(super) decisions: fn(&LocalReads) -> Vec<Decision>,
    /// What differs, and why.
    pub(super) explain: fn(&LocalReads) -> String,
    pub(super) notes: &'static [&'static str],
}

/// A row of the table: a source and the thesis' numbers.
pub(super) struct ReadSource {
    pub(super) name: &'static str,
    pub(super) read: ReadMethod,
    pub(super) mean: f64,
    pub(super) deviation: f64,
}

/// The final mean difference: of the second of two subjects above the first.
pub(super) struct Difference {
    pub(super) printed_ns: f64,
    pub(super) first: usize,
    pub(super) second: usize,
}

/// A unit of the thesis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Nanoseconds,
    Microseconds,
}

impl Unit {
    fn name(self) -> &'static str {
        match self {
            Unit::Nanoseconds => "ns",
            Unit::Microseconds => "us",
        }
    }

    /// Its length, ns.
    pub(super) fn ns(self) -> f64 {
        match self {
            Unit::Nanoseconds => 1.0,
            Unit::Microseconds => 1_000.0,
        }
    }
}

/// How a source is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ReadMethod {
    /// The TSC, unordered.
    Rdtsc,
    /// The TSC, after earlier instructions.
    Rdtscp,
    Hpet,
    /// `clock_gettime` of this clock.
    Clock(ClockId),
}

impl ReadMethod {
    fn open(self, cpuid: Option<&Cpuid>) -> Probe {
        match self {
            ReadMethod::Rdtsc => probe(SourceName::Tsc),
            ReadMethod::Rdtscp if cpuid.is_some_and(|cpuid| !cpuid.rdtscp) => {
                Err(Unavailable::NotSupported { what: "the processor has no rdtscp" })
            }
            ReadMethod::Rdtscp => probe(SourceName::Tsc),
            ReadMethod::Hpet => probe(SourceName::Hpet),
            ReadMethod::Clock(clock) => probe(SourceName::Os(clock)),
        }
    }

    fn order(self) -> ReadOrder {
        match self {
            ReadMethod::Rdtsc => ReadOrder::Unordered,
            _ => ReadOrder::Ordered,
        }
    }
}

/// What was found about one subject.
#[derive(Debug)]
pub(super) enum ReadResult {
    /// Its costs, and how many bits its counter has.
    Costs { costs: ReadCosts, bits: u32 },
    /// Why it cannot be read, and what would mend that.
    Missing(String),
}

impl ReadResult {
    pub(super) fn costs(&self) -> Option<&ReadCosts> {
        match self {
            ReadResult::Costs { costs, .. } => Some(costs),
            ReadResult::Missing(_) => None,
        }
    }
}

/// What was found about a table on a machine.
pub(super) struct LocalReads<'a> {
    pub(super) table: &'a ReadTable,
    pub(super) machine: &'a MachineFacts,
    pub(super) cpuid: Option<&'a Cpuid>,
    /// In the order of the table's subjects.
    pub(super) found: &'a [ReadResult],
    /// How often the kernel took the CPU away from the measuring thread.
    pub(super) preempted: u64,
}

impl LocalReads<'_> {
    /// The costs of the first subject that is read like this, if it could be read.
    pub(super) fn costs(&self, read: ReadMethod) -> Option<&ReadCosts> {
        let at = self.table.subjects.iter().position(|subject| subject.read == read)?;
        self.found.get(at)?.costs()
    }

    /// The thesis' mean of it, ns.
    pub(super) fn printed_mean_ns(&self, read: ReadMethod) -> Option<f64> {
        let subject = self.table.subjects.iter().find(|subject| subject.read == read)?;
        Some(subject.mean * self.table.unit.ns())
    }
}

impl ReadTable {
    /// Measures the table on this machine.
    pub(super) fn measure(&self, bench: &MeasurementHost) -> Option<MeasuredTable> {
        let opened: Vec<Probe> =
            self.subjects.iter().map(|subject| subject.read.open(bench.cpuid.as_ref())).collect();
        let pairs = self.subjects.iter().zip(&opened);
        let compared: Vec<MeasuredSource> = pairs
            .filter_map(|(subject, source)| {
                Some(MeasuredSource {
                    source: source.as_deref().ok()?,
                    order: subject.read.order(),
                })
            })
            .collect();
        let comparison = compare(&compared, limits(bench.effort), bench.stopped)?;
        let mut costs = comparison.costs.into_iter();
        let found: Vec<ReadResult> = opened
            .iter()
            .filter_map(|source| match source {
                Ok(source) => Some(ReadResult::Costs {
                    costs: costs.next()?,
                    bits: source.facts().hardware_bits,
                }),
                Err(why) => Some(ReadResult::Missing(format!("{why}; {}", why.remedy()))),
            })
            .collect();
        let cpuid = bench.cpuid.as_ref();
        let machine = &bench.machine;
        let here = LocalReads {
            table: self,
            machine,
            cpuid,
            found: &found,
            preempted: comparison.preempted,
        };
        Some(here.assembled(measuring_cpu(), MeasurementKind::Measured))
    }

    fn difference_row(
        &self,
        here: &LocalReads,
        difference: &Difference,
        how: MeasurementKind,
    ) -> PaperRow {
        let of = |at: usize| here.found.get(at).and_then(ReadResult::costs);
        let both = of(difference.first).zip(of(difference.second));
        let missing = || {
            let subjects = [difference.first, difference.second].map(|at| &self.subjects[at]);
            let lacking = subjects.iter().find(|subject| here.costs(subject.read).is_none());
            lacking.map(|subject| format!("{} could not be measured", subject.name))
        };
        PaperRow {
            name: "difference of the means".into(),
            paper: Some(difference.printed_ns),
            measured: both.map(|(first, second)| second.mean_ns - first.mean_ns),
            unit: Unit::Nanoseconds.name().into(),
            how,
            count: both.map(|(first, second)| first.reads.min(second.reads)),
            missing: if both.is_some() { None } else { missing() },
            cell: None,
        }
    }
}

/// A number that people can read.
fn in_words(number: u64) -> String {
    match number {
        number if number >= 1_000_000 && number % 100_000 == 0 => {
            format!("{} million", number as f64 / 1e6)
        }
        number => number.to_string(),
    }
}

fn limits(effort: MeasurementSize) -> Limits {
    let reads = match effort {
        MeasurementSize::Quick => QUICK_READS,
        MeasurementSize::Full => FULL_READS,
    };
    // Opening the sources and measuring their rates takes the rest.
    const REST: Duration = Duration::from_millis(200);
    Limits { reads, time: effort.budget().saturating_sub(REST) }
}

impl LocalReads<'_> {
    /// The table and its figure, from what was found.
    pub(super) fn assembled(&self, cpu: Option<u32>, how: MeasurementKind) -> MeasuredTable {
        let table = self.table;
        let mut rows: Vec<PaperRow> =
            table.subjects.iter().zip(self.found).flat_map(|(s, f)| self.rows(s, f, how)).collect();
        let difference = table.difference.as_ref();
        rows.extend(difference.map(|difference| table.difference_row(self, difference, how)));
        let table = PaperTable {
            id: table.id.into(),
            title: table.title.into(),
            paper_machine: table.machine.into(),
            method: self.method(cpu),
            rows,
            decisions: (table.decisions)(self),
            difference: (table.explain)(self).trim_end().into(),
            notes: table.notes.iter().map(|note| (*note).to_owned()).collect(),
            figure: None,
        };
        MeasuredTable { table, figure: Some(PaperFigure::Measurements(self.figure())) }
    }

    fn rows(
        &self,
        subject: &ReadSource,
        found: &ReadResult,
        how: MeasurementKind,
    ) -> Vec<PaperRow> {
        let unit = self.table.unit;
        let row = |statistic: &str, paper: Option<f64>, of: fn(&ReadCosts) -> f64| PaperRow {
            name: format!("{}, {statistic}", subject.name),
            paper,
            measured: found.costs().map(|costs| of(costs) / unit.ns()),
            unit: unit.name().into(),
            how,
            count: found.costs().map(|costs| costs.reads),
            missing: match found {
                ReadResult::Costs { .. } => None,
                ReadResult::Missing(why) => Some(why.clone()),
            },
            cell: None,
        };
        let mut rows = vec![
            row("mean", Some(subject.mean), |costs| costs.mean_ns),
            row("standard deviation", Some(subject.deviation), |costs| costs.deviation_ns),
        ];
        if found.costs().is_some() {
            rows.extend([
                row("deviation up to p99", None, |costs| costs.calm_deviation_ns),
                row("median", None, |costs| costs.median_ns),
                row("p99", None, |costs| costs.p99_ns),
            ]);
        }
        rows
    }

    fn method(&self, cpu: Option<u32>) -> String {
        let costs = || self.found.iter().filter_map(ReadResult::costs);
        let Some(first) = costs().next() else {
            return "nothing could be read".into();
        };
        let on = cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let set = match costs().map(|costs| costs.backwards).sum::<u64>() {
            0 => String::new(),
            reads => format!("; {reads} of them were before their predecessor and count as 0"),
        };
        format!(
            "{} reads of each source{on}, in turns of {TURN}, none left out{set}; a read costs \
             the time to the next one, of which {:.1} ns are the loop's; the kernel gave the CPU \
             to others {} times meanwhile",
            in_words(first.reads),
            first.loop_ns,
            self.preempted
        )
    }

    fn figure(&self) -> Figure {
        let table = self.table;
        let series = table.subjects.iter().zip(self.found).map(|(subject, found)| Series {
            name: subject.name.into(),
            paper_mean_ns: Some(subject.mean * table.unit.ns()),
            mean_ns: found.costs().map(|costs| costs.mean_ns),
            points: found.costs().map_or(Vec::new(), |costs| costs.points.clone()),
        });
        let costs = || self.found.iter().filter_map(ReadResult::costs);
        Figure {
            id: table.id.into(),
            title: table.title.into(),
            quantity: "cost".into(),
            counted: "read".into(),
            count: costs().map(|costs| costs.reads).max().unwrap_or(0),
            thinning: costs().map(|costs| costs.thinning).max().unwrap_or(1),
            series: series.collect(),
        }
    }
}
