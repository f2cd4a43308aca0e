//! The histograms of a page: of latencies, and of gaps.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::gaps::{Gap, KINDS};
use super::plot::{Across, Curve, Plot, nice};
use super::table::grouped;
use crate::run::{LatencyCounts, Run, label};
use crate::units::rounded;

/// Bins of a histogram of latencies, at most: a bin is a microsecond as long as that suffices.
const MOST_BINS: u64 = 500;

/// Where the latest wake-up is not within so many times the 99.9th percentile, the axis ends
/// before it, and what is beyond is told in numbers.
const ROOM: f64 = 3.0;

/// Bins in a decade of gaps.
const BINS_A_DECADE: u32 = 10;

/// Colours of threads in the style sheet.
const COLOURS: u32 = 12;

/// Lines of one colour: unbroken, and dashed in these ways.
const DASHES: u32 = 6;

/// Writes the histogram of latencies; nothing where none were measured.
pub(super) fn latency(out: &mut String, run: &Run<'_>) {
    let measured = run.latencies.iter().filter(|counts| !counts.counts.is_empty());
    let measured: Vec<&LatencyCounts> = measured.collect();
    if measured.is_empty() {
        return;
    }
    let most_us = upper_end_us(run, &measured);
    let bin = nice(most_us.div_ceil(MOST_BINS) as f64) as u64;
    let curves = measured.iter().map(|counts| curve(run, counts, most_us, bin)).collect();
    let plot = Plot {
        label: "Histogram of latencies: microseconds across, wake-ups upwards by powers of ten"
            .to_owned(),
        across: Across::Linear { most_us: most_us as f64 },
        caption: format!("latency, us; bins of {bin} us"),
        counted: "wake-ups",
        curves,
    };
    out.push_str(
        "<section aria-labelledby=\"latency-h\">\n<h2 id=\"latency-h\">Latency of wake-ups</h2>\n",
    );
    plot.write(out);
    out.push_str("</section>\n");
}

/// Where the axis ends, in microseconds.
fn upper_end_us(run: &Run<'_>, measured: &[&LatencyCounts]) -> u64 {
    let latest = measured.iter().filter_map(|counts| counts.counts.last());
    let latest = latest.map(|(us, _)| *us).max().unwrap_or(0).saturating_add(1);
    let reports = run.document.result.threads.iter().filter_map(|thread| thread.latency);
    let p999 = reports.map(|report| report.p999_ns).max().unwrap_or(0);
    let typical = (p999 as f64 / 1e3 * ROOM).max(10.0);
    // As floating point: what is beyond 2^53 us is not drawn to the microsecond anyway.
    round_up((latest as f64).min(typical))
}

/// A round number of microseconds that is not below `us`.
fn round_up(us: f64) -> u64 {
    let step = nice(us / 10.0);
    ((us / step).ceil() * step) as u64
}

fn curve(run: &Run<'_>, counts: &LatencyCounts, most_us: u64, bin: u64) -> Curve {
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    for &(us, count) in counts.counts.iter().take_while(|(us, _)| *us < most_us) {
        let sum = bins.entry(us / bin).or_default();
        *sum = sum.saturating_add(count);
    }
    let edges = |n: u64| ((n * bin) as f64, ((n + 1) * bin) as f64);
    let steps = bins.into_iter().map(|(n, count)| (edges(n).0, edges(n).1, count)).collect();
    let thread = run.document.result.threads.iter().find(|thread| thread.id == counts.thread);
    let latest = thread.and_then(|thread| thread.latency).map(|latency| latency.max_ns);
    let mut note = latest.map(|ns| format!("max {}", rounded(ns))).unwrap_or_default();
    let beyond = counts.at_least(most_us);
    if beyond > 0 {
        let _ = write!(note, ", {} beyond the axis", grouped(beyond));
    }
    let name = thread.map_or("", |thread| label(thread));
    Curve { name: format!("{}: {name}", counts.thread), class: class(counts.thread), steps, note }
}

/// The colour of a thread, and the dashes that tell it from others of that colour.
fn class(thread: u32) -> String {
    let colour = format!("t{}", thread % COLOURS);
    match thread / COLOURS % DASHES {
        0 => colour,
        dashes => format!("{colour} d{dashes}"),
    }
}

/// Writes the histogram of gaps by their kinds; nothing without gaps.
pub(super) fn gaps(out: &mut String, gaps: &[Gap<'_>]) {
    if gaps.is_empty() {
        return;
    }
    let mut kinds: BTreeMap<usize, BTreeMap<u32, u64>> = BTreeMap::new();
    for gap in gaps {
        *kinds.entry(gap.kind).or_default().entry(bin_of(gap.length_ns())).or_default() += 1;
    }
    let bins = || kinds.values().flat_map(|bins| bins.keys().copied());
    let first = bins().min().unwrap_or(0) / BINS_A_DECADE;
    let last = bins().max().unwrap_or(0) / BINS_A_DECADE + 1;
    let plot = Plot {
        label: "Histogram of gaps: length across and count upwards, both by powers of ten"
            .to_owned(),
        across: Across::Log {
            least_ns: power(first * BINS_A_DECADE),
            most_ns: power(last * BINS_A_DECADE),
        },
        caption: "length of a gap".to_owned(),
        counted: "gaps",
        curves: kinds
            .iter()
            .map(|(kind, bins)| Curve {
                name: KINDS.get(*kind).copied().unwrap_or("gap").to_owned(),
                class: format!("k{kind}"),
                steps: bins.iter().map(|(bin, n)| (power(*bin), power(bin + 1), *n)).collect(),
                note: grouped(bins.values().sum()),
            })
            .collect(),
    };
    out.push_str("<section aria-labelledby=\"gaps-h\">\n<h2 id=\"gaps-h\">Lengths of gaps</h2>\n");
    plot.write(out);
    out.push_str("</section>\n");
}

/// The bin that holds a length; lengths below a nanosecond are in the first.
fn bin_of(ns: u64) -> u32 {
    ((ns.max(1) as f64).log10() * f64::from(BINS_A_DECADE) + 1e-9).floor() as u32
}

/// The lower edge of a bin, ns.
fn power(bin: u32) -> f64 {
    10f64.powf(f64::from(bin) / f64::from(BINS_A_DECADE))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_is_within_its_bin() {
        for ns in [1, 9, 10, 11, 999, 1_000, 123_456_789, u64::MAX] {
            let bin = bin_of(ns);
            assert!(power(bin) <= ns as f64 * 1.000_001, "{ns}");
            assert!(power(bin + 1) > ns as f64 * 0.999_999, "{ns}");
        }
        assert_eq!((bin_of(0), bin_of(1_000)), (0, 30));
    }

    /// Issue 6: 64 threads share twelve colours, and still no two lines look the same; the style sheet
    /// knows each.
    #[test]
    fn no_two_threads_look_the_same() {
        let style = include_str!("page.css");
        let mut looks: Vec<String> = (0..64).map(class).collect();
        for look in &looks {
            assert!(
                look.split(' ').all(|class| style.contains(&format!(".{class}{{"))
                    || style.contains(&format!(".{class}.curve{{"))),
                "{look}"
            );
        }
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 64);
    }

    #[test]
    fn axes_end_at_round_numbers() {
        for (us, end) in [(7.0, 7), (11.0, 12), (399.0, 400), (401.0, 450), (1_001.0, 1_200)] {
            assert_eq!(round_up(us), end, "{us}");
        }
    }
}
