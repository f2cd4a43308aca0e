//! A watched clock: a line for each look, and a picture for a terminal.

use anstyle::AnsiColor;
use hourglass_documents::clocks::{WatchFacts, WatchSample};
use ratatui_core::buffer::{Buffer, Cell};
use ratatui_core::layout::Rect;
use ratatui_core::style::Color;
use ratatui_core::symbols::Marker;
use ratatui_core::widgets::Widget;
use ratatui_widgets::chart::{Axis, Chart, Dataset, GraphType};

use super::Style;
use super::table::{TextStyle, paint_line};
use crate::clean;

/// Looks that a picture shows at most.
pub const WATCH_SHOWN: usize = 240;
/// Events below a picture.
const EVENTS: usize = 3;
/// Fewer columns or rows than this hold no chart.
const LEAST_WIDTH: u16 = 40;
const LEAST_HEIGHT: u16 = 5;

/// What the columns of [`watch_line`] mean.
#[must_use]
pub fn watch_header() -> String {
    format!(
        "{:>8} {:<9} {:<11} {:>9} {:>6} {:>8} {:>9} {:>5}",
        "s", "source", "status", "offset_ns", "+-", "bound_ns", "drift_ppb", "+-"
    )
}

/// One look, in columns for people and scripts.
#[must_use]
pub fn watch_line(sample: &WatchSample) -> String {
    let or_dash = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    format!(
        "{:>8} {:<9} {:<11} {:>9} {:>6} {:>8} {:>9} {:>5}{}",
        seconds(sample.at_ns),
        clean::for_terminal(&sample.source),
        clean::for_terminal(&sample.status),
        sample.offset_ns,
        sample.offset_error_ns,
        sample.error_bound_ns,
        or_dash(sample.drift_ppb.map(|ppb| ppb.to_string())),
        or_dash(sample.drift_error_ppb.map(|ppb| ppb.to_string())),
        if sample.violated { " OUTSIDE" } else { "" },
    )
}

/// Bound, offset and drift over the latest looks, and what happened, in `width` columns and about
/// `height` lines. What a terminal is too small for is left out.
#[must_use]
pub fn watch_picture(facts: &WatchFacts, width: u16, height: u16, style: Style) -> String {
    let first = facts.samples.len().saturating_sub(WATCH_SHOWN);
    let shown = &facts.samples[first..];
    let Some(last) = shown.last() else { return String::new() };
    let words = EVENTS as u16 + 4;
    let room = height.saturating_sub(words);
    let (upper, lower) = (room - room * 2 / 5, room * 2 / 5);
    let mut out = String::new();
    if width >= LEAST_WIDTH && upper >= LEAST_HEIGHT {
        heading(&mut out, "bound (lines) and distance from CLOCK_MONOTONIC (dots), ns", style);
        out.push_str(&offsets(shown, width, upper, style));
    }
    if width >= LEAST_WIDTH && lower >= LEAST_HEIGHT {
        heading(&mut out, "drift of the counter since the beginning, ppb", style);
        out.push_str(&drifts(shown, width, lower, style));
    }
    heading(&mut out, &watch_header(), style);
    out.push_str(&watch_line(last));
    out.push('\n');
    for event in facts.events.iter().rev().take(EVENTS).rev() {
        let text = clean::for_terminal(&event.text);
        let line = format!("{:>8} {text}", seconds(event.at_ns));
        let tone = if event.failed_over { TextStyle::Bad } else { TextStyle::Normal };
        paint_line(&mut out, &line, tone, style);
    }
    out
}

fn heading(out: &mut String, text: &str, style: Style) {
    paint_line(out, text, TextStyle::Heading, style);
}

/// Tenths of a second.
fn seconds(ns: u64) -> String {
    format!("{}.{}", ns / 1_000_000_000, ns / 100_000_000 % 10)
}

fn at(sample: &WatchSample) -> f64 {
    sample.at_ns as f64 / 1e9
}

fn offsets(shown: &[WatchSample], width: u16, height: u16, style: Style) -> String {
    let points = |value: fn(&WatchSample) -> f64| -> Vec<(f64, f64)> {
        shown.iter().map(|sample| (at(sample), value(sample))).collect()
    };
    let upper = points(|sample| sample.error_bound_ns as f64);
    let lower = points(|sample| -(sample.error_bound_ns as f64));
    let offset = points(|sample| sample.offset_ns as f64);
    let furthest = upper.iter().chain(&offset).map(|(_, ns)| ns.abs()).fold(1.0, f64::max);
    let line = |data, colour| {
        Dataset::default()
            .graph_type(GraphType::Line)
            .marker(Marker::Braille)
            .style(ratatui_core::style::Style::new().fg(colour))
            .data(data)
    };
    let dots = line(&offset, Color::Green).graph_type(GraphType::Scatter).marker(Marker::Dot);
    let lines = vec![line(&upper, Color::Cyan), line(&lower, Color::Cyan), dots];
    chart(lines, range(shown), furthest, width, height, style)
}

fn drifts(shown: &[WatchSample], width: u16, height: u16, style: Style) -> String {
    let point = |sample: &WatchSample| Some((at(sample), sample.drift_ppb? as f64));
    let drift: Vec<(f64, f64)> = shown.iter().filter_map(point).collect();
    let furthest = drift.iter().map(|(_, ppb)| ppb.abs()).fold(1.0, f64::max);
    let line = Dataset::default()
        .graph_type(GraphType::Line)
        .marker(Marker::Braille)
        .style(ratatui_core::style::Style::new().fg(Color::Yellow))
        .data(&drift);
    chart(vec![line], range(shown), furthest, width, height, style)
}

/// From the first look to the last one, s.
fn range(shown: &[WatchSample]) -> [f64; 2] {
    let first = shown.first().map_or(0.0, at);
    let last = shown.last().map_or(0.0, at);
    [first, last.max(first + 1e-3)]
}

/// A chart around zero, up to `furthest` either way.
fn chart(
    lines: Vec<Dataset<'_>>,
    seconds: [f64; 2],
    furthest: f64,
    width: u16,
    height: u16,
    style: Style,
) -> String {
    // Of one width, so that the charts below each other stand in line.
    let label = |value: f64| format!("{value:>8.0}");
    let labels = [label(-furthest), label(0.0), label(furthest)];
    let times = seconds.map(|at| format!("{at:.1} s"));
    let chart = Chart::new(lines)
        .x_axis(Axis::default().bounds(seconds).labels(times))
        .y_axis(Axis::default().bounds([-furthest, furthest]).labels(labels))
        .legend_position(None);
    let area = Rect::new(0, 0, width, height);
    let mut buffer = Buffer::empty(area);
    chart.render(area, &mut buffer);
    lines_of(&buffer, style)
}

/// What was drawn, as lines of text.
fn lines_of(buffer: &Buffer, style: Style) -> String {
    let mut out = String::new();
    for row in buffer.content.chunks(usize::from(buffer.area.width.max(1))) {
        let written = row.iter().rposition(|cell| cell.symbol() != " ").map_or(0, |last| last + 1);
        for run in row[..written].chunk_by(|a, b| a.fg == b.fg) {
            let text: String = run.iter().map(Cell::symbol).collect();
            match (style, colour(run[0].fg)) {
                (Style::Colour, Some(colour)) => {
                    let colour = colour.on_default();
                    out.push_str(&format!("{colour}{text}{colour:#}"));
                }
                _ => out.push_str(&text),
            }
        }
        out.push('\n');
    }
    out
}

/// The colours that are used here.
fn colour(colour: Color) -> Option<AnsiColor> {
    match colour {
        Color::Cyan => Some(AnsiColor::Cyan),
        Color::Green => Some(AnsiColor::Green),
        Color::Yellow => Some(AnsiColor::Yellow),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::clocks::WatchEvent;

    use super::*;

    fn sample(second: u64) -> WatchSample {
        WatchSample {
            at_ns: second * 1_000_000_000,
            source: "tsc".into(),
            status: "steady".into(),
            offset_ns: if second.is_multiple_of(2) { 12 } else { -9 },
            offset_error_ns: 31,
            error_bound_ns: 100 + second,
            violated: second == 5,
            drift_ppb: (second > 1).then_some(3),
            drift_error_ppb: (second > 1).then_some(60),
        }
    }

    fn facts(seconds: u64) -> WatchFacts {
        let event =
            WatchEvent { at_ns: 1_500_000_000, text: "left\u{1b}[2J".into(), failed_over: true };
        WatchFacts { samples: (0..seconds).map(sample).collect(), events: vec![event] }
    }

    #[test]
    fn a_look_stands_under_its_header() {
        let line = watch_line(&sample(2));
        assert_eq!(
            watch_header(),
            "       s source    status      offset_ns     +- bound_ns drift_ppb    +-"
        );
        assert_eq!(
            line,
            "     2.0 tsc       steady             12     31      102         3    60"
        );
        // Issue 33, 3: whole on a terminal of 80 columns.
        assert!(watch_line(&sample(5)).ends_with(" OUTSIDE") && watch_line(&sample(5)).len() <= 80);
        assert!(watch_line(&sample(0)).ends_with("-     -"));
    }

    #[test]
    fn a_picture_fits_its_terminal_and_has_no_escapes() {
        for (width, height) in [(80, 24), (120, 40), (41, 12), (20, 5), (0, 0)] {
            let picture = watch_picture(&facts(300), width, height, Style::Plain);
            assert!(!picture.contains('\u{1b}'), "{picture}");
            assert!(picture.lines().count() <= usize::from(height.max(8)), "{width} x {height}");
            let charts = picture.lines().filter(|line| line.contains('│') || line.contains('┤'));
            let wide = charts.map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(wide <= usize::from(width), "{width}: {wide}");
        }
        let picture = watch_picture(&facts(300), 80, 24, Style::Plain);
        // The bound at its latest, the oldest look that is shown, the event without its escape.
        assert!(picture.contains("     399") && picture.contains("60.0 s"), "{picture}");
        assert!(picture.contains("     1.5 left[2J"), "{picture}");
        assert_eq!(watch_picture(&WatchFacts::default(), 80, 24, Style::Plain), "");
    }
}
