//! Where the kernel was at the switches of the longest gaps and the latest wake-ups.

use std::fmt::Write;

use hourglass_documents::stack::StackReport;

use super::table::begin_section;
use crate::clean::for_xml;
use crate::text::{stack_frames, stack_heading, stack_moment};

/// Writes them, each gap and wake-up closed but for the first; nothing where no stack was walked.
pub(super) fn write(out: &mut String, all: &[StackReport]) {
    if all.is_empty() {
        return;
    }
    begin_section(out, "stacks", "Kernel stacks");
    out.push_str("<p class=\"note\">At the switches of the longest gaps and the latest wake-ups: where the CPU was taken from the \
         thread, and where another thread gave it the CPU at last. The innermost function comes first.</p>\n");
    for (place, report) in all.iter().enumerate() {
        let open = if place == 0 { " open" } else { "" };
        let at = super::causes::seconds(report.at_ns);
        // Writing to a string cannot fail.
        let _ = writeln!(
            out,
            "<details{open}><summary>{}, until {at} s</summary>",
            for_xml(&stack_heading(report))
        );
        for one in &report.stacks {
            let _ = writeln!(
                out,
                "<p class=\"note\">CPU {}, {}</p>\n<pre>{}</pre>",
                one.cpu,
                for_xml(&stack_moment(one)),
                for_xml(&stack_frames(one))
            );
        }
        out.push_str("</details>\n");
    }
    out.push_str("</section>\n");
}
