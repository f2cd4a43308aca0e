//! `unsafe` has one home, and each site says why it is sound.

use super::Finding;
use super::source::{Source, words};

/// The home of unsafe, and the skins whose foreign function interface cannot do without.
pub(super) const HOMES: &[&str] = &["crates/sys/", "crates/capi/", "python/"];

pub(super) fn check(path: &str, source: &Source) -> Vec<Finding> {
    let at_home = HOMES.iter().any(|home| path.starts_with(home));
    let lines = Lines::new(source);
    let mut findings = Vec::new();
    for offset in words(&source.code, "unsafe") {
        let line = source.line_of(offset);
        if !at_home {
            findings.push(Finding::broken(
                path,
                line,
                "`unsafe` outside its home",
                "move it to crates/sys behind a safe function",
            ));
        } else if wants_reason(&source.code[offset..]) && !lines.has_reason(line) {
            findings.push(Finding::broken(
                path,
                line,
                "`unsafe` without a reason",
                "say in a `// SAFETY:` comment directly above why it is sound",
            ));
        }
    }
    findings
}

/// Blocks and implementations promise something and say why it holds. An unsafe function or trait
/// asks for a promise instead; its `# Safety` section is clippy's to check.
fn wants_reason(code: &str) -> bool {
    let after = code["unsafe".len()..].trim_start();
    after.starts_with('{') || words(after, "impl").next() == Some(0)
}

struct Lines<'a> {
    code: Vec<&'a str>,
    comments: Vec<&'a str>,
}

impl<'a> Lines<'a> {
    fn new(source: &'a Source) -> Lines<'a> {
        Lines { code: source.code.lines().collect(), comments: source.comments.lines().collect() }
    }

    /// Whether line `line` (from 1), or the comment above its statement, has a reason. Attributes
    /// and the earlier lines of the same statement may stand between.
    fn has_reason(&self, line: usize) -> bool {
        let mut at = line - 1;
        if self.comments[at].contains("SAFETY:") {
            return true;
        }
        while at > 0 {
            at -= 1;
            let (code, comment) = (self.code[at].trim(), self.comments[at]);
            if code.is_empty() && comment.trim().is_empty() {
                return false;
            }
            if code.is_empty() && comment.contains("SAFETY:") {
                return true;
            }
            let ends_earlier = code.ends_with([';', '{', '}', ',']);
            if ends_earlier {
                return false;
            }
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, text: &str) -> Vec<usize> {
        let findings = check(path, &Source::new(text));
        findings.iter().map(|f| f.line).collect()
    }

    const AWAY: &str = "crates/clock/src/lib.rs";
    const HOME: &str = "crates/sys/src/lib.rs";

    #[test]
    fn unsafe_away_from_home_is_broken() {
        assert_eq!(broken(AWAY, "fn f() {\n    // SAFETY: no.\n    unsafe { g() }\n}"), [3]);
        assert_eq!(broken("bench/src/main.rs", "unsafe fn f() {}"), [1]);
    }

    #[test]
    fn the_word_elsewhere_is_not_unsafe() {
        let text = "#![forbid(unsafe_code)]\n// unsafe\nlet s = \"unsafe { }\";\nlet r = r#\"\"unsafe\"#;\n/* /* unsafe */ unsafe */";
        assert_eq!(broken(AWAY, text), []);
    }

    #[test]
    fn blocks_and_implementations_want_a_reason() {
        assert_eq!(broken(HOME, "fn f() {\n    unsafe { g() }\n}"), [2]);
        assert_eq!(broken(HOME, "unsafe impl Send for X {}"), [1]);
        assert_eq!(
            broken(HOME, "/// # Safety\nunsafe fn f() {}\n#[unsafe(no_mangle)]\nfn g() {}"),
            []
        );
    }

    #[test]
    fn a_reason_stands_above_the_statement_or_on_the_line() {
        let good = [
            "f(unsafe { g() }); // SAFETY: fine.",
            "// SAFETY: fine,\n// and long.\nunsafe { g() }",
            "/* SAFETY: fine. */ unsafe { g() }",
            "// SAFETY: fine.\nlet answer = checked(\n    unsafe { g() }\n);",
            "// SAFETY: fine.\n#[cfg(x)]\nunsafe impl Send for X {}",
        ];
        for text in good {
            assert_eq!(broken(HOME, text), [], "{text}");
        }
    }

    #[test]
    fn a_reason_does_not_reach_the_next_statement() {
        let text = "// SAFETY: fine.\nunsafe impl Send for X {}\nunsafe impl Sync for X {}";
        assert_eq!(broken(HOME, text), [3]);
        assert_eq!(broken(HOME, "// SAFETY: fine.\n\nunsafe { g() }"), [3]);
        assert_eq!(broken(HOME, "let s = \"SAFETY:\";\nunsafe { g() }"), [2]);
    }
}
