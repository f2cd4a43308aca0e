//! `diff`: what got better or worse between runs that were kept.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_documents::diff::DiffDocument;
use hourglass_report::svg::ComparedQuantity;
use hourglass_report::text::Style;
use hourglass_report::{html, svg, text};
use hourglass_time::Span;

use super::baseline;
use crate::args::fail_on::FailOn;
use crate::atomic_file;
use crate::exit::Stop;
use crate::lab::compare::{Rules, folders};
use crate::lab::workload_file;
use crate::messages;
use crate::picture::PictureFormat;
use crate::settings::Settings;

/// Compare stored runs: which metrics changed, by how much, and is it more than chance?
#[derive(Args, Debug)]
#[command(after_help = "\
Three forms:
  A B            one run each. Intervals come from the parts of the runs; what
                 changes from one run to the next they do not show.
  A1 A2 --with B1 B2
                 rounds: A1 with B1, A2 with B2... Their differences decide;
                 below 6 rounds there is no verdict; 10 can decide every metric.
  DIR            the rounds in a folder that run --against wrote.

A metric is worse (or better) if the change is more than chance, all metrics
considered together, and more than the margin; same if its 95 % interval lies
within the margin; else unknown. Medians and shares are tested before
percentiles in the tail and maxima. The verdict on all is worse if one metric
is, else better if one is; the same if nothing moved and medians and shares are
the same; else unknown. Causes have no part in it.

Exit code 0: nothing got worse; 1: something did; 4: no verdict (see --fail-on);
2: a folder cannot be read.

Examples:
  hourglass diff monday tuesday                  one run each
  hourglass diff m1 m2 m3 m4 m5 m6 --with t1 t2 t3 t4 t5 t6
  hourglass diff rounds --fail-on worse          in a test that may be undecided
  hourglass diff rounds --margin 10 --gap 1us    coarser
  hourglass diff rounds --json                   the document (hourglass.diff/1)
  hourglass diff monday tuesday -o change.svg    histograms and distributions
  hourglass run -n 1 -d 2s --against '-p LOW' -o rounds   makes such a folder")]
pub(crate) struct Diff {
    /// Run folders, or one folder of rounds
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath, required = true)]
    folders: Vec<PathBuf>,
    /// The other runs, one for each DIR
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath, num_args = 1..)]
    with: Vec<PathBuf>,
    /// Draw the histograms and distributions of both sides: FILE.svg, FILE.png or FILE.pdf, or FILE.html with the text
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    output: Option<PathBuf>,
    /// Treat changes up to this percentage of A as no change
    #[arg(long, value_name = "PERCENT", default_value = "5", value_parser = margin)]
    #[arg(allow_negative_numbers = true)]
    margin: f64,
    /// Leave out gaps up to TIME; never less than the GAP of any run
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = not_negative)]
    gap: Span,
    /// Random seed of the resampling
    #[arg(long, value_name = "N", default_value = "1", value_parser = workload_file::read_seed)]
    seed: u64,
    /// What makes the exit code other than 0
    #[arg(long, value_enum, value_name = "WHEN", default_value_t)]
    fail_on: FailOn,
}

fn margin(text: &str) -> Result<f64, String> {
    let digits = text.strip_suffix('%').unwrap_or(text).trim_end();
    match digits.parse::<f64>() {
        Ok(margin) if (0.0..=1_000.0).contains(&margin) => Ok(margin),
        _ => Err("give per cent from 0 to 1000, for example 5".to_owned()),
    }
}

fn not_negative(text: &str) -> Result<Span, String> {
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span.is_negative() { Err("a length is not negative".to_owned()) } else { Ok(span) }
}

/// Compares and prints.
///
/// # Errors
/// A folder cannot be read, or has no partner.
pub(crate) fn diff(diff: &Diff, settings: Settings) -> Result<ExitCode> {
    let output = diff.output.as_deref().map(Output::of).transpose()?;
    let rules = Rules { margin_percent: diff.margin, seed: diff.seed };
    let gap_ns = diff.gap.nanos_or_zero();
    let compared = match (&diff.folders[..], &diff.with[..]) {
        ([rounds], []) => folders::compare_rounds(rounds, &rules, gap_ns),
        ([a, b], []) => {
            folders::compare(std::slice::from_ref(a), std::slice::from_ref(b), &rules, gap_ns)
        }
        (more, []) => {
            return Err(Stop::usage(format!(
                "{} folders: which with which? Put those of one side behind --with",
                more.len()
            ))
            .into());
        }
        (a, b) => folders::compare(a, b, &rules, gap_ns),
    };
    let document = compared.map_err(Stop::bad_input)?;
    let drawing = output.map(|output| output.draw(&document)).transpose()?;
    baseline::show(&document, settings)?;
    if let Some((path, drawing)) = diff.output.as_deref().zip(drawing) {
        atomic_file::keep("-o", path, &drawing)?;
        messages::wrote(path, settings.json || settings.quiet);
    }
    Ok(diff.fail_on.code(&document))
}

/// What is drawn into the file of `-o`.
#[derive(Clone, Copy)]
enum Output {
    Picture(PictureFormat),
    Html,
}

impl Output {
    fn of(path: &Path) -> Result<Output, Stop> {
        match path.extension().and_then(OsStr::to_str) {
            Some("svg" | "png" | "pdf") => PictureFormat::of("-o", path).map(Output::Picture),
            Some("html") => Ok(Output::Html),
            _ => Err(Stop::usage(format!(
                "-o: {} does not end with .svg, .png, .pdf or .html; name such a file",
                path.display()
            ))),
        }
    }

    fn draw(self, document: &DiffDocument) -> Result<Vec<u8>> {
        let [a, b] = folders::compared_counts(document).map_err(Stop::bad_input)?;
        let quantity = |name, counted, counts: [BTreeMap<u64, u64>; 2]| {
            let counts = counts.map(|counts| counts.into_iter().collect::<Vec<_>>());
            let both = counts.iter().all(|counts| !counts.is_empty());
            both.then_some(ComparedQuantity { name, counted, counts })
        };
        let quantities: Vec<ComparedQuantity> = [
            quantity("wake-up latency", "wake-ups", [a.latencies, b.latencies]),
            quantity("gap length", "gaps", [a.gaps, b.gaps]),
        ]
        .into_iter()
        .flatten()
        .collect();
        if quantities.is_empty() {
            return Err(Stop::usage(
                "-o: A and B have neither wake-ups nor gaps of both to draw; leave -o out, or measure longer",
            )
            .into());
        }
        let names = [&document.a, &document.b].map(|side| match &side.folders[..] {
            [one] => one.clone(),
            [first, rest @ ..] => format!("{first} and {} more", rest.len()),
            [] => side.what.clone(),
        });
        let picture = svg::comparison(&quantities, [&names[0], &names[1]]);
        Ok(match self {
            Output::Picture(format) => format.encode(picture)?,
            Output::Html => {
                html::comparison(&picture, &text::diff(document, Style::Plain)).into_bytes()
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn margins() {
        assert_eq!((margin("5"), margin("2.5%"), margin("0")), (Ok(5.0), Ok(2.5), Ok(0.0)));
        for wrong in ["", "-1", "x", "NaN", "inf", "2000"] {
            assert!(margin(wrong).is_err(), "{wrong}");
        }
    }
}
