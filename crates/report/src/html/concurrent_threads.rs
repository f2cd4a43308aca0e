//! Who may have had the CPU in the longest gaps and before the latest wake-ups, by the kernel's counts.

use std::fmt::Write;

use hourglass_documents::concurrent_threads::ConcurrentThreads;

use super::causes::seconds;
use super::table::{Cell, HtmlTable, begin_section, text};
use crate::clean::for_terminal;
use crate::text::{BY_COUNTS, reason, worst_heading};

/// Writes the table; nothing where nothing is known, as where the kernel was traced.
pub(super) fn write(out: &mut String, all: &[ConcurrentThreads]) {
    if all.is_empty() {
        return;
    }
    let mut table = HtmlTable::new("by counts")
        .texts(["what"])
        .numbers(["until, s"])
        .texts(["ran on the CPU, at most", "between looks at, s"]);
    for report in all {
        table.row(row(report));
    }
    begin_section(out, "meanwhile", "Who ran meanwhile");
    table.write(out);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<p class=\"note\">What is known is {BY_COUNTS}.</p>\n</section>");
}

fn row(report: &ConcurrentThreads) -> Vec<Cell> {
    let (first, last) = (report.looked_ns, report.looked_again_ns);
    vec![
        text(worst_heading(&report.of, report.length_ns, report.thread)),
        text(seconds(report.at_ns)),
        text(for_terminal(&reason(report))),
        text(format!("{} and {}", seconds(first), seconds(last))),
    ]
}
