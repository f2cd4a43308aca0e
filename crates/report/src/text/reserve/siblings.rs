//! What was done about those who share the reserved CPU, in lines.

use hourglass_documents::reserve::SmtReport;

use super::super::Style;
use super::super::table::TextStyle;
use super::{line, list};
use crate::units::rounded;

/// Adds what a monitor of siblings did.
pub(super) fn write_monitor(out: &mut String, smt: &SmtReport, style: Style) {
    let on = match &smt.shares[..] {
        [cpu] => format!("CPU {cpu}"),
        cpus => format!("CPUs {}", list(cpus)),
    };
    let (text, tone) = match smt.protected {
        true => (format!("{} on {on}, against {}", smt.policy, against(smt)), TextStyle::Good),
        false if smt.shares.is_empty() => {
            (format!("{}, but no CPU shares: nothing is claimed", smt.policy), TextStyle::Caution)
        }
        false if smt.stopper.is_none() => {
            (format!("{}: co-runners on {on} are not stopped", smt.policy), TextStyle::Caution)
        }
        false => {
            let text = format!(
                "{} on {on}, against {}; no protection is claimed (see the warnings)",
                smt.policy,
                against(smt)
            );
            (text, TextStyle::Caution)
        }
    };
    line(out, "siblings", &text, tone, style);
    if smt.shares.is_empty() {
        // There was no monitor.
        return;
    }
    let missed = if smt.missed == 0 { TextStyle::Good } else { TextStyle::Bad };
    let idle = match smt.idle {
        0 => String::new(),
        idle => format!(", {idle} idle"),
    };
    let jobs =
        format!("{} watched, {} missed{idle}; progress by {}", smt.jobs, smt.missed, source(smt));
    line(out, "jobs", &jobs, missed, style);
    let every = smt.interval_ns.map_or(String::new(), |ns| format!(", every {}", rounded(ns)));
    let stopped = match &smt.stopper {
        Some(stopper) => format!(
            "{} times, {} in all, by {stopper}, {} before slack is used up; {} checks{every}",
            smt.stops,
            rounded(smt.stopped_ns),
            rounded(smt.margin_ns),
            smt.checks
        ),
        None => format!("never; {} checks{every}", smt.checks),
    };
    line(out, "stopped", &stopped, TextStyle::Normal, style);
    if smt.backwards > 0 {
        let text = format!("went backwards in {} of the jobs, which counts as none", smt.backwards);
        line(out, "progress", &text, TextStyle::Caution, style);
    }
    if smt.unmoved > 0 {
        let text = format!("was not reported in {} of the jobs", smt.unmoved);
        line(out, "progress", &text, TextStyle::Caution, style);
    }
}

/// Where progress was read, in words.
fn source(smt: &SmtReport) -> &str {
    match &*smt.progress {
        "word" => "the program's own reports",
        "cpu_time" => "processor time",
        other => other,
    }
}

/// Whom the protection covers.
fn against(smt: &SmtReport) -> String {
    match &smt.against[..] {
        [one] if one == "everybody" => "all co-runners".to_owned(),
        [] => "none".to_owned(),
        named => format!("{} only", named.join(", ")),
    }
}
