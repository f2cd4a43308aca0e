//! Table 3: latency of timestamps: asking the kernel, and reading what is mapped.

use std::hint::black_box;

use hourglass_clock::Clock;
use hourglass_model::paper::{MeasurementKind, PaperTable};
use hourglass_sys::clock::{ClockId, now_ns, now_ns_by_system_call, resolution_ns};
use hourglass_timer::clock_device::{ClockDevice, ClockDevices, ClockReader};

use super::super::batches::Batches;
use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::costs::PinnedThread;
use super::super::printed::MeasuredTable;
use super::super::rows::{beside, found, lacking, without_figure};
use super::super::sentences::{sentence, time, times};
use super::MACHINE;

pub(super) const ID: &str = "3";
pub(super) const TITLE: &str = "Latency of clock timestamp operations";

/// Batches of every read.
const QUICK: u64 = 1_000;
const FULL: u64 = 20_000;

const BATCH: u64 = 256;

/// The paper's microseconds: by IPC, and mapped, of which it says "<2".
pub(super) const BY_IPC_US: f64 = 85.0;
pub(super) const MAPPED_US: f64 = 2.0;

/// A way to get a timestamp, with the paper's number beside it.
struct TimestampMethod<'a> {
    name: &'static str,
    printed_us: f64,
    read: Box<dyn Fn() -> u64 + 'a>,
}

fn ways<'a>(clock: &'a Clock, device: Option<&'a ClockReader>) -> Vec<TimestampMethod<'a>> {
    let way = |name, printed_us, read| TimestampMethod { name, printed_us, read };
    let mut ways = kernel_and_clock(clock);
    if let Some(device) = device {
        ways.push(way(
            "device_get_status; clock device",
            BY_IPC_US,
            Box::new(|| device.now_precise().latest),
        ));
        ways.push(way("mapped page; clock device", MAPPED_US, Box::new(|| device.now_ns())));
    }
    ways
}

fn kernel_and_clock(clock: &Clock) -> Vec<TimestampMethod<'_>> {
    let way = |name, printed_us, read| TimestampMethod { name, printed_us, read };
    vec![
        way(
            "device_get_status; system call",
            BY_IPC_US,
            Box::new(|| now_ns_by_system_call(ClockId::Monotonic)),
        ),
        way("mapped page; coarse clock", MAPPED_US, Box::new(|| now_ns(ClockId::MonotonicCoarse))),
        way("mapped page; kernel's clock", MAPPED_US, Box::new(|| now_ns(ClockId::Monotonic))),
        way("mapped page; hourglass clock", MAPPED_US, Box::new(|| clock.now())),
        way("mapped page; the same, published", MAPPED_US, Box::new(|| clock.recent())),
        way("mapped page; the same with bound", MAPPED_US, Box::new(|| clock.now_bounded().latest)),
    ]
}

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let rounds = match bench.effort {
        MeasurementSize::Quick => QUICK,
        MeasurementSize::Full => FULL,
    };
    measure_rounds(rounds, bench.stopped)
}

pub(super) fn measure_rounds(rounds: u64, stopped: fn() -> bool) -> Option<MeasuredTable> {
    let _pinned = PinnedThread::to_last_cpu();
    let clock = Clock::new();
    let device = ClockDevices::native().open::<()>(ClockDevices::BASELINE);
    let reader = device.as_ref().ok().map(ClockDevice::reader);
    let ways = ways(&clock, reader.as_ref());
    let mut batches: Vec<Batches> = ways.iter().map(|_| Batches::of(BATCH)).collect();
    for _ in 0..rounds {
        if stopped() {
            return None;
        }
        for (way, batches) in ways.iter().zip(&mut batches) {
            batches.time(|| (0..BATCH).for_each(|_| _ = black_box((way.read)())));
        }
    }
    let mut rows = Vec::new();
    for (way, batches) in ways.iter().zip(&batches) {
        let us = batches.median_ns()? / 1e3;
        let row = found(way.name.into(), us, "us", MeasurementKind::Measured, batches.operations());
        rows.push(beside(Some(way.printed_us), row));
    }
    if let Err(why) = &device {
        for (name, printed_us) in [
            ("device_get_status; clock device", BY_IPC_US),
            ("mapped page; clock device", MAPPED_US),
        ] {
            let row = lacking(name.into(), "us", MeasurementKind::Measured, &why.to_string());
            rows.push(beside(Some(printed_us), row));
        }
    }
    if let Some(reader) = &reader {
        let name = "mapped page; clock device, step".into();
        rows.push(found(name, reader.tick_ns() as f64, "ns", MeasurementKind::Measured, 1));
    }
    for (name, clock) in
        [("coarse clock", ClockId::MonotonicCoarse), ("kernel's clock", ClockId::Monotonic)]
    {
        let ns = resolution_ns(clock).unwrap_or(0);
        let name = format!("mapped page; {name}, step");
        rows.push(found(name, ns as f64, "ns", MeasurementKind::Measured, 1));
    }
    Some(without_figure(PaperTable {
        id: ID.into(),
        title: TITLE.into(),
        paper_machine: MACHINE.into(),
        method: format!(
            "{} reads of each in batches of {BATCH}, all in turns; medians of the batches; under \
             SCHED_OTHER, no load of our own",
            BATCH * rounds
        ),
        rows,
        decisions: Vec::new(),
        difference: explain(&batches),
        notes: vec![
            "Of the mapped read the paper says \"<2\": the number beside it is a bound.".into(),
            "\"Published\" is the time that the clock's owner last wrote to its page, as old as that."
                .into(),
            "The clock device is the library's baseline one: its mapped read is the time of its last \
             tick, its precise read the clock's with bounds, in order, without asking the kernel."
                .into(),
            "The paper's warning holds of the coarse clock and the device alone: theirs is the time of the last tick, \
             as the paper's mapped page was; the others read the processor's counter, which a \
             486 does not have."
                .into(),
        ],
        figure: None,
    }))
}

fn explain(batches: &[Batches]) -> String {
    let median = |at: usize| batches.get(at).and_then(Batches::median_ns);
    let (Some(call), Some(coarse), Some(kernel)) = (median(0), median(1), median(2)) else {
        return "Nothing could be measured here.".into();
    };
    sentence(&format!(
        "a system call takes {} the mapped read here, {} against {}, and at least {} there; asking \
         the kernel gives no finer time any more; the tick's time is still the cheapest, {}",
        times(call, kernel),
        time(call),
        time(kernel),
        times(BY_IPC_US, MAPPED_US),
        time(coarse),
    ))
}
