//! How many lines of Rust each package may have, and how many of them with `unsafe`: `xtask/size.toml`.
//!
//! Numbers only fall. A commit that raises one says why in its message.

use std::collections::BTreeMap;

use super::Finding;
use super::files::File;
use super::source::Source;
use super::unsafety;

const TABLE: &str = "xtask/size.toml";

/// The part of the table about lines with `unsafe`.
const UNSAFE: &str = "[unsafe]";

/// A package above this share of the whole is split: one part in so many.
const LARGEST: usize = 10;

const RAISE: &str =
    "take away what this makes superfluous; or raise it, and say why in the commit's message";

/// Holds every package against its row. A tree without the table is not judged.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let Some(table) = files.iter().find(|file| file.path == TABLE) else { return Vec::new() };
    let mut sizes: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files.iter().filter(|file| file.path.ends_with(".rs")) {
        *sizes.entry(package(&file.path)).or_default() += file.text.lines().count();
    }
    let whole: usize = sizes.values().sum();
    let mut findings = Vec::new();
    let (rows, unsafe_rows) = table.text.split_once(UNSAFE).unwrap_or((&table.text, ""));
    for (number, line) in (1..).zip(rows.lines()) {
        let Some((name, most)) = row(line) else { continue };
        let Some(lines) = sizes.remove(name) else {
            let what = format!("there is no package `{name}`");
            findings.push(Finding::broken(TABLE, number, what, "take the row out"));
            continue;
        };
        if most.is_none_or(|most| lines > most) {
            let what = format!("`{name}` has {lines} lines of Rust, more than its row allows");
            findings.push(Finding::broken(TABLE, number, what, RAISE));
        }
        if lines * LARGEST > whole {
            let what = format!("`{name}` has {lines} of {whole} lines, more than a tenth");
            let note = Finding::broken(TABLE, number, what, "split it by what it depends on");
            findings.push(Finding { weight: super::Severity::Note, ..note });
        }
    }
    findings.extend(sizes.into_keys().map(|name| {
        let what = format!("`{name}` has no row");
        Finding::broken(TABLE, 1, what, "add it, two per cent above what it has")
    }));
    findings.extend(check_unsafe(files, unsafe_rows, rows.lines().count()));
    findings
}

/// Holds the packages that may have `unsafe` against their rows, which begin behind line `above` of the table.
fn check_unsafe(files: &[File], rows: &str, above: usize) -> Vec<Finding> {
    let most: BTreeMap<&str, (usize, Option<usize>)> = (above..)
        .zip(rows.lines())
        .filter_map(|(number, line)| row(line).map(|(name, most)| (name, (number, most))))
        .collect();
    let mut lines: BTreeMap<&str, usize> = BTreeMap::new();
    for file in files.iter().filter(|file| unsafety::is_home(&file.path)) {
        *lines.entry(package(&file.path)).or_default() += unsafety::lines(&Source::new(&file.text));
    }
    let broken = |(name, lines): (&str, usize)| {
        let (number, most) = most.get(name).copied().unwrap_or((1, Some(0)));
        let what = format!("`{name}` has {lines} lines with `unsafe`, more than its row allows");
        most.is_none_or(|most| lines > most).then(|| Finding::broken(TABLE, number, what, RAISE))
    };
    lines.into_iter().filter_map(broken).collect()
}

/// The folder of a package: `crates/clock`, `bench`.
fn package(path: &str) -> &str {
    let parts = if path.starts_with("crates/") { 2 } else { 1 };
    path.match_indices('/').nth(parts - 1).map_or(path, |(end, _)| &path[..end])
}

/// `"crates/clock" = 16_700 # why`: name and number; no number is one that cannot be kept.
fn row(line: &str) -> Option<(&str, Option<usize>)> {
    let line = line.split('#').next()?;
    let (name, most) = line.split_once('=')?;
    Some((name.trim().trim_matches('"'), most.trim().replace('_', "").parse().ok()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(table: &str) -> Vec<String> {
        let file = |path: &str, lines: usize| File { path: path.into(), text: "x\n".repeat(lines) };
        let mut files: Vec<File> =
            (0..9).map(|n| file(&format!("crates/c{n}/src/lib.rs"), 10)).collect();
        files.extend([file("bench/src/main.rs", 5), file("bench/src/a/b.rs", 5)]);
        let rows: String = (0..9).map(|n| format!("\"crates/c{n}\" = 10\n")).collect();
        files.push(File { path: TABLE.into(), text: format!("{rows}{table}\n") });
        check(&files).into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn a_package_keeps_to_its_row() {
        assert_eq!(findings("bench = 10"), [""; 0]);
        assert_eq!(findings("bench = 1_000 # why"), [""; 0]);
        assert_eq!(
            findings("bench = 9"),
            ["`bench` has 10 lines of Rust, more than its row allows"]
        );
        assert_eq!(
            findings("bench = many"),
            ["`bench` has 10 lines of Rust, more than its row allows"]
        );
        assert_eq!(findings(""), ["`bench` has no row"]);
        let unsafe_code = |row: &str| {
            let text = "unsafe fn f() {}\n// unsafe\nfn g() { unsafe { f() } }\n";
            let sys = File { path: "crates/sys/src/lib.rs".into(), text: text.into() };
            let rows = format!("\"crates/sys\" = 9\n[unsafe]\n{row}");
            let table = File { path: TABLE.into(), text: rows };
            check(&[sys, table]).into_iter().map(|finding| finding.what).collect::<Vec<_>>()
        };
        let note = "`crates/sys` has 3 of 3 lines, more than a tenth";
        let more = "`crates/sys` has 2 lines with `unsafe`, more than its row allows";
        assert_eq!(unsafe_code("\"crates/sys\" = 2"), [note]);
        assert_eq!(unsafe_code("\"crates/sys\" = 1"), [note, more]);
        assert_eq!(unsafe_code(""), [note, more]);
        assert_eq!(findings("bench = 10\nfuzz = 1"), ["there is no package `fuzz`"]);
        assert_eq!(findings("bench = 10\n\"crates/c1\" = 10").len(), 1, "a row twice");
    }
}
