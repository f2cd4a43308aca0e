//! Putting the options on the threads, in their order.

use std::fmt::Display;
use std::path::Path;

use clap::ValueEnum;
use hourglass_documents::{CpuSet, Reservation, ReservationKind, spelling};
use hourglass_time::Span;

use super::lexer::{ParsedOption, RunTokens};
use super::options::OptionKey;
use super::{HostDefaults, RunArguments};
use crate::commands::diff::FailOn;
use crate::exit::Stop;
use crate::lab::compare::rounds::MOST_ROUNDS;
use crate::lab::workload_file::{self, WorkloadFile};
use crate::lab::{Limit, MOST_THREADS, RunSpec, SpecError, ThreadSpec, models, wake};
use crate::settings::{Colour, Settings};

/// For whom a per-thread option is. Before any `-t` or `-a`, options are for all threads.
#[derive(Clone, Copy)]
enum Scope {
    All,
    One(usize),
}

/// Understands a command line that does not ask for help.
pub(super) fn apply(lexed: &RunTokens<'_>, around: &HostDefaults) -> Result<RunArguments, Stop> {
    let file = match lexed.file {
        Some(path) => {
            workload_file::read(Path::new(path)).map_err(|e| Stop::usage(e.to_string()))?
        }
        None => WorkloadFile::default(),
    };
    let mut run = RunArguments {
        spec: RunSpec::new(threads(lexed, &file)?),
        dma_latency_us: file.dma_latency_us,
        folder: None,
        notes: file.notes.clone(),
        gates: file.gates.clone(),
        trace: file.trace.unwrap_or(false),
        seed_is_made_up: file.seed.is_none() && !lexed.has(OptionKey::Seed),
        records: false,
        summary: false,
        cycles: false,
        settings: Settings::default(),
        against: None,
        rounds: None,
        fail_on: None,
        control: false,
    };
    file.put_into(&mut run.spec, around.seed);
    let mut scope = Scope::All;
    for given in &lexed.options {
        match given.key {
            OptionKey::Thread => scope = Scope::One(thread_number(given, run.spec.threads.len())?),
            OptionKey::AllThreads => scope = Scope::All,
            _ => {
                set_for_run(&mut run, given)?;
                set_limits(&mut run, given)?;
                let threads = match scope {
                    Scope::All => &mut run.spec.threads[..],
                    Scope::One(number) => &mut run.spec.threads[number..=number],
                };
                set_for_threads(threads, given, around)?;
            }
        }
    }
    run.spec.check().map_err(|error| contradiction(&error, &run.spec, &file))?;
    run.gates.check(&run.spec).map_err(|error| Stop::usage(error.to_string()))?;
    Ok(run)
}

fn threads(lexed: &RunTokens<'_>, file: &WorkloadFile) -> Result<Vec<ThreadSpec>, Stop> {
    match (lexed.last(OptionKey::Threads), lexed.file) {
        (None, Some(_)) => Ok(file.threads.clone()),
        (None, None) => Ok(vec![ThreadSpec::default()]),
        (Some(_), Some(path)) => Err(Stop::usage(format!(
            "-n: {path} says how many threads there are; leave -n out, or change the file"
        ))),
        (Some(given), None) => match given.value().parse::<usize>() {
            Ok(count) if (1..=MOST_THREADS).contains(&count) => {
                Ok(vec![ThreadSpec::default(); count])
            }
            _ => Err(wrong(
                given,
                format!(
                    "bad number of threads '{}': give one from 1 to {MOST_THREADS}",
                    given.value()
                ),
            )),
        },
    }
}

fn thread_number(given: &ParsedOption<'_>, threads: usize) -> Result<usize, Stop> {
    let number = given.value();
    match number.parse::<usize>() {
        Ok(number) if number < threads => Ok(number),
        Ok(number) => {
            let there = match threads {
                1 => "the only thread is 0".to_owned(),
                n => format!("{n} threads are numbered 0 to {}", n - 1),
            };
            Err(wrong(given, format!("there is no thread {number}; {there}")))
        }
        Err(_) => Err(wrong(
            given,
            format!(
                "bad thread number '{number}': give one from 0 to {}",
                threads.saturating_sub(1)
            ),
        )),
    }
}

/// Options of the run and of its output; the others pass.
fn set_for_run(run: &mut RunArguments, given: &ParsedOption<'_>) -> Result<(), Stop> {
    let spec = &mut run.spec;
    match given.key {
        OptionKey::Duration => spec.duration = above_zero(given)?,
        OptionKey::Records => spec.records = number(given, "number of records")?,
        OptionKey::Ring => spec.ring = true,
        OptionKey::WarmUp => spec.warm_up = not_negative(given)?,
        OptionKey::Seed => {
            spec.seed =
                workload_file::read_seed(given.value()).map_err(|error| wrong(given, error))?;
        }
        OptionKey::BestEffort => spec.best_effort = true,
        OptionKey::Trace => run.trace = true,
        OptionKey::DmaLatency => {
            run.dma_latency_us = Some(number(given, "number of microseconds")?)
        }
        OptionKey::Cycles => {
            run.cycles = true;
            run.records = true;
        }
        OptionKey::RecordLines => run.records = true,
        OptionKey::Summary => run.summary = true,
        OptionKey::Rounds => run.rounds = Some(rounds(given)?),
        OptionKey::FailOn => {
            let text = given.value();
            let when = FailOn::from_str(text, false);
            run.fail_on = Some(when.map_err(|_| {
                wrong(given, spelling::unknown("word", text, ["worse", "unknown", "doubt"]))
            })?);
        }
        OptionKey::Control => run.control = true,
        OptionKey::Folder => run.folder = Some(folder(given)?),
        OptionKey::Json => run.settings.json = true,
        OptionKey::Quiet => run.settings.quiet = true,
        OptionKey::Colour => {
            run.settings.color = Colour::from_str(given.value(), false).map_err(|_| {
                wrong(given, spelling::unknown("word", given.value(), ["auto", "always", "never"]))
            })?;
        }
        _ => {}
    }
    Ok(())
}

/// Limits of the run; the other options pass.
fn set_limits(run: &mut RunArguments, given: &ParsedOption<'_>) -> Result<(), Stop> {
    let guard = &mut run.spec.guard;
    match given.key {
        OptionKey::MaxLatency => run.gates.set(Limit::MaxLatency(not_negative(given)?)),
        OptionKey::MaxGap => run.gates.set(Limit::MaxGap(not_negative(given)?)),
        OptionKey::MaxMisses => {
            run.gates.set(Limit::MaxMisses(number(given, "number of periods")?))
        }
        OptionKey::Percentile => {
            let limit = Limit::percentile(given.value()).map_err(|error| wrong(given, error))?;
            run.gates.set(limit);
        }
        OptionKey::StopOnGap => guard.stop_on_gap = Some(not_negative(given)?),
        OptionKey::StopOnLatency => guard.stop_on_latency = Some(not_negative(given)?),
        OptionKey::OnHit => run.gates.on_hit = Some(given.value().to_owned()),
        _ => {}
    }
    Ok(())
}

/// Options per thread; the others pass.
fn set_for_threads(
    threads: &mut [ThreadSpec],
    given: &ParsedOption<'_>,
    around: &HostDefaults,
) -> Result<(), Stop> {
    let mut set = |change: &dyn Fn(&mut ThreadSpec)| threads.iter_mut().for_each(change);
    match given.key {
        OptionKey::Workload => {
            let model = models::parse(&given.values).map_err(|error| wrong(given, error))?;
            set(&|thread| thread.model = model.clone());
        }
        OptionKey::Timer => {
            let method = wake::parse(given.value()).map_err(|error| wrong(given, error))?;
            set(&|thread| thread.wake = method.clone());
        }
        OptionKey::Priority => {
            let (policy, is_named) =
                workload_file::read_priority(given.value()).map_err(|error| wrong(given, error))?;
            set(&|thread| (thread.policy, thread.policy_is_named) = (policy, is_named));
        }
        OptionKey::HardReservation | OptionKey::SoftReservation => {
            let reservation = reservation(given)?;
            set(&|thread| thread.reservation = Some(reservation));
        }
        OptionKey::Start => {
            let start = not_negative(given)?;
            set(&|thread| thread.start = start);
        }
        OptionKey::Finish => {
            let finish = not_negative(given)?;
            set(&|thread| thread.finish = Some(finish));
        }
        OptionKey::Cpus => {
            let cpus: CpuSet = given.value().parse().map_err(|error| wrong(given, error))?;
            workload_file::check_cpus(&cpus, around.online.as_ref())
                .map_err(|error| wrong(given, error))?;
            set(&|thread| thread.cpus = Some(cpus.clone()));
        }
        OptionKey::Gap => {
            let gap = above_zero(given)?;
            set(&|thread| thread.gap = Some(gap));
        }
        _ => {}
    }
    Ok(())
}

fn reservation(given: &ParsedOption<'_>) -> Result<Reservation, Stop> {
    let strength = match given.key {
        OptionKey::SoftReservation => ReservationKind::Soft,
        _ => ReservationKind::Hard,
    };
    let [amount, period] = given.values[..] else {
        return Err(wrong(given, "give AMOUNT and PERIOD"));
    };
    let (budget, period) = (positive(given, amount)?, positive(given, period)?);
    Reservation::new(budget, period, strength)
        .map_err(|error| wrong(given, format!("{error}: {budget} in every {period}")))
}

fn rounds(given: &ParsedOption<'_>) -> Result<u32, Stop> {
    match number(given, "number of rounds")? {
        rounds @ 1..=MOST_ROUNDS => Ok(rounds),
        rounds => Err(wrong(given, format!("{rounds} rounds: give 1 to {MOST_ROUNDS}"))),
    }
}

fn folder(given: &ParsedOption<'_>) -> Result<std::path::PathBuf, Stop> {
    match given.value() {
        "" => Err(wrong(given, "the name of the folder is empty")),
        "-" => Err(wrong(given, crate::compat::NO_FOLDER)),
        name => Ok(name.into()),
    }
}

fn number<T: std::str::FromStr>(given: &ParsedOption<'_>, what: &str) -> Result<T, Stop> {
    let text = given.value();
    text.parse().map_err(|_| wrong(given, format!("bad {what} '{text}'")))
}

fn above_zero(given: &ParsedOption<'_>) -> Result<Span, Stop> {
    positive(given, given.value())
}

fn positive(given: &ParsedOption<'_>, text: &str) -> Result<Span, Stop> {
    match time(given, text)? {
        span if span > Span::ZERO => Ok(span),
        _ => Err(wrong(given, format!("bad time '{text}': it must be above zero"))),
    }
}

fn not_negative(given: &ParsedOption<'_>) -> Result<Span, Stop> {
    let text = given.value();
    match time(given, text)? {
        span if span.is_negative() => {
            Err(wrong(given, format!("bad time '{text}': it must not be negative")))
        }
        span => Ok(span),
    }
}

fn time(given: &ParsedOption<'_>, text: &str) -> Result<Span, Stop> {
    text.parse().map_err(|error| wrong(given, format!("bad time '{text}': {error}")))
}

fn wrong(given: &ParsedOption<'_>, reason: impl Display) -> Stop {
    Stop::usage(format!("{}: {reason}", given.name))
}

/// A contradiction between options, with the place in the file where one thread is described.
fn contradiction(error: &SpecError, spec: &RunSpec, file: &WorkloadFile) -> Stop {
    let text = match error {
        SpecError::NeverRuns { thread, start, .. } if *start >= spec.duration => format!(
            "-s: thread {thread} would start ({start}) when the run (-d {}) is over",
            spec.duration
        ),
        SpecError::NeverRuns { thread, start, finish } => {
            format!("-f: thread {thread} would finish ({finish}) before it starts (-s {start})")
        }
        other => other.to_string(),
    };
    match file.place_of(error) {
        "" => Stop::usage(text),
        place => Stop::usage(format!("{place}: {text}")),
    }
}
