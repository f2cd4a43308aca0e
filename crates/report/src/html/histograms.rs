//! The histograms of a page: of latencies, and of gaps.

use std::collections::BTreeMap;

use super::gaps::{Gap, KINDS};
use super::plot::{Curve, Plot};
use super::table::{begin_section, grouped};
use crate::run::{LatencyCounts, RunView, label};
use crate::svg::histogram::{self, BINS_A_DECADE as LATENCY_BINS_A_DECADE, bin_of, power, steps};
use crate::units::rounded;

/// Bins in a decade of gaps.
const GAP_BINS_A_DECADE: u32 = 10;

/// Colours of threads in the style sheet.
const COLOURS: u32 = 8;

/// Lines of one colour: unbroken, and dashed in these ways.
const DASHES: u32 = 8;

/// Writes the histogram of latencies; nothing where none were measured.
pub(super) fn latency(out: &mut String, run: &RunView<'_>) {
    let measured = run.latencies.iter().filter(|counts| !counts.counts.is_empty());
    let binned: Vec<(&LatencyCounts, BTreeMap<u32, u64>)> =
        measured.map(|counts| (counts, bins(counts))).collect();
    if binned.is_empty() {
        return;
    }
    let all = binned.iter().flat_map(|(_, bins)| bins.keys().copied());
    let plot = Plot {
        label: "Histogram of latencies: latency across and wake-ups upwards, both by powers of ten"
            .to_owned(),
        across: decades(all, LATENCY_BINS_A_DECADE),
        caption: "latency of a wake-up".to_owned(),
        counted: "wake-ups",
        curves: binned.iter().map(|(counts, bins)| curve(run, counts, bins)).collect(),
    };
    begin_section(out, "latency", "Latency of wake-ups");
    plot.write(out);
    out.push_str("</section>\n");
}

/// The whole decades that hold all `bins`, with `a_decade` bins in each decade.
fn decades(bins: impl Iterator<Item = u32> + Clone, a_decade: u32) -> (f64, f64) {
    let first = bins.clone().min().unwrap_or(0) / a_decade;
    let last = bins.max().unwrap_or(0) / a_decade + 1;
    (power(first, 1), power(last, 1))
}

/// How many wake-ups are in each bin. Of those whose microsecond only is known the middle of it counts.
fn bins(counts: &LatencyCounts) -> BTreeMap<u32, u64> {
    if !counts.fine.is_empty() {
        return histogram::bins(counts.fine.iter().copied(), LATENCY_BINS_A_DECADE);
    }
    let middle = |us: u64| us.saturating_mul(1_000).saturating_add(500);
    let middles = counts.counts.iter().map(|(us, count)| (middle(*us), *count));
    histogram::bins(middles, LATENCY_BINS_A_DECADE)
}

fn curve(run: &RunView<'_>, counts: &LatencyCounts, bins: &BTreeMap<u32, u64>) -> Curve {
    let thread = run.document.result.threads.iter().find(|thread| thread.id == counts.thread);
    let latency = thread.and_then(|thread| thread.latency);
    let note = latency
        .map(|found| format!("median {}, max {}", rounded(found.p50_ns), rounded(found.max_ns)));
    let name = thread.map_or("", |thread| label(thread));
    Curve {
        name: format!("{}: {name}", counts.thread),
        class: class(counts.thread),
        steps: steps(bins, LATENCY_BINS_A_DECADE),
        note: note.unwrap_or_default(),
    }
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
        *kinds
            .entry(gap.kind)
            .or_default()
            .entry(bin_of(gap.length_ns(), GAP_BINS_A_DECADE))
            .or_default() += 1;
    }
    let all = kinds.values().flat_map(|bins| bins.keys().copied());
    let plot = Plot {
        label: "Histogram of gaps: length across and count upwards, both by powers of ten"
            .to_owned(),
        across: decades(all, GAP_BINS_A_DECADE),
        caption: "length of a gap".to_owned(),
        counted: "gaps",
        curves: kinds
            .iter()
            .map(|(kind, bins)| Curve {
                name: KINDS.get(*kind).copied().unwrap_or("gap").to_owned(),
                class: format!("k{kind}"),
                steps: steps(bins, GAP_BINS_A_DECADE),
                note: grouped(bins.values().sum()),
            })
            .collect(),
    };
    begin_section(out, "gaps", "Lengths of gaps");
    plot.write(out);
    out.push_str("</section>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Issue 6: 64 threads share eight colours, and still no two lines look the same; the style sheet
    /// knows each.
    #[test]
    fn no_two_threads_look_the_same() {
        let style = include_str!("page.css");
        let mut looks: Vec<String> = (0..64).map(class).collect();
        for look in &looks {
            assert!(
                look.split(' ').all(|class| style.contains(&format!(".{class}{{"))
                    || style.contains(&format!(".{class} .curve{{"))),
                "{look}"
            );
        }
        looks.sort();
        looks.dedup();
        assert_eq!(looks.len(), 64);
    }

    /// What is known to three digits makes no holes between bins, and the axis has whole decades.
    #[test]
    fn every_wake_up_is_in_a_bin() {
        let fine: Vec<(u64, u64)> = (1_000..=99_900).step_by(100).map(|ns| (ns, 1)).collect();
        let counts = LatencyCounts { thread: 0, counts: vec![(1, 990)], fine };
        let found = bins(&counts);
        assert_eq!(found.values().sum::<u64>(), 990);
        assert_eq!(found.len(), 40, "two decades without a hole");
        let (least_ns, most_ns) = decades(found.keys().copied(), LATENCY_BINS_A_DECADE);
        assert_eq!((least_ns.round(), most_ns.round()), (1e3, 1e5));
        let coarse =
            LatencyCounts { counts: vec![(0, 2), (u64::MAX, 3)], ..LatencyCounts::default() };
        assert_eq!(bins(&coarse).into_iter().collect::<Vec<_>>(), [(53, 2), (385, 3)]);
    }
}
