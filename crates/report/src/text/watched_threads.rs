//! Threads of other processes that were watched, while they are and afterwards.

use hourglass_documents::Cause;
use hourglass_documents::document::Warning;
use hourglass_documents::watched::{DelayReport, WatchedProcess, WatchedReport, WatchedThread};

use super::Style;
use super::occupants::all;
use super::table::{ColumnFormat, NARROW, TextStyle, TextTable, paint, paint_line, wrapped_within};
use crate::clean;
use crate::units::rounded;

/// Threads of which the lines below the table tell.
const EXPLAINED: usize = 5;
/// Rows besides the threads', of a live view.
const AROUND: usize = 8;

/// What was found, for people and to the end.
#[must_use]
pub fn watched(report: &WatchedReport, style: Style) -> String {
    let mut out = found(report, style);
    warnings(&mut out, &report.warnings, style);
    out
}

pub(super) fn warnings(out: &mut String, all: &[Warning], style: Style) {
    for Warning { text, remedy, .. } in all {
        let said = if remedy.is_empty() { text.clone() } else { format!("{text}; {remedy}") };
        let said =
            wrapped_within(NARROW, &format!("warning: {}", clean::for_terminal(&said)), 0, 2);
        paint_line(out, &said, TextStyle::Caution, style);
    }
}

/// The same without the warnings, which are those of the run.
pub(super) fn found(report: &WatchedReport, style: Style) -> String {
    let mut out = String::new();
    heading(&mut out, report, style);
    table(&report.threads).write(&mut out, style);
    counts(&report.threads).write(&mut out, style);
    lines(&mut out, report, EXPLAINED, style);
    out
}

/// The same while it goes on, in `width` columns and at most `height` lines; what there is no room for is counted.
#[must_use]
pub fn watched_live(report: &WatchedReport, width: u16, height: u16, style: Style) -> String {
    let (width, height) = (usize::from(width), usize::from(height));
    let mut out = String::new();
    heading(&mut out, report, Style::Plain);
    let explained = report.threads.len().min(if height > 2 * AROUND { EXPLAINED } else { 0 });
    let room = height.saturating_sub(AROUND + 2 * explained).max(1);
    let shown = &report.threads[..report.threads.len().min(room)];
    table(shown).write(&mut out, Style::Plain);
    let more = report.threads.len() - shown.len();
    if more > 0 {
        out.truncate(out.trim_end().len());
        out.push_str(&format!("\n{more} more threads waited less\n\n"));
    }
    lines(&mut out, report, explained, Style::Plain);
    // A line that went on in the next one would not be drawn over.
    let cut = out.lines().take(height).map(|line| clean::shortened(line, width.max(1)));
    let line = |(at, line): (usize, String)| match at {
        0 => paint(&line, TextStyle::Heading, style),
        _ => line,
    };
    cut.enumerate().map(line).fold(String::new(), |text, line| text + &line + "\n")
}

fn heading(out: &mut String, report: &WatchedReport, style: Style) {
    let count = report.threads.len();
    let threads = match (count, report.premises.is_empty()) {
        (1, true) => "thread",
        (_, true) => "threads",
        (1, false) => "thread seen",
        (_, false) => "threads seen",
    };
    let of = match &report.processes[..] {
        [one] => format!("{} ({})", clean::for_terminal(&one.name), one.pid),
        all => format!("{} processes", all.len()),
    };
    if let Some(command) = &report.command {
        let words = clean::for_terminal(&command.words.join(" "));
        out.push_str(&paint(
            &format!("{words}: exit code {}", command.exit),
            TextStyle::Heading,
            style,
        ));
        out.push('\n');
    }
    let how = if report.how == "trace" { "the kernel's events" } else { "the kernel's counts" };
    let title = format!(
        "{of}: {count} {threads} for {}, by {how}, every {}",
        rounded(report.elapsed_ns),
        rounded(report.interval_ns)
    );
    out.push_str(&paint(&title, TextStyle::Heading, style));
    out.push_str("\n\n");
}

/// A row for each thread, whole in 80 columns: what is the same for all of them, or nothing, has no column.
fn table(threads: &[WatchedThread]) -> TextTable {
    let traced = threads.iter().any(|thread| thread.delays.is_some());
    let stopped = threads.iter().any(|thread| thread.stopped_ns.is_some_and(|ns| ns > 0));
    let chosen = threads.iter().any(|thread| thread.policy.as_deref() != Some("OTHER:0"));
    let cpu = |thread: &WatchedThread| match (thread.ended, thread.cpu) {
        (true, _) => "ended".to_owned(),
        (false, cpu) => cpu.map_or(String::new(), |cpu| cpu.to_string()),
    };
    TextTable::of("Run-queue delay", threads)
        .number("thread", |thread| thread.tid)
        .elastic("name", |thread| thread.name.as_str())
        .column_if(chosen, ColumnFormat::Text, "policy", |thread| thread.policy.as_deref())
        .number("CPU", cpu)
        .number("ran", |thread| thread.run_ns.map(rounded))
        .number("waited", |thread| waited_ns(thread).map(rounded))
        .number("longest", |thread| {
            let looks = || thread.worst_interval.map(|worst| worst.wait_ns).or(thread.wait_ns);
            thread.delays.as_ref().map(|delays| delays.max_ns).or_else(looks).map(rounded)
        })
        .number_if(traced, "delays", |thread| thread.delays.as_ref().map(|delays| delays.count))
        .number_if(stopped, "stopped", |thread| thread.stopped_ns.map(rounded))
        .number("switches", |thread| sum(thread.voluntary_switches, thread.involuntary_switches))
        .narrow()
}

/// What else the kernel counted of each thread.
fn counts(threads: &[WatchedThread]) -> TextTable {
    TextTable::of("Counts", threads)
        .number("thread", |thread| thread.tid)
        .elastic("name", |thread| thread.name.as_str())
        .number("waits", |thread| thread.voluntary_switches)
        .number("preemptions", |thread| thread.involuntary_switches)
        .number("moved", |thread| thread.migrations)
        .number("page faults", |thread| sum(thread.minor_faults, thread.major_faults))
        .narrow()
}

fn waited_ns(thread: &WatchedThread) -> Option<u64> {
    thread.delays.as_ref().map(|delays| delays.total_ns).or(thread.wait_ns)
}

fn sum(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    Some(a?.saturating_add(b?))
}

/// Lines below the table: quotas, and the occupants of the CPU of the `explained` threads that waited longest.
fn lines(out: &mut String, report: &WatchedReport, explained: usize, style: Style) {
    let before = out.len();
    for process in &report.processes {
        if let Some(line) = throttled(process) {
            paint_line(out, &line, TextStyle::Caution, style);
        }
        if let (Some(cpu_ns), Some(seen_ns)) = (process.cpu_ns, process.seen_cpu_ns) {
            let name = clean::for_terminal(&process.name);
            let (seen, whole) = (rounded(seen_ns), rounded(cpu_ns));
            let line = format!(
                "Not whole: the threads seen of {name} ({}) ran {seen} of its {whole}",
                process.pid
            );
            paint_line(out, &line, TextStyle::Caution, style);
        }
    }
    for thread in report.threads.iter().take(explained) {
        let name = format!("{} ({})", clean::for_terminal(&thread.name), thread.tid);
        if !thread.ran.is_empty() {
            let had = if thread.delays.is_some() { "had its CPU" } else { "had its CPU at most" };
            let line = format!("While {name} waited, {had}: {}", all(&thread.ran));
            out.push_str(&wrapped_within(NARROW, &line, 0, 2));
            out.push('\n');
        }
        if let Some(line) = thread.delays.as_ref().and_then(|delays| budget_ends(thread, delays)) {
            out.push_str("  ");
            out.push_str(&wrapped_within(NARROW, &line, 2, 4));
            out.push('\n');
        }
        if let Some(worst) = thread.delays.as_ref().and_then(worst) {
            out.push_str("  ");
            out.push_str(&wrapped_within(NARROW, &format!("worst: {worst}"), 2, 4));
            out.push('\n');
        } else if let Some(worst) = &thread.worst_interval {
            out.push_str(&format!(
                "  {name} waited longest, {}, from {} to {}\n",
                rounded(worst.wait_ns),
                rounded(worst.from_ns),
                rounded(worst.to_ns)
            ));
        }
    }
    if let Some(lost) = report.events_lost.filter(|lost| *lost > 0) {
        let line = format!("{lost} events of the kernel were lost");
        paint_line(out, &line, TextStyle::Caution, style);
    }
    if out.len() > before {
        out.push('\n');
    }
}

fn throttled(process: &WatchedProcess) -> Option<String> {
    let periods = process.quota_throttled.filter(|periods| *periods > 0)?;
    let time =
        process.quota_throttled_ns.map_or_else(String::new, |ns| format!(", for {}", rounded(ns)));
    let name = clean::for_terminal(&process.name);
    Some(format!("A quota (cpu.max) stopped {name} ({}) in {periods} periods{time}", process.pid))
}

fn budget_ends(thread: &WatchedThread, delays: &DelayReport) -> Option<String> {
    let ends = delays.deadline_budget.filter(|ends| ends.count > 0)?;
    let of = thread.reservation.as_ref().map_or_else(String::new, |budget| format!(" of {budget}"));
    let times = if ends.count == 1 { "once".to_owned() } else { format!("{} times", ends.count) };
    Some(format!(
        "{}: its budget{of} was used up {times}, and it had no CPU for {} then, {} at most",
        Cause::DeadlineBudget.name(),
        rounded(ends.total_ns),
        rounded(ends.max_ns)
    ))
}

fn worst(delays: &DelayReport) -> Option<String> {
    let worst = delays.worst.as_ref()?;
    let at = u64::try_from(worst.at_ns).unwrap_or(0);
    let after = match (worst.cause, worst.after_wait) {
        (Some(Cause::DeadlineBudget), _) => "after its budget was used up",
        (_, true) => "after it was woken",
        (_, false) => "after the CPU was taken from it",
    };
    let had = if worst.ran.is_empty() { String::new() } else { format!(": {}", all(&worst.ran)) };
    Some(format!(
        "{} at {}, on CPU {}, {after}{had}",
        rounded(worst.delay_ns),
        rounded(at),
        worst.cpu
    ))
}

#[cfg(test)]
mod tests {
    use hourglass_documents::document::{OccupantReport, Premise};
    use hourglass_documents::watched::{BudgetEndReport, WatchedInterval, WorstDelay};

    use super::*;

    fn ran(tid: u32, name: &str, total_ns: u64) -> OccupantReport {
        OccupantReport { thread: None, tid: Some(tid), name: Some(name.into()), total_ns }
    }

    fn thread(tid: u32, wait_ns: u64) -> WatchedThread {
        WatchedThread {
            tid,
            pid: 70,
            name: format!("data-loop\u{1b}[2J.{tid}"),
            policy: Some("FIFO:88".into()),
            state: "S".into(),
            cpu: Some(1),
            run_ns: Some(12_000_000),
            wait_ns: Some(wait_ns),
            worst_interval: Some(WatchedInterval {
                from_ns: 100_000_000,
                to_ns: 200_000_000,
                wait_ns,
            }),
            stopped_ns: Some(0),
            voluntary_switches: Some(40),
            involuntary_switches: Some(2),
            minor_faults: Some(7),
            ran: vec![ran(900, "stress", 3_000_000)],
            ..WatchedThread::default()
        }
    }

    fn report(threads: u32) -> WatchedReport {
        WatchedReport {
            how: "proc".into(),
            interval_ns: 100_000_000,
            elapsed_ns: 3_000_000_000,
            processes: vec![WatchedProcess {
                pid: 70,
                name: "pipewire".into(),
                quota_throttled: Some(3),
                quota_throttled_ns: Some(50_000_000),
                ..WatchedProcess::default()
            }],
            threads: (0..threads).map(|tid| thread(71 + tid, 9_000_000)).collect(),
            ..WatchedReport::default()
        }
    }

    #[test]
    fn counts_and_who_ran() {
        let text = watched(&report(1), Style::Plain);
        assert!(
            text.starts_with(
                "pipewire (70): 1 thread for 3.00 s, by the kernel's counts, every 100 ms\n"
            ),
            "{text}"
        );
        for part in [
            "71  data-loop[2J.71  FIFO:88    1  12.0 ms  9.00 ms",
            "A quota (cpu.max) stopped pipewire (70) in 3 periods, for 50.0 ms",
            "While data-loop[2J.71 (71) waited, had its CPU at most: stress (900) 3.00 ms",
            "waited longest, 9.00 ms, from 100 ms to 200 ms",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        // What the kernel did not tell: migrations, and with the major ones the page faults.
        assert!(text.contains("      -            -\n"), "{text}");
        // Issue 33, 3: whole on a terminal of 80 columns.
        assert!(text.lines().all(|line| line.chars().count() <= NARROW), "{text}");
    }

    #[test]
    fn threads_that_were_not_seen_are_missing() {
        let mut report = report(2);
        (report.processes[0].cpu_ns, report.processes[0].seen_cpu_ns) =
            (Some(3_200_000_000), Some(100_000_000));
        report.premises =
            vec![Premise { id: "threads-unseen".into(), text: String::new(), at_ns: 1 }];
        let text = watched(&report, Style::Plain);
        assert!(text.starts_with("pipewire (70): 2 threads seen for 3.00 s"), "{text}");
        let line = "Not whole: the threads seen of pipewire (70) ran 100 ms of its 3.20 s\n";
        assert!(text.contains(line), "{text}");
    }

    #[test]
    fn delays_have_their_worst() {
        let mut report = report(1);
        report.threads[0].delays = Some(DelayReport {
            count: 5,
            total_ns: 80_000,
            max_ns: 60_000,
            worst: Some(WorstDelay {
                at_ns: 1_500_000_000,
                delay_ns: 60_000,
                cpu: 2,
                after_wait: true,
                ran: vec![ran(0, "", 40_000), ran(900, "stress", 20_000)],
                ..WorstDelay::default()
            }),
            ..DelayReport::default()
        });
        let text = watched(&report, Style::Plain);
        assert!(!text.contains("deadline_budget"), "{text}");
        let worst = "  worst: 60.0 us at 1.50 s, on CPU 2, after it was woken: idle 40.0 us, stress\n    (900) 20.0 us\n";
        assert!(text.contains(worst), "{text}");
    }

    #[test]
    fn a_used_up_budget_is_named() {
        for (count, times) in [(1, "once,"), (118, "118 times,")] {
            let mut report = report(1);
            report.threads[0].reservation = Some("2ms/10ms".into());
            report.threads[0].delays = Some(DelayReport {
                count: 122,
                total_ns: 1_520_000_000,
                max_ns: 19_800_000,
                worst: Some(WorstDelay {
                    at_ns: 555_000_000,
                    delay_ns: 19_800_000,
                    cause: Some(Cause::DeadlineBudget),
                    ..WorstDelay::default()
                }),
                deadline_budget: Some(BudgetEndReport {
                    count,
                    total_ns: 1_500_000_000,
                    max_ns: 19_800_000,
                }),
                ..DelayReport::default()
            });
            let text = watched(&report, Style::Plain);
            let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
            for part in [
                &format!(
                    "deadline_budget: its budget of 2ms/10ms was used up {times} and it had no CPU for 1.50 s then, 19.8 ms at most"
                ),
                "worst: 19.8 ms at 555 ms, on CPU 0, after its budget was used up",
            ] {
                assert!(words.contains(part), "{part}: {text}");
            }
            assert!(text.lines().all(|line| line.chars().count() <= NARROW), "{text}");
        }
    }

    #[test]
    fn a_live_view_fits_its_terminal() {
        for (width, height) in [(80, 24), (120, 40), (60, 10), (20, 5), (0, 0)] {
            let long = || OccupantReport { name: Some("x".repeat(200)), ..ran(900, "", 1) };
            let mut report = report(100);
            report.threads.iter_mut().for_each(|thread| thread.ran.push(long()));
            let text = watched_live(&report, width, height, Style::Plain);
            assert!(text.lines().count() <= usize::from(height), "{width} x {height}: {text}");
            let widest = text.lines().map(|line| line.chars().count()).max().unwrap_or(0);
            assert!(widest <= usize::from(width.max(1)), "{width} x {height}: {widest}\n{text}");
            assert!(!text.contains('\u{1b}'));
        }
        assert!(
            watched_live(&report(100), 80, 24, Style::Plain).contains("more threads waited less")
        );
    }
}
