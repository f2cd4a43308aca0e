//! `check`: what theory says about a set of tasks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::check::{CheckDocument, Verdict};
use hourglass_documents::spelling;
use hourglass_report::text;
use hourglass_time::Span;

use crate::atomic_file;
use crate::commands::batch::{self, FileResult, Form};
use crate::commands::task_file;
use crate::exit::{NO, Stop, YES};
use crate::lab::task_input::{self as input, Source};
use crate::lab::theory::check::{self, ANALYSES, CheckRequest, FitHeuristic, PlacementOrder};
use crate::lab::theory::examples;
use crate::messages;
use crate::output;
use crate::settings::Settings;

const ABOUT: &str = "\
The analysis follows from what the file says. Exit codes: 0, every deadline
holds; 1, some deadline does not hold or is undecided; 2, a file cannot be read.
With several files the worst of them counts, and an error in one does not stop
the others; --json prints one document of all (hourglass.batch/1).
Infeasible is said only where a simulation shows the miss: --witness writes
that case, and hourglass simulate shows the same miss.

Every search ends: an analysis is given up, and the verdict is unknown, after
4 000 000 steps for each processor, about a second. A file may have 64 MiB and 10 000
tasks, and at most 2 000 tasks may share a processor.";

const EXAMPLES: &str = "\
Examples:
  hourglass example tasks                     writes tasks.toml
  hourglass check tasks.toml                  a table, and why
  hourglass check tasks.toml --explain        what was understood, and the proof
  hourglass check tasks.toml --server 8ms     the smallest budget every 8 ms
  hourglass check tasks.toml --sensitivity    how far each task may change
  hourglass check tasks.toml --partition worst-fit,period
  hourglass check late.toml --witness miss.toml; hourglass simulate miss.toml
  hourglass check video.json --format rt-app  a file of rt-app
  hourglass check monday                      what a recorded run needed
  hourglass check sets/*.toml --jsonl         a line of JSON for each file
  hourglass check --corpus cases --json       worked examples";

/// Say whether the deadlines of a set of tasks hold, by analysis, and why
#[derive(Args, Debug)]
#[command(after_help = format!("{ABOUT}\n\n{}\n{EXAMPLES}", task_file::frequent_keys()))]
pub(crate) struct Check {
    /// Files of tasks (TOML, JSON, rt-app, SchedCAT, SimSo, MAST, AMALTHEA, SAG) or run folders
    #[arg(value_name = "FILE", value_hint = ValueHint::AnyPath)]
    #[arg(required_unless_present_any = ["corpus", "list_analyses"])]
    files: Vec<PathBuf>,
    /// Format: toml, json, rt-app, schedcat, simso, mast, amalthea, sag or run [default: by
    /// content]
    #[arg(long, value_name = "FORMAT", value_parser = source, alias = "from")]
    format: Option<Source>,
    /// Print what was understood, and the proof of every bound
    #[arg(long)]
    explain: bool,
    /// Ask this analysis, rather than the one that fits
    #[arg(long, value_name = "NAME")]
    analysis: Option<String>,
    /// Place the tasks on CPUs: first-fit, best-fit or worst-fit, and if wanted an order:
    /// given, utilisation (without one), density, period, deadline
    #[arg(long, value_name = "FIT[,ORDER]", value_parser = check::placing)]
    partition: Option<(FitHeuristic, PlacementOrder)>,
    /// Find the smallest reservation with this period; of several, with commas, the one that takes
    /// the least share of the CPU
    #[arg(long, value_name = "PERIODS", value_parser = str::parse::<Span>, value_delimiter = ',')]
    server: Vec<Span>,
    /// Find how far each task may change while the others stay as they are
    #[arg(long)]
    sensitivity: bool,
    /// Print one line of JSON for each file
    #[arg(long)]
    jsonl: bool,
    /// Write the case in which a deadline is missed to this file, for hourglass simulate
    #[arg(long, value_name = "OUT", value_hint = ValueHint::FilePath)]
    witness: Option<PathBuf>,
    /// Answer a folder of worked examples instead
    #[arg(long, value_name = "FOLDER", value_hint = ValueHint::DirPath)]
    #[arg(conflicts_with_all = ["files", "format", "explain", "analysis", "partition", "server", "sensitivity", "witness"])]
    corpus: Option<PathBuf>,
    /// List the analyses with their sources
    #[arg(long, conflicts_with_all = ["files", "corpus"])]
    list_analyses: bool,
}

fn source(text: &str) -> Result<Source, String> {
    let found = Source::ALL.iter().find(|(name, _)| *name == text);
    let unknown = || spelling::unknown("format", text, Source::ALL.iter().map(|(name, _)| *name));
    found.map(|(_, source)| *source).ok_or_else(unknown)
}

/// Analyses and prints.
///
/// # Errors
/// A file cannot be read, or what is asked does not fit it.
pub(crate) fn check(check: &Check, settings: Settings) -> Result<ExitCode> {
    if check.list_analyses {
        let entries: Vec<_> = ANALYSES.iter().map(check::AnalysisEntry::facts).collect();
        output::shown(&entries, |entries, style| text::analyses(entries, style), settings)?;
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(folder) = &check.corpus {
        return corpus(folder, settings);
    }
    if check.witness.is_some() && check.files.len() > 1 {
        return Err(Stop::usage("--witness: one case is of one file; name one").into());
    }
    if let ([file], Some(witness)) = (&check.files[..], &check.witness)
        && fs::canonicalize(file).is_ok_and(|file| fs::canonicalize(witness).ok() == Some(file))
    {
        return Err(Stop::usage("--witness: that is the file to check; name another").into());
    }
    let form = Form { command: "check", lines: check.jsonl, settings };
    batch::each(&check.files, form, |file| {
        let document = analyse(check, file, settings)?;
        if let Some(path) = &check.witness {
            write_witness(path, &document, settings)?;
        }
        let holds = document.verdict == Verdict::Feasible;
        Ok(FileResult {
            text: text::check(&document, check.explain, output::style()),
            exit_code: if holds { YES } else { NO },
            failed: None,
            document,
        })
    })
}

fn analyse(check: &Check, file: &Path, settings: Settings) -> Result<CheckDocument> {
    let input = input::read(file, check.format).map_err(Stop::bad_input)?;
    if !settings.quiet {
        let warnings = input.set.warnings();
        let warnings = warnings.iter().filter(|_| !check.explain).map(ToString::to_string);
        for note in input.notes.iter().cloned().chain(warnings) {
            messages::say(&format!("{}: {note}", file.display()));
        }
    }
    let request = CheckRequest {
        analysis: check.analysis.clone(),
        partition: check.partition,
        server: check.server.clone(),
        sensitivity: check.sensitivity,
        growth: check.analysis.is_none(),
        explain: check.explain,
    };
    let document = check::check(&input.set, &request);
    Ok(document.map_err(|error| Stop::usage(format!("{}: {error}", file.display())))?)
}

/// Writes the case in which a deadline is missed, if there is one.
fn write_witness(path: &Path, document: &CheckDocument, settings: Settings) -> Result<(), Stop> {
    let scenario = document.witness.as_ref().and_then(|witness| witness.scenario.as_ref());
    let shown = path.display();
    let line = match scenario {
        Some(scenario) => {
            atomic_file::keep("--witness", path, scenario.as_bytes())?;
            format!("wrote {shown}; try hourglass simulate {shown}")
        }
        None => format!(
            "--witness: no case is known in which a deadline is missed; {shown} is not written"
        ),
    };
    if !settings.quiet {
        messages::say(&line);
    }
    Ok(())
}

fn corpus(folder: &Path, settings: Settings) -> Result<ExitCode> {
    let document = examples::check(folder).map_err(Stop::bad_input)?;
    output::shown(&document, text::examples, settings)?;
    Ok(if document.failed == 0 { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}
