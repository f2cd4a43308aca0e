//! The paper's numbers as printed, and tiny runs on this machine.

use hourglass_documents::paper::{MeasurementKind, PaperFigure, PaperRow, PaperTable};

use super::operations::Operation;
use super::{pending_cost, queue_cost, table_1, table_2, table_3};

fn never() -> bool {
    false
}

fn row<'a>(table: &'a PaperTable, name: &str) -> &'a PaperRow {
    let found = table.rows.iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("{name} is not among {:?}", table.rows))
}

/// Every row has a number or says why not, and the text can be read.
fn is_whole(table: &PaperTable) {
    for row in &table.rows {
        assert!(row.measured.is_some() != row.missing.is_some(), "{row:?}");
        assert!(row.measured.is_none_or(f64::is_finite), "{row:?}");
        assert!(row.name.chars().count() <= 40, "{row:?}");
    }
    let said = &table.difference;
    assert!(said.ends_with('.') && !said.contains("NaN") && !said.contains("inf"), "{said}");
}

/// Tables 1, 2 and 3 and the text of sections 5.1 and 5.4.
#[test]
fn the_numbers_of_section_5() {
    let printed = |wanted| table_1::PRINTED.iter().find(|(of, ..)| *of == wanted).unwrap().2;
    assert_eq!(Operation::ALL.map(printed), [33.0, 37.0, 19.0, 220.0, 119.0]);
    assert_eq!((table_1::THREAD_SELF_US, table_1::NULL_TRAP_US), (20.0, 7.0));
    assert_eq!((table_2::UNBLOCK_US, table_2::MESSAGE_US), (106.0, 162.0));
    // "General IPC overhead all contribute to the 56 usec difference" (section 5.2).
    assert_eq!(table_2::MESSAGE_US - table_2::UNBLOCK_US, 56.0);
    assert_eq!((table_3::BY_IPC_US, table_3::MAPPED_US), (85.0, 2.0));
    assert_eq!((pending_cost::EACH_NS, queue_cost::QUEUE_US), (600.0, 1.0));
}

#[test]
fn operations_of_everybody() {
    let table = table_1::measure_rounds(3, never).unwrap().table;
    is_whole(&table);
    let arm = row(&table, "timer_arm() [one-shot]; POSIX timer");
    assert_eq!((arm.paper, arm.unit.as_str(), arm.count), (Some(33.0), "us", Some(192)));
    assert!(arm.measured.is_some_and(|us| us > 0.0), "{arm:?}");
    assert_eq!(row(&table, "timer_terminate(); timerfd").paper, Some(119.0));
    assert!(row(&table, "timer_arm() [periodic]; service").measured.is_some());
    assert_eq!(row(&table, "null trap; getppid").paper, Some(7.0));
    assert!(!table.rows.iter().any(|row| row.name == "timer_arm() [periodic]; queue"));
    assert!(table_1::measure_rounds(3, || true).is_none());
}

#[test]
fn from_the_expiry_to_the_thread() {
    let measured = table_2::measure_loops(6, never).unwrap();
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
    let table = table_3::measure_rounds(3, never).unwrap().table;
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
    let measured = pending_cost::measure_rounds(2, never).unwrap();
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
    let table = queue_cost::measure_rounds(2, 100, never).unwrap().table;
    is_whole(&table);
    let due = row(&table, "heap of 100: one due");
    assert_eq!((due.paper, due.how, due.count), (Some(1.0), MeasurementKind::Measured, Some(512)));
    assert_eq!(table.rows.len(), 10);
}
