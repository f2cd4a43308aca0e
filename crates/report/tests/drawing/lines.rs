//! The tagged lines that a thread ends with, and record lines read back as numbers.

use hourglass_documents::document::{Deadlines, ThreadReport};
use hourglass_report::text::RecordWriter;
use hourglass_trace::CpuGap;
use hourglass_trace::{Interval, IntervalStart};
use proptest::prelude::*;

fn thread(id: u32, workload: &str, deadlines: Option<Deadlines>) -> ThreadReport {
    ThreadReport { id, workload: workload.to_owned(), deadlines, ..ThreadReport::default() }
}

fn lines(threads: &[ThreadReport]) -> String {
    let mut lines = RecordWriter::new(Vec::new());
    for thread in threads {
        lines.thread(thread).unwrap();
    }
    String::from_utf8(lines.finish().unwrap()).unwrap()
}

fn deadlines(hit: u64, missed: u64, lost: u64, completed: u64) -> Option<Deadlines> {
    Some(Deadlines { hit, missed, lost, completed })
}

/// The first result of section 5.5, byte for byte.
#[test]
fn the_papers_deadline_lines() {
    assert_eq!(
        lines(&[
            thread(0, "PERIODIC 3ms 8ms", deadlines(1001, 0, 0, 1001)),
            thread(1, "PERIODIC 17ms 33ms", deadlines(143, 142, 0, 285)),
        ]),
        "thread 0: missed 0 deadlines, hit 1001\nthread 1: missed 142 deadlines, hit 143\n"
    );
}

/// Section 3.2: a thread that never blocks may receive its amount more than once in a period, and
/// a scanning one counts its passes.
#[test]
fn what_the_paper_does_not_print() {
    let mut scan = thread(2, "CPU_SCAN 32", None);
    scan.work = Some(88_120);
    assert_eq!(
        lines(&[
            thread(0, "PERIODIC 3ms 8ms", deadlines(7, 2, 3, 9)),
            thread(1, "CPU_PERIODIC 10ms 50ms", deadlines(200, 1, 0, 998)),
            scan,
            thread(3, "CPU", None),
        ]),
        "thread 0: missed 2 deadlines, hit 7, lost 3\n\
         thread 1: missed 1 deadlines, hit 200\n\
         thread 1: completed 998 times\n\
         thread 2: work 88120 passes\n"
    );
}

/// A column of milliseconds back in nanoseconds.
fn nanoseconds(column: &str) -> i128 {
    let (whole, part) = column.split_once('.').expect("a decimal point");
    assert_eq!(part.len(), 6, "{column}");
    format!("{whole}{part}").parse().expect("digits")
}

proptest! {
    #[test]
    fn record_lines_read_back(
        thread: u32,
        start_ns: i64,
        length in 0..i64::MAX,
        gap: Option<i64>,
        start_ticks: u64,
        ticks: u64,
    ) {
        let end_ns = start_ns.saturating_add(length);
        let end_ticks = start_ticks.saturating_add(ticks);
        let plain = Interval::new(thread, 0, start_ns, end_ns, IntervalStart::Gap);
        let interval = Interval { start_ticks, end_ticks, ..plain };
        let gap = gap.map(|n| CpuGap { ns: n, ticks: n });
        let mut lines = RecordWriter::new(Vec::new());
        lines.record(&interval, gap).unwrap();
        lines.raw_record(&interval, gap).unwrap();
        let text = String::from_utf8(lines.finish().unwrap()).unwrap();
        let (first, second) = text.trim_end().split_once('\n').unwrap();

        let columns: Vec<&str> = first.split(' ').collect();
        prop_assert_eq!(columns.len(), 5);
        prop_assert_eq!(columns[0].parse::<u32>().unwrap(), thread);
        prop_assert_eq!(nanoseconds(columns[1]), i128::from(interval.start_ns));
        prop_assert_eq!(nanoseconds(columns[2]), i128::from(interval.end_ns));
        prop_assert_eq!(nanoseconds(columns[3]), i128::from(interval.duration_ns()));
        prop_assert_eq!(nanoseconds(columns[4]), i128::from(gap.map_or(0, |g| g.ns)));

        let raw: Vec<i128> = second
            .strip_prefix("cycles: ")
            .unwrap()
            .split(' ')
            .map(|column| column.parse().unwrap())
            .collect();
        prop_assert_eq!(raw, vec![
            i128::from(thread),
            i128::from(interval.start_ticks),
            i128::from(interval.end_ticks),
            i128::from(interval.end_ticks - interval.start_ticks),
            i128::from(gap.map_or(0, |g| g.ticks)),
        ]);
    }
}
