//! Figure 5: the indirect cost of context switches by working set (section 5.2).

use hourglass_lab::cache_cost::{self, CacheCost};
use hourglass_model::cache_cost::{CacheCostDocument, SizeCost};
use hourglass_model::paper::{PaperFigure, PaperRow};
use hourglass_time::Span;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::printed::MeasuredTable;
use super::runs::{self, US, row};

pub(super) const ID: &str = "figure-5";
pub(super) const TITLE: &str = "Working set and performance lost to a context switch";

/// The size of which the paper estimates the penalty: 100 KB at 300 MB/s.
const ESTIMATED: u64 = 100 << 10;
const ESTIMATE_US: f64 = 333.0;

const THREADS: u32 = 10;

/// The experiment: 15 trials of 45 s as in the paper, which takes hours, or some of a fraction of a second.
fn wanted(effort: MeasurementSize) -> CacheCost {
    let sizes = |kib: &[u64]| kib.iter().map(|kib| kib << 10).collect();
    let (sizes, trials, duration) = match effort {
        MeasurementSize::Full => {
            let sizes = sizes(&[4, 8, 16, 32, 64, 100, 128, 256, 512, 1_024, 2_048, 4_096]);
            (sizes, 15, Span::from_secs(45))
        }
        MeasurementSize::Quick => (sizes(&[4, 32, 100, 1_024]), 3, Span::from_millis(200)),
    };
    CacheCost { sizes, trials, duration, threads: THREADS, cpu: None }
}

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let wanted = wanted(bench.effort);
    let method = format!(
        "{} trials of each size, each a run of one thread and one of ten on the same CPU for {}, one \
         right after the other; C = ((W1 - W10)/W1)(T/N10)",
        wanted.trials, wanted.duration
    );
    let document = match cache_cost::measure(&wanted, |_| ()) {
        Ok(found) if found.signal.is_some() => return None,
        Ok(found) => found.document,
        Err(failure) => {
            let why = failure.to_string();
            let rows = wanted.sizes.iter().map(|bytes| penalty_row(*bytes, None, &why)).collect();
            let table = runs::table((ID, TITLE), method, rows, String::new(), Vec::new());
            return Some(MeasuredTable { table, figure: None });
        }
    };
    let notes = notes(&document);
    let table = runs::table((ID, TITLE), method, rows(&document), difference(&document), notes);
    let figure = cache_cost::curves(&document);
    Some(MeasuredTable { table, figure: Some(PaperFigure::Curves(figure)) })
}

fn penalty_row(bytes: u64, found: Option<(f64, u64)>, why: &str) -> PaperRow {
    let paper = (bytes == ESTIMATED).then_some(ESTIMATE_US);
    row(&format!("{} KiB: penalty", bytes >> 10), paper, ("us", US), found, why)
}

fn rows(document: &CacheCostDocument) -> Vec<PaperRow> {
    const WHY: &str = "no trial had a switch";
    let mut rows = Vec::new();
    for size in &document.sizes {
        let trials = u64::from(size.trials);
        rows.push(penalty_row(size.bytes, size.penalty_ns.map(|ns| (ns, trials)), WHY));
    }
    for size in &document.sizes {
        let name = format!("{} KiB: refill", size.bytes >> 10);
        rows.push(row(
            &name,
            None,
            ("us", US),
            size.refill_ns.map(|ns| (ns, u64::from(size.trials))),
            WHY,
        ));
    }
    rows
}

fn notes(document: &CacheCostDocument) -> Vec<String> {
    let interval = |size: &SizeCost| {
        let half = |lo: Option<f64>, hi: Option<f64>| Some((hi? - lo?) / 2.0 / US);
        let penalty = half(size.ci_lo_ns, size.ci_hi_ns)?;
        let refill = half(size.refill_ci_lo_ns, size.refill_ci_hi_ns)?;
        Some(format!("{} KiB {penalty:.1} and {refill:.1}", size.bytes >> 10))
    };
    let halves: Vec<String> = document.sizes.iter().filter_map(interval).collect();
    let mut notes = vec![
        "The paper gives a picture, and in the text an estimate for 100 KB: its memory reads 300 MB/s."
            .to_owned(),
        "Refill is the same by work in the time that threads received: neither the kernel's part of a \
         switch nor what other programs took is in it."
            .to_owned(),
        format!("95 % intervals, ± us, of penalty and refill: {}.", halves.join(", ")),
    ];
    notes.extend(document.warnings.iter().map(|warning| format!("{}.", warning.text)));
    notes
}

/// Whether the largest working set costs more than the smallest, as in the paper.
fn difference(document: &CacheCostDocument) -> String {
    let refill = |size: &SizeCost| Some((size.bytes, size.refill_ns?, size.refill_ci_lo_ns?));
    let ends = document.sizes.first().zip(document.sizes.last());
    let Some((small, large)) = ends.and_then(|(a, b)| refill(a).zip(refill(b))) else {
        return "Too few trials were complete to say anything.".to_owned();
    };
    let grows = if large.2 > small.1 { "more" } else { "not measurably more" };
    format!(
        "In the paper the penalty grows with the working set up to the size of its cache (256 KB). Here \
         {} KiB cost {grows} than {} KiB: {:.0} us against {:.0} to refill.",
        large.0 >> 10,
        small.0 >> 10,
        large.1 / US,
        small.1 / US,
    )
}

#[cfg(test)]
mod tests {
    use hourglass_model::cache_cost::CACHE_COST_SCHEMA;

    use super::*;

    fn size(kib: u64, refill_ns: f64) -> SizeCost {
        SizeCost {
            bytes: kib << 10,
            penalty_ns: Some(refill_ns + 10e3),
            ci_lo_ns: Some(refill_ns),
            ci_hi_ns: Some(refill_ns + 20e3),
            refill_ns: Some(refill_ns),
            refill_ci_lo_ns: Some(refill_ns - 5e3),
            refill_ci_hi_ns: Some(refill_ns + 5e3),
            trials: 15,
            switches_per_s: Some(18.0),
            work_of_one: None,
            work_of_many: None,
        }
    }

    /// The experiment is the paper's, and its estimate stands beside the size that it is about.
    #[test]
    fn the_papers_experiment() {
        let full = wanted(MeasurementSize::Full);
        assert_eq!((full.trials, full.duration), (15, Span::from_secs(45)));
        let sizes = vec![size(4, 3e3), size(100, 340e3), size(4_096, 900e3)];
        let document = CacheCostDocument {
            schema: CACHE_COST_SCHEMA.to_owned(),
            cpu: 0,
            processor: None,
            kernel: String::new(),
            threads: 10,
            duration_ns: 1,
            trials: 15,
            sizes,
            warnings: Vec::new(),
            interrupted: false,
        };
        let rows = rows(&document);
        assert_eq!((rows[1].paper, rows[1].measured), (Some(333.0), Some(350.0)));
        assert_eq!((rows[3].paper, rows[3].measured), (None, Some(3.0)));
        assert!(difference(&document).contains("4096 KiB cost more than 4 KiB: 900 us against 3"));
        assert!(notes(&document)[2].contains("100 KiB 10.0 and 5.0"));
    }
}
