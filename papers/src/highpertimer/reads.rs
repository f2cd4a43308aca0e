//! A table of the thesis that compares what reads of some sources cost.

use std::time::Duration;

use hourglass_clock::source::cpuid::Cpuid;
use hourglass_clock::source::{Probe, ReadOrder, SourceName, Unavailable, probe};
use hourglass_documents::paper::{MachineFacts, MeasurementKind, PaperFigure, PaperRow, Series};
use hourglass_sys::clock::ClockId;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::costs::{Limits, MeasuredSource, ReadCosts, TURN, compare, measuring_cpu};
use super::super::drawing::measurements;
use super::super::printed::{Line, MeasuredTable, Table, Value, Values, size};
use super::super::rows::row;
use super::selection_rule;

/// Reads of each source: what the thesis made for Table 2.1, and a tenth of it.
const FULL_READS: u64 = 100_000_000;
const QUICK_READS: u64 = 10_000_000;

/// Clock sources of the kernel that the C library reads without entering the kernel.
const READ_IN_USER_SPACE: [&str; 4] =
    ["tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter"];

/// By this part of the median a mean may lie above it before that is worth a word.
const MUCH: f64 = 0.1;

const DIFFERENCE: &str = "difference of the means";

fn open(source: &str, cpuid: Option<&Cpuid>) -> Probe {
    match source {
        "RDTSCP" | "TSC" if cpuid.is_some_and(|cpuid| !cpuid.rdtscp) => {
            Err(Unavailable::NotSupported { what: "the processor has no rdtscp" })
        }
        "RDTSC" | "RDTSCP" | "TSC" => probe(SourceName::Tsc),
        "HPET" => probe(SourceName::Hpet),
        "CLOCK_REALTIME" => probe(SourceName::Os(ClockId::Realtime)),
        // The thesis' OS timer, since section 2.3.2.
        _ => probe(SourceName::Os(ClockId::Monotonic)),
    }
}

/// All but `rdtsc` wait for earlier instructions.
fn order(source: &str) -> ReadOrder {
    if source == "RDTSC" { ReadOrder::Unordered } else { ReadOrder::Ordered }
}

pub(super) type ReadResult = Result<(ReadCosts, u32), String>;

pub(super) struct LocalReads<'a> {
    pub(super) table: &'a Table,
    pub(super) machine: &'a MachineFacts,
    pub(super) cpuid: Option<&'a Cpuid>,
    pub(super) found: Vec<ReadResult>,
    pub(super) preempted: u64,
}

pub(super) fn sources(table: &Table) -> impl Iterator<Item = &Line> {
    table.lines.iter().filter(|line| line.name != DIFFERENCE)
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let cpuid = bench.cpuid.as_ref();
    let opened: Vec<(&Line, Probe)> =
        sources(table).map(|line| (line, open(&line.name, cpuid))).collect();
    let compared: Vec<MeasuredSource> = opened
        .iter()
        .filter_map(|(line, source)| {
            let source = source.as_deref().ok()?;
            Some(MeasuredSource { source, order: order(&line.name) })
        })
        .collect();
    let comparison = compare(&compared, limits(bench.effort), bench.stopped)?;
    let mut costs = comparison.costs.into_iter();
    let found = opened
        .iter()
        .filter_map(|(_, source)| match source {
            Ok(source) => Some(Ok((costs.next()?, source.facts().hardware_bits))),
            Err(why) => Some(Err(format!("{why}; {}", why.remedy()))),
        })
        .collect();
    let (machine, preempted) = (&bench.machine, comparison.preempted);
    let here = LocalReads { table, machine, cpuid, found, preempted };
    Some(here.assembled(measuring_cpu(), MeasurementKind::Measured))
}

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
    fn lines(&self) -> impl Iterator<Item = (&Line, &ReadResult)> {
        sources(self.table).zip(&self.found)
    }

    pub(super) fn source(&self, name: &str) -> Option<&(ReadCosts, u32)> {
        self.lines().find(|(line, _)| line.name == name)?.1.as_ref().ok()
    }

    fn costs(&self) -> impl Iterator<Item = (&Line, &ReadCosts)> {
        self.lines().filter_map(|(line, found)| Some((line, &found.as_ref().ok()?.0)))
    }

    pub(super) fn assembled(&self, cpu: Option<u32>, how: MeasurementKind) -> MeasuredTable {
        let rows = self.lines().flat_map(|(line, found)| source_rows(line, found, how));
        let rows = rows.chain(self.difference_row(how)).collect();
        let values = self.deviations(self.kernel_clock(self.method(cpu)));
        let measured = self.table.with_rows(rows, values).with_figure(self.figure());
        measured.with_decisions(selection_rule::decisions(self))
    }

    fn difference_row(&self, how: MeasurementKind) -> Option<PaperRow> {
        let line = self.table.lines.iter().find(|line| line.name == DIFFERENCE)?;
        let costs: Vec<_> = self.costs().map(|(_, costs)| costs).collect();
        let found = match (&costs[..], self.lines().find(|(_, found)| found.is_err())) {
            ([first, second], None) => {
                Ok((second.mean_ns - first.mean_ns, first.reads.min(second.reads)))
            }
            (_, lacking) => {
                let name = lacking.map_or("one", |(line, _)| line.name.as_str());
                Err(format!("{name} could not be measured"))
            }
        };
        Some(row(DIFFERENCE, &line.unit, line.printed(0), how, found))
    }

    fn method(&self, cpu: Option<u32>) -> Values {
        let first = self.costs().next();
        let backwards = self.costs().map(|(_, costs)| costs.backwards).sum::<u64>();
        Values::default()
            .with_some("reads of each", first.map(|(_, costs)| in_words(costs.reads)))
            .with_some("loop ns", first.map(|(_, costs)| format!("{:.1}", costs.loop_ns)))
            .with("on", cpu.map_or(String::new(), |cpu| format!(" on CPU {cpu}")))
            .with("turn", TURN)
            .with_some("backwards", (backwards > 0).then_some(backwards))
            .with("preempted", self.preempted)
    }

    fn kernel_clock(&self, values: Values) -> Values {
        let source = self.machine.clock_source.as_deref();
        let in_user_space = source.is_some_and(|name| READ_IN_USER_SPACE.contains(&name));
        values
            .with_some("clock source", source)
            .with_if("in user space", in_user_space)
            .with_if("by HPET", source == Some("hpet"))
    }

    fn deviations(&self, values: Values) -> Values {
        let widest = self.costs().max_by(|a, b| a.1.deviation_ns.total_cmp(&b.1.deviation_ns));
        let Some((line, costs)) = widest else { return values };
        let raised = costs.mean_ns - costs.median_ns;
        values
            .with("widest", line.name.as_str())
            .with("deviation", Value::Time(costs.deviation_ns))
            .with("calm deviation", Value::Time(costs.calm_deviation_ns))
            .with_if("disturbed", costs.deviation_ns > 2.0 * costs.calm_deviation_ns)
            .with_some("raised", (raised > MUCH * costs.median_ns).then_some(Value::Time(raised)))
            .with("dearest", Value::Time(costs.greatest_ns))
    }

    fn figure(&self) -> PaperFigure {
        let series = self.lines().map(|(line, found)| {
            let costs = found.as_ref().ok().map(|(costs, _)| costs);
            Series {
                name: line.name.clone(),
                paper_mean_ns: printed_ns(line, 0),
                mean_ns: costs.map(|costs| costs.mean_ns),
                points: costs.map_or(Vec::new(), |costs| costs.points.clone()),
            }
        });
        let count = self.costs().map(|(_, costs)| costs.reads).max().unwrap_or(0);
        let thinning = self.costs().map(|(_, costs)| costs.thinning).max().unwrap_or(1);
        let names = (self.table.id.as_str(), self.table.title.as_str());
        measurements(names, ("cost", "read", count), thinning, series.collect())
    }
}

/// The thesis' number in that column, ns.
pub(super) fn printed_ns(line: &Line, column: usize) -> Option<f64> {
    Some(line.printed(column)? * size(&line.unit)?)
}

fn source_rows(line: &Line, found: &ReadResult, how: MeasurementKind) -> Vec<PaperRow> {
    let row = |statistic: &str, paper, of: fn(&ReadCosts) -> f64| {
        let found = found.as_ref().map(|(costs, _)| (of(costs), costs.reads));
        let name = format!("{}, {statistic}", line.name);
        row(name, &line.unit, paper, how, found.map_err(Clone::clone))
    };
    let mut rows = vec![
        row("mean", line.printed(0), |costs| costs.mean_ns),
        row("standard deviation", line.printed(1), |costs| costs.deviation_ns),
    ];
    if found.is_ok() {
        rows.extend([
            row("deviation up to p99", None, |costs| costs.calm_deviation_ns),
            row("median", None, |costs| costs.median_ns),
            row("p99", None, |costs| costs.p99_ns),
        ]);
    }
    rows
}
