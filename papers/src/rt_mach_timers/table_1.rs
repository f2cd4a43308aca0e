//! Table 1: latency of timer operations.

use hourglass_documents::paper::PaperRow;

use super::super::bench::MeasurementHost;
use super::super::costs::measured_on;
use super::super::printed::{MeasuredTable, Table, Values};
use super::super::rows::measured;
use super::operations::{Operation, OperationTable, time_all};

const QUICK: u64 = 500;
const FULL: u64 = 10_000;

pub(super) fn measure(table: &Table, bench: &MeasurementHost) -> Option<MeasuredTable> {
    measure_rounds(table, bench.at_most(FULL, QUICK), bench.stopped)
}

pub(super) fn measure_rounds(
    table: &Table,
    rounds: u64,
    stopped: fn() -> bool,
) -> Option<MeasuredTable> {
    let timed = time_all(rounds, stopped)?;
    let mut rows = Vec::new();
    for (line, operation) in table.lines.iter().zip(Operation::ALL) {
        rows.extend(operation_rows(&timed, operation, &line.name, line.printed(0)));
    }
    let others = table.lines.iter().skip(Operation::ALL.len());
    for (line, batches) in others.zip([&timed.thread_self, &timed.null_trap]) {
        rows.push(measured(&*line.name, "us", line.printed(0), batches.found()));
    }
    let operations = timed.null_trap.operations();
    let values = Values::default().with("operations", operations).with("on", measured_on());
    Some(table.with_rows(rows, values))
}

fn operation_rows(
    timed: &OperationTable,
    operation: Operation,
    name: &str,
    paper: Option<f64>,
) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for (subject, answer) in &timed.subjects {
        if operation == Operation::ArmPeriodic && !subject.is_periodic() {
            continue;
        }
        let all = answer.as_ref().map_err(Clone::clone);
        let found = all.and_then(|all| all[operation as usize].found());
        rows.push(measured(format!("{name}; {}", subject.name()), "us", paper, found));
    }
    rows
}
