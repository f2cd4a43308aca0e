//! Files and functions that one can still read.

use super::files::File;
use super::source::Source;
use super::{Finding, Severity};

struct Limit {
    note: usize,
    broken: usize,
    remedy: &'static str,
}

const FILE: Limit = Limit { note: 500, broken: 600, remedy: "split it by noun" };

const FUNCTION: Limit = Limit { note: 70, broken: 90, remedy: "name its parts" };

/// What people write by hand. Documents and data may be long.
const WRITTEN_BY_HAND: &[&str] = &[".rs", ".py", ".sh", ".c", ".cpp"];

pub(super) fn check_file(file: &File) -> Option<Finding> {
    let ours = WRITTEN_BY_HAND.iter().any(|end| file.path.ends_with(end));
    let lines = file.text.lines().count();
    ours.then(|| FILE.judge(&file.path, 1, "the file", lines))?
}

pub(super) fn check_functions(path: &str, source: &Source) -> Vec<Finding> {
    let judge = |f: super::source::Function| {
        FUNCTION.judge(path, f.line, &format!("function `{}`", f.name), f.length)
    };
    source.functions().into_iter().filter_map(judge).collect()
}

impl Limit {
    fn judge(&self, path: &str, line: usize, what: &str, lines: usize) -> Option<Finding> {
        let (weight, limit) = match lines {
            n if n > self.broken => (Severity::Broken, self.broken),
            n if n > self.note => (Severity::Note, self.note),
            _ => return None,
        };
        Some(Finding {
            weight,
            ..Finding::broken(
                path,
                line,
                format!("{what} has {lines} lines, more than {limit}"),
                self.remedy,
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight_of_file(path: &str, lines: usize) -> Option<Severity> {
        let file = File { path: path.into(), text: "x\n".repeat(lines) };
        check_file(&file).map(|f| f.weight)
    }

    fn weight_of_function(lines: usize) -> Option<Severity> {
        let body = "    f(\"}\");\n".repeat(lines - 2);
        let source = Source::new(&format!("fn long() {{\n{body}}}\n"));
        check_functions("a.rs", &source).first().map(|f| f.weight)
    }

    #[test]
    fn long_files_are_noted_and_longer_ones_fail() {
        assert_eq!(weight_of_file("a.rs", 500), None);
        assert_eq!(weight_of_file("a.rs", 501), Some(Severity::Note));
        assert_eq!(weight_of_file("a.rs", 600), Some(Severity::Note));
        assert_eq!(weight_of_file("a.rs", 601), Some(Severity::Broken));
        assert_eq!(weight_of_file("Cargo.lock", 5000), None);
    }

    #[test]
    fn long_functions_are_noted_and_longer_ones_fail() {
        assert_eq!(weight_of_function(70), None);
        assert_eq!(weight_of_function(71), Some(Severity::Note));
        assert_eq!(weight_of_function(90), Some(Severity::Note));
        assert_eq!(weight_of_function(91), Some(Severity::Broken));
    }
}
