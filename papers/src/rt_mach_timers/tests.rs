//! The paper's numbers as printed, and tiny runs on this machine.

use hourglass_documents::paper::{MeasurementKind, PaperFigure, PaperTable};

use super::super::tests::{self, row};
use super::{pending_cost, queue_cost, table_1, table_2, table_3};
use crate::Table;

fn printed(id: &str) -> &'static Table {
    crate::Paper::named("rt-mach-timers").unwrap().table(id).unwrap()
}

fn is_whole(table: &PaperTable) {
    tests::is_whole(table);
    assert!(table.rows.iter().all(|row| row.name.chars().count() <= 40), "{:?}", table.rows);
}

fn never() -> bool {
    false
}

#[test]
fn the_numbers_of_section_5() {
    let numbers =
        |id| -> Vec<f64> { printed(id).lines.iter().flat_map(|line| line.paper.clone()).collect() };
    assert_eq!(numbers("1"), [33.0, 37.0, 19.0, 220.0, 119.0, 20.0, 7.0]);
    let (unblock, message) = (106.0, 162.0);
    assert_eq!(numbers("2"), [[unblock; 3].as_slice(), &[message; 4]].concat());
    // "General IPC overhead all contribute to the 56 usec difference" (section 5.2).
    assert_eq!(message - unblock, 56.0);
    assert_eq!(numbers("3"), [85.0, 2.0, 2.0, 2.0, 2.0, 2.0, 85.0, 2.0]);
    assert_eq!((numbers("5.1"), numbers("5.4")), (vec![600.0, 33_000.0], vec![1.0]));
}

#[test]
fn operations_of_everybody() {
    let table = table_1::measure_rounds(printed("1"), 3, never).unwrap().table;
    is_whole(&table);
    let arm = row(&table, "timer_arm() [one-shot]; POSIX timer");
    assert_eq!((arm.paper, arm.unit.as_str(), arm.count), (Some(33.0), "us", Some(192)));
    assert!(arm.measured.is_some_and(|us| us > 0.0), "{arm:?}");
    assert_eq!(row(&table, "timer_terminate(); timerfd").paper, Some(119.0));
    assert!(row(&table, "timer_arm() [periodic]; service").measured.is_some());
    assert_eq!(row(&table, "null trap; getppid").paper, Some(7.0));
    assert!(!table.rows.iter().any(|row| row.name == "timer_arm() [periodic]; queue"));
    assert!(table_1::measure_rounds(printed("1"), 3, || true).is_none());
}

#[test]
fn from_the_expiry_to_the_thread() {
    let measured = table_2::measure_loops(printed("2"), 6, never).unwrap();
    is_whole(&measured.table);
    let sleep = row(&measured.table, "unblock thread; clock_nanosleep, mean");
    assert_eq!((sleep.paper, sleep.count), (Some(106.0), Some(6)));
    assert!(row(&measured.table, "unblock thread; service, sleep, mean").measured.is_some());
    assert_eq!(row(&measured.table, "send message; service, port, mean").paper, Some(162.0));
    assert_eq!(row(&measured.table, "send message; timerfd, read, mean").paper, Some(162.0));
    let Some(PaperFigure::Measurements(figure)) = measured.figure else { panic!("no figure") };
    assert_eq!((figure.series[0].paper_mean_ns, figure.count), (Some(106_000.0), 6));
}

#[test]
fn timestamps_by_call_and_mapped() {
    let table = table_3::measure_rounds(printed("3"), 3, never).unwrap().table;
    is_whole(&table);
    assert_eq!(row(&table, "device_get_status; system call").paper, Some(85.0));
    assert_eq!(row(&table, "mapped page; kernel's clock").paper, Some(2.0));
    assert_eq!(row(&table, "device_get_status; clock device").paper, Some(85.0));
    assert!(row(&table, "mapped page; clock device").measured.is_some());
    assert!(table.notes.iter().any(|note| note.contains("<2")));
}

/// "Increases linearly": the slope of a line is found exactly.
#[test]
fn the_slope_is_that_of_a_line() {
    let line = [(0, 33_000.0), (10, 39_000.0), (1_000, 633_000.0)];
    assert_eq!(pending_cost::slope(&line), Some(600.0));
    assert_eq!((pending_cost::slope(&line[..1]), pending_cost::slope(&[])), (None, None));
}

#[test]
fn arming_behind_others() {
    let measured = pending_cost::measure_rounds(printed("5.1"), 2, never).unwrap();
    is_whole(&measured.table);
    assert_eq!(row(&measured.table, "sorted list: for each pending").paper, Some(600.0));
    assert_eq!(row(&measured.table, "heap: arm behind 1000000").unit, "ns");
    // A walk along ten thousand is longer than along none, on any machine.
    let list = |n| row(&measured.table, &format!("sorted list: arm behind {n}")).measured;
    assert!(list(10_000) > list(0), "{:?}", measured.table.rows);
    let Some(PaperFigure::Curves(curves)) = measured.figure else { panic!("no figure") };
    assert_eq!(curves.curves.len(), 5);
    assert_eq!(curves.curves[4].points[3].up, 33_000.0 + 600.0 * 10_000.0);
}

#[test]
fn the_queue_at_an_interrupt() {
    let table = queue_cost::measure_rounds(printed("5.4"), 2, 100, never).unwrap().table;
    is_whole(&table);
    let due = row(&table, "heap of 100: one due");
    assert_eq!((due.paper, due.how, due.count), (Some(1.0), MeasurementKind::Measured, Some(512)));
    assert_eq!(table.rows.len(), 10);
}
