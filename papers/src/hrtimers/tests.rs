//! The tables of the paper: its numbers as printed, counts against a twin that is obviously right, and
//! tiny runs on this machine.

use std::collections::HashMap;

use hourglass_documents::paper::{MeasurementKind, PaperFigure, PaperRow, PaperTable};
use hourglass_time::Span;

use super::accuracy::{AccuracySize, PaperLatency};
use super::contender::{Kind, Numbers};
use super::{TABLES, cascade, granularity, table_1};

fn never() -> bool {
    false
}

fn row<'a>(table: &'a PaperTable, name: &str) -> &'a PaperRow {
    let found = table.rows.iter().find(|row| row.name == name);
    found.unwrap_or_else(|| panic!("{name} is not among {:?}", table.rows))
}

/// Table 1: the reference wheel has the paper's arrays, found by arming timers.
#[test]
fn the_arrays_are_those_of_table_1() {
    assert_eq!(table_1::ranges(), table_1::PRINTED);
}

/// Section 8.1, tables 1, 2 and 8, and which rows there are.
#[test]
fn the_numbers_of_section_8_1() {
    let printed = |min, max, avg| PaperLatency { min: Some(min), max: Some(max), avg: Some(avg) };
    assert_eq!(TABLES[0].printed.vanilla, Some(printed(24, 4_043, 1_989)));
    assert_eq!(TABLES[0].printed.hrt5, printed(12, 94, 20));
    assert_eq!(TABLES[1].printed.rt12, PaperLatency { min: Some(16), max: None, avg: None });
    assert_eq!(TABLES[3].printed.hrt5, printed(31, 458, 53));
    assert_eq!(TABLES[5].printed.hrt5, printed(9, 684, 56));
    assert_eq!(TABLES[7].printed.rt12, printed(12, 95, 29));
    for table in &TABLES {
        let short = table.interval_us == 500;
        assert_eq!(table.printed.vanilla.is_none(), short, "{}", table.id);
        assert_eq!(table.loops, if short { 100_000 } else { 10_000 }, "{}", table.id);
        assert_eq!(table.loaded, table.title.contains("100 % load"), "{}", table.id);
    }
}

fn measured(at: usize, real_time_kernel: bool) -> PaperTable {
    let amount = AccuracySize { loops: 4, turn: 3, real_time_kernel };
    TABLES[at].measure_so_much(amount, never).unwrap().table
}

/// A tiny run of the first table: every row beside its number, the kernel that is not here with the
/// reason.
#[test]
fn a_table_with_all_its_rows() {
    let table = measured(0, false);
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
    assert!(table.difference.ends_with('.') && !table.difference.contains("NaN"), "{table:?}");
}

/// "Illegible" is null with a note, and the load is running and said.
#[test]
fn what_cannot_be_read_is_null() {
    let table = measured(1, true);
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
    let table = measured(6, false);
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

/// What the cascading wheel moves, timer by timer, against the twin.
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

/// The others move nothing, and fire everything.
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
    let measured = cascade::measure_sizes(&[500], 1, never).unwrap();
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
    let table = granularity::measure_length(50, 1, never).unwrap().table;
    assert_eq!(table.rows.len(), 4 * (5 + 3));
    assert!(row(&table, "4 ms, cascading wheel: late, most").measured.is_some_and(|ms| ms < 4.0));
    assert_eq!(row(&table, "1 ms, timeout wheel: time of each").how, MeasurementKind::Measured);
    assert!(table.method.starts_with("500 timeouts, 10 armed in each of 50 ms"), "{table:?}");
}
