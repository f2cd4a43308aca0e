//! `clocks`: what can tell the time on this machine, and what speaks for it.

use std::ops::ControlFlow;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Args;
use console::Term;
use hourglass_documents::clocks::{ClocksDocument, WatchFacts};
use hourglass_documents::spelling;
use hourglass_report::text;
use hourglass_time::Span;

use crate::exit::{self, Stop};
use crate::lab::{
    self, ClockPolicy, ClockWatch, SourceName, UnknownClockPolicy, UnknownSource, clock_devices,
    clock_watch, utc,
};
use crate::output;
use crate::settings::Settings;

/// Rules of the choice.
pub(super) const RULES: [&str; 4] = ["strict", "thesis", "permissive", "forced:CLOCK"];

/// Show this machine's clocks: which can be trusted, why, and what a read costs
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass clocks                   the table, and the evidence for the clock chosen
  hourglass clocks --evidence        the evidence for every clock
  hourglass clocks --verify          all CPUs against each other, for some seconds
  hourglass clocks --watch           bound and drift as they go, until Ctrl-C
  hourglass clocks --watch --for 1m --json   the same for a minute, as a document
  hourglass clocks --utc             who vouches for UTC, and within which bound
  hourglass clocks --devices --resolution 1ms   what can tick, and how well
  hourglass clocks --policy thesis   the choice by the rule of Fedotova's thesis (2012)
  hourglass clocks --json            the document (hourglass.clocks/1)")]
pub(crate) struct Clocks {
    /// Rule of the choice: strict, thesis, permissive or forced:NAME
    #[arg(long, value_name = "RULE", default_value = "strict", value_parser = policy)]
    policy: ClockPolicy,
    /// Measure all pairs of CPUs, and for longer
    #[arg(long)]
    verify: bool,
    /// Print the evidence about every clock
    #[arg(long)]
    evidence: bool,
    /// Open each clock device and watch its ticks, instead of the table of clocks
    #[arg(long)]
    devices: bool,
    /// Resolution to ask the devices for
    #[arg(long, value_name = "TIME", default_value = "10ms", value_parser = resolution, requires = "devices")]
    resolution: Span,
    /// How far off it may be; without it, whatever is nearest
    #[arg(long, value_name = "TIME", value_parser = length, requires = "devices")]
    skew: Option<Span>,
    /// Show who vouches for UTC, within which bound, instead of the table; none: exit code 4
    #[arg(long, conflicts_with = "devices")]
    utc: bool,
    /// Then let the clock run and show its bound, drift and events
    #[arg(long)]
    watch: bool,
    /// Interval of --watch, 10ms or more
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = pause, requires = "watch")]
    every: Span,
    /// Duration of --watch; without it, until Ctrl-C
    #[arg(long = "for", value_name = "TIME", value_parser = length, requires = "watch")]
    length: Option<Span>,
}

/// A rule of the choice, and what a mistyped one may have meant.
fn policy(text: &str) -> Result<ClockPolicy, String> {
    text.parse().map_err(|error: UnknownClockPolicy| match &error {
        UnknownClockPolicy::Word(word) => spelling::unknown("rule", word, RULES),
        UnknownClockPolicy::Source(UnknownSource(name)) => {
            let names: Vec<String> = SourceName::all().map(|source| source.to_string()).collect();
            let question = spelling::did_you_mean(name, names.iter().map(String::as_str));
            question.map_or_else(|| error.to_string(), |q| format!("unknown clock '{name}'; {q}"))
        }
    })
}

fn pause(text: &str) -> Result<Span, String> {
    const SHORTEST: Span = Span::from_millis(10);
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span < SHORTEST { Err(format!("samples are at least {SHORTEST} apart")) } else { Ok(span) }
}

fn resolution(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span.is_positive() { Ok(span) } else { Err("a resolution is greater than zero".to_owned()) }
}

fn length(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span.is_negative() { Err("a time to come is not negative".to_owned()) } else { Ok(span) }
}

/// Probes, measures and prints.
///
/// # Errors
/// A source that was to be forced cannot be read.
pub(crate) fn show(clocks: &Clocks, settings: Settings) -> Result<ExitCode> {
    let mut document = lab::clocks(clocks.policy, clocks.verify)
        .map_err(|error| Stop::machine(vec![error.to_string()]))?;
    let sources_asked = !(clocks.devices || clocks.utc) || clocks.evidence || clocks.verify;
    if sources_asked && !settings.json {
        output::text(&text::clocks(&document, clocks.evidence, output::style()))?;
    }
    if clocks.devices {
        let wanted =
            clock_devices::ClockDeviceRequest { resolution: clocks.resolution, skew: clocks.skew };
        let found = clock_devices::clock_devices(wanted);
        if !settings.json {
            output::text(&text::clock_devices(&found, output::style()))?;
        }
        document.devices = Some(found);
    }
    if clocks.utc {
        return show_utc(clocks, document, settings);
    }
    let mut ended_by = None;
    if clocks.watch {
        let (facts, signal) = watch(clocks, &document, settings)?;
        document.watch = Some(facts);
        ended_by = signal;
    }
    if settings.json {
        output::json(&document)?;
    }
    Ok(ended_by.map_or(ExitCode::SUCCESS, exit::ended_by))
}

/// One look at UTC, or with `--watch` one after the other.
fn show_utc(clocks: &Clocks, mut document: ClocksDocument, settings: Settings) -> Result<ExitCode> {
    let mut ended_by = None;
    if clocks.watch {
        if !settings.json {
            output::text(&format!("{}\n", text::utc_header()))?;
        }
        let mut written = Ok(());
        ended_by = utc::watch(clocks.every, clocks.length, |facts| {
            if settings.json {
                document.utc_watch.push(facts.clone());
            } else {
                written = output::text(&format!("{}\n", text::utc_line(&facts)));
            }
            document.utc = Some(facts);
            if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        });
        written?;
    } else {
        let facts = utc::look();
        if !settings.json {
            output::text(&text::utc(&facts, output::style()))?;
        }
        document.utc = Some(facts);
    }
    if settings.json {
        output::json(&document)?;
    }
    let is_vouched = document.utc.is_some_and(|facts| facts.error_ns.is_some());
    let code = if is_vouched { exit::YES } else { exit::UNDECIDED };
    Ok(ended_by.map_or(ExitCode::from(code), exit::ended_by))
}

fn watch(
    clocks: &Clocks,
    document: &ClocksDocument,
    settings: Settings,
) -> Result<(WatchFacts, Option<i32>)> {
    let selected =
        document.selected.parse().map_err(|error| Stop::machine(vec![format!("{error}")]))?;
    let how = ClockWatch { every: clocks.every, length: clocks.length };
    let terminal = Term::stdout();
    let shows_picture = terminal.is_term() && !settings.json;
    if !settings.json {
        let header = if shows_picture { String::new() } else { text::watch_header() };
        output::text(&format!("\n{header}\n"))?;
    }
    // A document has every look; on a terminal or in a pipe they go by.
    let kept = if settings.json { usize::MAX } else { text::WATCH_SHOWN };
    let (mut drawn, mut written) = (0, Ok(()));
    let watched = clock_watch::watch(clocks.policy, selected, how, kept, |facts| {
        written = match facts.samples.last() {
            _ if settings.json => Ok(()),
            _ if shows_picture => redraw(&terminal, facts, &mut drawn),
            Some(sample) => output::text(&format!("{}\n", text::watch_line(sample))),
            None => Ok(()),
        };
        if written.is_ok() { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    });
    written.map(|()| watched)
}

/// Draws over the `drawn` lines of the last picture, and counts those of the new one.
fn redraw(terminal: &Term, facts: &WatchFacts, drawn: &mut usize) -> Result<()> {
    let (rows, columns) = terminal.size();
    let picture = text::watch_picture(facts, columns, rows.saturating_sub(1), output::style());
    terminal.clear_last_lines(*drawn).context("cannot write to the terminal")?;
    *drawn = picture.lines().count();
    output::text(&picture)
}
