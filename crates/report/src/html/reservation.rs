//! What came of a reservation, as the command prints it.

use std::fmt::Write;

use hourglass_documents::reserve::ReserveDocument;

use crate::clean::for_xml;
use crate::text::{self, Style};

/// Writes the section.
pub(super) fn write(out: &mut String, document: &ReserveDocument) {
    out.push_str(
        "<section aria-labelledby=\"reservation-h\">\n<h2 id=\"reservation-h\">Reservation</h2>\n<pre>",
    );
    // Line by line: the breaks are ours, whatever is within a line is not.
    for line in text::reserve(document, Style::Plain).lines() {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "{}", for_xml(line));
    }
    out.push_str("</pre>\n</section>\n");
}
