//! Table 2: from the expiry to the thread that runs for it.

use hourglass_model::paper::{Figure, MeasurementKind, PaperTable, Series};
use hourglass_time::Span;
use hourglass_timer::event::Resolution;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::costs::measuring_cpu;
use super::super::printed::MeasuredTable;
use super::super::rows::{beside, found, lacking, with_figure};
use super::super::sentences::{sentence, time, times};
use super::super::wakeups::{
    Device, EngineWaker, FileTimer, LatencySamples, PosixSignal, Session, Sleep, ThreadClass,
    WakeUpPlan, WakerFactory, measure as measure_wakeups,
};
use super::MACHINE;
use super::service::{ServicePort, ServiceSleep};

pub(super) const ID: &str = "2";
pub(super) const TITLE: &str = "Latency of thread execution from the expiry";

/// The paper's microseconds.
pub(super) const UNBLOCK_US: f64 = 106.0;
pub(super) const MESSAGE_US: f64 = 162.0;

/// From one expiry to the next.
const INTERVAL_NS: u64 = 1_000_000;

/// Expiries of each way, and of one turn.
const QUICK: u64 = 600;
const FULL: u64 = 10_000;
const TURN: u64 = 50;

/// The engine is not bound to ticks here.
const NO_TICK: Span = Span::from_millis(4);

/// A way of getting to run: its name, the paper's number, and how it is opened.
struct WakeUpMethod {
    name: &'static str,
    printed_us: f64,
    open: fn() -> WakerFactory,
}

const WAYS: [WakeUpMethod; 7] = [
    WakeUpMethod {
        name: "unblock thread; clock_nanosleep",
        printed_us: UNBLOCK_US,
        open: || Box::new(|| Ok(Box::new(Sleep))),
    },
    WakeUpMethod {
        name: "unblock thread; engine, asleep",
        printed_us: UNBLOCK_US,
        open: || {
            Box::new(|| Ok(Box::new(EngineWaker::new(Device::Sleep, Resolution::High, NO_TICK)?)))
        },
    },
    WakeUpMethod {
        name: "unblock thread; service, sleep",
        printed_us: UNBLOCK_US,
        open: || Box::new(|| Ok(Box::new(ServiceSleep::new()?))),
    },
    WakeUpMethod {
        name: "send message; service, port",
        printed_us: MESSAGE_US,
        open: || Box::new(|| Ok(Box::new(ServicePort::new()?))),
    },
    WakeUpMethod {
        name: "send message; POSIX signal",
        printed_us: MESSAGE_US,
        open: || Box::new(|| Ok(Box::new(PosixSignal::new().map_err(|e| e.to_string())?))),
    },
    WakeUpMethod {
        name: "send message; timerfd, read",
        printed_us: MESSAGE_US,
        open: || Box::new(|| Ok(Box::new(FileTimer::new().map_err(|e| e.to_string())?))),
    },
    WakeUpMethod {
        name: "send message; engine, signal",
        printed_us: MESSAGE_US,
        open: || {
            Box::new(|| {
                Ok(Box::new(EngineWaker::new(Device::PosixTimer, Resolution::High, NO_TICK)?))
            })
        },
    },
];

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let loops = match bench.effort {
        MeasurementSize::Quick => QUICK,
        MeasurementSize::Full => FULL,
    };
    measure_loops(loops, bench.stopped)
}

pub(super) fn measure_loops(loops: u64, stopped: fn() -> bool) -> Option<MeasuredTable> {
    let plan =
        WakeUpPlan { interval_ns: INTERVAL_NS, loops, turn: TURN, phases_ns: 0, loaded: false };
    let session = measure_wakeups(plan, WAYS.iter().map(|way| (way.open)()).collect(), stopped)?;
    let mut rows = Vec::new();
    for (way, late) in WAYS.iter().zip(&session.found) {
        let summary = late.as_ref().map(LatencySamples::summary);
        let row = |statistic: &str| match &summary {
            Ok(Some(all)) => {
                let ns = if statistic == "mean" { all.mean_ns } else { all.median_ns };
                let name = format!("{}, {statistic}", way.name);
                found(name, ns / 1e3, "us", MeasurementKind::Measured, all.count)
            }
            Ok(None) => {
                lacking(way.name.into(), "us", MeasurementKind::Measured, "there was no expiry")
            }
            Err(why) => lacking(way.name.into(), "us", MeasurementKind::Measured, why),
        };
        rows.push(beside(Some(way.printed_us), row("mean")));
        rows.push(row("median"));
    }
    let cpu = measuring_cpu().map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    let table = PaperTable {
        id: ID.into(),
        title: TITLE.into(),
        paper_machine: MACHINE.into(),
        method: format!(
            "{loops} expiries of each, 1 ms apart, in turns of {TURN}{cpu}, under {}, no load of our \
             own; counted from the time that was asked for: user space does not see the interrupt, \
             so that its own latency is included",
            session.class.words()
        ),
        rows,
        decisions: Vec::new(),
        difference: explain(&session),
        notes: notes(&session),
        figure: None,
    };
    Some(with_figure(table, figure(loops, &session)))
}

fn notes(session: &Session) -> Vec<String> {
    let mut notes = vec![
        "The paper's thread that waits for a message is compared with threads that take a signal \
         or read a file descriptor: on Linux these carry the word of an expiry."
            .into(),
        "Whoever waits for the service waits for two threads to be woken, the engine's and its own; \
         the paper's kernel wakes one."
            .into(),
    ];
    if let ThreadClass::Other { why } = &session.class {
        notes.push(format!("SCHED_FIFO with priority 80 was refused: {why}."));
    }
    notes
}

fn explain(session: &Session) -> String {
    let median = |at: usize| Some(session.found.get(at)?.as_ref().ok()?.summary()?.median_ns);
    let (Some(sleep), Some(served), Some(message)) = (median(0), median(2), median(3)) else {
        return "Not all ways could be measured here.".into();
    };
    let more = |ns: f64| format!("{} ({} the sleep)", time(ns), times(ns, sleep));
    sentence(&format!(
        "by the medians a thread that sleeps by itself runs {} after its time; one that the service \
         wakes {}, one that the service sends a message {}; there a message took {} the sleep",
        time(sleep),
        more(served),
        more(message),
        times(MESSAGE_US, UNBLOCK_US),
    ))
}

fn figure(loops: u64, session: &Session) -> Figure {
    let points = |late: &Result<LatencySamples, String>| {
        late.as_ref().map_or((Vec::new(), 1), LatencySamples::points)
    };
    let series = WAYS.iter().zip(&session.found).map(|(way, late)| Series {
        name: way.name.split("; ").last().unwrap_or(way.name).into(),
        paper_mean_ns: Some(way.printed_us * 1e3),
        mean_ns: late.as_ref().ok().and_then(LatencySamples::summary).map(|all| all.mean_ns),
        points: points(late).0,
    });
    Figure {
        id: ID.into(),
        title: TITLE.into(),
        quantity: "latency".into(),
        counted: "wake-up".into(),
        count: loops,
        thinning: session.found.iter().map(|late| points(late).1).max().unwrap_or(1),
        series: series.collect(),
    }
}
