//! Figure 5: the indirect cost of context switches by working set (section 5.2).

use hourglass_documents::cache_cost::{CacheCostDocument, SizeCost};
use hourglass_documents::paper::{PaperFigure, PaperRow};
use hourglass_measure::cache_cost::{self, CacheCost};
use hourglass_time::Span;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::{NumberResult, measured};
use super::runs::US;

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

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    let wanted = wanted(bench.effort);
    let values = Values::default()
        .with("trials", u64::from(wanted.trials))
        .with("duration", wanted.duration.to_string());
    let document = match cache_cost::measure(&wanted, |_| ()) {
        Ok(found) if found.signal.is_some() => return None,
        Ok(found) => found.document,
        Err(failure) => {
            let why = failure.to_string();
            let rows =
                wanted.sizes.iter().map(|bytes| row(table, *bytes, "penalty", Err(why.clone())));
            let rows = rows.collect();
            return Some(table.with_rows(rows, values));
        }
    };
    let measured = table.with_rows(rows(table, &document), texts(&document, values));
    let warnings = document.warnings.iter().map(|warning| format!("{}.", warning.text));
    let figure = PaperFigure::Curves(cache_cost::curves(&document));
    Some(measured.with_notes(warnings).with_figure(figure))
}

fn row(table: &Table, bytes: u64, what: &str, found: NumberResult) -> PaperRow {
    let name = format!("{} KiB: {what}", bytes >> 10);
    let paper = table.printed(&name, 0);
    measured(name, "us", paper, found)
}

fn rows(table: &Table, document: &CacheCostDocument) -> Vec<PaperRow> {
    let found = |size: &SizeCost, ns: Option<f64>| {
        ns.map(|ns| (ns, u64::from(size.trials))).ok_or_else(|| "no trial had a switch".to_owned())
    };
    let sizes = &document.sizes;
    let penalty = |size: &SizeCost| row(table, size.bytes, "penalty", found(size, size.penalty_ns));
    let refill = |size: &SizeCost| row(table, size.bytes, "refill", found(size, size.refill_ns));
    sizes.iter().map(penalty).chain(sizes.iter().map(refill)).collect()
}

fn texts(document: &CacheCostDocument, values: Values) -> Values {
    let interval = |size: &SizeCost| {
        let half = |lo: Option<f64>, hi: Option<f64>| Some((hi? - lo?) / 2.0 / US);
        let penalty = half(size.ci_lo_ns, size.ci_hi_ns)?;
        let refill = half(size.refill_ci_lo_ns, size.refill_ci_hi_ns)?;
        Some(format!("{} KiB {penalty:.1} and {refill:.1}", size.bytes >> 10))
    };
    let halves: Vec<String> = document.sizes.iter().filter_map(interval).collect();
    let values = values.with_if("ran", true).with("intervals", halves.join(", "));
    let refill = |size: &SizeCost| Some((size.bytes, size.refill_ns?, size.refill_ci_lo_ns?));
    let ends = document.sizes.first().zip(document.sizes.last());
    let Some((small, large)) = ends.and_then(|(a, b)| refill(a).zip(refill(b))) else {
        return values;
    };
    values
        .with("grows", if large.2 > small.1 { "more" } else { "not measurably more" })
        .with("large", large.0 >> 10)
        .with("small", small.0 >> 10)
        .with("large us", format!("{:.0}", large.1 / US))
        .with("small us", format!("{:.0}", small.1 / US))
}

#[cfg(test)]
mod tests {
    use hourglass_documents::cache_cost::CACHE_COST_SCHEMA;

    use super::super::tests::table;
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
        let (rows, values) =
            (rows(table("figure-5"), &document), texts(&document, Values::default()));
        assert_eq!((rows[1].paper, rows[1].measured), (Some(333.0), Some(350.0)));
        assert_eq!((rows[3].paper, rows[3].measured), (None, Some(3.0)));
        let text = table("figure-5").with_rows(Vec::new(), values).table;
        assert!(text.difference.contains("4096 KiB cost more than 4 KiB: 900 us against 3"));
        assert!(text.notes[2].contains("100 KiB 10.0 and 5.0"));
    }
}
