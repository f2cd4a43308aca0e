//! `run --against` and `run --control`: two ways of running in turn, or a control beside the load.

use std::process::ExitCode;

use anyhow::Result;
use hourglass_documents::diff::{ControlReport, DiffDocument, DiffVerdict};
use hourglass_report::text;

use super::run::refusal;
use crate::args::RunArguments;
use crate::args::fail_on::broke;
use crate::exit::{self, Stop};
use crate::lab::compare::Rules;
use crate::lab::compare::control::{self, ControlMode};
use crate::lab::compare::rounds::{
    ComparisonResult, DEFAULT_ROUNDS, RoundsRequest, RunVariant, rounds,
};
use crate::lab::{self, Gates, RunSpec};
use crate::messages;
use crate::output;
use crate::progress::RoundsProgress;
use crate::settings::Settings;

/// Runs the two ways in turn, and prints what differs.
///
/// # Errors
/// The machine cannot do it, or the runs cannot be kept.
pub(super) fn against(mut run: RunArguments) -> Result<ExitCode> {
    let Some(other) = run.against.take() else { return Ok(ExitCode::SUCCESS) };
    let seed = run.request.spec.seed;
    let request = RoundsRequest {
        a: RunVariant {
            spec: run.request.spec,
            command_line: command_line(other.own_words),
            dma_latency_us: run.request.dma_latency_us,
            gates: run.request.gates,
        },
        b: RunVariant {
            spec: other.spec,
            command_line: command_line(other.words),
            dma_latency_us: other.dma_latency_us,
            gates: other.gates,
        },
        rounds: run.rounds.unwrap_or(DEFAULT_ROUNDS),
        folder: run.request.folder,
        rules: Rules { seed, ..Rules::default() },
        a_is_control: false,
    };
    let compared = in_turn(request, run.settings)?;
    Ok(exit_code(&compared, || run.fail_on.unwrap_or_default().code(&compared.document)))
}

/// The exit code of rounds; `decided` is that of the comparison alone.
fn exit_code(compared: &ComparisonResult, decided: impl FnOnce() -> ExitCode) -> ExitCode {
    match compared.signal {
        Some(signal) => exit::ended_by(signal),
        None if broke(&compared.document) => ExitCode::from(exit::UNDECIDED),
        None if kept_limits(&compared.document) => decided(),
        None => ExitCode::from(exit::NO),
    }
}

/// How a run with `--control` is to go on: a thread beside it, or nothing any more, because control and
/// load took turns and were printed.
pub(super) enum ControlPlan {
    Beside(Box<lab::ThreadSpec>, Box<RunArguments>),
    Done(ExitCode),
}

/// Plans the control of a run, and runs the two in turn if the load leaves no CPU alone.
///
/// # Errors
/// As [`against`].
pub(super) fn with_control(run: RunArguments) -> Result<ControlPlan> {
    let spec = match control::plan_here(&run.request.spec).map_err(refusal)? {
        ControlMode::Beside(_) if run.rounds.is_some() => {
            return Err(Stop::usage(
                "--rounds: the control runs at the same time as the load, on a CPU of its own; leave it out",
            )
            .into());
        }
        ControlMode::Beside(thread) => {
            return Ok(ControlPlan::Beside(Box::new(thread), Box::new(run)));
        }
        ControlMode::InTurn(spec) => spec,
    };
    if run.records {
        return Err(Stop::usage(
            "--control: no CPU is left free by --cpu, so control and run take turns, which prints a \
             comparison; leave -c and --records out",
        )
        .into());
    }
    if let Some(option) = run.files.asked() {
        return Err(Stop::usage(format!(
            "{option}: it holds one run, and control and run take turns; leave a CPU free by --cpu"
        ))
        .into());
    }
    let request = RoundsRequest {
        a: RunVariant {
            command_line: command_line(vec!["(control)".to_owned(), described(&spec)]),
            spec,
            dma_latency_us: run.request.dma_latency_us,
            // What the platform does is measured, not judged.
            gates: Gates::default(),
        },
        b: RunVariant {
            command_line: std::env::args().collect(),
            dma_latency_us: run.request.dma_latency_us,
            spec: run.request.spec.clone(),
            gates: run.request.gates.clone(),
        },
        rounds: run.rounds.unwrap_or(DEFAULT_ROUNDS),
        folder: run.request.folder.clone(),
        rules: Rules { seed: run.request.spec.seed, ..Rules::default() },
        a_is_control: true,
    };
    let compared = in_turn(request, run.settings)?;
    let decided = || answered(compared.document.control.as_ref());
    Ok(ControlPlan::Done(exit_code(&compared, decided)))
}

/// The exit code of a run whose limits were kept, beside its control: whatever the load adds to the platform is
/// an answer; an undecided comparison is not.
pub(super) fn answered(control: Option<&ControlReport>) -> ExitCode {
    match control {
        Some(control) if control.verdict == DiffVerdict::Unknown => ExitCode::from(exit::UNDECIDED),
        _ => ExitCode::SUCCESS,
    }
}

/// Whether each run of each round kept its limits.
fn kept_limits(document: &DiffDocument) -> bool {
    document.gates.iter().flat_map(|round| &round.gates).all(|gate| gate.passed)
}

fn described(spec: &RunSpec) -> String {
    spec.threads.iter().map(|thread| thread.model.to_string()).collect::<Vec<_>>().join(", ")
}

fn command_line(words: Vec<String>) -> Vec<String> {
    std::iter::once("hourglass".to_owned()).chain(words).collect()
}

/// Runs and prints.
fn in_turn(request: RoundsRequest, settings: Settings) -> Result<ComparisonResult> {
    let mut progress = RoundsProgress::new(settings.quiet);
    let compared = rounds(request, &mut progress).map_err(refusal)?;
    show(&compared.document, settings)?;
    for doubt in &compared.doubts {
        messages::say(&format!("warning: {doubt}"));
    }
    if let Some(error) = &compared.not_kept {
        return Err(Stop::machine(vec![format!("-o: not everything was kept: {error}")]).into());
    }
    if let Some(folder) = &compared.folder {
        messages::wrote(folder, settings.quiet);
    }
    Ok(compared)
}

/// Prints a comparison.
///
/// # Errors
/// Writing fails.
pub(super) fn show(document: &DiffDocument, settings: Settings) -> Result<()> {
    output::unless_closed(output::shown(document, text::diff, settings))
}
