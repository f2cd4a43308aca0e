//! Latencies of wake-ups over time, and their histogram.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hourglass_documents::document::LatencyReport;
use hourglass_trace::wakeup::TimedWakeUp;

use super::chart::{
    Area, Axes, Chart, Division, Line, Mark, Series, Texts, dashes, joined, panels,
};
use super::histogram::{BINS_A_DECADE, bins, path, steps};
use super::legend::{LegendEntry, thread_class};
use super::page::{Frame, pixels};
use super::scale::{Axis, microseconds};
use super::view::TimeRange;
use super::{SvgError, TraceOptions, WIDTHS};
use crate::clean::{for_xml, shortened};
use crate::units::rounded;

/// Upper edges of the two plots; their heights.
const TOPS: [u32; 2] = [84, 452];
const HEIGHT: u32 = 280;

/// Columns of several threads are wider than a pixel, so that their marks can be told apart, and those of very many
/// wider still, so that a picture stays small.
const LEAST_STEP: u32 = 5;
const THREADS_A_PIXEL: u32 = 4;

/// With more columns than these, the marks of a single thread are small.
const FEW_MARKS: usize = 250;

/// A label is cut to this many characters.
const LONGEST_LABEL: usize = 40;

/// The lower end of the axis of counts: below 1, so that a single wake-up can be seen.
const LEAST_COUNT: f64 = 0.6;

const CAPTION: &str = "wake-up latency, us";

/// A thread that measured latencies.
#[derive(Clone, Debug)]
pub struct LatencyThread {
    pub id: u32,
    pub label: String,
    pub report: LatencyReport,
    /// Latencies (ns, ascending), and how many wake-ups had each.
    pub counts: Vec<(u64, u64)>,
}

/// A picture of latencies, which takes wake-ups one by one, of each thread in order of time.
///
/// Memory: three numbers for each pixel of each thread, and the wake-ups of one pixel.
#[derive(Debug)]
pub struct LatencyPicture<'a> {
    options: &'a TraceOptions,
    threads: &'a [LatencyThread],
    width: u32,
    /// Horizontal edges as in the picture of the trace, which may stand below.
    frame: Frame,
    view: TimeRange,
    columns: BTreeMap<u32, Columns>,
}

/// The wake-ups of a thread, by columns.
#[derive(Debug, Default)]
struct Columns {
    done: Vec<ColumnSummary>,
    column: u32,
    /// Latencies in `column`, ns.
    current: Vec<u64>,
}

#[derive(Clone, Copy, Debug)]
struct ColumnSummary {
    column: u32,
    median_ns: u64,
    max_ns: u64,
    several: bool,
}

impl Columns {
    fn push(&mut self, column: u32, ns: u64) {
        if column != self.column {
            self.close();
            self.column = column;
        }
        self.current.push(ns);
    }

    fn close(&mut self) {
        let middle = self.current.len().saturating_sub(1) / 2;
        let Some(&max_ns) = self.current.iter().max() else { return };
        let (_, median, _) = self.current.select_nth_unstable(middle);
        self.done.push(ColumnSummary {
            column: self.column,
            median_ns: *median,
            max_ns,
            several: self.current.len() > 1,
        });
        self.current.clear();
    }
}

impl<'a> LatencyPicture<'a> {
    /// A picture of the range of `options`; the histogram is of all wake-ups of the run.
    ///
    /// # Errors
    /// A range that holds nothing.
    pub fn new(
        options: &'a TraceOptions,
        threads: &'a [LatencyThread],
    ) -> Result<LatencyPicture<'a>, SvgError> {
        if options.to <= options.from {
            return Err(SvgError::EmptyRange { from: options.from, to: options.to });
        }
        let width = options.width.clamp(WIDTHS.0, WIDTHS.1);
        let frame = Frame::new(options, width);
        let step = match threads.len() as u32 {
            0 | 1 => 1,
            several => several.div_ceil(THREADS_A_PIXEL).max(LEAST_STEP),
        };
        let view = TimeRange {
            from_ns: options.from.nanos(),
            to_ns: options.to.nanos(),
            columns: (frame.plot_width / step).max(1),
        };
        Ok(LatencyPicture { options, threads, width, frame, view, columns: BTreeMap::new() })
    }

    /// Takes the next wake-up, inside the range or not.
    pub fn push(&mut self, thread: u32, wake_up: TimedWakeUp) {
        if (self.view.from_ns..=self.view.to_ns).contains(&wake_up.woke_ns) {
            let column = self.view.column(wake_up.woke_ns);
            self.columns.entry(thread).or_default().push(column, wake_up.latency_ns);
        }
    }

    /// The picture, as one self-contained SVG.
    #[must_use]
    pub fn finish(mut self) -> String {
        self.columns.values_mut().for_each(Columns::close);
        let several =
            self.columns.values().any(|columns| columns.done.iter().any(|one| one.several));
        let over_time = self.over_time(several);
        let histogram = self.histogram();
        let under = match (self.columns.is_empty(), several) {
            (true, _) if self.threads.iter().all(|thread| thread.report.count == 0) => {
                "No wake-up was measured.".to_owned()
            }
            (true, _) => {
                "The times of single wake-ups are not known: only their histogram is drawn."
                    .to_owned()
            }
            (false, false) => "Each wake-up.".to_owned(),
            (false, true) => {
                let range = self.view.to_ns.abs_diff(self.view.from_ns);
                let each = rounded(range / u64::from(self.view.columns));
                format!("In each {each}: the greatest latency (marks) and the median (lines).")
            }
        };
        let title = match self.options.title.as_str() {
            "" => "Latency of wake-ups",
            title => title,
        };
        let texts = Texts {
            title,
            under: &under,
            description: &self.description(),
            legend: &self.entries(),
            note: "",
        };
        panels(&[over_time, histogram], self.width, &texts)
    }

    fn area(&self, panel: usize) -> Area {
        let top = TOPS[panel];
        let left = self.frame.left;
        Area { left, right: left + self.frame.plot_width, top, bottom: top + HEIGHT }
    }

    fn over_time(&self, several: bool) -> Chart {
        let all = self.columns.values().flat_map(|columns| &columns.done);
        let values = all.flat_map(|one| [one.median_ns, one.max_ns]).map(drawn);
        let axes = Axes {
            area: self.area(0),
            up: Axis::ratios(values, microseconds).captioned(CAPTION.to_owned()),
            across: Axis::moments(
                self.view.from_ns as f64,
                self.view.to_ns as f64,
                "time from the run's start",
            ),
            division: Division::Marks,
        };
        let mut series = Vec::new();
        for (place, thread) in self.threads.iter().enumerate() {
            let Some(columns) = self.columns.get(&thread.id) else { continue };
            let point = |one: &ColumnSummary, ns: u64| {
                let middle = f64::from(one.column) + 0.5;
                let across = f64::from(axes.area.right - axes.area.left);
                let x = f64::from(axes.area.left) + middle / f64::from(self.view.columns) * across;
                Some((x, axes.y(drawn(ns))?))
            };
            let latest = columns.done.iter().filter_map(|one| point(one, one.max_ns));
            let shapes = self.threads.len() > 1 || columns.done.len() <= FEW_MARKS;
            let marks = marks(Mark::of(place), shapes, latest);
            let medians: Vec<(f64, f64)> =
                columns.done.iter().filter_map(|one| point(one, one.median_ns)).collect();
            let line = several.then(|| Line {
                attributes: format!("class=\"hg-curve\"{}", dashes(place)),
                path: joined(&medians),
            });
            let (class, title) = (thread_class(thread.id), thread.label.clone());
            series.push(Series { class, title, line, marks });
        }
        Chart { axes, series, marks: String::new() }
    }

    fn histogram(&self) -> Chart {
        let binned: Vec<Vec<(f64, f64, f64)>> = self
            .threads
            .iter()
            .map(|thread| steps(&bins(thread.counts.iter().copied(), BINS_A_DECADE), BINS_A_DECADE))
            .collect();
        let edges = binned.iter().flatten().flat_map(|step| [step.0, step.1]);
        let most = binned.iter().flatten().fold(1.0, |most: f64, step| most.max(step.2));
        // Above the counts there is room for the names of the marks.
        let up = Axis::decades(LEAST_COUNT, most * 30.0, |count| count.to_string());
        let across = Axis::ratios(edges, microseconds).captioned(CAPTION.to_owned());
        let axes = Axes {
            area: self.area(1),
            up: up.captioned("wake-ups of the run".to_owned()),
            across,
            division: Division::Lines,
        };
        let one = |(place, (thread, steps)): (usize, (&LatencyThread, &Vec<_>))| Series {
            class: thread_class(thread.id),
            title: thread.label.clone(),
            line: Some(Line {
                attributes: format!("class=\"hg-curve\"{}", dashes(place)),
                path: path(steps, &axes),
            }),
            ..Series::default()
        };
        let series = self.threads.iter().zip(&binned).enumerate().map(one).collect();
        let marks = self.latest_thread().map_or(String::new(), |thread| {
            let whose = match self.threads.len() {
                1 => String::new(),
                _ => format!("thread {}: ", thread.id),
            };
            quantiles(&axes, &thread.report, &whose)
        });
        Chart { axes, series, marks }
    }

    /// The thread with the maximum, whose quantiles are marked.
    fn latest_thread(&self) -> Option<&LatencyThread> {
        let measured = self.threads.iter().filter(|thread| thread.report.count > 0);
        measured.max_by_key(|thread| (thread.report.max_ns, std::cmp::Reverse(thread.id)))
    }

    fn entries(&self) -> Vec<LegendEntry> {
        let entry = |(place, thread): (usize, &LatencyThread)| {
            let line = Line {
                attributes: format!("class=\"hg-curve\"{}", dashes(place)),
                path: "M0 5H16".to_owned(),
            };
            let class = thread_class(thread.id);
            let marks = Mark::of(place).at(8.0, 5.0);
            let sign = Series { class, line: Some(line), marks, ..Series::default() }.svg();
            LegendEntry { sign, text: summary(thread) }
        };
        self.threads.iter().enumerate().map(entry).collect()
    }

    fn description(&self) -> String {
        let mut text =
            "The latency of wake-ups over time, and its histogram, on logarithmic scales."
                .to_owned();
        for thread in &self.threads[..self.threads.len().min(16)] {
            let _ = write!(text, " {}.", summary(thread));
        }
        text
    }
}

/// `thread 0, LAT 1ms: median 52.1 us, 99 % 80.0 us, 99.9 % 101 us, max 130 us of 4999`.
fn summary(thread: &LatencyThread) -> String {
    let LatencyReport { count, p50_ns, p99_ns, p999_ns, max_ns, .. } = thread.report;
    let [p50, p99, p999, max] = [p50_ns, p99_ns, p999_ns, max_ns].map(rounded);
    let label = shortened(&thread.label, LONGEST_LABEL);
    format!(
        "thread {}, {label}: {count} wake-ups, median {p50}, 99 % {p99}, 99.9 % {p999}, max {max}",
        thread.id
    )
}

/// A latency on a logarithmic axis, which has no place for nothing.
fn drawn(ns: u64) -> f64 {
    ns.max(1) as f64
}

/// The marks of wake-ups: shapes where they tell threads apart or are few, dots in one path else.
fn marks(mark: Mark, shapes: bool, points: impl Iterator<Item = (f64, f64)>) -> String {
    if shapes {
        return points.map(|(x, y)| mark.at(x, y)).collect();
    }
    let dots: String = points.map(|(x, y)| format!("M{} {}h0", pixels(x), pixels(y))).collect();
    format!("<path class=\"hg-dots\" d=\"{dots}\"/>")
}

/// A line for each of median, 99 %, 99.9 % and maximum, with its name and number above the curves.
fn quantiles(axes: &Axes, report: &LatencyReport, whose: &str) -> String {
    let Area { right, top, bottom, .. } = axes.area;
    let all = [
        ("median", report.p50_ns),
        ("99 %", report.p99_ns),
        ("99.9 %", report.p999_ns),
        ("max", report.max_ns),
    ];
    let (mut lines, mut names) = (String::new(), String::new());
    for (row, (name, ns)) in all.into_iter().enumerate() {
        let Some(x) = axes.x(drawn(ns)) else { continue };
        let text = format!("{}{name} {} us", if row == 0 { whose } else { "" }, in_us(ns));
        let room = f64::from(right) - x > f64::from(super::legend::width_of(&text)) + 12.0;
        let (at, anchor) = if room { (x + 5.0, "start") } else { (x - 5.0, "end") };
        let y = top + 14 + 15 * row as u32;
        let x = pixels(x);
        let _ = writeln!(
            lines,
            "<path class=\"hg-axis\"{} d=\"M{x} {}V{bottom}\"/>",
            dashes(row + 1),
            y - 10
        );
        let _ = writeln!(
            names,
            "<text class=\"hg-ink hg-name\" x=\"{}\" y=\"{y}\" text-anchor=\"{anchor}\">{}</text>",
            pixels(at),
            for_xml(&text)
        );
    }
    lines + &names
}

/// Microseconds to three digits.
fn in_us(ns: u64) -> String {
    let us = ns as f64 / 1e3;
    let decimals = match us {
        us if us < 9.995 => 2,
        us if us < 99.95 => 1,
        _ => 0,
    };
    format!("{us:.decimals$}")
}
