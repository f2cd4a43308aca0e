//! Table 1: latency of timer operations.

use hourglass_model::paper::{MeasurementKind, PaperRow, PaperTable};

use super::super::batches::Batches;
use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::costs::measuring_cpu;
use super::super::printed::MeasuredTable;
use super::super::rows::{beside, found, lacking, without_figure};
use super::super::sentences::{sentence, time, times};
use super::MACHINE;
use super::operations::{Operation, OperationTable, time_all};
use super::timer_kinds::TimerKind;

pub(super) const ID: &str = "1";
pub(super) const TITLE: &str = "Latency of timer operations";

/// Batches of every operation.
const QUICK: u64 = 500;
const FULL: u64 = 10_000;

/// The operations with the paper's microseconds, in its order.
pub(super) const PRINTED: [(Operation, &str, f64); 5] = [
    (Operation::ArmOnce, "timer_arm() [one-shot]", 33.0),
    (Operation::ArmPeriodic, "timer_arm() [periodic]", 37.0),
    (Operation::Cancel, "timer_cancel()", 19.0),
    (Operation::Create, "timer_create()", 220.0),
    (Operation::Terminate, "timer_terminate()", 119.0),
];

/// `mach_thread_self()` and the null trap.
pub(super) const THREAD_SELF_US: f64 = 20.0;
pub(super) const NULL_TRAP_US: f64 = 7.0;

pub(super) fn measure(bench: &MeasurementHost) -> Option<MeasuredTable> {
    let rounds = match bench.effort {
        MeasurementSize::Quick => QUICK,
        MeasurementSize::Full => FULL,
    };
    measure_rounds(rounds, bench.stopped)
}

pub(super) fn measure_rounds(rounds: u64, stopped: fn() -> bool) -> Option<MeasuredTable> {
    let timed = time_all(rounds, stopped)?;
    let mut rows = Vec::new();
    for (operation, name, us) in PRINTED {
        rows.extend(operation_rows(&timed, operation, name, us));
    }
    rows.extend(row("mach_thread_self(); gettid", THREAD_SELF_US, &timed.thread_self));
    rows.extend(row("null trap; getppid", NULL_TRAP_US, &timed.null_trap));
    let cpu = measuring_cpu().map_or(String::new(), |cpu| format!(" on CPU {cpu}"));
    Some(without_figure(PaperTable {
        id: ID.into(),
        title: TITLE.into(),
        paper_machine: MACHINE.into(),
        method: format!(
            "{} operations of each{cpu}, in batches of 64 timers, everybody in turns; medians of \
             the batches; under SCHED_OTHER, no load of our own; timers are armed an hour ahead, each \
             earlier than those of its batch before it, so that none is pending before it",
            timed.null_trap.operations(),
        ),
        rows,
        decisions: Vec::new(),
        difference: explain(&timed),
        notes: vec![
            "POSIX timers and timerfds are this kernel's, by system calls. The queue is the \
             library's own, used in its own thread: arming it does not reach the kernel until the \
             thread waits."
                .into(),
            "The service's timers are armed by another thread than its engine's, which each arming that \
             is earlier than all others wakes, unless it is awake; terminating waits until no \
             action of the timer runs."
                .into(),
            "The queue has no periodic timers: the code that fires one arms it again.".into(),
        ],
        figure: None,
    }))
}

fn operation_rows(
    timed: &OperationTable,
    operation: Operation,
    name: &str,
    us: f64,
) -> Vec<PaperRow> {
    let mut rows = Vec::new();
    for (subject, answer) in &timed.subjects {
        if operation == Operation::ArmPeriodic && !subject.is_periodic() {
            continue;
        }
        let name = format!("{name}; {}", subject.name());
        match answer {
            Ok(all) => {
                let batches = all.iter().filter(|(of, _)| *of == operation);
                rows.extend(batches.flat_map(|(_, batches)| row(&name, us, batches)));
            }
            Err(why) => {
                rows.push(beside(Some(us), lacking(name, "us", MeasurementKind::Measured, why)));
            }
        }
    }
    rows
}

fn row(name: &str, printed_us: f64, batches: &Batches) -> Option<PaperRow> {
    let us = batches.median_ns()? / 1e3;
    let row = found(name.into(), us, "us", MeasurementKind::Measured, batches.operations());
    Some(beside(Some(printed_us), row))
}

fn explain(timed: &OperationTable) -> String {
    let of = |wanted: TimerKind, operation: Operation| {
        let (_, answer) = timed.subjects.iter().find(|(subject, _)| *subject == wanted)?;
        let (_, batches) = answer.as_ref().ok()?.iter().find(|(of, _)| *of == operation)?;
        batches.median_ns()
    };
    let mut clauses = Vec::new();
    let kernel = of(TimerKind::Posix, Operation::ArmOnce).zip(timed.null_trap.median_ns());
    if let Some((arm, trap)) = kernel {
        clauses.push(format!(
            "entering this kernel takes {}, arming a POSIX timer {} ({} that; there {})",
            time(trap),
            time(arm),
            times(arm, trap),
            times(PRINTED[0].2, NULL_TRAP_US),
        ));
    }
    let queue =
        of(TimerKind::Queue, Operation::ArmOnce).zip(of(TimerKind::Queue, Operation::Create));
    if let Some((arm, create)) = queue {
        clauses.push(format!(
            "the library's queue arms in {} and creates in {}, since neither enters the kernel nor \
             allocates",
            time(arm),
            time(create)
        ));
    }
    match clauses.is_empty() {
        true => "Nothing could be measured here.".into(),
        false => sentence(&clauses.join("; ")),
    }
}
