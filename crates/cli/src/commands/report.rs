//! `report`: a run as one page that opens in a browser from disk; runs of many nodes as a table.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_report::html;
use serde_json::json;

use super::loaded_run::LoadedRun;
use super::merge::show_fleet;
use super::write_output;
use crate::exit::Stop;
use crate::lab::fleet;
use crate::settings::Settings;

/// Write a run as one HTML page that needs no network, or print the nodes of many
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass report monday -o monday.html
  hourglass report monday -o - --title 'Monday, with load' > monday.html
  hourglass report fleet              nodes as rows, the worst first
  hourglass report fleet --json       all of them (hourglass.fleet/1)

The page holds the whole run: verdict, warnings with their remedies, causes of
gaps, histograms, tables, manifest, and a timeline that zooms down to a
microsecond by wheel, touch or keyboard. It fetches nothing, and prints.

Of a folder that hourglass merge made of runs, a table is printed: for each node
gaps, time lost, percentiles, the longest, and the cause that took the most time.")]
pub(crate) struct Report {
    /// Folder that `run -o` wrote, or `merge` made of such
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Page to write, of a run; - is stdout
    #[arg(short, long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Title of the page [default: the folder's name]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// Writes the page.
///
/// # Errors
/// The folder holds no run, or the page cannot be written.
pub(crate) fn report(report: &Report, settings: Settings) -> Result<ExitCode> {
    if fleet::is_merged(&report.folder) {
        return nodes(report, settings);
    }
    let shown = LoadedRun::read(&report.folder)?;
    let Some(page_file) = &report.output else {
        return Err(Stop::usage("-o: a run makes a page; name it, as in -o run.html").into());
    };
    check_ending(page_file)?;
    let folder = report.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let title = report.title.clone().or(folder).unwrap_or_default();
    let page = html::page(&shown.run(), &title);
    let document = json!({
        "schema": "hourglass.report/1",
        "page": page_file,
        "bytes": page.len(),
        "records": shown.records(),
    });
    write_output(("report", "a page"), page_file, page.as_bytes(), &document, settings)
}

/// The table of nodes.
fn nodes(report: &Report, settings: Settings) -> Result<ExitCode> {
    if report.output.is_some() || report.title.is_some() {
        let text = "runs that were put together make no page; leave -o and --title out, and take \
                    --json for a program";
        return Err(Stop::usage(text).into());
    }
    show_fleet(&report.folder, settings)?;
    Ok(ExitCode::SUCCESS)
}

/// Refuses a file whose ending promises another format than a page; other endings, or none, promise nothing.
fn check_ending(path: &Path) -> Result<(), Stop> {
    let ending = path.extension().and_then(OsStr::to_str).unwrap_or_default();
    let others = ["svg", "png", "pdf", "jpg", "jpeg", "eps", "ps"];
    if others.into_iter().any(|other| ending.eq_ignore_ascii_case(other)) {
        return Err(Stop::usage(format!(
            "-o: {} would hold HTML, whatever its name says; end it with .html",
            path.display()
        )));
    }
    Ok(())
}
