//! Who had the CPU while threads of the run were without it.

use hourglass_documents::concurrent_threads::ConcurrentThreads;
use hourglass_documents::document::{CauseReport, OccupantReport};

use crate::clean;
use crate::units::rounded;

/// A line for each cause of which the kernel's trace tells it:
/// `in context_switch_involuntary: stress (812) 1.20 s, kworker/0:1 (12) 40.0 us`.
pub(super) fn lines(causes: &[CauseReport]) -> Vec<String> {
    let with_occupants = causes.iter().filter(|cause| !cause.ran.is_empty());
    let line = |cause: &CauseReport| format!("in {}: {}", cause.cause, all(&cause.ran));
    with_occupants.map(line).collect()
}

/// A line for each of the longest gaps and latest wake-ups of which counts tell something:
/// `gap of 4.53 ms, thread 0: stress (812) 4.50 ms, kworker/0:1 (12) 40.0 us`.
#[must_use]
pub fn meanwhile(all: &[ConcurrentThreads]) -> Vec<String> {
    let line = |report: &ConcurrentThreads| {
        let heading = heading(&report.of, report.length_ns, report.thread);
        format!("{heading}: {}", reason(report))
    };
    all.iter().map(line).collect()
}

/// `stopped`, or those who ran.
pub(crate) fn reason(report: &ConcurrentThreads) -> String {
    match report.cause {
        Some(cause) => format!("{cause}: no thread of the process ran, or waited for a CPU"),
        None => all(&report.ran),
    }
}

/// `stress (812) 1.20 s, kworker/0:1 (12) 40.0 us`.
pub(crate) fn all(ran: &[OccupantReport]) -> String {
    let of = |ran: &OccupantReport| format!("{} {}", who(ran), rounded(ran.total_ns));
    ran.iter().map(of).collect::<Vec<_>>().join(", ")
}

/// The same of the longest gap and of the latest wake-up only, and what such lines are worth.
pub(super) fn worst_meanwhile(all: &[ConcurrentThreads]) -> Vec<String> {
    let first = |of: &str| all.iter().find(|report| report.of == of).cloned();
    let worst: Vec<ConcurrentThreads> = ["gap", "wake_up"].into_iter().filter_map(first).collect();
    let mut lines = meanwhile(&worst);
    if !lines.is_empty() {
        lines.push(format!("({BY_COUNTS})"));
    }
    lines
}

/// What counts say, and what they do not.
pub const BY_COUNTS: &str = "by counts: each ran on that CPU around it, for at most this time; --trace, as root, names threads and times";

/// `gap of 4.53 ms, thread 0`.
pub(crate) fn heading(of: &str, length_ns: u64, thread: u32) -> String {
    let long = rounded(length_ns);
    match of {
        "wake_up" => format!("wake-up {long} late, thread {thread}"),
        _ => format!("gap of {long}, thread {thread}"),
    }
}

pub(crate) fn who(ran: &OccupantReport) -> String {
    match (ran.thread, ran.tid, &ran.name) {
        (Some(thread), _, Some(name)) => {
            format!("{} (thread {thread})", clean::for_terminal(name))
        }
        (Some(thread), _, None) => format!("thread {thread} of the run"),
        (None, Some(0), _) => "idle".to_owned(),
        (None, Some(tid), Some(name)) => format!("{} ({tid})", clean::for_terminal(name)),
        (None, Some(tid), None) => format!("thread {tid} of the machine"),
        (None, None, _) => "a thread".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_no_more_than_counts() {
        let report = |of: &str, tid| ConcurrentThreads {
            of: of.to_owned(),
            length_ns: 4_530_000,
            ran: vec![OccupantReport {
                thread: None,
                tid: Some(tid),
                name: Some("stress\u{1b}".to_owned()),
                total_ns: 4_500_000,
            }],
            ..ConcurrentThreads::default()
        };
        let all = [report("gap", 812), report("gap", 9), report("wake_up", 813)];
        let lines = worst_meanwhile(&all);
        assert!(lines[0].starts_with("gap of 4.53 ms, thread 0: stress"), "{lines:?}");
        assert!(lines[0].ends_with("(812) 4.50 ms") && !lines[0].contains('\u{1b}'), "{lines:?}");
        assert!(lines[1].starts_with("wake-up 4.53 ms late, thread 0: "), "{lines:?}");
        assert!(lines[2].contains("at most"), "{lines:?}");
        assert!(worst_meanwhile(&[]).is_empty());
    }
}
