//! `report`: a run as one page that opens in a browser from disk.

use std::io::{self, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{Args, ValueHint};
use hourglass_report::html;
use serde_json::json;

use super::shown_run::Shown;
use crate::messages;
use crate::output;
use crate::settings::Settings;
use crate::whole_file;

/// Write a run as one HTML page that needs no network
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass report monday -o monday.html
  hourglass report monday -o - --title 'Monday, with load' > monday.html

The page holds the whole run: verdict, warnings with what mends them, causes of
gaps, histograms, tables, manifest, and a timeline that zooms down to a
microsecond by wheel, touch or keyboard. It fetches nothing, and prints.")]
pub(crate) struct Report {
    /// Folder that `run -o` wrote
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Page to write; - is stdout
    #[arg(short, long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Title of the page [default: the folder's name]
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
}

/// Writes the page.
///
/// # Errors
/// The folder holds no run, or the page cannot be written.
pub(crate) fn report(report: &Report, settings: Settings) -> Result<ExitCode> {
    let shown = Shown::read(&report.folder)?;
    let folder = report.folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let title = report.title.clone().or(folder).unwrap_or_default();
    let page = html::page(&shown.run(), &title);
    if report.output.as_os_str() == "-" {
        super::no_json("report -o -", "a page", settings)?;
        io::stdout().lock().write_all(page.as_bytes()).context("cannot write to stdout")?;
        return Ok(ExitCode::SUCCESS);
    }
    let name = report.output.display();
    whole_file::keep("-o", &report.output, page.as_bytes())?;
    if settings.json {
        output::json(&json!({
            "schema": "hourglass.report/1",
            "page": report.output,
            "bytes": page.len(),
            "records": shown.records(),
        }))?;
    } else if !settings.quiet {
        messages::say(&format!("wrote {name}"));
    }
    Ok(ExitCode::SUCCESS)
}
