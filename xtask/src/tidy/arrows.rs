//! Which crate may use which: the table of the architecture, held against every `Cargo.toml`.

use super::Finding;
use super::manifest::{dependencies, entries};

/// A crate's folder, and the folders of the crates of ours that it may use. `cli` also has the
/// crates whose types `lab` and `report` hand out. Tests may use anything.
const MAY_USE: &[(&str, &[&str])] = &[
    ("time", &[]),
    ("sys", &[]),
    ("model", &["time"]),
    ("clock", &["time", "sys"]),
    ("timer", &["clock", "time", "sys"]),
    ("workload", &["timer", "clock", "model", "time", "sys"]),
    ("infer", &["model", "time"]),
    ("sched", &["model", "time"]),
    ("store", &["model", "time"]),
    ("reserve", &["sched", "timer", "clock", "model", "time", "sys"]),
    (
        "lab",
        &[
            "workload", "reserve", "infer", "sched", "store", "timer", "clock", "sys", "model",
            "time",
        ],
    ),
    ("report", &["infer", "sched", "model", "time"]),
    ("cli", &["lab", "report", "store", "model", "time"]),
    ("capi", &["lab", "reserve", "timer", "clock", "time", "sys"]),
];

/// The Python package lies beside `crates/`.
const PYTHON: (&str, &[&str]) =
    ("python", &["lab", "report", "store", "sched", "timer", "clock", "time"]);

/// The package of `crates/x` is `hourglass-x`, but for the command.
const PREFIX: &str = "hourglass-";
const COMMAND: (&str, &str) = ("cli", "hourglass");

/// Checks one `Cargo.toml`; the root's, the benchmarks' and this package's have no arrows.
pub(super) fn check(path: &str, text: &str) -> Vec<Finding> {
    let folder = path.trim_end_matches("/Cargo.toml");
    let row = match folder.strip_prefix("crates/") {
        Some(name) => MAY_USE.iter().find(|(row, _)| *row == name),
        None if folder == PYTHON.0 => Some(&PYTHON),
        None => return Vec::new(),
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

fn check_arrows(path: &str, text: &str, name: &str, allowed: &[&str]) -> Vec<Finding> {
    let ours =
        dependencies(text).into_iter().filter_map(|d| Some((folder_of(&d.package)?, d.line)));
    ours.filter(|(used, _)| !allowed.contains(&used.as_str()))
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

fn check_name(path: &str, text: &str, folder: &str) -> Option<Finding> {
    let entries = entries(text);
    let entry = entries.iter().find(|e| e.table == "package" && e.key == "name")?;
    let package = entry.value.trim_matches('"');
    let right = folder == PYTHON.0 || folder_of(package).as_deref() == Some(folder);
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
        let text = "[package]\nname = \"hourglass-clock\"\n[dependencies]\nhourglass-sys.workspace = true\nhourglass-model.workspace = true\nlibc = \"1\"\n";
        assert_eq!(lines("crates/clock/Cargo.toml", text), [5]);
        let text = "[dependencies]\nhourglass = { path = \"../cli\" }";
        assert_eq!(lines("crates/lab/Cargo.toml", text), [2]);
    }

    #[test]
    fn tests_may_use_anything() {
        let text = "[dev-dependencies]\nhourglass-lab.workspace = true";
        assert_eq!(lines("crates/time/Cargo.toml", text), []);
    }

    #[test]
    fn a_crate_without_a_row_is_broken() {
        assert_eq!(lines("crates/utils/Cargo.toml", "[package]"), [1]);
        assert_eq!(lines("bench/Cargo.toml", "[dependencies]\nhourglass-lab = \"1\""), []);
    }

    #[test]
    fn a_package_has_its_folders_name() {
        let text = "[package]\nname = \"hourglass-clocks\"";
        assert_eq!(lines("crates/clock/Cargo.toml", text), [2]);
        let text = "[package]\nname = \"hourglass\"";
        assert_eq!(lines("crates/cli/Cargo.toml", text), []);
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
