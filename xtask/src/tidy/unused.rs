//! Dependencies that no code names any more.
//!
//! A package may be asked for only by the text of its sources: one that is needed for nothing but a
//! feature of another package has no place in this workspace so far.

use super::Finding;
use super::files::File;
use super::manifest::{asked_for, entries};

const ROOT: &str = "Cargo.toml";

pub(super) fn check(files: &[File]) -> Vec<Finding> {
    let manifests = files.iter().filter(|file| file.path.ends_with("/Cargo.toml"));
    let mut findings: Vec<Finding> =
        manifests.clone().flat_map(|manifest| check_package(manifest, files)).collect();
    let asked: Vec<String> =
        manifests.flat_map(|manifest| asked_for(&manifest.text)).map(|(name, _)| name).collect();
    let root = files.iter().find(|file| file.path == ROOT);
    let listed = root.into_iter().flat_map(|root| entries(&root.text));
    for entry in listed.filter(|entry| entry.table == "workspace.dependencies") {
        if !asked.contains(&entry.key) && !entry.key.starts_with("hourglass") {
            let what = format!("no package asks for `{}`", entry.key);
            findings.push(Finding::broken(ROOT, entry.line, what, "take it out of the list"));
        }
    }
    findings
}

fn check_package(manifest: &File, files: &[File]) -> Vec<Finding> {
    let folder = manifest.path.trim_end_matches("Cargo.toml");
    let sources: Vec<&str> = files
        .iter()
        .filter(|file| file.path.starts_with(folder) && file.path.ends_with(".rs"))
        .map(|file| file.text.as_str())
        .collect();
    let is_named = |name: &str| sources.iter().any(|text| has_word(text, name));
    asked_for(&manifest.text)
        .into_iter()
        .filter(|(name, _)| !is_named(&name.replace('-', "_")))
        .map(|(name, line)| {
            let what = format!("nothing in `{folder}` names `{name}`");
            Finding::broken(&manifest.path, line, what, "take the dependency out")
        })
        .collect()
}

/// Whether the text has this identifier, and not only as a part of a longer one.
fn has_word(text: &str, word: &str) -> bool {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    text.match_indices(word).any(|(at, _)| {
        !text[..at].ends_with(is_part) && !text[at + word.len()..].starts_with(is_part)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &str, text: &str) -> File {
        File { path: path.to_owned(), text: text.to_owned() }
    }

    fn lines(files: &[File]) -> Vec<(String, usize)> {
        check(files).into_iter().map(|finding| (finding.file, finding.line)).collect()
    }

    #[test]
    fn what_no_source_names_is_found() {
        let manifest = "\
[dependencies]
a-b = \"1\"
renamed = { package = \"other\" }
[dev-dependencies]
c.workspace = true
[target.'cfg(unix)'.dependencies.d]
version = \"1\"
";
        let all = "use a_b::X; renamed::f(); c::g(); d::h();";
        let used = |text| [file("p/Cargo.toml", manifest), file("p/src/lib.rs", text)];
        assert_eq!(lines(&used(all)), []);
        let found = lines(&used("use a_b::X; other::f(); c2::g(); xd::h();"));
        assert_eq!(found, [3, 5, 7].map(|line| ("p/Cargo.toml".to_owned(), line)));
    }

    #[test]
    fn a_name_in_another_package_does_not_count() {
        let files =
            [file("p/Cargo.toml", "[dependencies]\na = \"1\""), file("q/src/lib.rs", "a::f()")];
        assert_eq!(lines(&files), [("p/Cargo.toml".to_owned(), 2)]);
    }

    #[test]
    fn the_list_of_the_workspace_has_nothing_more() {
        let root = "[workspace.dependencies]\na = \"1\"\nb = \"1\"\nhourglass-c = \"1\"";
        let files = [
            file("Cargo.toml", root),
            file("p/Cargo.toml", "[dev-dependencies]\na.workspace = true"),
            file("p/tests/t.rs", "a!()"),
        ];
        assert_eq!(lines(&files), [("Cargo.toml".to_owned(), 3)]);
    }
}
