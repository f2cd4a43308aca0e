//! A table of section 8.1: how late a periodic thread is woken, by several kernels there, by this
//! kernel and by the library's own engine here.

use std::path::Path;

use hourglass_documents::paper::{MeasurementKind, PaperRow};
use hourglass_machine::facts::HostReader;
use hourglass_time::Span;
use hourglass_timer::event::Resolution;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::costs::measured_on;
use super::super::printed::{Line, MeasuredTable, Table, Value, Values};
use super::super::rows::row;
use super::super::wakeups::{
    Device, EngineWaker, LatencySamples, PosixSignal, Session, Sleep, Summary, WakeUpPlan, Waker,
    WakerFactory, figure, measure as measure_wakeups, summary_of,
};

/// The tick of the paper's vanilla kernel: its greatest lateness is one, and section 4.1 says
/// "1024ms when the HZ value was set to 250" of the 256 ticks of the first array.
const TICK: Span = Span::from_millis(4);

/// Time between two wake-ups that is longer than a tick: only then does a tick-bound row make sense
/// ("The tests for intervals less than the jiffy resolution have not been run").
const TICK_US: u64 = 4_000;

/// A part of the paper's loops that a quick measurement makes, so that all tables of the section
/// take some 20 s.
const QUICK_PART: u64 = 125;
const QUICK_PART_SHORT: u64 = 50;

/// Time of one turn, us: some ticks of the kernel, and many turns.
const TURN_US: u64 = 100_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum AccuracyRow {
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
    fn of(line: &Line) -> AccuracyRow {
        match line.name.split(';').next() {
            Some("2.6.16") => AccuracyRow::Ticks,
            Some("2.6.16-hrt5") => AccuracyRow::HighResolution,
            Some("2.6.16-rt12") => AccuracyRow::RealTime,
            _ => AccuracyRow::Engine,
        }
    }

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

    fn missing(self, real_time_kernel: bool) -> Option<&'static str> {
        match self {
            AccuracyRow::HighResolution if real_time_kernel => {
                Some("this is a PREEMPT_RT kernel, whose numbers stand beside those of rt12")
            }
            AccuracyRow::RealTime if !real_time_kernel => {
                Some("this is not a PREEMPT_RT kernel; it needs one built with CONFIG_PREEMPT_RT")
            }
            _ => None,
        }
    }

    fn open(self, posix: bool) -> WakerFactory {
        let engine = match self {
            AccuracyRow::Ticks => Some(Resolution::TickBound),
            AccuracyRow::Engine => Some(Resolution::High),
            AccuracyRow::HighResolution | AccuracyRow::RealTime => None,
        };
        let device = if posix { Device::PosixTimer } else { Device::Sleep };
        Box::new(move || -> Result<Box<dyn Waker>, String> {
            Ok(match engine {
                Some(resolution) => Box::new(EngineWaker::new(device, resolution, TICK)?),
                None if posix => Box::new(PosixSignal::new().map_err(no_timer)?),
                None => Box::new(Sleep),
            })
        })
    }
}

fn no_timer(error: std::io::Error) -> String {
    format!("no POSIX timer: {error}; ulimit -i tells how many signals may be queued")
}

#[derive(Clone, Copy, Debug)]
pub(super) struct AccuracySize {
    pub(super) loops: u64,
    pub(super) turn: u64,
    pub(super) real_time_kernel: bool,
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let interval_us = table.setting("interval_us");
    let part = match bench.effort {
        MeasurementSize::Full => 1,
        MeasurementSize::Quick if interval_us > TICK_US => QUICK_PART,
        MeasurementSize::Quick => QUICK_PART_SHORT,
    };
    let host = HostReader::new(Path::new("/")).read();
    let size = AccuracySize {
        loops: table.setting("loops") / part,
        turn: TURN_US / interval_us.max(1),
        real_time_kernel: host.preemption.as_deref().is_some_and(|of| of.contains("RT")),
    };
    measure_size(table, size, bench.stopped)
}

type FoundLine<'a> = (&'a Line, AccuracyRow, Result<LatencySamples, String>);

pub(super) fn measure_size(
    table: &Table,
    size: AccuracySize,
    stopped: fn() -> bool,
) -> Option<MeasuredTable> {
    let subjects = || table.lines.iter().map(|line| (line, AccuracyRow::of(line)));
    let posix = table.setting("posix") > 0;
    let ways = subjects().filter(|(_, of)| of.missing(size.real_time_kernel).is_none());
    let plan = WakeUpPlan {
        interval_ns: table.setting("interval_us") * 1_000,
        loops: size.loops,
        turn: size.turn,
        phases_ns: TICK.nanos_or_zero(),
        loaded: table.setting("loaded") > 0,
    };
    let mut session = measure_wakeups(plan, ways.map(|(_, of)| of.open(posix)).collect(), stopped)?;
    let mut all = std::mem::take(&mut session.found).into_iter();
    let found: Option<Vec<FoundLine>> = subjects()
        .map(|(line, of)| match of.missing(size.real_time_kernel) {
            Some(why) => Some((line, of, Err(why.to_owned()))),
            None => Some((line, of, all.next()?)),
        })
        .collect();
    let found = found?;
    let series: Vec<_> = found
        .iter()
        .map(|(line, of, late)| (of.drawn().to_owned(), line.printed(2), late))
        .collect();
    let rows = found.iter().flat_map(rows).collect();
    let measured = table.with_rows(rows, values(table, size, &session, &found));
    Some(measured.with_figure(figure(table, size.loops, &series)))
}

type Statistic = fn(&Summary) -> f64;

fn rows((line, of, late): &FoundLine) -> Vec<PaperRow> {
    let summary = summary_of(late);
    let statistics: [(&str, Statistic); 5] = [
        ("min", |of| of.min_ns),
        ("max", |of| of.max_ns),
        ("avg", |of| of.mean_ns),
        ("median", |of| of.median_ns),
        ("p99", |of| of.p99_ns),
    ];
    let mut rows = Vec::new();
    for (column, (statistic, number)) in statistics.into_iter().enumerate() {
        // The paper has three, which are there also without a number.
        if column < 3 || summary.is_ok() {
            let found = summary.as_ref().map(|all| (number(all), all.count));
            let (name, paper) = (format!("{}, {statistic}", line.name), line.printed(column));
            rows.push(row(name, &line.unit, paper, of.how(), found.map_err(Clone::clone)));
        }
    }
    rows
}

fn values(table: &Table, size: AccuracySize, session: &Session, found: &[FoundLine]) -> Values {
    let kernels = [AccuracyRow::HighResolution, AccuracyRow::RealTime];
    let kernel = found.iter().find_map(|(line, of, late)| {
        kernels.contains(of).then(|| Some((line, summary_of(late).ok()?))).flatten()
    });
    let printed = kernel.and_then(|(line, _)| line.printed(2));
    let sum = |of: fn(&LatencySamples) -> u64| -> u64 {
        found.iter().filter_map(|(.., late)| late.as_ref().ok()).map(of).sum()
    };
    let (lost, early, hogs) = (sum(|late| late.lost), sum(|late| late.early), session.hogs);
    let lines = || found.iter().map(|(line, of, _)| (line, *of));
    let illegible =
        |(line, of): (&&Line, _)| of == AccuracyRow::RealTime && line.printed(2).is_none();
    Values::default()
        .with("loops", size.loops)
        .with("paper loops", table.setting("loops"))
        .with_if("short", size.loops < table.setting("loops"))
        .with("turn", size.turn)
        .with("on", measured_on())
        .with("class", session.class.words())
        .with_some("refused", session.class.refused())
        .with_some("hogs", (hogs > 0).then_some(hogs))
        .with_if("several", hogs > 1)
        .with_if("posix", table.setting("posix") > 0)
        .with_if("by ticks", lines().any(|(_, of)| of == AccuracyRow::Ticks))
        .with_if("illegible", lines().any(illegible))
        .with_some("kernel mean", kernel.map(|(_, all)| Value::Time(all.mean_ns)))
        .with_some("kernel mean@paper", printed.map(|us| Value::Time(us * 1e3)))
        .with_some("paper mean", printed.map(Value::Number))
        .with_some("kernel median", kernel.map(|(_, all)| Value::Time(all.median_ns)))
        .with_some("lost", (lost > 0).then_some(lost))
        .with_some("early", (early > 0).then_some(early))
}
