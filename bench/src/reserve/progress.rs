//! What a program pays to tell its progress.

use std::hint::black_box;
use std::time::Instant;

use anyhow::Result;
use hourglass_reserve::progress::{Progress, ProgressPage};

use crate::document::Row;
use crate::paired::median;

/// Calls in a turn: some milliseconds, so that few turns are interrupted.
const CALLS: u64 = 5_000_000;
/// Turns in a round. The fastest counts, since only it was not interrupted.
const TURNS: u32 = 5;

/// Nanoseconds for a call of [`Progress::report`], the loop around it included.
pub(super) fn measure(rounds: u32) -> Result<Row> {
    let mut progress = Progress::on(ProgressPage::create()?);
    let mut values: Vec<f64> = (0..rounds)
        .map(|_| (0..TURNS).map(|_| turn(&mut progress)).fold(f64::INFINITY, f64::min))
        .collect();
    Ok(Row::alone("progress", "hourglass", median(&mut values), "ns").at_most(1.0))
}

fn turn(progress: &mut Progress) -> f64 {
    let calls = black_box(CALLS);
    let begun = Instant::now();
    // The stores are atomic ones, which nothing leaves out.
    for done in 1..calls {
        progress.report(done, calls);
    }
    progress.report(calls, calls);
    begun.elapsed().as_secs_f64() * 1e9 / CALLS as f64
}
