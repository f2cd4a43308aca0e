//! Call sites of a program that recorded its spans.

use hourglass_documents::document::{RunResult, SiteCause, SiteReport};

use super::table::{HtmlTable, begin_section};
use crate::text::{between, lost_span};
use crate::units::rounded;

/// Writes the section, where there is something to say.
pub(super) fn write(out: &mut String, result: &RunResult) {
    if result.sites.is_empty() {
        return;
    }
    begin_section(out, "sites", "Call sites");
    out.push_str("<div class=\"stack\">\n");
    HtmlTable::of("Spans of the program, and for how long they were off the CPU", &result.sites)
        .text("site", |site| site.name.as_str())
        .number("spans", |site| site.spans)
        .number("disturbed", |site| site.disturbed)
        .number("unknown", |site| site.unknown)
        .number("median", |site| rounded(site.p50_ns))
        .number("p99", |site| rounded(site.p99_ns))
        .number("max", |site| rounded(site.max_ns))
        .number("lost", |site| match site.disturbed {
            0 => String::new(),
            _ => between(site.lost_least_ns, site.lost_most_ns),
        })
        .below(|site| site.place.clone())
        .write(out);
    let sites = result.sites.iter();
    let causes: Vec<(&SiteReport, &SiteCause)> =
        sites.flat_map(|site| site.causes.iter().map(move |cause| (site, cause))).collect();
    if !causes.is_empty() {
        HtmlTable::of("Lost by spans", &causes)
            .text("site", |(site, _)| site.name.as_str())
            .text("cause", |(_, cause)| cause.cause.as_str())
            .number("spans", |(_, cause)| cause.count)
            .number("median", |(_, cause)| rounded(cause.p50_ns))
            .number("p99", |(_, cause)| rounded(cause.p99_ns))
            .number("max", |(_, cause)| rounded(cause.max_ns))
            .number("together", |(_, cause)| between(cause.lost_least_ns, cause.lost_most_ns))
            .write(out);
    }
    if !result.worst_spans.is_empty() {
        HtmlTable::of("The spans that lost most", &result.worst_spans)
            .number("lost", |span| between(span.lost_least_ns, span.lost_most_ns))
            .text("span", lost_span)
            .below(|span| span.evidence.clone())
            .write(out);
    }
    out.push_str("</div>\n</section>\n");
}
