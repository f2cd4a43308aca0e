//! From the letters to a run.

use std::path::PathBuf;

use clap::ValueEnum;
use hourglass_documents::{CpuSet, Policy, spelling};
use hourglass_time::Span;

use super::options::{self, LatencyOption};
use crate::compat::short_options::{LetterOption, LetterTokens, ParsedCommand, lex, table};
use crate::compat::{HostCpus, top, values};
use crate::exit::Stop;
use crate::lab::{Gates, Limit, MOST_THREADS, RunSpec, Steps, ThreadSpec, models, wake};
use crate::settings::{Colour, Settings};

/// Without `-D` and `-l`: longer than any run, and short enough for every counter.
const ENDLESS: Span = Span::from_secs(10 * 365 * 86_400);

/// What leaves a CPU for `--top`.
const ELSEWHERE: &str = "pin the threads (-a CPU), or name CPUs for the main thread (--mainaffinity CPUS), also measured ones";

/// cyclictest's defaults.
const INTERVAL: Span = Span::from_micros(1_000);
const DISTANCE: Span = Span::from_micros(500);

/// Most rows of a histogram: a second in microseconds, as cyclictest has it.
const MOST_ROWS: usize = 1_000_000;

/// What `latency` is asked to do.
#[derive(Debug)]
pub(super) struct Latency {
    pub(super) spec: RunSpec,
    pub(super) gates: Gates,
    /// Whether the kernel's events are recorded.
    pub(super) trace: bool,
    /// Whether it is shown while it goes on.
    pub(super) top: bool,
    pub(super) folder: Option<PathBuf>,
    /// What to hold `/dev/cpu_dma_latency` at, us; `None` leaves it alone.
    pub(super) idle_latency_us: Option<u32>,
    /// Whether the machine refused to hold it, although no option requested it.
    pub(super) idle_refused: bool,
    pub(super) view: View,
    pub(super) settings: Settings,
}

/// How the result is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct View {
    pub(super) nanos: bool,
    pub(super) on_max: bool,
    pub(super) samples: bool,
    pub(super) histogram: bool,
    pub(super) sums: bool,
    pub(super) histogram_file: Option<PathBuf>,
    pub(super) json_file: Option<PathBuf>,
    /// Priorities and intervals (us) of the threads.
    pub(super) threads: Vec<(u8, u64)>,
}

/// What was given, before it is put on threads.
#[derive(Debug, Default)]
struct LatencyOptions {
    /// `None`: not pinned.
    cpus: Option<CpuSet>,
    threads: Option<usize>,
    align: Option<Span>,
    interval: Option<Span>,
    distance: Option<Span>,
    duration: Option<Span>,
    loops: Option<u64>,
    priority: u8,
    policy: Option<Class>,
    spread: bool,
    smp: bool,
    rows: Option<usize>,
    idle: Idle,
    rephase: bool,
    timer: Option<std::sync::Arc<dyn wake::WakeUpMethod>>,
    records: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default)]
enum Idle {
    #[default]
    Zero,
    At(u32),
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Other,
    Batch,
    Idle,
    Fifo,
    RoundRobin,
}

/// Reads the words behind `latency`.
///
/// # Errors
/// The first thing that is wrong, in one line that names the option.
pub(super) fn parse(words: &[String], machine: &HostCpus) -> Result<ParsedCommand<Latency>, Stop> {
    if words.iter().any(|word| word == "--help") {
        return Ok(ParsedCommand::Help);
    }
    let lexed = lex(words, &table(&options::GROUPS))?;
    refuse_words(&lexed)?;
    let mut asked = LatencyOptions::default();
    let mut run = Latency {
        spec: RunSpec::new(Vec::new()),
        gates: Gates::default(),
        trace: false,
        top: false,
        folder: None,
        idle_latency_us: None,
        idle_refused: false,
        view: View::default(),
        settings: Settings::default(),
    };
    for given in &lexed.options {
        take_timing(&mut asked, &mut run, given)?;
        take_threads(&mut asked, &mut run, given, machine)?;
        take_limits(&mut run, given)?;
        take_output(&mut asked, &mut run, given)?;
    }
    finish(&asked, &mut run, machine)?;
    Ok(ParsedCommand::Run(Box::new(run)))
}

fn refuse_words<K>(lexed: &LetterTokens<'_, K>) -> Result<(), Stop> {
    let Some(word) = lexed.words.first() else { return Ok(()) };
    let meant = if word.ends_with(".json") { "; did you mean --json=FILE?" } else { "" };
    Err(Stop::usage(format!("'{word}' belongs to no option{meant}")))
}

/// When threads wake and when the run ends.
fn take_timing(
    asked: &mut LatencyOptions,
    run: &mut Latency,
    given: &LetterOption<'_, LatencyOption>,
) -> Result<(), Stop> {
    match given.key {
        LatencyOption::Interval => asked.interval = Some(values::above_zero(given, "us")?),
        LatencyOption::Distance => asked.distance = Some(values::time(given, "us")?),
        LatencyOption::Duration => asked.duration = Some(values::above_zero(given, "s")?),
        LatencyOption::Loops => {
            let loops: u64 = values::number(given, "number of loops")?;
            asked.loops = (loops > 0).then_some(loops);
        }
        LatencyOption::Align => asked.align = Some(values::time(given, "us")?),
        LatencyOption::WholeSecond => {
            run.spec.whole_second = true;
            asked.align = Some(given.value.map_or(Ok(Span::ZERO), |_| values::time(given, "us"))?);
        }
        LatencyOption::Clock if given.text() != "0" => {
            return Err(
                given.wrong(format!("clock {} is not there; 0, CLOCK_MONOTONIC, is", given.text()))
            );
        }
        LatencyOption::Rephase => asked.rephase = true,
        LatencyOption::Timer => {
            asked.timer = Some(wake::parse(given.text()).map_err(|error| given.wrong(error))?);
        }
        _ => {}
    }
    Ok(())
}

/// How many threads, where, and how urgent.
fn take_threads(
    asked: &mut LatencyOptions,
    run: &mut Latency,
    given: &LetterOption<'_, LatencyOption>,
    machine: &HostCpus,
) -> Result<(), Stop> {
    match given.key {
        LatencyOption::Threads => {
            let all = machine.cpus.len().max(1);
            let count =
                given.value.map_or(Ok(all), |_| values::number(given, "number of threads"))?;
            if !(1..=MOST_THREADS).contains(&count) {
                return Err(given.wrong(format!("give a number from 1 to {MOST_THREADS}")));
            }
            asked.threads = Some(count);
        }
        LatencyOption::Affinity => {
            asked.cpus = Some(match given.value {
                Some(_) => values::cpus(given, machine)?,
                None => machine.cpus.clone(),
            });
        }
        LatencyOption::MainAffinity => run.spec.watch_on = Some(values::cpus(given, machine)?),
        LatencyOption::Priority => asked.priority = values::priority(given, 0)?,
        LatencyOption::Policy => asked.policy = Some(class(given)?),
        LatencyOption::Spread => asked.spread = true,
        LatencyOption::Smp => asked.smp = true,
        LatencyOption::KeepPower => asked.idle = Idle::Leave,
        LatencyOption::IdleLatency => asked.idle = Idle::At(values::number(given, "number of us")?),
        LatencyOption::BestEffort => run.spec.best_effort = true,
        LatencyOption::Trace => run.trace = true,
        LatencyOption::Top => run.top = true,
        _ => {}
    }
    Ok(())
}

fn take_limits(run: &mut Latency, given: &LetterOption<'_, LatencyOption>) -> Result<(), Stop> {
    match given.key {
        LatencyOption::Break => run.spec.guard.stop_on_latency = Some(values::time(given, "us")?),
        LatencyOption::MaxLatency => run.gates.set(Limit::MaxLatency(values::time(given, "us")?)),
        LatencyOption::MaxGap => run.gates.set(Limit::MaxGap(values::time(given, "us")?)),
        LatencyOption::MaxMisses => {
            run.gates.set(Limit::MaxMisses(values::number(given, "number of intervals")?));
        }
        LatencyOption::Percentile => {
            let limit = Limit::percentile(given.text()).map_err(|error| given.wrong(error))?;
            run.gates.set(limit);
        }
        LatencyOption::OnHit => run.gates.on_hit = Some(given.text().to_owned()),
        _ => {}
    }
    Ok(())
}

fn take_output(
    asked: &mut LatencyOptions,
    run: &mut Latency,
    given: &LetterOption<'_, LatencyOption>,
) -> Result<(), Stop> {
    let view = &mut run.view;
    match given.key {
        LatencyOption::Histogram | LatencyOption::HistogramOfAll => {
            let rows: usize = values::number(given, "number of rows")?;
            if !(1..=MOST_ROWS).contains(&rows) {
                return Err(given.wrong(format!("give a number of rows from 1 to {MOST_ROWS}")));
            }
            asked.rows = Some(rows);
            view.histogram = true;
            view.sums |= given.key == LatencyOption::HistogramOfAll;
        }
        LatencyOption::HistogramFile => view.histogram_file = Some(given.text().into()),
        LatencyOption::OnMax => view.on_max = true,
        LatencyOption::Nanos => view.nanos = true,
        LatencyOption::Samples => view.samples = true,
        LatencyOption::Folder => run.folder = Some(folder(given)?),
        LatencyOption::Records => asked.records = Some(values::number(given, "number of records")?),
        LatencyOption::Json => match given.value {
            Some(file) => view.json_file = Some(file.into()),
            None => run.settings.json = true,
        },
        LatencyOption::Quiet => run.settings.quiet = true,
        LatencyOption::Colour => {
            run.settings.color = Colour::from_str(given.text(), false).map_err(|_| {
                given.wrong(spelling::unknown("word", given.text(), ["auto", "always", "never"]))
            })?;
        }
        _ => {}
    }
    Ok(())
}

/// cyclictest's `-o 4` must not make a folder of that name.
fn folder(given: &LetterOption<'_, LatencyOption>) -> Result<PathBuf, Stop> {
    match given.text() {
        "" => Err(given.wrong("the name of the folder is empty")),
        "-" => Err(given.wrong(crate::compat::NO_FOLDER)),
        text if text.bytes().all(|byte| byte.is_ascii_digit()) => Err(given.wrong(format!(
            "no oscilloscope mode; -v prints every sample (a folder of that name is -o ./{text})"
        ))),
        text => Ok(text.into()),
    }
}

fn class(given: &LetterOption<'_, LatencyOption>) -> Result<Class, Stop> {
    match given.text().to_ascii_lowercase().as_str() {
        "other" | "normal" => Ok(Class::Other),
        "batch" => Ok(Class::Batch),
        "idle" => Ok(Class::Idle),
        "fifo" => Ok(Class::Fifo),
        "rr" => Ok(Class::RoundRobin),
        other => {
            let known = ["other", "normal", "batch", "idle", "fifo", "rr"];
            Err(given.wrong(spelling::unknown("policy", other, known)))
        }
    }
}

/// Puts it together.
fn finish(asked: &LatencyOptions, run: &mut Latency, machine: &HostCpus) -> Result<(), Stop> {
    if asked.rephase && asked.loops.is_some() {
        return Err(Stop::usage("--rephase: -l counts wake-ups on a grid; give -D instead"));
    }
    if run.view.histogram_file.is_some() && !run.view.histogram {
        return Err(Stop::usage("--histfile: no histogram is collected; give -h USEC or -H USEC"));
    }
    let alike = asked.smp || run.view.histogram;
    let all = machine.cpus.len().max(1);
    let count = asked.threads.unwrap_or(if asked.smp { all } else { 1 });
    let cpus = asked.cpus.clone().or_else(|| asked.smp.then(|| machine.cpus.clone()));
    let cpus: Vec<u32> = cpus.iter().flat_map(CpuSet::iter).collect();
    let first = asked.interval.unwrap_or(INTERVAL);
    let distance = asked.distance.unwrap_or(if alike { Span::ZERO } else { DISTANCE });
    let width_ns = if run.view.nanos { 1 } else { 1_000 };
    let spec = &mut run.spec;
    spec.duration = asked.duration.unwrap_or(ENDLESS);
    spec.records = asked.records.unwrap_or(spec.records).max(count as u64);
    spec.snapshots = true;
    for number in 0..count {
        let step = i64::try_from(number).unwrap_or(i64::MAX);
        let interval = distance
            .checked_mul(step)
            .and_then(|longer| longer.checked_add(first))
            .ok_or_else(|| Stop::usage("-d: the last thread's interval is beyond all times"))?;
        let (policy, priority) = policy(asked, alike, number);
        let own = if cpus.is_empty() { None } else { cpus.get(number % cpus.len()) };
        let start = phase(asked, interval, step, count);
        let model = match asked.rephase {
            true => models::parse(&["LAT", &interval.to_string()])
                .map_err(|error| Stop::usage(format!("-i: {error}")))?,
            false => models::on_grid(interval, asked.loops),
        };
        spec.threads.push(ThreadSpec {
            model,
            policy,
            policy_is_named: false,
            wake: asked.timer.clone().unwrap_or_else(wake::default_method),
            cpus: own.map(|cpu| [*cpu].into_iter().collect()),
            start: if start < spec.duration { start } else { Span::ZERO },
            steps: asked.rows.map(|count| Steps { width_ns, count }),
            ..ThreadSpec::default()
        });
        run.view.threads.push((priority, interval.nanos_or_zero() / 1_000));
    }
    (run.idle_latency_us, run.idle_refused) = match asked.idle {
        Idle::Leave => (None, false),
        Idle::At(us) => (Some(us), false),
        Idle::Zero if machine.holds_latency => (Some(0), false),
        Idle::Zero => (None, true),
    };
    run.spec.check().map_err(|error| Stop::usage(error.to_string()))?;
    run.gates.check(&run.spec).map_err(|error| Stop::usage(error.to_string()))?;
    match run.top {
        true => top::check(&run.spec, &run.settings, machine, ELSEWHERE),
        false => Ok(()),
    }
}

/// When a thread's grid begins. Spread over the interval, so that threads do not wake all at once, unless an option
/// gives their distance.
fn phase(asked: &LatencyOptions, interval: Span, number: i64, count: usize) -> Span {
    let share = |span: Span| {
        let count = i64::try_from(count).unwrap_or(i64::MAX).max(1);
        Span::from_nanos(
            i64::try_from(i128::from(span.nanos()) * i128::from(number) / i128::from(count))
                .unwrap_or(0),
        )
    };
    match asked.align {
        Some(offset) => offset.checked_mul(number).unwrap_or(Span::ZERO),
        None => share(interval),
    }
}

/// The policy of thread `number`, and the priority that is shown.
fn policy(asked: &LatencyOptions, alike: bool, number: usize) -> (Policy, u8) {
    let further = u8::try_from(number).unwrap_or(u8::MAX);
    let class = asked.policy.unwrap_or(match asked.priority {
        0 => Class::Other,
        _ => Class::Fifo,
    });
    // A real-time policy without a priority gets the lowest.
    let first = asked.priority.max(1);
    let priority = match (alike, asked.spread) {
        (_, true) => first.saturating_add(further).min(99),
        (true, false) => first,
        (false, false) => first.saturating_sub(further).max(1),
    };
    match class {
        Class::Other => (Policy::Other(0), 0),
        Class::Batch => (Policy::Batch, 0),
        Class::Idle => (Policy::Idle, 0),
        Class::Fifo => (Policy::Fifo(priority), priority),
        Class::RoundRobin => (Policy::RoundRobin(priority), priority),
    }
}
