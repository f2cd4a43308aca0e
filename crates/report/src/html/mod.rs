//! A run as one page of HTML that opens from disk: no other file, nothing fetched.
//!
//! Owns: how the page looks and what its script does. Must not: compute a result, read a file.
//!
//! The trace is embedded as columns of differences in base64 (`data`); the script beside this
//! file makes typed arrays of them and draws by binary search, so that the cost of a picture
//! is proportional to its pixels. What comes from outside is text: it goes through `clean` where it
//! stands in markup, and `<` is escaped where it stands in data. The page forbids itself the
//! network (`Content-Security-Policy`).
//!
//! # How a report is made
//!
//! `runs::run_contents` reads a folder as a whole: records, causes, latencies, kernel events. `report::html` writes the
//! sections from the document and the trace as columns of differences in base64 (`data.rs`, `columns.rs`), which
//! the scripts beside it make typed arrays of (`data.js`). Each row of the timeline answers two questions by binary
//! search (`rows.js`): how much of a stretch was run, and which gap in it is the longest. Opened with `#selftest`,
//! the page goes through its own controls (`selftest.js`); `tests/drawing/browser.rs` reads what came of it. A format of
//! others is one file in `report/src/export/`.

mod causes;
mod columns;
mod concurrent_threads;
mod cpu_occupancy;
mod data;
mod facts;
mod gaps;
mod histograms;
mod jobs;
mod overview;
mod plot;
mod reservation;
mod sites;
mod stacks;
mod table;
mod tables;
mod wake_ups;
mod watched;

use std::fmt::Write;

use crate::clean::for_xml;
use crate::export::wall_time;
use crate::run::RunView;
use crate::units::rounded;
use cpu_occupancy::OccupancyData;
use gaps::Gap;
use table::begin_section;

const STYLE: &str = include_str!("page.css");

/// The parts of the script, in order; they share one scope.
const SCRIPTS: [&str; 7] = [
    include_str!("data.js"),
    include_str!("rows.js"),
    include_str!("jobs.js"),
    include_str!("timeline.js"),
    include_str!("controls.js"),
    include_str!("selftest.js"),
    include_str!("start.js"),
];

/// The whole page; `title` stands above it, or nothing in particular if it is empty.
///
/// Takes the time and the memory of the trace a few times over; 300,000 records become 4 MB.
#[must_use]
pub fn page(run: &RunView<'_>, title: &str) -> String {
    let title = if title.is_empty() { "Run of Hourglass" } else { title };
    let gaps = gaps::collect(run);
    let ran = cpu_occupancy::collect(run);
    let mut out = String::new();
    head(&mut out, title);
    header(&mut out, run, title);
    out.push_str("<main>\n");
    overview::write(&mut out, run.document);
    if let Some(reservation) = &run.document.result.reservation {
        reservation::write(&mut out, reservation);
    }
    if let Some(report) = &run.document.result.watched {
        watched::write(&mut out, report);
    }
    sites::write(&mut out, &run.document.result);
    if run.document.result.reservation.is_none() {
        timeline(&mut out, run, &ran);
    }
    causes::write(&mut out, &run.document.result);
    histograms::latency(&mut out, run);
    wake_ups::latest(&mut out, run);
    histograms::gaps(&mut out, &gaps);
    causes::longest(&mut out, run, &gaps);
    concurrent_threads::write(&mut out, &run.document.result.meanwhile);
    stacks::write(&mut out, &run.document.result.stacks);
    tables::write(&mut out, &run.document.result.threads);
    facts::write(&mut out, run.document);
    out.push_str("</main>\n");
    script(&mut out, run, &gaps, &ran);
    out.push_str("</body>\n</html>\n");
    out
}

/// The page of a comparison: its picture, an SVG, and its text as `diff` prints it.
#[must_use]
pub fn comparison(picture: &str, text: &str) -> String {
    let mut out = String::new();
    head(&mut out, "Comparison of two runs");
    let _ = write!(
        out,
        "<header><h1>Comparison of two runs</h1></header>\n<main>\n<section class=\"picture\">\n{picture}</section>\n\
         <section>\n<pre>{}</pre>\n</section>\n</main>\n</body>\n</html>\n",
        text.lines().map(for_xml).collect::<Vec<_>>().join("\n")
    );
    out
}

fn head(out: &mut String, title: &str) {
    let title = for_xml(title);
    // Writing to a string cannot fail.
    let _ = write!(
        out,
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; \
         style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; \
         base-uri 'none'; form-action 'none'\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <link rel=\"icon\" href=\"data:,\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n"
    );
}

fn header(out: &mut String, run: &RunView<'_>, title: &str) {
    let manifest = &run.document.manifest;
    let count = run.document.result.threads.len();
    let what = match (&run.document.result.reservation, count) {
        (Some(_), _) => "a reservation".to_owned(),
        (None, 1) => "1 thread".to_owned(),
        (None, count) => format!("{count} threads"),
    };
    let mut said = vec![what, rounded(manifest.elapsed_ns)];
    if manifest.simulation.is_some() {
        said.push("simulated".to_owned());
    } else if manifest.epoch.realtime_ns > 0 {
        said.push(wall_time::plain(manifest.epoch.realtime_ns));
    }
    if !manifest.host.kernel.is_empty() {
        said.push(format!("Linux {}", manifest.host.kernel));
    }
    if let Some(model) = &manifest.host.cpu.model {
        said.push(model.clone());
    }
    let said: Vec<String> = said.iter().map(|part| for_xml(part)).collect();
    let _ = write!(
        out,
        "<header>\n<div><h1>{}</h1>\n<p class=\"sub\">{}</p></div>\n\
         <button type=\"button\" id=\"theme\" class=\"quiet\" \
         title=\"Light, dark, or as the system has it\">Theme: system</button>\n</header>\n",
        for_xml(title),
        said.join(" <span aria-hidden=\"true\">·</span> ")
    );
}

/// The keys of the timeline, for those who use it by keyboard.
const KEYS: [(&str, &str); 7] = [
    ("+ −", "zoom in and out"),
    ("← →", "move"),
    ("↑ ↓", "another row"),
    ("n p", "next and previous gap"),
    ("l", "longest gap in view"),
    ("Enter", "zoom to the gap"),
    ("Home", "the whole run"),
];

/// Of runs whose jobs are known.
const BUTTON_OF_JOBS: [(&str, &str, &str); 1] =
    [("miss", "Next miss", "Go to the next missed deadline or lost period")];
const KEY_OF_JOBS: [(&str, &str); 1] = [("m", "next missed deadline or lost period")];

/// Buttons: what the script calls them, what is on them, and what they are for.
const BUTTONS: [(&str, &str, &str); 8] = [
    ("in", "+", "Zoom in"),
    ("out", "−", "Zoom out"),
    ("left", "←", "Earlier"),
    ("right", "→", "Later"),
    ("whole", "Whole run", "Show the whole run"),
    ("previous", "Previous gap", "Go to the previous gap of the row"),
    ("next", "Next gap", "Go to the next gap of the row"),
    ("longest", "Longest gap", "Go to the longest gap in view"),
];

fn timeline(out: &mut String, run: &RunView<'_>, ran: &OccupancyData) {
    begin_section(out, "timeline", "Timeline");
    if run.intervals.is_empty() && run.wake_ups.is_empty() {
        out.push_str(
            "<p class=\"note\">The run has no trace: nothing was recorded, or of wake-ups not \
             when they were.</p>\n</section>\n",
        );
        return;
    }
    out.push_str("<div class=\"bar\" role=\"toolbar\" aria-label=\"Timeline\">\n");
    let of_jobs = BUTTON_OF_JOBS.iter().filter(|_| !run.jobs.is_empty());
    for (name, face, about) in BUTTONS.iter().chain(of_jobs) {
        let _ = writeln!(
            out,
            "<button type=\"button\" data-do=\"{name}\" title=\"{about}\" aria-label=\"{about}\">\
             {face}</button>"
        );
    }
    out.push_str(
        "<output id=\"range\"></output>\n</div>\n<div id=\"stage\">\n\
         <canvas id=\"timeline\" tabindex=\"0\" role=\"application\" \
         aria-roledescription=\"timeline\" aria-label=\"Timeline of the run\" \
         aria-describedby=\"keys said\"></canvas>\n\
         <div id=\"tip\" role=\"tooltip\" hidden></div>\n</div>\n\
         <p id=\"said\" role=\"status\" aria-live=\"polite\"></p>\n\
         <div id=\"legend\" class=\"legend\"></div>\n",
    );
    cpu_occupancy::legend(out, ran);
    out.push_str("<p id=\"keys\" class=\"note keys\">");
    let of_jobs = KEY_OF_JOBS.iter().filter(|_| !run.jobs.is_empty());
    for (key, about) in KEYS.iter().chain(of_jobs) {
        let _ = write!(out, "<span><kbd>{key}</kbd> {about}</span> ");
    }
    out.push_str(
        "</p>\n<p class=\"note\">Wheel or pinch to zoom, drag to move, double click to zoom to a gap. \
         Below each thread its gaps, or its wake-ups: the higher, the longer or the later.</p>\n\
         <noscript><p class=\"note\">The timeline needs JavaScript.</p></noscript>\n</section>\n",
    );
}

fn script(out: &mut String, run: &RunView<'_>, gaps: &[Gap], ran: &OccupancyData) {
    let data = data::json(run, gaps, ran);
    out.reserve(data.len());
    out.push_str("<script type=\"application/json\" id=\"data\">");
    out.push_str(&data);
    out.push_str("</script>\n<script>\n\"use strict\";\n(() => {\n");
    SCRIPTS.iter().for_each(|part| out.push_str(part));
    out.push_str("})();\n</script>\n");
}
