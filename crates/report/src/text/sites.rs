//! Call sites of a program that recorded its spans, and what was taken from them.

use hourglass_documents::document::{LostSpan, SiteCause, SiteReport};

use super::table::TextTable;
use crate::units::rounded;

/// The worst spans that are written below the tables.
const WORST: usize = 3;

/// `1.20 ms to 1.31 ms`; one of them where both are the same.
pub(crate) fn between(least_ns: u64, most_ns: u64) -> String {
    let (least, most) = (rounded(least_ns), rounded(most_ns));
    if least == most { most } else { format!("{least} to {most}") }
}

/// A row for each call site.
pub(super) fn sites(sites: &[SiteReport]) -> TextTable {
    let unknown = sites.iter().any(|site| site.unknown > 0);
    TextTable::of("Call sites", sites)
        .elastic("site", |site| site.name.as_str())
        .number("spans", |site| site.spans)
        .number("disturbed", |site| site.disturbed)
        .number_if(unknown, "unknown", |site| site.unknown)
        .number("median", |site| rounded(site.p50_ns))
        .number("p99", |site| rounded(site.p99_ns))
        .number("max", |site| rounded(site.max_ns))
        .text("lost", |site| match site.disturbed {
            0 => String::new(),
            _ => between(site.lost_least_ns, site.lost_most_ns),
        })
        .narrow()
}

/// A row for each cause at each call site; `None` if nothing was lost.
pub(super) fn causes(sites: &[SiteReport]) -> Option<TextTable> {
    let all = sites.iter().flat_map(|site| site.causes.iter().map(move |cause| (site, cause)));
    let all: Vec<(&SiteReport, &SiteCause)> = all.collect();
    let table = TextTable::of("Lost by spans", &all)
        .elastic("site", |(site, _)| site.name.as_str())
        .elastic("cause", |(_, cause)| cause.cause.as_str())
        .number("spans", |(_, cause)| cause.count)
        .number("median", |(_, cause)| rounded(cause.p50_ns))
        .number("max", |(_, cause)| rounded(cause.max_ns))
        .text("together", |(_, cause)| between(cause.lost_least_ns, cause.lost_most_ns))
        .narrow();
    (!table.is_empty()).then_some(table)
}

/// The worst spans, a sentence each.
pub(super) fn worst(spans: &[LostSpan]) -> Vec<String> {
    spans.iter().take(WORST).map(sentence).collect()
}

/// `request of 3.20 ms lost 3.01 ms to 3.11 ms at 1.20 s: stopped (0.90), on CPU 1, thread 812 (worker)`.
pub(crate) fn sentence(span: &LostSpan) -> String {
    let mut said = format!(
        "{} of {} lost {} at {}: {} ({:.0} %), CPU {}",
        span.site,
        rounded(span.length_ns),
        between(span.lost_least_ns, span.lost_most_ns),
        rounded(u64::try_from(span.at_ns).unwrap_or(0)),
        span.cause,
        span.confidence * 100.0,
        span.cpu_before,
    );
    if span.cpu_after != span.cpu_before {
        said.push_str(&format!(", then {}", span.cpu_after));
    }
    if let Some(who) = span.who {
        said.push_str(&format!(", which thread {who} had"));
    }
    said.push_str(&match span.thread.is_empty() {
        true => format!("; thread {}", span.tid),
        false => format!("; thread {} ({})", span.tid, span.thread),
    });
    said
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::Style;

    fn site() -> SiteReport {
        let cause = SiteCause {
            cause: "context_switch_involuntary".to_owned(),
            count: 2,
            lost_least_ns: 5_900_000,
            lost_most_ns: 6_100_000,
            p50_ns: 3_000_000,
            p99_ns: 3_000_000,
            max_ns: 3_000_000,
        };
        SiteReport {
            name: "request".to_owned(),
            spans: 1_000,
            disturbed: 2,
            p50_ns: 100_000,
            p99_ns: 130_000,
            p999_ns: 3_000_000,
            max_ns: 3_100_000,
            lost_least_ns: 5_900_000,
            lost_most_ns: 6_100_000,
            causes: vec![cause],
            ..SiteReport::default()
        }
    }

    #[test]
    fn tables_have_a_row_for_each_site_and_cause() {
        let quiet = SiteReport { disturbed: 0, causes: Vec::new(), ..site() };
        let mut out = String::new();
        sites(&[site(), quiet.clone()]).write(&mut out, Style::Plain);
        let rows: Vec<&str> = out.lines().collect();
        assert!(
            rows.iter().any(|row| row.contains("request") && row.contains("5.90 ms to 6.10 ms")),
            "{out}"
        );
        assert!(out.lines().all(|line| line.chars().count() <= 80), "{out}");
        assert!(!out.contains("unknown"), "{out}");
        assert!(causes(&[quiet]).is_none());
        let mut out = String::new();
        causes(&[site()]).unwrap().write(&mut out, Style::Plain);
        assert!(out.contains("context_switch_involuntary") && out.contains("3.00 ms"), "{out}");
    }

    #[test]
    fn a_span_is_one_sentence() {
        let span = LostSpan {
            site: "callback".to_owned(),
            tid: 7,
            thread: "audio".to_owned(),
            at_ns: 1_500_000_000,
            length_ns: 3_200_000,
            lost_least_ns: 3_000_000,
            lost_most_ns: 3_100_000,
            cpu_after: 1,
            cause: "stopped".to_owned(),
            confidence: 0.9,
            who: Some(9),
            ..LostSpan::default()
        };
        assert_eq!(
            sentence(&span),
            "callback of 3.20 ms lost 3.00 ms to 3.10 ms at 1.50 s: stopped (90 %), CPU 0, then 1, which thread 9 \
             had; thread 7 (audio)"
        );
    }
}
