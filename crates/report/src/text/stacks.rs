//! Where the kernel was at the worst of a run, for people.

use hourglass_documents::stack::{StackReport, SwitchStack};

use super::occupants;
use crate::clean;

/// A line for each stack, the longest first:
/// `gap of 4.53 ms, thread 0, given by stress (812): __schedule, called by do_work, worker_thread`.
#[must_use]
pub fn stacks(all: &[StackReport]) -> Vec<String> {
    all.iter().flat_map(|report| report.stacks.iter().map(move |one| line(report, one))).collect()
}

/// The same of the longest gap and of the latest wake-up only.
pub(super) fn worst(all: &[StackReport]) -> Vec<String> {
    let first = |of: &str| all.iter().find(|report| report.of == of);
    let worst = ["gap", "wake_up"].into_iter().filter_map(first);
    worst.flat_map(|report| report.stacks.iter().map(|one| line(report, one))).collect()
}

fn line(report: &StackReport, one: &SwitchStack) -> String {
    format!("{}, {}: {}", heading(report), moment(one), frames(one))
}

/// `gap of 4.53 ms, thread 0`.
pub(crate) fn heading(report: &StackReport) -> String {
    occupants::heading(&report.of, report.length_ns, report.thread)
}

/// Whose stack it is, and why it was looked at.
pub(crate) fn moment(one: &SwitchStack) -> String {
    let whose = match &one.name {
        Some(name) => format!("{} ({})", clean::for_terminal(name), one.tid),
        None => format!("thread {} of the machine", one.tid),
    };
    match one.moment.as_str() {
        "taken" => "where the CPU was taken from it".to_owned(),
        _ => format!("given by {whose}"),
    }
}

/// `__schedule, called by do_work, worker_thread`.
pub(crate) fn frames(one: &SwitchStack) -> String {
    let names: Vec<String> = one.frames.iter().map(|name| clean::for_terminal(name)).collect();
    match names.split_first() {
        Some((first, rest)) if !rest.is_empty() => {
            format!("{first}, called by {}", rest.join(", "))
        }
        _ => names.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(of: &str, length_ns: u64) -> StackReport {
        let stack = |moment: &str, tid, frames: &[&str]| SwitchStack {
            moment: moment.to_owned(),
            tid,
            name: (tid == 812).then(|| "stress".to_owned()),
            frames: frames.iter().map(|name| (*name).to_owned()).collect(),
            ..SwitchStack::default()
        };
        StackReport {
            of: of.to_owned(),
            length_ns,
            stacks: vec![
                stack("taken", 70, &["__schedule", "irqentry_exit"]),
                stack("given", 812, &["__schedule"]),
            ],
            ..StackReport::default()
        }
    }

    #[test]
    fn the_longest_gap_and_the_latest_wake_up_are_reported() {
        let all = [report("gap", 4_530_000), report("gap", 9), report("wake_up", 2_000)];
        assert_eq!(
            worst(&all),
            [
                "gap of 4.53 ms, thread 0, where the CPU was taken from it: __schedule, called by \
                 irqentry_exit",
                "gap of 4.53 ms, thread 0, given by stress (812): __schedule",
                "wake-up 2.00 us late, thread 0, where the CPU was taken from it: __schedule, \
                 called by irqentry_exit",
                "wake-up 2.00 us late, thread 0, given by stress (812): __schedule",
            ]
        );
        assert_eq!(stacks(&all).len(), 6);
    }
}
