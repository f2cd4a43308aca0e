//! `doctor`: what on this machine spoils real-time work, and the line that changes it.

use std::fmt::Display;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint, builder::StyledStr};
use hourglass_documents::doctor::Status;
use hourglass_documents::{CpuSet, spelling};
use hourglass_report::export::{junit_doctor, openmetrics_doctor};
use hourglass_report::text;

use crate::atomic_file;
use crate::exit::{NO, Stop};
use crate::lab::doctor::{self, Profile};
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
    /// End with 1 also if a check warns, or is unknown
    #[arg(long, value_name = "STATUS", default_value = "fail", hide_default_value = true)]
    fail_on: FailOn,
    /// Compare with expected values, a document of `doctor --json`; differences end with 1
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, conflicts_with_all = ["fail_on", "script"])]
    profile: Option<PathBuf>,
    /// Print the remedies as a shell script that root can run and take back
    #[arg(long)]
    script: bool,
    /// Also write the checks to this file as metrics, for node_exporter's textfile collector
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    openmetrics: Option<PathBuf>,
    /// Also write the checks to this file as test cases in JUnit's XML
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    junit: Option<PathBuf>,
}

/// From which status on the machine is not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum FailOn {
    /// A check fails
    Fail,
    /// A check fails or warns
    Warn,
    /// A check fails, warns or is unknown
    Unknown,
}

impl FailOn {
    /// The worst status that is accepted.
    fn accepted(self) -> Status {
        match self {
            FailOn::Fail => Status::Warn,
            FailOn::Warn => Status::Unknown,
            FailOn::Unknown => Status::Ok,
        }
    }
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
  0  no check fails; none warns (--fail-on warn); none differs (--profile)
  1  a check fails, warns (--fail-on warn), differs (--profile)
  2  wrong usage

Checks:
{checks}

Examples:
  hourglass doctor                     everything, the worst first
  hourglass doctor --cpus 2-3          for work that is to run on these CPUs
  hourglass doctor --check governor    one check
  sudo hourglass doctor                also what only root may read
  hourglass doctor --fail-on warn      a gate: 1 unless all is well or unknown
  hourglass doctor --json > good.json; hourglass doctor --profile good.json
  hourglass doctor --script > fix.sh   sudo sh fix.sh, sudo sh fix.sh undo
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
    if doctor.script && settings.json {
        return Err(Stop::usage("--script: it is no document; leave --json out").into());
    }
    let profile = doctor.profile.as_deref().map(read_profile).transpose()?;
    let only: Vec<String> = match &profile {
        Some(profile) if doctor.check.is_empty() => profile.ids().map(str::to_owned).collect(),
        _ => doctor.check.clone(),
    };
    let mut document = doctor::examine(doctor.cpus.clone(), &only)
        .map_err(|error| Stop::usage(format!("--cpus: {error}")))?;
    document.differences = profile.map(|profile| profile.differences(&document.checks));
    if let Some(name) = &doctor.openmetrics {
        atomic_file::keep(OPENMETRICS, name, openmetrics_doctor(&document).as_bytes())?;
    }
    if let Some(name) = &doctor.junit {
        atomic_file::keep(
            JUNIT,
            name,
            junit_doctor(&document, doctor.fail_on.accepted()).as_bytes(),
        )?;
    }
    if doctor.script {
        output::unless_closed(output::text(&doctor::script(&document)))?;
    } else {
        output::unless_closed(output::shown(&document, text::doctor, settings))?;
    }
    let bad = match &document.differences {
        Some(differences) => !differences.is_empty(),
        None => document.checks.iter().any(|check| check.status < doctor.fail_on.accepted()),
    };
    Ok(if bad { ExitCode::from(NO) } else { ExitCode::SUCCESS })
}

fn read_profile(path: &Path) -> Result<Profile> {
    let named =
        |error: &dyn Display| Stop::bad_input(format!("--profile {}: {error}", path.display()));
    let missing = &"no such file; `hourglass doctor --json > FILE` on a machine that is as it should be makes one";
    let text = fs::read_to_string(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => named(missing),
        _ => named(&error),
    })?;
    Profile::read(&text).map_err(|error| named(&error).into())
}

fn unknown_check(given: &str) -> Stop {
    let question = spelling::did_you_mean(given, doctor::check_ids());
    let advice = question.unwrap_or_else(|| "hourglass doctor --help lists them".to_owned());
    Stop::usage(format!("--check: unknown check '{given}'; {advice}"))
}
