//! `noise`: what interrupts busy threads, with the options of oslat and sysjitter.

mod options;
mod parse;

use std::io::{self, IsTerminal};
use std::process::ExitCode;

use anyhow::Result;
use hourglass_documents::Cause;
use hourglass_report::text::{NoiseCpu, noise as table, summary};

use self::parse::{Noise, View};
use super::top;
use super::{HostCpus, ParsedCommand, help};
use crate::atomic_file::WholeFile;
use crate::commands::run::{exit_code, refusal};
use crate::commands::say_kept;
use crate::lab::Finished;
use crate::messages;
use crate::output::{self, Format};
use crate::progress::Progress;

pub(crate) use options::{GROUPS, TEXTS};

/// Runs what the words behind `noise` ask for.
///
/// # Errors
/// The line is wrong, or the machine cannot do it.
pub(crate) fn noise(words: &[String]) -> Result<ExitCode> {
    match parse::parse(words, HostCpus::for_this_machine())? {
        ParsedCommand::Run(run) => measure(*run),
        ParsedCommand::Help => {
            output::ansi(&help::text(&TEXTS, &GROUPS))?;
            Ok(ExitCode::SUCCESS)
        }
    }
}

fn measure(run: Noise) -> Result<ExitCode> {
    let Noise { mut request, top, left_out, view, settings } = run;
    let quiet = settings.quiet;
    if top {
        top::check_terminal()?;
    }
    let json_file = WholeFile::wanted("--json", view.json_file.as_deref())?;
    let files = view.files.open(&request)?;
    if let Some(cpu) = left_out
        && !quiet
    {
        messages::say(&format!(
            "CPU {cpu} is not measured: at a real-time priority one CPU must stay free for other work \
             (-C chooses which)"
        ));
    }
    request.command_line = std::env::args().collect();
    let summarised = !settings.json && !quiet && io::stdout().is_terminal();
    let mut progress = Progress::new(quiet, summarised);
    let ran = top::run("noise", false, request, top, &mut progress);
    let mut finished = ran.map_err(refusal)?;
    if settings.json {
        output::print(&mut finished, Format::Json)?;
    } else {
        let mut text = super::fitted(&printed(&finished, &view), io::stdout().is_terminal());
        if summarised {
            text.push('\n');
            text.push_str(&summary(&finished.document, output::style()));
        }
        output::unless_closed(output::text(&text))?;
    }
    if !quiet && !summarised {
        let warnings = finished.document.result.warnings.iter();
        warnings.filter(|warning| !progress.has_warned(warning)).for_each(messages::warn);
    }
    if let Some(file) = json_file {
        file.write_json("--json", &finished.document)?;
    }
    files.write("noise", &finished)?;
    say_kept(finished.folder.as_ref(), "the run", quiet)?;
    Ok(exit_code(&finished))
}

/// The table, and below it what is not noise or ended the run.
fn printed(finished: &Finished, view: &View) -> String {
    let document = &finished.document;
    let noise = finished.noise();
    let reports = document.result.threads.iter().zip(&document.manifest.threads);
    let cpus: Vec<NoiseCpu<'_>> = reports
        .zip(&noise)
        .map(|((report, facts), noise)| {
            let gaps = &noise.gaps;
            NoiseCpu {
                cpu: report.cpus.first().copied().unwrap_or(0),
                counts: &noise.counts,
                beyond: noise.beyond,
                gaps: gaps.count,
                lengths_ns: [gaps.p50_ns, gaps.p99_ns, gaps.p999_ns, gaps.max_ns],
                lost_ns: gaps.total_ns,
                wall_ns: report.wall_ns,
                threshold_ns: facts.gap_ns,
            }
        })
        .collect();
    let mut text = table(&cpus, view.width_ns, view.zero_omit);
    let throttling = Cause::RtThrottling.name();
    for cause in document.result.causes.iter().filter(|cause| cause.cause == throttling) {
        text.push_str(&format!(
            "   Throttled:\t {} gaps, {} us in all, longest {} us: the kernel stops real-time \
             threads (sched_rt_runtime_us); that is not a latency of the system, and not in the \
             rows above\n",
            cause.count,
            cause.total_ns / 1_000,
            cause.max_ns / 1_000
        ));
    }
    for cause in document.result.causes.iter().filter(|cause| cause.cause != throttling) {
        text.push_str(&format!(
            "# Cause {}: {} gaps, {} us in all, longest {} us, confidence {:.2}\n",
            cause.cause,
            cause.count,
            cause.total_ns / 1_000,
            cause.max_ns / 1_000,
            cause.confidence
        ));
    }
    text.push_str(&super::load(document));
    text.push_str(&super::worst(document));
    text.push_str(&super::limits(document, "gaps"));
    text
}
