//! Table 2: from the expiry to the thread that runs for it.

use hourglass_time::Span;
use hourglass_timer::event::Resolution;

use super::super::bench::MeasurementHost;
use super::super::costs::measured_on;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::measured;
use super::super::wakeups::{
    Device, EngineWaker, FileTimer, LatencySamples, PosixSignal, Sleep, WakeUpPlan, WakerFactory,
    figure, measure as measure_wakeups, summary_of,
};
use super::service::{ServicePort, ServiceSleep};

const INTERVAL_NS: u64 = 1_000_000;

const QUICK: u64 = 600;
const FULL: u64 = 10_000;
const TURN: u64 = 50;

/// The engine is not bound to ticks here.
const NO_TICK: Span = Span::from_millis(4);

fn ways() -> Vec<WakerFactory> {
    let engine = |device| -> WakerFactory {
        Box::new(move || Ok(Box::new(EngineWaker::new(device, Resolution::High, NO_TICK)?)))
    };
    vec![
        Box::new(|| Ok(Box::new(Sleep))),
        engine(Device::Sleep),
        Box::new(|| Ok(Box::new(ServiceSleep::new()?))),
        Box::new(|| Ok(Box::new(ServicePort::new()?))),
        Box::new(|| Ok(Box::new(PosixSignal::new().map_err(|error| error.to_string())?))),
        Box::new(|| Ok(Box::new(FileTimer::new().map_err(|error| error.to_string())?))),
        engine(Device::PosixTimer),
    ]
}

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    measure_loops(table, bench.at_most(FULL, QUICK), bench.stopped)
}

pub(super) fn measure_loops(
    table: &Table,
    loops: u64,
    stopped: fn() -> bool,
) -> Option<MeasuredTable> {
    let plan =
        WakeUpPlan { interval_ns: INTERVAL_NS, loops, turn: TURN, phases_ns: 0, loaded: false };
    let session = measure_wakeups(plan, ways(), stopped)?;
    let mut rows = Vec::new();
    for (line, late) in table.lines.iter().zip(&session.found) {
        let summary = summary_of(late);
        for (statistic, paper) in [("mean", line.printed(0)), ("median", None)] {
            let found = summary.clone().map(|all| {
                (if statistic == "mean" { all.mean_ns } else { all.median_ns }, all.count)
            });
            let name = if found.is_ok() {
                format!("{}, {statistic}", line.name)
            } else {
                line.name.clone()
            };
            rows.push(measured(name, "us", paper, found));
        }
    }
    let values = Values::default()
        .with("loops", loops)
        .with("turn", TURN)
        .with("on", measured_on())
        .with("class", session.class.words())
        .with_some("refused", session.class.refused());
    let short = |name: &str| name.rsplit("; ").next().unwrap_or(name).to_owned();
    let series: Vec<(String, Option<f64>, &Result<LatencySamples, String>)> = (table.lines.iter())
        .zip(&session.found)
        .map(|(line, late)| (short(&line.name), line.printed(0), late))
        .collect();
    Some(table.with_rows(rows, values).with_figure(figure(table, loops, &series)))
}
