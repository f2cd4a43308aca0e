//! What is meant to go before anybody else reads it.

use super::Finding;
use super::source::{Source, words};

/// Words that say "not done", in code and comments.
const MARKS: &[&str] = &["TODO", "FIXME", "XXX"];

const MACROS: &[&str] = &["todo!", "unimplemented!", "dbg!"];

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
    for name in MACROS {
        for offset in macro_calls(&source.code, name) {
            add(offset, format!("`{name}`"), "finish it or remove it");
        }
    }
    for offset in printed_skips(source) {
        let remedy = "call hourglass_skip::skip, which counts it";
        add(offset, "a test that is skipped with no more than a line".into(), remedy);
    }
    for offset in unexplained_ignores(&source.code) {
        add(offset, "a test is ignored without a reason".into(), "write #[ignore = \"why\"]");
    }
    findings
}

fn macro_calls<'a>(code: &'a str, name: &'a str) -> impl Iterator<Item = usize> + 'a {
    let word = name.trim_end_matches('!');
    words(code, word).filter(move |at| code[at + word.len()..].starts_with('!'))
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

/// Attributes `ignore` without `= "why"`, alone or in a `cfg_attr`.
fn unexplained_ignores(code: &str) -> impl Iterator<Item = usize> + '_ {
    words(code, "ignore").filter(|at| {
        let before = code[..*at].trim_end();
        let after = code[at + "ignore".len()..].trim_start();
        let alone = before.ends_with("#[");
        let line = before.rsplit('\n').next().unwrap_or_default();
        let in_cfg_attr = line.contains("#[cfg_attr(") && before.ends_with(',');
        let empty =
            after.strip_prefix('=').is_some_and(|value| value.trim_start().starts_with("\"\""));
        (alone && (empty || after.starts_with(']')))
            || (in_cfg_attr && (empty || after.starts_with(')')))
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
    fn macros_are_found_in_code_only() {
        assert_eq!(broken("todo!()\nunimplemented!()\ndbg!(x)"), [1, 2, 3]);
        assert_eq!(broken("// dbg!(x)\nlet s = \"todo!()\"; mydbg!(x); dbg != x"), []);
    }

    #[test]
    fn a_skipped_test_is_counted() {
        assert_eq!(broken("println!(\"skipped: no FIFO\");\neprintln!(\n\"skipped\")"), [1, 3]);
        assert_eq!(broken("let s = \"skipped\"; println!(\"2 skipped\"); // skipped"), []);
    }

    #[test]
    fn an_ignored_test_says_why() {
        assert_eq!(broken("#[ignore]\nfn f() {}"), [1]);
        assert_eq!(broken("#[ignore = \"\"]\nfn f() {}"), [1]);
        assert_eq!(broken("#[cfg_attr(x, ignore)]\nfn f() {}"), [1]);
        assert_eq!(broken("#[ignore = \"takes an hour\"]\nfn ignore() {}"), []);
        assert_eq!(broken("#[cfg_attr(x, ignore = \"why\")]\nfn f() { g(a, ignore) }"), []);
    }
}
