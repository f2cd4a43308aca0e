//! The doctor's findings as people see them.

use crate::without_colours;
use hourglass_documents::doctor::{
    CheckEffect, CheckResult, CpuSelection, DOCTOR_SCHEMA, DoctorDocument, Status, StatusCounts,
};
use hourglass_report::text::{Style, doctor};

fn check(id: &str, status: Status, found: &str, remedy: &str) -> CheckResult {
    CheckResult {
        id: id.to_owned(),
        status,
        found: found.to_owned(),
        wanted: format!("what real-time work wants of {id}, and the reason for it in a few words"),
        remedy: remedy.to_owned(),
        effect: CheckEffect::default(),
    }
}

fn document(checks: Vec<CheckResult>) -> DoctorDocument {
    DoctorDocument {
        schema: DOCTOR_SCHEMA.to_owned(),
        cpus: [2, 3].into_iter().collect(),
        cpus_are: CpuSelection::Asked,
        counts: StatusCounts::count(&checks),
        checks,
        differences: None,
    }
}

fn laptop() -> DoctorDocument {
    document(vec![
        check("clock-source", Status::Ok, "tsc", ""),
        check("tracing", Status::Unknown, "permission denied", "sudo hourglass doctor"),
        check(
            "rt-throttling",
            Status::Warn,
            "real-time threads that never wait are stopped for 50ms in every 1s",
            "sudo sysctl kernel.sched_rt_runtime_us=-1 # a real-time thread that never waits can \
             then hang its CPU",
        ),
        check("transparent-huge-pages", Status::Ok, "madvise", ""),
        check("rtprio", Status::Fail, "refused", "ulimit -r 99 # in the shell that starts it"),
    ])
}

/// The greatest effect first, whatever the order of the checks; one alone is no choice.
#[test]
fn the_three_that_matter_most_are_at_the_top() {
    let mut document = laptop();
    for (place, rank) in [(2, 2), (4, 1)] {
        let words =
            "stalls of 50 to 54ms in each second of a thread that never waits; measured here";
        let effect =
            CheckEffect { ns: Some(54_000_000), words: words.to_owned(), rank: Some(rank) };
        document.checks[place].effect = effect;
    }
    let text = doctor(&document, Style::Plain);
    let top = text.split("\n\n").nth(1).unwrap();
    assert!(top.starts_with("Matters most:\n  1  rtprio: stalls"), "{text}");
    assert!(top.contains("\n  2  rt-throttling: stalls"), "{text}");
    assert!(top.contains("\n     ulimit -r 99 #"), "{text}");
    assert!(top.lines().all(|line| line.contains("sudo") || line.chars().count() <= 80), "{text}");
    assert_eq!(text.matches("effect: stalls").count(), 2, "{text}");
    document.checks[2].effect.rank = None;
    assert!(!doctor(&document, Style::Plain).contains("Matters most"));
}

/// The worst first; a remedy stands alone on its line, however long, so that it can be copied.
#[test]
fn worst_first_with_remedies_to_copy() {
    let text = doctor(&laptop(), Style::Plain);
    insta::assert_snapshot!("doctor", text);
    let remedies: Vec<String> =
        laptop().checks.into_iter().map(|check| check.remedy).filter(|r| !r.is_empty()).collect();
    for line in text.lines() {
        let is_remedy = remedies.iter().any(|remedy| line.trim() == remedy);
        assert!(is_remedy || line.chars().count() <= 80, "{line}");
    }
    for remedy in &remedies {
        assert!(text.lines().any(|line| line.trim() == remedy), "{remedy}");
    }
}

#[test]
fn colours_follow_the_status() {
    let text = doctor(&laptop(), Style::Colour);
    let starts = |word: &str| text.lines().find(|line| line.contains(word)).unwrap();
    assert!(starts("fail").starts_with("\u{1b}[1m\u{1b}[31mfail"), "{:?}", starts("fail"));
    assert!(starts("warn").starts_with("\u{1b}[33mwarn"), "{:?}", starts("warn"));
    assert!(text.contains("\u{1b}[32mok\u{1b}[0m"));
    let plain = without_colours(&text);
    assert_eq!(plain, doctor(&laptop(), Style::Plain));
}

/// Names of devices come from the machine.
#[test]
fn nothing_reaches_the_terminal_that_it_would_obey() {
    let found = "24 \u{1b}[2Jeth0\nrm";
    let text = doctor(&document(vec![check("x", Status::Warn, found, found)]), Style::Plain);
    assert!(!text.contains('\u{1b}'), "{text:?}");
    assert!(text.contains("24 [2Jeth0 rm"), "{text:?}");
}
