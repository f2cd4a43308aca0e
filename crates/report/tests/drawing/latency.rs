//! Pictures and tables of the latencies of wake-ups.

use std::collections::BTreeMap;

use hourglass_documents::document::LatencyReport;
use hourglass_report::export::{WakeUpRow, csv_latency_counts, csv_wake_ups};
use hourglass_report::svg::{LatencyPicture, LatencyThread, SvgError, TraceOptions};
use hourglass_time::Span;
use hourglass_trace::wakeup::TimedWakeUp;

use crate::assert_well_formed;

const MS: i64 = 1_000_000;

fn thread(id: u32, counts: &[(u64, u64)]) -> LatencyThread {
    let report = LatencyReport {
        count: counts.iter().map(|(_, count)| count).sum(),
        min_ns: counts.first().map_or(0, |(ns, _)| *ns),
        p50_ns: 5_000,
        p99_ns: 20_000,
        p999_ns: 80_000,
        max_ns: counts.last().map_or(0, |(ns, _)| *ns),
        mean_ns: 6_000,
        lost: 0,
    };
    LatencyThread { id, label: "GRID 1ms <b>".to_owned(), report, counts: counts.to_vec() }
}

/// A second, and these wake-ups (ms, latency in ns) of each thread.
fn picture(threads: &[LatencyThread], wake_ups: &[(u32, i64, u64)]) -> String {
    let options = TraceOptions::new(Span::ZERO, Span::from_secs(1));
    let mut picture = LatencyPicture::new(&options, threads).unwrap();
    for (thread, ms, latency_ns) in wake_ups {
        picture.push(*thread, TimedWakeUp { woke_ns: ms * MS, latency_ns: *latency_ns });
    }
    let text = picture.finish();
    assert_well_formed(&text);
    text
}

/// A folder of `latency` was an empty axis.
#[test]
fn wake_ups_over_time_and_their_histogram() {
    let threads = [thread(0, &[(4_000, 3), (5_000, 2), (130_000, 1)])];
    let wake_ups: Vec<_> = (0..6).map(|n| (0, 100 + n * 150, 4_000 + 1_000 * n as u64)).collect();
    let text = picture(&threads, &wake_ups);
    // One of the circles is in the legend.
    assert_eq!(text.matches("<circle class=\"hg-dot\"").count(), 7, "{text}");
    assert!(text.contains(">Each wake-up.<"), "{text}");
    for part in [
        ">wake-up latency, us<",
        ">time from the run&#39;s start, s<",
        ">wake-ups of the run<",
        ">median 5.00 us<",
        ">99 % 20.0 us<",
        ">99.9 % 80.0 us<",
        ">max 130 us<",
        "6 wake-ups, median 5.00 us, 99 % 20.0 us, 99.9 % 80.0 us, max 130 us",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// More wake-ups than pixels: of each pixel the maximum and the median, whatever their number; the greatest is there.
#[test]
fn more_wake_ups_than_pixels() {
    let threads = [thread(0, &[(5_000, 99_999), (1_000_000, 1)])];
    let drawn = |n: i64| {
        let wake_ups = (0..n).map(|at| TimedWakeUp {
            woke_ns: at * 1_000 * MS / n,
            latency_ns: if at == n / 2 { 1_000_000 } else { 5_000 + at as u64 % 7 },
        });
        let options = TraceOptions::new(Span::ZERO, Span::from_secs(1));
        let mut picture = LatencyPicture::new(&options, &threads).unwrap();
        wake_ups.for_each(|one| picture.push(0, one));
        picture.finish()
    };
    let (some, many) = (drawn(10_000), drawn(100_000));
    assert!(many.len() < some.len() + 2_000 && many.len() < 60_000, "{}", many.len());
    assert!(many.contains("the greatest latency (marks) and the median (lines)"), "{many}");
    // The axis goes to 2 ms, and the maximum is half way of the range.
    let dots =
        many.split_once("<path class=\"hg-dots\" d=\"").unwrap().1.split_once('"').unwrap().0;
    let highest = |dots: &str| {
        let y =
            |dot: &str| dot.split_once(' ').unwrap().1.split_once('h').unwrap().0.parse::<f64>();
        let heights = dots.split('M').skip(1).map(|dot| (y(dot).unwrap(), dot.to_owned()));
        heights.min_by(|a, b| a.0.total_cmp(&b.0)).unwrap()
    };
    let (y, dot) = highest(dots);
    assert!((84.0..140.0).contains(&y) && dot.starts_with("513."), "{dot}");
}

/// Threads have colours, marks and lines of their own, and the quantiles say whose they are.
#[test]
fn threads_can_be_told_apart_without_colours() {
    let threads = [thread(0, &[(5_000, 2)]), thread(1, &[(5_000, 1), (90_000, 1)])];
    let text =
        picture(&threads, &[(0, 1, 5_000), (0, 500, 5_000), (1, 2, 5_000), (1, 500, 90_000)]);
    assert!(text.contains(">thread 1: median 5.00 us<"), "{text}");
    assert!(text.contains("stroke-dasharray=\"7 4\"") && text.contains("h7v7h-7z"), "{text}");
    assert!(text.contains("<circle class=\"hg-dot\""));
}

/// Folders of earlier versions, and runs of many hours, have histograms alone.
#[test]
fn what_is_missing_is_said_in_the_picture() {
    let threads = [thread(0, &[(5_000, 2)])];
    assert!(picture(&threads, &[]).contains("only their histogram is drawn"));
    let none = picture(&[thread(0, &[])], &[]);
    assert!(none.contains("No wake-up was measured.") && !none.contains("NaN"), "{none}");
    let zero = picture(&[thread(0, &[(0, 3)])], &[(0, 5, 0)]);
    assert!(!zero.contains("NaN") && !zero.contains("inf"), "{zero}");
    let options = TraceOptions::new(Span::from_secs(2), Span::from_secs(1));
    let refused = LatencyPicture::new(&options, &threads);
    assert!(matches!(refused, Err(SvgError::EmptyRange { .. })));
}

/// `export --csv` of a latency folder was a header.
#[test]
fn a_line_for_each_wake_up() {
    let rows = [
        WakeUpRow { thread: 0, woke_ns: Some(1_052_098), latency_ps: 52_098_458 },
        WakeUpRow { thread: 0, woke_ns: Some(2_060_917), latency_ps: 60_916_919 },
        WakeUpRow { thread: 1, woke_ns: None, latency_ps: 7 },
    ];
    let mut out = Vec::new();
    csv_wake_ups::<std::io::Error>(&mut out, rows.into_iter().map(Ok)).unwrap();
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "thread,expiry_ns,woke_ns,latency_ns\n0,1000000,1052098,52098.458\n\
         0,2000000,2060917,60916.919\n1,,,0.007\n"
    );
    let mut out = Vec::new();
    csv_latency_counts(&mut out, &BTreeMap::from([(0, vec![(5, 2), (7, 1)]), (3, vec![(9, 4)])]))
        .unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text, "thread,latency_ns,count\n0,5,2\n0,7,1\n3,9,4\n");
}
