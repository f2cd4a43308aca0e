//! A table of section 8.1: how late a periodic thread is woken, by several kernels there, by this
//! kernel and by the library's own engine here.

use std::path::Path;

use hourglass_host::facts::HostReader;
use hourglass_model::paper::{Figure, MeasurementKind, PaperRow, PaperTable, Series};
use hourglass_time::Span;
use hourglass_timer::event::Resolution;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::costs::measuring_cpu;
use super::super::printed::MeasuredTable;
use super::super::rows::{beside, found, lacking, with_figure};
use super::super::sentences::{sentence, time, times};
use super::super::wakeups::{
    Device, EngineWaker, LatencySamples, PosixSignal, Session, Sleep, Summary, ThreadClass,
    WakeUpPlan, Waker, WakerFactory, measure,
};
use super::MACHINE;

/// The tick of the paper's vanilla kernel: its greatest lateness is one, and section 4.1 says
/// "1024ms when the HZ value was set to 250" of the 256 ticks of the first array.
const TICK: Span = Span::from_millis(4);

/// Time between two wake-ups that is longer than a tick: only then does a tick-bound row make sense
/// ("The tests for intervals less than the jiffy resolution have not been run").
const TICK_US: u32 = 4_000;

/// A table as the paper prints it, and how to measure it.
pub(super) struct AccuracyTable {
    pub(super) id: &'static str,
    pub(super) title: &'static str,
    pub(super) method: AccuracyTest,
    pub(super) interval_us: u32,
    /// Wake-ups of each kernel.
    pub(super) loops: u64,
    pub(super) loaded: bool,
    pub(super) printed: Kernels,
}

/// The paper's two test cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccuracyTest {
    /// `clock_nanosleep(TIMER_ABSTIME)`.
    Sleep,
    PosixTimer,
}

pub(super) struct Kernels {
    /// "2.6.16", bound to its tick; not measured below it.
    pub(super) vanilla: Option<PaperLatency>,
    /// "2.6.16-hrt5", with high resolution.
    pub(super) hrt5: PaperLatency,
    /// "2.6.16-rt12", with high resolution and the real-time patch.
    pub(super) rt12: PaperLatency,
}

/// Latencies in microseconds; `None` where the paper cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PaperLatency {
    pub(super) min: Option<u32>,
    pub(super) max: Option<u32>,
    pub(super) avg: Option<u32>,
}

const NOT_PRINTED: PaperLatency = PaperLatency { min: None, max: None, avg: None };

/// A row of the table: who is woken here, and the paper's numbers beside it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccuracyRow {
    /// The paper's tick-bound kernel; here the library's engine, bound to ticks as long.
    Ticks,
    /// The paper's high-resolution kernel; here this one.
    HighResolution,
    /// The paper's real-time kernel; here this one, if it is a PREEMPT_RT one.
    RealTime,
    /// The library's engine in high resolution.
    Engine,
}

impl AccuracyRow {
    fn name(self) -> &'static str {
        match self {
            AccuracyRow::Ticks => "2.6.16; here engine, ticks",
            AccuracyRow::HighResolution => "2.6.16-hrt5; here kernel",
            AccuracyRow::RealTime => "2.6.16-rt12; here kernel",
            AccuracyRow::Engine => "engine, high resolution",
        }
    }

    /// Short, for the labels of a figure.
    fn drawn(self) -> &'static str {
        match self {
            AccuracyRow::Ticks => "2.6.16 / ticks",
            AccuracyRow::HighResolution => "hrt5 / kernel",
            AccuracyRow::RealTime => "rt12 / RT kernel",
            AccuracyRow::Engine => "engine",
        }
    }

    fn how(self) -> MeasurementKind {
        if self == AccuracyRow::Ticks {
            MeasurementKind::Emulated
        } else {
            MeasurementKind::Measured
        }
    }
}

/// How much is measured, and on what kernel.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccuracySize {
    pub(super) loops: u64,
    pub(super) turn: u64,
    /// Whether this is a PREEMPT_RT kernel.
    pub(super) real_time_kernel: bool,
}

/// A part of the paper's loops that a quick measurement makes, so that all tables of the section
/// take some 20 s.
const QUICK_PART: u64 = 125;
const QUICK_PART_SHORT: u64 = 50;

/// Time of one turn, us: some ticks of the kernel, and many turns.
const TURN_US: u64 = 100_000;

impl AccuracyTable {
    /// Measures the table on this machine.
    pub(super) fn measure(&self, bench: &MeasurementHost) -> Option<MeasuredTable> {
        let part = match bench.effort {
            MeasurementSize::Full => 1,
            MeasurementSize::Quick if self.interval_us > TICK_US => QUICK_PART,
            MeasurementSize::Quick => QUICK_PART_SHORT,
        };
        let host = HostReader::new(Path::new("/")).read();
        let amount = AccuracySize {
            loops: self.loops / part,
            turn: TURN_US / u64::from(self.interval_us),
            real_time_kernel: host.preemption.as_deref().is_some_and(|of| of.contains("RT")),
        };
        self.measure_so_much(amount, bench.stopped)
    }

    /// The same with an amount that is given.
    pub(super) fn measure_so_much(
        &self,
        amount: AccuracySize,
        stopped: fn() -> bool,
    ) -> Option<MeasuredTable> {
        let subjects = self.subjects();
        let measured = |subject: &&AccuracyRow| !self.is_missing(**subject, amount);
        let ways = subjects.iter().filter(measured).map(|subject| self.open(*subject)).collect();
        let plan = WakeUpPlan {
            interval_ns: u64::from(self.interval_us) * 1_000,
            loops: amount.loops,
            turn: amount.turn,
            phases_ns: TICK.nanos_or_zero(),
            loaded: self.loaded,
        };
        let mut session = measure(plan, ways, stopped)?;
        let mut found = std::mem::take(&mut session.found).into_iter();
        let found: Vec<(AccuracyRow, Result<LatencySamples, String>)> = subjects
            .into_iter()
            .filter_map(|subject| match self.is_missing(subject, amount) {
                true => Some((subject, Err(missing(amount.real_time_kernel)))),
                false => Some((subject, found.next()?)),
            })
            .collect();
        Some(LocalAccuracy { table: self, plan, session: &session, found: &found }.assembled())
    }

    fn subjects(&self) -> Vec<AccuracyRow> {
        let ticks = self.printed.vanilla.is_some().then_some(AccuracyRow::Ticks);
        let others = [AccuracyRow::HighResolution, AccuracyRow::RealTime, AccuracyRow::Engine];
        ticks.into_iter().chain(others).collect()
    }

    /// Whether this machine has another kernel than the row is about.
    fn is_missing(&self, subject: AccuracyRow, amount: AccuracySize) -> bool {
        match subject {
            AccuracyRow::HighResolution => amount.real_time_kernel,
            AccuracyRow::RealTime => !amount.real_time_kernel,
            AccuracyRow::Ticks | AccuracyRow::Engine => false,
        }
    }

    fn open(&self, subject: AccuracyRow) -> WakerFactory {
        let method = self.method;
        let engine = match subject {
            AccuracyRow::Ticks => Some(Resolution::TickBound),
            AccuracyRow::Engine => Some(Resolution::High),
            AccuracyRow::HighResolution | AccuracyRow::RealTime => None,
        };
        Box::new(move || -> Result<Box<dyn Waker>, String> {
            Ok(match (engine, method) {
                (None, AccuracyTest::Sleep) => Box::new(Sleep),
                (None, AccuracyTest::PosixTimer) => Box::new(PosixSignal::new().map_err(no_timer)?),
                (Some(resolution), AccuracyTest::Sleep) => {
                    Box::new(EngineWaker::new(Device::Sleep, resolution, TICK)?)
                }
                (Some(resolution), AccuracyTest::PosixTimer) => {
                    Box::new(EngineWaker::new(Device::PosixTimer, resolution, TICK)?)
                }
            })
        })
    }

    fn printed(&self, subject: AccuracyRow) -> PaperLatency {
        match subject {
            AccuracyRow::Ticks => self.printed.vanilla.unwrap_or(NOT_PRINTED),
            AccuracyRow::HighResolution => self.printed.hrt5,
            AccuracyRow::RealTime => self.printed.rt12,
            AccuracyRow::Engine => NOT_PRINTED,
        }
    }
}

fn no_timer(error: std::io::Error) -> String {
    format!("no POSIX timer: {error}; ulimit -i tells how many signals may be queued")
}

fn missing(real_time_kernel: bool) -> String {
    match real_time_kernel {
        true => "this is a PREEMPT_RT kernel, whose numbers stand beside those of rt12".into(),
        false => {
            "this is not a PREEMPT_RT kernel; it needs one built with CONFIG_PREEMPT_RT".into()
        }
    }
}

/// What was found about a table.
struct LocalAccuracy<'a> {
    table: &'a AccuracyTable,
    plan: WakeUpPlan,
    session: &'a Session,
    found: &'a [(AccuracyRow, Result<LatencySamples, String>)],
}

impl LocalAccuracy<'_> {
    fn assembled(&self) -> MeasuredTable {
        let table = self.table;
        let rows = self.found.iter().flat_map(|(subject, found)| self.rows(*subject, found));
        let paper_table = PaperTable {
            id: table.id.into(),
            title: table.title.into(),
            paper_machine: format!("{MACHINE}; {} loops of each kernel", table.loops),
            method: self.method(),
            rows: rows.collect(),
            decisions: Vec::new(),
            difference: self.difference(),
            notes: self.notes(),
            figure: None,
        };
        with_figure(paper_table, self.figure())
    }

    fn rows(&self, subject: AccuracyRow, late: &Result<LatencySamples, String>) -> Vec<PaperRow> {
        let summary = late.as_ref().ok().and_then(LatencySamples::summary);
        let printed = self.table.printed(subject);
        let row = |statistic: &str, paper: Option<u32>, of: fn(&Summary) -> f64| {
            let name = format!("{}, {statistic}", subject.name());
            let row = match (&summary, late) {
                (Some(all), _) => found(name, of(all) / 1e3, "us", subject.how(), all.count),
                (None, Ok(_)) => lacking(name, "us", subject.how(), "there was no wake-up"),
                (None, Err(why)) => lacking(name, "us", subject.how(), why),
            };
            beside(paper.map(f64::from), row)
        };
        let mut rows = vec![
            row("min", printed.min, |of| of.min_ns),
            row("max", printed.max, |of| of.max_ns),
            row("avg", printed.avg, |of| of.mean_ns),
        ];
        if summary.is_some() {
            rows.push(row("median", None, |of| of.median_ns));
            rows.push(row("p99", None, |of| of.p99_ns));
        }
        rows
    }

    fn method(&self) -> String {
        let WakeUpPlan { loops, turn, .. } = self.plan;
        let cpu = measuring_cpu().map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
        let load = match self.session.hogs {
            0 => "no load of our own".into(),
            1 => "one CPU kept busy by a thread of SCHED_OTHER".into(),
            hogs => format!("{hogs} CPUs kept busy by a thread of SCHED_OTHER each"),
        };
        let cut = match loops < self.table.loops {
            true => format!(" instead of the paper's {}", self.table.loops),
            false => String::new(),
        };
        let device = match self.table.method {
            AccuracyTest::Sleep => "its thread's own sleep",
            AccuracyTest::PosixTimer => "a POSIX timer",
        };
        let ticks = match self.table.printed.vanilla.is_some() {
            true => ", bound to ticks of 4 ms (HZ 250) or in high resolution",
            false => " in high resolution",
        };
        format!(
            "{loops} loops of each{cut}{cpu}, in turns of {turn}, under {}; {load}; a wake-up's \
             latency is counted from its absolute time on a grid, as cyclictest does; the engine is \
             the library's own in user space, woken by {device}{ticks}",
            self.session.class.words()
        )
    }

    fn summary(&self, subject: AccuracyRow) -> Option<Summary> {
        let found = self.found.iter().find(|(of, _)| *of == subject)?;
        found.1.as_ref().ok()?.summary()
    }

    fn difference(&self) -> String {
        let kernel = self
            .summary(AccuracyRow::HighResolution)
            .map(|summary| (summary, AccuracyRow::HighResolution))
            .or_else(|| Some((self.summary(AccuracyRow::RealTime)?, AccuracyRow::RealTime)));
        let mut clauses = Vec::new();
        if let Some((kernel, beside)) = kernel {
            let printed = self.table.printed(beside).avg.map_or(String::new(), |avg| {
                let there = f64::from(avg) * 1e3;
                format!(", {} the paper's {} us", times(kernel.mean_ns, there), avg)
            });
            clauses.push(format!(
                "this kernel wakes the thread {} late on average{printed}, with a median of {}",
                time(kernel.mean_ns),
                time(kernel.median_ns)
            ));
            if let Some(engine) = self.summary(AccuracyRow::Engine) {
                clauses.push(format!(
                    "the engine in user space takes {} the kernel's median",
                    times(engine.median_ns, kernel.median_ns)
                ));
            }
        }
        if let Some(ticks) = self.summary(AccuracyRow::Ticks) {
            clauses.push(format!(
                "bound to ticks of 4 ms it is {} late on average, where half a tick is to be \
                 expected",
                time(ticks.mean_ns)
            ));
        }
        match clauses.is_empty() {
            true => "Nothing could be measured here.".into(),
            false => sentence(&clauses.join("; ")),
        }
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let ThreadClass::Other { why } = &self.session.class {
            notes.push(format!("SCHED_FIFO with priority 80 was refused: {why}."));
        }
        if let PaperLatency { max: None, avg: None, .. } = self.table.printed.rt12 {
            notes.push(
                "Greatest and average latency of 2.6.16-rt12 cannot be read in the paper.".into(),
            );
        }
        if self.table.printed.vanilla.is_none() {
            notes.push(
                "As in the paper, there is no row of 2.6.16: with timers at ticks of 4 ms no thread can wake every 500 us."
                    .into(),
            );
        }
        let measured = || self.found.iter().filter_map(|(_, found)| found.as_ref().ok());
        match measured().map(|late| late.lost).sum::<u64>() {
            0 => {}
            lost => notes.push(format!(
                "{lost} times passed while the thread was not woken for an earlier one; they have \
                 no latency of their own."
            )),
        }
        match measured().map(|late| late.early).sum::<u64>() {
            0 => {}
            early => {
                notes.push(format!("{early} wake-ups came before their time, and count as 0."))
            }
        }
        notes.push(
            "The greatest latencies are the machine's: in a virtual machine mostly times at which \
             its host ran something else."
                .into(),
        );
        notes
    }

    fn figure(&self) -> Figure {
        let table = self.table;
        let series = self.found.iter().map(|(subject, found)| {
            let printed = table.printed(*subject).avg;
            let summary = found.as_ref().ok().and_then(LatencySamples::summary);
            Series {
                name: subject.drawn().into(),
                paper_mean_ns: printed.map(|us| f64::from(us) * 1e3),
                mean_ns: summary.map(|summary| summary.mean_ns),
                points: found.as_ref().map_or(Vec::new(), |late| late.points().0),
            }
        });
        let stretch =
            |found: &Result<LatencySamples, String>| found.as_ref().map_or(1, |f| f.points().1);
        let any = self.found.iter().any(|(_, found)| found.is_ok());
        Figure {
            id: table.id.into(),
            title: table.title.into(),
            quantity: "latency".into(),
            counted: "wake-up".into(),
            count: if any { self.plan.loops } else { 0 },
            thinning: self.found.iter().map(|(_, found)| stretch(found)).max().unwrap_or(1),
            series: series.collect(),
        }
    }
}
