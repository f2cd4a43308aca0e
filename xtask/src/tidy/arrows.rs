//! Which crate may use which: the table of the architecture's page, held against every `Cargo.toml`.
//! Tests may use anything.

use super::Finding;
use super::files::File;
use super::manifest::{dependencies, entries};

/// Crates that use none of ours, which the page does not show.
const ALONE: [&str; 4] = ["time", "sys", "skip", "dice"];

/// What lies beside `crates/` and has arrows.
const BESIDE: [&str; 2] = ["python", "papers"];

const PAGE: &str = "ARCHITECTURE.md";
const ARROW: &str = "-> ";

/// The package of `crates/x` is `hourglass-x`, but for the command.
const PREFIX: &str = "hourglass-";
const COMMAND: (&str, &str) = ("cli", "hourglass-rt");

/// A line of the page: a name, an arrow, and names.
struct Row<'a> {
    line: usize,
    name: &'a str,
    uses: Vec<&'a str>,
}

/// Checks that each package uses what its row has and nothing else of ours, and that rows are there once.
pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let page = files.iter().find(|file| file.path == PAGE).map_or("", |page| &page.text);
    let rows = rows(page);
    let mut findings: Vec<Finding> =
        files.iter().flat_map(|file| check_manifest(file, &rows)).collect();
    for (at, Row { line, name, .. }) in rows.iter().enumerate() {
        if rows[..at].iter().any(|earlier| earlier.name == *name) {
            let what = format!("the arrows of `{name}` are there twice");
            findings.push(Finding::broken(PAGE, *line, what, "take one row out"));
        }
    }
    findings
}

fn rows(page: &str) -> Vec<Row<'_>> {
    let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase());
    let rows = (1..).zip(page.lines()).filter_map(|(line, text)| {
        let (name, uses) = text.split_once(ARROW)?;
        let (name, uses) = (name.trim_end(), uses.split_whitespace().collect::<Vec<_>>());
        let good = !name.is_empty() && is_name(name) && uses.iter().all(|word| is_name(word));
        good.then_some(Row { line, name, uses })
    });
    rows.collect()
}

/// The root's manifest, the benchmarks' and this package's have no arrows.
fn check_manifest(File { path, text }: &File, rows: &[Row<'_>]) -> Vec<Finding> {
    let Some(folder) = path.strip_suffix("/Cargo.toml") else { return Vec::new() };
    let name = match folder.strip_prefix("crates/") {
        Some(name) => name,
        None if BESIDE.contains(&folder) => folder,
        None => return Vec::new(),
    };
    let row = rows.iter().find(|row| row.name == name);
    if row.is_none() && !ALONE.contains(&name) {
        let what = format!("no arrows are known for `{folder}`");
        return vec![Finding::broken(path, 1, what, "add its row to ARCHITECTURE.md")];
    }
    let allowed = row.map_or(&[][..], |row| &row.uses);
    let used = ours(text);
    let mut findings = Vec::new();
    for (one, line) in used.iter().filter(|(one, _)| !allowed.contains(&one.as_str())) {
        let list = if allowed.is_empty() { "nothing of ours" } else { &allowed.join(", ") };
        let (what, may) = (format!("`{name}` must not use `{one}`"), format!("it may use {list}"));
        findings.push(Finding::broken(path, *line, what, &may));
    }
    for one in allowed.iter().filter(|one| !used.iter().any(|(used, _)| used == *one)) {
        let what = format!("`{name}` does not use `{one}`");
        findings.push(Finding::broken(path, 1, what, "take it out of its row in ARCHITECTURE.md"));
    }
    findings.extend(check_name(path, text, name));
    findings
}

/// The folders of the crates of ours that a package is built with, and on which lines it says so.
fn ours(text: &str) -> Vec<(String, usize)> {
    let all = dependencies(text).into_iter();
    all.filter_map(|d| Some((folder_of(&d.package)?, d.line))).collect()
}

fn check_name(path: &str, text: &str, folder: &str) -> Option<Finding> {
    let entries = entries(text);
    let entry = entries.iter().find(|e| e.table == "package" && e.key == "name")?;
    let package = entry.value.trim_matches('"');
    let right = folder == "python" || folder_of(package).as_deref() == Some(folder);
    (!right).then(|| {
        Finding::broken(
            path,
            entry.line,
            format!("package `{package}` lies in crates/{folder}"),
            &format!("name it {PREFIX}{folder}"),
        )
    })
}

fn folder_of(package: &str) -> Option<String> {
    if package == COMMAND.1 {
        return Some(COMMAND.0.to_owned());
    }
    package.strip_prefix(PREFIX).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROWS: &str = "clock -> sys time\nmeasure -> clock\npapers -> clock\ncli  -> sys\n";

    fn found(page: &str, path: &str, text: &str) -> Vec<usize> {
        let file = |path: &str, text: &str| File { path: path.to_owned(), text: text.to_owned() };
        let findings = check(&[file(PAGE, page), file(path, text)]);
        findings.iter().map(|f| f.line).collect()
    }

    fn lines(path: &str, text: &str) -> Vec<usize> {
        let mut lines = found(ROWS, path, text);
        lines.retain(|line| *line > 1); // what is allowed and not used
        lines
    }

    #[test]
    fn arrows_are_held() {
        let text = "[package]\nname = \"hourglass-clock\"\n[dependencies]\nhourglass-sys.workspace = true\nhourglass-documents.workspace = true\nlibc = \"1\"\n";
        assert_eq!(lines("crates/clock/Cargo.toml", text), [5]);
        let text = "[dependencies]\nhourglass-rt = { path = \"../cli\" }";
        assert_eq!(lines("crates/measure/Cargo.toml", text), [2]);
        assert_eq!(lines("papers/Cargo.toml", text), [2]);
        assert_eq!(lines("crates/time/Cargo.toml", text), [2]);
    }

    #[test]
    fn tests_may_use_anything() {
        let text = "[dev-dependencies]\nhourglass-measure.workspace = true";
        assert_eq!(found(ROWS, "crates/time/Cargo.toml", text), []);
    }

    #[test]
    fn a_crate_without_a_row_is_broken() {
        assert_eq!(found(ROWS, "crates/utils/Cargo.toml", "[package]"), [1]);
        let text = "[dependencies]\nhourglass-measure = \"1\"";
        assert_eq!(found(ROWS, "bench/Cargo.toml", text), []);
    }

    #[test]
    fn a_package_has_its_folders_name() {
        let text = "[package]\nname = \"hourglass-clocks\"";
        assert_eq!(lines("crates/clock/Cargo.toml", text), [2]);
        let text = "[package]\nname = \"hourglass-rt\"";
        assert_eq!(lines("crates/cli/Cargo.toml", text), []);
    }

    #[test]
    fn a_row_is_there_once_and_each_arrow_is_used() {
        let broken = |uses: &[&str], page: &str| {
            let lines: String =
                uses.iter().map(|one| format!("hourglass-{one}.workspace = true\n")).collect();
            found(page, "crates/clock/Cargo.toml", &format!("[dependencies]\n{lines}")).len()
        };
        assert_eq!(["sys", "time"].map(|one| broken(&[one], ROWS)), [1, 1]);
        assert_eq!((broken(&["sys", "time"], ROWS), broken(&[], ROWS)), (0, 2));
        let twice = format!("{ROWS}clock -> time sys\na sentence -> of prose\n");
        assert_eq!(broken(&["sys", "time"], &twice), 1);
    }
}
