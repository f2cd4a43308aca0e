//! The tables of all threads, added up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hourglass_documents::Cause;
use hourglass_time::{Bounded, Span};

use crate::loss::between;
use crate::machine::HostFacts;
use crate::sites::entries::code;
use crate::sites::histogram::{Distribution, LENGTHS, LOSSES};
use crate::sites::table::{self, ThreadTable};
use crate::sites::{CauseLost, Names, SiteReport};

/// Spans that a thread counted at a site.
pub(super) fn spans_of(table: &ThreadTable, site: usize) -> u64 {
    let counts = table.lengths(site).unwrap_or_default();
    counts.iter().map(|count| count.load(Ordering::Relaxed)).sum()
}

/// What all threads counted at a site.
pub(super) fn report_of(names: &Names, tables: &[Arc<ThreadTable>], site: usize) -> SiteReport {
    let rate = HostFacts::here().rate();
    let rows = || tables.iter().filter_map(|table| table.rows.get(site));
    let sum = |of: &dyn Fn(&table::SiteTotals) -> &AtomicU64| -> u64 {
        rows().map(|row| of(row).load(Ordering::Relaxed)).sum()
    };
    let longest = rows().map(|row| row.longest.load(Ordering::Relaxed)).max().unwrap_or(0);
    let length = Distribution::of(
        LENGTHS,
        tables.iter().filter_map(|table| table.lengths(site)),
        |ticks| rate.length_ns(ticks),
        rate.length_ns(longest),
    );
    let causes = Cause::ALL.map(|cause| cause_of(tables, site, cause));
    let mut causes: Vec<CauseLost> = causes.into_iter().filter(|cause| cause.count > 0).collect();
    causes.sort_by_key(|cause| std::cmp::Reverse(cause.lost.latest()));
    let total = |of: &dyn Fn(&Bounded<Span>) -> Span| {
        causes.iter().fold(0_u64, |sum, cause| sum.saturating_add(of(&cause.lost).nanos_or_zero()))
    };
    let lost = between(total(&|lost| lost.earliest()), total(&|lost| lost.latest()));
    let number = u16::try_from(site).unwrap_or(u16::MAX);
    let greatest = tables.iter().flat_map(|table| table.greatest.all());
    let greatest =
        greatest.filter(|entry| entry.site == number).max_by_key(|entry| entry.lost_ns());
    let (name, place) = names.site(number);
    SiteReport {
        name,
        place,
        spans: tables.iter().map(|table| spans_of(table, site)).sum(),
        disturbed: sum(&|row| &row.disturbed),
        unknown: sum(&|row| &row.unknown),
        length,
        lost,
        causes,
        greatest: greatest.map(|entry| entry.report(names, &rate)),
    }
}

fn cause_of(tables: &[Arc<ThreadTable>], site: usize, cause: Cause) -> CauseLost {
    let rows = || tables.iter().filter_map(|table| Some((table, table.rows.get(site)?)));
    let sums = || rows().map(|(table, row)| (table, &row.causes[code(cause)]));
    let sum = |of: &dyn Fn(&table::CauseSums) -> &AtomicU64| -> u64 {
        sums().fold(0, |sum, (_, sums)| sum.saturating_add(of(sums).load(Ordering::Relaxed)))
    };
    let greatest_ns = sums().map(|(_, sums)| sums.greatest_ns.load(Ordering::Relaxed)).max();
    let histograms = sums().filter_map(|(table, sums)| table.histogram(sums));
    CauseLost {
        cause,
        count: sum(&|sums| &sums.count),
        lost: between(sum(&|sums| &sums.least_ns), sum(&|sums| &sums.most_ns)),
        distribution: Distribution::of(LOSSES, histograms, |ns| ns, greatest_ns.unwrap_or(0)),
    }
}
