//! Who may have had the CPU in the longest gaps and before the latest wake-ups, by the kernel's counts.

use std::fmt::Write;

use hourglass_documents::concurrent_threads::ConcurrentThreads;

use super::causes::seconds;
use super::table::{HtmlTable, begin_section};
use crate::clean::for_terminal;
use crate::text::{BY_COUNTS, reason, worst_heading};

/// Writes the table; nothing where nothing is known, as where the kernel was traced.
pub(super) fn write(out: &mut String, all: &[ConcurrentThreads]) {
    if all.is_empty() {
        return;
    }
    let table = HtmlTable::of("by counts", all)
        .text("what", |report| worst_heading(&report.of, report.length_ns, report.thread))
        .number("until, s", |report| seconds(report.at_ns))
        .text("ran on the CPU, at most", |report| for_terminal(&reason(report)))
        .text("between samples at, s", |report| {
            format!("{} and {}", seconds(report.looked_ns), seconds(report.looked_again_ns))
        });
    begin_section(out, "meanwhile", "Threads that ran meanwhile");
    table.write(out);
    // Writing to a string cannot fail.
    let _ = writeln!(out, "<p class=\"note\">What is known is {BY_COUNTS}.</p>\n</section>");
}
