//! `Cargo.toml` taken apart line by line, as far as the rules need it.

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TomlEntry {
    /// The table it stands in, as written: `dependencies`, `workspace.dependencies`.
    pub(super) table: String,
    /// The first part of its key: `libc` of `libc.workspace`.
    pub(super) key: String,
    /// The value's first line.
    pub(super) value: String,
    pub(super) line: usize,
    /// Whether a comment stands on the line, or is the line above.
    pub(super) reason: bool,
}

/// The entries of a TOML file. Values may span lines as long as they are arrays or tables.
pub(super) fn entries(text: &str) -> Vec<TomlEntry> {
    let mut entries = Vec::new();
    let mut table = String::new();
    let mut open = 0usize;
    let mut comment_above = false;
    for (index, line) in text.lines().enumerate() {
        let (content, comment) = split_comment(line);
        let content = content.trim();
        let continues = open > 0;
        if continues {
            open = open_brackets(content, open);
        } else if let Some(header) = content.strip_prefix('[') {
            table = header.trim_matches(['[', ']']).trim().to_owned();
        } else if let Some((key, value)) = content.split_once('=') {
            let key = key.split('.').next().unwrap_or(key);
            entries.push(TomlEntry {
                table: table.clone(),
                key: key.trim().trim_matches('"').to_owned(),
                value: value.trim().to_owned(),
                line: index + 1,
                reason: comment.is_some() || comment_above,
            });
            open = open_brackets(value, 0);
        }
        comment_above = content.is_empty() && comment.is_some();
    }
    entries
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Dependency {
    /// The package's name, not what it was renamed to.
    pub(super) package: String,
    pub(super) line: usize,
}

/// What a package is built with: `dependencies` and `build-dependencies`, of every target. Not
/// `dev-dependencies`, and not the workspace's list.
pub(super) fn dependencies(text: &str) -> Vec<Dependency> {
    let found = entries(text).into_iter().filter_map(|entry| {
        let named_by_table = dependency_table(&entry.table, &BUILT_WITH)?;
        let renamed = match (named_by_table, entry.key.as_str()) {
            ("", _) => inline_package(&entry.value),
            (_, "package") => Some(entry.value.trim_matches('"').to_owned()),
            _ => None,
        };
        let name = match named_by_table {
            "" => entry.key,
            name => name.to_owned(),
        };
        Some(Dependency { package: renamed.unwrap_or(name), line: entry.line })
    });
    let mut found: Vec<Dependency> = found.collect();
    // `[dependencies.x]` says x once for each of its keys.
    found.dedup_by(|a, b| a.package == b.package);
    found
}

/// What a package asks for, tests included, by the names that its code uses, and on which lines.
pub(super) fn asked_for(text: &str) -> Vec<(String, usize)> {
    let found = entries(text).into_iter().filter_map(|entry| {
        let name = match dependency_table(&entry.table, &ALL_KINDS)? {
            "" => entry.key,
            name => name.to_owned(),
        };
        Some((name, entry.line))
    });
    let mut found: Vec<(String, usize)> = found.collect();
    // `[dependencies.x]` says x once for each of its keys.
    found.dedup_by(|a, b| a.0 == b.0);
    found
}

const BUILT_WITH: [&str; 2] = ["dependencies", "build-dependencies"];

const ALL_KINDS: [&str; 3] = ["dependencies", "build-dependencies", "dev-dependencies"];

/// For a table of dependencies, the name in its header (`x` of `[dependencies.x]`) or nothing.
fn dependency_table<'a>(table: &'a str, kinds: &[&str]) -> Option<&'a str> {
    if table.starts_with("workspace.") {
        return None;
    }
    for kind in kinds {
        for (at, _) in table.match_indices(kind) {
            let begins = at == 0 || table[..at].ends_with('.');
            let after = &table[at + kind.len()..];
            if begins && after.is_empty() {
                return Some("");
            }
            if let (true, Some(name)) = (begins, after.strip_prefix('.')) {
                return Some(name);
            }
        }
    }
    None
}

/// `x` of `{ package = "x", … }`.
fn inline_package(value: &str) -> Option<String> {
    let (_, after) = value.split_once("package")?;
    let quoted = after.trim_start().strip_prefix('=')?.trim_start();
    quoted.split('"').nth(1).map(str::to_owned)
}

fn split_comment(line: &str) -> (&str, Option<&str>) {
    let mut quote = None;
    for (at, c) in line.char_indices() {
        match (quote, c) {
            (None, '"' | '\'') => quote = Some(c),
            (Some(open), c) if open == c => quote = None,
            (None, '#') => return (&line[..at], Some(&line[at..])),
            _ => {}
        }
    }
    (line, None)
}

fn open_brackets(content: &str, already: usize) -> usize {
    content.chars().fold(already, |open, c| match c {
        '[' | '{' => open + 1,
        ']' | '}' => open.saturating_sub(1),
        _ => open,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packages(text: &str) -> Vec<(String, usize)> {
        let found = dependencies(text).into_iter();
        found.map(|d| (d.package, d.line)).collect()
    }

    #[test]
    fn comments_differ_from_strings() {
        let text = "[a]\nx = \"# no\"\ny = 1 # yes\n# above\nz.w = 2\n\nlast = 3";
        let reasons: Vec<(String, bool)> =
            entries(text).into_iter().map(|e| (e.key, e.reason)).collect();
        let expected = [("x", false), ("y", true), ("z", true), ("last", false)];
        assert_eq!(reasons, expected.map(|(key, why)| (key.to_owned(), why)));
    }

    #[test]
    fn values_may_span_lines() {
        let text = "[a]\nx = [\n  \"b = 1\",\n  { c = 2 },\n]\ny = 1\n[[bin]]\nname = \"n\"";
        let found: Vec<(String, String, usize)> =
            entries(text).into_iter().map(|e| (e.table, e.key, e.line)).collect();
        let expected = [("a", "x", 2), ("a", "y", 6), ("bin", "name", 8)];
        assert_eq!(found, expected.map(|(t, k, l)| (t.to_owned(), k.to_owned(), l)));
    }

    #[test]
    fn dependencies_are_found_in_every_form() {
        let text = "\
[package]
name = \"p\"
[dependencies]
a.workspace = true
b = { package = \"real-b\", version = \"1\" }
[dependencies.c]
version = \"1\"
features = [\"x\"]
[dev-dependencies]
d = \"1\"
[target.'cfg(unix)'.dependencies]
e = \"1\"
[build-dependencies]
f = \"1\"
[workspace.dependencies]
g = \"1\"
";
        let expected = [("a", 4), ("real-b", 5), ("c", 7), ("e", 12), ("f", 14)];
        assert_eq!(packages(text), expected.map(|(p, l)| (p.to_owned(), l)));
    }

    #[test]
    fn a_renamed_table_counts_by_its_package() {
        let text = "[dependencies.x]\npackage = \"hourglass-sys\"\nversion = \"1\"";
        assert!(packages(text).contains(&("hourglass-sys".to_owned(), 2)));
    }
}
