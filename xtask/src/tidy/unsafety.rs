//! `unsafe` has one home. That each site says why it is sound is clippy's to check (`undocumented_unsafe_blocks`).

use super::Finding;
use super::source::{Source, words};

/// The home of unsafe, and the skins whose foreign function interface cannot do without.
pub(super) const HOMES: &[&str] = &["crates/sys/", "crates/capi/", "python/"];

pub(super) fn is_home(path: &str) -> bool {
    path.ends_with(".rs") && HOMES.iter().any(|home| path.starts_with(home))
}

/// Lines of code with the word.
pub(super) fn lines(source: &Source) -> usize {
    let lines = words(&source.code, "unsafe").map(|at| source.line_of(at));
    lines.collect::<std::collections::BTreeSet<_>>().len()
}

pub(super) fn check(path: &str, source: &Source) -> Vec<Finding> {
    if is_home(path) {
        return Vec::new();
    }
    let remedy = "move it to crates/sys behind a safe function";
    words(&source.code, "unsafe")
        .map(|at| Finding::broken(path, source.line_of(at), "`unsafe` outside its home", remedy))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<usize> {
        let findings = check(path, &Source::new(text));
        findings.iter().map(|f| f.line).collect()
    }

    const AWAY: &str = "crates/clock/src/lib.rs";

    #[test]
    fn unsafe_away_from_home_is_broken() {
        assert_eq!(broken(AWAY, "fn f() {\n    // SAFETY: no.\n    unsafe { g() }\n}"), [3]);
        assert_eq!(broken("bench/src/main.rs", "unsafe fn f() {}"), [1]);
        assert_eq!(broken("crates/sys/src/lib.rs", "unsafe fn f() {}"), []);
    }

    #[test]
    fn the_word_elsewhere_is_not_unsafe() {
        let text = "#![forbid(unsafe_code)]\n// unsafe\nlet s = \"unsafe { }\";\nlet r = r#\"\"unsafe\"#;\n/* /* unsafe */ unsafe */";
        assert_eq!(broken(AWAY, text), []);
    }
}
