//! A run while it goes on: a row for each thread, the worst so far with its cause, a histogram.

use hourglass_documents::Cause;
use hourglass_documents::live::{LiveReport, LiveThread, LiveWorst};

use super::Style;
use super::table::TextTable;
use crate::clean;
use crate::units::rounded;

/// Lines besides those of threads and histogram: title, heads, the worst, the histogram's head, spaces.
const AROUND: usize = 9;
/// Rows that the histogram has at least, where there is room for anything.
const LEAST_ROWS: usize = 6;
/// Columns in front of the bars.
const BEFORE_BARS: usize = 26;

/// The picture, in `width` columns and at most `height` lines; `title` says what runs, and from where it is drawn.
#[must_use]
pub fn top(report: &LiveReport, title: &str, width: u16, height: u16) -> String {
    let (width, height) = (usize::from(width), usize::from(height));
    let counted = if report.wake_ups { "wake-ups" } else { "gaps" };
    let mut out = format!("{title}: {} so far\n\n", rounded(report.elapsed_ns));
    let room = height.saturating_sub(AROUND + LEAST_ROWS).max(1);
    table(report, counted, room).write(&mut out, Style::Plain);
    let left_out = report.threads.len().saturating_sub(room);
    if left_out > 0 {
        out.truncate(out.trim_end().len());
        out.push_str(&format!("\n{left_out} more threads had no greater maximum\n\n"));
    }
    if let Some((thread, worst)) = worst_of(&report.threads) {
        out.push_str(&format!("Worst: {}\n\n", worst_line(thread, &worst, report.wake_ups)));
    }
    let rows = height.saturating_sub(out.lines().count() + 1);
    histogram(&mut out, &report.counts, counted, (width, rows));
    // A line that went on in the next one would not be drawn over.
    let lines = out.lines().take(height).map(|line| clean::shortened(line, width.max(1)));
    lines.fold(String::new(), |text, line| text + &line + "\n")
}

/// A row for each thread; if there is no room for all, for those with the greatest maximum.
fn table(report: &LiveReport, counted: &'static str, room: usize) -> TextTable {
    let lost = report.threads.iter().any(|thread| thread.lost > 0);
    let mut shown: Vec<&LiveThread> = report.threads.iter().collect();
    if shown.len() > room {
        shown.sort_by_key(|thread| (std::cmp::Reverse(thread.max_ns), thread.id));
        shown.truncate(room);
    }
    let time = |of: fn(&LiveThread) -> u64| {
        move |thread: &&LiveThread| (thread.count > 0).then(|| rounded(of(thread)))
    };
    TextTable::of("Threads", &shown)
        .number("thread", |thread| thread.id)
        .number(counted, |thread| thread.count)
        .number_if(lost, "lost", |thread| thread.lost)
        .number("min", time(|thread| thread.min_ns))
        .number("mean", time(|thread| thread.mean_ns))
        .number("last", time(|thread| thread.last_ns))
        .number("max", time(|thread| thread.max_ns))
        .narrow()
}

fn worst_of(threads: &[LiveThread]) -> Option<(u32, LiveWorst)> {
    let worst = threads.iter().filter_map(|thread| Some((thread.id, thread.worst?)));
    worst.reduce(|kept, next| if next.1.ns > kept.1.ns { next } else { kept })
}

/// `1.02 ms late, thread 0 on CPU 1, 2.10 s after the start`, and why in a line of its own.
fn worst_line(thread: u32, worst: &LiveWorst, wake_ups: bool) -> String {
    let late = if wake_ups { " late" } else { "" };
    let why = if wake_ups { of_wake_up(worst) } else { of_gap(worst.cause).to_owned() };
    format!(
        "{}{late}, thread {thread} on CPU {}, {} after the start\n       {why}",
        rounded(worst.ns),
        worst.cpu,
        rounded(worst.at_ns)
    )
}

fn of_wake_up(worst: &LiveWorst) -> String {
    match (worst.cause, worst.waited_ns) {
        (Cause::ContextSwitch, Some(ns)) => {
            format!("another thread had the CPU, {} at most", rounded(ns))
        }
        (Cause::IrqOrBelow, _) => {
            "no other thread had the CPU: interrupts, an idle state, or the host".to_owned()
        }
        _ => "the kernel does not report the cause (no schedstat)".to_owned(),
    }
}

fn of_gap(cause: Cause) -> &'static str {
    match cause {
        Cause::ContextSwitch | Cause::ContextSwitchInvoluntary | Cause::ContextSwitchVoluntary => {
            "another thread had the CPU"
        }
        Cause::Stopped => "stopped, by a signal or the freezer",
        Cause::PageFault => "a page fault",
        Cause::TimerTick => "the kernel's tick",
        Cause::Irq => "an interrupt",
        Cause::IrqOrBelow => "an interrupt, or below the kernel",
        _ => "not known yet",
    }
}

/// A row for each power of two from the first that has any to the last; `size` is columns and rows. Where rows are
/// missing, the shortest are one row.
fn histogram(out: &mut String, counts: &[u64], counted: &str, (width, rows): (usize, usize)) {
    let filled = |count: &u64| *count > 0;
    let (Some(first), Some(last)) =
        (counts.iter().position(filled), counts.iter().rposition(filled))
    else {
        out.push_str(&format!("no {counted} yet\n"));
        return;
    };
    out.push_str(&format!("{:>12}  {counted:>10}  (bars are logarithmic)\n", "less than"));
    let first = first.max((last + 2).saturating_sub(rows.max(2)));
    let most = counts.iter().copied().max().unwrap_or(0);
    let room = width.saturating_sub(BEFORE_BARS).max(1);
    for (place, own) in counts.iter().enumerate().take(last + 1).skip(first) {
        let below = counts.iter().take(place).copied();
        let count = if place == first { below.fold(*own, u64::saturating_add) } else { *own };
        let longest = counts.len().saturating_sub(1);
        let label = match place == longest {
            true => "longer".to_owned(),
            false => rounded(1 << place.min(63)),
        };
        let bar = "█".repeat(length(count, most, room));
        out.push_str(format!("{label:>12}  {count:>10}  {bar}").trim_end());
        out.push('\n');
    }
}

/// Length of a bar for `count` on a logarithmic scale on which `most` fills `room`; at least 1 for any count but 0.
fn length(count: u64, most: u64, room: usize) -> usize {
    if count == 0 {
        return 0;
    }
    let scale = ((most.max(1) as f64) + 1.0).ln();
    let part = ((count as f64) + 1.0).ln() / scale;
    ((part * room as f64) as usize).clamp(1, room)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(threads: u32) -> LiveReport {
        let thread = |id| LiveThread {
            id,
            count: 1_000,
            min_ns: 900,
            mean_ns: 2_000,
            last_ns: 1_500,
            max_ns: 40_000 + u64::from(id),
            worst: Some(LiveWorst {
                ns: 40_000 + u64::from(id),
                at_ns: 2_100_000_000,
                cpu: 1,
                cause: Cause::ContextSwitch,
                waited_ns: Some(39_000),
            }),
            ..LiveThread::default()
        };
        let mut counts = vec![0; 40];
        (counts[10], counts[11], counts[16]) = (10, 989, 1);
        LiveReport {
            elapsed_ns: 3_000_000_000,
            wake_ups: true,
            threads: (0..threads).map(thread).collect(),
            counts,
        }
    }

    #[test]
    fn the_worst_has_its_cause_and_every_length_a_row() {
        let text = top(&report(2), "latency", 80, 24);
        assert!(text.starts_with("latency: 3.00 s so far\n"), "{text}");
        let worst = "Worst: 40.0 us late, thread 1 on CPU 1, 2.10 s after the start\n       \
                     another thread had the CPU, 39.0 us at most\n";
        assert!(text.contains(worst), "{text}");
        let rows: Vec<Vec<&str>> = text
            .lines()
            .skip_while(|line| !line.contains("less than"))
            .skip(1)
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(rows.len(), 7, "{text}");
        assert_eq!((rows[0][2], rows[1][2], rows[6][2]), ("10", "989", "1"));
        let bars: Vec<usize> =
            rows.iter().map(|row| row.get(3).map_or(0, |bar| bar.chars().count())).collect();
        assert_eq!((bars[1], bars[2]), (80 - BEFORE_BARS, 0), "{bars:?}");
        assert!(bars[6] >= 1 && bars[6] < bars[0] && bars[0] < bars[1], "{bars:?}");
    }

    /// Nothing is wider or longer than the terminal, and what is left out is said.
    #[test]
    fn a_small_terminal_is_enough() {
        for (width, height) in [(20, 5), (40, 12), (80, 16), (1, 1)] {
            let text = top(&report(64), "noise", width, height);
            assert!(text.lines().count() <= usize::from(height), "{width}x{height}: {text}");
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= usize::from(width), "{width}x{height}: {text}");
        }
        let text = top(&report(64), "noise", 80, 30);
        assert!(text.contains("49 more threads had no greater maximum"), "{text}");
        assert!(text.contains("less than") && text.contains("65.5 us"), "{text}");
    }

    #[test]
    fn nothing_was_counted_yet() {
        let empty = LiveReport { counts: vec![0; 40], ..LiveReport::default() };
        assert!(top(&empty, "noise", 80, 24).contains("no gaps yet"));
    }
}
