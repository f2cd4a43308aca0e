//! Call sites of a program that recorded its spans.

use hourglass_documents::document::RunResult;

use super::table::{HtmlTable, begin_section, count, text};
use crate::text::{between, lost_span};
use crate::units::rounded;

/// Writes the section, where there is something to say.
pub(super) fn write(out: &mut String, result: &RunResult) {
    if result.sites.is_empty() {
        return;
    }
    begin_section(out, "sites", "Call sites");
    out.push_str("<div class=\"stack\">\n");
    let mut sites = HtmlTable::new("Spans of the program, and for how long they were off the CPU")
        .texts(["site"])
        .numbers(["spans", "disturbed", "unknown", "median", "p99", "max", "lost"]);
    let mut causes = HtmlTable::new("Lost by spans")
        .texts(["site", "cause"])
        .numbers(["spans", "median", "p99", "max", "together"]);
    for site in &result.sites {
        let lost = match site.disturbed {
            0 => String::new(),
            _ => between(site.lost_least_ns, site.lost_most_ns),
        };
        let cells = vec![
            text(site.name.clone()),
            count(site.spans),
            count(site.disturbed),
            count(site.unknown),
            text(rounded(site.p50_ns)),
            text(rounded(site.p99_ns)),
            text(rounded(site.max_ns)),
            text(lost),
        ];
        sites.row_above(cells, &site.place);
        for cause in &site.causes {
            causes.row([
                text(site.name.clone()),
                text(cause.cause.clone()),
                count(cause.count),
                text(rounded(cause.p50_ns)),
                text(rounded(cause.p99_ns)),
                text(rounded(cause.max_ns)),
                text(between(cause.lost_least_ns, cause.lost_most_ns)),
            ]);
        }
    }
    sites.write(out);
    if result.sites.iter().any(|site| !site.causes.is_empty()) {
        causes.write(out);
    }
    if !result.worst_spans.is_empty() {
        let mut worst =
            HtmlTable::new("The spans that lost most").numbers(["lost"]).texts(["span"]);
        for span in &result.worst_spans {
            let lost = between(span.lost_least_ns, span.lost_most_ns);
            worst.row_above([text(lost), text(lost_span(span))], &span.evidence);
        }
        worst.write(out);
    }
    out.push_str("</div>\n</section>\n");
}
