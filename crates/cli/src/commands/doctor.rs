//! `doctor`: what on this machine spoils real-time work, and the line that changes it.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint, builder::StyledStr};
use hourglass_documents::doctor::Status;
use hourglass_documents::{CpuSet, spelling};
use hourglass_report::export::{junit_doctor, openmetrics_doctor};
use hourglass_report::text;

use crate::atomic_file;
use crate::exit::{NO, Stop};
use crate::lab::doctor;
use crate::output;
use crate::result_files::{JUNIT, OPENMETRICS};
use crate::settings::Settings;

/// Columns of the list of checks in the help.
const PAGE: usize = 78;

/// Check this machine: what disturbs real-time work, and the line that changes it
#[derive(Args, Debug)]
#[command(after_help = after_help())]
pub(crate) struct Doctor {
    /// CPUs that the work is to run on [default: the isolated ones, else all]
    #[arg(long, value_name = "LIST", value_parser = str::parse::<CpuSet>)]
    cpus: Option<CpuSet>,
    /// Make only this check; may be repeated
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    check: Vec<String>,
    /// Also write the checks to this file as metrics, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    openmetrics: Option<PathBuf>,
    /// Also write the checks to this file as test cases in JUnit's XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,
}

/// Statuses, exit codes, examples, and the names of the checks.
fn after_help() -> StyledStr {
    let mut checks = String::new();
    let mut column = PAGE;
    for id in doctor::check_ids() {
        if column + 2 + id.len() > PAGE {
            checks.push_str(if checks.is_empty() { "  " } else { ",\n  " });
            column = 2 + id.len();
        } else {
            checks.push_str(", ");
            column += 2 + id.len();
        }
        checks.push_str(id);
    }
    format!(
        "\
Statuses, the worst first:
  fail     real-time work is refused, or is stopped or delayed for milliseconds
           whatever its priority
  warn     it costs latency or jitter, or stops work that goes beyond a limit
  unknown  the machine does not tell; the remedy makes it tell
  ok       as it should be, or without effect here

Exit codes:
  0  no check fails
  1  a check fails
  2  wrong usage

Checks:
{checks}

Examples:
  hourglass doctor                     everything, the worst first
  hourglass doctor --cpus 2-3          for work that is to run on these CPUs
  hourglass doctor --check governor    one check
  sudo hourglass doctor                also what only root may read
  hourglass doctor --json              the document (hourglass.doctor/1)"
    )
    .into()
}

/// Examines the machine and prints what was found.
///
/// # Errors
/// A check or a CPU that there is not.
pub(crate) fn examine(doctor: &Doctor, settings: Settings) -> Result<ExitCode> {
    if let Some(stranger) =
        doctor.check.iter().find(|id| !doctor::check_ids().any(|known| known == *id))
    {
        return Err(unknown_check(stranger).into());
    }
    let document = doctor::examine(doctor.cpus.clone(), &doctor.check)
        .map_err(|error| Stop::usage(format!("--cpus: {error}")))?;
    if let Some(name) = &doctor.openmetrics {
        atomic_file::keep(OPENMETRICS, name, openmetrics_doctor(&document).as_bytes())?;
    }
    if let Some(name) = &doctor.junit {
        atomic_file::keep(JUNIT, name, junit_doctor(&document, Status::Warn).as_bytes())?;
    }
    output::unless_closed(output::shown(&document, text::doctor, settings))?;
    Ok(if document.counts.fail == 0 { ExitCode::SUCCESS } else { ExitCode::from(NO) })
}

fn unknown_check(given: &str) -> Stop {
    let question = spelling::did_you_mean(given, doctor::check_ids());
    let advice = question.unwrap_or_else(|| "hourglass doctor --help lists them".to_owned());
    Stop::usage(format!("--check: unknown check '{given}'; {advice}"))
}
