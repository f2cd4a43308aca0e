//! The suite `sleep`: how late sleeps end and what they take of a CPU, ours beside the peers'.
//!
//! Everything is slept on one CPU, in turn: each round every sleeper sleeps a block of sleeps of one
//! length in one scheduling policy. The deadline is a reading of the same clock plus the length, the
//! miss is what a reading after the return tells; both readings are in it for everyone. Who takes
//! deadlines is given them, the others the length.

mod interrupt;
pub(crate) mod plot;
mod sleepers;

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use hourglass_sys::clock::{ClockId, now_ns};
use hourglass_sys::{sched, thread};

use crate::document::Row;
use crate::paired::median;
use sleepers::SleepCase;

pub(crate) use interrupt::interrupts;

const LENGTHS: [(&str, u64, usize); 4] = [
    ("100us", 100_000, 1_500),
    ("1ms", 1_000_000, 400),
    ("10ms", 10_000_000, 50),
    ("100ms", 100_000_000, 12),
];

/// Sleeps before the first block of a length, for sleepers that learn.
const FIRST: usize = 50;
const FIRST_NS: u64 = 1_200_000_000;
/// Sleeps before those that count in later blocks.
const AGAIN: usize = 3;

/// A real-time thread that only spins is stopped by the kernel after 0.95 s; longer blocks of such a
/// sleeper are cut.
const LONGEST_RT_SPIN_NS: u64 = 300_000_000;

/// What ours is meant to miss at the median, ns.
const GOALS: [(&str, f64); 4] =
    [("100us", 1_000.0), ("1ms", 1_000.0), ("10ms", 1_000.0), ("100ms", 1_000.0)];

const PEERS: [&str; 6] = [
    "clock_nanosleep",
    "clock_nanosleep/slack-1ns",
    "std::thread::sleep",
    "spin_sleep",
    "spin_sleep/tuned",
    "thesis",
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Policy {
    Other,
    Fifo,
}

#[derive(Clone, Copy, Debug)]
struct Block {
    p50_ns: f64,
    p99_ns: f64,
    cpu_percent: f64,
}

type Figure = (&'static str, &'static str, fn(&Block) -> f64);

const FIGURES: [Figure; 3] = [
    ("p50", "ns", |block| block.p50_ns),
    ("p99", "ns", |block| block.p99_ns),
    ("cpu", "%", |block| block.cpu_percent),
];

/// All cases of the suite, or those that begin as `only` says: a length, or a length and a policy.
pub(crate) fn measure(rounds: u32, only: &[String]) -> Result<Vec<Row>> {
    let wanted = |length: &str, policy: Policy| {
        let name = format!("{length}/{}", policy.name());
        only.is_empty() || only.iter().any(|only| only == length || *only == name)
    };
    let cpus = thread::affinity().context("cannot ask for the CPUs")?;
    let last = *cpus.last().context("no CPU is allowed")?;
    thread::set_affinity([last]).context("cannot choose a CPU")?;
    let mut rows = Vec::new();
    for policy in [Policy::Other, Policy::Fifo] {
        if !LENGTHS.iter().any(|length| wanted(length.0, policy)) {
            continue;
        }
        if !policy.take() {
            eprintln!(
                "no SCHED_FIFO here (CAP_SYS_NICE or `ulimit -r 50`): its cases are left out"
            );
            continue;
        }
        let mut subjects = sleepers::all();
        for length in LENGTHS.into_iter().filter(|length| wanted(length.0, policy)) {
            rows.extend(compare(rounds, policy, length, &mut subjects));
        }
        Policy::Other.take();
    }
    thread::set_affinity(cpus.iter().copied()).context("cannot give the CPUs back")?;
    Ok(rows)
}

impl Policy {
    fn take(self) -> bool {
        sched::set(match self {
            Policy::Other => sched::Attributes::Other(0),
            Policy::Fifo => sched::Attributes::Fifo(50),
        })
        .is_ok()
    }

    fn name(self) -> &'static str {
        match self {
            Policy::Other => "other",
            Policy::Fifo => "fifo",
        }
    }
}

/// Every sleeper in turn, as often as there are rounds, each round in another order.
fn compare(
    rounds: u32,
    policy: Policy,
    (name, length_ns, sleeps): (&str, u64, usize),
    subjects: &mut [SleepCase],
) -> Vec<Row> {
    let mut blocks: Vec<Vec<Block>> = subjects.iter().map(|_| Vec::new()).collect();
    let many = subjects.len();
    for round in 0..rounds as usize {
        for turn in 0..many {
            let index = (turn + round) % many;
            let subject = &mut subjects[index];
            let spins = policy == Policy::Fifo && subject.may_spin_all;
            let sleeps =
                if spins { sleeps.min((LONGEST_RT_SPIN_NS / length_ns) as usize) } else { sleeps };
            let before = match round {
                0 => FIRST.min((FIRST_NS / length_ns) as usize),
                _ => AGAIN,
            };
            blocks[index].push(block(subject, length_ns, before.min(sleeps), sleeps));
        }
    }
    let mut rows = Vec::new();
    for (figure, unit, of) in FIGURES {
        let case = format!("{name}/{}/{figure}", policy.name());
        for (subject, own) in subjects.iter().zip(&blocks) {
            let mut values: Vec<f64> = own.iter().map(of).collect();
            let ratio_to = if PEERS.contains(&subject.name) {
                BTreeMap::new()
            } else {
                ratios(subjects, &blocks, own, of)
            };
            let row =
                Row { ratio_to, ..Row::alone(&case, subject.name, median(&mut values), unit) };
            rows.push(match subject.name {
                "hourglass" => with_goals(row),
                "hourglass/precise" => with_precise_goal(row),
                _ => row,
            });
        }
    }
    rows
}

fn with_goals(mut row: Row) -> Row {
    if row.case.ends_with("/cpu") {
        // Twice the dearer one is meant; whichever that is, its ratio is the one that is met.
        let dearer = ["clock_nanosleep/slack-1ns", "spin_sleep"].into_iter();
        let ratio = |peer: &&str| row.ratio_to.get(*peer).copied().unwrap_or(f64::INFINITY);
        if let Some(peer) = dearer.min_by(|a, b| ratio(a).total_cmp(&ratio(b))) {
            row.set_goal(peer, 2.0);
        }
        return row;
    }
    let goal = GOALS.iter().find(|(length, _)| {
        row.case.strip_prefix(length).is_some_and(|rest| rest.starts_with('/'))
    });
    match goal {
        Some((_, limit)) if row.case.ends_with("/p50") => row.at_most(*limit),
        _ => row,
    }
}

fn with_precise_goal(mut row: Row) -> Row {
    if row.case == "1ms/fifo/p99" {
        row.set_goal("clock_nanosleep/slack-1ns", 0.15);
    }
    row
}

fn ratios(
    subjects: &[SleepCase],
    blocks: &[Vec<Block>],
    own: &[Block],
    of: fn(&Block) -> f64,
) -> BTreeMap<String, f64> {
    let peers = subjects.iter().zip(blocks).filter(|(peer, _)| PEERS.contains(&peer.name));
    peers
        .map(|(peer, theirs)| {
            let mut ratios: Vec<f64> =
                own.iter().zip(theirs).map(|(own, their)| of(own) / of(their)).collect();
            (peer.name.to_owned(), median(&mut ratios))
        })
        .collect()
}

fn block(subject: &mut SleepCase, length_ns: u64, before: usize, sleeps: usize) -> Block {
    thread::set_timer_slack(subject.slack_ns).unwrap_or_default();
    (subject.sleep)(length_ns, before);
    let (cpu, wall) = (now_ns(ClockId::ThreadCpu), now_ns(ClockId::Monotonic));
    let mut misses_ns = (subject.sleep)(length_ns, sleeps);
    let cpu = now_ns(ClockId::ThreadCpu) - cpu;
    let wall = now_ns(ClockId::Monotonic) - wall;
    misses_ns.sort_by(f64::total_cmp);
    let at = |percent: usize| misses_ns[(misses_ns.len() - 1) * percent / 100];
    Block { p50_ns: at(50), p99_ns: at(99), cpu_percent: cpu as f64 * 100.0 / wall as f64 }
}
