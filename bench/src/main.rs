//! `hourglass-bench`: Hourglass measured beside its peers, in one sitting, interleaved.
//!
//! Owns: the benchmark commands of the contract and their document `hourglass.bench/1`.
//! Two of the peers, minstant and fastant, calibrate in constructors: they spin for some 20 ms each
//! before `main`, whatever is to be measured.
//! Must not: be a dependency of anything, or be run by the tests: figures are not verdicts.

#![forbid(unsafe_code)]

mod clock;
mod document;
mod infer;
mod load;
mod merge;
mod paired;
mod reserve;
mod sched;
mod sleep;
mod stats;
mod timer;
mod witness;
mod workload;

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{Parser, ValueEnum};

use crate::document::{Document, Findings};

/// Measures Hourglass beside its peers.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "EXAMPLES:\n  cargo run --release -p hourglass-bench -- clock --seconds 5\n  cargo run --release -p hourglass-bench -- workload\n  cargo run --release -p hourglass-bench -- workload --json --record bench/record/workload.json"
)]
struct Arguments {
    /// What to measure.
    name: Suite,
    /// Print one JSON document (hourglass.bench/1) and nothing else.
    #[arg(long)]
    json: bool,
    /// Also keep the document in this file.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Rounds of each comparison; each runs ours and the peer's once. [default: 15, sleep 5; timer 15 or what fits into five minutes]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
    rounds: Option<u32>,
    /// sleep: these cases only, by length or length and policy (1ms, 10ms/fifo); may be repeated. infer: `calibration`. witness: `cost`, `server`, `truth`.
    #[arg(long, value_name = "CASE")]
    only: Vec<String>,
    /// sleep: draw misses over CPU time into this folder, a file for each length and policy.
    #[arg(long, value_name = "DIR")]
    pictures: Option<PathBuf>,
    /// sleep: draw the pictures of this record, and measure nothing.
    #[arg(long, value_name = "FILE", requires = "pictures")]
    drawn_from: Option<PathBuf>,
    /// merge: nodes, each with a run of two threads; a tenth of them is measured too.
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(10..=1_000_000))]
    nodes: u64,
    /// merge: parts of an experiment.
    #[arg(long, value_name = "N", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(10..=10_000_000))]
    parts: u64,
    /// clock: for how long bounds are compared with the kernel's clock, s.
    #[arg(long, value_name = "N", default_value_t = 60, value_parser = clap::value_parser!(u64).range(2..=86_400))]
    seconds: u64,
}

/// The suites there are.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Suite {
    /// What reading the time costs, the first value, bounds and whether they hold.
    Clock,
    /// Sleeping precisely: misses and CPU time.
    Sleep,
    /// Gap loop, start-up, received time, reading a large run folder.
    Workload,
    /// Causes of gaps: what finding them costs, and whether they are true.
    Infer,
    /// Response times under fixed priorities, EDF's demand test.
    Sched,
    /// Telling progress, the monitor of slack time, what `reserve` adds to a command.
    Reserve,
    /// The queue of timers, the wheel of timeouts, interrupted sleepers, timing faults.
    Timer,
    /// Runs of many nodes put together: time and memory by their number; parts of an experiment found.
    Merge,
    /// Spans: what witnessing one costs, and whether what is said of it is true.
    Witness,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    if let (Suite::Sleep, Some(record), Some(folder)) =
        (arguments.name, &arguments.drawn_from, &arguments.pictures)
    {
        return sleep::plot::write_record(record, folder);
    }
    let rounds = |default| arguments.rounds.unwrap_or(default);
    let plain = |rows| Findings { rows, ..Findings::default() };
    let (name, rounds, found) = match arguments.name {
        Suite::Clock => ("clock", rounds(15), clock::measure(rounds(15), arguments.seconds)?),
        Suite::Sleep => ("sleep", rounds(5), plain(sleep::measure(rounds(5), &arguments.only)?)),
        Suite::Workload => ("workload", rounds(15), plain(workload::measure(rounds(15))?)),
        Suite::Infer => ("infer", rounds(15), plain(infer::measure(rounds(15), &arguments.only)?)),
        Suite::Sched => ("sched", rounds(15), plain(sched::measure(rounds(15))?)),
        Suite::Reserve => ("reserve", rounds(15), plain(reserve::measure(rounds(15))?)),
        Suite::Merge => ("merge", 1, plain(merge::measure(arguments.nodes, arguments.parts)?)),
        Suite::Timer => ("timer", rounds(15), plain(timer::measure(arguments.rounds)?)),
        Suite::Witness => {
            ("witness", rounds(15), plain(witness::measure(rounds(15), &arguments.only)?))
        }
    };
    if let (Suite::Sleep, Some(folder)) = (arguments.name, &arguments.pictures) {
        sleep::plot::write(&found.rows, folder)?;
    }
    let document = Document::new(name, rounds, found);
    let json = serde_json::to_string_pretty(&document)?;
    if let Some(path) = &arguments.record {
        std::fs::write(path, format!("{json}\n"))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if arguments.json {
        println!("{json}");
    } else {
        print!("{document}");
    }
    Ok(())
}
