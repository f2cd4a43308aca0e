//! What came of a reservation, as the command prints it.

use std::fmt::Write;

use hourglass_documents::reserve::ReserveDocument;

use super::table::begin_section;
use crate::clean::for_xml;
use crate::text::{self, Style};

/// Writes the section.
pub(super) fn write(out: &mut String, document: &ReserveDocument) {
    begin_section(out, "reservation", "Reservation");
    out.push_str("<pre>");
    // Line by line: the breaks are ours, whatever is within a line is not.
    for line in text::reserve(document, Style::Plain).lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", for_xml(line));
    }
    out.push_str("</pre>\n</section>\n");
}
