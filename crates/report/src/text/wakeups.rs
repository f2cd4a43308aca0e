//! Where the time of wake-ups went, for people.

use hourglass_model::wakeup::{WakeUpReport, WakeUpStage};

use super::table::{Column, Table, Tone};
use crate::clean;
use crate::units::Scale;

/// One row for each stage of each thread; `None` if there is none.
pub(super) fn table(all: &[WakeUpReport]) -> Option<Table> {
    let stages = || all.iter().flat_map(|report| report.stages.iter().map(move |s| (report, s)));
    stages().next()?;
    let scale = Scale::for_block(stages().map(|(_, stage)| stage.p50_ns.unsigned_abs()));
    let mut table = Table::new(format!("Stages of wake-ups, {}", scale.name()))
        .column(Column::Number, "thread")
        .column(Column::Elastic, "stage")
        .column(Column::Number, "joined")
        .column(Column::Number, "min")
        .column(Column::Number, "median")
        .column(Column::Number, "p99")
        .column(Column::Number, "p99.9")
        .column(Column::Number, "max");
    for (report, stage) in stages() {
        table.row(row(report, stage, scale));
    }
    Some(table)
}

fn row(report: &WakeUpReport, stage: &WakeUpStage, scale: Scale) -> Vec<(String, Tone)> {
    let whole = report.joined.saturating_add(report.unjoined);
    let times = [stage.min_ns, stage.p50_ns, stage.p99_ns, stage.p999_ns, stage.max_ns];
    let cells = [
        report.thread.to_string(),
        clean::for_terminal(&stage.stage.replace('_', " ")),
        format!("{} of {whole}", report.joined),
    ];
    let times = times.map(|ns| {
        let sign = if ns < 0 { "-" } else { "" };
        format!("{sign}{}", scale.text(ns.unsigned_abs()))
    });
    cells.into_iter().chain(times).map(|text| (text, Tone::Normal)).collect()
}
