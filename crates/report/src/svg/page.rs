//! The page: where everything stands, and the SVG text of it.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use hourglass_time::Span;

use super::axis::axis;
use super::jobs::{self, DrawnJobs, JobMark};
use super::legend::{self, thread_class};
use super::row::{Coverage, LongestRowGap, RowSegment};
use super::view::TimeRange;
use super::{Rows, TraceOptions, hatch, occupancy_rows};
use crate::clean::{for_xml, shortened};
use crate::occupants::CpuOccupants;
use crate::units::rounded;

/// Colours, and how they change in the dark.
const STYLE: &str = include_str!("style.css");

/// Widest character of the label font, in pixels: no font is asked for its measures, so text gets
/// more room than it needs rather than less.
const CHARACTER: u32 = 7;

/// Space between a row's label and the plot, in pixels.
const LABEL_GAP: u32 = 12;

/// Labels are cut to this many characters.
pub(super) const LONGEST_LABEL: usize = 26;

/// Pixels between two marks of the axis, at least.
const TICK_DISTANCE: u32 = 80;

/// Pixels to the right of the plot: half a label of the axis.
const RIGHT: u32 = 28;

/// Space at the edges of the picture, in pixels.
pub(super) const EDGE: u32 = 12;

/// With more pieces than this, each colour of a row becomes one path instead of rectangles.
const MOST_RECTANGLES: usize = 4_000;

/// With more pieces than this, pieces get no tooltips: they are too small to point at.
const MOST_TOOLTIPS: usize = 400;

/// Narrower pieces are drawn this wide, so that even an instant of running is seen; in pixels.
const LEAST_WIDTH: f64 = 0.7;

/// A gap narrower than this many pixels is marked by a line across its row, a wider one by a
/// bracket below it.
const LEAST_BRACKET: f64 = 4.0;

/// With more rows than this, rows are low.
const MOST_HIGH_ROWS: usize = 16;

/// Entries of the description for readers who do not see the picture.
const MOST_DESCRIBED: usize = 16;

/// A row that is ready to be drawn.
pub(super) struct DrawnRow {
    pub(super) key: u32,
    pub(super) pieces: Vec<RowSegment>,
    pub(super) longest: Option<LongestRowGap>,
}

/// All that a trace contributes to a picture.
pub(super) struct Content<'a> {
    pub(super) view: TimeRange,
    pub(super) rows: Vec<DrawnRow>,
    /// CPUs of which it is known who had them.
    pub(super) shares: BTreeMap<u32, Vec<occupancy_rows::ShareSegment>>,
    pub(super) parties: &'a CpuOccupants,
    /// Jobs of threads, where the rows are threads.
    pub(super) jobs: BTreeMap<u32, DrawnJobs>,
    /// The longest gap of each thread, where rows are CPUs.
    pub(super) gaps: Vec<(u32, Option<LongestRowGap>)>,
    pub(super) crowded: bool,
}

/// Horizontal measures in pixels, which the thinning needs before the first interval comes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame {
    width: u32,
    pub(super) left: u32,
    pub(super) plot_width: u32,
}

impl Frame {
    pub(super) fn new(options: &TraceOptions, width: u32) -> Frame {
        let low = options.threads.len() > MOST_HIGH_ROWS;
        let labels = options.threads.iter().map(|(thread, label)| {
            let number = if low { row_text(*thread, "").len() } else { 0 };
            number + label.chars().count()
        });
        let longest = match options.rows {
            Rows::Threads => labels.max().unwrap_or(0).clamp(10, LONGEST_LABEL),
            Rows::Cpus => 10,
        };
        let wanted = longest as u32 * CHARACTER + EDGE + LABEL_GAP;
        let left = wanted.min(width / 3);
        Frame { width, left, plot_width: width.saturating_sub(left + RIGHT).max(1) }
    }

    fn x(&self, view: &TimeRange, ns: i64) -> f64 {
        f64::from(self.left) + view.x(ns)
    }
}

/// The label of a low row: number and workload in one line.
fn row_text(thread: u32, label: &str) -> String {
    format!("{thread}: {label}")
}

/// Vertical measures of a row in pixels.
#[derive(Clone, Copy)]
struct RowHeights {
    bar: u32,
    pitch: u32,
    high: bool,
}

/// Pixels above and below a row that its jobs' marks take.
const JOB_MARKS: u32 = 9;

impl RowHeights {
    fn of(rows: usize, has_jobs: bool) -> RowHeights {
        let marks = if has_jobs { 2 * JOB_MARKS } else { 0 };
        if rows > MOST_HIGH_ROWS {
            RowHeights { bar: 14, pitch: 32 + marks, high: false }
        } else {
            RowHeights { bar: 26, pitch: 50 + marks, high: true }
        }
    }
}

pub(super) fn draw(options: &TraceOptions, frame: &Frame, content: &Content<'_>) -> String {
    // Where the rows are CPUs, shares stand in their rows; else they follow them.
    let own =
        |cpu: &u32| options.rows == Rows::Threads || content.rows.iter().all(|row| row.key != *cpu);
    let added: Vec<u32> = content.shares.keys().copied().filter(own).collect();
    let rows = content.rows.len() + added.len();
    let heights = RowHeights::of(rows, !content.jobs.is_empty());
    let top = if options.title.is_empty() { EDGE } else { 44 };
    let bottom = top + heights.pitch * rows as u32;
    let mut canvas = Canvas { out: String::new(), options, frame, view: &content.view, heights };
    canvas.grid(top, bottom);
    let pieces = content.rows.iter().map(|row| row.pieces.len()).sum();
    let mut y = top;
    for row in &content.rows {
        let shared = content.shares.get(&row.key).filter(|_| options.rows == Rows::Cpus);
        match shared {
            Some(shared) => {
                canvas.row_label(row.key, y);
                canvas.shares(shared, content.parties, y);
                row.longest.iter().for_each(|gap| canvas.longest_gap(row.key, gap, y));
            }
            None => canvas.row(row, content.jobs.get(&row.key), y, pieces),
        }
        y += heights.pitch;
    }
    for cpu in added {
        canvas.label_lines(&format!("CPU {cpu}"), "who had it", y);
        if let Some(shared) = content.shares.get(&cpu) {
            canvas.shares(shared, content.parties, y);
        }
        y += heights.pitch;
    }
    let (legend, end) = legend::draw(options, content, frame.width, bottom + 62);
    canvas.out.push_str(&legend);
    let body = std::mem::take(&mut canvas.out);
    canvas.head(content, end + EDGE);
    canvas.out.push_str(&body);
    canvas.out.push_str("</svg>\n");
    canvas.out
}

/// What is being drawn, and where.
struct Canvas<'a> {
    out: String,
    options: &'a TraceOptions,
    frame: &'a Frame,
    view: &'a TimeRange,
    heights: RowHeights,
}

/// Appends to the canvas; a `String` takes everything.
macro_rules! put {
    ($canvas:expr, $($text:tt)*) => {
        let _ = write!($canvas.out, $($text)*);
    };
}

impl Canvas<'_> {
    fn head(&mut self, content: &Content<'_>, height: u32) {
        let title = match self.options.title.as_str() {
            "" => "Execution trace",
            title => title,
        };
        let size = (self.frame.width, height);
        self.out.push_str(&head(size, title, &self.description(content), ""));
        let threads = content.gaps.iter().map(|(thread, _)| hatch::sort_of(*thread));
        let threads = threads.filter(|_| self.options.rows == Rows::Cpus);
        let others = content.parties.all.iter().map(|party| party.stripes);
        self.out.push_str(&hatch::patterns(threads.chain(others)));
        if content.jobs.values().any(|jobs| !jobs.late.is_empty()) {
            self.out.push_str(jobs::PATTERN);
        }
        if !self.options.title.is_empty() {
            self.out.push_str(&heading(self.frame.width, title));
        }
    }

    fn description(&self, content: &Content<'_>) -> String {
        let (from, to) = (self.options.from, self.options.to);
        let count = content.rows.len();
        let what = match self.options.rows {
            Rows::Threads => "row for each thread",
            Rows::Cpus => "row for each CPU",
        };
        let mut text = format!(
            "Execution trace from {from} to {to} after the run's start, one {what} ({count}). \
             Rectangles are times during which a thread ran."
        );
        let bad = content.jobs.iter().filter(|(_, jobs)| jobs.missed_count + jobs.lost_count > 0);
        for (key, jobs) in bad.take(MOST_DESCRIBED) {
            let (name, missed, lost) = (self.name(*key), jobs.missed_count, jobs.lost_count);
            let _ = write!(text, " {name}: {missed} deadlines missed, {lost} periods lost.");
        }
        let gaps = content.rows.iter();
        let gaps = gaps.filter_map(|row| Some((self.name(row.key), row.longest?)));
        for (name, gap) in gaps.take(MOST_DESCRIBED) {
            let length = rounded(gap.length_ns());
            let at = Span::from_nanos(gap.from_ns);
            let _ = write!(text, " Longest gap of {name}: {length}, at {at}.");
        }
        text
    }

    fn name(&self, key: u32) -> String {
        match self.options.rows {
            Rows::Threads => format!("thread {key}"),
            Rows::Cpus => format!("CPU {key}"),
        }
    }

    fn grid(&mut self, top: u32, bottom: u32) {
        let most = (self.frame.plot_width / TICK_DISTANCE).max(2);
        let axis = axis(self.view.from_ns, self.view.to_ns, most);
        let (left, right) = (self.frame.left, self.frame.left + self.frame.plot_width);
        let mut labels = String::new();
        for tick in &axis.ticks {
            let x = pixels(self.frame.x(self.view, tick.at_ns));
            put!(self, "<path class=\"hg-grid\" d=\"M{x} {top}V{}\"/>\n", bottom + 4);
            let _ = writeln!(labels, "<text x=\"{x}\" y=\"{}\">{}</text>", bottom + 18, tick.label);
        }
        put!(
            self,
            "<path class=\"hg-axis\" d=\"M{left} {bottom}H{right}\"/>\n\
             <g class=\"hg-faint\" text-anchor=\"middle\">\n{labels}\
             <text x=\"{}\" y=\"{}\">{}</text>\n</g>\n",
            (left + right) / 2,
            bottom + 38,
            axis.caption
        );
    }

    fn row(&mut self, row: &DrawnRow, jobs: Option<&DrawnJobs>, y: u32, all_pieces: usize) {
        self.row_label(row.key, y);
        self.ground(y);
        let mut groups: BTreeMap<(u32, Coverage), Vec<&RowSegment>> = BTreeMap::new();
        for piece in &row.pieces {
            let colour = match self.options.rows {
                Rows::Threads => 0,
                Rows::Cpus => piece.thread % (hatch::THREAD_COLOURS * hatch::SORTS),
            };
            groups.entry((colour, piece.cover)).or_default().push(piece);
        }
        for ((colour, cover), pieces) in groups {
            let class = match self.options.rows {
                Rows::Threads => "hg-run".to_owned(),
                Rows::Cpus => thread_class(colour),
            };
            let opacity = opacity(cover);
            if all_pieces > MOST_RECTANGLES {
                put!(self, "<g class=\"{class}\" opacity=\"{opacity}\">");
                self.path(&pieces, y, "currentColor");
            } else {
                put!(self, "<g class=\"{class}\" fill=\"currentColor\" opacity=\"{opacity}\">\n");
                for piece in &pieces {
                    self.rectangle(piece, y, all_pieces <= MOST_TOOLTIPS);
                }
            }
            self.out.push_str("</g>\n");
            if let Some(paint) = hatch::of(colour) {
                self.path(&pieces, y, &paint);
                self.out.push('\n');
            }
        }
        jobs.iter().for_each(|jobs| self.jobs(jobs, y));
        if let Some(gap) = &row.longest {
            self.longest_gap(row.key, gap, y + jobs.map_or(0, |_| JOB_MARKS));
        }
    }

    /// What ran too late, over the bar, and the marks of releases and deadlines.
    fn jobs(&mut self, jobs: &DrawnJobs, y: u32) {
        let late: Vec<&RowSegment> = jobs.late.iter().collect();
        if !late.is_empty() {
            put!(self, "<g class=\"hg-over\"><title>ran after its deadline</title>");
            self.path(&late, y, "currentColor");
            self.path(&late, y, "url(#hg-over)");
            self.out.push_str("</g>\n");
        }
        let marks = [
            ("hg-job", JobMark::Release, &jobs.releases),
            ("hg-job", JobMark::Deadline, &jobs.met),
            ("hg-job hg-missed", JobMark::Deadline, &jobs.missed),
            ("hg-job hg-missed", JobMark::Lost, &jobs.lost),
        ];
        for (class, mark, times) in marks.into_iter().filter(|(.., times)| !times.is_empty()) {
            put!(self, "<path class=\"{class}\" d=\"");
            for ns in times {
                let x = self.frame.x(self.view, *ns);
                self.out.push_str(&mark.path(x, y, y + self.heights.bar));
            }
            self.out.push_str("\"/>\n");
        }
    }

    fn ground(&mut self, y: u32) {
        put!(
            self,
            "<rect class=\"hg-base\" x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{}\"/>\n",
            self.frame.left,
            self.frame.plot_width,
            self.heights.bar
        );
    }

    /// Who had a CPU, one path for each party.
    fn shares(&mut self, pieces: &[occupancy_rows::ShareSegment], parties: &CpuOccupants, y: u32) {
        self.ground(y);
        let left = f64::from(self.frame.left);
        let (bar, bottom) = (f64::from(self.heights.bar), f64::from(y + self.heights.bar));
        for (place, party) in parties.all.iter().enumerate() {
            let mut path = String::new();
            for piece in pieces.iter().filter(|piece| piece.party == place) {
                let (x, width) = (left + piece.from, (piece.to - piece.from).max(LEAST_WIDTH));
                let (low, height) = (bottom - piece.low * bar, (piece.high - piece.low) * bar);
                // Text into a string does not fail.
                let _ = write!(
                    path,
                    "M{} {}h{}v-{}h-{}z",
                    pixels(x),
                    pixels(low),
                    pixels(width),
                    pixels(height),
                    pixels(width)
                );
            }
            if !path.is_empty() {
                let (class, name) = (legend::party_class(party.colour), for_xml(&party.name));
                put!(
                    self,
                    "<path class=\"{class}\" fill=\"currentColor\" d=\"{path}\"><title>{name}</title></path>\n"
                );
                if let Some(paint) = hatch::paint(party.stripes) {
                    put!(self, "<path fill=\"{paint}\" d=\"{path}\" pointer-events=\"none\"/>\n");
                }
            }
        }
    }

    fn row_label(&mut self, key: u32, y: u32) {
        let label = match self.options.rows {
            Rows::Threads => self.options.label_of(key).to_owned(),
            Rows::Cpus => String::new(),
        };
        if label.is_empty() || self.heights.high {
            self.label_lines(&self.name(key), &label, y);
        } else {
            self.label_lines(&row_text(key, &label), "", y);
        }
    }

    /// A name, and what there is to say of it, in the room of one row.
    fn label_lines(&mut self, name: &str, label: &str, y: u32) {
        let room = (self.frame.left.saturating_sub(EDGE + LABEL_GAP) / CHARACTER) as usize;
        let middle = y + self.heights.bar / 2 + 4;
        if label.is_empty() || !self.heights.high {
            let class = if self.heights.high { "hg-ink hg-strong" } else { "hg-ink" };
            self.label_line(class, middle, name, room);
        } else {
            self.label_line("hg-ink hg-strong", middle - 6, name, room);
            self.label_line("hg-faint", middle + 9, label, room);
        }
    }

    /// One line of a label, cut to `room` characters; the whole of it is in its tooltip.
    fn label_line(&mut self, class: &str, y: u32, text: &str, room: usize) {
        let short = shortened(text, room);
        let shown = for_xml(&short);
        put!(self, "<text class=\"{class}\" x=\"{EDGE}\" y=\"{y}\">{shown}");
        if short != text {
            put!(self, "<title>{}</title>", for_xml(text));
        }
        self.out.push_str("</text>\n");
    }

    fn edges(&self, piece: &RowSegment) -> (f64, f64) {
        let left = self.frame.x(self.view, piece.from_ns);
        let width = self.frame.x(self.view, piece.to_ns) - left;
        (left, width.max(LEAST_WIDTH))
    }

    fn path(&mut self, pieces: &[&RowSegment], y: u32, paint: &str) {
        let bar = self.heights.bar;
        let middle = y + bar / 2;
        put!(self, "<path fill=\"none\" stroke=\"{paint}\" stroke-width=\"{bar}\" d=\"");
        for piece in pieces {
            let (left, width) = self.edges(piece);
            put!(self, "M{} {middle}h{}", pixels(left), pixels(width));
        }
        self.out.push_str("\"/>");
    }

    fn rectangle(&mut self, piece: &RowSegment, y: u32, tooltip: bool) {
        let (left, width) = self.edges(piece);
        put!(
            self,
            "<rect x=\"{}\" y=\"{y}\" width=\"{}\" height=\"{}\"",
            pixels(left),
            pixels(width),
            self.heights.bar
        );
        if !tooltip {
            self.out.push_str("/>\n");
            return;
        }
        put!(self, "><title>thread {}", piece.thread);
        match piece.cover {
            // What ran, not the part of it that this rectangle shows.
            Coverage::Whole => {
                let (from, to) = piece.record;
                let length = rounded(to.abs_diff(from));
                let (from, to) = (Span::from_nanos(from), Span::from_nanos(to));
                put!(self, ", {from} to {to}: {length}");
            }
            _ => self.out.push_str(", with gaps shorter than a pixel"),
        }
        self.out.push_str("</title></rect>\n");
    }

    /// The mark of a row's longest gap, however short, and its length.
    fn longest_gap(&mut self, key: u32, gap: &LongestRowGap, y: u32) {
        let bar = self.heights.bar;
        let left = self.frame.x(self.view, gap.from_ns);
        let right = self.frame.x(self.view, gap.to_ns);
        let middle = (left + right) / 2.0;
        let below = y + bar;
        put!(
            self,
            "<g class=\"hg-longest\"><title>longest gap of {}: {}, at {}</title>",
            self.name(key),
            Span::saturating_from_nanos(gap.length_ns()),
            Span::from_nanos(gap.from_ns)
        );
        if right - left < LEAST_BRACKET {
            let width = (right - left).max(1.0);
            put!(
                self,
                "<rect class=\"hg-gap\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"/>",
                pixels(middle - width / 2.0),
                y.saturating_sub(2),
                pixels(width),
                bar + 6
            );
        } else {
            put!(
                self,
                "<path class=\"hg-span\" d=\"M{} {}v3H{}v-3\"/>",
                pixels(left + 0.6),
                below + 2,
                pixels(right - 0.6)
            );
        }
        let text = rounded(gap.length_ns());
        let (x, anchor) = self.placed(middle, text.len());
        put!(
            self,
            "<text class=\"hg-gap hg-note\" x=\"{x}\" y=\"{}\" text-anchor=\"{anchor}\">{text}</text></g>\n",
            below + 15
        );
    }

    /// A text of `characters` around `middle`, but inside the plot: its x and its anchor.
    fn placed(&self, middle: f64, characters: usize) -> (String, &'static str) {
        let half = characters as f64 * f64::from(CHARACTER) / 2.0;
        let left = f64::from(self.frame.left);
        let right = left + f64::from(self.frame.plot_width);
        if middle - half < left {
            (pixels(left), "start")
        } else if middle + half > right {
            (pixels(right), "end")
        } else {
            (pixels(middle), "middle")
        }
    }
}

/// The beginning of a picture of this width and height, with a style sheet of its own besides the
/// common one. `description` is XML already.
pub(super) fn head(
    (width, height): (u32, u32),
    title: &str,
    description: &str,
    style: &str,
) -> String {
    let title = for_xml(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"hg\" role=\"img\" \
         aria-label=\"{title}\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {width} {height}\">\n<title>{title}</title>\n<desc>{description}</desc>\n\
         <style>\n{STYLE}{style}</style>\n\
         <rect class=\"hg-paper\" width=\"{width}\" height=\"{height}\"/>\n"
    )
}

/// The title above a picture of this width.
pub(super) fn heading(width: u32, title: &str) -> String {
    let room = (width - 2 * EDGE) / 9;
    let short = for_xml(&shortened(title, room as usize));
    format!("<text class=\"hg-ink hg-title\" x=\"{EDGE}\" y=\"26\">{short}</text>\n")
}

pub(super) fn opacity(cover: Coverage) -> &'static str {
    match cover {
        Coverage::Quarter => "0.3",
        Coverage::Half => "0.4",
        Coverage::ThreeQuarters => "0.5",
        Coverage::Interrupted => "0.65",
        Coverage::Whole => "1",
    }
}

/// A coordinate with two decimals, without zeros at the end.
pub(super) fn pixels(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    text.to_owned()
}
