//! Paths that exist on one machine only.

use super::Finding;
use super::files::File;

/// Folders at the root of a developer's machine.
const PRIVATE_FOLDERS: &[&str] = &["work", "root"];

const HOMES: &str = "home";

pub(super) fn check(file: &File) -> Vec<Finding> {
    let lines = file.text.lines().enumerate();
    let found = lines.filter_map(|(index, line)| Some((index + 1, machine_path(line)?)));
    found
        .map(|(line, path)| {
            Finding::broken(
                &file.path,
                line,
                format!("`{path}` exists on one machine only"),
                "write a path relative to the repository, or a variable",
            )
        })
        .collect()
}

fn machine_path(line: &str) -> Option<String> {
    let starts = line.match_indices('/').map(|(at, _)| at);
    starts.filter(|at| begins_path(&line[..*at])).find_map(|at| {
        let mut parts = line[at + 1..].splitn(3, '/');
        let (first, second) = (parts.next()?, parts.next()?);
        if PRIVATE_FOLDERS.contains(&first) {
            return Some(format!("/{first}/"));
        }
        let in_home = first == HOMES && is_name(second) && parts.next().is_some();
        in_home.then(|| format!("/{first}/{second}/"))
    })
}

/// Whether a `/` after this text begins an absolute path: not after a name, a dot, a variable.
fn begins_path(before: &str) -> bool {
    !before.ends_with(|c: char| c.is_alphanumeric() || "_-.~/})]>*$".contains(c))
}

fn is_name(text: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    !text.is_empty() && text.chars().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    // Written with `format!`, or this file would break its own rule.
    fn found(before: &str, folders: &[&str], after: &str) -> bool {
        let line = format!("{before}/{}/{after}", folders.join("/"));
        machine_path(&line).is_some()
    }

    #[test]
    fn machine_paths_are_found() {
        assert!(found("cd ", &["work"], "main"));
        assert!(found("\"", &["root"], ""));
        assert!(found("x=", &["home", "ann"], "src"));
        assert!(found("a/b ", &["home", "j.doe"], ""));
    }

    #[test]
    fn other_paths_are_not() {
        assert!(!found("https://example.org", &["work"], "x"));
        assert!(!found("$DIR", &["root"], "x"));
        assert!(!found("../", &["work"], "x"));
        assert!(!found("", &["home", "<name>"], "x"));
        assert!(!found("", &["workshop"], "x"));
        assert!(machine_path("work/root/home/x/").is_none());
    }
}
