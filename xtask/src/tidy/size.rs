//! Files that one can still read. Functions are clippy's to measure (`too_many_lines`).

use super::files::File;
use super::{Finding, Severity};

const NOTE: usize = 500;
const BROKEN: usize = 600;

/// What people write by hand. Documents and data may be long.
const WRITTEN_BY_HAND: &[&str] = &[".rs", ".py", ".sh", ".c", ".cpp"];

pub(super) fn check(file: &File) -> Option<Finding> {
    let lines = file.text.lines().count();
    let (weight, limit) = match lines {
        n if n > BROKEN => (Severity::Broken, BROKEN),
        n if n > NOTE => (Severity::Note, NOTE),
        _ => return None,
    };
    let what = format!("the file has {lines} lines, more than {limit}");
    let finding = Finding { weight, ..Finding::broken(&file.path, 1, what, "split it by noun") };
    WRITTEN_BY_HAND.iter().any(|end| file.path.ends_with(end)).then_some(finding)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn weight_of_file(path: &str, lines: usize) -> Option<Severity> {
        let file = File { path: path.into(), text: "x\n".repeat(lines) };
        check(&file).map(|f| f.weight)
    }

    #[test]
    fn long_files_are_noted_and_longer_ones_fail() {
        assert_eq!(weight_of_file("a.rs", 500), None);
        assert_eq!(weight_of_file("a.rs", 501), Some(Severity::Note));
        assert_eq!(weight_of_file("a.rs", 600), Some(Severity::Note));
        assert_eq!(weight_of_file("a.rs", 601), Some(Severity::Broken));
        assert_eq!(weight_of_file("Cargo.lock", 5000), None);
    }
}
