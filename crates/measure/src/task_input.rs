//! Sets of tasks from files and run folders.
//!
//! Owns: which format a file has, and what is refused before its reader sees it. Must not: judge the
//! tasks.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use hourglass_documents::CpuSet;
use hourglass_runs::store::{OpenError, TraceError};
use hourglass_tasks::rt_app::Imported;
use hourglass_tasks::{Format, TaskSet, TaskSetError};
use hourglass_time::Span;
use thiserror::Error;

use crate::workload_file::online_cpus;
use hourglass_runs::{RunContentsError, open_run, task_model};
use hourglass_sys::memory::has_room;

/// Maximum size of a file of tasks, bytes: 64 MiB. A thousand tasks take a tenth of one MiB.
pub const MOST_BYTES: u64 = 64 << 20;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Source {
    Toml,
    Json,
    RtApp,
    Foreign(Format),
    Run,
}

impl Source {
    /// All of them, by the names that `--from` takes.
    pub const ALL: [(&'static str, Source); 9] = [
        ("toml", Source::Toml),
        ("json", Source::Json),
        ("rt-app", Source::RtApp),
        ("schedcat", Source::Foreign(Format::SchedCat)),
        ("simso", Source::Foreign(Format::SimSo)),
        ("mast", Source::Foreign(Format::Mast)),
        ("amalthea", Source::Foreign(Format::Amalthea)),
        ("sag", Source::Foreign(Format::Sag)),
        ("run", Source::Run),
    ];
}

#[derive(Clone, Debug, PartialEq)]
pub struct Input {
    pub set: TaskSet,
    /// What was left out or means something else, one sentence each.
    pub notes: Vec<String>,
    /// For how long the file says that it runs.
    pub duration: Option<Span>,
    /// Whether the machine's CPUs were taken for those of threads that may run anywhere.
    pub runs_anywhere: bool,
}

impl Input {
    fn new(set: TaskSet, notes: Vec<String>) -> Input {
        Input { set, notes, duration: None, runs_anywhere: false }
    }

    /// Gives threads that may run anywhere these CPUs, where the file names none.
    pub fn on(mut self, cpus: Option<&CpuSet>) -> Input {
        if let Some(cpus) = cpus.filter(|_| self.runs_anywhere) {
            self.set.machine.cpus = Some(with_named(&self.set, cpus));
        }
        self
    }
}

fn with_named(set: &TaskSet, cpus: &CpuSet) -> CpuSet {
    let tasks = set.tasks.iter().map(|task| &task.cpus);
    let background = set.background.iter().map(|thread| &thread.cpus);
    let mut all = cpus.clone();
    for cpu in tasks.chain(background).flatten().flat_map(CpuSet::iter) {
        all.insert(cpu);
    }
    all
}

/// An rt-app file is of the machine on which it is used: its threads without `cpus` may run on all CPUs there.
fn rt_app(read: Imported, online: Option<CpuSet>) -> Input {
    let notes = read.notes.iter().map(ToString::to_string).collect();
    let mut set = read.set;
    set.horizon = read.duration.filter(|duration| duration.is_positive());
    let mut input = Input { duration: read.duration, ..Input::new(set, notes) };
    let set = &input.set;
    let tasks = set.tasks.iter().map(|task| &task.cpus);
    let anywhere = tasks.chain(set.background.iter().map(|thread| &thread.cpus));
    let anywhere = anywhere.filter(|cpus| cpus.is_none()).count();
    let Some(online) = online.filter(|_| anywhere > 0) else { return input };
    input.runs_anywhere = true;
    let input = input.on(Some(&online));
    if online.len() < 2 {
        return input;
    }
    let threads = if anywhere == 1 { "thread" } else { "threads" };
    let note = format!(
        "{anywhere} {threads} without cpus may run on every CPU of this machine ({online})"
    );
    Input { notes: input.notes.into_iter().chain([note]).collect(), ..input }
}

/// Why a set of tasks cannot be read. The text is one line with the culprit and the remedy.
#[derive(Debug, Error)]
pub enum InputError {
    #[error("{}: {reason}", .path.display())]
    Unreadable { path: PathBuf, reason: std::io::Error },
    #[error("{}: no such file; name a file of tasks, a run folder, or - for the standard input", .0.display())]
    Missing(PathBuf),
    /// A pipe, a socket or a device, which may never end.
    #[error("{}: no regular file; name one, or - for the standard input, as in: cat PIPE | hourglass check -", .0.display())]
    Special(PathBuf),
    #[error("{}: the file is empty; write a table [[task]] with name, wcet and period for each task", .0.display())]
    Empty(PathBuf),
    #[error("{}: more than {} MiB; that is not a file of tasks", .0.display(), MOST_BYTES >> 20)]
    TooLong(PathBuf),
    #[error("{}: no text: byte {at} is not UTF-8; give a file of tasks (TOML, JSON, rt-app) or a run folder", .path.display())]
    Binary {
        path: PathBuf,
        /// Position of the first such byte, from 0.
        at: usize,
    },
    #[error("{}: worked examples, not tasks; use hourglass check --corpus FOLDER", .0.display())]
    Corpus(PathBuf),
    #[error("{}: this looks like {what}", .path.display())]
    Unread { path: PathBuf, what: &'static str },
    #[error(transparent)]
    Folder(#[from] OpenError),
    #[error(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    TooMuch(#[from] RunContentsError),
    #[error("{}: {source}", .path.display())]
    Tasks { path: PathBuf, source: Box<TaskSetError> },
}

/// Reads a set of tasks; without `source`, the content decides the format.
///
/// # Errors
/// The file cannot be read, or what it says is no set of tasks.
pub fn read(path: &Path, source: Option<Source>) -> Result<Input, InputError> {
    if source == Some(Source::Run) || (source.is_none() && path.is_dir()) {
        return run_folder(path);
    }
    parse(path, &text(path)?, source)
}

/// Reads a set of tasks from its text; `path` stands in messages. A run folder has no text.
///
/// # Errors
/// What the text says is no set of tasks.
pub fn parse(path: &Path, text: &str, source: Option<Source>) -> Result<Input, InputError> {
    let wrong = |source| InputError::Tasks { path: path.to_owned(), source: Box::new(source) };
    let format = match source {
        Some(Source::Toml) => Format::Toml,
        Some(Source::Json) => Format::Json,
        Some(Source::RtApp) => Format::RtApp,
        Some(Source::Foreign(format)) => format,
        Some(Source::Run) | None => Format::of(text),
    };
    let plain = |set| Input::new(set, Vec::new());
    match format {
        Format::Toml => TaskSet::from_toml(text).map(plain).map_err(wrong),
        Format::Json => TaskSet::from_json(text).map(plain).map_err(wrong),
        Format::RtApp => {
            let read = TaskSet::from_rt_app(text).map_err(wrong)?;
            Ok(rt_app(read, online_cpus()))
        }
        Format::Corpus => Err(InputError::Corpus(path.to_owned())),
        Format::Unread(what) => Err(InputError::Unread { path: path.to_owned(), what }),
        foreign => match TaskSet::from_foreign(foreign, text) {
            Some(read) => {
                let read = read.map_err(wrong)?;
                Ok(Input::new(read.set, read.notes))
            }
            None => Err(InputError::Corpus(path.to_owned())),
        },
    }
}

fn run_folder(path: &Path) -> Result<Input, InputError> {
    let recalled = open_run(path)?;
    recalled.check_size(has_room)?;
    let wrong = |source| InputError::Tasks { path: path.to_owned(), source: Box::new(source) };
    let read = match recalled.document.result.watched.is_some() {
        true => TaskSet::from_model(&task_model::of_run(&recalled)?),
        false => {
            let intervals = recalled.intervals()?.collect::<Result<Vec<_>, _>>()?;
            TaskSet::from_run(&recalled.document.manifest, &intervals)
        }
    };
    let read = read.map_err(wrong)?;
    let mut notes = read.notes;
    notes.push(
        "execution times are the longest that the run has seen, which is not a bound".to_owned(),
    );
    Ok(Input::new(read.set, notes))
}

const STANDARD_INPUT: &str = "-";

/// Where a program's open files are, among them the pipes that a shell makes for `<(COMMAND)`: these have a writer.
const OPEN_FILES: [&str; 3] = ["/dev/stdin", "/dev/fd", "/proc/self/fd"];

/// The text of a file of at most [`MOST_BYTES`]; `-` is the standard input.
///
/// # Errors
/// It cannot be read, is empty, too long, or no text.
pub fn text(path: &Path) -> Result<String, InputError> {
    let unreadable = |reason: std::io::Error| match reason.kind() {
        ErrorKind::NotFound => InputError::Missing(path.to_owned()),
        _ => InputError::Unreadable { path: path.to_owned(), reason },
    };
    let mut bytes = Vec::new();
    let most = MOST_BYTES + 1;
    if path == Path::new(STANDARD_INPUT) {
        std::io::stdin().lock().take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    } else {
        let open = OPEN_FILES.iter().any(|open| path.starts_with(open));
        // Opening a pipe without a writer would wait for ever.
        if !open && !std::fs::metadata(path).map_err(unreadable)?.is_file() {
            return Err(InputError::Special(path.to_owned()));
        }
        let file = File::open(path).map_err(unreadable)?;
        file.take(most).read_to_end(&mut bytes).map_err(unreadable)?;
    }
    if bytes.len() as u64 > MOST_BYTES {
        return Err(InputError::TooLong(path.to_owned()));
    }
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(InputError::Empty(path.to_owned()));
    }
    String::from_utf8(bytes).map_err(|error| InputError::Binary {
        path: path.to_owned(),
        at: error.utf8_error().valid_up_to(),
    })
}
