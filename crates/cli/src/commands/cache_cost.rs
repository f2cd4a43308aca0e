//! `cache-cost`: what a context switch costs threads whose data leave the cache.

use std::io::{self, IsTerminal};
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueHint};
use hourglass_report::{svg, text};
use hourglass_time::Span;

use crate::atomic_file::{self, WholeFile};
use crate::exit::{self, Stop};
use crate::lab::cache_cost::{self, Step};
use crate::messages;
use crate::output;
use crate::picture::PictureFormat;
use crate::settings::Settings;

/// Measure what a context switch costs through cold caches, by size of the working set
#[derive(Args, Debug)]
#[command(after_help = "\
One thread scans an array of SIZE for a while, then several threads with arrays
of their own do, in turns on the same CPU; what they do less, divided by the
switches, is the penalty of a switch: C = ((W1 - W10)/W1)(T/N10), section 5.2 of
Regehr's paper. It takes sizes x trials x 2 x duration. Ctrl-C ends it early;
what was measured by then is printed.

Examples:
  hourglass cache-cost                        4K to 4M, in two minutes
  hourglass cache-cost --sizes 32K,256K,2M --trials 15
  hourglass cache-cost --sizes 4K..1M --duration 45s --trials 15   the paper's
  hourglass cache-cost --svg cost.svg         draw it, as the paper's Figure 5
  hourglass cache-cost --json                 the document (hourglass.cache-cost/1)")]
pub(crate) struct CacheCost {
    /// Working sets: 64K, a range that is doubled each time, or several separated by commas
    #[arg(long, value_name = "SIZES", default_value = "4K..4M")]
    sizes: String,
    /// Trials of each size; two or more for an interval
    #[arg(long, value_name = "N", default_value = "5", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    trials: u32,
    /// Duration of each run; a trial is two runs
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = duration)]
    duration: Span,
    /// Threads that are compared with one
    #[arg(long, value_name = "N", default_value_t = 10)]
    threads: u32,
    /// CPU to measure on [default: the last that may be used]
    #[arg(long, value_name = "CPU")]
    cpu: Option<u32>,
    /// Picture to write: FILE.svg, or FILE.png, FILE.pdf by rsvg-convert
    #[arg(long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    svg: Option<PathBuf>,
}

fn duration(text: &str) -> Result<Span, String> {
    const SHORTEST: Span = Span::from_millis(10);
    let span: Span = text.parse().map_err(|error| format!("{error}"))?;
    if span < SHORTEST { Err(format!("runs take at least {SHORTEST}")) } else { Ok(span) }
}

/// Measures and prints.
///
/// # Errors
/// Sizes that cannot be meant, a CPU or memory that is not there, a picture that cannot be written.
pub(crate) fn measure(asked: &CacheCost, settings: Settings) -> Result<ExitCode> {
    let wanted = asked.wanted()?;
    let format = asked.svg.as_deref().map(|path| PictureFormat::of("--svg", path)).transpose()?;
    let file = WholeFile::wanted("--svg", asked.svg.as_deref())?;
    let tell = io::stderr().is_terminal() && !settings.quiet;
    if tell {
        messages::say(&format!("this takes {} and a little more", wanted.length()));
    }
    let found = cache_cost::measure(&wanted, |Step { done, all, bytes }| {
        if tell {
            messages::say(&format!("run {} of {all}: {} KiB", done + 1, bytes >> 10));
        }
    })
    .map_err(super::run::refusal)?;
    output::shown(&found.document, text::cache_cost, settings)?;
    if let Some((file, format)) = file.zip(format) {
        let name = file.name().to_path_buf();
        let picture = format.encode(svg::curves(&cache_cost::curves(&found.document)))?;
        file.write(&picture).map_err(|error| atomic_file::refused("--svg", &name, &error))?;
        messages::wrote(&name, settings.quiet);
    }
    Ok(found.signal.map_or(ExitCode::SUCCESS, exit::ended_by))
}

impl CacheCost {
    fn wanted(&self) -> Result<cache_cost::CacheCost, Stop> {
        let sizes = cache_cost::sizes(&self.sizes)
            .map_err(|error| Stop::usage(format!("--sizes: {error}")))?;
        let allowed = cache_cost::CacheCost::THREADS;
        if !allowed.contains(&self.threads) {
            let (least, most) = (allowed.start(), allowed.end());
            return Err(Stop::usage(format!(
                "--threads: '{}' is out of range; take {least} to {most}",
                self.threads
            )));
        }
        Ok(cache_cost::CacheCost {
            sizes,
            trials: self.trials,
            duration: self.duration,
            threads: self.threads,
            cpu: self.cpu,
        })
    }
}
