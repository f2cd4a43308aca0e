//! What the signs of a picture mean.

use std::fmt::Write as _;

use super::hatch::THREAD_COLOURS;
use super::page::{Content, EDGE, LONGEST_LABEL, opacity};
use super::row::{Coverage, LongestRowGap};
use super::{Rows, TraceOptions};
use crate::clean::{for_xml, shortened};
use crate::occupants::Colour;
use crate::units::rounded;

/// Tenths of a pixel that a small letter takes on average: many entries stand in one line.
const AVERAGE_CHARACTER: u32 = 67;

/// Tenths of a pixel that a capital takes on average.
const AVERAGE_CAPITAL: u32 = 90;

/// Pixels from the sign of an entry to its text.
const INDENT: u32 = 20;

/// Pixels from one line to the next.
const LINE: u32 = 20;

/// A sign, as SVG, and what it means.
pub(super) struct LegendEntry {
    pub(super) sign: String,
    pub(super) text: String,
}

/// The class that gives a thread its colour.
pub(super) fn thread_class(thread: u32) -> String {
    format!("hg-t{}", thread % THREAD_COLOURS)
}

/// The legend from `y` downwards, `width` pixels wide at most; its text and its lower edge.
pub(super) fn draw(
    options: &TraceOptions,
    content: &Content<'_>,
    width: u32,
    y: u32,
) -> (String, u32) {
    let mut entries = Vec::new();
    // Runs of latency tests may have no row of a thread.
    let ran = content.rows.iter().any(|row| !row.pieces.is_empty());
    let gaps = content.rows.iter().any(|row| row.longest.is_some());
    let (light_class, row) = match options.rows {
        Rows::Threads => {
            entries.extend(ran.then(|| LegendEntry {
                sign: swatch("hg-run", Coverage::Whole),
                text: "ran without a gap".to_owned(),
            }));
            ("hg-run".to_owned(), "thread")
        }
        Rows::Cpus => {
            let drawn = |thread: &u32| !shared(options, content).any(|id| id == *thread);
            entries.extend(content.gaps.iter().filter(|(thread, _)| drawn(thread)).map(
                |(thread, gap)| LegendEntry {
                    sign: thread_swatch(*thread),
                    text: thread_text(options, *thread, gap.as_ref()),
                },
            ));
            (thread_class(THREAD_COLOURS - 1), "CPU")
        }
    };
    entries.extend(content.parties.all.iter().map(|party| LegendEntry {
        sign: swatch(&party_class(party.colour), Coverage::Whole) + &stripes(party.stripes),
        text: format!("{}, {}", shortened(&party.name, LONGEST_LABEL), rounded(party.ns)),
    }));
    if ran {
        entries.push(LegendEntry {
            sign: swatch(&light_class, Coverage::Interrupted),
            text: "paler: waits or gaps, each below a pixel".to_owned(),
        });
    }
    if gaps {
        entries.push(LegendEntry {
            sign: "<rect class=\"hg-gap\" x=\"6\" y=\"-2\" width=\"1.5\" height=\"14\"/>"
                .to_owned(),
            text: format!("longest gap of the {row}"),
        });
    }
    entries.extend(super::jobs::legend(&content.jobs));
    if content.crowded {
        entries
            .push(LegendEntry { sign: String::new(), text: "some rows are not shown".to_owned() });
    }
    placed(&entries, width, y)
}

/// The threads that the colours of those who had CPUs explain.
fn shared<'a>(
    options: &'a TraceOptions,
    content: &'a Content<'_>,
) -> impl Iterator<Item = u32> + 'a {
    let there = !content.shares.is_empty();
    options.tids.values().copied().filter(move |_| there)
}

/// The class that gives a party its colour.
pub(super) fn party_class(colour: Colour) -> String {
    match colour {
        Colour::Thread(number) => thread_class(number),
        Colour::Rest => "hg-rest".to_owned(),
        Colour::Interrupts => "hg-irq".to_owned(),
    }
}

fn swatch(class: &str, cover: Coverage) -> String {
    format!(
        "<rect class=\"{class}\" fill=\"currentColor\" opacity=\"{}\" width=\"14\" height=\"10\"/>",
        opacity(cover)
    )
}

fn thread_swatch(thread: u32) -> String {
    swatch(&thread_class(thread), Coverage::Whole) + &stripes(super::hatch::sort_of(thread))
}

fn stripes(sort: u32) -> String {
    super::hatch::paint(sort).map_or(String::new(), |paint| {
        format!("<rect fill=\"{paint}\" width=\"14\" height=\"10\"/>")
    })
}

fn thread_text(options: &TraceOptions, thread: u32, gap: Option<&LongestRowGap>) -> String {
    let mut text = format!("thread {thread}");
    let label = options.label_of(thread);
    if !label.is_empty() {
        let _ = write!(text, ": {}", shortened(label, LONGEST_LABEL));
    }
    if let Some(gap) = gap {
        let _ = write!(text, ", longest gap {}", rounded(gap.length_ns()));
    }
    text
}

/// Pixels that a text in the font of labels takes, about.
pub(super) fn width_of(text: &str) -> u32 {
    let tenths = |c: char| if c.is_uppercase() { AVERAGE_CAPITAL } else { AVERAGE_CHARACTER };
    text.chars().map(tenths).sum::<u32>() / 10
}

/// Entries from `y` downwards, in as many lines as they need; their text and its lower edge.
pub(super) fn placed(entries: &[LegendEntry], width: u32, y: u32) -> (String, u32) {
    let mut out = String::new();
    let (mut x, mut y) = (EDGE, y);
    for LegendEntry { sign, text } in entries {
        let length = INDENT + width_of(text);
        if x > EDGE && x + length > width {
            x = EDGE;
            y += LINE;
        }
        let _ = writeln!(
            out,
            "<g transform=\"translate({x} {y})\">{sign}<text class=\"hg-faint\" x=\"{INDENT}\" \
             y=\"9\">{}</text></g>",
            for_xml(text)
        );
        x += length + EDGE;
    }
    (out, y + LINE / 2)
}
