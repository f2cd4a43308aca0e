//! Pictures of traces: a small one as it is, and what must hold for all of them.

use std::collections::BTreeMap;

use crate::assert_well_formed;
use crate::shown::{competed, missed};
use hourglass_report::svg::{Rows, SvgError, TraceOptions, TracePicture, render};
use hourglass_time::Span;
use hourglass_trace::cpu_occupancy::slices;
use hourglass_trace::{Interval, IntervalStart};
use proptest::prelude::*;

fn interval(thread: u32, cpu: u32, start_ns: i64, end_ns: i64) -> Interval {
    Interval::new(thread, cpu, start_ns, end_ns, IntervalStart::Gap)
}

fn picture(trace: &[Interval], options: &TraceOptions) -> String {
    let mut out = Vec::new();
    render(&mut out, trace.iter().copied(), options).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_well_formed(&text);
    text
}

/// Everything a small picture holds, character by character. Two threads take turns as in
/// Figure 3; the second is interrupted for 4 us, which no pixel can show.
#[test]
fn a_small_picture() {
    let mut options = TraceOptions::new(Span::ZERO, Span::from_millis(50));
    options.width = 400;
    options.title = "Two & three".to_owned();
    options.threads = vec![(0, "CPU".to_owned()), (1, "CPU_YIELD 5ms".to_owned())];
    let trace = [
        interval(0, 0, 0, 10_000_000),
        interval(1, 0, 10_002_000, 20_000_000),
        interval(1, 0, 20_004_000, 31_000_000),
        interval(0, 0, 31_002_500, 50_000_000),
    ];
    let text = picture(&trace, &options);
    assert_eq!(text, include_str!("../data/trace.svg"), "\n{text}");
}

/// The competitor is in the picture by name, whatever the rows are; where a pixel holds both, each has its share.
#[test]
fn who_had_the_cpu_is_drawn() {
    let run = competed();
    let drawn = |rows, to| {
        let mut options = TraceOptions::new(Span::ZERO, Span::from_millis(to));
        options.rows = rows;
        options.threads = vec![(0, "CPU".to_owned())];
        options.tids = BTreeMap::from([(70, 0)]);
        options.names = run.names.clone();
        let mut picture = TracePicture::new(&options).unwrap();
        run.intervals.iter().for_each(|interval| picture.push(interval));
        slices(&run.events, 1_000_000_000).iter().for_each(|slice| picture.push_slice(slice));
        let mut out = Vec::new();
        picture.finish(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_well_formed(&text);
        text
    };
    for rows in [Rows::Threads, Rows::Cpus] {
        for to in [1_000, 30] {
            let text = drawn(rows, to);
            assert!(text.contains("<title>spinner</title>"), "{text}");
            assert!(text.contains(">CPU 0<") && text.contains("<title>interrupts</title>"));
            assert!(text.len() < 200_000, "{}", text.len());
        }
        assert!(drawn(rows, 1_000).contains(">spinner, 196 ms<"));
        assert_eq!(drawn(rows, 1_000).contains(">thread 0<"), rows == Rows::Threads);
    }
}

/// Releases, deadlines, what ran too late and what never ran have each a sign and its meaning.
#[test]
fn jobs_are_drawn() {
    let run = missed();
    let drawn = |rows| {
        let mut options = TraceOptions::new(Span::ZERO, Span::from_millis(40));
        options.rows = rows;
        options.threads = vec![(0, "PERIODIC 4ms 10ms".to_owned())];
        let mut picture = TracePicture::new(&options).unwrap();
        run.jobs.iter().for_each(|job| picture.push_job(job, 40_000_000));
        run.intervals.iter().for_each(|interval| picture.push(interval));
        let mut out = Vec::new();
        picture.finish(&mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_well_formed(&text);
        text
    };
    let text = drawn(Rows::Threads);
    let meanings = [
        "release of a job<",
        ">deadline<",
        "missed deadline (1)<",
        "ran after its deadline<",
        "lost period (1): its job never ran<",
        "thread 0: 1 deadlines missed, 1 periods lost.",
    ];
    for meaning in meanings {
        assert!(text.contains(meaning), "{meaning}: {text}");
    }
    assert!(text.contains("stroke=\"url(#hg-over)\"") && text.contains("id=\"hg-over\""));
    assert!(!drawn(Rows::Cpus).contains("release of a job"));
}

#[test]
fn an_empty_range_is_refused() {
    let options = TraceOptions::new(Span::from_millis(5), Span::from_millis(5));
    let result = render(Vec::new(), [], &options);
    assert!(matches!(result, Err(SvgError::EmptyRange { .. })));
}

/// Figure 3 (b): a thread that never runs in the range shown still has its row.
#[test]
fn a_thread_that_never_ran_has_a_row() {
    let mut options = TraceOptions::new(Span::ZERO, Span::from_millis(1));
    options.threads = vec![(5, "CPU".to_owned())];
    assert!(picture(&[], &options).contains(">thread 5<"));
}

#[test]
fn text_from_outside_is_not_markup() {
    let evil = "</title><script>alert(1)</script>\u{0}\u{1b}[2J\"'&";
    let mut options = TraceOptions::new(Span::ZERO, Span::from_millis(1));
    options.title = evil.to_owned();
    options.threads = vec![(0, evil.to_owned())];
    for rows in [Rows::Threads, Rows::Cpus] {
        options.rows = rows;
        let text = picture(&[interval(0, 0, 0, 500)], &options);
        assert!(!text.contains("<script"));
    }
}

/// A damaged trace may name any thread and any time.
#[test]
fn a_damaged_trace_gives_a_picture_of_limited_size() {
    let ends = [i64::MIN, -1, 0, 1, i64::MAX];
    let mut trace = Vec::new();
    for n in 0..2_000 {
        let thread = u32::MAX - n * 7_919;
        trace.push(interval(thread, thread, ends[n as usize % 5], ends[n as usize / 5 % 5]));
    }
    let mut options = TraceOptions::new(Span::MIN, Span::MAX);
    options.width = u32::MAX;
    for rows in [Rows::Threads, Rows::Cpus] {
        options.rows = rows;
        let text = picture(&trace, &options);
        assert!(text.contains("some rows are not shown"));
        assert!(text.len() < 200_000, "{}", text.len());
    }
}

/// 300,000 records, the paper's default buffer, in the pattern that thins worst: every column
/// differs from its neighbour.
#[test]
fn a_full_buffer_stays_small() {
    let trace: Vec<_> = (0..300_000)
        .map(|n| {
            let start = n * 10_000;
            interval((n % 64) as u32, 0, start, start + 500 + (n * n) % 9_000)
        })
        .collect();
    for to in [3_000, 300, 30] {
        let mut options = TraceOptions::new(Span::ZERO, Span::from_millis(to));
        for rows in [Rows::Threads, Rows::Cpus] {
            options.rows = rows;
            let size = picture(&trace, &options).len();
            assert!(size < 2_000_000, "{to} ms: {size} bytes");
        }
    }
}

/// A trace of up to four threads on up to two CPUs, in the order of the starts.
fn traces() -> impl Strategy<Value = Vec<Interval>> {
    let record = (0..4_u32, 0..5_000_i64, 0..3_000_i64, 0..2_u32);
    prop::collection::vec(record, 1..400).prop_map(|records| {
        let mut now = [0_i64; 2];
        let mut trace: Vec<Interval> = records
            .into_iter()
            .map(|(thread, length, pause, cpu)| {
                let start = now[cpu as usize] + pause * pause / 1_000;
                now[cpu as usize] = start + length;
                // A thread stays on its CPU, so that its own intervals never overlap.
                interval(thread * 2 + cpu, cpu, start, start + length)
            })
            .collect();
        trace.sort_by_key(|interval| interval.start_ns);
        trace
    })
}

fn longest_gaps(
    trace: &[Interval],
    from: i64,
    to: i64,
    row: fn(&Interval) -> u32,
) -> BTreeMap<u32, i64> {
    let mut ends: BTreeMap<u32, i64> = BTreeMap::new();
    let mut longest = BTreeMap::new();
    for interval in trace {
        let key = row(interval);
        if let Some(end) = ends.insert(key, interval.end_ns) {
            let gap = interval.start_ns - end;
            if gap > 0 && end < to && interval.start_ns > from {
                let so_far = longest.entry(key).or_insert(gap);
                *so_far = gap.max(*so_far);
            }
        }
    }
    longest
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn the_longest_gap_is_always_marked_and_elements_are_bounded(
        trace in traces(),
        from in 0..200_000_i64,
        length in 1..2_000_000_i64,
        width in 320..1_200_u32,
        by_cpu: bool,
    ) {
        let to = from + length;
        let mut options = TraceOptions::new(Span::from_nanos(from), Span::from_nanos(to));
        options.width = width;
        let (row, name): (fn(&Interval) -> u32, _) = if by_cpu {
            options.rows = Rows::Cpus;
            (|i| i.cpu, "CPU")
        } else {
            (|i| i.thread, "thread")
        };
        let text = picture(&trace, &options);
        for (key, gap) in longest_gaps(&trace, from, to, row) {
            let mark = format!("<title>longest gap of {name} {key}: {},", Span::from_nanos(gap));
            prop_assert!(text.contains(&mark), "{mark}\n{text}");
        }
        let marks = text.matches("class=\"hg-longest\"").count();
        prop_assert_eq!(marks, longest_gaps(&trace, from, to, row).len());
        let rows = text.matches("class=\"hg-base\"").count();
        let shapes = text.matches("<rect").count() + text.matches('M').count();
        // Beside the pieces: paper, grid, legend, and for each row its ground and its mark.
        prop_assert!(shapes <= rows * (width as usize + 2) + 40, "{shapes} for {rows} rows");
    }
}
