//! Misses over CPU time, a picture for each length and policy, of what was just measured or of a record.

use std::path::Path;

use anyhow::{Context, Result};
use hourglass_documents::paper::Curves;
use hourglass_papers::miss_over_cpu::{Sleeps, figure};
use hourglass_report::svg;
use serde::Deserialize;

use super::PEERS;
use crate::document::Row;

/// Ours, from little CPU time to much.
const CURVE: [&str; 7] = [
    "hourglass/kernel-only",
    "hourglass/budget-0",
    "hourglass/frugal",
    "hourglass/budget-50",
    "hourglass",
    "hourglass/budget-200",
    "hourglass/precise",
];

#[derive(Clone, Debug, Deserialize)]
struct Value {
    case: String,
    subject: String,
    value: f64,
}

#[derive(Debug, Deserialize)]
struct Record {
    rows: Vec<Value>,
}

pub(crate) fn write(rows: &[Row], folder: &Path) -> Result<()> {
    let value = |row: &Row| Value {
        case: row.case.clone(),
        subject: row.subject.clone(),
        value: row.value,
    };
    write_values(&rows.iter().map(value).collect::<Vec<_>>(), folder)
}

pub(crate) fn write_record(record: &Path, folder: &Path) -> Result<()> {
    let text = std::fs::read_to_string(record)
        .with_context(|| format!("cannot read {}", record.display()))?;
    let record: Record = serde_json::from_str(&text)
        .with_context(|| format!("{} is no document hourglass.bench/1", record.display()))?;
    write_values(&record.rows, folder)
}

fn write_values(rows: &[Value], folder: &Path) -> Result<()> {
    let mut cases: Vec<&str> = rows.iter().filter_map(|r| r.case.strip_suffix("/p50")).collect();
    cases.dedup();
    for case in cases {
        let path = folder.join(format!("sleep-{}.svg", case.replace('/', "-")));
        let picture = svg::curves(&drawing(rows, case));
        std::fs::write(&path, picture)
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

fn drawing(rows: &[Value], case: &str) -> Curves {
    let of = |subjects: &[&str]| -> Vec<Sleeps> {
        subjects.iter().filter_map(|subject| sleeps(rows, case, subject)).collect()
    };
    let (length, policy) = case.split_once('/').unwrap_or((case, ""));
    let title =
        format!("Sleeps of {length} under SCHED_{}: latency over CPU time", policy.to_uppercase());
    figure("", &title, &of(&CURVE), &of(&PEERS))
}

fn sleeps(rows: &[Value], case: &str, subject: &str) -> Option<Sleeps> {
    let value = |figure: &str| {
        let case = format!("{case}/{figure}");
        rows.iter().find(|row| row.case == case && row.subject == subject).map(|row| row.value)
    };
    let (cpu_percent, p50_ns, p99_ns) = (value("cpu")?, value("p50")?, value("p99")?);
    Some(Sleeps { name: subject.to_owned(), cpu_percent, p50_ns, p99_ns })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_drawn_as_what_was_measured() {
        let rows: Vec<Row> = ["hourglass/kernel-only", "hourglass", "spin_sleep"]
            .iter()
            .zip([(2.0, 30_000.0), (4.0, 90.0), (6.0, 900.0)])
            .flat_map(|(subject, (cpu, miss))| {
                let row = |figure, value, unit| {
                    Row::alone(&format!("1ms/fifo/{figure}"), subject, value, unit)
                };
                [row("p50", miss, "ns"), row("p99", 10.0 * miss, "ns"), row("cpu", cpu, "%")]
            })
            .collect();
        let folder = tempfile::tempdir().unwrap();
        write(&rows, folder.path()).unwrap();
        let picture = folder.path().join("sleep-1ms-fifo.svg");
        let svg = std::fs::read_to_string(&picture).unwrap();
        assert!(svg.contains("spin_sleep, p99") && svg.contains("Sleeps of 1ms under SCHED_FIFO"));
        let record = folder.path().join("record.json");
        let rows = serde_json::json!({ "rows": rows, "name": "sleep" });
        std::fs::write(&record, rows.to_string()).unwrap();
        std::fs::remove_file(&picture).unwrap();
        write_record(&record, folder.path()).unwrap();
        assert_eq!(std::fs::read_to_string(&picture).unwrap(), svg);
        std::fs::write(&record, "{}").unwrap();
        assert!(write_record(&record, folder.path()).is_err());
    }
}
