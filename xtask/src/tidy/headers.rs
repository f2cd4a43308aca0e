//! What the first lines of a crate say.

use super::Finding;
use super::files::File;
use super::source::Source;
use super::unsafety;

const ROOTS: &[&str] = &["src/lib.rs", "src/main.rs"];

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let packages = files.iter().filter_map(|file| file.path.strip_suffix("Cargo.toml"));
    let roots = packages.flat_map(|folder| ROOTS.iter().map(move |root| format!("{folder}{root}")));
    roots
        .filter_map(|path| files.iter().find(|file| file.path == path))
        .flat_map(check_root)
        .collect()
}

fn check_root(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if !file.text.starts_with("//!") {
        findings.push(Finding::broken(
            &file.path,
            1,
            "the crate has no header",
            "begin with a `//!` that says what it owns and what it must not do",
        ));
    }
    let is_ours = ["crates/", "papers/"].iter().any(|home| file.path.starts_with(home));
    let may_be_unsafe = unsafety::HOMES.iter().any(|home| file.path.starts_with(home));
    let code = Source::new(&file.text).code.replace([' ', '\n'], "");
    if is_ours && !may_be_unsafe && !code.contains("#![forbid(unsafe_code)]") {
        findings.push(Finding::broken(
            &file.path,
            1,
            "the crate does not forbid unsafe code",
            "write #![forbid(unsafe_code)] below the header",
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(folder: &str, text: &str) -> usize {
        let file = |name: &str, text: &str| File {
            path: format!("{folder}/{name}"),
            text: text.to_owned(),
        };
        check(&[file("Cargo.toml", ""), file("src/lib.rs", text)]).len()
    }

    #[test]
    fn a_crate_has_a_header_and_forbids_unsafe() {
        assert_eq!(broken("crates/time", "//! T.\n#![forbid(unsafe_code)]"), 0);
        assert_eq!(broken("crates/time", "//! T.\n// #![forbid(unsafe_code)]"), 1);
        assert_eq!(broken("crates/time", "mod a;"), 2);
        assert_eq!(broken("crates/sys", "//! S."), 0);
        assert_eq!(broken("bench", "//! B."), 0);
        assert_eq!(broken("bench", "mod a;"), 1);
    }
}
