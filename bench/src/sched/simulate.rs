//! The simulator: jobs a second.
//!
//! Owns: random sets on one CPU under fixed priorities and under EDF, statistics kept, as
//! `sim` is called. Must not: time the making of the sets.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Result, ensure};
use hourglass_sched::{Task, TaskSet};
use hourglass_sim::{self as sim, Class, SimSettings, System, Thread};

use super::sets;
use crate::document::Row;
use crate::paired::median;

const COUNTS: [usize; 3] = [10, 20, 50];

const UTILISATION: f64 = 0.95;

const SETS: usize = 10;

/// Simulated time of a set, ns.
const HORIZON: u64 = 300_000_000_000;

/// The goal with 10 tasks, million jobs a second.
const GOAL: f64 = 10.0;

pub(super) fn measure(rounds: u32) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for count in COUNTS {
        for (subject, by_deadline) in [("hourglass", false), ("hourglass/edf", true)] {
            let case = format!("simulate/{count}");
            let row = Row::alone(&case, subject, speed(count, by_deadline, rounds)?, "Mjobs/s");
            rows.push(if count == COUNTS[0] { row.at_least(GOAL) } else { row });
        }
    }
    Ok(rows)
}

/// Million jobs a second, the median over the rounds.
fn speed(count: usize, by_deadline: bool, rounds: u32) -> Result<f64> {
    let mut dice = sets::XorShift::new(count as u64);
    let systems: Vec<System> = (0..SETS)
        .map(|_| system(&sets::set(&mut dice, count, UTILISATION, 1.0), by_deadline))
        .collect();
    let mut speeds = Vec::new();
    for _ in 0..rounds {
        let begun = Instant::now();
        let mut jobs = 0;
        for system in &systems {
            let outcome = sim::run(black_box(system), SimSettings::until(HORIZON))?;
            let counted: u64 = outcome.threads.iter().map(|t| t.responses.count()).sum();
            ensure!(counted == outcome.jobs, "{} jobs, {counted} in histograms", outcome.jobs);
            jobs += outcome.jobs;
        }
        speeds.push(jobs as f64 / begun.elapsed().as_secs_f64() / 1e6);
    }
    Ok(median(&mut speeds))
}

fn system(set: &TaskSet, by_deadline: bool) -> System {
    let thread = |task: &Task| {
        let class = if by_deadline { Class::Edf } else { Class::Fifo(task.priority()) };
        Thread::periodic(task.cost(), task.period()).with_class(class)
    };
    let mut system = System::new(1);
    system.threads = set.tasks().iter().map(thread).collect();
    system
}
