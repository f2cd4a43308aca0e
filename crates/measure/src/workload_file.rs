//! Workload files: a run described in TOML, in the words of the command line; or a set of tasks in JSON, as of
//! rt-app, whose threads are run.
//!
//! Owns: the keys of the file, and where in it a mistake stands: every error carries line and
//! column, also one inside a value (`audio.toml:7:12: ...`).
//! Must not: run anything, print, know which option overrides which key (the command does).
//!
//! ```toml
//! duration = "5s"
//!
//! [[thread]]
//! workload = "PERIODIC 3ms 8ms"
//! priority = "RTMED"
//! timer = "HR"
//!
//! [[thread]]
//! count = 2                       # two alike
//! workload = "CPU_YIELD 0.9ms"
//! cpu = "0-1"
//! ```

mod limits;
mod request;
mod tasks;

use std::fmt;
use std::fs;
use std::io;
use std::ops::Range;
use std::path::Path;

use hourglass_documents::policy::PRIORITY_NAMES;
use hourglass_documents::{CpuSet, Policy, Reservation, ReservationKind, spelling};
use hourglass_time::Span;
use hourglass_workload::spec::MOST_THREADS;
use hourglass_workload::{Guard, RunSpec, SpecError, ThreadSpec, models, wake};
use serde::Deserialize;
use serde::de::{Deserializer, Visitor};
use thiserror::Error;
use toml::Spanned;

use crate::gates::Gates;

const ONLINE: &str = "/sys/devices/system/cpu/online";

/// A run as a file describes it. What the file does not say is `None`.
#[derive(Clone, Debug, Default)]
pub struct WorkloadFile {
    pub duration: Option<Span>,
    pub records: Option<u64>,
    /// Whether a full buffer keeps the newest records.
    pub ring: Option<bool>,
    /// How long each thread runs its loop before the run begins.
    pub warm_up: Option<Span>,
    /// Start of the random sequences.
    pub seed: Option<u64>,
    /// Latency in microseconds that `/dev/cpu_dma_latency` is to be held at.
    pub dma_latency_us: Option<u32>,
    /// Whether to go on, degraded, where the machine refuses something.
    pub best_effort: Option<bool>,
    pub guard: Guard,
    pub gates: Gates,
    /// Whether the kernel's events are recorded too.
    pub trace: Option<bool>,
    /// The threads, at least one; an entry with `count` stands here that many times.
    pub threads: Vec<ThreadSpec>,
    pub notes: Vec<String>,
    places: Vec<String>,
}

impl WorkloadFile {
    /// Where a thread is described, for messages: `audio.toml:7:1`, with its name if it has one.
    /// Empty if there is no such thread.
    pub fn place(&self, thread: usize) -> &str {
        self.places.get(thread).map_or("", String::as_str)
    }
}

#[derive(Debug, Error)]
pub enum WorkloadFileError {
    #[error("{path}: {source}")]
    Read { path: String, source: io::Error },
    #[error("{0}: no such file; `hourglass example` writes workload files to begin with")]
    Missing(String),
    #[error("{path}:{line}:{column}: {message}")]
    Wrong {
        path: String,
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        message: String,
    },
    #[error("{0}")]
    Tasks(String),
}

#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("CPU {missing} does not exist or is offline; online: {online}")]
pub struct NoSuchCpu {
    missing: CpuSet,
    online: CpuSet,
}

/// The CPUs that can run threads; `None` where the kernel does not tell.
pub fn online_cpus() -> Option<CpuSet> {
    fs::read_to_string(ONLINE).ok()?.trim().parse().ok()
}

/// That every CPU of `wanted` is among those `online`. Passes where these are not known.
///
/// # Errors
/// Those that are not.
pub fn check_cpus(wanted: &CpuSet, online: Option<&CpuSet>) -> Result<(), NoSuchCpu> {
    let Some(online) = online else { return Ok(()) };
    let missing = wanted.difference(online);
    if missing.is_empty() {
        return Ok(());
    }
    Err(NoSuchCpu { missing, online: online.clone() })
}

/// Reads a priority: the policy, and whether it is one of the paper's eight names.
///
/// # Errors
/// The text is no priority.
pub fn read_priority(
    text: &str,
) -> Result<(Policy, bool), hourglass_documents::policy::ParsePolicyError> {
    let is_named = PRIORITY_NAMES.iter().any(|(name, _)| *name == text);
    Ok((text.parse()?, is_named))
}

/// Reads a seed: decimal, or hexadecimal behind `0x`.
///
/// # Errors
/// A text that says what would be one.
pub fn read_seed(text: &str) -> Result<u64, String> {
    match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    }
    .map_err(|_| {
        format!("bad seed '{text}': give a number from 0 to 2^64-1, for example 42 or 0x5eed")
    })
}

/// Reads a workload file of this machine.
///
/// # Errors
/// It cannot be read, or something in it is wrong.
pub fn read(path: &Path) -> Result<WorkloadFile, WorkloadFileError> {
    let name = path.display().to_string();
    match read_text(path) {
        Ok(text) => parse(&name, &text, online_cpus().as_ref()),
        Err(source) if source.kind() == io::ErrorKind::NotFound => {
            Err(WorkloadFileError::Missing(name))
        }
        Err(source) => Err(WorkloadFileError::Read { path: name, source }),
    }
}

/// No workload file is longer; a device or a pipe may never end.
const LONGEST_FILE: u64 = 1 << 20;

fn read_text(path: &Path) -> io::Result<String> {
    let facts = fs::metadata(path)?;
    if facts.is_dir() || !facts.is_file() {
        return Err(io::Error::other("not a regular file"));
    }
    if facts.len() > LONGEST_FILE {
        return Err(io::Error::other("longer than 1 MiB; a workload file is a few lines"));
    }
    fs::read_to_string(path)
}

/// Reads the text of a workload file for a machine with the CPUs `online`; `name` stands in
/// messages.
///
/// # Errors
/// Something in it is wrong.
pub fn parse(
    name: &str,
    text: &str,
    online: Option<&CpuSet>,
) -> Result<WorkloadFile, WorkloadFileError> {
    if tasks::is_json(text) {
        return tasks::read(name, text, online);
    }
    let source = Source { name, text, online };
    let keys: FileKeys = toml::from_str(text).map_err(|error| {
        let message = match of_tasks(text) {
            Some(message) => message.to_owned(),
            None => {
                let message = error.message().trim().replace('\n', ", ");
                spelling::unknown_key(&message).unwrap_or(message)
            }
        };
        source.wrong(error.span().unwrap_or(0..0), message)
    })?;
    source.file(keys)
}

/// The remedy where the file holds tasks, which other commands read.
fn of_tasks(text: &str) -> Option<&'static str> {
    text.lines().any(|line| line.trim_start().starts_with("[[task]]")).then_some(
        "this is a file of tasks, and a workload file has threads; `hourglass predict` runs tasks, \
         check and simulate judge them",
    )
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FileKeys {
    duration: Option<Spanned<String>>,
    records: Option<u64>,
    ring: Option<bool>,
    warm_up: Option<Spanned<String>>,
    seed: Option<Spanned<Word>>,
    gap: Option<Spanned<String>>,
    dma_latency_us: Option<u32>,
    best_effort: Option<bool>,
    max_latency: Option<Spanned<String>>,
    max_gap: Option<Spanned<String>>,
    max_misses: Option<u64>,
    percentile: Option<Spanned<limits::Percentiles>>,
    stop_on_gap: Option<Spanned<String>>,
    stop_on_latency: Option<Spanned<String>>,
    on_hit: Option<String>,
    trace: Option<bool>,
    #[serde(default)]
    thread: Vec<Spanned<ThreadKeys>>,
}

/// The keys of a `[[thread]]`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ThreadKeys {
    name: Option<String>,
    count: Option<Spanned<usize>>,
    workload: Option<Spanned<String>>,
    priority: Option<Spanned<String>>,
    /// Another name for the same.
    policy: Option<Spanned<String>>,
    timer: Option<Spanned<String>>,
    cpu: Option<Spanned<Word>>,
    reserve: Option<Spanned<ReserveKeys>>,
    start: Option<Spanned<String>>,
    finish: Option<Spanned<String>>,
    gap: Option<Spanned<String>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ReserveKeys {
    amount: Spanned<String>,
    period: Spanned<String>,
    #[serde(default)]
    soft: bool,
}

/// A text, or a whole number written without quotes: `cpu = 0`, `seed = 42`.
struct Word(String);

impl<'de> Deserialize<'de> for Word {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Word, D::Error> {
        struct WordVisitor;
        impl Visitor<'_> for WordVisitor {
            type Value = Word;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a number or a text")
            }
            fn visit_str<E>(self, text: &str) -> Result<Word, E> {
                Ok(Word(text.to_owned()))
            }
            fn visit_i64<E>(self, number: i64) -> Result<Word, E> {
                Ok(Word(number.to_string()))
            }
        }
        deserializer.deserialize_any(WordVisitor)
    }
}

impl ThreadKeys {
    fn priority(&self) -> Option<&Spanned<String>> {
        self.priority.as_ref().or(self.policy.as_ref())
    }
}

type FileResult<T> = Result<T, WorkloadFileError>;

/// The text that is read, to tell where a mistake stands.
struct Source<'a> {
    name: &'a str,
    text: &'a str,
    online: Option<&'a CpuSet>,
}

impl Source<'_> {
    fn file(&self, keys: FileKeys) -> FileResult<WorkloadFile> {
        let gap = self.optional(keys.gap.as_ref(), Self::above_zero)?;
        let mut file = WorkloadFile {
            duration: self.optional(keys.duration.as_ref(), Self::above_zero)?,
            records: keys.records,
            ring: keys.ring,
            warm_up: self.optional(keys.warm_up.as_ref(), Self::not_negative)?,
            seed: self.optional(keys.seed.as_ref(), |word| read_seed(&word.0))?,
            dma_latency_us: keys.dma_latency_us,
            best_effort: keys.best_effort,
            guard: self.guard(&keys)?,
            gates: self.gates(&keys)?,
            trace: keys.trace,
            threads: Vec::new(),
            notes: Vec::new(),
            places: Vec::new(),
        };
        for entry in &keys.thread {
            self.thread(entry, gap, &mut file)?;
        }
        if file.threads.is_empty() {
            let message = "no threads; add a table [[thread]] for each".to_owned();
            return Err(self.wrong(0..0, message));
        }
        Ok(file)
    }

    /// Adds what one `[[thread]]` describes.
    fn thread(
        &self,
        entry: &Spanned<ThreadKeys>,
        gap: Option<Span>,
        file: &mut WorkloadFile,
    ) -> FileResult<()> {
        let keys = entry.get_ref();
        let room = MOST_THREADS.saturating_sub(file.threads.len());
        let count = self.optional(keys.count.as_ref(), |count| match *count {
            0 => Err("count must be at least 1".to_owned()),
            n if n > room => Err(format!("more than {MOST_THREADS} threads")),
            n => Ok(n),
        })?;
        let count = count.unwrap_or(1);
        if count > room {
            return Err(self.wrong(entry.span(), format!("more than {MOST_THREADS} threads")));
        }
        let thread = self.thread_spec(keys, gap)?;
        self.check(keys, entry.span(), &thread)?;
        let (line, column) = self.line_and_column(entry.span().start);
        let name = keys.name.as_ref().map_or(String::new(), |name| format!(" ({name})"));
        let place = format!("{}:{line}:{column}{name}", self.name);
        file.threads.extend(std::iter::repeat_n(thread, count));
        file.places.extend(std::iter::repeat_n(place, count));
        Ok(())
    }

    fn thread_spec(&self, keys: &ThreadKeys, gap: Option<Span>) -> FileResult<ThreadSpec> {
        if let (Some(_), Some(policy)) = (&keys.priority, &keys.policy) {
            let message = "policy and priority are the same; give one of them".to_owned();
            return Err(self.wrong(policy.span(), message));
        }
        let mut thread = ThreadSpec { name: keys.name.clone(), ..ThreadSpec::default() };
        let workload = self.optional(keys.workload.as_ref(), |text| {
            models::parse(&text.split_whitespace().collect::<Vec<_>>())
        })?;
        if let Some(model) = workload {
            thread.model = model;
        }
        if let Some(method) = self.optional(keys.timer.as_ref(), |text| wake::parse(text))? {
            thread.wake = method;
        }
        if let Some((policy, is_named)) =
            self.optional(keys.priority(), |text| read_priority(text))?
        {
            thread.policy = policy;
            thread.policy_is_named = is_named;
        }
        thread.reservation = match &keys.reserve {
            Some(reserve) => Some(self.reservation(reserve)?),
            None => None,
        };
        thread.cpus = self.optional(keys.cpu.as_ref(), |word| self.cpus(&word.0))?;
        thread.start =
            self.optional(keys.start.as_ref(), Self::not_negative)?.unwrap_or(Span::ZERO);
        thread.finish = self.optional(keys.finish.as_ref(), Self::not_negative)?;
        thread.gap = self.optional(keys.gap.as_ref(), Self::above_zero)?.or(gap);
        Ok(thread)
    }

    fn reservation(&self, keys: &Spanned<ReserveKeys>) -> FileResult<Reservation> {
        let ReserveKeys { amount, period, soft } = keys.get_ref();
        let strength = if *soft { ReservationKind::Soft } else { ReservationKind::Hard };
        let budget = self.required(amount, Self::above_zero)?;
        let period = self.required(period, Self::above_zero)?;
        Reservation::new(budget, period, strength)
            .map_err(|error| self.wrong(keys.span(), error.to_string()))
    }

    fn cpus(&self, text: &str) -> Result<CpuSet, String> {
        let cpus = text
            .parse()
            .map_err(|error: hourglass_documents::cpus::ParseCpuSetError| error.to_string())?;
        check_cpus(&cpus, self.online).map_err(|error| error.to_string())?;
        Ok(cpus)
    }

    /// That the keys of a thread do not contradict each other. The run's duration is left out,
    /// because the command line may change it.
    fn check(&self, keys: &ThreadKeys, entry: Range<usize>, thread: &ThreadSpec) -> FileResult<()> {
        let mut run = RunSpec::new(vec![thread.clone()]);
        run.duration = Span::MAX;
        let Err(error) = run.check() else { return Ok(()) };
        let place = |key: Option<&Spanned<String>>| key.map_or(entry.clone(), Spanned::span);
        let (span, message) = match error {
            SpecError::NeverRuns { start, finish, .. } => (
                place(keys.finish.as_ref()),
                format!("it finishes ({finish}) before it starts ({start})"),
            ),
            SpecError::PolicyAndReservation { policy, .. } => (
                place(keys.priority()),
                format!(
                    "priority {policy} contradicts reserve, which runs in the deadline class; \
                     drop one of them"
                ),
            ),
            SpecError::DeadlineWithoutTimes(_) => (
                place(keys.priority()),
                "priority DEADLINE needs times; give reserve, or a workload with a fixed amount \
                 and period"
                    .to_owned(),
            ),
            other => (entry.clone(), other.to_string()),
        };
        Err(self.wrong(span, message))
    }

    fn above_zero(text: &String) -> Result<Span, String> {
        match Self::time(text)? {
            span if span > Span::ZERO => Ok(span),
            _ => Err(format!("bad time '{text}': it must be above zero")),
        }
    }

    fn not_negative(text: &String) -> Result<Span, String> {
        match Self::time(text)? {
            span if span.is_negative() => {
                Err(format!("bad time '{text}': it must not be negative"))
            }
            span => Ok(span),
        }
    }

    fn time(text: &str) -> Result<Span, String> {
        text.parse()
            .map_err(|error: hourglass_time::ParseSpanError| format!("bad time '{text}': {error}"))
    }

    fn optional<T, V, E: fmt::Display>(
        &self,
        key: Option<&Spanned<T>>,
        read: impl Fn(&T) -> Result<V, E>,
    ) -> FileResult<Option<V>> {
        key.map(|key| self.required(key, read)).transpose()
    }

    fn required<T, V, E: fmt::Display>(
        &self,
        key: &Spanned<T>,
        read: impl Fn(&T) -> Result<V, E>,
    ) -> FileResult<V> {
        read(key.get_ref()).map_err(|error| self.wrong(key.span(), error.to_string()))
    }

    fn wrong(&self, span: Range<usize>, message: String) -> WorkloadFileError {
        let (line, column) = self.line_and_column(span.start);
        // A value may have line breaks, and an error is one line.
        let message = message.replace(char::is_control, " ");
        WorkloadFileError::Wrong { path: self.name.to_owned(), line, column, message }
    }

    /// Line and column, both from 1, of a byte offset; the column counts characters.
    fn line_and_column(&self, offset: usize) -> (usize, usize) {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        let line = before.bytes().filter(|byte| *byte == b'\n').count() + 1;
        (line, before[line_start..].chars().count() + 1)
    }
}

#[cfg(test)]
mod tests;
