//! Who had the CPU while threads of the run were without it.

use hourglass_model::document::{CauseReport, RanReport};

use crate::units::rounded;

/// A line for each cause of which the kernel's trace tells it:
/// `in context_switch_involuntary: stress (812) 1.20 s, kworker/0:1 (12) 40.0 us`.
pub(super) fn lines(causes: &[CauseReport]) -> Vec<String> {
    let told = causes.iter().filter(|cause| !cause.ran.is_empty());
    let line = |cause: &CauseReport| {
        let of = |ran: &RanReport| format!("{} {}", who(ran), rounded(ran.total_ns));
        let all: Vec<String> = cause.ran.iter().map(of).collect();
        format!("in {}: {}", cause.cause, all.join(", "))
    };
    told.map(line).collect()
}

pub(crate) fn who(ran: &RanReport) -> String {
    match (ran.thread, ran.tid, &ran.name) {
        (Some(thread), _, _) => format!("thread {thread} of the run"),
        (None, Some(0), _) => "nobody (idle)".to_owned(),
        (None, Some(tid), Some(name)) => format!("{name} ({tid})"),
        (None, Some(tid), None) => format!("thread {tid} of the machine"),
        (None, None, _) => "a thread".to_owned(),
    }
}
