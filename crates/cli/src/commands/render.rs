//! `render`: draws the execution trace of a run, and the latencies of its wake-ups.

use std::fmt::Display;
use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::Result;
use clap::{Args, ValueEnum, ValueHint};
use hourglass_documents::document::ThreadReport;
use hourglass_documents::sweep::SweepDocument;
use hourglass_report::svg::{
    self, LatencyPicture, LatencyThread, Rows, SvgError, TraceOptions, TracePicture,
};
use hourglass_runs::store::sweep::RESULT_FILE;
use hourglass_time::Span;
use hourglass_trace::wakeup::TimedWakeUp;
use serde_json::json;

use super::write_output;
use crate::exit::Stop;
use crate::lab;
use crate::lab::cpu_occupancy::{CpuOccupancy, Slice};
use crate::lab::sweep;
use crate::output::Source;
use crate::picture::PictureFormat;
use crate::settings::Settings;

const PS_PER_NS: u64 = 1_000;

/// What the rows of the picture are.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum RowsAsked {
    /// One row for each thread
    Threads,
    /// One row for each CPU, the threads in colours
    Cpus,
}

/// Draw a run as a picture: when threads had the CPU, and latencies over time; or the curves of a sweep
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  hourglass render monday -o monday.svg
  hourglass render monday -o detail.svg --from 1.5s --to 1.6s --title Monday
  hourglass render swept -o curves.pdf     the curves of a sweep (sweep -o)")]
pub(crate) struct Render {
    /// Folder that `run -o` wrote, or `sweep -o`
    #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
    folder: PathBuf,
    /// Picture to write: FILE.svg, or FILE.png, FILE.pdf by rsvg-convert; - is stdout
    #[arg(short, long, value_name = "FILE.svg", value_hint = ValueHint::FilePath)]
    output: PathBuf,
    /// Left edge, from the run's start
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = str::parse::<Span>)]
    from: Span,
    /// Right edge, from the run's start [default: the run's end]
    #[arg(long, value_name = "TIME", value_parser = str::parse::<Span>)]
    to: Option<Span>,
    /// Width in pixels, from 320 to 8192
    #[arg(long, value_name = "PIXELS", value_parser = clap::value_parser!(u32).range(320..=8192))]
    width: Option<u32>,
    /// Title of the picture
    #[arg(long, value_name = "TEXT")]
    title: Option<String>,
    /// What the rows are
    #[arg(long, value_enum, default_value = "threads")]
    rows: RowsAsked,
}

/// Draws a run.
///
/// # Errors
/// The folder holds none, or the picture cannot be written.
pub(crate) fn render(render: &Render, settings: Settings) -> Result<ExitCode> {
    let format = PictureFormat::of("-o", &render.output)?;
    if sweep::is_experiment(&render.folder) {
        return render_sweep(render, format, settings);
    }
    let mut recalled = lab::open_run(&render.folder).map_err(Stop::bad_input)?;
    let ended = recalled.document().manifest.elapsed_ns;
    let forwards = render.to.is_none_or(|to| to > render.from);
    if forwards && render.from.nanos_or_zero() >= ended && ended > 0 {
        let ended = Span::saturating_from_nanos(ended);
        return Err(Stop::usage(format!("--from: the run had ended by then, at {ended}")).into());
    }
    let mut options = options(render, &recalled);
    let mut pictures = Vec::new();
    if let Some(latencies) = draw_latencies(&options, &recalled)? {
        pictures.push(latencies);
        // Above the first picture is enough.
        options.title.clear();
    }
    // A run of latency threads alone has no intervals, and rows only with the kernel's trace.
    if pictures.is_empty()
        || !options.threads.is_empty()
        || recalled.document().manifest.kernel.is_some()
    {
        pictures.push(draw_trace(&options, &mut recalled)?);
    }
    let title = render.title.as_deref().unwrap_or("Latency of wake-ups, and execution trace");
    let picture = format.encode(svg::stacked(title, &pictures))?;
    let document = json!({
        "schema": "hourglass.render/1",
        "picture": render.output,
        "from_ns": options.from.nanos(),
        "to_ns": options.to.nanos(),
    });
    write_output(("render", "a picture"), &render.output, &picture, &document, settings)
}

/// Draws the curves of a sweep as far as it is done.
fn render_sweep(render: &Render, format: PictureFormat, settings: Settings) -> Result<ExitCode> {
    let given = [
        ("--from", !render.from.is_zero()),
        ("--to", render.to.is_some()),
        ("--width", render.width.is_some()),
        ("--title", render.title.is_some()),
    ];
    if let Some((option, _)) = given.into_iter().find(|(_, given)| *given) {
        let folder = render.folder.display();
        return Err(Stop::usage(format!("{option}: {folder} holds a sweep; leave it out")).into());
    }
    let path = render.folder.join(RESULT_FILE);
    let unreadable = |error: &dyn Display| {
        let path = path.display();
        Stop::bad_input(format!("{path}: {error}; run the sweep with -o again, which completes it"))
    };
    let text = fs::read_to_string(&path).map_err(|error| unreadable(&error))?;
    let swept: SweepDocument = serde_json::from_str(&text).map_err(|error| unreadable(&error))?;
    let picture = format.encode(svg::acceptance(&swept))?;
    let document = json!({ "schema": "hourglass.render/1", "picture": render.output });
    write_output(("render", "a picture"), &render.output, &picture, &document, settings)
}

/// Draws when threads ran, and who had the CPUs.
fn draw_trace(options: &TraceOptions, recalled: &mut lab::OpenRun) -> Result<String> {
    let mut picture = TracePicture::new(options).map_err(empty_range)?;
    let end_ns = i64::try_from(recalled.document().manifest.elapsed_ns).unwrap_or(i64::MAX);
    for job in recalled.jobs().map_err(Stop::bad_input)? {
        picture.push_job(&job.map_err(Stop::bad_input)?, end_ns);
    }
    recalled
        .each_interval(|interval| {
            picture.push(&interval);
            Ok(())
        })
        .map_err(super::damaged)?;
    draw_who_ran(&mut picture, recalled).map_err(super::damaged)?;
    let mut drawn = Vec::new();
    picture.finish(&mut drawn)?;
    Ok(String::from_utf8(drawn)?)
}

fn empty_range(error: SvgError) -> Stop {
    Stop::usage(format!("--to: {error}"))
}

/// Draws the latencies of wake-ups; `None` if no thread measured any.
fn draw_latencies(options: &TraceOptions, recalled: &lab::OpenRun) -> Result<Option<String>> {
    let reports = &recalled.document().result.threads;
    if reports.iter().all(|thread| thread.latency.is_none()) {
        return Ok(None);
    }
    let mut counts = recalled.latency_counts().map_err(Stop::bad_input)?;
    let threads = reports.iter().filter_map(|thread| {
        Some(LatencyThread {
            id: thread.id,
            label: label(thread),
            report: thread.latency?,
            counts: counts.remove(&thread.id).unwrap_or_default(),
        })
    });
    let threads: Vec<LatencyThread> = threads.collect();
    let mut picture = LatencyPicture::new(options, &threads).map_err(empty_range)?;
    for thread in &threads {
        if !recalled.has_single_latencies(thread.id).map_err(Stop::bad_input)? {
            continue;
        }
        for one in recalled.wake_ups(thread.id).map_err(Stop::bad_input)? {
            let one = one.map_err(Stop::bad_input)?;
            let latency_ns = one.lateness_ps / PS_PER_NS;
            let timed = one.woke_ns.map(|woke_ns| TimedWakeUp { woke_ns, latency_ns });
            timed.into_iter().for_each(|timed| picture.push(thread.id, timed));
        }
    }
    Ok(Some(picture.finish()))
}

/// Adds who had each CPU that the kernel's trace covers.
fn draw_who_ran(picture: &mut TracePicture<'_>, recalled: &lab::OpenRun) -> Result<()> {
    let Some(facts) = &recalled.document().manifest.kernel else { return Ok(()) };
    let end_ns = i64::try_from(recalled.document().manifest.elapsed_ns).unwrap_or(i64::MAX);
    let mut draw = |slice: Slice| {
        if facts.covers(slice.cpu) {
            picture.push_slice(&slice);
        }
    };
    let mut who_ran = CpuOccupancy::default();
    for event in recalled.kernel_events()? {
        who_ran.take(&event?, &mut draw);
    }
    who_ran.finish(end_ns, draw);
    Ok(())
}

fn label(thread: &ThreadReport) -> String {
    match &thread.name {
        Some(name) => format!("{name}: {}", thread.workload),
        None => thread.workload.clone(),
    }
}

fn options(render: &Render, recalled: &lab::OpenRun) -> TraceOptions {
    let document = recalled.document();
    let elapsed = i64::try_from(document.manifest.elapsed_ns).unwrap_or(i64::MAX);
    let mut options =
        TraceOptions::new(render.from, render.to.unwrap_or(Span::from_nanos(elapsed)));
    options.width = render.width.unwrap_or(options.width);
    options.title = render.title.clone().unwrap_or_default();
    options.rows = match render.rows {
        RowsAsked::Threads => Rows::Threads,
        RowsAsked::Cpus => Rows::Cpus,
    };
    // Latency threads write no trace: a row of theirs would look like a thread that starved.
    let traced = document.result.threads.iter().filter(|thread| thread.latency.is_none());
    options.tids = document
        .result
        .threads
        .iter()
        .filter_map(|thread| Some((thread.tid?, thread.id)))
        .collect();
    options.names =
        document.manifest.kernel.as_ref().map(|facts| facts.names.clone()).unwrap_or_default();
    options.threads = traced.map(|thread| (thread.id, label(thread))).collect();
    options
}
