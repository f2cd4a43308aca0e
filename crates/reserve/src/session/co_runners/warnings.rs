//! Warnings about a protection: work that is not covered, and what went wrong.
//!
//! Owns: these warnings. Must not: find anything out.

use hourglass_documents::document::Warning;
use hourglass_documents::reserve::ReserveRefusal;
use hourglass_time::Span;

use super::super::{CoRunnerSettings, SharingLevel, SiblingPolicy};
use super::LostPage;
use crate::progress::page::ProgressPage;
use crate::smt::co_runners::ExemptReason;
use crate::smt::co_runners::locks::SharedResource;
use crate::smt::driver::MonitorReport;
use crate::smt::topology::SharingCpus;

fn warning(id: &str, text: String, remedy: &str) -> Warning {
    Warning { id: id.to_owned(), text, remedy: remedy.to_owned() }
}

/// An obstacle to a protection, beside the refusals of backends; `text` is the cause, and the remedy behind the last
/// semicolon where it has one.
pub(super) fn refusal(id: &str, text: &str) -> ReserveRefusal {
    let (cause, remedy) = text.rsplit_once("; ").unwrap_or((text, "name others with --stop"));
    ReserveRefusal {
        backend: "smt".to_owned(),
        id: id.to_owned(),
        errno: None,
        cause: cause.to_owned(),
        remedy: remedy.to_owned(),
    }
}

/// The warnings of a guardian that acted `broken` times and had `replaced` processes replaced.
pub(super) fn of_the_guardian(broken: u64, replaced: u64, guarded: bool) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if broken > 0 {
        let text = format!(
            "the guardian let co-runners run {broken} times, since nothing was heard of the monitor, or of the keeper: \
             no protection is claimed"
        );
        let remedy =
            "do not stop hourglass itself, and run nothing above FIFO 90 on the monitor's CPUs";
        warnings.push(warning("guardian-woke", text, remedy));
    }
    if replaced > 0 && guarded {
        let text = format!(
            "processes of the guardian were killed and replaced, {replaced} of them; while none of them ran, no co-runner was \
             stopped, and what hourglass changed would have stayed had it been killed as well"
        );
        let remedy = "leave the processes hourglass-guard alone";
        warnings.push(warning("guardian-replaced", text, remedy));
    }
    if !guarded {
        let text = "both processes of the guardian were killed: had hourglass died as well, what it changed would have stayed, \
                    stopped co-runners too; no protection against these is claimed";
        let remedy = "leave the processes hourglass-guard alone";
        warnings.push(warning("guardian-gone", text.to_owned(), remedy));
    }
    warnings
}

/// The warnings of a run that has ended; its guardian acted `broken` times and had `replaced` processes replaced.
pub(super) fn after(
    report: &MonitorReport,
    broken: u64,
    replaced: u64,
    guarded: bool,
) -> Vec<Warning> {
    let mut warnings = of_the_guardian(broken, replaced, guarded);
    if !report.covered && report.policy != SiblingPolicy::Ignore {
        let text = format!(
            "the reservation leaves less slack in a period than the margin of {} that stopping co-runners takes: \
             no period is covered, and no protection is claimed",
            Span::saturating_from_nanos(report.margin_ns)
        );
        warnings.push(warning(
            "not-covered",
            text,
            "reserve less, or allow a longer deadline; --smt disable needs no slack but the margin",
        ));
    }
    if report.margin_ns > report.first_margin_ns {
        let text = format!(
            "the margin grew from {} to {} in the run, and before that it was too small: stopping co-runners (up to \
             {}) and the latency of timers together took longer than was measured before the run",
            Span::saturating_from_nanos(report.first_margin_ns),
            Span::saturating_from_nanos(report.margin_ns),
            Span::saturating_from_nanos(report.statistics.stop_max_ns)
        );
        let remedy = "another --stopper; fewer processes in the set; in a virtual machine, the host was away";
        warnings.push(warning("margin-grew", text, remedy));
    }
    if report.statistics.failed > 0 {
        let errno = report.errno.map(|errno| format!(" (error {errno})")).unwrap_or_default();
        let text = format!(
            "{} orders to stop or resume co-runners were refused{errno}, and given again until they were taken",
            report.statistics.failed
        );
        warnings.push(warning("order-refused", text, "run as root, or choose another --stopper"));
    }
    if report.statistics.skipped > 0 {
        let text = format!(
            "the monitor checked the slack of {} periods not at all",
            report.statistics.skipped
        );
        let remedy = "run nothing above FIFO 90 on the monitor's CPUs; in a virtual machine, the host took them";
        warnings.push(warning("periods-skipped", text, remedy));
    }
    warnings
}

pub(super) fn page(page: &ProgressPage) -> &'static str {
    match (page.was_reported(), page.was_opened()) {
        (true, _) => "told",
        (false, true) => "opened",
        (false, false) => "not_opened",
    }
}

/// The warning that the command reported no progress: it could not, or did not.
pub(super) fn no_progress_warning(page: &ProgressPage, lost: Option<&LostPage>) -> Option<Warning> {
    if page.was_opened() {
        // Jobs without a report are counted.
        return None;
    }
    let (text, remedy) = match lost {
        Some(LostPage { pid, name, descriptor }) => (
            format!(
                "{name} (process {pid}) closed descriptor {descriptor}, on which the command was to report its progress: \
                 programs that it started could not report, and processor time counted instead"
            ),
            "start hourglass behind it (sudo -u USER hourglass reserve ...), or let it pass the descriptor on \
             (sudo -C, pass_fds=) and keep HOURGLASS_PROGRESS in the environment",
        ),
        None => (
            "the command never opened its page of progress, and processor time counted instead: either it reports no \
             progress, or the program that started it did not pass on the descriptor that HOURGLASS_PROGRESS names"
                .to_owned(),
            "report progress with hg_progress (C) or hourglass_reserve::progress::Progress (Rust); sudo and some launchers close descriptors \
             and clear the environment: start hourglass behind them",
        ),
    };
    Some(warning("progress-not-opened", text, remedy))
}

pub(super) fn spared(spared: &[(u32, ExemptReason)]) -> Option<Warning> {
    let list: Vec<String> = spared.iter().map(|(pid, why)| format!("{pid} ({why})")).collect();
    (!list.is_empty()).then(|| Warning {
        id: "not-stopped".to_owned(),
        text: format!("processes that were selected and are never stopped: {}", list.join(", ")),
        remedy: String::new(),
    })
}

/// A lock that co-runners may hold while they stand.
pub(super) fn shared(shared: &SharedResource) -> Warning {
    Warning {
        id: "shared-lock".to_owned(),
        text: shared.to_string(),
        remedy: "stop others, or keep locks out of what they share".to_owned(),
    }
}

pub(super) fn no_claim(shares: &SharingCpus, siblings: &CoRunnerSettings) -> Warning {
    let cpu = shares.cpu;
    let unshared = match &siblings.interference {
        SharingLevel::Siblings => format!("CPU {cpu} has no sibling"),
        what => format!("no CPU shares {what} with CPU {cpu}"),
    };
    Warning {
        id: "nobody-shares".to_owned(),
        text: format!("{unshared} ({}): no protection is claimed", shares.source),
        remedy: "--interferes llc, membw or a list of CPUs names others".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::smt::monitor::MonitorStatistics;

    use super::*;

    fn report(policy: SiblingPolicy) -> MonitorReport {
        MonitorReport {
            policy,
            covered: true,
            margin_ns: 5_000_000,
            first_margin_ns: 5_000_000,
            ..MonitorReport::default()
        }
    }

    /// A program that could not report progress was described as one that chose not to.
    #[test]
    fn a_page_that_was_never_opened_is_reported_with_its_cause() {
        let page = ProgressPage::create().unwrap();
        assert_eq!(super::page(&page), "not_opened");
        let text = no_progress_warning(&page, None).unwrap().text;
        assert!(text.contains("never opened"), "{text}");
        let lost = LostPage { pid: 4711, name: "sudo".into(), descriptor: 200 };
        let text = no_progress_warning(&page, Some(&lost)).unwrap().text;
        assert!(text.starts_with("sudo (process 4711) closed descriptor 200"), "{text}");
        // The bug: a name that its process chose moved the cursor of the terminal.
        let own = std::thread::spawn(|| {
            std::fs::write("/proc/thread-self/comm", "\x1b[2Jx").unwrap();
            LostPage::by(hourglass_sys::thread::id(), 200)
        });
        let text = no_progress_warning(&page, Some(&own.join().unwrap())).unwrap().text;
        assert!(text.starts_with("?[2Jx (process"), "{text}");
        crate::progress::Progress::on(page.try_clone().unwrap()).report(1, 3);
        assert_eq!(super::page(&page), "told");
        assert!(no_progress_warning(&page, Some(&lost)).is_none());
    }

    /// Each cause that takes the protection away yields a warning.
    #[test]
    fn each_reason_for_no_protection_is_reported() {
        let ids = |report: MonitorReport, broken, guarded| -> Vec<String> {
            after(&report, broken, 0, guarded).into_iter().map(|warning| warning.id).collect()
        };
        let good = report(SiblingPolicy::Monitor);
        assert_eq!(ids(good, 0, true), [""; 0]);
        assert_eq!(ids(good, 2, true), ["guardian-woke"]);
        assert_eq!(ids(good, 0, false), ["guardian-gone"]);
        let uncovered = MonitorReport { covered: false, ..good };
        assert_eq!(ids(uncovered, 0, true), ["not-covered"]);
        let text = &after(&uncovered, 0, 0, true)[0].text;
        assert!(text.contains("margin of 5ms"), "{text}");
        assert_eq!(after(&good, 0, 3, true)[0].id, "guardian-replaced");
        // A policy that only watches gives no guarantee.
        let watched = MonitorReport { covered: false, ..report(SiblingPolicy::Ignore) };
        assert_eq!(ids(watched, 0, true), [""; 0]);
        assert_eq!(ids(MonitorReport { margin_ns: 6_000_000, ..good }, 0, true), ["margin-grew"]);
        let counts = MonitorStatistics { failed: 3, skipped: 1, ..MonitorStatistics::default() };
        let troubled = MonitorReport { statistics: counts, errno: Some(1), ..good };
        assert_eq!(ids(troubled, 0, true), ["order-refused", "periods-skipped"]);
    }
}
