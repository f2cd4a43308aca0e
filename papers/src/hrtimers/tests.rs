//! The tables of the paper: its numbers as printed, counts against a twin that is obviously right, and
//! tiny runs on this machine.

use std::collections::HashMap;

use hourglass_documents::paper::{MeasurementKind, PaperFigure, PaperTable};
use hourglass_time::Span;

use super::super::bench::{MeasurementHost, MeasurementSize};
use super::super::tests::{is_whole, row};
use super::accuracy::{AccuracySize, measure_size};
use super::contender::{Kind, Numbers};
use super::{cascade, granularity, table_1};
use crate::Table;

fn printed(id: &str) -> &'static Table {
    crate::Paper::named("hrtimers").unwrap().table(id).unwrap()
}

fn never() -> bool {
    false
}

#[test]
fn the_arrays_are_those_of_table_1() {
    let bench = MeasurementHost::for_this_machine(MeasurementSize::Quick, never);
    let table = table_1::measure(printed("1"), &bench).unwrap().table;
    assert!(table.rows.iter().all(|row| row.measured == row.paper), "{:?}", table.rows);
    assert_eq!((table.rows.len(), row(&table, "array 3, end").paper), (15, Some(1_048_576.0)));
    assert!(table.difference.ends_with("nothing differs."), "{}", table.difference);
}

#[test]
fn the_numbers_of_section_8_1() {
    for (id, line, paper) in [
        ("8.1.1", "2.6.16; here engine, ticks", [24.0, 4_043.0, 1_989.0]),
        ("8.1.1", "2.6.16-hrt5; here kernel", [12.0, 94.0, 20.0]),
        ("8.1.4", "2.6.16-hrt5; here kernel", [31.0, 458.0, 53.0]),
        ("8.1.6", "2.6.16-hrt5; here kernel", [9.0, 684.0, 56.0]),
        ("8.1.8", "2.6.16-rt12; here kernel", [12.0, 95.0, 29.0]),
    ] {
        let columns = [0, 1, 2].map(|column| printed(id).printed(line, column));
        assert_eq!(columns, paper.map(Some), "{id} {line}");
    }
    let illegible = [0, 1, 2].map(|column| printed("8.1.2").lines[2].printed(column));
    assert_eq!(illegible, [Some(16.0), None, None]);
    for table in (1..=8).map(|number| printed(&format!("8.1.{number}"))) {
        let short = table.setting("interval_us") == 500;
        assert_eq!(table.lines.len(), if short { 3 } else { 4 }, "{}", table.id);
        assert_eq!(table.setting("loops"), if short { 100_000 } else { 10_000 }, "{}", table.id);
        assert_eq!(table.setting("loaded") > 0, table.title.contains("100 % load"), "{}", table.id);
        assert_eq!(table.setting("posix") > 0, table.title.contains("POSIX"), "{}", table.id);
    }
}

fn measured(id: &str, real_time_kernel: bool) -> PaperTable {
    let size = AccuracySize { loops: 4, turn: 3, real_time_kernel };
    let table = measure_size(printed(id), size, never).unwrap().table;
    is_whole(&table);
    table
}

#[test]
fn a_table_with_all_its_rows() {
    let table = measured("8.1.1", false);
    assert_eq!((table.id.as_str(), table.rows.len()), ("8.1.1", 18));
    let ticks = row(&table, "2.6.16; here engine, ticks, max");
    assert_eq!(
        (ticks.paper, ticks.how, ticks.count),
        (Some(4_043.0), MeasurementKind::Emulated, Some(4))
    );
    assert!(ticks.measured.is_some_and(|us| us > 0.0));
    let kernel = row(&table, "2.6.16-hrt5; here kernel, avg");
    assert_eq!(
        (kernel.paper, kernel.how, kernel.unit.as_str()),
        (Some(20.0), MeasurementKind::Measured, "us")
    );
    let real_time = row(&table, "2.6.16-rt12; here kernel, min");
    assert_eq!((real_time.paper, real_time.measured), (Some(6.0), None));
    assert!(real_time.missing.as_deref().is_some_and(|why| why.contains("CONFIG_PREEMPT_RT")));
    assert_eq!(row(&table, "engine, high resolution, median").paper, None);
    assert!(table.method.starts_with("4 loops of each instead of the paper's 10000"), "{table:?}");
    assert!(table.difference.starts_with("This kernel wakes the thread"), "{table:?}");
}

#[test]
fn what_cannot_be_read_is_null() {
    let table = measured("8.1.2", true);
    let real_time = |what: &str| row(&table, &format!("2.6.16-rt12; here kernel, {what}")).clone();
    assert_eq!((real_time("min").paper, real_time("max").paper), (Some(16.0), None));
    assert!(real_time("max").measured.is_some(), "a PREEMPT_RT kernel stands beside rt12");
    assert_eq!(row(&table, "2.6.16-hrt5; here kernel, min").measured, None);
    assert!(table.notes.iter().any(|note| note.contains("cannot be read")), "{:?}", table.notes);
    assert!(table.method.contains("kept busy by a thread of SCHED_OTHER"), "{}", table.method);
}

/// Section 8.1: below the jiffy nothing bound to ticks was measured.
#[test]
fn no_row_by_ticks_below_the_tick() {
    let table = measured("8.1.7", false);
    assert!(table.rows.iter().all(|row| row.how == MeasurementKind::Measured), "{:?}", table.rows);
    assert!(!table.rows.iter().any(|row| row.name.contains("ticks")));
    assert_eq!(row(&table, "2.6.16-hrt5; here kernel, max").paper, Some(119.0));
    assert!(table.notes.iter().any(|note| note.contains("there is no row of 2.6.16")));
}

/// The ticks at which a timer that is due at a tick is moved: whenever the arrays below have come
/// round to its entry (section 4.1), each entry of the second array being 256 ticks wide.
fn moves(due: u64) -> Vec<u64> {
    const WIDTHS: [u64; 4] = [256, 256 * 64, 256 * 64 * 64, 256 * 64 * 64 * 64];
    let mut moves = Vec::new();
    let mut now = 1;
    loop {
        let ahead = due - now;
        let Some(width) = WIDTHS.iter().rev().find(|width| ahead >= **width) else { return moves };
        now = due / width * width;
        moves.push(now);
    }
}

#[test]
fn the_cascades_are_counted_exactly() {
    let timers = 3_000;
    let mut numbers = Numbers::from_seed(2006);
    let mut at: HashMap<u64, u64> = HashMap::new();
    for _ in 0..timers {
        let due = (1 + numbers.next_below(60_000_000_000)).div_ceil(1_000_000);
        numbers.next_below(100);
        moves(due).into_iter().for_each(|tick| *at.entry(tick).or_default() += 1);
    }
    let run = cascade::run(Kind::Cascading, timers, 0, never).unwrap();
    assert_eq!((run.fired, run.moved), (timers, at.values().sum()));
    assert_eq!(Some(&run.moved_at_once), at.values().max());
    assert_eq!(run.polls_ns.len(), 60_001);
    let few = cascade::run(Kind::Cascading, timers, 95, never).unwrap();
    assert!(few.fired < timers / 10 && few.moved_at_once < run.moved_at_once / 10, "{few:?}");
}

#[test]
fn the_others_never_move_a_timer() {
    for kind in [Kind::Timeouts, Kind::Heap, Kind::RedBlack] {
        let run = cascade::run(kind, 2_000, 0, never).unwrap();
        assert_eq!((run.fired, run.moved, run.looked_at), (2_000, 0, None), "{kind:?}");
    }
    fn at_once() -> bool {
        true
    }
    assert!(cascade::run(Kind::Heap, 10, 0, at_once).is_none());
}

#[test]
fn the_table_of_cascades() {
    let measured = cascade::measure_sizes(printed("4.1"), &[500], 1, never).unwrap();
    let table = measured.table;
    assert_eq!(row(&table, "500 cascading wheel: moved at once").how, MeasurementKind::Simulated);
    assert_eq!(row(&table, "500 heap: dearest look").unit, "us");
    assert!(row(&table, "500, 95 % removed: moved at once").measured.is_some());
    assert!(table.rows.iter().all(|row| row.paper.is_none() && row.missing.is_none()));
    let Some(PaperFigure::Measurements(figure)) = measured.figure else { panic!("no figure") };
    assert_eq!((figure.series.len(), figure.quantity.as_str()), (4, "cost"));
    assert!(table.difference.starts_with("Of 500 timers the cascading wheel moves"), "{table:?}");
}

/// Section 4.3: coarser ticks move fewer timers and fire later, by less than a tick; every timeout is
/// removed or fires.
#[test]
fn coarser_ticks_move_less_and_are_later() {
    let runs: Vec<granularity::GranularityRun> = [1, 4, 10, 100]
        .map(|ms| {
            let run = granularity::run(Kind::Cascading, Span::from_millis(ms), 300, never).unwrap();
            assert!(run.late_most_ns < ms.unsigned_abs() * 1_000_000, "{ms} ms: {run:?}");
            assert_eq!((run.armed, run.removed + run.fired), (3_000, 3_000), "{ms} ms");
            run
        })
        .into();
    for pair in runs.windows(2) {
        assert!(pair[1].moved < pair[0].moved && pair[1].late_most_ns > pair[0].late_most_ns);
    }
    let wheel = granularity::run(Kind::Timeouts, Span::MILLISECOND, 300, never).unwrap();
    assert_eq!((wheel.moved, wheel.removed, wheel.fired), (0, runs[0].removed, runs[0].fired));
    // Less than 1/15 of the longest delay, 131 s, and a granule.
    assert!(wheel.late_most_ns < 131_072 * 1_000_000 / 15 + 2_000_000, "{wheel:?}");
}

#[test]
fn the_table_of_granularities() {
    let table = granularity::measure_length(printed("4.3"), 50, 1, never).unwrap().table;
    assert_eq!(table.rows.len(), 4 * (5 + 3));
    assert!(row(&table, "4 ms, cascading wheel: late, most").measured.is_some_and(|ms| ms < 4.0));
    assert_eq!(row(&table, "1 ms, timeout wheel: time of each").how, MeasurementKind::Measured);
    assert!(table.method.starts_with("500 timeouts, 10 armed in each of 50 ms"), "{table:?}");
}
