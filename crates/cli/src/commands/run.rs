//! `run`: measures, and shows what was found.

use std::process::ExitCode;
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::Result;
use hourglass_runs::store::CreateError;

use super::baseline::{self, ControlPlan};
use super::say_kept;
use crate::args::{self, HostDefaults, RunArguments, help};
use crate::compat::ParsedCommand;
use crate::exit::{self, Stop};
use crate::lab::compare::Rules;
use crate::lab::compare::control::run_beside;
use crate::lab::{self, RunFailure, RunSpec, ThreadSpec, workload_file};
use crate::messages;
use crate::output::{self, Format, OutputOptions};
use crate::progress::Progress;

/// Runs what the words behind `run` ask for.
///
/// # Errors
/// The line is wrong, or the machine cannot do it.
pub(crate) fn run(words: &[String]) -> Result<ExitCode> {
    let around = HostDefaults { online: workload_file::online_cpus(), seed: seed_from_clock() };
    match args::parse(words, &around)? {
        ParsedCommand::Run(run) if run.against.is_some() => baseline::against(*run),
        ParsedCommand::Run(run) if run.control => match baseline::with_control(*run)? {
            ControlPlan::Beside(control, run) => measure(*run, Some(*control)),
            ControlPlan::Done(code) => Ok(code),
        },
        ParsedCommand::Run(run) => measure(*run, None),
        ParsedCommand::Help => {
            output::ansi(&help::text())?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn measure(run: RunArguments, control: Option<ThreadSpec>) -> Result<ExitCode> {
    let quiet = run.settings.quiet;
    run.notes.iter().filter(|_| !quiet).for_each(|note| messages::say(note));
    if run.seed_is_made_up && !quiet && draws_at_random(&run.request.spec) {
        messages::say(&format!(
            "seed {0}; --seed {0} repeats these execution times",
            run.request.spec.seed
        ));
    }
    let request = lab::RunOptions { command_line: std::env::args().collect(), ..run.request };
    let format = Format::choose(OutputOptions {
        json: run.settings.json,
        records: run.records,
        cycles: run.cycles,
        summary: run.summary,
        kept_quietly: quiet && request.folder.is_some(),
    })?;
    let files = run.files.open(&request)?;
    let mut progress = Progress::new(quiet, format == Format::Summary);
    let rules = Rules { seed: request.spec.seed, ..Rules::default() };
    let finished = match control {
        Some(control) => run_beside(request, control, &rules, &mut progress),
        None => lab::run(request, &mut progress),
    };
    let mut finished = finished.map_err(refusal)?;
    let result = &finished.document.result;
    if !quiet && format != Format::Summary {
        let new = result.warnings.iter().filter(|warning| !progress.has_warned(warning));
        new.for_each(messages::warn);
        if let Some(control) = &result.control {
            messages::say(&format!("control: {}", control.statement));
        }
    }
    if let Format::Lines { .. } | Format::Nothing = format {
        // Also where it is to be quiet: it is why the exit code is 1.
        let broken = result.gates.iter().filter(|gate| !gate.passed);
        broken.for_each(|gate| messages::say(&hourglass_report::text::limit(gate, true)));
    }
    output::print(&mut finished, format)?;
    files.write("run", &finished)?;
    say_kept(finished.folder.as_ref(), "the run", quiet)?;
    Ok(exit_code(&finished))
}

/// The exit code of a run: the signal that ended it, or that what it rests on did not hold, or whether it kept its
/// limits, or that beside its control nothing was decided.
pub(crate) fn exit_code(finished: &lab::Finished) -> ExitCode {
    let premises = &finished.document.result.premises;
    let kept = finished.document.result.gates.iter().all(|gate| gate.passed);
    match finished.signal() {
        Some(signal) => exit::ended_by(signal),
        None if !premises.is_empty() => ExitCode::from(exit::UNDECIDED),
        None if kept => baseline::answered(finished.document.result.control.as_ref()),
        None => ExitCode::from(exit::NO),
    }
}

/// Whether the amount of processor time differs from period to period.
fn draws_at_random(spec: &RunSpec) -> bool {
    spec.threads.iter().map(|thread| thread.model.demand()).any(|demand| {
        let longest_ns = demand.longest.map(|longest| longest.nanos() as f64);
        demand.mean_ns.is_some() && demand.mean_ns != longest_ns
    })
}

/// Why the folder of `-o` is not made, and the exit code for it.
pub(crate) fn no_folder(why: &CreateError) -> Stop {
    let line = format!("-o: {why}");
    if why.is_full() { Stop::machine(vec![line]) } else { Stop::usage(line) }
}

/// Why there was no run, and the exit code for it.
pub(crate) fn refusal(failure: RunFailure) -> Stop {
    match failure {
        RunFailure::Folder(why) => no_folder(&why),
        RunFailure::Spec(_) | RunFailure::Gate(_) | RunFailure::NoSuchCpu { .. } => {
            Stop::usage(failure.to_string())
        }
        RunFailure::Load { .. }
        | RunFailure::Barred { .. }
        | RunFailure::Memory { .. }
        | RunFailure::Sizes { .. } => Stop::machine(vec![failure.to_string()]),
        RunFailure::Refused(refusals) => {
            let line = |r: &lab::Refusal| format!("{}: {}; {}", r.what, r.reason, r.remedy);
            Stop::machine(refusals.iter().map(line).collect())
        }
        RunFailure::Other(text) => Stop::machine(vec![text]),
    }
}

fn seed_from_clock() -> u64 {
    // Any number will do that is not the same each time; the low bits change fastest.
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64)
}
