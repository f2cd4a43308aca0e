//! `export`: a run in the formats of other tools.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use hourglass_documents::sweep::SweepPoint;
use hourglass_report::export::{self, HdrError};
use hourglass_runs::store::sweep::SweepFolder;
use serde_json::json;

use super::loaded_run::LoadedRun;
use crate::atomic_file::{self, WholeFile};
use crate::exit::Stop;
use crate::lab::sweep;
use crate::messages;
use crate::output;
use crate::settings::Settings;

/// Microseconds of latency that a text histogram may have rows for; cyclictest has the same end.
const MOST_ROWS: u64 = 1_000_000;

/// Write a run or a sweep in the formats of other tools
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass export monday --perfetto monday.pftrace    open it at ui.perfetto.dev
  hourglass export monday --csv - | head
  hourglass export late --csv late.csv           of latency: one row per wake-up
  hourglass export swept --csv curves.csv        of sweep: per curve and point
  hourglass export monday --hdr monday.hlog --cyclictest monday.json
  hourglass export monday --cyclictest-hist monday.hist --histogram-us 400

Only one format can go to stdout. Formats of latencies need threads that measure
latency (-w 'LAT ...', or hourglass latency).")]
#[command(group = clap::ArgGroup::new("formats").required(true).multiple(true)
    .args(["perfetto", "hdr", "csv", "cyclictest", "cyclictest_hist"]))]
pub(crate) struct Export {
    /// Folder that `run -o` wrote, or for --csv `sweep -o`
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Trace for Perfetto (TrackEvent): threads, gaps, CPUs, the kernel's events; - is stdout
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    perfetto: Option<PathBuf>,
    /// Latencies as an interval log of HdrHistogram (version 2)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    hdr: Option<PathBuf>,
    /// Comma-separated values with a header: records, or wake-ups of a latency test, or points of a sweep
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    csv: Option<PathBuf>,
    /// Latencies as the JSON file of cyclictest
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    cyclictest: Option<PathBuf>,
    /// Latencies as the text that cyclictest -h prints
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    cyclictest_hist: Option<PathBuf>,
    /// Rows of --cyclictest-hist, one for each microsecond; later ones are overflows
    #[arg(long, value_name = "US", default_value = "400", alias = "rows",
        value_parser = clap::value_parser!(u64).range(1..=MOST_ROWS))]
    histogram_us: u64,
}

hourglass_documents::named_enum! {
    /// What can be written.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    enum Format {
        Perfetto => "perfetto",
        Hdr => "hdr",
        Csv => "csv",
        Cyclictest => "cyclictest",
        CyclictestHist => "cyclictest-hist",
    }
}

impl Format {
    /// Whether it is about latencies.
    fn needs_latencies(self) -> bool {
        matches!(self, Format::Hdr | Format::Cyclictest | Format::CyclictestHist)
    }
}

impl Export {
    /// What is asked for, and where it goes.
    fn requested(&self) -> Vec<(Format, &Path)> {
        let all = [
            (Format::Perfetto, &self.perfetto),
            (Format::Hdr, &self.hdr),
            (Format::Csv, &self.csv),
            (Format::Cyclictest, &self.cyclictest),
            (Format::CyclictestHist, &self.cyclictest_hist),
        ];
        let asked = all.into_iter();
        asked.filter_map(|(format, path)| Some((format, path.as_deref()?))).collect()
    }
}

/// Writes what is asked for. All of it is checked before anything is written.
///
/// # Errors
/// The folder holds no run, lacks what a format needs, or a file cannot be written.
pub(crate) fn export(export: &Export, settings: Settings) -> Result<ExitCode> {
    let asked = export.requested();
    check_places(&asked, settings)?;
    let content = if sweep::is_experiment(&export.folder) {
        Content::Sweep(finished_points(&asked, &export.folder)?)
    } else {
        let run = LoadedRun::read(&export.folder)?;
        check_latencies(&asked, &run, &export.folder)?;
        check_rows(&asked, &run, &export.folder)?;
        Content::Run(Box::new(run))
    };
    let mut written = Vec::new();
    for (format, path) in asked {
        if path.as_os_str() == "-" {
            let done = write(export, format, &content, io::stdout().lock());
            match done {
                Err(error) if crate::is_closed_pipe(&error) => {}
                Err(error) if error.is::<Stop>() => return Err(error),
                done => done.context("cannot write to stdout")?,
            }
            continue;
        }
        to_file(export, format, &content, path)?;
        messages::wrote(path, settings.json || settings.quiet);
        written.push(json!({ "format": format.name(), "file": path }));
    }
    if settings.json {
        output::json(&json!({ "schema": "hourglass.export/1", "written": written }))?;
    }
    Ok(ExitCode::SUCCESS)
}

/// What a folder holds.
enum Content {
    Run(Box<LoadedRun>),
    /// The analyses and the finished points of a sweep.
    Sweep((Vec<String>, Vec<SweepPoint>)),
}

/// The points of a sweep, which have one format.
fn finished_points(
    asked: &[(Format, &Path)],
    folder: &Path,
) -> Result<(Vec<String>, Vec<SweepPoint>), Stop> {
    let place = folder.display();
    if let Some((other, _)) = asked.iter().find(|(format, _)| *format != Format::Csv) {
        let name = other.name();
        return Err(Stop::usage(format!("--{name}: {place} holds a sweep; export it with --csv")));
    }
    let (experiment, stored) = SweepFolder::read(folder).map_err(Stop::bad_input)?;
    let points: Vec<SweepPoint> = stored.into_iter().map(|stored| stored.point).collect();
    if points.is_empty() {
        let line = format!("--csv: no point of {place} is finished; run the sweep with -o again");
        return Err(Stop::usage(line));
    }
    Ok((experiment.analyses, points))
}

/// A file of a header alone says nothing.
fn check_rows(asked: &[(Format, &Path)], run: &LoadedRun, folder: &Path) -> Result<(), Stop> {
    let csv = asked.iter().any(|(format, _)| *format == Format::Csv);
    if csv && run.records() == 0 && !run.has_wake_ups() {
        return Err(Stop::usage(format!(
            "--csv: {} has neither records nor wake-ups; see what it holds with hourglass show",
            folder.display()
        )));
    }
    Ok(())
}

/// Two things do not go to one place.
fn check_places(asked: &[(Format, &Path)], settings: Settings) -> Result<()> {
    for (at, (format, path)) in asked.iter().enumerate() {
        let (name, shown) = (format.name(), path.display());
        if let Some((other, _)) = asked[..at].iter().find(|(_, earlier)| earlier == path) {
            let other = other.name();
            let line = format!("--{name}: {shown} is where --{other} goes; name another file");
            return Err(Stop::usage(line).into());
        }
        if path.as_os_str() == "-" {
            super::no_json(&format!("export --{name} -"), "a format of its own", settings)?;
        }
    }
    Ok(())
}

fn check_latencies(asked: &[(Format, &Path)], shown: &LoadedRun, folder: &Path) -> Result<()> {
    let none = shown.document().result.threads.iter().all(|thread| thread.latency.is_none());
    match asked.iter().find(|(format, _)| format.needs_latencies()) {
        Some((format, _)) if none => Err(Stop::usage(format!(
            "--{}: no thread of {} measured latency; run with -w 'LAT ...'",
            format.name(),
            folder.display()
        ))
        .into()),
        _ => Ok(()),
    }
}

/// Writes a file, whole or not at all; into a pipe or a device it is simply written.
fn to_file(export: &Export, format: Format, shown: &Content, path: &Path) -> Result<()> {
    let option = format!("--{}", format.name());
    let is_special = fs::metadata(path).is_ok_and(|there| !there.is_file() && !there.is_dir());
    let written = if is_special {
        File::create(path).map_err(Into::into).and_then(|file| write(export, format, shown, file))
    } else {
        WholeFile::create(path).map_err(Into::into).and_then(|whole| {
            write(export, format, shown, whole.file())?;
            Ok(whole.finish()?)
        })
    };
    written.map_err(|error| match error.downcast_ref::<io::Error>() {
        _ if error.is::<Stop>() => error,
        Some(error) => atomic_file::refused(&option, path, error).into(),
        None => Stop::usage(format!("{option}: {}: {error}", path.display())).into(),
    })
}

fn write(export: &Export, format: Format, content: &Content, out: impl Write) -> Result<()> {
    let shown = match content {
        Content::Run(run) => run,
        Content::Sweep((analyses, points)) => return Ok(export::csv_sweep(out, analyses, points)?),
    };
    let run = shown.run();
    match format {
        Format::Csv if shown.records() == 0 => shown.write_wake_ups(out).map_err(super::damaged),
        Format::Perfetto => Ok(export::perfetto(out, &run)?),
        Format::Csv => Ok(export::csv(out, &run)?),
        Format::Cyclictest => Ok(export::cyclictest(out, &run)?),
        Format::CyclictestHist => {
            let beyond = shown.wake_ups_beyond(export.histogram_us).map_err(super::damaged)?;
            Ok(export::cyclictest_histogram(out, &run, export.histogram_us, &beyond)?)
        }
        Format::Hdr => {
            let histograms = shown.recalled.latency_histograms();
            let histograms = histograms.map_err(Stop::bad_input)?;
            let written = export::hdr(out, &shown.document().manifest, &histograms);
            written.map_err(|error| match error {
                HdrError::Write(error) => error.into(),
                other => Stop::usage(other.to_string()).into(),
            })
        }
    }
}
