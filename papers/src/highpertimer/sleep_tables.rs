//! The tables of chapter 5 that are made of one sweep over all lengths and ways.

use hourglass_documents::paper::{Cell, MeasurementKind, PaperFigure, PaperRow};
use hourglass_timer::sleep::HzProbe;

use super::super::bench::MeasurementHost;
use super::super::costs::PinnedThread;
use super::super::printed::{Line, MeasuredTable, Table, Value, Values};
use super::super::rows::row;
use super::sleep_figures::{counted_time, miss_by_length, miss_over_cpu, one_after_the_other};
use super::sleeps::SleepMethod;
use super::sleeps::hz::counted_here;
use super::sleeps::local_sleeper::{LocalSleeper, conditions};
use super::sleeps::stats::{Values as Misses, deviation_of, mean_of, median_of};
use super::sleeps::sweep::{LENGTHS, Sweep, Tally};

pub(super) struct SweepTable<'a> {
    pub(super) sweep: &'a Sweep,
    pub(super) probe: HzProbe,
    pub(super) conditions: String,
    pub(super) how: MeasurementKind,
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let (sweep, probe) = (super::sleeps::all(bench)?, super::sleeps::probe(bench));
    let (conditions, how) = (conditions(bench), MeasurementKind::Measured);
    let slept = SweepTable { sweep, probe, conditions, how };
    let figure = match table.id.as_str() {
        "5.2" => {
            let _pinned = PinnedThread::to_last_cpu();
            Some(PaperFigure::Curves(counted_time(counted_here)))
        }
        "5.5" => Some(figure_5_6(table, bench)?),
        _ => slept.figure(table),
    };
    Some(slept.assembled(table, figure))
}

fn figure_5_6(table: &Table, bench: &MeasurementHost) -> Option<PaperFigure> {
    let count = bench.at_most(2_000, 1_000);
    let thesis = super::sleeps::probe(bench).policy();
    let mut here = LocalSleeper::new(&super::sleep_figures::SHOWN, thesis);
    one_after_the_other(table, &mut here, count, bench.stopped)
}

/// The lengths of Tables 5.5, 5.8 and 5.9 begin here: "from 0.25 seconds to 1 microsecond".
const FIRST_OF_5_8: usize = 2;

/// Rounds of these lengths that fit the thesis' times: its 50,000 s are 100,000 times 0.5 s.
const ROUNDS: f64 = 100_000.0;

impl SweepTable<'_> {
    pub(super) fn assembled(&self, table: &Table, figure: Option<PaperFigure>) -> MeasuredTable {
        let rows = match table.id.as_str() {
            "5.5" => table.lines.iter().flat_map(|line| self.mean_rows(line)).collect(),
            "5.8" => self.sums(table, &SUMMED_5_8),
            "5.9" => self.sums(table, &[SleepMethod::Thesis, SleepMethod::Learned]),
            _ => self.grid(table),
        };
        table.with_rows(rows, self.values()).with_figure(figure)
    }

    pub(super) fn figure(&self, table: &Table) -> Option<PaperFigure> {
        let curves = match table.id.as_str() {
            "5.4" => miss_by_length(self.sweep),
            "5.8" => miss_over_cpu(self.sweep, "table-5.8", super::sleeps::DRAWN[0])?,
            "5.9" => miss_over_cpu(self.sweep, "table-5.9", super::sleeps::DRAWN[1])?,
            _ => return None,
        };
        Some(PaperFigure::Curves(curves))
    }

    fn values(&self) -> Values {
        let count = |at: usize| self.sweep.of(SleepMethod::Learned, at).count();
        let at = |length: &str| LENGTHS.iter().position(|own| own.name == length).unwrap_or(0);
        let cpu = |way| self.sweep.of(way, at("7.812 ms")).cpu_percent().map(Value::Percent);
        let exit = |length| {
            let tally = self.sweep.of(SleepMethod::Learned, at(length));
            tally.part(|parts| parts.exit).median().map(Value::Time)
        };
        tick_values(self.probe)
            .with("longest", count(0))
            .with("shortest", count(LENGTHS.len() - 1))
            .with("rounds", self.sweep.rounds)
            .with("conditions", self.conditions.as_str())
            .with("preempted", self.sweep.preemptions())
            .with_some("the thesis' CPU at 7.812 ms", cpu(SleepMethod::Thesis))
            .with_some("our CPU at 7.812 ms", cpu(SleepMethod::Learned))
            .with_some("our way out after 62.5 ms", exit("62.5 ms"))
            .with_some("our way out after 122 us", exit("122 us"))
    }

    /// A line for each length; the table's lines are its columns, called by subject and statistic.
    fn grid(&self, table: &Table) -> Vec<PaperRow> {
        let mut rows = Vec::new();
        for (at, length) in LENGTHS.into_iter().enumerate() {
            for column in &table.lines {
                let (subject, statistic) = column.name.split_once(": ").unwrap_or_default();
                let tally = self.sweep.of(way(subject), at);
                let found = statistic_of(tally, subject, statistic);
                let found = found.map(|value| (value, tally.count())).ok_or_else(|| lacking(tally));
                let name = format!("{}, {}", length.name, column.name);
                let (line, subject) = (length.name.into(), subject.into());
                let cell = Some(Cell { line, subject, statistic: statistic.into() });
                let row = row(name, &column.unit, column.printed(at), self.how, found);
                rows.push(PaperRow { cell, ..row });
            }
        }
        rows
    }

    /// Means over the long and over the short lengths, each of which counts alike (Table 5.5).
    fn mean_rows(&self, line: &Line) -> Vec<PaperRow> {
        const CLASSES: [(&str, bool, &[&str]); 2] = [
            (">= 1/HZ", true, &["mean", "median"]),
            ("< 1/HZ", false, &["mean", "dev.", "median"]),
        ];
        let Some(way) = SleepMethod::COMPARED.into_iter().find(|way| way.name() == line.name)
        else {
            return Vec::new();
        };
        let (mut rows, mut column) = (Vec::new(), 0);
        for (class, long, statistics) in CLASSES {
            let misses: Vec<Misses> =
                self.class(long).iter().map(|at| self.sweep.of(way, *at).misses()).collect();
            let misses: Vec<&Misses> = misses.iter().collect();
            let count = misses.iter().map(|misses| misses.count()).sum();
            for statistic in statistics {
                let ns = match *statistic {
                    "mean" => mean_of(&misses, Misses::mean),
                    "dev." => deviation_of(&misses),
                    _ => median_of(&misses),
                };
                let paper = line.printed(column).filter(|_| *statistic != "median");
                column += usize::from(*statistic != "median");
                let why =
                    "a sleep of 0.25 s or less could not be measured; run it under SCHED_OTHER";
                let found = ns.map(|ns| (ns, count)).ok_or_else(|| why.to_owned());
                let name = format!("{}, {class}: {statistic}", line.name);
                let (line, subject) = (line.name.clone(), class.into());
                let cell = Some(Cell { line, subject, statistic: (*statistic).into() });
                rows.push(PaperRow { cell, ..row(name, "us", paper, self.how, found) });
            }
        }
        rows
    }

    /// What the thesis' rounds of all lengths come to; a column of paper numbers for each of the first ways.
    fn sums(&self, table: &Table, ways: &[SleepMethod]) -> Vec<PaperRow> {
        let mut rows = Vec::new();
        for (column, way) in ways.iter().enumerate() {
            let all: Vec<usize> = (FIRST_OF_5_8..LENGTHS.len()).collect();
            let [all, long, short] = [all, self.class(true), self.class(false)]
                .map(|lengths| self.totals(*way, &lengths));
            for line in &table.lines {
                let of = match line.name.as_str() {
                    name if name.ends_with(">= 1/HZ") => long,
                    name if name.ends_with("< 1/HZ") => short,
                    _ => all,
                };
                let number = of.and_then(|totals| totals.number(&line.name));
                let why = "a sleep that it needs could not be measured; run it under SCHED_OTHER";
                let found = number.zip(all.map(|all| all.sleeps)).ok_or_else(|| why.to_owned());
                let name = format!("{}: {}", way.name(), line.name);
                rows.push(row(name, &line.unit, line.printed(column), self.how, found));
            }
        }
        rows
    }

    fn class(&self, long: bool) -> Vec<usize> {
        let own = |at: &usize| (LENGTHS[*at].ns >= tick_ns(self.probe)) == long;
        (FIRST_OF_5_8..LENGTHS.len()).filter(own).collect()
    }

    fn totals(&self, way: SleepMethod, lengths: &[usize]) -> Option<Totals> {
        let of = |at: &usize| {
            let tally = self.sweep.of(way, *at);
            let (usage, sleeps) = (tally.usage(), tally.count());
            let all = |ns: u64| ns as f64 / sleeps as f64 * ROUNDS;
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
}

const SUMMED_5_8: [SleepMethod; 4] =
    [SleepMethod::System, SleepMethod::Busy, SleepMethod::KernelOnly, SleepMethod::Learned];

/// 1/HZ as the thesis' sleep takes it, ns.
fn tick_ns(probe: HzProbe) -> u64 {
    probe.policy().tick_ns().unwrap_or(1_000_000)
}

pub(super) fn tick_values(probe: HzProbe) -> Values {
    let ms = tick_ns(probe) as f64 / 1e6;
    Values::default()
        .with("tick", format!("{ms:.1} ms"))
        .with("whole tick", format!("{ms:.0} ms"))
        .with("probe", probe.to_string())
}

fn way(subject: &str) -> SleepMethod {
    match subject {
        "system" => SleepMethod::System,
        "kernel only" => SleepMethod::KernelOnly,
        "busy-wait" => SleepMethod::Busy,
        "learned" => SleepMethod::Learned,
        _ => SleepMethod::Thesis,
    }
}

fn statistic_of(tally: &Tally, subject: &str, statistic: &str) -> Option<f64> {
    match (subject, statistic) {
        (_, "CPU") => return tally.cpu_percent(),
        (_, "p99") => return tally.misses().percentile(99),
        ("run 1", _) => tally.half(false),
        ("run 2", _) => tally.half(true),
        ("T3 - T2", _) => tally.part(|parts| parts.inside),
        ("T2 - T1", _) => tally.part(|parts| parts.entry),
        ("T4 - T3", _) => tally.part(|parts| parts.exit),
        _ => tally.misses(),
    }
    .median()
}

fn lacking(tally: &Tally) -> String {
    let nothing = || "it was not slept often enough; measure without --quick".to_owned();
    tally.missing.clone().unwrap_or_else(nothing)
}

/// What [`ROUNDS`] of some lengths take, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Totals {
    real: f64,
    cpu: f64,
    split: Option<(f64, f64)>,
    sleeps: u64,
}

impl Totals {
    fn number(self, line: &str) -> Option<f64> {
        match line {
            "user CPU" => Some(self.split?.0),
            "system CPU" => Some(self.split?.1),
            line if line.starts_with("real time") => Some(self.real),
            line if line.starts_with("CPU use") => {
                (self.real > 0.0).then(|| self.cpu * 100.0 / self.real)
            }
            _ => Some(self.cpu),
        }
    }

    fn and(self, more: Totals) -> Totals {
        let split = self.split.zip(more.split);
        Totals {
            real: self.real + more.real,
            cpu: self.cpu + more.cpu,
            split: split.map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
            sleeps: self.sleeps + more.sleeps,
        }
    }
}
