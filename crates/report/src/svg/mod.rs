//! Execution traces as pictures: the rows of rectangles of the paper's Figures 3 and 6; and the
//! figures of papers whose tables were measured here ([`figure()`]).
//!
//! A picture is one self-contained SVG: no script, no font, nothing fetched. It follows the
//! reader's light or dark scheme, and its size depends on its pixels, not on the trace's length.

mod acceptance;
mod axis;
mod bars;
pub(crate) mod chart;
mod comparison;
mod costs;
mod curves;
mod hatch;
pub(crate) mod histogram;
mod jobs;
mod labels;
mod latency;
mod legend;
mod occupancy_rows;
mod options;
mod page;
mod row;
pub(crate) mod scale;
mod view;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, Write};

use hourglass_documents::paper::{PaperFigure, TraceFigure};
use hourglass_time::Span;
use hourglass_trace::cpu_occupancy::{Occupant, Slice};
use hourglass_trace::{Interval, IntervalStart, JobRecord};
use thiserror::Error;

use crate::occupants::CpuOccupants;
pub use acceptance::acceptance;
pub use bars::bars;
pub use comparison::{ComparedQuantity, comparison};
pub use costs::costs;
pub use curves::curves;
use jobs::JobRow;
pub use latency::{LatencyPicture, LatencyThread};
use occupancy_rows::OccupancyRow;
pub use options::{Rows, TraceOptions};
use row::{LongestGap, Row};
use view::TimeRange;

/// Widths that a picture can have, in pixels.
const WIDTHS: (u32, u32) = (320, 8192);

/// Maximum number of rows of a picture; more are not readable, and a damaged trace could ask
/// for any number.
const MOST_ROWS: usize = 128;

/// Why there is no picture.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum SvgError {
    #[error("nothing lies between {from} and {to}; let the picture end after it begins")]
    EmptyRange {
        /// Left edge that was asked for, from the run's start.
        from: Span,
        /// Right edge that was asked for.
        to: Span,
    },
    /// The picture could not be written.
    #[error("cannot write the picture")]
    Write(#[from] io::Error),
}

/// Pictures below each other as one; a single one stays as it is.
#[must_use]
pub fn stacked(title: &str, pictures: &[String]) -> String {
    if let [one] = pictures {
        return one.clone();
    }
    let size = |picture: &str, name: &str| {
        let value = picture.split_once(name).and_then(|(_, rest)| rest.split_once('"'));
        value.and_then(|(digits, _)| digits.parse::<u32>().ok()).unwrap_or(0)
    };
    let (mut width, mut height, mut body) = (0, 0, String::new());
    for picture in pictures {
        let within = picture.strip_prefix("<svg ").unwrap_or(picture);
        let _ = write!(body, "<svg y=\"{height}\" {within}");
        width = width.max(size(picture, " width=\""));
        height += size(picture, " height=\"");
    }
    page::head((width, height), title, "", "") + &body + "</svg>\n"
}

/// Draws a paper's figure.
#[must_use]
pub fn figure(drawing: &PaperFigure) -> String {
    match drawing {
        PaperFigure::Measurements(figure) => costs(figure),
        PaperFigure::Curves(figure) => curves(figure),
        PaperFigure::Trace(figure) => segment(figure),
        PaperFigure::Bars(figure) => bars(figure),
    }
}

/// A segment of a trace; empty if its range is.
fn segment(figure: &TraceFigure) -> String {
    let (from, to) = (Span::from_nanos(figure.from_ns), Span::from_nanos(figure.to_ns));
    let mut options = TraceOptions::new(from, to);
    options.title = format!("Figure {}: {}", figure.id, figure.title);
    options.threads = figure.threads.clone();
    let intervals = figure.pieces.iter().map(|piece| {
        let onset = IntervalStart::from_code(piece.onset).unwrap_or(IntervalStart::Gap);
        Interval::new(piece.thread, piece.cpu, piece.start_ns, piece.end_ns, onset)
    });
    let mut picture = Vec::new();
    // Into memory, only the range can be refused.
    let _ = render(&mut picture, intervals, &options);
    String::from_utf8(picture).unwrap_or_default()
}

/// Draws the intervals, which must come in the order of their starts, into `out`.
///
/// Gaps shorter than a pixel make their column fainter; the longest gap of each row is always
/// marked, with its length, however short it is.
///
/// # Errors
/// A range that holds nothing, and the errors of the writer beneath.
pub fn render<W: Write>(
    out: W,
    intervals: impl IntoIterator<Item = Interval>,
    options: &TraceOptions,
) -> Result<(), SvgError> {
    let mut picture = TracePicture::new(options)?;
    for interval in intervals {
        picture.push(&interval);
    }
    picture.finish(out)
}

/// A picture that takes its intervals one by one, for traces whose reading may fail. Otherwise
/// [`render`] does the same.
///
/// Memory: a few numbers for each pixel of each row.
#[derive(Debug)]
pub struct TracePicture<'a> {
    options: &'a TraceOptions,
    view: TimeRange,
    frame: page::Frame,
    rows: BTreeMap<u32, Row>,
    /// For the legend, where the rows are CPUs.
    gaps: BTreeMap<u32, LongestGap>,
    /// CPUs of which it is known who had them.
    shares: BTreeMap<u32, OccupancyRow>,
    /// Jobs of threads, where the rows are threads.
    jobs: BTreeMap<u32, JobRow>,
    /// For how long whom: within the range.
    times: BTreeMap<Occupant, u64>,
    /// The same of the whole run.
    run_times: BTreeMap<Occupant, u64>,
    /// Some rows found no place.
    crowded: bool,
}

impl<'a> TracePicture<'a> {
    /// An empty picture.
    ///
    /// # Errors
    /// A range that holds nothing.
    pub fn new(options: &'a TraceOptions) -> Result<TracePicture<'a>, SvgError> {
        if options.to <= options.from {
            return Err(SvgError::EmptyRange { from: options.from, to: options.to });
        }
        let width = options.width.clamp(WIDTHS.0, WIDTHS.1);
        let frame = page::Frame::new(options, width);
        let view = TimeRange {
            from_ns: options.from.nanos(),
            to_ns: options.to.nanos(),
            columns: frame.plot_width,
        };
        let mut rows = BTreeMap::new();
        if options.rows == Rows::Threads {
            let named = options.threads.iter().take(MOST_ROWS);
            rows.extend(named.map(|(thread, _)| (*thread, Row::default())));
        }
        Ok(TracePicture {
            options,
            view,
            frame,
            rows,
            gaps: BTreeMap::new(),
            shares: BTreeMap::new(),
            jobs: BTreeMap::new(),
            times: BTreeMap::new(),
            run_times: BTreeMap::new(),
            crowded: options.threads.len() > MOST_ROWS,
        })
    }

    /// Takes a job of a thread, in the order in which they run; before the intervals. The run ended at `end_ns`.
    pub fn push_job(&mut self, job: &JobRecord, end_ns: i64) {
        if self.options.rows == Rows::Threads && has_place(&self.jobs, job.thread) {
            self.jobs.entry(job.thread).or_default().push(&self.view, job, end_ns);
        }
    }

    /// Takes the next interval, inside the range or not: what lies before and behind the range
    /// says how long the gaps at its edges are.
    pub fn push(&mut self, interval: &Interval) {
        let key = match self.options.rows {
            Rows::Threads => interval.thread,
            Rows::Cpus => interval.cpu,
        };
        if self.options.rows == Rows::Cpus && has_place(&self.gaps, interval.thread) {
            let gap = self.gaps.entry(interval.thread).or_default();
            gap.push(&self.view, interval);
        }
        if let Some(jobs) = self.jobs.get_mut(&interval.thread) {
            jobs.push_interval(&self.view, interval);
        }
        if has_place(&self.rows, key) {
            let row = self.rows.entry(key).or_default();
            row.push(&self.view, interval);
        } else {
            self.crowded = true;
        }
    }

    /// Takes who had a CPU for a while, of each CPU in order of time. With these the picture has a row for
    /// each such CPU, whatever its other rows are.
    pub fn push_slice(&mut self, slice: &Slice) {
        // Colours follow the whole run, so that a part of it has those of the page.
        let whole = self.run_times.entry(slice.who).or_default();
        *whole = whole.saturating_add(slice.length_ns());
        let ns = slice.within_ns(self.view.from_ns, self.view.to_ns);
        if ns == 0 {
            return;
        }
        if has_place(&self.shares, slice.cpu) {
            let sum = self.times.entry(slice.who).or_default();
            *sum = sum.saturating_add(ns);
            self.shares.entry(slice.cpu).or_default().push(&self.view, slice);
        } else {
            self.crowded = true;
        }
    }

    /// Writes the picture.
    ///
    /// # Errors
    /// Those of the writer beneath.
    pub fn finish<W: Write>(self, mut out: W) -> Result<(), SvgError> {
        let view = self.view;
        let rows = self.rows.into_iter().map(|(key, row)| {
            let (pieces, longest) = row.finish(&view);
            page::DrawnRow { key, pieces, longest }
        });
        let parties =
            CpuOccupants::new(&self.run_times, &self.options.called()).within(&self.times);
        let shares = self.shares.into_iter();
        let shares = shares.map(|(cpu, row)| (cpu, row.finish(&view, |who| parties.place(who))));
        let content = page::Content {
            view,
            shares: shares.collect(),
            parties: &parties,
            jobs: self.jobs.into_iter().map(|(key, jobs)| (key, jobs.finish(&view))).collect(),
            rows: rows.collect(),
            gaps: self.gaps.into_iter().map(|(t, g)| (t, g.get())).collect(),
            crowded: self.crowded,
        };
        let page = page::draw(self.options, &self.frame, &content);
        out.write_all(page.as_bytes())?;
        out.flush()?;
        Ok(())
    }
}

fn has_place<T>(rows: &BTreeMap<u32, T>, key: u32) -> bool {
    rows.len() < MOST_ROWS || rows.contains_key(&key)
}
