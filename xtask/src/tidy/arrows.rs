//! Which crate may use which: the table of the architecture, held against every `Cargo.toml` and
//! against the page that shows it.

use super::Finding;
use super::files::File;
use super::manifest::{dependencies, entries};

/// A crate's folder, and the folders of the crates of ours that it uses and may use. Tests may use anything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("time", &[]),
    ("sys", &[]),
    ("skip", &[]),
    ("documents", &["time"]),
    ("trace", &["documents", "time"]),
    ("tasks", &["trace", "documents", "time"]),
    ("clock", &["sys", "time"]),
    ("timer", &["clock", "sys", "time"]),
    ("workload", &["trace", "tasks", "timer", "clock", "sys", "documents", "time"]),
    ("witness", &["trace", "clock", "sys", "documents", "time"]),
    ("tracing", &["witness", "time"]),
    ("sim", &["tasks", "documents"]),
    ("sched", &["sim", "tasks", "documents"]),
    ("runs", &["trace", "documents", "time"]),
    ("reserve", &["sched", "sim", "timer", "sys", "documents", "time"]),
    ("machine", &["workload", "timer", "clock", "sys", "documents", "time"]),
    (
        "measure",
        &[
            "machine",
            "workload",
            "witness",
            "reserve",
            "runs",
            "trace",
            "tasks",
            "clock",
            "sys",
            "documents",
            "time",
        ],
    ),
    (
        "theory",
        &[
            "measure",
            "workload",
            "sched",
            "sim",
            "runs",
            "trace",
            "tasks",
            "sys",
            "documents",
            "time",
        ],
    ),
    ("report", &["trace", "documents", "time"]),
    ("terminal", &["report", "documents"]),
    (
        "cli",
        &[
            "theory",
            "measure",
            "machine",
            "workload",
            "reserve",
            "sim",
            "runs",
            "terminal",
            "report",
            "trace",
            "tasks",
            "documents",
            "time",
        ],
    ),
    (
        "capi",
        &["measure", "workload", "witness", "reserve", "runs", "timer", "clock", "sys", "time"],
    ),
];

/// What lies beside `crates/`.
const BESIDE: [(&str, &[&str]); 2] = [
    (
        "python",
        &[
            "theory",
            "measure",
            "machine",
            "workload",
            "witness",
            "reserve",
            "sim",
            "runs",
            "trace",
            "tasks",
            "timer",
            "clock",
            "documents",
            "time",
        ],
    ),
    (
        "papers",
        &[
            "theory",
            "measure",
            "machine",
            "workload",
            "reserve",
            "sim",
            "terminal",
            "report",
            "trace",
            "tasks",
            "timer",
            "clock",
            "sys",
            "documents",
            "time",
        ],
    ),
];

/// The page that shows the arrows, and what stands between the two ends of one.
const PAGE: &str = "ARCHITECTURE.md";
const ARROW: &str = "-> ";

/// The package of `crates/x` is `hourglass-x`, but for the command.
const PREFIX: &str = "hourglass-";
const COMMAND: (&str, &str) = ("cli", "hourglass-rt");

/// Checks one `Cargo.toml`; the root's, the benchmarks' and this package's have no arrows.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let folder = path.trim_end_matches("/Cargo.toml");
    let row = match folder.strip_prefix("crates/") {
        Some(name) => MAY_USE.iter().find(|(row, _)| *row == name),
        None => match BESIDE.iter().find(|(row, _)| *row == folder) {
            None => return Vec::new(),
            row => row,
        },
    };
    let Some((name, allowed)) = row else {
        return vec![Finding::broken(
            path,
            1,
            format!("no arrows are known for `{folder}`"),
            "add its row to xtask/src/tidy/arrows.rs and to the architecture's table",
        )];
    };
    let mut findings = check_arrows(path, text, name, allowed);
    findings.extend(check_name(path, text, name));
    findings
}

/// Checks that the page shows these arrows, each once, and no other; and that each is one.
pub(super) fn check_table(files: &[File]) -> Vec<Finding> {
    let mut findings: Vec<Finding> = files.iter().flat_map(idle).collect();
    let Some(page) = files.iter().find(|file| file.path == PAGE) else { return findings };
    let remedy = "let it show what xtask/src/tidy/arrows.rs has";
    let rows = MAY_USE.iter().chain(&BESIDE).filter(|(_, uses)| !uses.is_empty());
    let mut missing: Vec<_> = rows.collect();
    for (line, (name, uses)) in shown(&page.text) {
        match missing.iter().position(|row| row.0 == name && row.1 == uses.as_slice()) {
            Some(at) => drop(missing.remove(at)),
            None => {
                let what = format!("`{name} {ARROW}{}` is not, or is there twice", uses.join(" "));
                findings.push(Finding::broken(PAGE, line, what, remedy));
            }
        }
    }
    let missing =
        missing.into_iter().map(|(name, _)| format!("the arrows of `{name}` are missing"));
    findings.extend(missing.map(|what| Finding::broken(PAGE, 1, what, remedy)));
    findings
}

/// What a package may use and does not.
fn idle(manifest: &File) -> Vec<Finding> {
    let folder = manifest.path.strip_suffix("/Cargo.toml").unwrap_or_default();
    let name = folder.strip_prefix("crates/").unwrap_or(folder);
    let row = MAY_USE.iter().chain(&BESIDE).find(|(row, _)| *row == name);
    let used = ours(&manifest.text);
    let idle = row.into_iter().flat_map(|(_, uses)| *uses);
    idle.filter(|one| !used.iter().any(|(name, _)| name == *one))
        .map(|one| {
            let what = format!("`{name}` does not use `{one}`");
            Finding::broken(&manifest.path, 1, what, "take it out of xtask/src/tidy/arrows.rs")
        })
        .collect()
}

/// Lines, counted from 1, that are a name, an arrow, and names.
fn shown(text: &str) -> Vec<(usize, (&str, Vec<&str>))> {
    let arrows = (1..).zip(text.lines()).filter_map(|(number, line)| {
        let (name, uses) = line.split_once(ARROW)?;
        let is_name = |word: &str| word.chars().all(|c| c.is_ascii_lowercase());
        let uses: Vec<&str> = uses.split_whitespace().collect();
        let (name, all) = (name.trim_end(), uses.iter().all(|word| is_name(word)));
        (!name.is_empty() && is_name(name) && all).then_some((number, (name, uses)))
    });
    arrows.collect()
}

fn check_arrows(path: &str, text: &str, name: &str, allowed: &[&str]) -> Vec<Finding> {
    let foreign = ours(text).into_iter().filter(|(used, _)| !allowed.contains(&used.as_str()));
    foreign
        .map(|(used, line)| {
            let allowed =
                if allowed.is_empty() { "nothing of ours".to_owned() } else { allowed.join(", ") };
            Finding::broken(
                path,
                line,
                format!("`{name}` must not use `{used}`"),
                &format!("it may use {allowed}"),
            )
        })
        .collect()
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

    fn lines(path: &str, text: &str) -> Vec<usize> {
        check(path, text).iter().map(|f| f.line).collect()
    }

    #[test]
    fn arrows_are_held() {
        let text = "[package]\nname = \"hourglass-clock\"\n[dependencies]\nhourglass-sys.workspace = true\nhourglass-documents.workspace = true\nlibc = \"1\"\n";
        assert_eq!(lines("crates/clock/Cargo.toml", text), [5]);
        let text = "[dependencies]\nhourglass-rt = { path = \"../cli\" }";
        assert_eq!(lines("crates/measure/Cargo.toml", text), [2]);
        assert_eq!(lines("papers/Cargo.toml", text), [2]);
    }

    #[test]
    fn tests_may_use_anything() {
        let text = "[dev-dependencies]\nhourglass-measure.workspace = true";
        assert_eq!(lines("crates/time/Cargo.toml", text), []);
    }

    #[test]
    fn a_crate_without_a_row_is_broken() {
        assert_eq!(lines("crates/utils/Cargo.toml", "[package]"), [1]);
        assert_eq!(lines("bench/Cargo.toml", "[dependencies]\nhourglass-measure = \"1\""), []);
    }

    #[test]
    fn a_package_has_its_folders_name() {
        let text = "[package]\nname = \"hourglass-clocks\"";
        assert_eq!(lines("crates/clock/Cargo.toml", text), [2]);
        let text = "[package]\nname = \"hourglass-rt\"";
        assert_eq!(lines("crates/cli/Cargo.toml", text), []);
    }

    #[test]
    fn the_page_shows_the_table() {
        let row = |(name, uses): &(&str, &[&str])| format!("{name}  {ARROW}{}\n", uses.join(" "));
        let rows = MAY_USE.iter().chain(&BESIDE).filter(|(_, uses)| !uses.is_empty());
        let rows: String = rows.map(row).collect();
        let found = |text: String| {
            let page = [File { path: PAGE.to_owned(), text }];
            check_table(&page).iter().map(|finding| finding.line).collect::<Vec<_>>()
        };
        assert_eq!(found(rows.clone()), []);
        assert_eq!(found(format!("{rows}clock -> time sys\na sentence -> of prose\n")).len(), 1);
        let clock = rows.lines().position(|row| row == "clock  -> sys time").unwrap() + 1;
        assert_eq!(found(rows.replace("clock  -> sys time", "clock  -> time")), [clock, 1]);
    }

    #[test]
    fn an_unused_arrow_is_found() {
        let idle = |uses: &[&str]| {
            let lines: String =
                uses.iter().map(|one| format!("hourglass-{one}.workspace = true\n")).collect();
            let text = format!("[dependencies]\n{lines}");
            check_table(&[File { path: "crates/clock/Cargo.toml".to_owned(), text }]).len()
        };
        assert_eq!((idle(&["sys", "time"]), idle(&["sys"]), idle(&[])), (0, 1, 2));
    }

    #[test]
    fn the_table_has_no_circle() {
        // Rows can be taken away one after the other, each using only what was taken before.
        let mut left: Vec<_> = MAY_USE.to_vec();
        let mut done: Vec<&str> = Vec::new();
        while !left.is_empty() {
            let free = left
                .iter()
                .position(|(_, uses)| uses.iter().all(|used| done.contains(used)))
                .expect("every remaining row uses another one");
            done.push(left.remove(free).0);
        }
    }
}
