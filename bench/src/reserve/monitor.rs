//! What the monitor itself takes of a processor.
//!
//! It watches the paper's reservation of 55 ms in 70 ms. A clock reports progress: at 0.6 of full speed
//! while co-runners run, which makes some 15 checks a job, and at full speed when they are stopped. There
//! are no co-runners; stopping them costs the stopper, not the monitor.

use std::io;
use std::time::Duration;

use anyhow::{Context, Result};
use hourglass_documents::{Reservation, ReservationKind};
use hourglass_reserve::progress::ProgressSource;
use hourglass_reserve::smt::driver::{Driver, MonitorConfig, MonitorReport};
use hourglass_reserve::smt::enforcer::MonitoredReservation;
use hourglass_reserve::smt::jobs::JobReservation;
use hourglass_reserve::smt::monitor::MonitorSettings;
use hourglass_reserve::smt::stopper::Stopper;
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::sched::{self, Attributes};
use hourglass_time::Span;

use crate::document::Row;
use crate::paired::median;

/// The paper's reservation, section 5.2.
const RESERVED: Span = Span::from_millis(55);
const PERIOD: Span = Span::from_millis(70);
const JOBS: u32 = 10;
const PRIORITY: u8 = 60;
/// A margin as measured on a machine without load, ns.
const MARGIN_NS: u64 = 100_000;

pub(super) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let priority = std::thread::spawn(|| sched::set(Attributes::Fifo(PRIORITY)).is_ok());
    let priority = priority.join().unwrap_or(false).then_some(PRIORITY);
    let (mut shares, mut looks) = (Vec::new(), Vec::new());
    for _ in 0..rounds {
        let report = round(priority)?;
        shares.push(100.0 * report.cpu_ns as f64 / report.elapsed_ns as f64);
        let jobs = report.statistics.jobs.max(1);
        looks.push(report.statistics.checks as f64 / jobs as f64);
    }
    let subject = if priority.is_some() { "hourglass" } else { "hourglass/no_priority" };
    Ok(vec![
        Row::alone("monitor_cpu", subject, median(&mut shares), "%").at_most(1.0),
        Row::alone("monitor_looks", subject, median(&mut looks), "per job"),
    ])
}

fn round(priority: Option<u8>) -> Result<MonitorReport> {
    let reservation = Reservation::new(RESERVED, PERIOD, ReservationKind::Hard)?;
    let settings = MonitorSettings { margin_ns: MARGIN_NS, ..MonitorSettings::default() };
    let plan = MonitorConfig { settings, priority, timer_samples: 0, ..MonitorConfig::default() };
    let progress = Box::new(Pace { reserved_ns: 0, done: 0, last_ns: 0, running: true });
    let watched = MonitoredReservation {
        reservation: JobReservation::new(&reservation, 0),
        progress,
        gate: None,
    };
    let driver = Driver::start(plan, vec![watched], Box::new(NullStopper)).context("no monitor")?;
    std::thread::sleep(Duration::from_nanos(PERIOD.nanos_or_zero()) * JOBS);
    Ok(driver.stop())
}

struct Pace {
    reserved_ns: u64,
    /// In tenths of ns.
    done: u64,
    last_ns: u64,
    running: bool,
}

impl Pace {
    fn pass(&mut self) {
        let now = now_ns(ClockId::Monotonic);
        let speed = if self.running { 6 } else { 10 };
        self.done += (now - self.last_ns) * speed;
        self.last_ns = now;
    }
}

impl ProgressSource for Pace {
    fn name(&self) -> &'static str {
        "none"
    }

    fn begin(&mut self, reserved_ns: u64) {
        self.pass();
        self.reserved_ns = reserved_ns;
        self.done = 0;
    }

    fn done_ns(&mut self) -> u64 {
        self.pass();
        (self.done / 10).min(self.reserved_ns)
    }

    fn co_runners(&mut self, running: bool) {
        self.pass();
        self.running = running;
    }
}

struct NullStopper;

impl Stopper for NullStopper {
    fn name(&self) -> &'static str {
        "nobody"
    }

    fn stop(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn resume(&mut self) -> io::Result<()> {
        Ok(())
    }
}
