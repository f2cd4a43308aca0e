//! From the letters to a run.

use std::path::PathBuf;
use std::sync::Arc;

use hourglass_documents::{CpuSet, Policy, spelling};
use hourglass_time::Span;

use super::options::LANGUAGE;
use crate::compat::{HostCpus, ParsedCommand, check, top};
use crate::exit::Stop;
use crate::lab::{MOST_THREADS, RunOptions, RunSpec, Steps, ThreadSpec, models, wake};
use crate::options::shared::{self, LoadDraft, Measuring, PeerMeasuring};
use crate::options::{Applied, OptionValues};
use crate::progress::ENDLESS;
use crate::result_files::ResultFiles;
use crate::settings::Settings;

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
    pub(super) request: RunOptions,
    /// Whether it is shown while it goes on.
    pub(super) top: bool,
    /// Whether the machine refused to hold `/dev/cpu_dma_latency`, although no option requested it.
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
    pub(super) files: ResultFiles,
    /// Priorities and intervals (us) of the threads.
    pub(super) threads: Vec<(u8, u64)>,
}

/// What was given, before it is put on threads.
#[derive(Debug)]
pub(crate) struct LatencyDraft {
    pub(super) run: Latency,
    pub(super) machine: HostCpus,
    /// `None`: not pinned.
    pub(super) cpus: Option<CpuSet>,
    pub(super) threads: Option<usize>,
    pub(super) align: Option<Span>,
    pub(super) interval: Span,
    pub(super) distance: Option<Span>,
    pub(super) duration: Span,
    pub(super) loops: Option<u64>,
    pub(super) priority: u8,
    pub(super) policy: Option<Class>,
    pub(super) spread: bool,
    pub(super) smp: bool,
    pub(super) rephase: bool,
    pub(super) timer: Option<Arc<dyn wake::WakeUpMethod>>,
    /// Rows of the histogram.
    pub(super) rows: Option<usize>,
    pub(super) idle: Idle,
    pub(super) load: LoadDraft,
}

impl Measuring for LatencyDraft {
    const LIMIT_UNIT: &str = "us";

    fn request(&mut self) -> &mut RunOptions {
        &mut self.run.request
    }

    fn settings(&mut self) -> &mut Settings {
        &mut self.run.settings
    }

    fn files(&mut self) -> &mut ResultFiles {
        &mut self.run.view.files
    }
}

impl PeerMeasuring for LatencyDraft {
    fn json_file(&mut self) -> &mut Option<PathBuf> {
        &mut self.run.view.json_file
    }

    fn machine(&self) -> &HostCpus {
        &self.machine
    }

    fn load(&mut self) -> &mut LoadDraft {
        &mut self.load
    }
}

/// What is done with `/dev/cpu_dma_latency`.
#[derive(Clone, Copy, Debug)]
pub(super) enum Idle {
    Zero,
    At(u32),
    Leave,
}

hourglass_documents::named_enum! {
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) enum Class {
        Other => "other",
        Batch => "batch",
        Idle => "idle",
        Fifo => "fifo",
        RoundRobin => "rr",
    }
}

impl Class {
    fn is_real_time(self) -> bool {
        matches!(self, Class::Fifo | Class::RoundRobin)
    }
}

/// Reads the words behind `latency`.
///
/// # Errors
/// The first thing that is wrong, in one line that names the option.
pub(super) fn parse(words: &[String], machine: &HostCpus) -> Result<ParsedCommand<Latency>, Stop> {
    if LANGUAGE.asks_for_help(words) {
        return Ok(ParsedCommand::Help);
    }
    let tokens = LANGUAGE.lex(words)?;
    if let Some((_, word)) = tokens.words.first() {
        let meant = if word.ends_with(".json") { "; did you mean --json=FILE?" } else { "" };
        return Err(Stop::usage(format!("'{word}' belongs to no option{meant}")));
    }
    let mut draft = LatencyDraft {
        run: Latency {
            request: RunOptions::new(RunSpec::new(Vec::new())),
            top: false,
            idle_refused: false,
            view: View::default(),
            settings: Settings::default(),
        },
        machine: machine.clone(),
        cpus: None,
        threads: None,
        align: None,
        interval: INTERVAL,
        distance: None,
        duration: ENDLESS,
        loops: None,
        priority: 0,
        policy: None,
        spread: false,
        smp: false,
        rephase: false,
        timer: None,
        rows: None,
        idle: Idle::Zero,
        load: LoadDraft::default(),
    };
    tokens.options.iter().try_for_each(|token| token.apply(&mut draft))?;
    finish(draft).map(|run| ParsedCommand::Run(Box::new(run)))
}

pub(super) fn clock(_: &mut LatencyDraft, given: &OptionValues<'_>) -> Applied {
    match given.text() {
        "0" => Ok(()),
        other => Err(given.wrong(format!("clock {other} is not there; 0, CLOCK_MONOTONIC, is"))),
    }
}

pub(super) fn threads(to: &mut LatencyDraft, given: &OptionValues<'_>) -> Applied {
    let all = to.machine.cpus.len().max(1);
    let count = match given.value() {
        Some(_) => given.number_in("number of threads", 1..=MOST_THREADS)?,
        None => all,
    };
    to.threads = Some(count);
    Ok(())
}

pub(super) fn histogram(to: &mut LatencyDraft, given: &OptionValues<'_>) -> Applied {
    to.rows = Some(given.number_in("number of rows", 1..=MOST_ROWS)?);
    to.run.view.histogram = true;
    Ok(())
}

/// cyclictest's `-o 4` must not make a folder of that name.
pub(super) fn folder(to: &mut LatencyDraft, given: &OptionValues<'_>) -> Applied {
    let text = given.text();
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(given.wrong(format!(
            "no oscilloscope mode; -v prints every sample (a folder of that name is -o ./{text})"
        )));
    }
    shared::folder(to, given)
}

pub(super) fn class(to: &mut LatencyDraft, given: &OptionValues<'_>) -> Applied {
    let text = given.text().to_ascii_lowercase();
    let name = if text == "normal" { "other" } else { &text };
    let unknown = || {
        let known = Class::ALL.map(Class::name).into_iter().chain(["normal"]);
        given.wrong(spelling::unknown("policy", &text, known))
    };
    to.policy = Some(Class::from_name(name).ok_or_else(unknown)?);
    Ok(())
}

/// Puts it together.
fn finish(draft: LatencyDraft) -> Result<Latency, Stop> {
    let asked = &draft;
    let view = &asked.run.view;
    if asked.rephase && asked.loops.is_some() {
        return Err(Stop::usage("--rephase: -l counts wake-ups on a grid; give -D instead"));
    }
    if view.histogram_file.is_some() && !view.histogram {
        return Err(Stop::usage("--histfile: no histogram is collected; give -h USEC or -H USEC"));
    }
    if let Some(class) = asked.policy.filter(|class| asked.priority > 0 && !class.is_real_time()) {
        return Err(Stop::usage(format!(
            "-p {}: --policy {} has no real-time priorities; give --policy fifo (or rr), or leave one of the two out",
            asked.priority,
            class.name()
        )));
    }
    let alike = asked.smp || view.histogram;
    let all = asked.machine.cpus.len().max(1);
    let count = asked.threads.unwrap_or(if asked.smp { all } else { 1 });
    let mut threads = Vec::new();
    let mut shown = Vec::new();
    for number in 0..count {
        let (thread, priority, interval) = thread(asked, alike, number, count)?;
        threads.push(thread);
        shown.push((priority, interval.nanos_or_zero() / 1_000));
    }
    let (idle_latency_us, idle_refused) = match asked.idle {
        Idle::Leave => (None, false),
        Idle::At(us) => (Some(us), false),
        Idle::Zero if asked.machine.holds_latency => (Some(0), false),
        Idle::Zero => (None, true),
    };
    let LatencyDraft { mut run, machine, duration, load, .. } = draft;
    run.request.load = load.finish()?;
    run.view.threads = shown;
    run.idle_refused = idle_refused;
    run.request.dma_latency_us = idle_latency_us;
    let spec = &mut run.request.spec;
    spec.duration = duration;
    spec.records = spec.records.max(count as u64);
    spec.snapshots = true;
    spec.threads = threads;
    check(&run.request)?;
    if run.top {
        top::check(&run.request.spec, &run.settings, &machine, ELSEWHERE)?;
    }
    Ok(run)
}

/// Thread `number` of `count`, with the priority that is shown and its interval.
fn thread(
    asked: &LatencyDraft,
    alike: bool,
    number: usize,
    count: usize,
) -> Result<(ThreadSpec, u8, Span), Stop> {
    let cpus = asked.cpus.as_ref().or(asked.smp.then_some(&asked.machine.cpus));
    let cpus: Vec<u32> = cpus.into_iter().flat_map(CpuSet::iter).collect();
    let distance = asked.distance.unwrap_or(if alike { Span::ZERO } else { DISTANCE });
    let width_ns = if asked.run.view.nanos { 1 } else { 1_000 };
    let step = i64::try_from(number).unwrap_or(i64::MAX);
    let interval = distance
        .checked_mul(step)
        .and_then(|longer| longer.checked_add(asked.interval))
        .ok_or_else(|| Stop::usage("-d: the last thread's interval is beyond all times"))?;
    let (policy, priority) = policy(asked, alike, number);
    let own = if cpus.is_empty() { None } else { cpus.get(number % cpus.len()) };
    let start = phase(asked, interval, step, count);
    let model = match asked.rephase {
        true => models::parse(&["LAT", &interval.to_string()])
            .map_err(|error| Stop::usage(format!("-i: {error}")))?,
        false => models::on_grid(interval, asked.loops),
    };
    let thread = ThreadSpec {
        model,
        policy,
        policy_is_named: policy == Policy::Other(0),
        wake: asked.timer.clone().unwrap_or_else(wake::default_method),
        cpus: own.map(|cpu| [*cpu].into_iter().collect()),
        start: if start < asked.duration { start } else { Span::ZERO },
        steps: asked.rows.map(|count| Steps { width_ns, count }),
        ..ThreadSpec::default()
    };
    Ok((thread, priority, interval))
}

/// When a thread's grid begins. Spread over the interval, so that threads do not wake all at once, unless an option
/// gives their distance.
fn phase(asked: &LatencyDraft, interval: Span, number: i64, count: usize) -> Span {
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
fn policy(asked: &LatencyDraft, alike: bool, number: usize) -> (Policy, u8) {
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
