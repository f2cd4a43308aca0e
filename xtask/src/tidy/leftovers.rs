//! What is meant to go before anybody else reads it, beside what clippy denies: `todo!` and its kin, tests that are ignored
//! without a reason.

use super::Finding;
use super::source::{Source, words};

/// Words that say "not done", in code and comments.
const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];

pub(super) fn check(path: &str, source: &Source) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut add = |offset, what: String, remedy| {
        findings.push(Finding::broken(path, source.line_of(offset), what, remedy));
    };
    for mark in MARKS {
        for view in [&source.code, &source.comments] {
            for offset in words(view, mark) {
                add(offset, format!("`{mark}`"), "do it, or open an issue");
            }
        }
    }
    for offset in printed_skips(source) {
        let remedy = "call hourglass_skip::skip, which counts it";
        add(offset, "a test that is skipped with no more than a line".into(), remedy);
    }
    findings
}

fn printed_skips(source: &Source) -> impl Iterator<Item = usize> + '_ {
    ["skipped", "SKIPPED", "not tested"].into_iter().flat_map(|begin| {
        let literals = words(&source.literals, begin);
        literals.filter(|at| {
            let before = source.code[..*at].strip_suffix('"');
            before.is_some_and(|before| before.trim_end().ends_with("println!("))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(text: &str) -> Vec<usize> {
        let findings = check("a.rs", &Source::new(text));
        findings.iter().map(|f| f.line).collect()
    }

    #[test]
    fn marks_are_found_in_comments_but_not_in_strings() {
        assert_eq!(broken("fn f() {}\n// TODO: more"), [2]);
        assert_eq!(broken("/* FIXME */\n/// XXX"), [1, 2]);
        assert_eq!(broken("let s = \"TODO\"; let XXXL = 1; // TODOS"), []);
    }

    #[test]
    fn a_skipped_test_is_counted() {
        assert_eq!(broken("println!(\"skipped: no FIFO\");\neprintln!(\n\"skipped\")"), [1, 3]);
        assert_eq!(broken("let s = \"skipped\"; println!(\"2 skipped\"); // skipped"), []);
    }
}
