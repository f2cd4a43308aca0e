//! The suite `clock`: what reading the time costs, how soon it can be read, and whether its bounds
//! hold.

mod accuracy;
mod counter;
mod first;
mod reads;
mod slewing;

use std::time::Duration;

use anyhow::{Result, ensure};
use hourglass_clock::Clock;
use hourglass_clock::timekeeping::Timebase;
use hourglass_sys::thread::{affinity, set_affinity};

use crate::document::{Findings, SuiteConditions};

pub(crate) fn measure(rounds: u32, seconds: u64) -> Result<Findings> {
    ensure!(counter::is_readable(), "this thread may not read the processor's counter");
    let clock = Clock::new();
    settle(&clock);
    let source = clock.source();
    let cpus = affinity()?;
    let cpu = cpus.last().copied().filter(|cpu| set_affinity([*cpu]).is_ok());
    let mut rows = reads::measure(rounds)?;
    set_affinity(cpus.iter().copied())?;
    rows.extend(first::measure()?);
    let watched = accuracy::measure(seconds, &cpus, source == counter::SOURCE)?;
    rows.extend(watched.rows);
    rows.extend(slewing::measure(&cpus)?);
    let conditions = SuiteConditions {
        source: Some(source.name()),
        cpu,
        processes: Some(first::PROCESSES),
        seconds: Some(seconds),
        comparisons: Some(watched.comparisons),
    };
    Ok(Findings { conditions, rows })
}

fn settle<B: Timebase>(clock: &Clock<B>) {
    for _ in 0..50 {
        clock.maintain();
        std::thread::sleep(Duration::from_millis(2));
    }
}
