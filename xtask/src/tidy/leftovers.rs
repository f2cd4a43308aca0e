//! What is meant to go before anybody else reads it, beside what clippy denies: `todo!` and its kin, tests that are ignored
//! without a reason.

use super::Finding;
use super::files::File;
use super::source::{Source, words};

/// Words that say "not done", in code and comments.
const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];

const MERGE_MARKS: &[&str] = &["<<<<<<< ", ">>>>>>> "];

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

/// What a merge left in any file.
pub(super) fn merge_marks(file: &File) -> impl Iterator<Item = Finding> + '_ {
    let lines = (1..).zip(file.text.lines());
    lines.filter(|(_, line)| MERGE_MARKS.iter().any(|mark| line.starts_with(mark))).map(
        |(number, _)| {
            Finding::broken(
                &file.path,
                number,
                "a merge that was not finished",
                "take one side, or both",
            )
        },
    )
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
    fn an_unfinished_merge_is_found_in_any_file() {
        let text = "a\n<<<<<<< HEAD\nb\n=======\nc\n>>>>>>> other (a subject)\n > >>>>>>> \n";
        let file = File { path: "a.h".into(), text: text.into() };
        assert_eq!(merge_marks(&file).map(|f| f.line).collect::<Vec<_>>(), [2, 6]);
    }

    #[test]
    fn a_skipped_test_is_counted() {
        assert_eq!(broken("println!(\"skipped: no FIFO\");\neprintln!(\n\"skipped\")"), [1, 3]);
        assert_eq!(broken("let s = \"skipped\"; println!(\"2 skipped\"); // skipped"), []);
    }
}
