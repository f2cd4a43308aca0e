//! `watch`: what keeps the threads of another program from running.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use console::Term;
use hourglass_documents::watched::{WATCH_SCHEMA, WatchDocument, WatchedReport};
use hourglass_report::export::openmetrics_watch;
use hourglass_report::text;
use hourglass_time::Span;

use crate::atomic_file;
use crate::exit::{self, Stop};
use crate::lab::WriteError;
use crate::lab::watch_process::{
    self, CommandRequest, ProcessNotFound, ProcessSelector, SHORTEST, WatchFailure, WatchFinished,
    WatchRequest,
};
use crate::messages;
use crate::output;
use crate::result_files::OPENMETRICS;
use crate::settings::Settings;

/// Time between two writings of `--openmetrics`: Prometheus asks no more often as a rule.
const METRICS_EVERY_NS: u64 = 10_000_000_000;

/// Watch another program's threads: how long they wait for a CPU, and which threads run instead
#[derive(Args, Debug)]
#[command(after_help = "\
The program is not changed and does not notice. Without root the
kernel's counts in /proc are read at every interval: time on a CPU, run-queue
delay, quota, stops, migrations, page faults. The time of each occupant of the
CPU is then an upper bound. With --trace, as root, the kernel's switches give it
exactly for each delay, and the time of the worst one.

On a terminal the table is redrawn at every interval; at the end, and into a
pipe, it is printed once. It ends after -d, by Ctrl-C, or with the program.

A folder (-o) is read by show and report. With --trace it is a whole run: the
times on a CPU are its intervals, delays after a wait its latencies, and gaps
have causes; render, export and diff read it, too.

With -- COMMAND the command is started, and watched from its first instruction
until it ends, with the processes that it starts; those that start and end
between two samples are missing, and a line says so. Terminal, stdin and
stdout are the command's, and so is Ctrl-C; when it has ended, the table is
printed on stderr. With --json stdout has the document alone, and the
command's output goes to stderr. The exit code is the command's.

Exit codes:
  0    watched to the end
  2    wrong usage; no such process, or no thread of that name
  3    this user may not see it, or may not trace
  4    no verdict: threads or processes that started and ended between two
       samples are missing, or a quota changed meanwhile; with --tasks, a thread
       could not be modelled
  130  ended by Ctrl-C; what was sampled is printed and stored
  with -- COMMAND: the command's code, also where a premise broke (premises
  says so); 128+N signal N killed the command, 126 it cannot be executed,
  127 no such command. Only where the command's is 0: 125 watch itself failed,
  as where a file cannot be written; 4 no thread is a task, and --tasks wrote
  no file, and removed one from before

Examples:
  hourglass watch 1234                     a process with all its threads
  hourglass watch --comm data-loop.0       every thread of this name (PipeWire's)
  hourglass watch $(pgrep -d' ' postgres) -d 1m
  sudo hourglass watch --comm data-loop.0 --trace -d 10s -o monday
  sudo hourglass watch 1234 --trace -d 30s --tasks player.toml
  hourglass watch -- make -j2              a command, from its first instruction
  hourglass watch 1234 -d 5s --json        the document (hourglass.watch/1)")]
pub(crate) struct WatchArgs {
    /// Processes, with all their threads; or single threads, by their own numbers
    #[arg(value_name = "PID", value_parser = pid, conflicts_with_all = ["comm", "command"])]
    pids: Vec<u32>,
    /// As `reserve` has it
    #[arg(
        long = "pid",
        hide = true,
        value_name = "PID",
        value_parser = pid,
        conflicts_with_all = ["comm", "command"]
    )]
    more_pids: Vec<u32>,
    /// Every thread of this name, as ps -L and top -H show it
    #[arg(long, value_name = "NAME", conflicts_with = "command")]
    comm: Option<String>,
    /// Duration; without it, until Ctrl-C or the end of the program
    #[arg(short, long, value_name = "TIME", value_parser = length, conflicts_with = "command")]
    duration: Option<Span>,
    /// Time between two samples, 10ms or more
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = pause)]
    interval: Span,
    /// Record the kernel's switches: exact delays, and the threads that ran instead; needs root
    #[arg(long)]
    trace: bool,
    /// Store the samples in this folder
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    output: Option<PathBuf>,
    /// Write the threads as a file of tasks, for check, simulate and predict, as hourglass model does
    #[arg(long, value_name = "FILE", requires = "trace", value_hint = ValueHint::FilePath)]
    tasks: Option<PathBuf>,
    /// Write the counts to this file as metrics, every ten seconds and at the end, for
    /// node_exporter's textfile collector
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    openmetrics: Option<PathBuf>,
    /// A command to start and to watch until it ends, with all processes that it starts
    #[arg(last = true, value_name = "COMMAND", value_hint = ValueHint::CommandWithArguments)]
    command: Vec<OsString>,
}

pub(super) fn pid(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| "a PID is a number; --comm NAME takes the name of threads".to_owned())
}

pub(super) fn length(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span <= Span::from_nanos(0) { Err("it must be above 0".to_owned()) } else { Ok(span) }
}

pub(super) fn pause(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span < SHORTEST { Err(format!("samples are at least {SHORTEST} apart")) } else { Ok(span) }
}

/// Watches and prints.
///
/// # Errors
/// There is no such thread, or no permission; the folder cannot be made or written.
pub(crate) fn watch(watch: &WatchArgs, words: &[String], settings: Settings) -> Result<ExitCode> {
    if numbers(watch).next().is_none() && watch.comm.is_none() && watch.command.is_empty() {
        return Err(Stop::usage(
            "no process is given: give a PID, --comm NAME for every thread of that name, or -- COMMAND to start one",
        )
        .into());
    }
    let program = std::iter::once("hourglass".to_owned());
    let starts = !watch.command.is_empty();
    if let Some(file) = &watch.tasks {
        let own = |stop: Stop| if starts { own_failure(&stop) } else { stop };
        atomic_file::has_place("--tasks", file).map_err(own)?;
    }
    let request = WatchRequest {
        whom: selector(watch, settings),
        every: watch.interval,
        length: watch.duration,
        trace: watch.trace,
        model: false,
        folder: watch.output.clone().or_else(|| watch.tasks.as_deref().map(record_beside)),
        command_line: program.chain(words.iter().cloned()).collect(),
    };
    let mut view = View { terminal: Term::stdout(), drawn: 0 };
    // The terminal is the command's as long as it runs.
    let is_live = view.terminal.is_term() && !settings.json && !starts;
    let mut metrics = Metrics { file: watch.openmetrics.as_deref(), next_ns: 0 };
    let mut written = Ok(());
    let mut broken = BTreeSet::new();
    let found = watch_process::watch(&request, |report| {
        let new = report.premises.iter().filter(|premise| broken.insert(premise.id.clone()));
        for premise in new {
            if is_live {
                written = view.clear();
            }
            if !starts {
                messages::no_verdict(premise, " so far");
            }
        }
        if is_live && written.is_ok() {
            written = view.draw(report);
        }
        if written.is_ok() {
            written = metrics.refresh(report);
        }
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    let option = if watch.output.is_some() { "-o" } else { "--tasks" };
    let finished = found.map_err(|failure| refusal(failure, option, starts))?;
    let _beside = watch.tasks.as_deref().filter(|_| watch.output.is_none()).map(RecordBeside);
    let ended = finished.report.command.as_ref().map(|command| command.exit);
    let signal = finished.signal;
    let shown = output::unless_closed(written)
        .and_then(|()| metrics.write(&finished.report))
        .and_then(|()| view.clear())
        .and_then(|()| tell(watch, finished, &broken, settings));
    conclude(ended, signal, shown)
}

/// Prints what was found, and keeps it; whether it is whole, and nothing where `--tasks` has no file.
fn tell(
    watch: &WatchArgs,
    finished: WatchFinished,
    broken: &BTreeSet<String>,
    settings: Settings,
) -> Result<Option<bool>> {
    let starts = !watch.command.is_empty();
    let is_whole = finished.report.premises.is_empty();
    let said = if settings.json {
        let document = WatchDocument { schema: WATCH_SCHEMA.to_owned(), found: finished.report };
        let warnings = document.found.warnings.iter();
        let new = |id: &String| starts || !broken.contains(id);
        let said = warnings.filter(|warning| !settings.quiet && new(&warning.id));
        said.for_each(messages::warn);
        output::json(&document)
    } else if starts {
        output::to_stderr(&text::watched(&finished.report, output::style_of_stderr()));
        Ok(())
    } else {
        output::text(&text::watched(&finished.report, output::style()))
    };
    output::unless_closed(said)?;
    let kept = keep(watch, finished.folder.as_ref(), settings)?;
    Ok(kept.map(|all_are_tasks| all_are_tasks && is_whole))
}

/// The exit code: that of the command, or of the signal, before that of what `shown` says.
fn conclude(
    ended: Option<i32>,
    signal: Option<i32>,
    shown: Result<Option<bool>>,
) -> Result<ExitCode> {
    let first = match (ended, signal) {
        (Some(code), _) => u8::try_from(code).unwrap_or(exit::OWN),
        (None, signal) => signal.map_or(exit::YES, exit::code_of),
    };
    let otherwise = match shown {
        Ok(Some(true)) => exit::YES,
        Ok(Some(false)) if ended.is_some() => exit::YES,
        Ok(_) => exit::UNDECIDED,
        // After Ctrl-C, too: 130 says that what was sampled is stored.
        Err(_) if ended.is_none() => return shown.map(|_| ExitCode::SUCCESS),
        Err(error) => {
            hourglass_terminal::concluded(Err(error));
            exit::OWN
        }
    };
    Ok(ExitCode::from(if first == exit::YES { otherwise } else { first }))
}

/// Says where the record is, and writes the file of `--tasks`; whether all threads are tasks in it, and nothing where
/// there is no file, as none is.
fn keep(
    watch: &WatchArgs,
    folder: Option<&Result<PathBuf, WriteError>>,
    settings: Settings,
) -> Result<Option<bool>> {
    if watch.output.is_some() {
        super::say_kept(folder, "it", settings.quiet)?;
    }
    let Some((file, record)) = watch.tasks.as_deref().zip(folder) else { return Ok(Some(true)) };
    let not_recorded = |error: &WriteError| {
        Stop::machine(vec![format!("--tasks {} is not written: {error}", file.display())])
    };
    let record = match record {
        Ok(record) => record.as_path(),
        Err(error) => error.whole().ok_or_else(|| not_recorded(error))?,
    };
    super::model::write_tasks(record, file, settings)
}

/// The folder of [`record_beside`], of a file of tasks: gone when that is written, or cannot be.
struct RecordBeside<'a>(&'a Path);

impl Drop for RecordBeside<'_> {
    fn drop(&mut self) {
        // A folder that stays is in nobody's way.
        let _ = std::fs::remove_dir_all(record_beside(self.0));
    }
}

/// A folder for the record that only the file of `--tasks` is made from.
fn record_beside(tasks: &Path) -> PathBuf {
    let mut name = tasks.file_name().unwrap_or_default().to_os_string();
    name.push(format!(".record-{}", std::process::id()));
    tasks.with_file_name(name)
}

fn numbers(watch: &WatchArgs) -> impl Iterator<Item = u32> + '_ {
    watch.pids.iter().chain(&watch.more_pids).copied()
}

fn selector(watch: &WatchArgs, settings: Settings) -> ProcessSelector {
    match &watch.comm {
        Some(name) => ProcessSelector::Named(name.clone()),
        None if watch.command.is_empty() => ProcessSelector::Numbers(numbers(watch).collect()),
        None => ProcessSelector::Command(CommandRequest {
            words: watch.command.clone(),
            aside: settings.json,
        }),
    }
}

/// The file of `--openmetrics`.
struct Metrics<'a> {
    file: Option<&'a Path>,
    /// When it is written again, counted from the first sample.
    next_ns: u64,
}

impl Metrics<'_> {
    /// Writes what was found so far, if it is time.
    fn refresh(&mut self, report: &WatchedReport) -> Result<()> {
        if report.elapsed_ns < self.next_ns {
            return Ok(());
        }
        self.next_ns = report.elapsed_ns.saturating_add(METRICS_EVERY_NS);
        self.write(report)
    }

    fn write(&self, report: &WatchedReport) -> Result<()> {
        let Some(file) = self.file else { return Ok(()) };
        Ok(atomic_file::keep(OPENMETRICS, file, openmetrics_watch(report).as_bytes())?)
    }
}

/// The table on a terminal.
struct View {
    terminal: Term,
    drawn: usize,
}

impl View {
    /// Draws over the last table.
    fn draw(&mut self, report: &WatchedReport) -> Result<()> {
        let (rows, columns) = self.terminal.size();
        let picture = text::watched_live(report, columns, rows.saturating_sub(1), output::style());
        self.clear()?;
        self.drawn = picture.lines().count();
        output::text(&picture)
    }

    fn clear(&mut self) -> Result<()> {
        let drawn = std::mem::take(&mut self.drawn);
        self.terminal.clear_last_lines(drawn).context("cannot write to the terminal")
    }
}

/// Why nothing is watched, and the exit code for it; `option` asks for the folder.
pub(super) fn refusal(failure: WatchFailure, option: &str, starts: bool) -> Stop {
    let stop = match &failure {
        WatchFailure::Launch(why) => {
            return Stop::with(why.exit_code().unwrap_or(exit::OWN), vec![failure.to_string()]);
        }
        WatchFailure::NotFound(ProcessNotFound::Hidden(_)) | WatchFailure::Refused(_) => {
            Stop::machine(vec![failure.to_string()])
        }
        WatchFailure::NotFound(_) => Stop::usage(failure.to_string()),
        WatchFailure::Folder(why) if why.is_full() => {
            Stop::machine(vec![format!("{option}: {why}")])
        }
        WatchFailure::Folder(why) => Stop::usage(format!("{option}: {why}")),
    };
    if starts { own_failure(&stop) } else { stop }
}

/// The same with the code for a failure of `watch` itself: other codes are the command's.
fn own_failure(stop: &Stop) -> Stop {
    Stop::with(exit::OWN, stop.lines().to_vec())
}
