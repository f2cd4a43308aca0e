//! Where the time of wake-ups went, for people.

use hourglass_documents::wakeup::{WakeUpReport, WakeUpStage};

use super::table::TextTable;
use crate::units::UnitScale;

/// A table with one row for each stage of each thread; `None` without a stage.
pub(super) fn table(all: &[WakeUpReport]) -> Option<TextTable> {
    let stages = all.iter().flat_map(|report| report.stages.iter().map(move |s| (report, s)));
    let stages: Vec<(&WakeUpReport, &WakeUpStage)> = stages.collect();
    let scale = UnitScale::for_block(stages.iter().map(|(_, stage)| stage.p50_ns.unsigned_abs()));
    let table = TextTable::of(format!("Stages of wake-ups, {}", scale.name()), &stages)
        .number("thread", |(report, _)| report.thread)
        .elastic("stage", |(_, stage)| stage.stage.replace('_', " "))
        .number("joined", |(report, _)| {
            format!("{} of {}", report.joined, report.joined.saturating_add(report.unjoined))
        })
        .number("min", |(_, stage)| scale.signed(stage.min_ns))
        .number("median", |(_, stage)| scale.signed(stage.p50_ns))
        .number("p99", |(_, stage)| scale.signed(stage.p99_ns))
        .number("p99.9", |(_, stage)| scale.signed(stage.p999_ns))
        .number("max", |(_, stage)| scale.signed(stage.max_ns))
        .narrow();
    (!table.is_empty()).then_some(table)
}

#[cfg(test)]
mod tests {
    use super::super::Style;
    use super::*;

    /// The medians of rt-tools 4.4, with an expiry that found its interrupt being served.
    #[test]
    fn a_stage_may_be_negative() {
        let stage = |name: &str, min_ns, p50_ns| WakeUpStage {
            stage: name.to_owned(),
            min_ns,
            p50_ns,
            p99_ns: 2 * p50_ns,
            p999_ns: 3 * p50_ns,
            max_ns: 4 * p50_ns,
        };
        let report = WakeUpReport {
            thread: 2,
            joined: 4993,
            unjoined: 7,
            stages: vec![
                stage("expiry_to_interrupt", -1_500, 19_300),
                stage("waking_to_switch", 2_000, 13_400),
            ],
        };
        let mut out = String::new();
        table(&[report]).unwrap().write(&mut out, Style::Plain);
        let lines: Vec<Vec<&str>> =
            out.lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(lines[0], ["Stages", "of", "wake-ups,", "us"]);
        let first = "2 expiry to interrupt 4993 of 5000 -1.5 19.3 38.6 57.9 77.2";
        assert_eq!(lines[2].join(" "), first);
        assert_eq!(lines[3][..4], ["2", "waking", "to", "switch"]);
        assert!(table(&[]).is_none());
    }
}
