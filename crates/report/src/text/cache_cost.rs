//! The cost of context switches by the size of working sets, for people.

use std::fmt::Write;

use hourglass_documents::cache_cost::CacheCostDocument;

use super::Style;
use super::table::{NARROW, TextStyle, TextTable, paint_line, wrapped_within};
use crate::clean;
use crate::units::rounded;

/// What the two columns mean.
const MEANING: &str = "\
penalty: work that ten threads lose against one, for each switch (the paper's C); refill: the same by
work in received time, without the kernel's part and without what others took. Both ± half of their
95 % interval.";

/// A row for each size; then what spoils the numbers.
#[must_use]
pub fn cache_cost(document: &CacheCostDocument, style: Style) -> String {
    let mut out = String::new();
    let title = format!(
        "Cost of a context switch by working set, {} threads against one on CPU {}, runs of {}",
        document.threads,
        document.cpu,
        rounded(document.duration_ns)
    );
    let half = |lo: Option<f64>, hi: Option<f64>| time(Some((hi? - lo?) / 2.0));
    TextTable::of(wrapped_within(NARROW, &title, 0, 2), &document.sizes)
        .number("working set", |size| bytes(size.bytes))
        .number("penalty", |size| time(size.penalty_ns))
        .number("±", |size| half(size.ci_lo_ns, size.ci_hi_ns))
        .number("refill", |size| time(size.refill_ns))
        .number("±", |size| half(size.refill_ci_lo_ns, size.refill_ci_hi_ns))
        .number("switches/s", |size| size.switches_per_s.map(|rate| format!("{rate:.0}")))
        .number("trials", |size| size.trials)
        .table()
        .write(&mut out, style);
    let meaning = MEANING.replace('\n', " ").replace("ten threads", "the threads");
    paint_line(&mut out, &wrapped_within(NARROW, &meaning, 0, 2), TextStyle::Faint, style);
    for warning in &document.warnings {
        let text = clean::for_terminal(&format!("Warning: {}; {}", warning.text, warning.remedy));
        paint_line(&mut out, &wrapped_within(NARROW, &text, 0, 2), TextStyle::Caution, style);
    }
    if document.interrupted {
        let measured: u32 = document.sizes.iter().map(|size| size.trials).sum();
        let all = document.trials as usize * document.sizes.len();
        // Writing to a string cannot fail.
        let _ = writeln!(out, "Interrupted: {measured} of {all} trials were complete.");
    }
    out
}

/// A time that may be below zero.
fn time(ns: Option<f64>) -> Option<String> {
    let ns = ns?;
    let sign = if ns <= -0.5 { "-" } else { "" };
    Some(format!("{sign}{}", rounded(ns.abs().round() as u64)))
}

/// A size in the largest unit of which it is a whole number.
fn bytes(bytes: u64) -> String {
    match bytes {
        bytes if bytes >= 1 << 20 && bytes % (1 << 20) == 0 => format!("{} MiB", bytes >> 20),
        bytes if bytes >= 1 << 10 && bytes % (1 << 10) == 0 => format!("{} KiB", bytes >> 10),
        bytes => format!("{bytes} B"),
    }
}

#[cfg(test)]
mod tests {
    use hourglass_documents::cache_cost::{CACHE_COST_SCHEMA, SizeCost};

    use super::*;

    fn document() -> CacheCostDocument {
        let size = |bytes, penalty_ns| SizeCost {
            bytes,
            penalty_ns,
            ci_lo_ns: penalty_ns.map(|ns| ns - 2_500.0),
            ci_hi_ns: penalty_ns.map(|ns| ns + 2_500.0),
            refill_ns: penalty_ns.map(|ns| ns / 2.0),
            refill_ci_lo_ns: None,
            refill_ci_hi_ns: None,
            trials: u32::from(penalty_ns.is_some()) * 5,
            switches_per_s: penalty_ns.map(|_| 249.6),
            work_of_one: None,
            work_of_many: None,
        };
        CacheCostDocument {
            schema: CACHE_COST_SCHEMA.to_owned(),
            cpu: 1,
            processor: None,
            kernel: "6.8.0".to_owned(),
            threads: 10,
            duration_ns: 45_000_000_000,
            trials: 15,
            sizes: vec![
                size(4 << 10, Some(-1_200.0)),
                size(1 << 20, Some(334e3)),
                size(1_500, None),
            ],
            warnings: Vec::new(),
            interrupted: true,
        }
    }

    #[test]
    fn a_row_for_each_size() {
        let text = cache_cost(&document(), Style::Plain);
        let rows: Vec<String> = text
            .lines()
            .map(|line| line.split_whitespace().collect::<Vec<_>>().join(" "))
            .collect();
        assert!(rows.contains(&"4 KiB -1.20 us 2.50 us -600 ns - 250 5".to_owned()), "{text}");
        assert!(rows.contains(&"1 MiB 334 us 2.50 us 167 us - 250 5".to_owned()), "{text}");
        assert!(rows.contains(&"1500 B - - - - - 0".to_owned()), "{text}");
        assert!(text.ends_with("Interrupted: 10 of 45 trials were complete.\n"), "{text}");
        assert!(text.lines().all(|line| line.chars().count() <= NARROW), "{text}");
    }
}
