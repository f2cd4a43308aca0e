//! Table 3: latency of timestamps: asking the kernel, and reading what is mapped.

use std::hint::black_box;

use hourglass_clock::Clock;
use hourglass_sys::clock::{ClockId, now_ns, now_ns_by_system_call, resolution_ns};
use hourglass_timer::clock_device::{ClockDevice, ClockDevices};

use super::super::batches::Batches;
use super::super::bench::MeasurementHost;
use super::super::costs::PinnedThread;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::measured;

const QUICK: u64 = 1_000;
const FULL: u64 = 20_000;

const BATCH: u64 = 256;

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    measure_rounds(table, bench.at_most(FULL, QUICK), bench.stopped)
}

pub(super) fn measure_rounds(
    table: &Table,
    rounds: u64,
    stopped: fn() -> bool,
) -> Option<MeasuredTable> {
    let _pinned = PinnedThread::to_last_cpu();
    let clock = Clock::new();
    let device = ClockDevices::native().open::<()>(ClockDevices::BASELINE);
    let reader = device.as_ref().ok().map(ClockDevice::reader);
    // In the order of the table's lines.
    let mut ways: Vec<Box<dyn Fn() -> u64 + '_>> = vec![
        Box::new(|| now_ns_by_system_call(ClockId::Monotonic)),
        Box::new(|| now_ns(ClockId::MonotonicCoarse)),
        Box::new(|| now_ns(ClockId::Monotonic)),
        Box::new(|| clock.now()),
        Box::new(|| clock.recent()),
        Box::new(|| clock.now_bounded().latest),
    ];
    if let Some(reader) = &reader {
        ways.push(Box::new(|| reader.now_precise().latest));
        ways.push(Box::new(|| reader.now_ns()));
    }
    let mut batches: Vec<Batches> = ways.iter().map(|_| Batches::of(BATCH)).collect();
    for _ in 0..rounds {
        if stopped() {
            return None;
        }
        for (read, batches) in ways.iter().zip(&mut batches) {
            batches.time(|| (0..BATCH).for_each(|_| _ = black_box(read())));
        }
    }
    let mut rows = Vec::new();
    for (at, line) in table.lines.iter().enumerate() {
        let found = match (batches.get(at), &device) {
            (Some(batches), _) => batches.found(),
            (None, Err(why)) => Err(why.to_string()),
            (None, Ok(_)) => Err("it was not read".to_owned()),
        };
        rows.push(measured(&*line.name, &line.unit, line.printed(0), found));
    }
    let step = |clock| Some(resolution_ns(clock).unwrap_or(0));
    for (name, step_ns) in [
        ("clock device", reader.as_ref().map(|reader| reader.tick_ns())),
        ("coarse clock", step(ClockId::MonotonicCoarse)),
        ("kernel's clock", step(ClockId::Monotonic)),
    ] {
        let name = format!("mapped page; {name}, step");
        rows.extend(step_ns.map(|ns| measured(name, "ns", None, Ok((ns as f64, 1)))));
    }
    let values = Values::default().with("reads", BATCH * rounds).with("batch", BATCH);
    Some(table.with_rows(rows, values))
}
